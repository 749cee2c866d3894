"""A load from joint torques or currents alone.

    unloaded:  tau = Y beta                 the arm's base parameters, friction included
    loaded:    tau = Y beta + Y_load phi    the same, and the load's ten parameters on the link that carries it

Both are one least-squares problem, ``[R_u 0; R_l E_base R_l E_load]`` of the two runs' triangles: what the arm itself
does cancels with its uncertainty. Runs in the order loaded, unloaded, unloaded, loaded cancel slow drifts as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.data.recording import Experiment
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.identification.load import Load
from dynid.identification.load_solver import correlation_inflation, implausible_inertia, resolved
from dynid.identification.physical_load import possible_load
from dynid.information import Information, reduce_samples
from dynid.kernels import kernel
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.parameters.inertia_maps import transport
from dynid.robot.model import Robot

__all__ = ["PayloadProblem", "Runs", "as_runs", "identify_payload", "payload_problem", "reduced_runs", "run_inflation"]

Floats = NDArray[np.float64]
Runs = Experiment | Sequence[Experiment]
ROUNDS = 4
RESOLUTION = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayloadProblem:
    """Everything that joint torques say of a load."""

    robot: Robot
    link: str
    """That carries the load, and in whose frame it is described."""
    base: BaseParameters
    """Of the arm."""
    loaded: Information
    """On the base columns and the ten of the carrying body."""
    unloaded: Information | None
    """On the base columns; None where the arm's parameters are taken as known."""
    runs: tuple[tuple[Experiment, bool], ...]
    """All experiments, and whether each was loaded."""

    @property
    def body(self) -> int:
        """Index of the body that carries the load."""
        return self.robot.link_body(self.link)[0]

    @property
    def load_columns(self) -> tuple[int, ...]:
        """(10,) columns of the carrying body in the robot's regressor."""
        return tuple(range(10 * self.body, 10 * self.body + 10))

    @property
    def to_body(self) -> Floats:
        """(10, 10) from the load's parameters in the link's frame to those in the body's."""
        T = self.robot.link_body(self.link)[1]
        return transport(T[:3, :3], T[:3, 3])

    def equations(self, weights: Floats) -> tuple[Floats, Floats]:
        """Rows and right-hand side of the whole problem: base parameters (b, none where known), then the load's ten.

        Args:
            weights: (n,) of each joint's squared residuals.
        """
        after = self.loaded.weight(weights)
        on_load = after.R[:, [after.columns.index(c) for c in self.load_columns]] @ self.to_body
        if self.unloaded is None:
            return on_load, after.z
        on_base = after.R[:, [after.columns.index(c) for c in self.base.columns]]
        before = self.unloaded.weight(weights)
        top = np.hstack([before.R, np.zeros((len(before.R), 10))])
        return np.vstack([top, np.hstack([on_base, on_load])]), np.concatenate([before.z, after.z])

    def residual_squares(self, values: Floats) -> Floats:
        """(n,) sum of squared residuals of each joint at a solution of `equations`."""
        combined = dict.fromkeys(self.loaded.columns, 0.0)
        for column, value in zip(self.load_columns, self.to_body @ values[-10:], strict=True):
            combined[column] += value
        if self.unloaded is None:
            return np.asarray(self.loaded.per_joint_residual(list(combined.values())).sum(axis=0))
        for column, value in zip(self.base.columns, values[:-10], strict=True):
            combined[column] += value
        squares = self.loaded.per_joint_residual(list(combined.values())).sum(axis=0)
        return np.asarray(squares + self.unloaded.per_joint_residual(values[:-10]).sum(axis=0))

    def unexplained(self, values: Floats) -> Floats:
        """(1,) residual over the load's own torque, over the joints on which the load shows at all."""
        left = self.residual_squares(values)
        carried = np.maximum(self.residual_squares(np.zeros_like(values)) - left, 0.0)
        shows = carried > 0.01 * carried.max()
        return np.sqrt([left[shows].sum() / max(float(carried[shows].sum()), 1e-300)])

    @property
    def samples(self) -> Floats:
        """(n,) number of equations of each joint."""
        before = 0 if self.unloaded is None else self.unloaded.samples.sum(axis=0)
        return np.asarray(self.loaded.samples.sum(axis=0) + before, dtype=float)

    def inflation(self, values: Floats, std: Floats) -> float:
        """Samples per independent sample, over all runs."""
        theta = self.robot.parameter_vector.copy()
        if self.unloaded is not None:
            theta = np.zeros_like(theta)
            theta[list(self.base.columns)] = values[:-10]
        added = theta.copy()
        added[list(self.load_columns)] += self.to_body @ values[-10:]
        return run_inflation(self.robot, [(run, added if is_loaded else theta) for run, is_loaded in self.runs], std)


