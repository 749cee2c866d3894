"""A few of every attack of ``make attack``, each in a process of its own: it may crash, and some make copies of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.broken_logs import CASES
from tests.attacks.own_files import KINDS

ROOT = Path(__file__).parents[1]
SCALES = {"file": 0.015, "log": 0.015, "names": 0.03, "bombs": 0.82, "kills": 0.02, "pairs": 0.1, "full": 0.1,
          "mixed": 0.1, "records": 0.05}  # fmt: skip
"""Attack -> share of its full count."""
NAMES = [*(f"file: {kind}" for kind in KINDS), *(f"log: {kind}" for kind in CASES), "names", "bombs"]
NAMES += [f"folder: {name}" for name in ("kills", "pairs", "full", "mixed", "records")]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_gets_through(name: str) -> None:
    kind, _, one = name.partition(": ")
    if kind == "log" and CASES[one].needs:
        pytest.importorskip(CASES[one].needs)
    seed = os.environ.get("DYNID_TEST_SEED", "1")
    words = ["--here", "--seed", seed, "--scale", str(SCALES.get(one, SCALES.get(kind, 1.0))), name]
    done = subprocess.run([sys.executable, "-m", "tests.attacks", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == []
