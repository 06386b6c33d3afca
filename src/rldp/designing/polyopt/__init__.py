"""PolyOpt: the best protocol whose columns lie in the cone Γ of thm:poly2, by column generation.

A column T[s, u] = Q(y|s,u) is in Γ when z_{s1} ≤ e^ε z_{s2} for all corners z of the simplices
around F_{U|s}. With m = P^min_{·|s} and c = 1 - Σ m the corners of s give z_{s,u} = m·T_s + c
T_{s,u}, so Γ asks for a box for every s, lo ≤ z_{s,u} ≤ hi:

- pairs "all", the paper's Γ: [1, e^ε] for every s, up to a factor;
- pairs "distinct": one s* has [1, e^ε τ] and all others have [τ, e^ε], for some τ in [1, e^ε].

An extreme column is a vertex of every box, and its τ is 1, e^ε or a value at which some vertex
changes its pattern.

solve           small tables: exact pricing until nothing is gained; large ones: three phases
exact_pricing   columns where all vertices are listed
relaxed         rounds on a master in which every block chooses its vertices independently
tau             bounds on reduced costs at one τ and between two, whole columns, bisection
boxes           the vertices of one block: bounds at given duals, and good ones
knapsack        subsets of U that are too many to list, in leaves
s_block         one S value: the three patterns of its vertices

One column on its way: the master's duals go to `tau.TauInterval.price`, which asks the box of every
block for vertices with a large net gain. `tau.columns_by_star` combines one vertex from each block
into columns with a positive reduced cost. They enter the relaxed master as vertices or the master
as whole columns, and with a positive weight in the last solve they are outputs of the protocol
(`Master.protocol`).

Glossary
--------
The words of `rounds` (column, mass, gain, duals, reduced cost, restricted master,
incumbent, bound, gap), and:

- block: the entries T[s, ·] of a column for one S value.
- box: the bounds lo ≤ z_{s,u} ≤ hi of one block at one τ.
- s*, the others: the S value with the smallest z, and all others. τ: their ratio of smallest z.
- vertex: an extreme point of a block in its box. product: one vertex from every block, a column.
- H, m(H): the cells of a vertex at their upper bound, and their sum of m.
- pattern: which of the three formulas of `s_block` gives the vertex. fractional cell: the cell f of
  the third pattern; also the cell that is fractionally in H in the bound of a knapsack.
- part: the vertices of one block that agree on its large cells.
- net gain: Σ P̂ T log T - α·T of a vertex, its gain less its price.
- multiplier λ: of the mass. It separates the blocks: the Lagrangian bound of `box`.
- exact block bound: a Lagrangian bound in which the vertices of one block have a λ each.
- leaf: subsets of U between two values of m(H) in which some cells are decided.
- group: vertices of one τ, s* and level class that the relaxed master combines freely.
- level class: the levels of the heavy cells of a column, in powers of e.
- coupling: weighted products with given marginals, the weights of every block.
- active: an inequality that holds with equality, or a limit that a solution attains.
- stability centre: the duals of the best bound so far.

All bounds, and with them the optimality gap, are proofs in real numbers that are computed in
doubles, without outward rounding: the gap is as good as double precision. The privacy level does
not depend on them; it is proved in exact arithmetic for the protocol that is released.
"""