def payload_problem(
    robot: Robot, loaded: Runs, unloaded: Runs | None = None, *, link: str | None = None, threads: int = 1
) -> PayloadProblem:
    """Reduce loaded and unloaded runs to a problem; see `identify_payload`."""
    after = as_runs(robot, loaded)
    before = () if unloaded is None else as_runs(robot, unloaded)
    name = robot.bodies[-1].joint.child if link is None else link
    body, _ = robot.link_body(name)
    if body < 0:
        raise ArgumentError(f"link '{name}' does not move", remedy="Name the link that carries the load.")
    base = base_parameters(robot)
    load_columns = range(10 * body, 10 * body + 10)
    columns = sorted({*base.columns, *load_columns} if before else load_columns)
    arm = None if before else robot
    return PayloadProblem(
        robot=robot,
        link=name,
        base=base,
        loaded=reduced_runs(robot, after, columns, arm, threads),
        unloaded=reduced_runs(robot, before, base.columns, None, threads) if before else None,
        runs=(*((run, True) for run in after), *((run, False) for run in before)),
    )


def identify_payload(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs | None = None,
    link: str | None = None,
    tare: Load | None = None,
    physical: bool = True,
    threads: int = 1,
) -> Load:
    """Identify a load from joint torques.

    Args:
        robot: Geometry and joint models, friction above all. Without an unloaded run its parameter values count as
            the known arm, friction included.
        loaded: Experiments with the load.
        unloaded: Experiments without it, best along the same motion and under the same conditions; with two of each
            take them in the order loaded, unloaded, unloaded, loaded.
        link: Link that carries the load and in whose frame it is described; the last body's by default.
        tare: A tool identified before, subtracted with its covariance.
        physical: Replace an estimate that no body can have by the nearest possible one, with a note.
        threads: How many threads reduce the samples.

    Returns:
        The load; what the torques cannot tell has infinite standard deviation.

    Raises:
        IdentifiabilityError: Nothing of the load can be told.
    """
    problem = payload_problem(robot, loaded, unloaded, link=link, threads=threads)
    load = _solved(problem)
    load = load if tare is None else load.minus(tare)
    return possible_load(load) if physical else load


def _solved(problem: PayloadProblem) -> Load:
    dof = problem.robot.dof
    std = np.ones(dof)
    for _ in range(ROUNDS):  # weights from the residuals of the round before
        rows, target = problem.equations(1.0 / std**2)
        values, covariance, undetermined = resolved(rows, target, RESOLUTION)
        squares = problem.residual_squares(values)
        share = 1.0 - min(0.9, rows.shape[1] / max(problem.samples.sum(), 1.0))
        std = np.sqrt(squares / np.maximum(problem.samples * share, 1.0))
        std = np.maximum(std, 1e-10 * max(float(std.max()), 1e-140))
    inflation = problem.inflation(values, std)
    covariance = covariance[-10:, -10:] * inflation
    open_ones = undetermined[-10:].copy()
    if not open_ones[9]:
        open_ones[:6] |= implausible_inertia(values[-10:], covariance)
    if open_ones.all():
        raise IdentifiabilityError(
            "the joint torques reveal nothing of the load", remedy="Move the joints that carry it."
        )
    notes = ["the motion leaves some of the ten parameters open"] * bool(open_ones.any())
    extras = {}
    if problem.unloaded is None:
        notes.append("the arm's own parameters and friction are taken as known from its model")
        extras["unexplained"] = problem.unexplained(values)
    how = "unloaded and loaded run together" if problem.unloaded is not None else "arm taken as known"
    return Load(
        frame=problem.link,
        vector=np.where(open_ones, 0.0, values[-10:]),
        covariance=covariance,
        undetermined=open_ones,
        residual_std=std,
        method=f"joint torques, {how}",
        notes=tuple(notes),
        extras=extras,
    )


def run_inflation(robot: Robot, runs: Sequence[tuple[Experiment, Floats]], std: Floats) -> float:
    """Samples per independent sample over several runs, each with the parameters (p,) that predict its torques."""
    torque = kernel(robot, "inverse_dynamics", symbolic_parameters=True)
    found = []
    for run, theta in runs:
        predicted = torque(run.q, run.dq, run.ddq, theta)
        residual = np.where(run.valid, run.effort - predicted, 0.0)
        found.append(correlation_inflation(residual / std, np.where(run.valid, predicted, 0.0) / std))
    return float(np.average(found, weights=[run.samples for run, _ in runs]))


def as_runs(robot: Robot, experiments: Runs) -> tuple[Experiment, ...]:
    """Experiments as a tuple, of the right robot."""
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    if not runs or any(run.q.shape[1] != robot.dof for run in runs):
        raise ArgumentError(f"robot '{robot.name}' has {robot.dof} moving joints", remedy="Give runs of all of them.")
    return runs


def reduced_runs(
    robot: Robot, runs: Sequence[Experiment], columns: Sequence[int], known_arm: Robot | None, threads: int
) -> Information:
    """The runs' equations on some columns, torques of a known arm taken off."""
    total: Information | None = None
    for run in runs:
        effort = run.effort
        if known_arm is not None:
            effort = effort - kernel(known_arm, "inverse_dynamics")(run.q, run.dq, run.ddq)
        part = reduce_samples(
            robot, run.q, run.dq, run.ddq, effort, columns=tuple(columns), valid=run.valid, threads=threads
        )
        total = part if total is None else total.merge(part.renumbered(max(total.segments) + 1))
    assert total is not None
    return total
