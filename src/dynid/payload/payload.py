"""Identify a load from joint torques or currents alone.

    unloaded:  tau = Y theta                  theta: the arm's own parameters, friction included
    loaded:    tau = Y (theta + E phi)        phi: the load's ten parameters, E (p, 10) places them on its link

Y (n, p) is the regressor of n joints. Only the base parameters beta = G theta, G (b, p), can be determined. The rows of
each joint in each block of time are compressed to a triangle (QR), and one small least-squares problem remains, which
`dynid.payload.load_solver` solves. What is estimated together with the load depends on what is given:

- An unloaded run: all of beta, from both runs. Its uncertainty becomes part of that of the load. (Runs in the order
  loaded, unloaded, unloaded, loaded cancel slow drifts as well.)
- Only a model of the arm: nothing; the model's parameters count as known.
- A model and its uncertainty: friction, offsets and rotor inertias freely, and the links with the model as a prior.

`identify_payload` is the public function; `dynid load` calls it with processed experiments of torques or currents.
`payload_problem` is also used by `dynid.payload.drive_gains`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from dynid.array_types import Floats
from dynid.data_reduction import reduce_samples
from dynid.decompositions import eigh, one_blas_thread
from dynid.diagnosis.verdicts import LEVEL
from dynid.dynamics.inertia_maps import UPPER, transport
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.findings import Finding
from dynid.identifiability.base import base_parameters
from dynid.payload.load import LARGE_SHARE, SMALL_SHARE, Load, make_possible, remark
from dynid.payload.load_solver import MOST_BLOCKS, BlockEquations, LinearSolution, label_blocks, solve_load_equations
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.spatial import TINY, skew

Runs = Experiment | Sequence[Experiment]


class ArmUncertainty(NamedTuple):
    """How well the links of an arm's model are known; friction, offsets and rotor inertias are not part of it."""

    mass: float
    """Relative standard deviation of each link's mass and moments of inertia: 0.1 for ten percent."""
    com: float
    """Standard deviation of each link's centre of mass along each axis [m]."""


def check_arm(arm: tuple[float, float]) -> None:
    """Refuse an `ArmUncertainty` whose numbers are no standard deviations."""
    if not (len(arm) == 2 and all(0.0 <= std < np.inf for std in arm)):
        raise ArgumentError(
            f"the arm's uncertainty is {arm}, of masses and of centres of mass [m]",
            remedy="Give two finite numbers from 0 up, such as 0.1 and 0.01.",
        )


def arm_directions(robot: Robot, arm: tuple[float, float]) -> Floats:
    """Compute the changes (p, 10 n) of a robot's parameters by one standard deviation of each cause, to first order.

    The causes are, for each body, its mass, three coordinates of its centre of mass and six moments about it.

    Args:
        robot: The robot with p parameters.
        arm: The `ArmUncertainty`.
    """
    std = ArmUncertainty(*arm)
    changes = np.zeros((len(robot.parameter_vector), 10 * robot.dof))
    for k, body in enumerate(robot.bodies):
        own = changes[10 * k : 10 * k + 10, 10 * k : 10 * k + 10]  # rows: six moments, three first moments, mass
        inertia = body.inertia
        c = skew(inertia.com)
        own[:, 0] = std.mass * inertia.vector  # a heavier or lighter body of the same shape
        for axis, e in enumerate(map(skew, np.eye(3))):
            own[:6, 1 + axis] = -inertia.mass * std.com * (c @ e + e @ c)[UPPER]
            own[6 + axis, 1 + axis] = inertia.mass * std.com
        # each of the six moments about the centre of mass by a share of the mean principal moment
        own[:6, 4:] = std.mass * abs(np.trace(inertia.about_com)) / 3.0 * np.eye(6)
    return changes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayloadProblem:
    """Loaded and unloaded runs of an arm. The unknowns are the load's ten parameters, then k of the arm."""

    robot: Robot
    """Geometry and terms of the arm."""
    link: str
    """Name of the link that carries the load, and in whose frame the load is described."""
    columns: tuple[int, ...]
    """(b,) columns of the robot's regressor that stand for the base parameters."""
    runs: tuple[tuple[Experiment, Floats], ...]
    """Each experiment with the matrix (b, 10 + k) from the unknowns to the base parameters in it."""
    known: Floats
    """(b,) the part of the base parameters that the arm's model gives; zero where they are estimated."""
    prior: Floats
    """(10 + k,) inverse prior standard deviation of each unknown; zero without prior knowledge."""

    def equations(self, known: Floats | None = None) -> BlockEquations:
        """Reduce the experiments to equations in blocks of time, one channel for each joint.

        Args:
            known: (b,) base parameters whose torque is subtracted from the measured one; by default those of the model.
        """
        given = self.known if known is None else known
        total = sum(run.samples for run, _ in self.runs)
        blocks: list[list[Floats]] = []
        counts = np.zeros(self.robot.dof)
        for run, unknowns in self.runs:
            stretches = np.split(np.arange(run.samples), np.flatnonzero(np.diff(run.segment)) + 1)  # without gaps
            labels = label_blocks(stretches, max(1, round(MOST_BLOCKS * run.samples / total)))
            reduced = reduce_samples(
                self.robot, run.q, run.dq, run.ddq, run.effort, columns=self.columns, segments=labels, valid=run.valid
            )
            counts += reduced.samples.sum(axis=0)
            for segment in reduced.segments:
                channels = []
                for joint, support in enumerate(map(list, reduced.supports)):  # base columns that act on the joint
                    R = reduced.rows(joint, segment)  # triangle of [base columns, torque]
                    W, side = R[:, :-1], R[:, -1]
                    channels.append(np.column_stack([W @ unknowns[support], side - W @ given[support]]))
                blocks.append(channels)
        return BlockEquations(blocks, counts, np.arange(self.robot.dof))


