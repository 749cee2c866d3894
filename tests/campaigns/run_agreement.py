"""Planted differences between runs: how often the right cause is named, and how often clean runs are accused.

    python tests/campaigns/run_agreement.py 200 [seed] [fault ...]

Each case simulates three runs of one of three robots with noisy torques and positions, plants one difference in the
last run, identifies by the bare recipe, and reads the findings.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo import puma560, scara, ur10
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

FAULTS = ("nothing", "load", "offset", "gain", "viscous", "drift", "length")
"""What differs in the last run."""
ROBOTS = (scara, puma560, ur10)
RUNS = 3
DRIFT = 0.1
"""Drift of an offset from the middle to the end of the last run, as a share of the joint's rms torque."""
LONGER = 1.05
"""Length of the longest link in the last run over that in the others."""
NOISE = 0.02
"""Standard deviation of the torque noise as a share of each joint's rms torque."""


def arm(make) -> Robot:
    """A robot with usual terms."""
    return make().with_terms(RotorInertia(0.1), Viscous(1.0), Coulomb(1.5), Offset(0.1))


def record(robot: Robot, seed: int) -> Experiment:
    """One processed run with coloured torque noise."""
    recording = simulate_experiment(
        robot, sum_of_sines(robot.dof, seed=seed), rate_hz=100, duration_s=12.0, noise=Noise(position=1e-5), seed=seed
    )
    effort = np.asarray(recording.effort)
    rng = np.random.default_rng(seed + 1)
    white = rng.normal(size=effort.shape)
    coloured = np.zeros_like(white)
    for row in range(1, len(white)):
        coloured[row] = 0.8 * coloured[row - 1] + 0.6 * white[row]  # AR(1) with unit variance
    noisy = effort + NOISE * np.sqrt(np.mean(effort**2, axis=0)) * coloured
    return process(replace(recording, effort=noisy))


def case(number: int, seed: int, faults: Sequence[str] = FAULTS) -> tuple[str, str, str, list[str]]:
    """Robot, fault, name of the planted cause ("" if there is none), and the name that each finding gives first."""
    make, fault = ROBOTS[number % len(ROBOTS)], faults[(number // len(ROBOTS)) % len(faults)]
    rng = np.random.default_rng((seed, number))
    robot = arm(make)
    other, cause = plant(robot, fault, rng)
    first = 1000 * number + 7 * seed
    runs = [record(robot if k < RUNS - 1 else other, first + 10 * k) for k in range(RUNS)]
    joint = int(rng.integers(robot.dof))
    if fault == "drift":
        effort, cause = runs[-1].effort.copy(), f"drift of OFF{joint + 1}"
        size = DRIFT * np.sqrt(np.mean(effort[:, joint] ** 2))
        effort[:, joint] += size * np.linspace(-1.0, 1.0, runs[-1].samples)
        runs[-1] = replace(runs[-1], effort=effort)
    if fault == "gain":
        gains = np.ones(robot.dof)
        gains[joint], cause = 1.1, robot.joint_names[joint]
        runs[-1] = replace(runs[-1], effort=runs[-1].effort * gains)
    fit = identify(robot, runs, Recipe.bare())
    kinds = {"run-drifts": "drift of ", "runs-differ": "", "run-load": ""}
    found = [f for f in fit.estimate.findings if f.code in kinds]
    return make.__name__, fault, cause, [f"{kinds[f.code]}{next(iter(f.evidence))}" for f in found]


def plant(robot: Robot, fault: str, rng: np.random.Generator) -> tuple[Robot, str]:
    """The robot of the last run, and what is different about it: a link that holds a load, or a parameter."""
    tip = robot.bodies[-1].joint.child
    if fault == "load":
        load = Inertia.from_com(rng.uniform(0.5, 2.0), rng.uniform(-0.05, 0.1, 3), 0.002 * np.eye(3))
        return robot.with_body("held", parent=tip, inertia=load), tip
    if fault == "length":
        return _with_longer_link(robot)
    theta, joint = robot.parameter_vector.copy(), int(rng.integers(robot.dof))
    place = 10 * robot.dof + 4 * joint
    cause = ""
    if fault == "offset":
        theta[place + 3] += rng.choice([-1.0, 1.0]) * 0.6
        cause = f"OFF{joint + 1}"
    if fault == "viscous":
        theta[place + 1] *= 1.5
        cause = f"FV{joint + 1}"
    return robot.with_parameters(theta), cause


def _with_longer_link(robot: Robot) -> tuple[Robot, str]:
    """The robot whose longest link is longer; the names of the body that this link belongs to, and of the next one."""
    bodies = {name: body.joint.child for body in robot.bodies for name, _ in body.members}
    inner = [joint for joint in robot.joints if joint.parent in bodies]
    longest = max(inner, key=lambda joint: float(np.linalg.norm(joint.T_parent_joint[:3, 3])))
    stretch = np.ones((4, 4))
    stretch[:3, 3] = LONGER
    joints = tuple(
        replace(joint, T_parent_joint=stretch * joint.T_parent_joint) if joint is longest else joint
        for joint in robot.joints
    )
    order = [body.joint.child for body in robot.bodies]
    carried = order[order.index(bodies[longest.parent]) + 1]
    return replace(robot, joints=joints), f"{bodies[longest.parent]} or {carried}"


def is_right(cause: str, names: list[str]) -> bool:
    """Whether a finding names the planted cause first, joint included; without one, whether nothing is named."""
    grouped = re.sub(r"^(drift of )?(OFF|FV)(?=\d)", r"\1\2R", cause)  # base parameters that contain it, as OFFR3
    return bool({*cause.split(" or "), grouped} & set(names)) if cause else not names


def main() -> None:
    """Run the cases and print a table."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    faults = sys.argv[3:] or FAULTS
    right, all_cases = Counter(), Counter()
    for number in range(count):
        robot, fault, cause, names = case(number, seed, faults)
        all_cases[fault] += 1
        right[fault] += is_right(cause, names)
        if not is_right(cause, names):
            print(f"    {fault} in {robot}, case {number}: planted {cause or 'nothing'}, named {names}")
    for fault in faults:
        print(f"{fault:10s} {right[fault]} of {all_cases[fault]}")


if __name__ == "__main__":
    main()
