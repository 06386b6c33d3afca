"""One module for each step of the page: what it asks, and the answer."""
