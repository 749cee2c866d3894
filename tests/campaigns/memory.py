"""Resident memory while a stream of synthetic samples is reduced.

Run as ``python tests/campaigns/memory.py --samples 1e8``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dynid.information import reduce_stream
from dynid.information.methods import Method
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

PIECE = 100_000
LIMIT_MB = 50.0


def resident_mb() -> float:
    """Resident memory of this process now [MB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def stream(samples: int, notes: list[float]) -> Iterator[tuple[np.ndarray, ...]]:
    """Pieces of a log, made from one by scaling; notes the resident memory before each."""
    states = np.random.default_rng(0).normal(size=(4, PIECE, 6))
    for start in range(0, samples, PIECE):
        notes.append(resident_mb())
        yield tuple(states[:, : samples - start])


def campaign(samples: int, method: Method) -> float:
    """Reduce; returns how much the resident memory grew beyond where it stood before [MB]."""
    robot = zoo.puma560().with_terms(Viscous(), Coulomb(), Offset())
    reduce_stream(robot, stream(1000, []), method=method)  # compile first
    notes: list[float] = []
    before, start = resident_mb(), time.process_time()
    information = reduce_stream(robot, stream(samples, notes), method=method)
    spent = time.process_time() - start
    assert information.samples.tolist() == [[samples] * 6]
    inputs = 4 * PIECE * 6 * 8 / 1e6
    growth = max(notes) - before - inputs
    sys.stdout.write(
        f"{method}: {samples:.0e} samples, {spent / samples * 1e9:.0f} ns each, {growth:.1f} MB beyond the inputs at"
        f" most, {notes[-1] - notes[min(10, len(notes) - 1)]:+.1f} MB from the tenth piece to the last\n"
    )
    return growth


def main() -> None:
    """Run the campaign, and fail where memory grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=1e8)
    parser.add_argument("--method", default="preconditioned", choices=["preconditioned", "gram", "qr"])
    options = parser.parse_args()
    growth = campaign(int(options.samples), options.method)
    if growth > LIMIT_MB:
        sys.exit(f"more than {LIMIT_MB} MB")


if __name__ == "__main__":
    main()
