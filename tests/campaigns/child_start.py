"""Time to read a small log in this process and in the guarded child: what the guard costs.

Run from the root of the repository: ``python -m tests.campaigns.child_start``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dynid.logs.readers.base import Options
from dynid.logs.readers.dispatch import read_table
from dynid.logs.readers.log_formats import read_in_process

REPEATS = 20


def main() -> int:
    """Print the median times [ms]."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.npz"
        np.savez(path, q=np.random.default_rng(0).normal(size=(1000, 7)))
        ways = {"in this process": lambda: read_in_process("npz", path, Options()), "guarded": lambda: read_table(path)}
        for name, read in ways.items():
            times = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                read()
                times.append(time.perf_counter() - start)
            sys.stdout.write(f"{name:16s} {1e3 * np.median(times):6.1f} ms, least {1e3 * min(times):6.1f} ms\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
