"""Names for the kinds of arrays and of progress callbacks that the whole package shares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]  # positions in another array
Codes = NDArray[np.intp]  # integers that stand for labels: s, u or a report
Integers = NDArray[np.int64]  # counts, and probabilities in integer units
Words = NDArray[np.uint64]  # random bits

StepProgress = Callable[[int, int], object]  # steps done, of how many
RecordProgress = Callable[[int, float | None], object]  # records done, and the share if known
SearchProgress = Callable[[float, float], object]  # nats kept so far, and their upper bound
