"""What the tests of the tape share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def puma() -> ModuleType:
    """The realistic workload."""
    specification = importlib.util.spec_from_file_location("tape_puma", Path(__file__).with_name("puma.py"))
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache of its own."""
    monkeypatch.setenv("DYNID_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
