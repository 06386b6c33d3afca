"""How much of X a report keeps in the worst case over F.

robust           the least I(X;Y) over F, with a proof
entropy_minimum  the minima over F that this needs
goal             what a collection is made for, and its errors
contrasts        coefficients of marginals and of cells with given labels
"""
