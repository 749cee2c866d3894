"""A load from joint torques or currents alone.

    unloaded:  tau = Y theta                  the arm's own parameters, friction included
    loaded:    tau = Y (theta + E phi)        the same, and the load's ten parameters on the link that carries it

With the base parameters beta = G theta both are one small least-squares problem on the triangles of blocks of time.
Which part of theta is unknown depends on the data: with an unloaded run all of beta, which then cancels with its
uncertainty (the order loaded, unloaded, unloaded, loaded cancels slow drifts as well); with a model of the arm nothing;
with a model and an `ArmUncertainty` the links within that uncertainty, and friction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from dynid.arrays import Floats
from dynid.decompositions import eigh, one_blas_thread
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.findings import Finding
from dynid.information import reduce_samples
from dynid.load.load import UPPER, Load, make_possible, remark
from dynid.load.load_solver import (
    MOST_BLOCKS,
    BlockEquations,
    LinearSolution,
    label_blocks,
    solve_load_equations,
)
from dynid.parameters.base import base_parameters
from dynid.parameters.inertia_maps import transport
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import skew

UNEXPLAINED_SHARE = 0.2
"""Unexplained torque over the load's torque above which an arm taken as known makes the load doubtful; convention."""
NOTICEABLE = 0.01
"""Squared load torque of a joint, relative to the largest, from which on the load acts noticeably; convention."""
LEARNT = 0.1
"""Share of the prior variance that the data must remove for a direction to count in the arm's departure; convention."""
CHANCE = 1e-4
"""Probability below which an arm's departure from its model is not taken for chance; convention."""
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
            changes[:6, 1 + axis] = -inertia.mass * self.com * (c @ e + e @ c)[UPPER]
            changes[6 + axis, 1 + axis] = inertia.mass * self.com
        changes[:6, 4:] = self.mass * abs(np.trace(inertia.about_com)) / 3.0 * np.eye(6)
        return changes

    def __str__(self) -> str:
        return f"masses within {100 * self.mass:.3g} %, centres of mass within {1e3 * self.com:.3g} mm"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayloadProblem:
    """Loaded and unloaded runs of an arm; the load's ten unknowns come first, k of the arm follow."""

    robot: Robot
    """Geometry and terms of the arm."""
    link: str
    """Name of the link that carries the load, and in whose frame the load is described."""
    columns: tuple[int, ...]
    """(b,) columns of the robot's regressor whose parameters are the base parameters."""
    runs: tuple[tuple[Experiment, Floats], ...]
    """All experiments, and (b, 10 + k) the base parameters in each per unit of the unknowns."""
    known: Floats
    """(b,) base parameters that the arm's model gives; zero where they are estimated."""
    prior: Floats
    """(10 + k,) one over the prior standard deviation of each unknown; zero without prior knowledge."""

    def equations(self, known: Floats | None = None) -> BlockEquations:
        """The equations in blocks of time, one channel for each joint.

        Args:
            known: (b,) base parameters whose torque the right-hand side lacks; by default those of the model.
        """
        given = self.known if known is None else known
        total = sum(run.samples for run, _ in self.runs)
        blocks, counts = list[list[Floats]](), np.zeros(self.robot.dof)
        for run, unknowns in self.runs:
            stretches = np.split(np.arange(run.samples), np.flatnonzero(np.diff(run.segment)) + 1)
            labels = label_blocks(stretches, max(1, round(MOST_BLOCKS * run.samples / total)))
            reduced = reduce_samples(
                self.robot, run.q, run.dq, run.ddq, run.effort,
                columns=tuple(self.columns), segments=labels, valid=run.valid,
            )  # fmt: skip
            counts += reduced.samples.sum(axis=0)
            maps = [np.column_stack([unknowns, given])[list(support)] for support in reduced.supports]
            for segment in reduced.segments:
                own = [reduced.rows(joint, segment) for joint in range(self.robot.dof)]
                left = [R[:, :-1] @ map_ for R, map_ in zip(own, maps, strict=True)]
                blocks.append(
                    [np.column_stack([W[:, :-1], R[:, -1] - W[:, -1]]) for R, W in zip(own, left, strict=True)]
                )
        return BlockEquations(blocks, counts, np.arange(self.robot.dof))


