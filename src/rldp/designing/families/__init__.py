"""The closed-form protocols of the paper, one family a file."""
