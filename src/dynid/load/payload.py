"""A load from joint torques or currents alone.

    unloaded:  tau = Y theta                  the arm's own parameters, friction included
    loaded:    tau = Y (theta + E phi)        the same, and the load's ten parameters on the link that carries it

With the base parameters beta = G theta both are one small least-squares problem on the triangles of the runs. Which
part of theta is unknown depends on the data: with an unloaded run all of beta, which then cancels with its uncertainty
(the order loaded, unloaded, unloaded, loaded cancels slow drifts as well); with a model of the arm nothing; with a
model and an `ArmUncertainty` the links within that uncertainty, and friction. With nothing known about the arm only the
last body together with its load can be identified (`identify_end_link`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.noisy.gain_uncertainty import check_gains, common_gain_std, gain_covariance
from dynid.findings import Finding
from dynid.information import Information, reduce_samples
from dynid.load.load import Load, make_possible
from dynid.load.load_solver import (
    find_implausible_inertia,
    find_open_moments,
    inertia_prior,
    inflate_covariance,
    run_spectral_gram,
    solve_minimum_norm,
    student_factor,
)
from dynid.parameters.base import base_parameters
from dynid.parameters.base_set import BaseParameters
from dynid.parameters.inertia_maps import transport
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import inverse_transform, skew

_UPPER = np.triu_indices(3)
ROUNDS = 4
"""Rounds of weighting by the residuals of the round before; convention: the weights change little after two."""
RESOLUTION = 1e-9
"""Smallest relative singular value of the scaled equations that counts as determined; rounding errors are smaller."""
UNEXPLAINED_SHARE = 0.2
"""Unexplained torque over the load's torque above which an arm taken as known makes the load doubtful; convention."""
NOTICEABLE = 0.01
"""Squared load torque of a joint, relative to the largest, from which on the load acts noticeably; convention."""
LEARNT = 0.1
"""Share of the prior variance that the data must remove for a direction to count in the arm's departure; convention."""
NOTEWORTHY_SHARE = 0.1
"""Share of the variance of the mass above which the arm's uncertainty is mentioned; convention."""
CHANCE = 1e-4
"""Probability below which an arm's departure from its model is not taken for chance; convention."""
STATES = 400
"""Number of states from which the base parameters of a motion are found; convention."""
Runs = Experiment | Sequence[Experiment]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmUncertainty:
    """Uncertainty of an arm's model: standard deviations of its links, independent of one another.

    Friction, offsets and rotor inertias are not part of it: they are estimated together with the load.
    """

    mass: float
    """Relative standard deviation of the mass of each link, 0.1 for ten percent; also of its moments of inertia."""
    com: float
    """Standard deviation of the centre of mass of each link along each axis [m]."""

    def __post_init__(self) -> None:
        """Refuse numbers that are no standard deviations."""
        if not (0.0 <= self.mass < np.inf and 0.0 <= self.com < np.inf):
            raise ArgumentError(
                f"the arm's uncertainty is {self.mass} of masses and {self.com} m of centres of mass",
                remedy="Give two finite numbers from 0 up, such as 0.1 and 0.01.",
            )

    def directions(self, robot: Robot) -> Floats:
        """(p, 10 n) changes of the robot's parameters, each by one standard deviation of one cause.

        The causes are, for each body, its mass, three coordinates of its centre of mass and six moments about it.
        """
        changes = np.zeros((len(robot.parameter_vector), 10 * robot.dof))
        for k, body in enumerate(robot.bodies):
            own = slice(10 * k, 10 * k + 10)
            changes[own, own] = self._body_directions(body.inertia)
        return changes

    def _body_directions(self, inertia: Inertia) -> Floats:
        """(10, 10) changes of the parameters of one body, to first order."""
        changes = np.zeros((10, 10))
        changes[:, 0] = self.mass * inertia.vector  # a heavier or lighter body of the same shape
        c = skew(inertia.com)
        for axis, unit in enumerate(np.eye(3)):
            e = skew(unit)
            changes[:6, 1 + axis] = -inertia.mass * self.com * (c @ e + e @ c)[_UPPER]
            changes[6 + axis, 1 + axis] = inertia.mass * self.com
        changes[:6, 4:] = self.mass * abs(np.trace(inertia.about_com)) / 3.0 * np.eye(6)
        return changes

    def __str__(self) -> str:
        return f"masses within {100 * self.mass:.3g} %, centres of mass within {1e3 * self.com:.3g} mm"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayloadProblem:
    """The equations of loaded and unloaded runs: k unknowns of the arm first, the ten of the load last."""

    robot: Robot
    """Geometry and terms of the arm."""
    link: str
    """Name of the link that carries the load, and in whose frame the load is described."""
    base: BaseParameters
    """Base parameters of the arm."""
    loaded: Information
    """Reduced equations of the loaded runs, on the columns of the base parameters."""
    unloaded: Information | None
    """Reduced equations of the unloaded runs, on the same columns; None if there is no unloaded run."""
    runs: tuple[tuple[Experiment, bool], ...]
    """All experiments, and whether each was loaded."""
    known: Floats
    """(p,) parameters of the arm that its model gives; zero where they are estimated."""
    arm: Floats
    """(p, k) the arm's parameters per unit of the unknowns."""
    prior: Floats
    """(k,) one over the prior standard deviation of each unknown; zero without prior knowledge."""
    load_prior: Floats = field(default_factory=lambda: np.zeros(10))
    """(10,) the same for the load's parameters."""

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
        """(10, 10) maps the load's parameters in the link's frame to those in the body's frame."""
        T = self.robot.link_body(self.link)[1]
        return transport(T[:3, :3], T[:3, 3])

    @property
    def parts(self) -> tuple[tuple[Information, bool], ...]:
        """Reduced equations, and whether they are of loaded runs: unloaded ones first, if there are any."""
        loaded = (self.loaded, True)
        return (loaded,) if self.unloaded is None else ((self.unloaded, False), loaded)

    def design(self, is_loaded: bool) -> Floats:
        """(p, k + 10) maps the unknowns to the robot's parameters in runs with or without the load.

        Runs without any acceleration do not determine inertias, whatever the velocities.
        """
        on_load = np.zeros((len(self.known), 10))
        if is_loaded:
            on_load[list(self.load_columns)] = self.to_body
            if not any(np.any(run.ddq) for run, with_load in self.runs if with_load):
                on_load[:, :6] = 0.0
        return np.hstack([self.arm, on_load])

    def equations(self, weights: Floats) -> tuple[Floats, Floats]:
        """Rows (r, k + 10) and right-hand side (r,) of the whole problem.

        Args:
            weights: (n,) weight of the squared residuals of each joint.
        """
        before = np.append(self.prior, self.load_prior)
        rows, target = [np.diag(before)], [np.zeros(len(before))]
        for information, is_loaded in self.parts:
            factor = information.weight(weights)
            rows.append(factor.R @ self.base.grouping @ self.design(is_loaded))
            target.append(factor.z - factor.R @ (self.base.grouping @ self.known))
        return np.vstack(rows), np.concatenate(target)

    def residual_squares(self, values: Floats) -> Floats:
        """(n,) sum of squared residuals of each joint at a solution of `equations`."""
        total = np.zeros(self.robot.dof)
        for information, is_loaded in self.parts:
            beta = self.base.grouping @ (self.known + self.design(is_loaded) @ values)
            total += information.per_joint_residual(beta).sum(axis=0)
        return total

    def unexplained_share(self, values: Floats) -> float:
        """Residual divided by the load's own torque, over the joints on which the load acts noticeably."""
        left = self.residual_squares(values)
        carried = np.maximum(self.residual_squares(np.zeros_like(values)) - left, 0.0)
        shows = carried > NOTICEABLE * carried.max()
        return float(np.sqrt(left[shows].sum() / max(float(carried[shows].sum()), 1e-300)))

    @property
    def samples(self) -> Floats:
        """(n,) number of equations of each joint."""
        counts = [information.samples.sum(axis=0) for information, _ in self.parts]
        return np.asarray(np.sum(counts, axis=0), dtype=float)

    def noise_gram(self, values: Floats, covariance: Floats, std: Floats) -> Floats:
        """(k + 10, k + 10) sum of the spectral grams of all runs, for noise that is correlated in time."""
        grams = [
            run_spectral_gram(self.robot, run, self.design(is_loaded), values, covariance, std, known=self.known)
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
    """Reduce loaded and unloaded runs to a problem; see `identify_payload` for the arguments."""
    after = _as_runs(robot, loaded)
    before = () if unloaded is None else _as_runs(robot, unloaded)
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
        loaded=_reduce_runs(robot, after, base.columns, threads),
        unloaded=_reduce_runs(robot, before, base.columns, threads) if before else None,
        runs=(*((run, True) for run in after), *((run, False) for run in before)),
        known=known,
        arm=unknown,
        prior=prior,
    )


