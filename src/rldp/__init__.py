"""rldp: release protocols that keep the most information while a sensitive part stays private.

Design with `design` and `compare` over an uncertainty set of a `Table`; see the README.
Names are imported when first used, so that importing the package costs nothing.

tables          records → counts of (S, U)
uncertainty     the sets F of distributions that may be true
channel         Q(y|s,u), what a person with record (s, u) reports
information     entropy and mutual information
utility         what a channel keeps at worst over F, and goals of a collection
leakage         how far a report can tell two values of S apart
levels          privacy levels for pairs of S values
proof           the checker of protocol files, in exact arithmetic
intervals       a second checker, in interval arithmetic
release         records → reports
estimation      reports → the table again
protocol        a protocol as users hold it, and its file
auditing        what any channel protects, and the risk for a person
designing       F and ε → a proven protocol
presentation    results → sentences and pictures
collect         a form and a server that collects reports
studio          all steps in a local browser
reproduction    the figures of the paper
waves           surveys in waves: sets from reports, the next wave, pooled estimates
cli             the command line
datasets        tables for examples
spark, sklearn  releases on a cluster, and in a pipeline
io              files that are written whole or not at all
web             what both servers share
checks          checks of arguments
arithmetic      functions and products that round alike on every processor
compiled        three loops in C, wherever they could be compiled
decimals        numbers as text
errors          exceptions and warnings
_types          types of arrays and of callbacks
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import rldp.datasets as datasets
    import rldp.levels as levels
    from rldp.auditing.audit import Audit as Audit
    from rldp.auditing.audit import audit
    from rldp.auditing.questionnaire import QuestionnaireAudit as QuestionnaireAudit
    from rldp.auditing.questionnaire import audit_questionnaire
    from rldp.auditing.read_matrix import read_matrix
    from rldp.auditing.repeated import Repeated as Repeated
    from rldp.auditing.repeated import repeated
    from rldp.auditing.risk import Risk as Risk
    from rldp.auditing.risk import risk
    from rldp.channel import Channel as Channel
    from rldp.channel import ChoiceChannel as ChoiceChannel
    from rldp.channel import DenseChannel as DenseChannel
    from rldp.channel import IndependentChannel as IndependentChannel
    from rldp.channel import SetChannel as SetChannel
    from rldp.channel import UnaryChannel as UnaryChannel
    from rldp.designing.classic import classic
    from rldp.designing.compare import compare
    from rldp.designing.design import design
    from rldp.designing.few_outputs import DicePrice as DicePrice
    from rldp.designing.few_outputs import dice_price
    from rldp.designing.prices import MergingPrice as MergingPrice
    from rldp.designing.prices import PromisePrice as PromisePrice
    from rldp.designing.prices import merging_prices as merging_prices
    from rldp.designing.prices import promise_prices as promise_prices
    from rldp.designing.programmes import ceiling
    from rldp.designing.programmes import srr_threshold as srr_threshold
    from rldp.designing.questionnaire import design_questionnaire
    from rldp.designing.solve_epsilon import solve_epsilon
    from rldp.errors import CertificateError as CertificateError
    from rldp.errors import DataError as DataError
    from rldp.errors import DoubtfulModelWarning as DoubtfulModelWarning
    from rldp.errors import FileError as FileError
    from rldp.errors import FreshDrawWarning as FreshDrawWarning
    from rldp.errors import KeptColumnsWarning as KeptColumnsWarning
    from rldp.errors import LabelWarning as LabelWarning
    from rldp.errors import MissingExtraError as MissingExtraError
    from rldp.errors import ParameterError as ParameterError
    from rldp.errors import ReadingWarning as ReadingWarning
    from rldp.errors import RldpError
    from rldp.errors import TooLargeError as TooLargeError
    from rldp.estimation.identifiability import Identifiability as Identifiability
    from rldp.estimation.identifiability import identifiability
    from rldp.estimation.mixin import estimate, regress
    from rldp.estimation.noncompliance import Compliance as Compliance
    from rldp.estimation.noncompliance import Noncompliance, noncompliance_curve
    from rldp.estimation.questionnaire import QuestionnaireEstimate as QuestionnaireEstimate
    from rldp.estimation.regression.result import Regression as Regression
    from rldp.estimation.result import Estimate as Estimate
    from rldp.estimation.sample_size import Plan as Plan
    from rldp.estimation.sample_size import Stratum as Stratum
    from rldp.estimation.sample_size import plan
    from rldp.estimation.tally import read_tally
    from rldp.information import entropy, mutual_information
    from rldp.protocol.files import load, sign, verify
    from rldp.protocol.public_protocol import PublicProtocol
    from rldp.protocol.questionnaire import PublicQuestionnaire as PublicQuestionnaire
    from rldp.protocol.questionnaire import Questionnaire
    from rldp.protocol.release_protocol import ReleaseProtocol
    from rldp.release.randomness import Simulation, new_key
    from rldp.release.release_file import release_file
    from rldp.release.several_reports import ChangedRecord as ChangedRecord
    from rldp.release.several_reports import change_epsilon as change_epsilon
    from rldp.release.several_reports import changed_record as changed_record
    from rldp.tables.read_table import read_table
    from rldp.tables.schema import Column, Schema
    from rldp.tables.table import Table
    from rldp.uncertainty import (
        AllDistributions,
        ChiSquareSet,
        FiniteKLSet,
        GivenU,
        Guarantee,
        KLSet,
        KnownDistribution,
        PolytopeSet,
        RenyiSet,
        TotalVariationSet,
        UncertaintySet,
    )
    from rldp.uncertainty import EvidenceSet as EvidenceSet
    from rldp.utility.goal import Goal
    from rldp.utility.goal import GoalError as GoalError
    from rldp.utility.robust import RobustUtility as RobustUtility
    from rldp.waves import MeasuredSet, ReportSet, first_wave, next_wave, pooled, split
    from rldp.waves import NextWave as NextWave

__version__ = "0.1.0"

# What users type. Other names, such as errors and the types of results, stay importable from here.
__all__ = [
    "AllDistributions",
    "ChiSquareSet",
    "Column",
    "FiniteKLSet",
    "GivenU",
    "Goal",
    "Guarantee",
    "KLSet",
    "KnownDistribution",
    "MeasuredSet",
    "Noncompliance",
    "PolytopeSet",
    "PublicProtocol",
    "Questionnaire",
    "ReleaseProtocol",
    "RenyiSet",
    "ReportSet",
    "RldpError",
    "Schema",
    "Simulation",
    "Table",
    "TotalVariationSet",
    "UncertaintySet",
    "audit",
    "audit_questionnaire",
    "ceiling",
    "classic",
    "compare",
    "datasets",
    "design",
    "design_questionnaire",
    "dice_price",
    "entropy",
    "estimate",
    "first_wave",
    "identifiability",
    "levels",
    "load",
    "mutual_information",
    "new_key",
    "next_wave",
    "noncompliance_curve",
    "plan",
    "pooled",
    "read_matrix",
    "read_table",
    "read_tally",
    "regress",
    "release_file",
    "repeated",
    "risk",
    "sign",
    "solve_epsilon",
    "split",
    "verify",
]

_HOMES = {
    "auditing.audit": ("Audit", "audit"),
    "channel": (
        "Channel",
        "ChoiceChannel",
        "DenseChannel",
        "IndependentChannel",
        "SetChannel",
        "UnaryChannel",
    ),
    "auditing.repeated": ("Repeated", "repeated"),
    "auditing.risk": ("Risk", "risk"),
    "errors": (
        "CertificateError",
        "DataError",
        "DoubtfulModelWarning",
        "FileError",
        "FreshDrawWarning",
        "KeptColumnsWarning",
        "LabelWarning",
        "MissingExtraError",
        "ParameterError",
        "ReadingWarning",
        "RldpError",
        "TooLargeError",
    ),
    "auditing.questionnaire": ("QuestionnaireAudit", "audit_questionnaire"),
    "designing.questionnaire": ("design_questionnaire",),
    "estimation.questionnaire": ("QuestionnaireEstimate",),
    "protocol.questionnaire": ("PublicQuestionnaire", "Questionnaire"),
    "estimation.result": ("Estimate",),
    "estimation.mixin": ("estimate", "regress"),
    "estimation.regression.result": ("Regression",),
    "estimation.identifiability": ("Identifiability", "identifiability"),
    "estimation.sample_size": ("Plan", "Stratum", "plan"),
    "information": ("entropy", "mutual_information"),
    "auditing.read_matrix": ("read_matrix",),
    "protocol.files": ("load", "sign", "verify"),
    "protocol.public_protocol": ("PublicProtocol",),
    "protocol.release_protocol": ("ReleaseProtocol",),
    "designing.classic": ("classic",),
    "designing.few_outputs": ("DicePrice", "dice_price"),
    "estimation.noncompliance": ("Compliance", "Noncompliance", "noncompliance_curve"),
    "estimation.tally": ("read_tally",),
    "designing.compare": ("compare",),
    "designing.design": ("design",),
    "designing.prices": ("MergingPrice", "PromisePrice", "merging_prices", "promise_prices"),
    "designing.programmes": ("ceiling", "srr_threshold"),
    "designing.solve_epsilon": ("solve_epsilon",),
    "tables.read_table": ("read_table",),
    "release.several_reports": ("ChangedRecord", "change_epsilon", "changed_record"),
    "release.release_file": ("release_file",),
    "release.randomness": ("Simulation", "new_key"),
    "utility.goal": ("Goal", "GoalError"),
    "utility.robust": ("RobustUtility",),
    "tables.schema": ("Column", "Schema"),
    "tables.table": ("Table",),
    "uncertainty": (
        "AllDistributions",
        "ChiSquareSet",
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
    ),
    "waves": (
        "MeasuredSet",
        "NextWave",
        "ReportSet",
        "first_wave",
        "next_wave",
        "pooled",
        "split",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"rldp.{_HOME_OF[name]}"), name)
    if name in ("datasets", "levels", "sklearn", "spark"):
        return import_module(f"rldp.{name}")
    raise AttributeError(f"module 'rldp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
