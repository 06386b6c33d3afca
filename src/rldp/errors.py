"""What can go wrong, as a tree.

    RldpError
    ├── DataError (ValueError)         a table, frame or record that cannot be used as it is
    ├── ParameterError (ValueError)    an argument outside its range
    ├── CertificateError (ValueError)  a privacy claim that is not proved
    ├── FileError (OSError)            a file that cannot be read or written
    ├── TooLargeError (MemoryError)    an object that would not fit into any memory
    └── MissingExtraError (ImportError)  an optional package that is not installed

Every message is one line that says what was expected, what came, and what to do.
"""

from __future__ import annotations


class RldpError(Exception):
    """Base of all errors that this package raises on purpose."""


class DataError(RldpError, ValueError):
    """A table, frame or record cannot be used as it is; the message names the place at fault."""


class ParameterError(RldpError, ValueError):
    """An argument lies outside its range."""


class CertificateError(RldpError, ValueError):
    """A privacy claim is not proved by what should prove it."""


class FileError(RldpError, OSError):
    """A file cannot be read or written."""


class TooLargeError(RldpError, MemoryError):
    """An object would be too large to build."""


class MissingExtraError(RldpError, ImportError):
    """An optional package is needed that is not installed."""
