"""One Hypothesis profile for all tests, searches that end by work, and a studio to test.

So the examples are the same on every run, and so are the cases that are run of tests with hundreds
of them, and where a search stops.
"""

from __future__ import annotations

import signal
import zlib
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings

from rldp.designing.problem import EFFORTS, Effort
from tests.support.effort import IS_WHOLE
from tests.support.work import clock, searching_modules

settings.register_profile(
    "laws",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],  # a slow machine is no failure
)
settings.load_profile("laws")


def pytest_addoption(parser):
    text = "run every case of tests that are marked `sampled`; RLDP_WHOLE_TESTS=1 does so too"
    parser.addoption("--whole", action="store_true", default=IS_WHOLE, help=text)


def pytest_collection_modifyitems(config, items):
    """Of the cases of a test that is marked `sampled(n)`, about one in n, the same on every run.

    Which ones follows from their names alone, so that a new case changes nothing for the others.
    A case that is asked for by its name always runs.
    """
    if config.getoption("whole") or any("[" in argument for argument in config.args):
        return
    of_test = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            of_test[item.nodeid.partition("[")[0]].append(item)
    left_out = set()
    for cases in of_test.values():
        n = cases[0].get_closest_marker("sampled").args[0]
        numbers = [zlib.crc32(item.name.encode()) for item in cases]
        kept = [number % n == 0 or number == min(numbers) for number in numbers]
        left_out.update(item for item, is_kept in zip(cases, kept, strict=True) if not is_kept)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell starts background jobs like this; the tests send Ctrl-C to themselves and to children
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _searches_end_by_work():
    """A time limit of one second is 128 steps of a search, however crowded the machine."""
    with pytest.MonkeyPatch.context() as patch:
        for module in searching_modules():
            if hasattr(module, "time"):
                patch.setattr(module, "time", clock)
        yield


@pytest.fixture
def little_work(monkeypatch):
    """Searches take one or two steps, for laws that hold wherever a search ends."""
    little = Effort(
        patience=1,
        rounds=1,
        boxes=50,
        protocols=2,
        divisions=0,
        work=1.0,
        rounds_work=0.3,
    )
    for name in ("quick", "normal"):
        monkeypatch.setitem(EFFORTS, name, little)


@pytest.fixture
def unbounded(monkeypatch):
    """Searches for the least error leave out its bound, for tests that do not look at it."""
    for name, effort in EFFORTS.items():
        monkeypatch.setitem(EFFORTS, name, replace(effort, is_bounded=False))


@pytest.fixture(scope="session")
def fork_server():
    """The command of a worker of the studio that is forked."""
    from tests.support.forked_workers import fork_server

    with fork_server() as command:
        yield command


@pytest.fixture(scope="module")
def forked_workers(fork_server):
    """The studio's workers need not load the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rldp.studio.workers._COMMAND", fork_server)
        yield


@pytest.fixture(scope="module")
def workers(forked_workers):  # noqa: ARG001  # they fork
    """Processes that all tests of a file share: the next one is ready before it is needed."""
    from rldp.studio.workers import Workers

    workers = Workers()
    yield workers
    workers.close()


@pytest.fixture
def session(workers):
    from rldp.studio.jobs import Jobs
    from rldp.studio.limits import Limits
    from rldp.studio.session import Session

    return Session(Limits(upload=1 << 20, unpacked=1 << 20), Jobs(workers))


@pytest.fixture
def client(session):
    from starlette.testclient import TestClient

    from rldp.studio.application import application
    from tests.support.studio_client import HOME, PORT, TOKEN

    with TestClient(application(session, PORT, TOKEN), base_url=HOME) as client:
        client.headers.update({"sec-fetch-site": "same-origin"})
        yield client
