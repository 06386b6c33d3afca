"""CSV text in blocks of whole records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol


class Bytes(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes, fewer only at the end of the stream."""


class LongRecordError(Exception):
    """A record has more bytes than a block may have; probably a quote is never closed."""


def record_blocks(
    stream: Bytes, delimiter: str, size: int, longest: int | None = None
) -> Iterator[bytes]:
    r"""The rest of a stream, in blocks of about `size` bytes that end with a record.

    A record of more than `longest` bytes, by default `size`, may raise `LongRecordError`.

    >>> from io import BytesIO
    >>> list(record_blocks(BytesIO(b'a,"1\n2"\nb,3\nc,4'), ",", 10))
    [b'a,"1\n2"\n', b'b,3\n', b'c,4']
    """
    pattern = _whole_records(delimiter)
    longest = size if longest is None else longest
    rest = b""
    while block := stream.read(size):
        rest = rest + block if rest else block
        end = _end(rest, pattern)
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > longest:
            raise LongRecordError
    if rest:
        yield rest


def _end(text: bytes, whole_records: re.Pattern[bytes]) -> int:
    """The number of bytes up to the end of the last whole record."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    found = whole_records.match(text)
    return 0 if found is None else found.end()


def _whole_records(delimiter: str) -> re.Pattern[bytes]:
    """A pattern of whole records; a quote counts as one only at the beginning of a field."""
    mark = re.escape(delimiter.encode())
    quoted = rb'"[^"]*+(?:""[^"]*+)*+"'
    field = rb'(?:%b|(?!"))[^%b\r\n]*+' % (quoted, mark)
    record = rb"%b(?:[%b\r]%b)*+\n" % (field, mark, field)
    return re.compile(rb"(?:%b)*+" % record)
