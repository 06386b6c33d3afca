"""The optimal protocol for F itself: column generation over the cone of all private columns.

A column T[s, u] = Q(y|s,u) is private if R_1·T_{s1} ≤ e^ε R_2·T_{s2} for all conditionals of
s1 ≠ s2 that occur together in F. These columns are a convex cone Γ_F, which holds PolyOpt's.

From the duals to the protocol
------------------------------
An arrow means "calls"::

    solve ──► masters                      duals α from columns; at last the protocol Q[s, u, y]
      │
      ├─► ceiling ──► polyopt.solve        the optimum for known P̂: a bound, and columns to begin
      ├─► inner_simplices ──► polyopt.solve   the same for simplices inside F: a smaller bound
      ├─► half_budgets ──► half_regions    for balls inside F: smaller still
      │                      └─► polyopt.product_pricing, solvers.simple_polytope
      │
      └─► column_search                    rounds of pricing, from columns in use and new starts
            ├─► gains                      the gain of a column, and its tangent
            ├─► private_columns            the best private column for a tangent; pulling in
            │     ├─► privacy_cones ──► solvers.conic      Γ_F in cones
            │     └─► cutting_planes ──► solvers.linear    Γ_F by inequalities, from outside
            └─► branch_and_bound ──► cutting_planes        what no reduced cost exceeds

    stack_ceiling ──► ceiling, chain_rule, solve   a bound for several guarantees together

    least_error ──► error_search           columns with the least error for a goal
      │               ├─► private_columns  the best private column for a tangent
      │               ├─► sorted_pricing   columns of PolyOpt's cone, by sorting
      │               ├─► simplex_rounds   the least error over PolyOpt's cone, and its proof
      │               │     └─► simplex_pricing ──► polyopt.exact_pricing, solvers.quadratic_bound
      │               ├─► barrier_master   the weights of columns, and duals
      │               ├─► minimax_weights  for the largest error instead of the mean
      │               └─► bounded_influence   for a limit of what one report may do

    subset_selection                       columns that protect the whole record, to begin with

One column on its way: the master's duals and a column give a tangent to the reduced cost, and
`private_columns` maximises it over Γ_F. The result is pulled in where it is not quite private; with
a positive reduced cost it enters the master, and with a positive weight in the last solve it is an
output of the protocol.

Glossary
--------
The words of `rounds` (column, mass, gain, duals, reduced cost, restricted master, bound,
gap), and:

- guarantee: a set F of distributions with a level for every ordered pair of S values. Columns must
  keep all guarantees of a stack.
- tangent: the linear function that touches the convex reduced cost at a column, and lies below it.
- block: conditions on the entries of a column and on multipliers of their own.
- excess: max over F of R_1·T_{s1} - e^ε R_2·T_{s2}; a column is private if none is positive.
- pulling in: moving a column towards the constant one by the least that makes it private.
- joint, apart: whether the conditionals of two S values share the budget of F, or each has all of
  it (F', on large tables).
- cut: a linear inequality that every private column satisfies.
- box: low ≤ T ≤ high, a node of branch and bound. chord: the line above t log t between its ends.
- region: the columns with one s* and with τ in an interval, see `half_regions`.
- work: nominal seconds by which a search ends, see `solvers.work`.
"""
