"""Lower bounds on the error of a goal that no protocol with the same guarantees beats.

They are a list with one signature: each takes a `BoundProblem` and gives a number, or None where
it knows nothing. `best_bound` takes the largest and says which it was.
"""

from rldp.designing.bounds.problem import Bound, BoundProblem
from rldp.designing.bounds.registry import BOUNDS, best_bound

__all__ = ["BOUNDS", "Bound", "BoundProblem", "best_bound"]
