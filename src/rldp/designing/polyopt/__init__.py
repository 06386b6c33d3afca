"""PolyOpt: the best protocol whose columns lie in the cone Γ of thm:poly2, by column generation.

A column T[s, u] = Q(y|s,u) is in Γ when z_{s1} ≤ e^ε z_{s2} for all corners z of the simplices
around F_{U|s}. With m = P^min_{·|s} and c = 1 - Σ m the corners of s give z_{s,u} = m·T_s + c
T_{s,u}, so Γ asks for a box for every s, lo ≤ z_{s,u} ≤ hi:

- pairs "all", the paper's Γ: [1, e^ε] for every s, up to a factor;
- pairs "distinct": one s* has [1, e^ε τ] and all others have [τ, e^ε], for some τ in [1, e^ε].

An extreme column is a vertex of every box, and its τ is 1, e^ε or a value at which some vertex
changes its pattern.

From the duals to the protocol
------------------------------
An arrow means "calls"::

    solve ──► masters                    duals α from columns; at last the protocol Q[s, u, y]
      │
      ├─► exact_pricing ──► product_pricing   small tables: all vertices are listed
      │     ├─► s_block                  the vertices of one S value
      │     └─► solvers.best_product, solvers.product_table
      │
      └─► large_tables                   large tables: three phases that are repeated
            │                            1. duals from a relaxed master, vertices from pricing
            ├─► relaxed_rounds
            │     ├─► relaxed_master     every block chooses its vertices independently
            │     ├─► level_classes      groups of vertices with similar masses
            │     └─► coupling           from the weights of blocks to whole columns
            │                            2. whole columns for the duals of the master
            ├─► column_search            branch and bound over products of vertices
            │                            3. the bound for all τ
            ├─► tau_bisection            best-first bisection
            │                            in all phases:
            ├─► tau_grid                 the τ's at which columns are priced
            ├─► dual_smoothing           the duals at which columns are priced
            └─► zero_cells               cells that copy another one

    column_search ──► tau_interval       bounds on reduced costs at one τ, or between two
                        └─► box_cache
                              ├─► small_boxes ──► s_block
                              │     └─► knapsack_box ──► knapsack_rounding
                              └─► pattern_changes     │
                                    └─────────────────┴─► knapsack_leaves ──► knapsack

    settings: every number that steers the search

One column on its way: the master's `duals` go through `dual_smoothing` to `tau_interval.price`,
which asks the `box` of every block for vertices with a large net gain. `column_search` combines one
vertex from each block into columns with a positive reduced cost. They enter the relaxed master as
vertices (`relaxed_rounds`) or the master as whole columns (`large_tables`), and with a positive
weight in the last solve they are outputs of the protocol (`Master.protocol`).

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
- not excluded: a vertex that no bound excludes from a column with a reduced cost above the target.
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
