"""What every open file of records offers, whatever its format."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from rldp.errors import FileError

DAMAGE = (OSError, EOFError, zlib.error, pa.ArrowException)  # what readers of damaged files raise


class Source(ABC):
    """Records in batches of constant size."""

    names: list[str]
    is_text: bool = False  # whether every value is the bytes that stand in a text file
    has_decimal_commas: bool = False  # whether numbers may be written with decimal commas

    @property
    @abstractmethod
    def schema(self) -> Any:
        """The Arrow schema, with the metadata of the file."""

    @abstractmethod
    def batches(self, names: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[Any]:
        """Record batches of these columns.

        Args:
            names: the columns.
            dictionaries: those of few different texts, which may come as dictionaries.
        """

    @abstractmethod
    def place(self, row: int) -> str:
        """What a message calls the record with this number, the first being 0."""

    @abstractmethod
    def share(self) -> float | None:
        """How much of the file has been read, None if unknown."""

    def tell(self, note: str) -> None:  # noqa: B027  # only text files are converted
        """Have `warn` say how something was converted."""

    def warn(self) -> None:  # noqa: B027  # so only they warn
        """Warn once of each conversion."""


def damaged(path: Path, kind: str, error: Exception) -> FileError:
    """The error for a file that cannot be read to its end."""
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return FileError(f"{path}: expected a whole {kind} file, this one is damaged: {reason}.")