def payload_problem(
    robot: Robot,
    loaded: Runs,
    unloaded: Runs | None = None,
    *,
    link: str | None = None,
    arm: tuple[float, float] | None = None,
) -> PayloadProblem:
    """Make the problem of loaded and unloaded runs; see `identify_payload` for the arguments."""
    loaded_runs = matched_runs(robot, loaded)
    unloaded_runs = matched_runs(robot, [] if unloaded is None else unloaded)
    if not loaded_runs or any(run.q.shape[1] != robot.dof for run in (*loaded_runs, *unloaded_runs)):
        raise ArgumentError(f"robot '{robot.name}' has {robot.dof} moving joints", remedy="Give runs of all of them.")
    name = robot.bodies[-1].joint.child if link is None else link
    body, T = robot.link_body(name)
    if body < 0:
        raise ArgumentError(f"link '{name}' does not move", remedy="Name the link that carries the load.")
    base = base_parameters(robot)
    model = robot.parameter_vector
    links = 10 * robot.dof  # the first parameters are those of the links
    every = np.eye(len(model))
    # `unknown` (p, k) are changes of the standard parameters by each unknown of the arm
    if unloaded_runs:
        known = np.zeros_like(model)
        unknown = every[:, list(base.columns)]
        prior = np.zeros(len(base.columns))
    elif arm is None:
        known = model
        unknown = every[:, :0]
        prior = np.zeros(0)
    else:
        inertial = arm_directions(robot, arm)
        inertial = inertial[:, np.any(inertial, axis=0)]  # each unknown is one standard deviation
        known = np.where(np.arange(len(model)) < links, model, 0.0)
        unknown = np.hstack([inertial, every[:, links:]])
        prior = np.repeat([1.0, 0.0], [inertial.shape[1], len(model) - links])
    carried = every[:, 10 * body : 10 * body + 10] @ transport(T[:3, :3], T[:3, 3])  # E of the module's equations
    if not any(np.any(run.ddq) for run in loaded_runs):  # without any acceleration nothing determines inertias
        carried[:, :6] = 0.0
    G = base.grouping
    with_load = G @ np.hstack([carried, unknown])
    without_load = G @ np.hstack([np.zeros_like(carried), unknown])
    runs = (*((run, with_load) for run in loaded_runs), *((run, without_load) for run in unloaded_runs))
    return PayloadProblem(robot=robot, link=name, columns=base.columns, runs=runs, known=G @ known,
                          prior=np.append(np.zeros(10), prior))  # fmt: skip


