"""Lower bounds on the error of a goal that no protocol with the same guarantees beats.

They are a list with one signature: each takes a `BoundProblem` and gives a number, or None where
it knows nothing. `best_bound` takes the largest and says which it was. docs/goals.md says what
each proves.

problem           what every bound is told, and what follows from multipliers
registry          the list, and the best of them
given_u           the error if U were sent in the clear: any table
known_p           two values of S, if P̂ were known: listed columns
known_p_alone     the same without a promise to someone who knows U, for more values of S
pairs_of_columns  three to six values of S: a programme over pairs of columns
regions           up to 16 cells: programmes over regions of columns
inner             over simplices, or over balls, inside F
"""

from rldp.designing.bounds.problem import Bound, BoundProblem
from rldp.designing.bounds.registry import BOUNDS, best_bound

__all__ = ["BOUNDS", "Bound", "BoundProblem", "best_bound"]
