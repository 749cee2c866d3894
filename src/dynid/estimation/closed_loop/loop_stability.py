"""The simulator of a robot in one control loop: as sharp dry friction as its integrator follows.

Which parameters make a simulated loop that is stable: neither its integration nor its sampling may chatter.

An estimate that underrates the inertia of a light joint makes a robot whose friction is too stiff for the integrator's
step, or whose damping is too strong for the law's rate. Its torques may still be near the measured ones; its motion is
not, and derivatives along it grow without bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigenvalues, eigvalsh
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.kernels import inertia_matrix
from dynid.loop.arm import Arm, control_tape
from dynid.loop.laws import ControlLaw
from dynid.loop.loop import Loop
from dynid.loop.pace import choose_friction_speed
from dynid.loop.sensitivity import compile_law_slopes
from dynid.loop.simulator import LoopSimulator
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tape import Program, Tape
from dynid.terms.base import Dependence


def dry_joints(robot: Robot) -> NDArray[np.bool_]:
    """(n,) joints with dry friction, that of motors which turn with several joints included."""
    dry = [j for placed in robot.terms if placed.term.dependence is Dependence.DIRECTION for j in placed.joints]
    return np.isin(np.arange(robot.dof), dry)


def loop_simulator(equations: Factors, loop: Loop) -> LoopSimulator:
    """The robot in a loop; its base parameters are inputs."""
    rough = _with_dry_friction(equations)
    sharp = choose_friction_speed(loop, rough)
    return LoopSimulator(Arm(equations.robot, equations.base.columns, sharp.friction_speeds), sharp, friction_of=rough)


def _with_dry_friction(equations: Factors) -> Robot:
    """The robot; dry friction of which its own values know nothing is that of ordinary least squares."""
    theta, base = equations.robot.parameter_vector.copy(), equations.base
    dry = [(k, c) for k, c in enumerate(base.columns) if base.layout[c].dependence is Dependence.DIRECTION]
    unknown = [(k, c) for k, c in dry if theta[c] == 0.0]
    if not unknown:
        return equations.robot
    beta = equations.information.weight(np.ones(equations.robot.dof)).solve(minimum_norm=True)
    for place, column in unknown:
        theta[column] = abs(beta[place])
    return equations.robot.with_parameters(theta)


INTEGRATED = 2.6
"""Largest step times rate of decay that the fourth-order method follows; beyond 2.78 it is unstable. Derivation, with
a reserve by convention."""
SAMPLED = 1.6
"""Largest control period times rate of decay; beyond 2 a sampled law overshoots by more than it corrects. Derivation,
with a reserve by convention."""
CHECKED = 16
"""Number of poses of a run at which the inertia matrix is checked. Convention."""
HASTY = 20.0
"""Times a joint's speed that a law may take from it in one control period; beyond 2 it overshoots. The reserve is a
convention: the robot near the data may be off."""
NUDGE = 1e-6
"""Share of the speed at which friction is full by which joints are moved to find its slope at rest. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopStability:
    """What a simulated loop can follow."""

    friction: Floats
    """(n, n, b) torque per velocity at rest, per unit of each base parameter"""
    damping: Floats
    """(K, n, n) torque of the law per velocity, at some poses"""
    step_s: float
    """Of the integrator [s]"""
    period_s: float
    """Of the law [s]"""

    @classmethod
    def of(cls, simulator: LoopSimulator, columns: Program, poses: Floats) -> LoopStability:
        """Linearise friction and law at rest.

        Args:
            simulator: Of the loop.
            columns: ``(q, dq, ddq) -> (n, b)``, friction smoothed.
            poses: (K, n) at which `holds` will be asked.
        """
        loop, n = simulator.loop, simulator.loop.dof
        nudge = NUDGE * min(loop.friction_speeds)
        moving = np.concatenate([nudge * np.eye(n), -nudge * np.eye(n)])
        rest = np.zeros_like(moving)
        ahead, behind = np.split(np.asarray(columns(rest, moving, rest)), 2)
        friction = (ahead - behind).transpose(1, 0, 2) / (2.0 * nudge)
        return cls(friction, law_damping(simulator.law, poses), loop.period_s / simulator.substeps, loop.period_s)

    def holds(self, inertia: Floats, beta: Floats) -> bool:
        """Whether inertia matrices (K, n, n) at the poses are possible, and friction and law slow enough for them."""
        if eigvalsh(inertia)[:, 0].min() <= 0.0:
            return False
        fastest = [
            float(np.abs(eigenvalues(np.linalg.solve(inertia, np.broadcast_to(slope, inertia.shape)))).max())
            for slope in (self.friction @ beta, self.damping)
        ]
        return fastest[0] * self.step_s < INTEGRATED and fastest[1] * self.period_s < SAMPLED


def sample_poses(run: Experiment) -> Floats:
    """(K, n) poses of an experiment at which it is asked whether its loop is stable."""
    return np.ascontiguousarray(run.q[:: max(1, run.samples // CHECKED)])


def law_damping(law: Tape, poses: Floats) -> Floats:
    """(K, n, n) torque of a recorded law per velocity, at rest on its reference at poses (K, n)."""
    count, n = poses.shape
    rest = np.zeros_like(poses)
    state, wanted = np.hstack([poses, rest, rest[:, :1]]), np.hstack([poses, rest, rest])
    slopes = compile_law_slopes(law, n, "numpy")(state, np.zeros((count, law.inputs[1].size)), wanted)
    return -np.asarray(slopes)[:, :n, n : 2 * n]


def check_law_damping(law: ControlLaw, robot: Robot, poses: Floats, rate_hz: float) -> None:
    """Check that a robot near the data survives the law's damping at this rate in one of the poses (K, n).

    Raises:
        ArgumentError: It survives in none.
    """
    damping = law_damping(control_tape(law, robot.dof, 1.0 / rate_hz), poses)
    slowed = np.linalg.solve(inertia_matrix(robot, poses), damping)
    most = float(np.abs(eigenvalues(slowed)).max(axis=1).min()) / rate_hz
    if most > HASTY:
        raise ArgumentError(
            f"the control law is not stable at {rate_hz:g} Hz: in one period its derivative part takes "
            f"{most:.2g} times the speed of a joint",
            remedy="Check kd and its unit (it acts on joints, not on motors), and the control rate.",
        )
