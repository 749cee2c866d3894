"""A load from joint torques or currents alone.

    unloaded:  tau = Y theta                  the arm's own parameters, friction included
    loaded:    tau = Y (theta + E phi)        the same, and the load's ten parameters on the link that carries it

With the base parameters beta = G theta both are one small least-squares problem on the triangles of the runs. What is
unknown of theta depends on what is given: with an unloaded run all of beta, which then cancels with its uncertainty
(runs in the order loaded, unloaded, unloaded, loaded cancel slow drifts as well); with a model of the arm nothing; with
a model and a statement of how well it is known, as much as that, and friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.information import Information, reduce_samples
from dynid.load.arm_uncertainty import ArmUncertainty
from dynid.load.coloured_noise import coloured, run_gram, student
from dynid.load.load import Load
from dynid.load.load_solver import implausible_inertia, resolved
from dynid.load.physical_load import possible_load
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.parameters.inertia_maps import transport
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["PayloadProblem", "Runs", "as_runs", "identify_payload", "payload_problem", "reduced_runs"]

Floats = NDArray[np.float64]
Runs = Experiment | Sequence[Experiment]
ROUNDS = 4
RESOLUTION = 1e-9
SHARE_WORTH_SAYING = 0.1
"""Of the mass's variance that the arm's uncertainty must make up to be mentioned."""
CHANCE = 1e-4
"""Probability below which an arm's departure from its model is no chance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayloadProblem:
    """Everything that joint torques say of a load: k unknowns of the arm first, the load's ten last."""

    robot: Robot
    link: str
    """That carries the load, and in whose frame it is described."""
    base: BaseParameters
    """Of the arm."""
    loaded: Information
    """On the base columns."""
    unloaded: Information | None
    """Likewise; None where the arm is known."""
    runs: tuple[tuple[Experiment, bool], ...]
    """All experiments, and whether each was loaded."""
    known: Floats
    """(p,) parameters of the arm that its model gives; zero where they are estimated."""
    arm: Floats
    """(p, k) the arm's parameters per unit of the unknowns."""
    prior: Floats
    """(k,) one over the standard deviation of the unknowns beforehand; zero where nothing is known."""

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

    def design(self, is_loaded: bool) -> Floats:
        """(p, k + 10) from the unknowns to the robot's parameters, in runs with or without the load.

        Runs without any acceleration say nothing of inertias, whatever the velocities.
        """
        on_load = np.zeros((len(self.known), 10))
        if is_loaded:
            on_load[list(self.load_columns)] = self.to_body
            if not any(np.any(run.ddq) for run, with_load in self.runs if with_load):
                on_load[:, :6] = 0.0
        return np.hstack([self.arm, on_load])

    def equations(self, weights: Floats) -> tuple[Floats, Floats]:
        """Rows and right-hand side of the whole problem.

        Args:
            weights: (n,) of each joint's squared residuals.
        """
        k = len(self.prior)
        rows = [np.diag(np.append(self.prior, np.zeros(10)))[:k]]
        target = [np.zeros(k)]
        for information, is_loaded in ((self.unloaded, False), (self.loaded, True)):
            if information is not None:
                factor = information.weight(weights)
                rows.append(factor.R @ self.base.grouping @ self.design(is_loaded))
                target.append(factor.z - factor.R @ (self.base.grouping @ self.known))
        return np.vstack(rows), np.concatenate(target)

    def residual_squares(self, values: Floats) -> Floats:
        """(n,) sum of squared residuals of each joint at a solution of `equations`."""
        total = np.zeros(self.robot.dof)
        for information, is_loaded in ((self.unloaded, False), (self.loaded, True)):
            if information is not None:
                beta = self.base.grouping @ (self.known + self.design(is_loaded) @ values)
                total += information.per_joint_residual(beta).sum(axis=0)
        return total

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

    def noise_gram(self, values: Floats, covariance: Floats, std: Floats) -> Floats:
        """(k + 10, k + 10) what the noise of all runs, correlated in time, does to the equations."""
        grams = [
            run_gram(self.robot, run, self.design(is_loaded), values, covariance, std, known=self.known)
            for run, is_loaded in self.runs
        ]
        return np.asarray(np.sum(grams, axis=0))


