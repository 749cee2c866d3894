"""Planted truth: random loads, sensors, biases and drifts; do 95 % intervals hold the truth 95 times in 100?

Run: ``python tests/campaigns/load_coverage.py [loads]`` (about a minute for 1000).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynid
from dynid.kernels import wrench_regressor
from dynid.load.load import Load
from dynid.load.wrist import Sensing, identify_load
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia

Floats = NDArray[np.float64]
ROBOT = dynid.robots.puma560()
LINK = ROBOT.bodies[-1].joint.child


def random_load(rng: np.random.Generator) -> Inertia:
    """A cloud of point masses: every such body is possible."""
    points = rng.normal(size=(8, 3)) * rng.uniform(0.03, 0.12, 3) + rng.uniform(-0.1, 0.1, 3)
    mass = rng.uniform(0.3, 5.0)
    bodies = [Inertia.from_com(mass / 8, point, np.zeros((3, 3))) for point in points]
    return sum(bodies, Inertia.zero())


def wrench_run(load: Inertia, rng: np.random.Generator, noise: Floats, bias: Floats, drift: Floats) -> Experiment:
    """Four seconds of random motion at 100 Hz, motion known exactly, wrench noisy and biased."""
    time = np.arange(400) / 100.0
    q, dq, ddq = sum_of_sines(ROBOT.dof, period_s=4.0, amplitude=1.5, seed=int(rng.integers(1 << 30)))(time)
    wrench = wrench_regressor(ROBOT, LINK, q, dq, ddq) @ load.vector + bias + drift * time[:, None]
    return Experiment(
        time=time,
        q=q,
        dq=dq,
        ddq=ddq,
        effort=np.zeros_like(q),
        valid=np.ones(q.shape, dtype=bool),
        segment=np.zeros(len(time), dtype=np.int64),
        rate_hz=100.0,
        wrench=wrench + rng.normal(size=wrench.shape) * noise,
    )


@dataclass(frozen=True)
class Trial:
    """Which intervals held the truth."""

    parameters: NDArray[np.bool_]
    com: NDArray[np.bool_]
    moments: NDArray[np.bool_]
    mass_z: float


def trial(seed: int) -> Trial:
    """One random load on one random sensor, drifting; every third sensor is turned as well."""
    rng = np.random.default_rng(seed)
    truth = random_load(rng)
    noise = np.repeat([0.2, 0.01], 3) * rng.uniform(0.3, 3.0, 6)
    bias, drift = rng.normal(size=6) * np.repeat([5.0, 0.3], 3), rng.normal(size=6) * np.repeat([0.3, 0.02], 3)
    run = wrench_run(truth, rng, noise, bias, drift)
    turned = seed % 3 == 0
    if turned:
        R = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
        clean = wrench_regressor(ROBOT, LINK, run.q, run.dq, run.ddq) @ truth.vector @ np.kron(np.eye(2), R)
        measured = clean + bias + drift * run.time[:, None] + rng.normal(size=clean.shape) * noise
        run = dynid.Experiment(**{**_fields(run), "wrench": measured})
    sensing = Sensing(drift=True, find_orientation=turned)
    load = identify_load(ROBOT, run, sensor_frame=LINK, sensing=sensing, physical=False)
    return judged(load, truth)


def _fields(run: Experiment) -> dict[str, object]:
    names = ("time", "q", "dq", "ddq", "effort", "valid", "segment", "rate_hz")
    return {name: getattr(run, name) for name in names}


def judged(load: Load, truth: Inertia) -> Trial:
    """Compare an estimate with the truth."""
    moments = np.linalg.eigvalsh(truth.about_com)
    return Trial(
        parameters=np.abs(load.vector - truth.vector) < 1.96 * load.stderr,
        com=np.abs(load.com - truth.com) < 1.96 * load.com_stderr,
        moments=np.abs(load.principal_moments - moments) < 1.96 * load.principal_moments_stderr,
        mass_z=(load.mass - truth.mass) / load.mass_stderr,
    )


def main(loads: int = 1000) -> None:
    """Print the share of intervals that hold the truth."""
    trials = [trial(seed) for seed in range(loads)]
    parameters = np.mean([t.parameters for t in trials], axis=0)
    print("ten parameters", np.round(100 * parameters, 1), "mean", round(100 * parameters.mean(), 2))
    print("centre of mass", np.round(100 * np.mean([t.com for t in trials], axis=0), 1))
    print("principal moments", np.round(100 * np.mean([t.moments for t in trials], axis=0), 1))
    print("mass error over its deviation: mean", round(float(np.mean([t.mass_z for t in trials])), 3))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
