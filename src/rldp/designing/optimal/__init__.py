"""The optimal protocol for F itself: column generation over the cone of all private columns.

A column T[s, u] = Q(y|s,u) is private if R_1·T_{s1} ≤ e^ε R_2·T_{s2} for all conditionals of
s1 ≠ s2 that occur together in F. These columns are a convex cone Γ_F, which holds PolyOpt's.

What is here is used by the searches of `designing`:

    private_columns      the best private column for a linear objective; pulling in
      ├─► privacy_cones ──► solvers.conic      Γ_F in cones
      └─► cutting_planes ──► solvers.linear    Γ_F by inequalities, from outside
    sorted_pricing       columns of PolyOpt's cone, by sorting
    subset_selection     columns that protect the whole record, to begin with
    barrier_master       the masses of columns with the least error, and prices
      ├─► minimax_weights      for the largest error instead of the mean
      └─► bounded_influence    for a limit of what one report may do

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
- region: the columns with one s* and with τ in an interval, see `inner_sets`.
- work: nominal seconds by which a search ends, see `solvers.work`.
"""
