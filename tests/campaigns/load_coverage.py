"""Planted truth: do 95 % intervals of loads hold it 95 times in 100, from raw, noisy logs?

Run: ``PYTHONPATH=tests python tests/campaigns/load_coverage.py [loads] [first seed]`` (a minute).
Ends with status 1 where less than 93 or more than 97 % are held.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

import dynid
from dynid.array_types import Bools
from dynid.compiled import wrench_regressor
from dynid.logs.recording import Recording
from dynid.payload.wrist import identify_load
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia

ROBOT = dynid.robots.puma560()
LINK = ROBOT.bodies[-1].joint.child
NOISES = (2e-5, 1e-4, 5e-4)
"""Standard deviations of the positions [rad]."""
RATE_HZ, DURATION_S = 200.0, 12.0
WRENCH_NOISE = np.repeat([0.1, 0.005], 3)
"""Standard deviations of the channels [N, N m]."""


def random_load(rng: np.random.Generator) -> Inertia:
    """A cloud of point masses: every such body is possible."""
    points = rng.normal(size=(8, 3)) * rng.uniform(0.03, 0.12, 3) + rng.uniform(-0.1, 0.1, 3)
    mass = rng.uniform(0.3, 5.0)
    bodies = [Inertia.from_com(mass / 8, point, np.zeros((3, 3))) for point in points]
    return sum(bodies, Inertia.zero())


@dataclass(frozen=True)
class Trial:
    """One load."""

    covered: Bools
    """(10,) which intervals hold the truth"""
    mass_error: float
    """Relative."""
    mass_z: float
    """Error of the mass over its standard deviation."""


def trial(seed: int, noise: float) -> Trial:
    """A random load on a sensor with a bias, from a log of noisy positions [rad] and wrenches."""
    rng = np.random.default_rng(seed)
    truth = random_load(rng)
    time = np.arange(int(RATE_HZ * DURATION_S)) / RATE_HZ
    motion = sum_of_sines(ROBOT.dof, period_s=DURATION_S, amplitude=1.2, seed=int(rng.integers(1 << 30)))(time)
    wrench = wrench_regressor(ROBOT, LINK, *motion) @ truth.vector + rng.normal(size=6) * np.repeat([5.0, 0.3], 3)
    log = Recording(
        time=time,
        q=motion[0] + noise * rng.normal(size=motion[0].shape),
        wrench=wrench + rng.normal(size=wrench.shape) * WRENCH_NOISE,
        joint_names=ROBOT.joint_names,
    )
    load = identify_load(ROBOT, process(log), sensor_frame=LINK, physical=False)
    return Trial(
        covered=np.asarray(np.abs(load.vector - truth.vector) < 1.96 * load.stderr),
        mass_error=load.mass / truth.mass - 1.0,
        mass_z=(load.mass - truth.mass) / load.mass_stderr,
    )


def main(loads: int = 200, first: int = 0) -> int:
    """Print the share of intervals that hold the truth at each noise; 1 where one is not within 93 to 97 %."""
    good = True
    for noise in NOISES:
        trials = [trial(seed, noise) for seed in range(first, first + loads)]
        each = np.mean([one.covered for one in trials], axis=0)
        error, z = (np.array([getattr(one, name) for one in trials]) for name in ("mass_error", "mass_z"))
        print(
            f"position noise {noise:g} rad: {100 * each.mean():.1f} % of the intervals hold the truth "
            f"(single parameters {100 * each.min():.1f} to {100 * each.max():.1f}); "
            f"mass {100 * error.mean():+.4f} % on average, {z.mean():+.2f} standard deviations"
        )
        good &= bool(0.93 <= each.mean() <= 0.97)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:])))
