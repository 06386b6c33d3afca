"""From F and ε to a proven protocol: closed forms, linear programmes, and their solvers.

design            one protocol
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
aim               a goal, and the influence that one report may have
identifiable      protocols from which every cell can be estimated
polyopt           the best protocol of the paper's cone
optimal           the best protocol of all that are private over F
column_generation   what these two searches share
solvers           numerical solvers that know nothing of privacy
effort            how much work a search may do
draft             a designed channel before its proof
certify           the channel as integers, and the proof
"""