def payload_problem(
    robot: Robot,
    loaded: Runs,
    unloaded: Runs | None = None,
    *,
    link: str | None = None,
    arm: ArmUncertainty | None = None,
    threads: int = 1,
) -> PayloadProblem:
    """Reduce loaded and unloaded runs to a problem; see `identify_payload`."""
    after = as_runs(robot, loaded)
    before = () if unloaded is None else as_runs(robot, unloaded)
    if before and arm is not None:
        raise ArgumentError(
            "with an unloaded run the arm's model does not matter", remedy="Give unloaded or arm, not both."
        )
    name = robot.bodies[-1].joint.child if link is None else link
    if robot.link_body(name)[0] < 0:
        raise ArgumentError(f"link '{name}' does not move", remedy="Name the link that carries the load.")
    base = base_parameters(robot)
    known, unknown, prior = _arm_unknowns(robot, base, arm, bool(before))
    return PayloadProblem(
        robot=robot,
        link=name,
        base=base,
        loaded=reduced_runs(robot, after, base.columns, threads),
        unloaded=reduced_runs(robot, before, base.columns, threads) if before else None,
        runs=(*((run, True) for run in after), *((run, False) for run in before)),
        known=known,
        arm=unknown,
        prior=prior,
    )


def _arm_unknowns(
    robot: Robot, base: BaseParameters, arm: ArmUncertainty | None, with_unloaded: bool
) -> tuple[Floats, Floats, Floats]:
    """`PayloadProblem.known`, `arm` and `prior`."""
    model, every = robot.parameter_vector, np.eye(len(robot.parameter_vector))
    if with_unloaded:
        return np.zeros_like(model), every[:, list(base.columns)], np.zeros(len(base.columns))
    if arm is None:
        return model, every[:, :0], np.zeros(0)
    inertial, drives = arm.directions(robot), every[:, 10 * robot.dof :]
    inertial = inertial[:, np.any(inertial, axis=0)]
    known = np.where(np.arange(len(model)) < 10 * robot.dof, model, 0.0)
    return known, np.hstack([inertial, drives]), np.repeat([1.0, 0.0], [inertial.shape[1], drives.shape[1]])