def payload_problem(
    robot: Robot,
    loaded: Runs,
    unloaded: Runs | None = None,
    *,
    link: str | None = None,
    arm: ArmUncertainty | None = None,
) -> PayloadProblem:
    """Loaded and unloaded runs as a problem; see `identify_payload` for the arguments."""
    after = _as_runs(robot, loaded)
    before = () if unloaded is None else _as_runs(robot, unloaded)
    if before and arm is not None:
        raise ArgumentError(
            "with an unloaded run the arm's model does not matter", remedy="Give unloaded or arm, not both."
        )
    name = robot.bodies[-1].joint.child if link is None else link
    body, T = robot.link_body(name)
    if body < 0:
        raise ArgumentError(f"link '{name}' does not move", remedy="Name the link that carries the load.")
    base, model = base_parameters(robot), robot.parameter_vector
    every, links = np.eye(len(model)), 10 * robot.dof
    if before:
        known, unknown, prior = np.zeros_like(model), every[:, list(base.columns)], np.zeros(len(base.columns))
    elif arm is None:
        known, unknown, prior = model, every[:, :0], np.zeros(0)
    else:
        inertial = arm.directions(robot)
        inertial = inertial[:, np.any(inertial, axis=0)]
        known = np.where(np.arange(len(model)) < links, model, 0.0)
        unknown = np.hstack([inertial, every[:, links:]])
        prior = np.append(np.ones(inertial.shape[1]), np.zeros(len(model) - links))
    carried = every[:, 10 * body : 10 * body + 10] @ transport(T[:3, :3], T[:3, 3])
    if not any(np.any(run.ddq) for run in after):  # without any acceleration nothing determines inertias
        carried[:, :6] = 0.0
    G = base.grouping
    with_load, without = (G @ np.hstack([share * carried, unknown]) for share in (1.0, 0.0))
    return PayloadProblem(
        robot=robot,
        link=name,
        columns=base.columns,
        runs=(*((run, with_load) for run in after), *((run, without) for run in before)),
        known=G @ known,
        prior=np.append(np.zeros(10), prior),
    )


