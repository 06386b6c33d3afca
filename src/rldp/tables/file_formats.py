"""The format of a file of records by its name: CSV, TSV, Parquet or Arrow."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal, get_args

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
    """Whether a file of this format is text, with no place for types and metadata."""
    return form in ("csv", "tsv")


def is_compressed(path: Path) -> bool:
    """Whether a text file is compressed by gzip."""
    return path.suffix.lower() == ".gz"
