"""Ten million steps of the load tracker in C: the estimate stays, the memory is one struct.

Run: python tests/campaigns/tracker_steps.py [steps]; `make tracker-steps`. A UR10 holds 1 kg and repeats a motion of
60 s with noise of 0.3 N m at 100 Hz; load and friction forget with memories of 60 and 600 s, so that the estimate after
many rounds must be that after the first ones. Needs a C compiler.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import dynid
from dynid.export.running.tracker_code import run_tracker
from dynid.processing.simulation import sum_of_sines

RATE, NOISE = 100.0, 0.3
MEMORIES_S = (60.0, 600.0)
FLAGS = ("-std=c99", "-O3")
ONE = dynid.Inertia.from_com(1.0, [0.02, -0.03, 0.06], 1e-3 * np.eye(3))


def main() -> None:
    """Compare the estimate after all steps with that after a thousandth of them, and with the truth."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    arm = dynid.robots.ur10().with_terms(dynid.Viscous(2.0), dynid.Coulomb(3.0))
    holding = arm.with_body("load", parent=arm.bodies[-1].joint.child, inertia=ONE)
    motion = sum_of_sines(6, period_s=6.0, amplitude=0.6, seed=3)(np.arange(6000) / RATE)
    noise = NOISE * np.random.default_rng(0).normal(size=motion[0].shape)
    samples = np.hstack([*motion, dynid.inverse_dynamics(holding, *motion) + noise])
    rounds = -(-steps // len(samples))
    std = np.full(6, NOISE)
    early, *_ = run_tracker(arm, samples, std, RATE, memories_s=MEMORIES_S, rounds=max(1, rounds // 10), flags=FLAGS)
    start = time.perf_counter()
    late, variances, jumps = run_tracker(arm, samples, std, RATE, memories_s=MEMORIES_S, rounds=rounds, flags=FLAGS)
    spent = time.perf_counter() - start
    change = float(np.abs(late - early).max())
    error, sigma = abs(late[9] - 1.0), float(np.sqrt(variances[9]))
    good = bool(
        change < 1e-6 and error < 3.0 * sigma and np.isfinite(variances).all() and len(jumps) <= 1
    )  # the load is there from the start
    count = rounds * len(samples)
    print(
        f"{'ok  ' if good else 'MISS'} {count} steps in {spent:.0f} s, compiling included: mass {late[9]:.4f} kg, "
        f"standard deviation {sigma:.4f} kg; largest change since a tenth of the steps {change:.1e}; "
        f"{len(jumps)} jumps"
    )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
