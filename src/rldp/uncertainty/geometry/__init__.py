"""The shapes behind the sets F: balls of divergences, and the quantities of the paper.

chi_square_ball, renyi_ball, total_variation_ball   means over balls
divergence          the sums that define the balls
mixtures            means over a polytope
vertex_enumeration  the vertices of a polytope
paper_quantities    the quantities of the paper for χ² sets
"""
