"""Finished tasks on disk, one small file each, and the processes that finish the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rldp._types import StepProgress
from rldp.errors import FileError, MissingExtraError, ParameterError
from rldp.io.json_files import read_document, write_document
from rldp.reproduction.task import Outcome, Task, joined, outcome

LOKY, DASK, SPARK = "loky", "dask", "spark"
BACKENDS = (LOKY, DASK, SPARK)


_AT_ONCE = 64  # tasks sent to a cluster before their outcomes are stored


class Store:
    """A folder of outcomes under names that tell everything that determines them.

    What was finished before an interruption is never computed again; what was computed by other
    code or with other versions is never taken.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder, which is made if need be."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"Cannot make the folder {folder}: {error.strerror}.") from None

    def __contains__(self, part: Task) -> bool:
        """Whether this part was finished."""
        return self._path(part).exists()

    def put(self, part: Task, found: Outcome) -> None:
        """Keep the outcome of a part, whole or not at all."""
        write_document(self._path(part), {"task": repr(part), **found.document()})

    def outcome(self, task: Task) -> Outcome:
        """The outcome of a task all of whose parts are finished."""
        parts = [Outcome.from_document(read_document(self._path(part))) for part in task.parts]
        return joined(task, parts)

    def _path(self, part: Task) -> Path:
        return self.folder / f"{part.key}.json"


@dataclass(frozen=True)
class Backend:
    """Where tasks are computed.

    Args:
        name: "loky" for processes of this machine; "dask" for the cluster of the current
            `dask.distributed.Client`; "spark" for that of the current Spark session.
        jobs: processes of this machine, by default one for each core.
    """

    name: str = LOKY
    jobs: int | None = None

    def __post_init__(self) -> None:
        """Refuse a backend that nobody knows."""
        if self.name not in BACKENDS:
            raise ParameterError(
                f"Expected a backend among {', '.join(BACKENDS)}, got {self.name!r}.",
                argument="backend",
            )

    @property
    def processes(self) -> int:
        """How many processes of this machine."""
        return self.jobs or os.cpu_count() or 1


HERE = Backend()


def finish(
    tasks: Iterable[Task],
    store: Store,
    backend: Backend = HERE,
    *,
    progress: StepProgress | None = None,
) -> int:
    """Do all parts of the tasks that are not in the store yet, and count them.

    Args:
        tasks: what shall be in the store.
        store: where outcomes go as soon as they are there.
        backend: where they are computed.
        progress: told how many parts are done, of how many.
    """
    wanted = dict.fromkeys(part for task in tasks for part in task.parts)
    missing = sorted((part for part in wanted if part not in store), key=_weight, reverse=True)
    done = len(wanted) - len(missing)
    if progress is not None:
        progress(done, len(wanted))
    for part, found in _outcomes(missing, backend):
        store.put(part, found)
        done += 1
        if progress is not None:
            progress(done, len(wanted))
    return len(missing)


def _weight(part: Task) -> float:
    """About how many seconds a part takes: long ones go first, so that none is late at the end."""
    cells = part.source.n_s * part.source.n_u
    designs = len(part.seeds) * len(part.epsilons)
    if part.protocol == "optimal":
        return designs * (1.0 + 1e-2 * cells**2)
    if part.protocol in ("polyopt", "ceiling"):
        return designs * min(20.0, 1e-4 * cells**3)
    if part.bounds == "exact":
        return designs * 0.5
    return designs * cells * (6e-5 if part.protocol == "ue-cr" else 1e-5)


def _outcomes(parts: Sequence[Task], backend: Backend) -> Iterator[tuple[Task, Outcome]]:
    if backend.processes == 1 and backend.name == LOKY:
        yield from map(_named_outcome, parts)
        return
    try:
        from joblib import Parallel, delayed, parallel_config
    except ImportError:
        raise MissingExtraError("joblib is needed: pip install 'rldp[figures]'.") from None
    calls = [delayed(_named_outcome)(part) for part in parts]
    if backend.name == LOKY:
        _hush_tracker()
        run = Parallel(n_jobs=backend.processes, return_as="generator_unordered", batch_size=1)
        yield from run(calls)
        return
    with _named_backend(backend.name, parallel_config):
        for i in range(0, len(calls), _AT_ONCE):
            yield from Parallel(n_jobs=-1)(calls[i : i + _AT_ONCE])


def _hush_tracker() -> None:
    """Keep loky's tracker from warning of the semaphores that it removes after an interrupt.

    It is a process of its own, so only the environment reaches it.
    """
    hushed = "ignore::UserWarning:joblib.externals.loky.backend.resource_tracker"
    given = os.environ.get("PYTHONWARNINGS", "")
    if hushed not in given:
        os.environ["PYTHONWARNINGS"] = f"{given},{hushed}" if given else hushed


def _named_outcome(part: Task) -> tuple[Task, Outcome]:
    return part, outcome(part)


def _named_backend(backend: str, config: Callable[..., Any]) -> Any:
    """The cluster that joblib knows under this name, or what to do to have one."""
    try:
        if backend == SPARK:
            from joblibspark import register_spark

            register_spark()
        return config(backend=backend)
    except ImportError as error:
        package = "joblibspark" if backend == SPARK else "'rldp[dask]'"
        raise MissingExtraError(f"{error.name} is needed: pip install {package}.") from None
    except ValueError as error:
        raise ParameterError(f"Expected a cluster for {backend}: {error}") from None