@one_blas_thread()
def identify_payload(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs | None = None,
    link: str | None = None,
    arm: tuple[float, float] | None = None,
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
        physical: Whether an estimate that no body can have is replaced by the nearest possible one, with a finding.

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
    if solution.undetermined[:10].all():  # the load's parameters
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
        findings = _judge_arm(ArmUncertainty(*arm), problem.prior, solution)
    remedy = "Move all joints that carry the load, with acceleration."
    load = solution.load(problem.link, f"joint torques, {method}", remedy).with_findings(*findings)
    load = _add_gain_spread(load, problem, solution)
    load = load if tare is None else load.minus(tare)
    return make_possible(load) if physical else load


def _add_gain_spread(load: Load, problem: PayloadProblem, solution: LinearSolution) -> Load:
    """Add to a load the covariance by uncertain gains of drives, and a finding about them.

    A gain of joint j that is wrong by the share e makes its torques (1 + e) times as large, and moves the estimate by
    ``e A^-1 w_j X_j^T y_j``, with the equations X_j, torques y_j and weight w_j (inverse variance) of the joint, and
    ``A^-1 = (sum_k w_k X_k^T X_k)^-1``, which is `LinearSolution.white`. Gains err independently of one another.
    """
    stated = [run.gain_std for run, _ in problem.runs if run.gain_std is not None]
    if not stated:
        return load
    std: Floats = np.max(stated, axis=0)
    raw = problem.equations(np.zeros_like(problem.known))  # gains scale the whole torque, known parts included
    sides = [rows[:, :-1].T @ rows[:, -1] / s**2 for rows, s in zip(raw.channels, solution.noise_std, strict=True)]
    changes = (solution.white @ np.stack(sides, axis=1) * std)[:10]  # of the load's parameters, by each drive
    covariance = load.covariance + changes @ changes.T
    share = 1.0 - float(load.covariance[9, 9] / max(covariance[9, 9], TINY))  # 9 is the mass
    message = f"{100 * share:.0f} % of the variance of the mass comes from the gains of the drives"
    remedy = "Calibrate them with a weighed load: dynid drives."
    exact = ", ".join(name for name, value in zip(problem.robot.joint_names, std, strict=True) if not value)
    if exact:
        message = f"the gains of the drives of {exact} count as exact: no interval contains their errors"
        remedy = 'State how well they are known, gain = "13.3 +- 0.7", or calibrate them: dynid drives.'
    found = remark("drive-gains", message, remedy, where="drives", evidence={"share of the variance": share})
    return replace(load.with_findings(found), covariance=covariance)


def _judge_known_arm(problem: PayloadProblem, equations: BlockEquations, solution: LinearSolution) -> Iterator[Finding]:
    """Note that the arm counts as known, and warn if arm and load leave much torque unexplained."""
    message = "the arm's own parameters and friction are taken as known from its model"
    remedy = ""
    if not np.any(problem.robot.parameter_vector[10 * problem.robot.dof :]):
        message = f"{message}, which has no friction"
        remedy = "arm=(0, 0), or --arm 0,0, estimates it with the load."
    yield remark("arm-model", message, remedy, where="model")
    # squared torque of each joint that stays unexplained, and that the load explains
    unexplained = np.array([np.sum((rows @ np.append(solution.values, -1.0)) ** 2) for rows in equations.channels])
    by_load = np.maximum(np.array([np.sum(rows[:, -1] ** 2) for rows in equations.channels]) - unexplained, 0.0)
    feels_load = by_load > SMALL_SHARE**2 * by_load.max()
    share = float(np.sqrt(unexplained[feels_load].sum() / max(by_load[feels_load].sum(), TINY)))
    if share > LARGE_SHARE:
        message = (
            f"the torque that neither the arm's model nor the load explains is {100 * share:.0f} % of the load's torque"
        )
        remedy = (
            "Give a run without the load, an arm with identified parameters and friction, "
            "or state how well its model is known."
        )
        evidence = {"unexplained share": share}
        yield remark("arm-model", message, remedy, severity="warning", where="model", evidence=evidence)


def _judge_arm(arm: ArmUncertainty, prior: Floats, solution: LinearSolution) -> Iterator[Finding]:
    """Note how much the uncertain arm matters, and test whether it differs from its model by more than stated.

    If the stated uncertainty is right, the estimated deviations of the links, in prior standard deviations, have the
    covariance ``I - P`` with their posterior covariance P. So the sum of their squares along its eigenvectors, each
    over its eigenvalue, is chi-squared distributed.

    Args:
        arm: The stated uncertainty.
        prior: (10 + k,) of `PayloadProblem`; the links' entries are 1.
        solution: The solution.
    """
    from_arm = float(np.sum((solution.white[9, 10:] * prior[10:]) ** 2))
    share = from_arm / max(float(solution.covariance[9, 9]), TINY)  # 9 is the mass
    stated = f"masses within {100 * arm.mass:.3g} %, centres of mass within {1e3 * arm.com:.3g} mm"
    message = (
        f"the load was computed with the arm's model, whose uncertainty is stated as {stated} (one standard deviation) "
        f"and makes {100 * share:.0f} % of the variance of the mass; friction was estimated with it"
    )
    yield remark("arm-model", message, where="model", evidence={"share of the variance": share})
    links = np.flatnonzero(prior)
    # eigenvalues of I - P are the shares of the prior variance that the data removed
    removed, directions = eigh(np.eye(len(links)) - solution.white[np.ix_(links, links)])
    seen = removed > SMALL_SHARE
    distance = float(np.sum((directions[:, seen].T @ solution.values[links]) ** 2 / removed[seen]))
    count = max(1, int(np.count_nonzero(seen)))
    if distance > chi2.isf(LEVEL, count):
        departure = float(np.sqrt(distance / count))
        message = f"the arm differs from its model by more than stated ({departure:.1f} standard deviations, rms)"
        remedy = "State a larger uncertainty, or give a run without the load."
        evidence = {"departure [standard deviations, rms]": departure}
        yield remark("arm-model", message, remedy, severity="warning", where="model", evidence=evidence)
