"""The terms that forward selection tries by default, sized by the motion itself.

A term enters on all joints at once: what all joints show is worth more than what one joint shows by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.features import (
    AngleFriction,
    AngleHarmonic,
    AsymmetricViscous,
    Feature,
    Hysteresis,
    JointFeature,
    LaggedSign,
    MotorFriction,
    SaturatingViscous,
    SmoothSign,
    Stribeck,
)
from dynid.estimation.load_features import BaseTilt, CrossTalk, DriveGain, LoadFriction, Reference, SensorCurvature
from dynid.estimation.selection import Candidate
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["standard_candidates"]

Floats = NDArray[np.float64]
SPEEDS = (0.02, 0.1)
"""Widths of smooth signs, as parts of a joint's high speed."""
TRAVELS = (0.003, 0.01, 0.03, 0.1)
"""Presliding travels, as parts of a joint's range of motion."""
LAGS = (0.02, 0.05, 0.1, 0.2)
"""[s]"""


def standard_candidates(
    robot: Robot, experiments: Sequence[Experiment], reference: Reference, *, memory: bool = True
) -> tuple[Candidate, ...]:
    """Friction shapes with and without memory, load-dependent friction, harmonics, drive gain, base tilt.

    Args:
        robot: The robot; friction of its couplings' motors is included.
        experiments: The motion that sets velocities and travels.
        reference: Parameters that give about the right torques, of an earlier fit say.
        memory: Whether the samples follow one another in time, so that friction with memory makes sense.
    """
    joints = range(robot.dof)
    speed = np.percentile(np.abs(np.concatenate([run.dq for run in experiments])), 95.0, axis=0) + 1e-9
    travel = np.ptp(np.concatenate([run.q for run in experiments]), axis=0) + 1e-9

    motors = [tuple((robot.joint_names.index(n), r) for n, r in c.ratios.items()) for c in robot.couplings]

    def friction(shape: Callable[[int], JointFeature]) -> tuple[Feature, ...]:
        return (*(shape(j) for j in joints), *(MotorFriction(motor, shape(motor[-1][0])) for motor in motors))

    def scaled(kind: type[SmoothSign | Hysteresis | LaggedSign | Stribeck], sizes: Floats) -> tuple[Feature, ...]:
        return friction(lambda j: kind(j, float(sizes[j])))

    found = [Candidate(f"smooth sign {part:g}", scaled(SmoothSign, part * speed)) for part in SPEEDS]
    if memory:
        found += [Candidate(f"hysteresis {part:g}", scaled(Hysteresis, part * travel)) for part in TRAVELS]
        found += [Candidate(f"lagged sign {lag:g} s", scaled(LaggedSign, np.full(robot.dof, lag))) for lag in LAGS]
    found += [
        Candidate("saturating viscous", friction(SaturatingViscous)),
        Candidate("asymmetric viscous", tuple(AsymmetricViscous(j) for j in joints)),
        Candidate("Stribeck", scaled(Stribeck, 0.1 * speed)),
        *(
            Candidate(
                f"load friction {part:g}",
                tuple(LoadFriction(SmoothSign(j, part * speed[j]), reference) for j in joints),
            )
            for part in SPEEDS
        ),
        Candidate("drive gain", tuple(DriveGain(j, reference) for j in joints if j != _most_loaded(experiments))),
        Candidate("drive curvature", tuple(SensorCurvature(j, reference) for j in joints)),
        Candidate(
            "cross-talk",
            tuple(CrossTalk(j, k, reference) for j in joints for k in (j - 1, j + 1) if 0 <= k < robot.dof),
        ),
        Candidate("first harmonics", tuple(AngleHarmonic(j, 1, sine) for j in joints for sine in (False, True))),
        Candidate(
            "angle friction",
            tuple(AngleFriction(j, SPEEDS[0] * speed[j], sine) for j in joints for sine in (False, True)),
        ),
    ]
    if np.any(robot.gravity):
        found.append(Candidate("base tilt", (BaseTilt(0, reference), BaseTilt(1, reference))))
    return tuple(candidate for candidate in found if candidate.terms)  # a single joint has no cross-talk


def _most_loaded(experiments: Sequence[Experiment]) -> int:
    """The joint of the largest torques: its drive sets the scale of masses, against which other gains are measured."""
    squares = sum(np.where(run.valid, run.effort, 0.0).T ** 2 @ np.ones(run.samples) for run in experiments)
    return int(np.argmax(squares))
