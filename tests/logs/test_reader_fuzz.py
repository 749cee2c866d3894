"""Broken copies of the planted log per format: no crash, no hang, no blow-up, only our errors."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from campaigns.fuzz_readers import fuzz_in_child, mutate
from campaigns.log_writers import CASES

MUTANTS = int(os.environ.get("DYNID_TEST_MUTANTS", "100"))
FEWER = {"rosbag2_folder": 50}
"""Format -> most mutants. Those of a folder are its metadata, and all files are read."""


@pytest.mark.parametrize("target", CASES)
def test_broken_files_only_raise_our_errors(target: str) -> None:
    needs = CASES[target].needs
    if needs:
        pytest.importorskip(needs)
    count = min(MUTANTS, FEWER.get(target, MUTANTS))
    tally = fuzz_in_child(target, count, seed=1, timeout_s=600)
    assert tally.findings == []
    assert tally.mutants == count
    assert tally.refused > 0


def test_mutants_differ_from_the_original_and_repeat_with_the_seed() -> None:
    data = bytes(range(256)) * 4
    mutants = [mutate(random.Random(seed), data) for seed in range(50)]
    assert mutants == [mutate(random.Random(seed), data) for seed in range(50)]
    assert sum(mutant != data for mutant in mutants) > 45


def test_small_files_that_ask_for_gigabytes_are_refused() -> None:
    for library in ("h5py", "mcap", "zstandard"):
        pytest.importorskip(library)
    command = [sys.executable, "-m", "tests.campaigns.bombs", "--quick"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert all("refused" in line for name, line in lines.items() if name != "quoted_decimals"), done.stdout
    assert "read, 1400000 numbers" in lines["quoted_decimals"]  # genuine, and in bounded memory