def _arm_unknowns(
    robot: Robot, base: BaseParameters, arm: ArmUncertainty | None, with_unloaded: bool
) -> tuple[Floats, Floats, Floats]:
    """The fields `known`, `arm` and `prior` of `PayloadProblem`."""
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
        robot: Geometry and terms, friction above all. Without an unloaded run its parameter values count as
            the known arm, friction included.
        loaded: Experiments with the load.
        unloaded: Experiments without the load, best along the same motion and under the same conditions; record two of
            each in the order loaded, unloaded, unloaded, loaded.
        link: Link that carries the load and in whose frame it is described; by default the link of the last body.
        arm: Uncertainty of the links of the model, for use without an unloaded run: it becomes part of the load's
            uncertainty, and friction, offsets and rotor inertias are estimated with the load.
        tare: A tool identified before, subtracted with its covariance.
        physical: Replace an estimate that no body can have by the nearest possible one, with a finding.
        threads: Number of threads that reduce the samples.

    Returns:
        The load; parameters that the torques do not determine have infinite standard deviation.

    Raises:
        IdentifiabilityError: The torques determine none of the ten parameters.

    Example:
        >>> held = robot.with_body("box", parent="link3", inertia=load.inertia)
        >>> log = dynid.simulate_experiment(held, motion, rate_hz=100, duration_s=6)
        >>> loaded = dynid.process(log, cutoff_hz=10)
        >>> round(dynid.identify_payload(robot, loaded=loaded, unloaded=run).mass, 1)
        2.0
    """
    problem = payload_problem(robot, loaded, unloaded, link=link, arm=arm, threads=threads)
    load = _solve(problem, arm)
    load = load if tare is None else load.minus(tare)
    return make_possible(load) if physical else load


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Solution:
    """Solution of a `PayloadProblem` for all k + 10 unknowns."""

    values: Floats
    """(k + 10,)"""
    covariance: Floats
    """(k + 10, k + 10) under white noise"""
    spread: Floats
    """(10, 10) covariance of the load's parameters, for noise that is correlated in time"""
    undetermined: NDArray[np.bool_]
    """(10,) which of the load's parameters the data leave open"""
    std: Floats
    """(n,) standard deviation of the residual of each joint [N m or N]"""
    from_gains: Floats
    """(10, 10) part of the spread that comes from uncertain gains of drives"""