@one_blas_thread()
def identify_payload(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs | None = None,
    link: str | None = None,
    arm: ArmUncertainty | None = None,
    tare: Load | None = None,
    physical: bool = True,
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
    problem = payload_problem(robot, loaded, unloaded, link=link, arm=arm)
    equations = problem.equations()
    solution = solve_load_equations(equations, prior=problem.prior)
    is_open = solution.undetermined[:10]
    if is_open.all():
        raise IdentifiabilityError(
            "the joint torques reveal nothing about the load", remedy="Move the joints that carry it."
        )
    findings = list[Finding]()
    if is_open.any():
        remedy = "Move all joints that carry the load, with acceleration."
        findings.append(remark("load-open", "the motion leaves some of the ten parameters open", remedy))
    if unloaded is not None:
        method = "unloaded and loaded run together"
    elif arm is None:
        method = "arm taken as known"
        findings += _judge_known_arm(problem, equations, solution)
    else:
        method = "arm known within limits"
        from_arm = float(np.sum((solution.white[9, 10:] * problem.prior[10:]) ** 2))
        share = from_arm / max(float(solution.covariance[9, 9]), 1e-300)
        findings += _judge_arm(arm, share, _departure(problem.prior, solution))
    covariance, more = _add_gain_spread(problem, solution)
    load = Load(
        frame=problem.link,
        vector=np.where(is_open, 0.0, solution.values[:10]),
        covariance=covariance,
        undetermined=is_open,
        residual_std=solution.noise_std,
        method=f"joint torques, {method}",
        findings=(*findings, *more),
    )
    load = load if tare is None else load.minus(tare)
    return make_possible(load) if physical else load


def _add_gain_spread(problem: PayloadProblem, solution: LinearSolution) -> tuple[Floats, Sequence[Finding]]:
    """(10, 10) covariance of the load with the part that comes from uncertain gains of drives, and what to say.

    A gain that is wrong by the share e makes the torques of its joint (1 + e) times as large, and moves the estimate by
    ``e (sum_k w_k X_k^T X_k)^-1 w_j X_j^T y_j``. Drives err independently of one another.
    """
    own = solution.covariance[:10, :10]
    stated = [run.gain_std for run, _ in problem.runs if run.gain_std is not None]
    if not stated:
        return own, ()
    std: Floats = np.max(stated, axis=0)
    raw = problem.equations(np.zeros_like(problem.known))  # gains scale the whole torque, known parts included
    channels = [raw.channel(joint) for joint in range(problem.robot.dof)]
    sides = [rows[:, :-1].T @ rows[:, -1] / s**2 for rows, s in zip(channels, solution.noise_std, strict=True)]
    part = (solution.white @ np.stack(sides, axis=1) * std)[:10]
    covariance = own + part @ part.T
    share = 1.0 - float(own[9, 9] / max(float(covariance[9, 9]), 1e-300))
    message = f"{100 * share:.0f} % of the variance of the mass comes from the gains of the drives"
    remedy = "Calibrate them with a weighed load: dynid drives."
    exact = ", ".join(name for name, value in zip(problem.robot.joint_names, std, strict=True) if not value)
    if exact:
        message = f"the gains of the drives of {exact} count as exact: no interval contains their errors"
        remedy = 'State how well they are known, gain = "13.3 +- 0.7", or calibrate them: dynid drives.'
    return covariance, (
        remark("drive-gains", message, remedy, where="drives", evidence={"share of the variance": share}),
    )


def _judge_known_arm(problem: PayloadProblem, equations: BlockEquations, solution: LinearSolution) -> Iterator[Finding]:
    friction = np.any(problem.robot.parameter_vector[10 * problem.robot.dof :])
    yield remark(
        "arm-model",
        "the arm's own parameters and friction are taken as known from its model"
        + ("" if friction else ", which has no friction"),
        "" if friction else "ArmUncertainty(mass=0, com=0), or --arm 0,0, estimates friction with the load.",
        where="model",
    )
    channels = [equations.channel(joint) for joint in range(problem.robot.dof)]
    left = np.array([np.sum((rows @ np.append(solution.values, -1.0)) ** 2) for rows in channels])
    carried = np.maximum(np.array([np.sum(rows[:, -1] ** 2) for rows in channels]) - left, 0.0)
    shows = carried > NOTICEABLE * carried.max()
    share = float(np.sqrt(left[shows].sum() / max(float(carried[shows].sum()), 1e-300)))
    if share > UNEXPLAINED_SHARE:
        yield remark(
            "arm-model",
            f"the torque that neither the arm's model nor the load explains is {100 * share:.0f} % of the load's "
            "torque",
            "Give a run without the load, an arm with identified parameters and friction, or state how well its model "
            "is known.",
            severity="warning",
            where="model",
            evidence={"unexplained share": share},
        )


def _judge_arm(arm: ArmUncertainty, share: float, departure: float) -> Iterator[Finding]:
    yield remark(
        "arm-model",
        f"the load was computed with the arm's model, whose uncertainty is stated as {arm} (one standard deviation) "
        f"and makes {100 * share:.0f} % of the variance of the mass; friction was estimated with the load",
        where="model",
        evidence={"share of the variance": share},
    )
    if departure > 0.0:
        yield remark(
            "arm-model",
            f"the arm differs from its model by more than stated ({departure:.1f} standard deviations, rms)",
            "State a larger uncertainty, or give a run without the load.",
            severity="warning",
            where="model",
            evidence={"departure [standard deviations, rms]": departure},
        )


def _departure(prior: Floats, solution: LinearSolution) -> float:
    """Root mean square departure of an arm from its model [standard deviations]; 0 if chance explains it."""
    stated = np.flatnonzero(prior)
    # the share of the prior variance that the data removed
    learnt, directions = eigh(np.eye(len(stated)) - solution.white[np.ix_(stated, stated)])
    seen = learnt > LEARNT
    distance = float(np.sum((directions[:, seen].T @ solution.values[stated]) ** 2 / learnt[seen]))
    count = max(1, int(np.count_nonzero(seen)))
    return float(np.sqrt(distance / count)) if distance > chi2.isf(CHANCE, count) else 0.0


def _as_runs(robot: Robot, experiments: Runs) -> tuple[Experiment, ...]:
    """The experiments as a tuple; refused if they are not of this robot."""
    runs = matched_runs(robot, experiments)
    if not runs or any(run.q.shape[1] != robot.dof for run in runs):
        raise ArgumentError(f"robot '{robot.name}' has {robot.dof} moving joints", remedy="Give runs of all of them.")
    return runs
