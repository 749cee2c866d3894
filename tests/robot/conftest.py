"""What the tests of robots share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def mujoco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log into the working directory
    return pytest.importorskip("mujoco")
