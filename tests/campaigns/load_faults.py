"""Random loads behind random sensors, one fault each: how often is it found, and how often is a good sensor suspected?

Run: ``PYTHONPATH=tests python tests/campaigns/load_faults.py [loads per fault]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from campaigns.load_coverage import LINK, ROBOT, random_load, wrench_run
from dynid.load.sensor_checks import check_wrench
from dynid.load.wrench_equations import acceleration_columns, frame_axes
from dynid.load.wrist import Sensing, identify_load
from dynid.processing.experiment import Experiment
from dynid.robot.inertia import Inertia
from dynid.tables import Table

Floats = NDArray[np.float64]
Fault = Callable[[Floats, Floats, np.random.Generator, Inertia], Floats]
"""(wrench (N, 6), R_frame_base (N, 3, 3), random numbers, load) -> what is recorded (N, 6)."""


def halves(wrench: Floats, turn: Floats) -> Floats:
    """Force and moment turned alike."""
    return np.concatenate([(turn @ part[..., None])[..., 0] for part in (wrench[:, :3], wrench[:, 3:])], axis=1)


def _turned(wrench: Floats, axes: Floats, rng: np.random.Generator, load: Inertia) -> Floats:
    angle, axis = rng.uniform(0.2, 3.0), rng.normal(size=3)
    return halves(wrench, Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix())


def _tilted(wrench: Floats, axes: Floats, rng: np.random.Generator, load: Inertia) -> Floats:
    direction = rng.normal(size=3) * [1.0, 1.0, 0.0]
    tilt = Rotation.from_rotvec(rng.uniform(0.08, 0.4) * direction / np.linalg.norm(direction))
    change = -(axes @ (tilt.as_matrix() @ ROBOT.gravity - ROBOT.gravity))
    return np.asarray(wrench + acceleration_columns(change) @ load.vector)


def _late(wrench: Floats, axes: Floats, rng: np.random.Generator, load: Inertia) -> Floats:
    """By one to five samples: the ends of the log hold their values."""
    stamps = np.arange(len(wrench), dtype=float)
    return np.asarray(CubicSpline(stamps, wrench)(np.clip(stamps - rng.uniform(1.0, 5.0), 0.0, None)))


FAULTS: dict[str, tuple[Fault, tuple[str, ...]]] = {
    "none": (lambda w, axes, rng, load: w, ()),
    "turned sensor": (_turned, ("sensor-turned", "sensor-and-gravity")),
    "base axes": (lambda w, axes, rng, load: halves(w, np.swapaxes(axes, 1, 2)), ("wrench-axes",)),
    "tilted base": (_tilted, ("gravity-direction", "sensor-and-gravity")),
    "N mm": (lambda w, axes, rng, load: w * np.repeat([1.0, 1000.0], 3), ("moment-unit",)),
    "late": (_late, ("wrench-delay",)),
    "reaction": (lambda w, axes, rng, load: -w, ("wrench-sign",)),
}


def trial(fault: str, seed: int) -> tuple[bool, bool]:
    """Whether the proposal is right, and whether the load found with it is right."""
    rng = np.random.default_rng(seed)
    truth = random_load(rng)
    noise = np.repeat([0.2, 0.01], 3) * rng.uniform(0.3, 3.0, 6)
    run = wrench_run(truth, rng, noise, rng.normal(size=6) * np.repeat([2.0, 0.1], 3), np.zeros(6))
    assert run.wrench is not None
    spoil, codes = FAULTS[fault]
    names = ("time", "q", "dq", "ddq", "effort", "valid", "segment", "rate_hz")
    wrong = Experiment(
        **{name: getattr(run, name) for name in names},
        wrench=spoil(run.wrench, frame_axes(ROBOT, LINK, run.q), rng, truth),
    )
    proposals = check_wrench(ROBOT, wrong, sensor_frame=LINK)
    sensing = proposals[-1].sensing if proposals else Sensing()
    load = identify_load(ROBOT, wrong, sensor_frame=LINK, sensing=sensing)
    close = abs(load.mass - truth.mass) < 5 * load.mass_stderr
    return len(proposals) == bool(codes) and all(p.finding.code in codes for p in proposals), close


def main(loads: int = 50) -> None:
    """Print the shares."""
    rows = []
    for fault in FAULTS:
        found = np.mean([trial(fault, seed) for seed in range(loads)], axis=0)
        rows.append((fault, *(100 * found).tolist()))
    print(Table.of(["fault", "proposed rightly %", "mass right then %"], rows))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