def identify_payload(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs | None = None,
    link: str | None = None,
    arm: ArmUncertainty | None = None,
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
        arm: How well the links of the model are known, where there is no unloaded run: it goes into the load's
            uncertainty, and friction, offsets and rotors are estimated with the load instead of being taken as known.
        tare: A tool identified before, subtracted with its covariance.
        physical: Replace an estimate that no body can have by the nearest possible one, with a note.
        threads: How many threads reduce the samples.

    Returns:
        The load; what the torques cannot tell has infinite standard deviation.

    Raises:
        IdentifiabilityError: Nothing of the load can be told.
    """
    problem = payload_problem(robot, loaded, unloaded, link=link, arm=arm, threads=threads)
    load = _solved(problem, arm)
    load = load if tare is None else load.minus(tare)
    return possible_load(load) if physical else load


def _solved(problem: PayloadProblem, arm: ArmUncertainty | None) -> Load:
    std = np.ones(problem.robot.dof)
    for _ in range(ROUNDS):  # weights from the residuals of the round before
        rows, target = problem.equations(1.0 / std**2)
        values, covariance, undetermined = resolved(rows, target, RESOLUTION)
        squares = problem.residual_squares(values)
        share = 1.0 - min(0.9, rows.shape[1] / max(problem.samples.sum(), 1.0))
        std = np.sqrt(squares / np.maximum(problem.samples * share, 1.0))
        std = np.maximum(std, 1e-10 * max(float(std.max()), 1e-140))
    beforehand = np.diag(np.append(problem.prior, np.zeros(10)) ** 2)
    grown, growth = coloured(covariance, problem.noise_gram(values, covariance, std) + beforehand)
    spread = (grown * student(float(problem.samples.min()) * share / growth) ** 2)[-10:, -10:]
    open_ones = undetermined[-10:].copy()
    if not open_ones[9]:
        open_ones[:6] |= implausible_inertia(values[-10:], spread)
    if open_ones.all():
        raise IdentifiabilityError(
            "the joint torques reveal nothing of the load", remedy="Move the joints that carry it."
        )
    how, notes, extras = _foundation(problem, arm, values, covariance, spread)
    return Load(
        frame=problem.link,
        vector=np.where(open_ones, 0.0, values[-10:]),
        covariance=spread,
        undetermined=open_ones,
        residual_std=std,
        method=f"joint torques, {how}",
        notes=(*["the motion leaves some of the ten parameters open"] * bool(open_ones.any()), *notes),
        extras=extras,
    )


def _foundation(
    problem: PayloadProblem, arm: ArmUncertainty | None, values: Floats, covariance: Floats, spread: Floats
) -> tuple[str, list[str], dict[str, Floats]]:
    """What the result rests on: in a word, in sentences, in numbers."""
    if problem.unloaded is not None:
        return "unloaded and loaded run together", [], {}
    if arm is None:
        notes = ["the arm's own parameters and friction are taken as known from its model"]
        if not np.any(problem.known[10 * problem.robot.dof :]):
            notes.append("that model has no friction: ArmUncertainty(mass=0, com=0), or --arm 0,0, estimates it")
        return "arm taken as known", notes, {"unexplained": problem.unexplained(values)}
    from_arm = float(np.sum((covariance[-1, :-10] * problem.prior) ** 2))
    share = from_arm / max(float(spread[-1, -1]), 1e-300)
    notes = [f"this rests on the arm's model: {arm} (one standard deviation); friction was estimated with the load"]
    if share > SHARE_WORTH_SAYING:
        notes.append(f"{100 * share:.0f} % of the variance of the mass comes from what is not known of the arm")
    stated = np.flatnonzero(problem.prior)
    off = _surprise(values[stated], covariance[np.ix_(stated, stated)])
    extras = {"arm_share": np.array([share])}
    return "arm known within limits", notes, extras | ({"arm_off": np.array([off])} if off > 0.0 else {})


def _surprise(change: Floats, covariance: Floats) -> float:
    """Standard deviations, rms, by which an arm differs from its model; 0 where chance explains them.

    Args:
        change: (m,) estimated, in standard deviations as stated beforehand.
        covariance: (m, m) of it afterwards: what was learnt is the identity minus this.
    """
    learnt, directions = np.linalg.eigh(np.eye(len(change)) - covariance)
    seen = learnt > 0.1
    distance = float(np.sum((directions[:, seen].T @ change) ** 2 / learnt[seen]))
    count = max(1, int(np.count_nonzero(seen)))
    return float(np.sqrt(distance / count)) if distance > float(chdtri(count, CHANCE)) else 0.0


def as_runs(robot: Robot, experiments: Runs) -> tuple[Experiment, ...]:
    """Experiments as a tuple, of the right robot."""
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    if not runs or any(run.q.shape[1] != robot.dof for run in runs):
        raise ArgumentError(f"robot '{robot.name}' has {robot.dof} moving joints", remedy="Give runs of all of them.")
    return runs


def reduced_runs(robot: Robot, runs: Sequence[Experiment], columns: Sequence[int], threads: int) -> Information:
    """The runs' equations on some columns."""
    total: Information | None = None
    for run in runs:
        part = reduce_samples(
            robot, run.q, run.dq, run.ddq, run.effort, columns=tuple(columns), valid=run.valid, threads=threads
        )
        total = part if total is None else total.merge(part.renumbered(max(total.segments) + 1))
    assert total is not None
    return total
