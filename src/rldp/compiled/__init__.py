"""Three loops in C, wherever they could be compiled.

- `count`: indices of dictionaries to counts of cells, for `tables.tally`.
- `draw`: codes and random words to reports, for `release.alias_table`.
- `scan`: records of CSV text to the numbers of their labels, for `tables.csv`.

`loops` is the module that has them, or None. Without them NumPy counts the same records and
draws the same reports, and Arrow reads the same text, only more slowly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

try:
    from rldp.compiled import _loops
except ImportError:  # rldp was installed without a compiler
    loops: ModuleType | None = None
else:
    loops = _loops

__all__ = ["loops"]