def _solve(problem: PayloadProblem, arm: ArmUncertainty | None) -> Load:
    problem, solution = _judge_moments(problem, _solve_torques(problem))
    values, open_ones = solution.values, solution.undetermined
    if open_ones.all():
        raise IdentifiabilityError(
            "the joint torques reveal nothing about the load", remedy="Move the joints that carry it."
        )
    method, findings, extras = _foundation(problem, arm, values, solution.covariance, solution.spread)
    stated = common_gain_std([run for run, _ in problem.runs])
    if stated is not None:
        share = float(solution.from_gains[9, 9] / max(float(solution.spread[9, 9]), 1e-300))
        findings += check_gains(stated, problem.robot.joint_names, share)
    return Load(
        frame=problem.link,
        vector=np.where(open_ones, 0.0, values[-10:]),
        covariance=solution.spread,
        undetermined=open_ones,
        residual_std=solution.std,
        method=f"joint torques, {method}",
        findings=(*[_OPEN] * bool(open_ones.any()), *findings),
        extras=extras,
    )


def _judge_moments(problem: PayloadProblem, plain: _Solution) -> tuple[PayloadProblem, _Solution]:
    """The problem and its solution; once more with a weak prior for all moments where the data leave some open."""
    load, is_mass_open = plain.values[-10:], bool(plain.undetermined[9])
    implausible = find_implausible_inertia(load, plain.spread, is_mass_open=is_mass_open)
    if not (plain.undetermined[:6] | implausible).any():
        return problem, plain
    prior = inertia_prior(load, is_mass_open=is_mass_open)
    problem = replace(problem, load_prior=prior)
    solution = _solve_torques(problem)
    undetermined = plain.undetermined.copy()  # the prior is for moments of inertia only
    undetermined[:6] = find_open_moments(solution.spread, prior)
    return problem, replace(solution, undetermined=undetermined)


