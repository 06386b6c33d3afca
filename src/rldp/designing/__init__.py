"""From F and ε to a proven protocol: closed forms, linear programmes, and their solvers.

design            one protocol
problem           what is asked for, and what is found
rounds            the loop of a search; masters weigh columns, oracles offer them
compare           all protocols at several ε
solve_epsilon     the smallest ε for a margin of error
prices            what promises cost, and what merging values of U saves, in people
catalogue         protocols by name
stack             the guarantees of a design
closed_forms      protocols given by formulas
shrunk            closed forms under guarantees that their formulas do not know
rivals            those of them that are better than what a search found
goal_parameters   closed forms with the least error for a goal
programmes        protocols given by linear programmes
error_programmes  programmes with the least error for a goal
bounds            errors that no protocol with the same guarantees beats
polyopt           the best protocol of the paper's cone
optimal           the best protocol of all that are private over F
solvers           numerical solvers that know nothing of privacy
certify           the channel as integers, and the proof
"""
