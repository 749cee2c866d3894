"""Parsing of a CSV log against pandas: the same file, processor time and wall time, best of several rounds.

Run ``python tests/campaigns/csv_speed.py [rows]``; needs pandas.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from dynid.logs.readers import read_table

COLUMNS = 24
ROUNDS = 7


def best(function: Callable[[], object]) -> tuple[float, float]:
    """Least processor and wall time of several rounds [s]."""
    rounds = []
    for _ in range(ROUNDS):
        before = time.process_time(), time.perf_counter()
        function()
        rounds.append((time.process_time() - before[0], time.perf_counter() - before[1]))
    spent, wall = zip(*rounds, strict=True)
    return min(spent), min(wall)


def main(rows: int) -> int:
    """Print the times; the exit code says whether ours is the lesser processor time."""
    values = np.random.default_rng(0).normal(size=(rows, COLUMNS)) * 10.0 ** np.arange(-12, 12)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        header = ",".join(f"c{k}" for k in range(COLUMNS))
        np.savetxt(path, values, delimiter=",", header=header, comments="", fmt="%.9g")
        table = read_table(path)
        np.testing.assert_allclose(table.columns["c3"], pd.read_csv(path)["c3"], rtol=1e-15)
        ours, theirs = best(lambda: read_table(path)), best(lambda: pd.read_csv(path))
    for name, (spent, wall) in (("dynid", ours), ("pandas", theirs)):
        print(f"{name:7s} {rows} x {COLUMNS}: {spent:.3f} s of processor, {wall:.3f} s wall")
    print(f"pandas / dynid: {theirs[0] / ours[0]:.2f} of processor, {theirs[1] / ours[1]:.2f} wall")
    return int(ours[0] > theirs[0])


if __name__ == "__main__":
    raise SystemExit(main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000))
