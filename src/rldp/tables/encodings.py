"""Encodings to UTF-8 and decimal commas to points; every conversion can be told to the user."""

from __future__ import annotations

import codecs
import re
from io import RawIOBase
from typing import Any

import numpy as np

from rldp.errors import FileError, ParameterError, Remedy

_MARKS = {  # byte order marks; the longer ones first
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
_LONGEST_MARK = 4
_ASSUMED = "cp1252"  # what Excel saves as CSV in Western Europe and America
_MULTIBYTE = re.compile(  # a character of several bytes in UTF-8
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_SEAM = 3  # bytes of such a character that may be in the previous block
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?")  # a number that may have one
_PIECE = 1 << 18  # bytes of a file that are checked at a time
_LINE_END = ord("\n")


def decimal_point(text: str) -> str:
    """A number with a decimal comma, written with a point; other texts are unchanged.

    >>> decimal_point("1,50"), decimal_point("a, b"), decimal_point("1,000,000")
    ('1.50', 'a, b', '1,000,000')
    """
    return text.replace(",", ".") if DECIMAL_COMMA.fullmatch(text) else text


class Utf8Check:
    """Whether a file is UTF-8, piece by piece."""

    def __init__(self, file: Any, start: int, size: int) -> None:
        """Begin at a place of a file of `size` bytes."""
        file.seek(start)
        self._file, self._place, self._size = file, start, size
        self._piece = bytearray(_PIECE)
        self._kept = b""  # the beginning of a character

    def holds_to(self, end: int) -> bool:
        """Whether all bytes up to a place are UTF-8; it never goes back."""
        while self._place < end:
            n = self._file.readinto(self._piece)
            self._place += n
            if n == len(self._piece) and not self._kept and self._piece.isascii():
                continue
            data = self._kept + self._piece[:n]
            try:
                _, length = codecs.utf_8_decode(data, "strict", not n or self._place >= self._size)
            except UnicodeDecodeError:
                return False
            if not n:  # the file has become shorter
                return False
            self._kept = bytes(data[length:])
        return True


def _line_ends(text: bytes) -> int:
    """How many lines end in a text; faster than `count` where lines are short."""
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == _LINE_END))


def checked_encoding(name: object) -> str | None:
    """The plain name of an encoding of text, None for None."""
    if name is None:
        return None
    try:
        "".encode(name)  # type: ignore[arg-type]  # refuses codecs that are not for text
        found = codecs.lookup(name)  # type: ignore[arg-type]  # it was taken as a name
    except (LookupError, TypeError, ValueError):
        found = None
    if found is None or found.incrementaldecoder is None:
        raise ParameterError(
            f"Expected an encoding of text such as 'utf-8', 'cp1252' or 'utf-16', got {name!r}.",
            argument="encoding",
        )
    return found.name


