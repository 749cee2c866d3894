"""Loads and drive gains from joint torques: do 95 % intervals hold the truth 95 times in 100, if noise is filtered too?

Run: ``python tests/campaigns/load_torque_coverage.py [runs] [first seed]`` (about 17 minutes for 200 and all cutoffs).
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

import dynid
from dynid.compiled import inverse_dynamics, regressor
from dynid.payload.drive_gains import identify_drive_gains
from dynid.payload.load import Load
from dynid.payload.payload import arm_directions, identify_payload
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.tables import Table
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

Floats = NDArray[np.float64]
ARM = dynid.robots.panda().with_terms(Viscous(0.8), Coulomb(0.6), Offset(0.1), RotorInertia(0.05))
TRUTH = Inertia.from_com(2.0, [0.02, -0.03, 0.12], np.diag([0.004, 0.005, 0.003]))
RATE = 100.0
CUTOFFS = (None, 20.0, 10.0, 5.0, 2.0)
"""Of the filter that the noise went through [Hz]; None for white noise."""
STATED = (0.05, 0.005)


def moved(robot: Robot) -> Experiment:
    """Ten seconds of motion without noise."""
    time = np.arange(1000) / RATE
    q, dq, ddq = sum_of_sines(robot.dof, period_s=10.0, amplitude=1.2, seed=1)(time)
    return Experiment(
        time=time,
        q=q,
        dq=dq,
        ddq=ddq,
        effort=inverse_dynamics(robot, q, dq, ddq),
        valid=np.ones(q.shape, dtype=bool),
        segment=np.zeros(len(time), dtype=np.int64),
        rate_hz=RATE,
    )


def noisy(run: Experiment, rng: np.random.Generator, cutoff: float | None) -> Experiment:
    """Two percent of noise in every torque, filtered alike."""
    noise = rng.normal(size=(run.samples + 400, run.q.shape[1]))
    if cutoff is not None:
        noise = sosfiltfilt(butter(4, cutoff, fs=RATE, output="sos"), noise, axis=0)
    noise = noise[200:-200] / noise.std()
    return replace(run, effort=run.effort + 0.02 * np.sqrt((run.effort**2).mean(axis=0)) * noise)


def another_arm(run: Experiment, rng: np.random.Generator) -> Experiment:
    """The same motion of an arm whose links differ from the model by what is stated."""
    causes = arm_directions(ARM, STATED)
    change = causes @ rng.normal(size=causes.shape[1])
    return replace(run, effort=run.effort + regressor(ARM, run.q, run.dq, run.ddq) @ change)


def load_errors(load: Load) -> Floats:
    """Errors of the ten parameters over their standard deviations."""
    return (load.vector - TRUTH.vector) / load.stderr


def main(runs: int = 200, first: int = 0) -> None:
    """Print the share of intervals that hold the truth, with noise filtered at all cutoffs."""
    heavy = ARM.with_body("box", parent=ARM.bodies[-1].joint.child, inertia=TRUTH)
    bare, held = moved(ARM), moved(heavy)
    rows = []
    for cutoff in CUTOFFS:
        errors: dict[str, list[Floats]] = {"pair of runs": [], "arm known": [], "arm uncertain": [], "drive gains": []}
        for seed in range(first, first + runs):
            rng = np.random.default_rng(seed)
            loaded, unloaded = noisy(held, rng, cutoff), noisy(bare, rng, cutoff)
            pair = identify_payload(ARM, loaded=loaded, unloaded=unloaded, physical=False)
            errors["pair of runs"].append(load_errors(pair))
            errors["arm known"].append(load_errors(identify_payload(ARM, loaded=loaded, physical=False)))
            one = noisy(another_arm(held, rng), rng, cutoff)
            errors["arm uncertain"].append(load_errors(identify_payload(ARM, loaded=one, arm=STATED, physical=False)))
            gains = identify_drive_gains(ARM, loaded=loaded, unloaded=unloaded, mass_kg=TRUTH.mass, com=TRUTH.com)
            errors["drive gains"].append((gains.gain - 1.0) / gains.stderr)
        name = "white" if cutoff is None else f"filtered at {cutoff:g} Hz"
        for what, found in errors.items():
            rows.append((name, what, *_shares(np.array(found))))
    header = ["noise", "interval of", "mean %", "lowest %", "highest %", "rms error over std"]
    print(Table.of(header, rows))


def _shares(z: Floats) -> tuple[float, float, float, float]:
    """Mean, lowest and highest share of intervals that hold the truth [%]; rms of the errors over their deviation."""
    known = np.isfinite(z)
    each = 100 * np.nanmean(np.where(known, np.abs(z) < 1.96, np.nan), axis=0)
    rms = float(np.sqrt(np.mean(z[known] ** 2)))
    return float(each.mean()), float(each.min()), float(each.max()), rms


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
