"""Numerical solvers that know nothing of privacy: they take arrays and give arrays.

    linear ─────── interrupts     linear programmes that grow (HiGHS); Ctrl-C ends a long run
    polyhedral ─── linear         linear programmes, one feasible set and many objectives
    conic                         conic programmes, one feasible set and many objectives (Clarabel)
    best_product                  the best choice of one entry from each of several lists
    simple_polytope               the vertices of a polytope that is cut smaller and smaller
    quadratic_bound ─ quadratic_form   the same for a quadratic form of vectors, one from each list
    grid_search                   global maximisation in one or two variables
    work                          a clock that counts work, by which searches end
    one_thread                    linear algebra on one thread, so that results do not change

Who calls them: `masters` and `polyopt.relaxed` solve their restricted masters with `linear`;
`polyopt` prices columns with `best_product`; `optimal` takes its cutting planes from `linear`, its
columns from `conic` and its bounds from `simple_polytope` and `quadratic_bound`; `closed_forms`
chooses parameters with `grid_search`.

Glossary.

- programme: an optimisation problem, as in linear programme.
- dual: the multiplier of a row of a linear programme, here the price of one unit of the row.
- gain: the coefficient of a variable in an objective that is maximised.
- choice, list, product: a product takes one choice from every list.
- branch: a set of products, given by a range of every list.
- bound: a number that no feasible point exceeds. Bounds are proofs in real numbers that run in
  doubles, without outward rounding.
"""
