"""Attacks of ``make campaign`` on run folders, a few of each; `test_transaction` has the deaths at every step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "count"), [("pairs", 2), ("full", 3), ("mixed", 10)])
def test_nothing_gets_through(name: str, count: int) -> None:
    """In a process of its own: it makes copies of itself, which threads of other tests (JAX) would not survive."""
    words = ["-m", "tests.campaigns.run_attacks", name, "--count", str(count), "--seed", "1"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
