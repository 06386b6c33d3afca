"""The sets F of distributions that may be true.

A set answers what designs and proofs ask of it: how small and how large P_{u|s}, or a mean under
P_{U|s}, can be, how far two means can lie apart, and whether a distribution belongs to it. Four are
confidence sets around the frequencies of a table; the proofs are in docs/guarantee.md. Files, the
command line and the page know a set by its entry in `rldp.uncertainty.registry`.

base              what every set answers
guarantee         a set with its privacy levels
registry          kinds of sets by name
parameters        the parameters of a set, as they are written
shared_budget     sets in which all S values share one budget
chi_square, power_divergence, total_variation   the confidence sets
trivial           one distribution, and all distributions
given_u           all distributions in which U is known
polytope          mixtures of given distributions
evidence          what reports, measured features and known margins allow
simplex           the simplices around a set, for PolyOpt
exact_tables      tables of exact numbers
geometry          the mathematics of balls and polytopes
"""

from rldp.uncertainty.base import ConfidenceSet, UncertaintySet, log_ratio
from rldp.uncertainty.chi_square import ChiSquareSet
from rldp.uncertainty.evidence import EvidenceSet
from rldp.uncertainty.given_u import GivenU
from rldp.uncertainty.guarantee import Guarantee
from rldp.uncertainty.polytope import PolytopeSet
from rldp.uncertainty.power_divergence import FiniteKLSet, KLSet, RenyiSet
from rldp.uncertainty.registry import SETS, kind_of, register, set_around, set_class
from rldp.uncertainty.shared_budget import BudgetSet
from rldp.uncertainty.total_variation import TotalVariationSet
from rldp.uncertainty.trivial import AllDistributions, KnownDistribution

__all__ = [
    "SETS",
    "AllDistributions",
    "BudgetSet",
    "ChiSquareSet",
    "ConfidenceSet",
    "EvidenceSet",
    "FiniteKLSet",
    "GivenU",
    "Guarantee",
    "KLSet",
    "KnownDistribution",
    "PolytopeSet",
    "RenyiSet",
    "TotalVariationSet",
    "UncertaintySet",
    "kind_of",
    "log_ratio",
    "register",
    "set_around",
    "set_class",
]
