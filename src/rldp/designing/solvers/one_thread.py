"""Linear algebra on one thread: several would sum in another order and round differently.

A search that ends by work must not depend on how many cores there are. Its matrices are small, so
that several threads would mostly wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import scipy.linalg  # noqa: F401  # its BLAS must be there before it is controlled
from threadpoolctl import ThreadpoolController

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def on_one_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The same function, during which BLAS uses one thread."""

    @wraps(function)
    def alone(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **options)

    return alone


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