class Utf8Stream(RawIOBase):
    """The bytes of a text file as UTF-8, in blocks.

    A byte order mark decides between UTF-8, UTF-16 and UTF-32. Without one the file is UTF-8.
    If a byte is not valid UTF-8, the file is taken as cp1252, unless it also has a character of
    several bytes that is valid UTF-8: then it is refused. (The bytes before were ASCII, which is
    the same in both.) `note` says what was converted.

    Args:
        stream: bytes, with `read` and `readline`.
        name: what messages call it.
        encoding: the encoding if it is known; then it is not guessed.
    """

    def __init__(self, stream: Any, name: str, encoding: str | None = None) -> None:
        """Read the byte order mark."""
        self.note: str | None = None
        self._stream, self._name = stream, name
        self._is_named = encoding is not None
        self.ready = self._seam = b""  # already converted; already checked for UTF-8
        self._kept = b""  # the beginning of a character of UTF-8
        self._lines, self._is_done, self._has_multibyte = 0, False, False
        start = stream.read(_LONGEST_MARK)
        mark = next((mark for mark in _MARKS if start.startswith(mark)), b"")
        if encoding is None:
            encoding = _MARKS.get(mark, "utf-8")
            if encoding != "utf-8":
                self.note = f"{name} was read as {encoding.rpartition('-')[0].upper()}"
        is_marked = codecs.lookup(encoding).name == _MARKS.get(mark)
        self._set_encoding(encoding)
        rest = start.removeprefix(mark) if is_marked else start
        if rest:
            self._take(rest)

    def _set_encoding(self, encoding: str) -> None:
        self._encoding = encoding
        is_utf8 = encoding == "utf-8"
        self._decoder = None if is_utf8 else codecs.getincrementaldecoder(encoding)()

    @property
    def place(self) -> int | None:
        """The place in the file up to which bytes were given, None if they were converted."""
        if self._decoder is not None:
            return None
        return int(self._stream.tell()) - len(self._kept) - len(self.ready)

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer only at the end of the file."""
        while not self._is_done and (size < 0 or len(self.ready) < size):
            self._take(self._stream.read(-1 if size < 0 else size - len(self.ready)))
        return self._given(len(self.ready) if size < 0 else size)

    def readline(self, size: int | None = -1) -> bytes:
        """Read a line, or its first `size` bytes."""
        most = -1 if size is None else size
        while not self._is_done and b"\n" not in self.ready:
            if 0 <= most <= len(self.ready):
                break
            self._take(self._stream.readline(most))
        end = self.ready.find(b"\n") + 1 or len(self.ready)
        return self._given(end if most < 0 else min(end, most))

    def _given(self, size: int) -> bytes:
        if size >= len(self.ready):  # no copy
            given, self.ready = self.ready, b""
            return given
        given, self.ready = self.ready[:size], self.ready[size:]
        return given

    def _take(self, block: bytes) -> None:
        """Convert one more block; an empty one is the end."""
        self._is_done = not block
        if self._decoder is not None:
            converted = self._decoded(block)
        elif block.isascii() and not self._kept:
            converted = block
        else:
            converted = self._checked(self._kept + block)
        self._lines += _line_ends(converted)
        self.ready = self.ready + converted if self.ready else converted

    def _checked(self, data: bytes) -> bytes:
        """The block without an incomplete character at its end; switches to cp1252 if not UTF-8."""
        try:
            _, length = codecs.utf_8_decode(data, "strict", self._is_done)
        except UnicodeDecodeError as error:
            if self._is_named or self._has_multibyte or not data[: error.start].isascii():
                raise self._refused(data, error.start) from None
            self._kept = b""
            self._set_encoding(_ASSUMED)
            line = self._lines + data.count(b"\n", 0, error.start) + 1
            self.note = (
                f"{self._name}: line {line} has the byte 0x{data[error.start]:02X} and is not "
                f"UTF-8; cp1252 (Windows) was assumed"
            )
            return self._decoded(data)
        self._kept = data[length:]
        self._has_multibyte |= not data[:length].isascii()
        return data[:length]

    def _decoded(self, block: bytes) -> bytes:
        if not self._is_named and self._encoding == _ASSUMED:
            both = self._seam + block
            found = None
            if not both.decode("utf-8", "ignore").isascii():  # faster than a search
                found = _MULTIBYTE.search(both)
            if found is not None:
                self._lines -= self._seam.count(b"\n")
                raise self._refused(both, found.start())
            self._seam = both[-_SEAM:]
        try:
            text = self._decoder.decode(block, self._is_done)  # type: ignore[union-attr]  # UTF-8 needs none, and does not come here
        except UnicodeDecodeError as error:
            raise self._refused(bytes(error.object), error.start) from None
        if not self._lines and not self.ready:
            text = text.removeprefix("\ufeff")  # the mark of an encoding that the caller named
        return str(text).encode()

    def _refused(self, data: bytes, place: int) -> FileError:
        before = data[:place].decode(self._encoding, "ignore")
        line = self._lines + before.count("\n") + 1
        found = f"line {line} has the byte 0x{data[place]:02X}"
        if self._is_named:
            return FileError(
                f"{self._name}: expected {self._encoding}, {found}; save the file as UTF-8."
            )
        if self._encoding in ("utf-8", _ASSUMED):
            return FileError(
                f"{self._name}: expected UTF-8 or cp1252, {found}, and the file is neither "
                f"throughout; save the file as UTF-8.",
                argument="encoding",
                remedies=[Remedy("encoding", "cp1252", "if that is its encoding")],
            )
        return FileError(
            f"{self._name}: expected {self._encoding}, as its first bytes say, {found}; "
            f"save the file as UTF-8."
        )
