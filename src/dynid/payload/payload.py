"""A load from joint torques or currents alone.

    unloaded:  tau = Y theta                  the arm's own parameters, friction included
    loaded:    tau = Y (theta + E phi)        the same, and the load's ten parameters on the link that carries it

With the base parameters beta = G theta both are one small least-squares problem on the triangles of blocks of time.
Which part of theta is unknown depends on the data: with an unloaded run all of beta, which then cancels with its
uncertainty (the order loaded, unloaded, unloaded, loaded cancels slow drifts as well); with a model of the arm nothing;
with a model and its uncertainty the links within that uncertainty, and friction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from dynid.arrays import Floats
from dynid.decompositions import eigh, one_blas_thread
from dynid.diagnosis.verdicts import LEVEL
from dynid.dynamics.inertia_maps import UPPER, transport
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.findings import Finding
from dynid.information import reduce_samples
from dynid.parameters.base import base_parameters
from dynid.payload.load import LITTLE, MUCH, Load, make_possible, remark
from dynid.payload.load_solver import MOST_BLOCKS, BlockEquations, LinearSolution, label_blocks, solve_load_equations
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.spatial import TINY, skew

Runs = Experiment | Sequence[Experiment]
Arm = tuple[float, float]
"""Standard deviations of each link's mass and moments of inertia (relative: 0.1 for ten percent) and of its centre of
mass along each axis [m]; friction, offsets and rotor inertias are not part of it, they are estimated with the load."""


def check_arm(arm: Arm) -> None:
    """Refuse numbers that are no standard deviations."""
    if not (len(arm) == 2 and all(0.0 <= std < np.inf for std in arm)):
        raise ArgumentError(
            f"the arm's uncertainty is {arm}, of masses and of centres of mass [m]",
            remedy="Give two finite numbers from 0 up, such as 0.1 and 0.01.",
        )


def arm_directions(robot: Robot, arm: Arm) -> Floats:
    """(p, 10 n) changes of a robot's parameters, each by one standard deviation of one cause, to first order.

    The causes are, for each body, its mass, three coordinates of its centre of mass and six moments about it.
    """
    (mass, com), changes = arm, np.zeros((len(robot.parameter_vector), 10 * robot.dof))
    for k, body in enumerate(robot.bodies):
        own, inertia, c = changes[10 * k : 10 * k + 10, 10 * k : 10 * k + 10], body.inertia, skew(body.inertia.com)
        own[:, 0] = mass * inertia.vector  # a heavier or lighter body of the same shape
        for axis, e in enumerate(map(skew, np.eye(3))):
            own[:6, 1 + axis] = -inertia.mass * com * (c @ e + e @ c)[UPPER]
            own[6 + axis, 1 + axis] = inertia.mass * com
        own[:6, 4:] = mass * abs(np.trace(inertia.about_com)) / 3.0 * np.eye(6)
    return changes


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
                self.robot, run.q, run.dq, run.ddq, run.effort, columns=self.columns, segments=labels, valid=run.valid
            )
            counts += reduced.samples.sum(axis=0)
            for segment in reduced.segments:
                channels = []
                for joint, support in enumerate(map(list, reduced.supports)):
                    R = reduced.rows(joint, segment)
                    W, side = R[:, :-1], R[:, -1]
                    channels.append(np.column_stack([W @ unknowns[support], side - W @ given[support]]))
                blocks.append(channels)
        return BlockEquations(blocks, counts, np.arange(self.robot.dof))


def payload_problem(
    robot: Robot, loaded: Runs, unloaded: Runs | None = None, *, link: str | None = None, arm: Arm | None = None
) -> PayloadProblem:
    """Loaded and unloaded runs as a problem; see `identify_payload` for the arguments."""
    after, before = (matched_runs(robot, runs) for runs in (loaded, [] if unloaded is None else unloaded))
    if not after or any(run.q.shape[1] != robot.dof for run in (*after, *before)):
        raise ArgumentError(f"robot '{robot.name}' has {robot.dof} moving joints", remedy="Give runs of all of them.")
    name = robot.bodies[-1].joint.child if link is None else link
    body, T = robot.link_body(name)
    if body < 0:
        raise ArgumentError(f"link '{name}' does not move", remedy="Name the link that carries the load.")
    base, known, links = base_parameters(robot), robot.parameter_vector, 10 * robot.dof
    every = np.eye(len(known))
    unknown, prior = every[:, :0], np.zeros(0)
    if before:
        known, unknown = np.zeros_like(known), every[:, list(base.columns)]
        prior = np.zeros(len(base.columns))
    elif arm is not None:
        inertial = arm_directions(robot, arm)
        inertial = inertial[:, np.any(inertial, axis=0)]
        unknown = np.hstack([inertial, every[:, links:]])
        prior = np.repeat([1.0, 0.0], [inertial.shape[1], len(known) - links])
        known = np.where(np.arange(len(known)) < links, known, 0.0)
    carried = every[:, 10 * body : 10 * body + 10] @ transport(T[:3, :3], T[:3, 3])
    if not any(np.any(run.ddq) for run in after):  # without any acceleration nothing determines inertias
        carried[:, :6] = 0.0
    G = base.grouping
    with_load, without = (G @ np.hstack([share * carried, unknown]) for share in (1.0, 0.0))
    runs = (*((run, with_load) for run in after), *((run, without) for run in before))
    return PayloadProblem(robot=robot, link=name, columns=base.columns, runs=runs, known=G @ known,
                          prior=np.append(np.zeros(10), prior))  # fmt: skip


@one_blas_thread()
def identify_payload(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs | None = None,
    link: str | None = None,
    arm: Arm | None = None,
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
        arm: How well the links of the model are known, for use without an unloaded run: standard deviations of each
            mass (relative, also of the moments of inertia) and of each centre of mass [m], such as (0.1, 0.01). They
            become part of the load's uncertainty; friction, offsets and rotor inertias are estimated with the load.
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
    if arm is not None:
        check_arm(arm)
        if unloaded is not None:
            raise ArgumentError(
                "with an unloaded run the arm's model does not matter", remedy="Give unloaded or arm, not both."
            )
    problem = payload_problem(robot, loaded, unloaded, link=link, arm=arm)
    equations = problem.equations()
    solution = solve_load_equations(equations, prior=problem.prior)
    if solution.undetermined[:10].all():
        raise IdentifiabilityError(
            "the joint torques reveal nothing about the load", remedy="Move the joints that carry it."
        )
    findings: Iterator[Finding] = iter(())
    if unloaded is not None:
        method = "unloaded and loaded run together"
    elif arm is None:
        method = "arm taken as known"
        findings = _judge_known_arm(problem, equations, solution)
    else:
        method = "arm known within limits"
        findings = _judge_arm(arm, problem.prior, solution)
    remedy = "Move all joints that carry the load, with acceleration."
    load = solution.load(problem.link, f"joint torques, {method}", remedy).with_findings(*findings)
    load = _add_gain_spread(load, problem, solution)
    load = load if tare is None else load.minus(tare)
    return make_possible(load) if physical else load


def _add_gain_spread(load: Load, problem: PayloadProblem, solution: LinearSolution) -> Load:
    """The load with the covariance that comes from uncertain gains of drives, and what to say about them.

    A gain that is wrong by the share e makes the torques of its joint (1 + e) times as large, and moves the estimate by
    ``e (sum_k w_k X_k^T X_k)^-1 w_j X_j^T y_j``. Drives err independently of one another.
    """
    stated = [run.gain_std for run, _ in problem.runs if run.gain_std is not None]
    if not stated:
        return load
    std: Floats = np.max(stated, axis=0)
    raw = problem.equations(np.zeros_like(problem.known))  # gains scale the whole torque, known parts included
    sides = [rows[:, :-1].T @ rows[:, -1] / s**2 for rows, s in zip(raw.channels, solution.noise_std, strict=True)]
    part = (solution.white @ np.stack(sides, axis=1) * std)[:10]
    covariance = load.covariance + part @ part.T
    share = 1.0 - float(load.covariance[9, 9] / max(float(covariance[9, 9]), TINY))
    message = f"{100 * share:.0f} % of the variance of the mass comes from the gains of the drives"
    remedy = "Calibrate them with a weighed load: dynid drives."
    exact = ", ".join(name for name, value in zip(problem.robot.joint_names, std, strict=True) if not value)
    if exact:
        message = f"the gains of the drives of {exact} count as exact: no interval contains their errors"
        remedy = 'State how well they are known, gain = "13.3 +- 0.7", or calibrate them: dynid drives.'
    said = remark("drive-gains", message, remedy, where="drives", evidence={"share of the variance": share})
    return replace(load.with_findings(said), covariance=covariance)


def _judge_known_arm(problem: PayloadProblem, equations: BlockEquations, solution: LinearSolution) -> Iterator[Finding]:
    message, remedy = "the arm's own parameters and friction are taken as known from its model", ""
    if not np.any(problem.robot.parameter_vector[10 * problem.robot.dof :]):
        message, remedy = f"{message}, which has no friction", "arm=(0, 0), or --arm 0,0, estimates it with the load."
    yield remark("arm-model", message, remedy, where="model")
    left = np.array([np.sum((rows @ np.append(solution.values, -1.0)) ** 2) for rows in equations.channels])
    carried = np.maximum(np.array([np.sum(rows[:, -1] ** 2) for rows in equations.channels]) - left, 0.0)
    shows = carried > LITTLE**2 * carried.max()
    share = float(np.sqrt(left[shows].sum() / max(float(carried[shows].sum()), TINY)))
    if share > MUCH:
        message = f"the torque that neither the arm's model nor the load explains is {100 * share:.0f} % of the load's "
        remedy = "Give a run without the load, an arm with identified parameters and friction, or state how well its "
        yield remark("arm-model", f"{message}torque", f"{remedy}model is known.", severity="warning", where="model",
                     evidence={"unexplained share": share})  # fmt: skip


def _judge_arm(arm: Arm, prior: Floats, solution: LinearSolution) -> Iterator[Finding]:
    """How much the uncertain arm matters, and whether it differs from its model by more than stated."""
    from_arm = float(np.sum((solution.white[9, 10:] * prior[10:]) ** 2))
    share = from_arm / max(float(solution.covariance[9, 9]), TINY)
    stated = f"masses within {100 * arm[0]:.3g} %, centres of mass within {1e3 * arm[1]:.3g} mm"
    message = f"the load was computed with the arm's model, whose uncertainty is stated as {stated} (one standard "
    message += f"deviation) and makes {100 * share:.0f} % of the variance of the mass; friction was estimated with it"
    yield remark("arm-model", message, where="model", evidence={"share of the variance": share})
    links = np.flatnonzero(prior)
    # the share of the prior variance that the data removed
    learnt, directions = eigh(np.eye(len(links)) - solution.white[np.ix_(links, links)])
    seen = learnt > LITTLE
    distance = float(np.sum((directions[:, seen].T @ solution.values[links]) ** 2 / learnt[seen]))
    count = max(1, int(np.count_nonzero(seen)))
    if distance > chi2.isf(LEVEL, count):
        departure = float(np.sqrt(distance / count))
        message = f"the arm differs from its model by more than stated ({departure:.1f} standard deviations, rms)"
        remedy = "State a larger uncertainty, or give a run without the load."
        yield remark("arm-model", message, remedy, severity="warning", where="model",
                     evidence={"departure [standard deviations, rms]": departure})  # fmt: skip
