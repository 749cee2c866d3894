"""The four mechanisms of rich friction, each a sum of a few shapes on all joints together.

No coefficient of a friction can be negative, so that the data choose among the shapes by themselves, and a sum of
springs that slip, each after another travel, is the presliding of a real joint. Widths, travels and lags are parts of a
joint's own speed and range of motion, so that one menu serves every robot. A shape holds at the edge of the speeds and
loads that the training data show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.rows import torque_along
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.base import JointTerm, Reference, Term
from dynid.terms.coupling import MotorFriction
from dynid.terms.friction import AsymmetricViscous, SaturatingViscous, SmoothSign, Stribeck
from dynid.terms.load_dependent import BaseTilt, LoadFriction
from dynid.terms.memory import Hysteresis, LaggedSign

TRAVELS = (0.003, 0.01, 0.03, 0.1)
"""Presliding travels, as parts of a joint's range of motion."""
LAGS = (0.02, 0.05, 0.1, 0.2)
"""Lags of dry friction [s]."""
WIDTHS = (0.02, 0.1)
"""Widths of a smooth step through rest, as parts of a joint's speed."""
STRIBECK = 0.1
"""Stribeck speed, as a part of a joint's speed."""
FAST = 95.0
"""Percentile of a joint's speeds that counts as its speed."""
LONGEST_GAP = 50
"""Samples that gap-free stretches must have on average for friction with memory to be tried."""
TILT = "tilt of the base"
"""Name of the mechanism that belongs to the robot: gravity is turned where it is sure."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One thing that friction may do."""

    name: str
    terms: tuple[Term, ...]
    """Its shapes on all joints."""


def make_menu(robot: Robot, runs: Sequence[Experiment], reference: Reference) -> tuple[Mechanism, ...]:
    """The mechanisms that are tried, scaled by the motion.

    Args:
        robot: The robot; friction of its couplings' motors is included.
        runs: The training data.
        reference: Parameters of a possible robot that give about the right torques.
    """
    speed = np.percentile(np.abs(np.concatenate([run.dq for run in runs])), FAST, axis=0) + 1e-9
    fastest = np.max([np.abs(run.dq).max(axis=0, initial=0.0) for run in runs], axis=0) + 1e-9
    travel = np.ptp(np.concatenate([run.q for run in runs]), axis=0) + 1e-9
    names = robot.joint_names
    motors = [tuple((names.index(n), r) for n, r in coupling.ratios.items()) for coupling in robot.couplings]

    def everywhere(make: Callable[[int], JointTerm]) -> tuple[Term, ...]:
        """A friction on every joint, and on every motor that turns several joints."""
        turned = (MotorFriction(ratios=motor, friction=make(motor[-1][0])) for motor in motors)
        return (*(make(j) for j in range(robot.dof)), *turned)

    def presliding(part: float) -> tuple[Term, ...]:
        return everywhere(lambda j: Hysteresis(joint=j, scale=float(part * travel[j])))

    def lagging(lag_s: float) -> tuple[Term, ...]:
        return everywhere(lambda j: LaggedSign(joint=j, scale=lag_s))

    def smooth(width: float) -> tuple[Term, ...]:
        return everywhere(lambda j: SmoothSign(joint=j, scale=float(width * speed[j])))

    memory = [*map(presliding, TRAVELS), *map(lagging, LAGS)]
    laws = [
        *map(smooth, WIDTHS),
        everywhere(lambda j: Stribeck(joint=j, scale=float(STRIBECK * speed[j]))),
        everywhere(lambda j: SaturatingViscous(joint=j, limit=float(fastest[j]))),
        tuple(AsymmetricViscous(joint=j, limit=float(fastest[j])) for j in range(robot.dof)),
    ]
    load = load_friction(robot, runs, reference, np.outer(WIDTHS, speed))
    stretches = sum(int(run.segment[-1]) + 1 for run in runs)
    follows = sum(run.samples for run in runs) >= LONGEST_GAP * stretches
    found = [Mechanism("friction with memory", tuple(chain(*memory)))] if follows else []
    found += [
        Mechanism("friction that grows with the load", load),
        Mechanism("law of friction over speed", tuple(chain(*laws))),
    ]
    if np.any(robot.gravity):
        found.append(Mechanism(TILT, tuple(BaseTilt(axis=axis, reference=reference) for axis in (0, 1))))
    return tuple(found)


def load_friction(robot: Robot, runs: Sequence[Experiment], reference: Reference, widths: Floats) -> tuple[Term, ...]:
    """Friction that grows with the torque of the links, on every joint.

    Args:
        robot: The robot.
        runs: The data whose loads it covers.
        reference: Parameters whose links give the loads.
        widths: (k, n) widths of its steps through rest [rad/s or m/s].
    """
    links = reference.of_links(robot.dof)
    loads = np.max([np.abs(torque_along(robot, links.theta, run)).max(axis=0, initial=0.0) for run in runs], axis=0)
    return tuple(
        LoadFriction(friction=SmoothSign(joint=j, scale=float(width[j])), reference=links, limit=float(loads[j]))
        for width in widths
        for j in range(robot.dof)
    )
