"""What the tests of the tape share."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from dynid.dynamics.regressor import torque_regressor
from dynid.robot.zoo import puma560


@pytest.fixture(scope="session")
def puma() -> SimpleNamespace:
    """The PUMA's (6, 60) regressor as a realistic workload, in plain NumPy for numbers of any kind."""
    return SimpleNamespace(regressor=partial(torque_regressor, puma560().with_terms().with_couplings()))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache of its own."""
    monkeypatch.setenv("DYNID_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
