"""PolyOpt: the best protocol whose columns lie in the cone Γ of thm:poly2, by column generation.

A column T[s, u] = Q(y|s,u) is in Γ when z_{s1} ≤ e^ε z_{s2} for all corners z of the simplices
around F_{U|s}. With m = P^min_{·|s} and c = 1 - Σ m the corners of s give z_{s,u} = m·T_s + c
T_{s,u}, so all that privacy asks for is a box for every s, lo ≤ z_{s,u} ≤ hi:

- pairs "all", the paper's Γ: [1, e^ε] for every s, up to a factor;
- pairs "distinct": one s* has [1, e^ε τ] and all others have [τ, e^ε], for some τ in [1, e^ε].

An extreme column is a vertex of every box, and its τ is 1, e^ε or a place where some vertex changes
its pattern. `blocks` knows boxes and vertices, `listed` prices columns exactly where all vertices
can be listed, `relaxed` solves large tables with a certified gap, `solve` chooses between them.
"""
