"""Clean logs and models with wrong masses: does the gate accuse the log of what only the masses suggest?

    python tests/campaigns/gate_evidence.py [cases] [first seed] [logs of a case]

Each case simulates a faultless log of one of six robots, two of which have a slide, with friction that no model of the
gate holds (Stribeck, load-dependent, a ripple), and checks it with the true masses, with masses that are off by up to a
factor of two, or with one body copied to all links. Several logs of a case are also judged together. Any error or
warning that names what may be wrong with a log or the model is a false accusation.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.findings import Finding
from dynid.gate.causes import NAMED
from dynid.gate.quality import check_recording
from dynid.gate.within_log import check_together
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

Floats = NDArray[np.float64]
ROBOTS = ("puma560", "scara", "panda", "cylindrical", "ur10", "tx40")
MASSES = ("own", "off", "copied 0.1 kg", "copied 1 kg", "copied 20 kg")
ACCUSATIONS = (NAMED | {"unexplained", "clock-scale", "velocity-scale"}) - {"joint-spring"}
"""Codes of accusations; over a short travel the ripple is a spring, so that this one may be told."""
RATE_HZ, DURATION_S, PERIOD_S = 250.0, 12.0, 6.0
SECOND = 1_000_003
"""Distance of the seeds of two logs of a case."""
FEW = 0.01
"""Share of false accusations that is allowed (the goal of issue 22)."""


@cache
def arm(name: str) -> Robot:
    """The true robot with usual friction."""
    return dynid.robots.get(name).with_terms(RotorInertia(0.2), Viscous(1.0), Coulomb(2.0), Offset(0.3))


def believed(name: str, masses: str, seed: int = 0) -> Robot:
    """The user's model: right geometry, and masses as `MASSES` says."""
    plain = dynid.robots.get(name).with_terms()
    theta = plain.parameter_vector.copy()
    if masses.startswith("copied"):
        mass = float(masses.split()[1])
        theta[: 10 * plain.dof] = np.tile([0.01, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.0, mass], plain.dof)
    elif masses == "off":
        factors = np.exp(np.random.default_rng(seed).uniform(-np.log(2.0), np.log(2.0), plain.dof))
        theta[: 10 * plain.dof] *= np.repeat(factors, 10)
    return plain.with_parameters(theta)


def unmodelled_friction(log: Recording) -> Floats:
    """(N, n) friction that the equations of the gate do not hold [N m or N]."""
    dq, effort = np.asarray(log.dq), np.asarray(log.effort)
    stribeck = np.sign(dq) * np.exp(-((dq / 0.1) ** 2))
    by_load = 0.05 * np.abs(effort) * np.tanh(dq / 0.02)
    return stribeck + by_load + 0.3 * np.sin(8.0 * log.q) - 0.5 * np.sign(dq) * np.sqrt(np.abs(dq))


def clean_log(name: str, seed: int, *, size: float = 1.0, friction: float = 1.0) -> Recording:
    """A faultless log, its motion scaled by `size`, with some share of `unmodelled_friction`."""
    robot = arm(name)
    joints = robot.moving_joints
    reach = np.array([min(abs(j.limits.lower), abs(j.limits.upper), 1.2) for j in joints])
    amplitude = size * np.where(reach > 0.1, 0.6 * reach, 0.4)
    amplitude = np.where([j.kind == "prismatic" for j in joints], 0.3 * amplitude, amplitude)
    path = sum_of_sines(robot.dof, period_s=PERIOD_S, harmonics=5, amplitude=amplitude, seed=seed)
    noise = Noise(position=2e-5, velocity=2e-3, effort=0.3)
    log = simulate_experiment(robot, path, rate_hz=RATE_HZ, duration_s=DURATION_S, noise=noise, seed=seed)
    return replace(log, effort=log.effort + friction * unmodelled_friction(log))


def accusations(log: Recording, robot: Robot) -> list[Finding]:
    """What the gate accuses a log of."""
    found = check_recording(log, robot).findings
    return [finding for finding in found if finding.severity != "note" and finding.code in ACCUSATIONS]


def accusations_together(logs: Sequence[Recording], robot: Robot) -> list[Finding]:
    """What the gate accuses several logs of, together or one of them by itself."""
    reports = [check_recording(log, robot).findings for log in logs]
    more = [finding for _, finding in check_together(robot, [process(log) for log in logs], reports)]
    return [f for f in (*sum(reports, ()), *more) if f.severity != "note" and f.code in ACCUSATIONS]


def main(cases: int, first: int, logs: int) -> int:
    """Run the campaign and print a table; the exit code says whether it passed."""
    count, accused = Counter[str](), Counter[str]()
    for case in range(cases):
        name, masses = ROBOTS[case % len(ROBOTS)], MASSES[(case // len(ROBOTS)) % len(MASSES)]
        rng = np.random.default_rng((first, case))
        size, friction = float(rng.choice([0.15, 0.3, 0.5, 1.0])), rng.uniform()
        seeds = [first + case + k * SECOND for k in range(logs)]
        clean = [clean_log(name, seed, size=size, friction=friction) for seed in seeds]
        wrong = accusations_together(clean, believed(name, masses, first + case))
        for key in (name, masses):
            count[key] += 1
            accused[key] += bool(wrong)
        for finding in wrong:
            print(f"    {name}, masses {masses}, case {case}: {finding}", flush=True)
    for key in (*ROBOTS, *MASSES):
        print(f"{key:16s} {count[key]:5d} logs, {accused[key]:3d} accused")
    total = sum(accused[name] for name in ROBOTS)
    print(f"falsely accused: {total} of {cases}")
    return int(total > FEW * cases)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*numbers, *[300, 0, 1][len(numbers) :]))
