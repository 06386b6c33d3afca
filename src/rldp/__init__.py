"""rldp: release protocols that keep the most information while a sensitive part stays private.

Design with `design` and `compare` over an uncertainty set of a `Table`; see the README.
Names are imported when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import rldp.datasets as datasets
    from rldp.auditing import Audit, audit
    from rldp.channel import (
        Channel,
        ChoiceChannel,
        DenseChannel,
        IndependentChannel,
        UnaryChannel,
    )
    from rldp.disclosure import Risk, risk
    from rldp.errors import (
        CertificateError,
        DataError,
        FileError,
        MissingExtraError,
        ParameterError,
        RldpError,
        TooLargeError,
    )
    from rldp.estimation.estimate import Estimate
    from rldp.estimation.estimating import estimate
    from rldp.estimation.identifiability import Identifiability, identifiability
    from rldp.estimation.planning import Plan, plan
    from rldp.information import entropy, mutual_information
    from rldp.matrices import read_matrix
    from rldp.protocol import PublicProtocol, ReleaseProtocol, load, verify
    from rldp.protocols.catalogue import compare, design
    from rldp.protocols.programmes import ceiling, srr_threshold
    from rldp.reading import read_table
    from rldp.release.files import release_file
    from rldp.release.randomness import Simulation, new_key
    from rldp.robust import RobustUtility
    from rldp.schema import Column, Schema
    from rldp.table import Table
    from rldp.uncertainty import (
        AllDistributions,
        ChiSquareSet,
        KLSet,
        KnownDistribution,
        RenyiSet,
        TotalVariationSet,
        UncertaintySet,
    )

__version__ = "0.1.0"

__all__ = [
    "AllDistributions",
    "Audit",
    "CertificateError",
    "Channel",
    "ChiSquareSet",
    "ChoiceChannel",
    "Column",
    "DataError",
    "DenseChannel",
    "Estimate",
    "FileError",
    "Identifiability",
    "IndependentChannel",
    "KLSet",
    "KnownDistribution",
    "MissingExtraError",
    "ParameterError",
    "Plan",
    "PublicProtocol",
    "ReleaseProtocol",
    "RenyiSet",
    "Risk",
    "RldpError",
    "RobustUtility",
    "Schema",
    "Simulation",
    "Table",
    "TooLargeError",
    "TotalVariationSet",
    "UnaryChannel",
    "UncertaintySet",
    "audit",
    "ceiling",
    "compare",
    "datasets",
    "design",
    "entropy",
    "estimate",
    "identifiability",
    "load",
    "mutual_information",
    "new_key",
    "plan",
    "read_matrix",
    "read_table",
    "release_file",
    "risk",
    "srr_threshold",
    "verify",
]

_HOMES = {
    "auditing": ("Audit", "audit"),
    "channel": ("Channel", "ChoiceChannel", "DenseChannel", "IndependentChannel", "UnaryChannel"),
    "disclosure": ("Risk", "risk"),
    "errors": (
        "CertificateError",
        "DataError",
        "FileError",
        "MissingExtraError",
        "ParameterError",
        "RldpError",
        "TooLargeError",
    ),
    "estimation.estimate": ("Estimate",),
    "estimation.estimating": ("estimate",),
    "estimation.identifiability": ("Identifiability", "identifiability"),
    "estimation.planning": ("Plan", "plan"),
    "information": ("entropy", "mutual_information"),
    "matrices": ("read_matrix",),
    "protocol": ("PublicProtocol", "ReleaseProtocol", "load", "verify"),
    "protocols.catalogue": ("compare", "design"),
    "protocols.programmes": ("ceiling", "srr_threshold"),
    "reading": ("read_table",),
    "release.files": ("release_file",),
    "release.randomness": ("Simulation", "new_key"),
    "robust": ("RobustUtility",),
    "schema": ("Column", "Schema"),
    "table": ("Table",),
    "uncertainty": (
        "AllDistributions",
        "ChiSquareSet",
        "KLSet",
        "KnownDistribution",
        "RenyiSet",
        "TotalVariationSet",
        "UncertaintySet",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"rldp.{_HOME_OF[name]}"), name)
    if name in ("datasets", "sklearn", "spark"):
        return import_module(f"rldp.{name}")
    raise AttributeError(f"module 'rldp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
