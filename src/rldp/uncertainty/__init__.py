"""The sets F of distributions that may be true.

A set answers what designs and proofs ask of it: how small and how large P_{u|s}, or a mean under
P_{U|s}, can be, how far two means can lie apart, and whether a distribution belongs to it. Four are
confidence sets around the frequencies of a table; the proofs are in docs/guarantee.md.
"""

from rldp.uncertainty.base import ConfidenceSet, UncertaintySet, log_ratio
from rldp.uncertainty.budget import BudgetSet
from rldp.uncertainty.chi_square_set import ChiSquareSet
from rldp.uncertainty.divergences import KLSet, RenyiSet
from rldp.uncertainty.plain import AllDistributions, KnownDistribution
from rldp.uncertainty.total_variation import TotalVariationSet

__all__ = [
    "AllDistributions",
    "BudgetSet",
    "ChiSquareSet",
    "ConfidenceSet",
    "KLSet",
    "KnownDistribution",
    "RenyiSet",
    "TotalVariationSet",
    "UncertaintySet",
    "log_ratio",
]
