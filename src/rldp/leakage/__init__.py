"""How far a report can tell two values of S apart, over F.

views        what someone compares who knows part of U
worst_pairs  the pairs of entries that privacy compares, and their largest ratios
"""
