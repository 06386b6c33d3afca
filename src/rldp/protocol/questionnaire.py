"""A questionnaire: protocols for blocks of columns that share S, of which each person reports one.

The file `rldp-questionnaire` holds the whole document of every block, the shares with which blocks
are drawn, and what is promised of a report as a whole (`rldp.proof.questionnaire` proves it). The
file `rldp-questionnaire-client` holds the public document of every block in their place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rldp._types import Array, RecordProgress
from rldp.checks import checked_texts
from rldp.decimals import shortest
from rldp.errors import DataError, ParameterError
from rldp.estimation.mixin import EstimateOptions
from rldp.io.atomic_files import PRIVATE, write_text
from rldp.proof.questionnaire import PROMISE
from rldp.protocol.documents import (
    QUESTIONNAIRE,
    QUESTIONNAIRE_CLIENT,
    Document,
    document_hash,
    file_text,
    name_from,
    number,
    typed,
)
from rldp.protocol.guarantees import Claim, levels_document
from rldp.protocol.public_protocol import FilePath, PublicProtocol, public_protocol_from
from rldp.protocol.release_protocol import ReleaseProtocol, release_protocol_from
from rldp.release.mixin import ReleasingBlocks, block_name
from rldp.tables.schema import Column, Schema, shown_list

BITS = 32  # of shares: one word of a random generator on any device
_KINDS = {"given_u": ("given-u", "all"), "all": ("all",)}  # what a line about a reader rests on


class _Asked(ReleasingBlocks):
    """What whole and public questionnaires have in common: names, shares, reports, estimates."""

    blocks: tuple[Any, ...]
    shares: tuple[int, ...]
    bits: int

    def _check(self) -> None:
        if not self.blocks:
            raise DataError("Expected at least one block, got none.", argument="blocks")
        sensitive = self.blocks[0].schema.sensitive
        for p in self.blocks:
            if p.schema.sensitive != sensitive:
                raise DataError(
                    f"Expected the same sensitive columns and labels in all blocks, "
                    f"{block_name(p.schema)!r} has others than {self.names[0]!r}."
                )
            if not p.schema.useful:
                raise DataError("Expected a useful column in every block.", argument="blocks")
        if len(set(self.names)) < len(self.names):
            raise DataError("Expected blocks with different names.", argument="blocks")
        columns = tuple(column for p in self.blocks for column in p.schema.useful)
        Schema(sensitive, columns)  # which refuses a column that is in two blocks
        fits = len(self.shares) == len(self.blocks) and all(
            type(share) is int and share > 0 for share in self.shares
        )
        if not fits or not 1 <= self.bits <= 62 or sum(self.shares) != 2**self.bits:
            raise DataError(
                f"Expected {len(self.blocks)} shares above 0 that sum to 2^{self.bits} exactly, "
                f"got {shown_list([str(share) for share in self.shares])}.",
                argument="shares",
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What reports call the blocks: their useful columns, joined by " + "."""
        return tuple(block_name(p.schema) for p in self.blocks)

    @cached_property
    def weights(self) -> Array:
        """The probabilities of the blocks."""
        return np.array(self.shares) / 2.0**self.bits

    @cached_property
    def schema(self) -> Schema:
        """The sensitive columns, and the useful ones of all blocks. Nobody lists its product."""
        columns = tuple(column for p in self.blocks for column in p.schema.useful)
        return Schema(self.blocks[0].schema.sensitive, columns)

    @property
    def sensitive(self) -> tuple[Column, ...]:
        """The sensitive columns."""
        return self.schema.sensitive

    @property
    def useful(self) -> tuple[str, ...]:
        """The names of all useful columns."""
        return tuple(column.name for column in self.schema.useful)

    @property
    def reads_sensitive(self) -> bool:
        """Whether some block needs S."""
        return any(p.reads_sensitive for p in self.blocks)

    def block(self, *names: str) -> Any:
        """The protocol of the block that asks for these useful columns."""
        wanted = set(checked_texts(names, "names of useful columns"))
        for p in self.blocks:
            if wanted and wanted <= {column.name for column in p.schema.useful}:
                return p
        raise DataError(
            f"Expected useful columns of one block among {shown_list(self.names)}, got "
            f"{shown_list(list(names)) or 'none'}."
        )

    def estimate(
        self: Any,
        reports: Any = None,
        *,
        counts: Mapping[str, Any] | None = None,
        level: float = 0.95,
        simultaneous: bool = False,
        weights: str | None = None,
        column: str = "y",
        allow_few: bool = False,
        encoding: str | None = None,
        progress: RecordProgress | None = None,
    ) -> Any:
        """Estimate P(S) and every table of S with a block, all with one margin of S.

        Args:
            reports: what `q.release` gives, with the columns `block` and `y`: a frame or dicts, or
                the path of a CSV, Parquet or Arrow file of any size.
            counts: instead of reports, how often each output occurred, by the name of the block.
            level: of confidence.
            simultaneous: whether the level holds for all cells of a table at once.
            weights: name of the column with survey weights.
            column: name of the column with the reports.
            allow_few: give estimates for fewer than 30 reports of a block too.
            encoding: of a text file as in `rldp.read_table`.
            progress: called after each batch of a file with the number of reports and the share.

        Returns:
            A `QuestionnaireEstimate`: `e.s`, `e.table("sex")`, `e.useful("sex")`, `e.to_frame()`.

        Formal guarantees: all estimates are unbiased for every distribution, and all tables have
        the same margin of S.
        """
        from rldp.estimation.questionnaire import estimate

        options = EstimateOptions(
            level=level,
            simultaneous=simultaneous,
            weights=weights,
            column=column,
            allow_few=allow_few,
            encoding=encoding,
            progress=progress,
        )
        return estimate(self.blocks, self._laws, self.fingerprint, reports, options, counts=counts)

    def plan(self, margin: float = 0.01, level: float = 0.95) -> list[Any]:
        """How many reports give intervals of ± `margin`, for P(S) and for every useful column.

        Returns:
            For each a `Question`: its name and block, the reports for every P(S, U) and for every
            P(U), and the share of all reports that its block takes.
        """
        from rldp.estimation.questionnaire import planned

        return planned(self, margin, level)

    @cached_property
    def _laws(self) -> tuple[Any, ...]:
        """How well each block estimates its table."""
        from rldp.estimation.questionnaire import BlockLaw  # scipy is for estimates

        return tuple(BlockLaw(p) for p in self.blocks)

    def _entries(self: Any, kind: str) -> Document:
        """The document; claims are what all blocks promise."""
        claims = _claims(self.blocks)
        several = len(self.sensitive) > 1
        columns = {"columns": _of_columns(claims["levels"], self.sensitive)} if several else {}
        alpha = {} if self.alpha is None else {"alpha": self.alpha}
        return {
            "format": kind,
            "version": 1,
            "name": self.name,
            "promise": PROMISE,
            "epsilon": self.epsilon,
            **{line: levels_document(levels) for line, levels in claims.items()},
            **columns,
            **alpha,
            "shares": {"bits": self.bits, "of": [str(share) for share in self.shares]},
            "blocks": [p.document() for p in self.blocks],
        }

    @cached_property
    def epsilon(self) -> float:
        """The largest level of a report as a whole, against someone who knows nothing of U."""
        levels = _claims(self.blocks)["levels"]
        return float(levels[np.isfinite(levels)].max())

    def _shown(self: Any) -> str:
        return (
            f"{len(self.blocks)} blocks, {len(self.useful)} useful columns, "
            f"epsilon {shortest(self.epsilon)}"
        )


