"""Planted differences between runs: how often the right cause is named, and how often clean runs are accused.

    python tests/campaigns/run_agreement.py 200 [seed] [fault ...] [--correlation 0.98] [--default]

Each case simulates three runs of one of three robots with noisy torques and positions, plants one difference in the
last run, identifies by the bare recipe, or by the default one, and reads the findings. Of runs that agree a warning is
an accusation; notes, which only tell of offsets that runs get for themselves, are counted apart. A planted cause must
be the first that is named, and no other run may be accused.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.findings import Finding
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
BARE = Recipe.bare()
RUNS = 3
DRIFT = 0.1
"""Drift of an offset from the middle to the end of the last run, as a share of the joint's rms torque."""
LONGER = 1.05
"""Length of the longest link in the last run over that in the others."""
NOISE = 0.02
"""Standard deviation of the torque noise as a share of each joint's rms torque."""
CORRELATION = 0.8
"""Correlation of the torque noise from one sample to the next, 10 ms later."""
CODES = {"run-drifts": "drift of ", "runs-differ": "", "run-load": ""}
"""Codes of what differs -> words before its name."""


def arm(make) -> Robot:
    """A robot with usual terms."""
    return make().with_terms(RotorInertia(0.1), Viscous(1.0), Coulomb(1.5), Offset(0.1))


def record(robot: Robot, seed: int, correlation: float = CORRELATION) -> Experiment:
    """One processed run with coloured torque noise, AR(1) of some correlation from sample to sample."""
    recording = simulate_experiment(
        robot, sum_of_sines(robot.dof, seed=seed), rate_hz=100, duration_s=12.0, noise=Noise(position=1e-5), seed=seed
    )
    effort = np.asarray(recording.effort)
    rng = np.random.default_rng(seed + 1)
    white = rng.normal(size=effort.shape)
    coloured = np.zeros_like(white)
    for row in range(1, len(white)):
        coloured[row] = correlation * coloured[row - 1] + np.sqrt(1.0 - correlation**2) * white[row]
    noisy = effort + NOISE * np.sqrt(np.mean(effort**2, axis=0)) * coloured
    return process(replace(recording, effort=noisy))


@dataclass(frozen=True, slots=True)
class Case:
    """What was planted in the last of several runs, and what was found."""

    robot: str
    fault: str
    cause: str
    """Name of the planted cause, "" if there is none."""
    findings: tuple[Finding, ...]
    last: str
    """Name of the last run."""

    @property
    def accused(self) -> list[str]:
        """The name that each warning gives first."""
        return [f"{CODES[f.code]}{next(iter(f.evidence))}" for f in self.findings if f.severity != "note"]

    @property
    def is_noted(self) -> bool:
        """Whether runs only get offsets for themselves."""
        return bool(self.findings) and not self.accused

    @property
    def is_right(self) -> bool:
        """Whether the planted cause is named first, joint included, and no other run accused; or nothing at all."""
        if not self.cause:
            return not self.accused
        grouped = re.sub(r"^(drift of )?(OFF|FV)(?=\d)", r"\1\2R", self.cause)  # base parameters with it, as OFFR3
        named = {f"{CODES[f.code]}{next(iter(f.evidence))}" for f in self.findings if f.where == self.last}
        innocent = any(f.where != self.last and f.severity != "note" for f in self.findings)
        return bool({*self.cause.split(" or "), grouped} & named) and not innocent


def case(
    number: int, seed: int, faults: Sequence[str] = FAULTS, *, correlation: float = CORRELATION, recipe: Recipe = BARE
) -> Case:
    """Simulate, plant and identify one case."""
    make, fault = ROBOTS[number % len(ROBOTS)], faults[(number // len(ROBOTS)) % len(faults)]
    rng = np.random.default_rng((seed, number))
    robot = arm(make)
    other, cause = plant(robot, fault, rng)
    first = 1000 * number + 7 * seed
    runs = [record(robot if k < RUNS - 1 else other, first + 10 * k, correlation) for k in range(RUNS)]
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
    fit = identify(robot, runs, recipe)
    found = tuple(f for f in fit.estimate.findings if f.code in CODES)
    return Case(make.__name__, fault, cause, found, Path(runs[-1].source).name)


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


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("faults", nargs="*", default=FAULTS)
    parser.add_argument("--correlation", type=float, default=CORRELATION)
    parser.add_argument("--default", action="store_true", help="identify by the default recipe")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # the gate's findings on each run, which are not counted here
    right, noted, cases = Counter(), Counter(), Counter()
    for number in range(asked.count):
        recipe = Recipe() if asked.default else BARE
        found = case(number, asked.seed, asked.faults, correlation=asked.correlation, recipe=recipe)
        cases[found.fault] += 1
        right[found.fault] += found.is_right
        noted[found.fault] += found.is_noted
        if not found.is_right:
            told = [f"{f.where}: {f.severity} {CODES[f.code]}{', '.join(f.evidence)}" for f in found.findings]
            planted = found.cause or "nothing"
            print(f"    {found.fault} in {found.robot}, case {number}: planted {planted}, found {told}")
    for fault in asked.faults:
        print(f"{fault:10s} {right[fault]} of {cases[fault]} right; notes only in {noted[fault]}")


if __name__ == "__main__":
    main()
