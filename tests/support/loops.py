"""The compiled loops, and the same work without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rldp.compiled import loops
from rldp.release import alias_table
from rldp.tables import csv, tally

needs_loops = pytest.mark.skipif(loops is None, reason="rldp was built without a compiler")


def without_loops(work: Callable[[], Any]) -> Any:
    """What the work gives where no compiler was found."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (alias_table, csv, tally):
            patch.setattr(module, "loops", None)
        return work()
