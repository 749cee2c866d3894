"""All five papers with reduced effort, once for all tests and for all processes that run them."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import pytest

from dynid.studies.papers import Reproduction, Row, reproduce

Steps = list[tuple[int, int, str]]
IS_SHARED = "PYTEST_XDIST_WORKER" in os.environ and sys.platform != "win32"
"""Whether several processes run the tests and can wait for one another."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this run alone; where several processes run the tests, they share it."""
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if IS_SHARED else own) / "papers"
    shared.mkdir(exist_ok=True)
    return shared


@pytest.fixture(scope="session")
def made(folder: Path) -> tuple[Reproduction, Steps]:
    """What the first process that needs it makes, and the steps that it told."""
    if not IS_SHARED:
        return make(folder)
    import fcntl

    kept = folder.with_name("papers.pickle")
    with folder.with_name("papers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make(folder)))
        return pickle.loads(kept.read_bytes())


def make(folder: Path) -> tuple[Reproduction, Steps]:
    steps: Steps = []
    return reproduce("all", folder, lambda *step: steps.append(step), quick=True), steps


@pytest.fixture(scope="session")
def steps(made: tuple[Reproduction, Steps]) -> Steps:
    return made[1]


@pytest.fixture(scope="session")
def everything(made: tuple[Reproduction, Steps]) -> Reproduction:
    return made[0]


@pytest.fixture(scope="session")
def rows(everything: Reproduction) -> dict[tuple[str, str], Row]:
    """By paper and by what they compare."""
    return {(part.title.split(":")[0], row.what): row for part in everything.parts for row in part.rows}
