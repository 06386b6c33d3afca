"""From F and ε to a proven protocol: what a design is asked, what it finds, and how it is proved.

What users call
    design            one protocol
    compare           all protocols at several ε
    solve_epsilon     the smallest ε for a margin of error
    prices            what promises cost, and what merging values of U saves, in people
    people            how many people must answer, over ε

What goes down, and comes up
    problem           what is asked for, and what is found
    stack             the guarantees of a design
    catalogue         protocols by name
    certify           the channel as integers, and the proof

Searches
    programmes        the best protocol of a kind: PolyOpt, optimal, plain LDP
    most_information  with the most information
    error_programmes, least_error   with the least error for a goal
    coarser           columns to begin with on large tables, from classes of U
    simplex_errors    the least error over the cone of PolyOpt, and its proof
    rounds            the loop of every search
    masters           the masses of columns, and prices of further ones
    oracles           columns that bring something at these prices
    optimal           which columns are private, and the masses of columns with the least error
    polyopt           the best protocol of the paper's cone

What no protocol exceeds
    bounds            errors that no protocol with the same guarantees beats
    ceilings          information that none exceeds, for one guarantee and several
    inner_sets        sets inside F, whose protocols are easier to bound

Formulas
    closed_forms      protocols given by formulas
    tuning            closed forms for a goal, and under guarantees that formulas do not know

solvers               numerical solvers that know nothing of privacy
"""
