"""Which filter of a simulated motion's errors serves best where the model misses something, with planted truth.

Simulated arms and legs have friction that the model lacks (breakaway and load-dependent friction, or a torque of the
links that changes with the posture), or white noise alone. Each filter is fitted to one motion; its model then predicts
two others. The table shows the error of the predicted motions over that of plain least squares (geometric mean over
runs), the error of the known parameters over theirs, and the share of runs in which a filter was better. A correlation
counts at 200 Hz; "loop" is the default of `dynid.identify_actuators`.

Run ``python tests/campaigns/actuator_errors.py [runs]``; 30 runs by default, some minutes.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from actuator_coverage import RANGES, ROBOTS

from dynid.actuators import CommandedMotion, PositionLaw, ServoModel, ServoParameter, simulate_servos
from dynid.actuators.servo_identification import fit_servos
from support.planted_servos import chirp, planted

FILTERS = (0.0, 0.8, 0.9, 0.95, 0.97, 0.99, "loop")
KINDS = ("armature", "viscous", "coulomb", "zero")
MISSED = {"friction": ("breakaway", "load_drive"), "links": ("link_mx", "link_mz"), "nothing": ()}
PLANTED = RANGES | {"breakaway": (0.05, 0.2), "link_mx": (-0.005, 0.005), "link_mz": (-0.005, 0.005)}
NOISE = 1e-4
"""Standard deviation of the encoders' noise [rad]."""


def run(number: int, missed: tuple[str, ...]) -> np.ndarray:
    """(filters, 2) errors of predicted motions, and of the known parameters over their ranges."""
    rng = np.random.default_rng(number)
    robot = ROBOTS[number % len(ROBOTS)]
    law = PositionLaw(kp=rng.uniform(6.0, 24.0), kd=rng.uniform(0.3, 1.5))
    delay = ServoParameter("delay", share="all")
    model = ServoModel(robot, law, (*KINDS, delay))
    whole = ServoModel(robot, law, (*KINDS, delay, *missed))
    truth = np.array([rng.uniform(*PLANTED[entry.kind]) for entry in whole.entries])
    motions: list[CommandedMotion] = []
    for k in range(3):
        blank = chirp(robot, seed=3 * number + k, duration_s=8.0)
        motions.append(planted(whole, truth, replace(blank, name=f"motion {k}"), NOISE, seed=number + 1000 * k))
    known = np.array([truth[[e.name for e in whole.entries].index(entry.name)] for entry in model.entries])
    size = np.array([np.ptp(PLANTED[entry.kind]) for entry in model.entries])
    errors = []
    for correlation in FILTERS:
        found = fit_servos(model, motions[:1], correlation=correlation)
        off = [motion.position - simulate_servos(found.model, found.values, motion) for motion in motions[1:]]
        errors.append((np.sqrt(np.mean(np.square(off))), np.sqrt(np.mean(((found.values - known) / size) ** 2))))
    return np.array(errors)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    for name, missed in MISSED.items():
        ratios = np.array([(errors := run(number, missed)) / errors[0] for number in range(runs)])
        print(f"the model misses {name} ({runs} runs):")
        for place, correlation in enumerate(FILTERS):
            motion, values = np.exp(np.log(ratios[:, place]).mean(axis=0))
            share = float(np.mean(ratios[:, place, 0] < 1.0))
            print(f"  {correlation!s:5}: motions {motion:.3f}, parameters {values:.3f}, better in {share:.0%}")


if __name__ == "__main__":
    main()
