"""The menu of rich friction: four mechanisms that may be added to plain (Coulomb and viscous) friction.

A mechanism is one physical effect: friction with memory, friction that grows with the load, another law of friction
over speed, a tilt of the base. It is a sum of terms of a few shapes, each on all joints, and enters the model as a
whole (`dynid.identification.rich.selection`).

- All coefficients of friction are fitted non-negative, so that shapes that do not help come out as zero. The only
  exception is the difference between the two directions (`AsymmetricViscous`), which may have either sign.
- Presliding (a joint yields like a spring before it slips) is modelled as a sum of springs that slip at different
  travels.
- Widths and travels are parts of a joint's own speed and range of motion, so that one menu serves every robot.
- Outside the speeds and loads of the training data a shape keeps its value at their edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from dynid.array_types import Floats
from dynid.estimators.rows import torque_along
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.base import JointTerm, Reference, Term
from dynid.terms.coupling import MotorFriction
from dynid.terms.friction import AsymmetricViscous, SaturatingViscous, SmoothSign, Stribeck
from dynid.terms.load_dependent import BaseTilt, LoadFriction
from dynid.terms.memory import Hysteresis, LaggedSign

TRAVELS = (0.003, 0.01, 0.03, 0.1)
"""Presliding travels, as parts of a joint's range of motion (convention: about equal steps of the logarithm; the
non-negative sum fills in what lies between)."""
LAGS_S = (0.02, 0.05, 0.1, 0.2)
"""Lags of dry friction behind a change of direction [s] (convention: about equal steps of the logarithm)."""
WIDTHS = (0.02, 0.1)
"""Speeds over which a smooth step through rest rises, as parts of a joint's speed (convention: a sharp and a soft
step)."""
STRIBECK_SPEED = 0.1
"""Speed at which the extra friction of a slow joint has faded, as a part of a joint's speed (convention)."""
SPEED_PERCENTILE = 95.0
"""Percentile of the magnitudes of a joint's speed that counts as its speed (convention: single peaks do not count)."""
LEAST_STRETCH = 50
"""Mean number of samples of the gap-free stretches from which on friction with memory is tried (convention: its memory
starts anew in every stretch and must settle there)."""
TILT = "tilt of the base"
"""Name of the mechanism that is no friction: if it is kept and sure, the robot's gravity is turned instead."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One physical effect that may be added to the model."""

    name: str
    terms: tuple[Term, ...]
    """All its shapes on all joints."""


def make_menu(robot: Robot, runs: Sequence[Experiment], reference: Reference) -> tuple[Mechanism, ...]:
    """List the mechanisms to be tried, their shapes scaled by the motion.

    Args:
        robot: The robot; friction of its couplings' motors is included.
        runs: The training data.
        reference: Parameters of a possible robot that give about the right torques.
    """
    # 1e-9: a joint that rests throughout still needs scales above zero
    speed = np.percentile(np.abs(np.concatenate([run.dq for run in runs])), SPEED_PERCENTILE, axis=0) + 1e-9
    fastest = np.max([np.abs(run.dq).max(axis=0, initial=0.0) for run in runs], axis=0) + 1e-9
    travel = np.ptp(np.concatenate([run.q for run in runs]), axis=0) + 1e-9
    names = robot.joint_names
    # per motor that turns several joints: pairs of joint index and ratio
    motors = [tuple((names.index(n), r) for n, r in coupling.ratios.items()) for coupling in robot.couplings]

    def everywhere(make: Callable[[int], JointTerm]) -> tuple[Term, ...]:
        """One friction term for every joint, and for every motor that turns several joints."""
        # the scale of a motor's friction is that of its last joint: in geared wrists the motor drives this one,
        # and the other joint only adds to its speed
        turned = (MotorFriction(ratios=motor, friction=make(motor[-1][0])) for motor in motors)
        return (*(make(j) for j in range(robot.dof)), *turned)

    def presliding(part: float) -> tuple[Term, ...]:
        return everywhere(lambda j: Hysteresis(joint=j, scale=float(part * travel[j])))

    def lagging(lag_s: float) -> tuple[Term, ...]:
        return everywhere(lambda j: LaggedSign(joint=j, scale=lag_s))

    def smooth(width: float) -> tuple[Term, ...]:
        return everywhere(lambda j: SmoothSign(joint=j, scale=float(width * speed[j])))

    memory_terms = [*map(presliding, TRAVELS), *map(lagging, LAGS_S)]
    speed_terms = [
        *map(smooth, WIDTHS),
        everywhere(lambda j: Stribeck(joint=j, scale=float(STRIBECK_SPEED * speed[j]))),
        everywhere(lambda j: SaturatingViscous(joint=j, limit=float(fastest[j]))),
        # its coefficient may have either sign, and that of a MotorFriction is never negative: not on motors
        tuple(AsymmetricViscous(joint=j, limit=float(fastest[j])) for j in range(robot.dof)),
    ]
    load_terms = load_friction(robot, runs, reference, np.outer(WIDTHS, speed))
    stretches = sum(int(run.segment[-1]) + 1 for run in runs)
    is_long_enough = sum(run.samples for run in runs) >= LEAST_STRETCH * stretches
    found = [Mechanism("friction with memory", tuple(chain(*memory_terms)))] if is_long_enough else []
    found += [
        Mechanism("friction that grows with the load", load_terms),
        Mechanism("law of friction over speed", tuple(chain(*speed_terms))),
    ]
    if np.any(robot.gravity):
        found.append(Mechanism(TILT, tuple(BaseTilt(axis=axis, reference=reference) for axis in (0, 1))))
    return tuple(found)


def load_friction(robot: Robot, runs: Sequence[Experiment], reference: Reference, widths: Floats) -> tuple[Term, ...]:
    """Make terms of friction that grows with the torque of the links, k for every joint.

    Args:
        robot: The robot.
        runs: The data; beyond the largest link torques in them the friction grows no more.
        reference: Parameters whose links give the loads.
        widths: (k, n) speeds over which its smooth steps through rest rise [rad/s or m/s].
    """
    links = reference.of_links(robot.dof)
    loads = np.max([np.abs(torque_along(robot, links.theta, run)).max(axis=0, initial=0.0) for run in runs], axis=0)
    return tuple(
        LoadFriction(friction=SmoothSign(joint=j, scale=float(width[j])), reference=links, limit=float(loads[j]))
        for width in widths
        for j in range(robot.dof)
    )