@dataclass(frozen=True, eq=False)
class Questionnaire(_Asked):
    """Protocols for blocks of columns that share S, each proved; a person reports one block.

    Formal guarantee: a person makes one report (j, y), of a block j that is drawn with probability
    shares[j] / 2^bits independently of the record. What every block promises about a reader holds
    for the report as a whole, at the largest level of any block: nothing composes.

    Args:
        blocks: the protocols.
        shares: how often each is drawn, in units of 2^-bits.
        bits: the shares sum to 2^bits.
        alpha: an upper bound of the chance that the sample misleads the sets of any block; None
            where the sets have no such number.
        name: of the questionnaire.
    """

    blocks: tuple[ReleaseProtocol, ...]
    shares: tuple[int, ...]
    bits: int = BITS
    alpha: float | None = None
    name: str = "questionnaire"

    def __post_init__(self) -> None:
        """Check that the blocks fit together."""
        object.__setattr__(self, "blocks", tuple(self.blocks))
        object.__setattr__(self, "shares", tuple(self.shares))
        self._check()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the public version: the hash that stands in a public file."""
        return self.public().fingerprint

    @property
    def ended(self) -> dict[str, str]:
        """How the search of each block ended; a file does not tell."""
        return {name: p.ended for name, p in zip(self.names, self.blocks, strict=True)}

    def public(self) -> PublicQuestionnaire:
        """The version for clients: the tables of all blocks, without the design sample."""
        return PublicQuestionnaire(
            tuple(p.public() for p in self.blocks), self.shares, self.bits, self.alpha, self.name
        )

    def document(self) -> Document:
        """The questionnaire as plain JSON values."""
        return self._entries(QUESTIONNAIRE)

    def save(self, path: FilePath) -> None:
        """Write one file, all or nothing; it holds counts, so a new one is for its owner alone."""
        write_text(path, file_text(self.document()), PRIVATE)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go through the document."""
        return questionnaire_from, (self.document(),)

    def __repr__(self) -> str:
        """How many blocks and columns, and ε."""
        return f"<Questionnaire: {self._shown()}>"


