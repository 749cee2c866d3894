"""Coverage of the intervals of servos, and open combinations named, on simulated arms and legs with planted truth.

Three robots (a pendulum, a double pendulum, a leg of three joints) with random armature, friction, zeros, delay and
gains follow chirps; the encoders have white noise. Every second run plants a combination that no motion can tell:
viscous friction beside the factor of the velocity gain. The fit starts from values that are wrong by a random factor.

Run ``python tests/campaigns/actuator_coverage.py [runs]``; 200 runs by default.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import dynid
from dynid.robot.model import Robot
from dynid.servos import PositionLaw, ServoModel, ServoParameter
from dynid.servos.servo_identification import ActuatorEstimate, fit_servos
from support.chains import chain
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum, pendulum

NOISE = 5e-4
"""Standard deviation of the encoders' noise [rad]."""
RANGES = {
    "armature": (0.01, 0.05), "viscous": (0.05, 0.3), "coulomb": (0.05, 0.3), "zero": (-0.1, 0.1),
    "delay": (0.002, 0.02), "gain_scale": (0.8, 1.2), "kd_scale": (0.8, 1.2), "load_drive": (0.02, 0.1),
}  # fmt: skip
"""From where to where the truth lies, in the units of the kinds."""


def leg() -> Robot:
    """Three joints: a hip about the horizontal, a thigh and a calf across it."""
    inertia = dynid.Inertia.from_com(0.6, [0.0, 0.02, -0.09], np.diag([0.004, 0.004, 0.001]))
    axes = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0])
    joints = []
    for k, axis in enumerate(axes):
        T = np.eye(4)
        T[:3, 3] = [0.0, 0.08, 0.0] if k == 1 else [0.0, 0.0, -0.21 * (k == 2)]
        joints.append({"name": f"j{k}", "axis": np.array(axis), "T_parent_joint": T})
    return chain("leg", *((inertia, joint) for joint in joints))


ROBOTS = (pendulum(), double_pendulum(), leg())


def run(number: int) -> tuple[ActuatorEstimate, np.ndarray, bool]:
    """One estimate, the truth, and whether a combination was planted."""
    rng = np.random.default_rng(number)
    robot, open_planted = ROBOTS[number % len(ROBOTS)], number % 2 == 1
    kinds = ["armature", "viscous", "coulomb", "zero", "gain_scale"]
    parameters = [ServoParameter(kind) for kind in kinds] + [ServoParameter("delay", share="all")]
    # load friction would tell them apart: it grows with the drive's torque alone
    parameters += [ServoParameter("kd_scale" if open_planted else "load_drive")]
    blank = ServoModel(robot, PositionLaw(kp=12.0, kd=0.6), tuple(parameters))
    truth = np.array([rng.uniform(*RANGES[entry.kind]) for entry in blank.entries])
    guess = [0.0 if entry.kind == "zero" else value * rng.uniform(0.7, 1.4)
             for value, entry in zip(truth, blank.entries, strict=True)]  # fmt: skip
    motions = [planted(blank, truth, chirp(robot, seed=2 * number + k, duration_s=8.0), NOISE, seed=number + 10_000 * k)
               for k in range(2)]  # fmt: skip
    return fit_servos(blank.with_values(guess), motions), truth, open_planted


def tally(runs: int) -> tuple[int, int, int, int]:
    """Covered and all intervals, named and all planted combinations."""
    covered = total = named = combinations = 0
    for number in range(runs):
        found, truth, open_planted = run(number)
        known = np.isfinite(found.std)
        inside = np.abs(found.values - truth) <= 1.96 * found.std
        covered, total = covered + int(inside[known].sum()), total + int(known.sum())
        if open_planted:
            for name in found.model.robot.joint_names:
                combinations += 1
                pair = {f"viscous {name}", f"kd_scale {name}"}
                named += any(pair <= set(direction.names) for direction in found.open_directions)
    return covered, total, named, combinations


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    covered, total, named, combinations = tally(runs)
    print(f"{runs} runs: {covered} of {total} intervals cover the truth ({100 * covered / total:.1f} %)")
    print(f"planted combinations named: {named} of {combinations}")


if __name__ == "__main__":
    main()