def _solve_torques(problem: PayloadProblem) -> _Solution:
    std = np.ones(problem.robot.dof)
    for _ in range(ROUNDS):  # weights from the residuals of the round before
        rows, target = problem.equations(1.0 / std**2)
        values, covariance, undetermined = solve_minimum_norm(rows, target, RESOLUTION)
        squares = problem.residual_squares(values)
        share = 1.0 - min(0.9, rows.shape[1] / max(problem.samples.sum(), 1.0))
        std = np.sqrt(squares / np.maximum(problem.samples * share, 1.0))
        std = np.maximum(std, 1e-10 * max(float(std.max()), 1e-140))
    beforehand = np.diag(np.append(problem.prior, problem.load_prior) ** 2)
    grown, growth = inflate_covariance(covariance, problem.noise_gram(values, covariance, std) + beforehand)
    spread = (grown * student_factor(float(problem.samples.min()) * share / growth) ** 2)[-10:, -10:]
    from_gains = _gain_spread(problem, covariance, std)
    return _Solution(
        values=values,
        covariance=covariance,
        spread=spread + from_gains,
        undetermined=undetermined[-10:],
        std=std,
        from_gains=from_gains,
    )


def _gain_spread(problem: PayloadProblem, covariance: Floats, std: Floats) -> Floats:
    """(10, 10) covariance of the load that comes from uncertain gains of drives."""
    stated = common_gain_std([run for run, _ in problem.runs])
    if stated is None:
        return np.zeros((10, 10))
    sides = np.zeros((len(covariance), len(std)))
    for joint in np.flatnonzero(stated):
        alone = np.where(np.arange(len(std)) == joint, 1.0 / std**2, 0.0)
        for information, is_loaded in problem.parts:
            factor = information.weight(alone)
            sides[:, joint] += (factor.R @ problem.base.grouping @ problem.design(is_loaded)).T @ factor.z
    return gain_covariance(covariance, sides, stated)[-10:, -10:]