@dataclass(frozen=True, eq=False)
class PublicQuestionnaire(_Asked):
    """What clients need of a questionnaire: the tables of all blocks and their shares, no sample.

    Its levels are claims, as those of a `PublicProtocol`: `rldp.verify(whole, vouches=public)`
    checks that a whole file proves them.
    """

    blocks: tuple[PublicProtocol, ...]
    shares: tuple[int, ...]
    bits: int = BITS
    alpha: float | None = None
    name: str = "questionnaire"

    def __post_init__(self) -> None:
        """Check that the blocks fit together."""
        object.__setattr__(self, "blocks", tuple(self.blocks))
        object.__setattr__(self, "shares", tuple(self.shares))
        self._check()

    @property
    def is_proved(self) -> bool:
        """False: what would prove ε is not in a public file."""
        return False

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the document."""
        return document_hash(self.document())

    def document(self) -> Document:
        """The questionnaire as plain JSON values."""
        return self._entries(QUESTIONNAIRE_CLIENT)

    def save(self, path: FilePath) -> None:
        """Write one file, all or nothing."""
        write_text(path, file_text(self.document()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go through the document."""
        return questionnaire_from, (self.document(),)

    def __repr__(self) -> str:
        """How many blocks and columns, and that ε is a claim."""
        return f"<PublicQuestionnaire: {self._shown()} is claimed, without a proof>"


def questionnaire_from(document: Document) -> Questionnaire | PublicQuestionnaire:
    """The questionnaire of a document, each entry of which is checked by itself."""
    if document.get("version") != 1:
        raise DataError("Expected version 1 of a questionnaire; a newer rldp may read it.")
    is_whole = document.get("format") == QUESTIONNAIRE
    read: Any = release_protocol_from if is_whole else public_protocol_from
    blocks = []
    for j, block in enumerate(typed(document, "blocks", list)):
        if not isinstance(block, dict) or type(block.get("version")) is not int:
            raise DataError(f"Expected a protocol as block {j}.")
        blocks.append(read(block))
    shares = typed(document, "shares", dict)
    listed = typed(shares, "of", list)
    if not all(isinstance(x, str) and x.isascii() and x.isdigit() and len(x) < 20 for x in listed):
        raise DataError("Expected shares as integers in decimal text.")
    alpha = number(document["alpha"], "alpha") if "alpha" in document else None
    made = Questionnaire if is_whole else PublicQuestionnaire
    return made(
        tuple(blocks),
        tuple(map(int, listed)),
        typed(shares, "bits", int),
        alpha,
        name_from(document),
    )


def exact_shares(weights: Sequence[float], bits: int = BITS) -> tuple[int, ...]:
    """Integers near to these weights, each at least 1, that sum to 2^bits.

    >>> exact_shares([1, 1, 2], 4)
    (4, 4, 8)
    """
    total, n = math.fsum(weights), len(weights)
    if n > 2**bits:
        raise ParameterError(f"Expected at most 2^{bits} blocks, got {n}.")
    rest = 2**bits - n
    raw = [rest * w / total for w in weights]
    found = [1 + math.floor(x) for x in raw]
    missing = 2**bits - sum(found)
    order = sorted(range(n), key=lambda j: (math.floor(raw[j]) - raw[j], j))
    for j in order[:missing]:
        found[j] += 1
    return tuple(found)


def _claims(blocks: Sequence[Any]) -> dict[str, Array]:
    """What holds for the report as a whole: for every pair the largest level of any block."""
    found = {"levels": np.max([_promised(p)[0].levels for p in blocks], axis=0)}
    for line, kinds in _KINDS.items():
        each = [[c.levels for c in _promised(p) if c.kind in kinds and not c.knows] for p in blocks]
        if all(each):
            levels = np.max([np.min(levels, axis=0) for levels in each], axis=0)
            if np.isfinite(levels).any():
                found[line] = levels
    return found


def _promised(p: Any) -> tuple[Claim, ...]:
    if isinstance(p, ReleaseProtocol):
        return tuple(Claim.of(guarantee) for guarantee in p.guarantees)
    if p.claims:
        return tuple(p.claims)
    n_s = p.schema.n_s
    levels = np.full((n_s, n_s), p.epsilon)
    np.fill_diagonal(levels, np.inf)
    return (Claim("", {}, levels),)  # version 1 says nothing but ε


def _of_columns(levels: Array, columns: Sequence[Column]) -> dict[str, float | str]:
    """For each sensitive column the largest level of a pair that differs in it."""
    sizes = [len(column.labels) for column in columns]
    codes = np.array(np.unravel_index(np.arange(math.prod(sizes)), sizes))
    found: dict[str, float | str] = {}
    for column, code in zip(columns, codes, strict=True):
        most = float(levels[code[:, None] != code[None, :]].max())
        found[column.name] = "inf" if math.isinf(most) else most
    return found
