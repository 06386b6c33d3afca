"""Column generation: what the searches of `polyopt` and `optimal` share.

One output y of a protocol is a column T[s, u] = Q(y|s,u). Whether a column is private does not
depend on the others or on its scale, and I(X;Y) is a sum over columns. So the best protocol is a
linear programme over all private columns, solved with a few of them at a time:

         ┌────────────────────────────────────────────────────────────┐
         │                                                            │
         ▼                                                            │
    restricted master ──► duals α ──► pricing: columns with a positive reduced cost
    (`master`)                         │    (`polyopt` or `optimal`)
         │                             ▼
         │                            bound Σ α + δ, if none has a reduced cost above δ
         ▼
    protocol Q, utility, bound (`solution`), told on the way (`progress`)

Glossary.

- column: T[s, u] of one output, scaled to a mass of 1.
- mass: Σ P̂ T, the probability of the output at P̂.
- gain: μ(T) = Σ P̂ T log T - p log p with p the mass, a column's coefficient in the objective.
- restricted master: the linear programme max Σ θ_v μ(v), Σ θ_v v = 1 over the columns so far.
- weight: θ_v of a column in the restricted master.
- duals: α[s, u], the price of the row Σ θ_v v = 1 of a cell.
- reduced cost: μ(T) - Σ α T, the rate at which a new column raises the value of the master.
- pricing: the search for columns with a positive reduced cost.
- bound: a number that the utility of no protocol of the class exceeds. If no column has a reduced
  cost above δ, then α + δ P̂ is dual feasible, and the bound is Σ α + δ.
- incumbent: the best protocol so far. gap: bound minus the utility of the incumbent.

The bound is a proof in real numbers that is computed in doubles, without outward rounding. It is
as good as double precision; the privacy level, unlike it, is proved in exact arithmetic.
"""
