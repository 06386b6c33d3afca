"""How much of X a report keeps in the worst case over F."""
