"""The shapes behind the sets F: balls of divergences, and the quantities of the paper."""