_OPEN = Finding(
    code="parameters-open",
    severity="note",
    where="load",
    message="the motion leaves some of the ten parameters open",
    remedy="Move all joints that carry the load, with acceleration.",
)
_END_LINK = Finding(
    code="end-link",
    severity="note",
    where="load",
    message="a load on the last body acts as that body does, so that joint torques show the two only together, and "
    "not the mass",
    remedy="Give a run without the load, or state how well the arm's model is known.",
)
_ASSUMED = Finding(
    code="arm-assumed",
    severity="note",
    where="model",
    message="the arm's own parameters and friction are taken as known from its model",
)
_FRICTIONLESS = Finding(
    code="arm-frictionless",
    severity="note",
    where="model",
    message="the arm's model has no friction",
    remedy="ArmUncertainty(mass=0, com=0), or --arm 0,0, estimates friction with the load.",
)


def _foundation(
    problem: PayloadProblem, arm: ArmUncertainty | None, values: Floats, covariance: Floats, spread: Floats
) -> tuple[str, list[Finding], dict[str, Floats]]:
    """Basis of the result: a description, findings, and `Load.extras`."""
    if problem.unloaded is not None:
        return "unloaded and loaded run together", [], {}
    if arm is None:
        return "arm taken as known", list(_known_arm_findings(problem, values)), {}
    from_arm = float(np.sum((covariance[-1, :-10] * problem.prior) ** 2))
    share = from_arm / max(float(spread[-1, -1]), 1e-300)
    stated = np.flatnonzero(problem.prior)
    departure = _departure(values[stated], covariance[np.ix_(stated, stated)])
    return "arm known within limits", list(_arm_findings(arm, share, departure)), {"arm_share": np.array([share])}


def _known_arm_findings(problem: PayloadProblem, values: Floats) -> Iterator[Finding]:
    yield _ASSUMED
    if not np.any(problem.known[10 * problem.robot.dof :]):
        yield _FRICTIONLESS
    share = problem.unexplained_share(values)
    if share > UNEXPLAINED_SHARE:
        yield Finding(
            code="arm-unexplained",
            severity="warning",
            where="model",
            message=f"the torque that neither the arm's model nor the load explains is {100 * share:.0f} % of the "
            "load's torque",
            remedy="Give a run without the load, an arm with identified parameters and friction, or state how well its "
            "model is known.",
            evidence={"unexplained share": share},
        )


def _arm_findings(arm: ArmUncertainty, share: float, departure: float) -> Iterator[Finding]:
    yield Finding(
        code="arm-limits",
        severity="note",
        where="model",
        message=f"the load was computed with the arm's model, whose uncertainty is stated as {arm} (one standard "
        "deviation); friction was estimated beside the load",
        evidence={"relative std of masses": arm.mass, "std of centres of mass [m]": arm.com},
    )
    if share > NOTEWORTHY_SHARE:
        yield Finding(
            code="arm-dominates",
            severity="note",
            where="model",
            message=f"{100 * share:.0f} % of the variance of the mass comes from the uncertainty of the arm",
            evidence={"share of the variance": share},
        )
    if departure > 0.0:
        yield Finding(
            code="arm-departs",
            severity="warning",
            where="model",
            message=f"the arm differs from its model by more than stated ({departure:.1f} standard deviations, rms)",
            remedy="State a larger uncertainty, or give a run without the load.",
            evidence={"departure [standard deviations, rms]": departure},
        )


def _departure(change: Floats, covariance: Floats) -> float:
    """Root mean square departure of an arm from its model [standard deviations]; 0 if chance explains it.

    Args:
        change: (m,) estimated changes of the arm, in prior standard deviations.
        covariance: (m, m) posterior covariance of the changes; the data's share is the identity minus this matrix.
    """
    learnt, directions = eigh(np.eye(len(change)) - covariance)
    seen = learnt > LEARNT
    distance = float(np.sum((directions[:, seen].T @ change) ** 2 / learnt[seen]))
    count = max(1, int(np.count_nonzero(seen)))
    return float(np.sqrt(distance / count)) if distance > float(chdtri(count, CHANCE)) else 0.0


