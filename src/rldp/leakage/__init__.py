"""How far a report can tell two values of S apart, over F."""
