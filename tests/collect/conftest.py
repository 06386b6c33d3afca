"""Stores of both kinds, and protocols to collect for."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="the collect extra is not installed")
pytest.importorskip("httptools", reason="the collect extra is not installed")

import rldp
from tests.support.collecting import unique_protocol


@pytest.fixture(scope="session")
def cluster():
    pytest.importorskip("psycopg", reason="the postgres extra is not installed")
    from tests.support import postgres

    reason = postgres.missing()
    if reason is not None:
        pytest.skip(f"NO POSTGRESQL ON THIS MACHINE ({reason}): its store is NOT tested")
    with postgres.Cluster(postgres.quick_folder()) as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """The address of a store that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "survey.sqlite")
    return request.getfixturevalue("cluster").new_database()


@pytest.fixture(scope="session")
def unique(tmp_path_factory):
    """A public file in which every number up to 2^25 is a report."""
    path = tmp_path_factory.mktemp("unique") / "unique.public.json"
    unique_protocol(path)
    return path


@pytest.fixture(scope="session")
def race(tmp_path_factory):
    """A small public file: race and sex."""
    labels = {"race": ["White", "Black", "Other"]}, {"sex": ["Female", "Male"]}
    table = rldp.Table([[30, 25], [12, 14], [9, 10]], sensitive=labels[0], useful=labels[1])
    path = tmp_path_factory.mktemp("race") / "race.public.rldp.json"
    rldp.design(rldp.ChiSquareSet(table), 1.0, "grr-cr").public().save(path)
    return path