def _as_runs(robot: Robot, experiments: Runs) -> tuple[Experiment, ...]:
    """The experiments as a tuple; refused if they are not of this robot."""
    runs = matched_runs(robot, experiments)
    if not runs or any(run.q.shape[1] != robot.dof for run in runs):
        raise ArgumentError(f"robot '{robot.name}' has {robot.dof} moving joints", remedy="Give runs of all of them.")
    return runs


def _reduce_runs(robot: Robot, runs: Sequence[Experiment], columns: Sequence[int], threads: int) -> Information:
    """Reduce the equations of all runs on some columns."""
    total, *rest = (
        reduce_samples(
            robot, run.q, run.dq, run.ddq, run.effort, columns=tuple(columns), valid=run.valid, threads=threads
        )
        for run in runs
    )
    for part in rest:
        total = total.merge(part.renumber(max(total.segments) + 1))
    return total


def identify_end_link(robot: Robot, experiments: Runs, *, link: str | None = None, threads: int = 1) -> Load:
    """Identify the last body together with all that it carries, when nothing is known about the arm.

    The result holds only base parameters that consist of this body's own parameters alone; the mass is never among
    them. With a known or unloaded arm use `identify_payload`.

    Args:
        robot: Geometry and terms.
        experiments: One or several experiments, all with the same load.
        link: A link of the last body, in whose frame the result is given; by default the link of the last body itself.
        threads: Number of threads that reduce the samples.

    Example:
        >>> found = dynid.load.identify_end_link(robot, run)
        >>> found.frame
        'link3'
    """
    runs = _as_runs(robot, experiments)
    body = robot.dof - 1
    moving = [np.concatenate([getattr(run, name) for run in runs]) for name in ("q", "dq", "ddq")]
    some = max(1, len(moving[0]) // STATES)
    base = base_parameters(robot, states=tuple(values[::some] for values in moving))
    kept = _estimated_parameters(base, quasi_static=not np.any(moving[2]))
    information = _reduce_runs(robot, runs, [base.columns[k] for k in kept], threads)
    std = np.ones(robot.dof)
    for _ in range(ROUNDS):
        factor = information.weight(1.0 / std**2)
        values, covariance, undetermined = solve_minimum_norm(factor.R, factor.z, RESOLUTION)
        squares = information.per_joint_residual(values).sum(axis=0)
        std = np.sqrt(squares / np.maximum(information.samples.sum(axis=0), 1))
        std = np.maximum(std, 1e-10 * max(float(std.max()), 1e-140))  # joints without a sample do not divide by zero
    own = range(10 * body, 10 * body + 10)
    alone = [c in own and np.count_nonzero(base.grouping[k]) == 1 for k, c in zip(kept, information.columns)]
    known = np.flatnonzero(np.array(alone) & ~undetermined)
    places = [information.columns[k] - 10 * body for k in known]
    vector, spread, open_ones = np.zeros(10), np.zeros((10, 10)), np.ones(10, dtype=bool)
    vector[places], open_ones[places] = values[known], False
    design = np.eye(len(base.layout))[:, list(information.columns)]
    grams = [run_spectral_gram(robot, run, design, values, covariance, std) for run in runs]
    grown, _ = inflate_covariance(covariance, np.sum(grams, axis=0))
    spread[np.ix_(places, places)] = grown[np.ix_(known, known)]
    load = Load(
        frame=robot.bodies[-1].joint.child,
        vector=vector,
        covariance=spread,
        undetermined=open_ones,
        residual_std=std,
        method="joint torques, arm unknown: last body and load together",
        findings=(_END_LINK,),
    )
    if link is None or link == load.frame:
        return load
    T = robot.link_body(link)[1]
    return load.in_frame(inverse_transform(T), link)


def _estimated_parameters(base: BaseParameters, quasi_static: bool) -> list[int]:
    """Indices of the base parameters to estimate: without accelerations none of the inertias."""
    kinds = [base.layout[column].kind for column in base.columns]
    return [k for k, kind in enumerate(kinds) if not (quasi_static and kind == "inertia")]
