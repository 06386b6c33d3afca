"""What every open file of records offers, whatever its format."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from rldp.errors import FileError

Format = Literal["csv", "tsv", "parquet", "arrow"]

FORMATS: tuple[Format, ...] = get_args(Format)
_EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
}
_NAMED: dict[Format, str] = {
    "csv": ".csv, .csv.gz",
    "tsv": ".tsv, .tsv.gz",
    "parquet": ".parquet, .pq",
    "arrow": ".arrow",
}


def file_format(path: Path, among: Collection[Format] = FORMATS) -> Format:
    """The format that a file has by its name; a FileError if it is none of those allowed.

    >>> file_format(Path("a.csv.gz")), file_format(Path("b.pq"))
    ('csv', 'parquet')
    """
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower() or ".csv"
        if not is_text(_EXTENSIONS.get(suffix, "csv")):  # these formats have their own compression
            suffix += ".gz"
    found = _EXTENSIONS.get(suffix)
    if found is None or found not in among:
        allowed = ", ".join(_NAMED[each] for each in FORMATS if each in among)
        first, _, last = allowed.rpartition(", ")
        raise FileError(
            f"{path}: expected a file named {first} or {last}, "
            f"got {''.join(path.suffixes) or 'no extension'!r}."
        )
    return found


def is_text(form: Format) -> bool:
    """Whether a file of this format is a text of fields, which may be compressed by gzip."""
    return form in ("csv", "tsv")


def has_metadata(form: Format) -> bool:
    """Whether a file of this format has a place for metadata."""
    return form in ("parquet", "arrow")


def is_compressed(path: Path) -> bool:
    """Whether a text file is compressed by gzip."""
    return path.suffix.lower() == ".gz"


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
