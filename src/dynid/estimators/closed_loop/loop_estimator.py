"""Estimators that simulate the control loop: simulate, solve linear equations along the simulated motion, repeat.

`DIDIM` and `InstrumentalVariables` are public estimators: ``solve(equations)`` with experiments in memory gives an
`Estimate`. Both need the robot in its control loop: a control law and the commanded motion.

A round simulates the robot with the base parameters beta and solves for their change, the step:

    residual = Y step,   sum_t Z' W (residual - Y step) = 0

with regressor Y, instruments Z and weights W of the joints at every sample t. `DIDIM` and `InstrumentalVariables`
differ in Z, Y and residual only; `LoopEstimator` is what they share.

The covariance is ``A^-1 B A^-T`` with the slope ``A = sum Z' W Y`` and B the spectral density of the scores
``Z' W residual`` at zero frequency by Welch's method, so that correlation of the noise in time is counted.

`DIDIM` ([Gautier2013]) finds parameters for which the simulated loop has the torques of the real one.
Along the simulated motion the torques are linear in the parameters, ``tau_sim = Y(q_sim) beta``; the motion itself
hardly depends on them where the loop is stiff. So every round is a linear least-squares problem. Measured positions are
not differentiated, so their noise does not bias the estimate.

`InstrumentalVariables` (IDIM-IV) are unbiased where positions are noisy and the loop feeds the noise back.
Least squares on measured positions is biased because the regressor's errors are correlated with the residual. The
regressor Z at the *simulated* positions of the same loop has no such errors ([Janot2014]):

    sum_t Z_t' W (tau_t - Y_t beta) = 0

A low-pass and differences flatten the measured accelerations, which would bias the inertia; so the simulated positions
are filtered and differentiated alike, and the measured regressor is corrected by what the simulated one loses:
``Y = Y(F q) + Y(q_sim) - Y(F q_sim)`` with the filter F, whose error is the noise alone. The terms' columns (friction
above all, whose sign turns with noise) are those of the simulated motion in Y too. The instruments fade out at the ends
of every stretch, where the noise of single accelerations would count in full, and where a joint with dry friction turns
round.

If the commanded motion is not known, the measured motion, low-passed, takes its place. If the law is not known,
computed torque by a robot that `FeasibleWLS` fits to the data takes its place: it follows the motion as the real law
did. `DIDIM` compares torques along the simulated motion; without the law it ignores a commanded motion and follows the
measured one, and torques of joints with dry friction are then left out near reversals, where the sign of friction is
uncertain. The findings of the estimate say what was assumed, and what the test of the law found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import solve

from dynid.array_types import Floats
from dynid.checks import as_whole, check_number
from dynid.compiled import regressor
from dynid.control_loop.laws import PD, PID, Cascade, ComputedTorqueLaw, ControlLaw, check_law
from dynid.control_loop.loop import TimeFunction
from dynid.data_reduction.factor import RESOLUTION
from dynid.decompositions import condition_number
from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimators.closed_loop.added_loops import SETTLING_S, check_commanded_motion, exclude_reversals, with_loop
from dynid.estimators.closed_loop.law_test import check_controller
from dynid.estimators.closed_loop.loop_runs import (
    LoopRun,
    LoopRuns,
    Motions,
    SimulatedMotion,
    dry_joints,
    welch_covariance,
)
from dynid.estimators.equations import Samples, build_equations
from dynid.estimators.estimate import Estimate, Estimator
from dynid.estimators.noise import check_data
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.findings import Finding
from dynid.processing.experiment import Experiment
from dynid.spatial import SAME

ASSUMED_BANDWIDTH_HZ = 8.0
"""Bandwidth of the assumed law's position loops [Hz] (convention)."""
ASSUMED_LAW_HZ, GIVEN_LAW_HZ = 4000.0, 1000.0
"""Smallest control rates that are assumed for an assumed law, and for a given law of unknown rate [Hz] (convention)."""
ASSUMED_LAW_REMEDY = "The law was assumed: what the model lacks, friction above all, looks the same."
"""Remedy of a finding against a part of an assumed law."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopRound:
    """One round: the equations along one simulation, and their solution."""

    beta: Floats
    """(b,) the simulated robot's parameters."""
    motions: Motions
    """The simulated motion of each run."""
    instruments: list[Floats]
    """Z of each run, (N, n, b)."""
    residuals: list[Floats]
    """The residual of each run, (N, n) [N m or N]."""
    rows: list[Floats]
    """Y of each run, (N, n, b)."""
    weights: Floats
    """(n,) inverse variances of the residuals."""
    slope: Floats
    """(b, b) sum of Z' W Y over all samples."""
    step: Floats
    """(b,) change of the parameters that solves the equations."""
    condition: float
    """Square root of the condition number of the slope, whose unknowns are scaled to a diagonal of ones."""
    resolution: Floats
    """(b,) changes of single parameters that change the torques no more than rounding does."""

    @property
    def quick_stderr(self) -> Floats:
        """(b,) rough standard deviations, as if residuals were white and instruments equal to the regressor."""
        return np.asarray(np.sqrt(np.abs(np.diagonal(np.linalg.inv(self.slope)))))

    @property
    def scores(self) -> list[Floats]:
        """The scores Z' W (residual - Y step) of each run, (N, b)."""
        runs = zip(self.instruments, self.rows, self.residuals, strict=True)
        return [np.einsum("tjb,j,tj->tb", Z, self.weights, residual - Y @ self.step) for Z, Y, residual in runs]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEstimator(Estimator, ABC):
    """An estimator that simulates the control loop of every experiment.

    Links and the robot's own terms are simulated, no further terms. Experiments may bring their loop
    (`Experiment.loop`); those without one, and all where a law, a rate or a motion is stated, get one. A finding says
    what had to be assumed.
    """

    reads_samples: ClassVar[bool] = True
    accepts_terms: ClassVar[bool] = False
    simulates_loop: ClassVar[bool] = True
    compares_torques: ClassVar[bool]
    """Whether simulated torques are compared with measured ones. Otherwise the simulated motion only makes instruments,
    which need not follow the motion of the log."""

    law: ControlLaw | None = None
    """The control law; by default computed torque by a robot near the data."""
    rate_hz: float | None = None
    """Rate of the law [Hz], a multiple of the log's rate; assumed to be high by default."""
    motions: Sequence[TimeFunction] = ()
    """The commanded motion of each experiment: a function from times (N,) in order to (q, dq, ddq). By default the
    measured motion, low-passed, is assumed. PD, PID and cascade laws need the commanded motion; without a law only
    `InstrumentalVariables` uses it."""
    iterations: int = 15
    """Most simulations after the first."""
    tolerance: float = 0.1
    """Changes smaller than this share of the standard deviation end the iteration."""

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.law is not None:
            check_law(self.law)
        check_number("rate_hz", self.rate_hz, "a rate above zero [Hz], or None")
        if not isinstance(self.motions, Sequence) or not all(map(callable, self.motions)):
            remedy = "Give a function of time for each log: motions=(motion,) with motion(times) -> (q, dq, ddq)."
            raise ArgumentError(f"motions is {self.motions!r}", remedy=remedy)
        if isinstance(self.law, PD | PID | Cascade) and not self.motions:
            raise ArgumentError(
                f"a {type(self.law).__name__} law makes its torques from commanded minus measured positions, and the "
                "commanded ones are not known",
                remedy="Give them (motions; on the command line [reference] in the channel map), or leave the law out: "
                "one that follows the measured motion is then assumed.",
            )
        as_whole("iterations", self.iterations, least=1)
        check_number("tolerance", self.tolerance, "a number above zero")

    @abstractmethod
    def parts(self, run: LoopRun, motion: SimulatedMotion, beta: Floats) -> tuple[Floats, Floats, Floats]:
        """Instruments, regressor and residual of a run, zero where samples do not count.

        Args:
            run: The run.
            motion: Its simulated motion.
            beta: (b,) the parameters of the simulation.

        Returns:
            Z (N, n, b), Y (N, n, b) and the residual (N, n) [N m or N].
        """

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate the base parameters.

        Raises:
            ArgumentError: There is no gap-free stretch of a second, or the law or the motions are of other joints.
            IdentifiabilityError: The motion does not determine all parameters.
            EstimationError: No start follows the references.
        """
        uses_own_loops = self.law is None and self.rate_hz is None and not self.motions
        uses_own_loops = uses_own_loops and all(run.loop is not None for run in equations.experiments)
        looped, assumed = (equations, ()) if uses_own_loops else self._add_loops(equations)
        check_data(looped)
        runs = LoopRuns.of(looped)
        failure = None  # of the best start
        for beta, motions in runs.starts():
            try:
                end, unsettled, count = self._iterate(runs, beta, motions)
                break
            except EstimationError as error:
                failure = failure or error
        else:
            raise failure or EstimationError(
                "no start follows the references: neither a fit nor the robot's own values",
                remedy="Check the control law (its gains act on joints, not on motors), its rate and the reference, or "
                "give the robot better prior values.",
            )
        doubts = check_controller(runs, end.motions)
        if self.law is None and not uses_own_loops:  # the user cannot correct an assumed law: notes, not errors
            doubts = tuple(replace(doubt, remedy=ASSUMED_LAW_REMEDY, severity="note") for doubt in doubts)
        beta = end.beta + end.step
        covariance = welch_covariance(end.slope, end.scores, max(run.run.rate_hz for run in runs.runs))
        return Estimate.of(
            looped,
            values=beta,
            covariance=covariance + np.diag(end.resolution**2),
            undetermined=np.zeros(beta.size, dtype=bool),
            noise_std=1.0 / np.sqrt(end.weights),
            inflation=np.ones(looped.robot.dof),
            condition=end.condition,
            method=self.title,
            findings=(*assumed, *unsettled, *doubts),
            extras={"iterations": float(count), "simulations": float(count + 1)},
        )

    def _add_loops(self, equations: Samples) -> tuple[Samples, tuple[Finding, ...]]:
        """The equations with a loop for every stretch, and a note for everything that had to be assumed."""
        robot = equations.robot
        logs = equations.experiments
        assumed = list[str]()
        if self.motions and len(self.motions) != len(logs):
            raise ArgumentError(
                f"{len(self.motions)} commanded motions for {len(logs)} logs", remedy="Give one for each log, in order."
            )
        # without the law, torques are compared along the measured motion
        is_commanded = bool(self.motions) and (self.law is not None or not self.compares_torques)
        law = self.law
        least_hz = GIVEN_LAW_HZ
        if law is None:
            fitted = FeasibleWLS().solve(equations).standard  # a feasible robot near the data
            assert fitted is not None, "feasible has standard parameters"
            least_hz = ASSUMED_LAW_HZ
            angular = 2.0 * np.pi * ASSUMED_BANDWIDTH_HZ
            law = ComputedTorqueLaw(robot.with_parameters(fitted), angular**2, 2.0 * angular)  # critically damped
            message = "the control law is unknown; computed torque by a robot near the data, with a bandwidth of "
            assumed.append(f"{message}{ASSUMED_BANDWIDTH_HZ:g} Hz, is assumed")
        if not is_commanded:
            reason = "does not help without the control law" if self.motions else "is unknown"
            message = f"the commanded motion {reason}; the measured motion, low-passed, is assumed; its remaining noise"
            assumed.append(f"{message} biases the estimate as in least squares, beyond the intervals")
        rates = [
            # the smallest multiple of the log's rate from the least rate on
            run.rate_hz * max(1, int(np.ceil(least_hz / run.rate_hz - 1e-6))) if self.rate_hz is None else self.rate_hz
            for run in logs
        ]
        if self.rate_hz is None:
            high = " and ".join(f"{rate_hz:g}" for rate_hz in sorted(set(rates)))
            assumed.append(f"the control rate is unknown; {high} Hz are assumed")
        law.check_joints(robot.joint_names)
        given = zip(logs, self.motions if is_commanded else [None] * len(logs), rates, strict=True)
        runs = [part for run, motion, rate_hz in given for part in with_loop(run, motion, law=law, rate_hz=rate_hz)]
        if not runs:
            reason = f"no gap-free stretch is longer than {SETTLING_S:g} s and the settling time"
            remedy = "Give a log with fewer gaps, or allow longer ones (max_gap_s), or use weighted least squares."
            raise ArgumentError(f"{reason}: nothing can be simulated", remedy=remedy)
        for place, run in enumerate(runs):
            if is_commanded:
                check_commanded_motion(run, robot)
            else:
                runs[place] = exclude_reversals(run, robot)
        notes = (Finding(code="assumed-loop", severity="note", where="law", message=text) for text in assumed)
        return build_equations(robot, runs, base=equations.base), tuple(notes)

    def _iterate(self, runs: LoopRuns, beta: Floats, motions: Motions) -> tuple[LoopRound, tuple[Finding, ...], int]:
        """Simulate and solve in turn until the steps are small.

        Args:
            runs: The experiments in their loops.
            beta: (b,) parameters to start with.
            motions: Their simulated motions.

        Returns:
            The last round, a finding if the steps are not small after all rounds, and the number of rounds.
        """
        here = self._round(runs, beta, motions)
        for count in range(1, self.iterations + 1):
            beta, motions = runs.advance(here.beta, here.beta + here.step, here.motions)
            change = beta - here.beta
            here = self._round(runs, beta, motions)
            small = self.tolerance * here.quick_stderr + here.resolution
            if np.all(np.abs(here.step) <= small) or np.all(np.abs(change) <= small):
                return here, (), count
        message = f"the iteration has not settled after {self.iterations} simulations"
        unsettled = Finding(code="not-converged", severity="warning", where="estimate", message=message)
        return here, (unsettled,), self.iterations

    def _round(self, runs: LoopRuns, beta: Floats, motions: Motions) -> LoopRound:
        """Make and solve the equations along simulated motions with parameters beta (b,)."""
        found = [self.parts(run, motion, beta) for run, motion in zip(runs.runs, motions, strict=True)]
        instruments, rows, residuals = (list(arrays) for arrays in zip(*found, strict=True))
        variances = sum((e**2).sum(axis=0) for e in residuals) / np.maximum(runs.equations.counts, 1)
        weights = 1.0 / np.maximum(variances, 1e-20 * max(float(variances.max()), 1e-280))  # finite without residuals
        slope = np.zeros((beta.size, beta.size))
        right = np.zeros(beta.size)
        signal = 0.0  # weighted squares of the torques
        for Z, Y, e in found:
            for joint, weight in enumerate(weights):
                slope += weight * Z[:, joint].T @ Y[:, joint]
                right += weight * e[:, joint] @ Z[:, joint]
            signal += float(weights @ ((Z @ beta) ** 2).sum(axis=0))
        step, condition = solve_scaled(slope, right)
        resolution = SAME * np.sqrt(signal / np.maximum(np.abs(np.diagonal(slope)), 1e-300))
        return LoopRound(beta, motions, instruments, residuals, rows, weights, slope, step, condition, resolution)


def solve_scaled(matrix: Floats, right: Floats) -> tuple[Floats, float]:
    """Solve square equations whose unknowns differ much in size.

    Returns:
        The solution (b,), and the square root of the condition number of the scaled matrix.

    Raises:
        IdentifiabilityError: The equations do not determine all unknowns.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diagonal(matrix)), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    condition = float(condition_number(scaled)) if np.isfinite(scaled).all() else np.inf
    if not condition * RESOLUTION < 1.0:
        raise IdentifiabilityError(
            "the simulated motion does not determine all base parameters",
            remedy="Move every joint, check that the control law moves the simulated robot too, or identify a reduced "
            "set first (dynid.estimators.ReducedSet).",
        )
    return scale * solve(scaled, scale * right), float(np.sqrt(condition))


@dataclass(frozen=True, slots=True, kw_only=True)
class DIDIM(LoopEstimator):
    """Direct and inverse dynamic identification: minimises measured minus simulated torques ([Gautier2013]).

    The regressor of the simulated motion stands for the exact derivatives. Use it where the control law is known.
    """

    name: ClassVar[str] = "didim"
    title: ClassVar[str] = "DIDIM"
    use: ClassVar[str] = "only torques shall be compared, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Gautier2013",)
    compares_torques: ClassVar[bool] = True

    def parts(self, run: LoopRun, motion: SimulatedMotion, beta: Floats) -> tuple[Floats, Floats, Floats]:
        """Z = Y: the regressor of the simulated motion; the residual contains ``Y beta``, so beta is not used."""
        columns = run.columns(motion) * run.run.valid[:, :, None]
        return columns, columns, run.torque_residual(motion)


RISE_S = 0.5
"""Time within which instruments fade in and out at the ends of a stretch [s]; at most a tenth of it (convention)."""
REVERSAL_SPEED = 0.1
"""Simulated speed below which a joint with dry friction counts as reversing [rad/s] (convention)."""
SLIDE_SHARE = 0.03
"""Speed below which a slide counts as reversing, as a share of its largest commanded speed: many slides never reach
0.1 m/s (experiment: on the EMPS log 0.001 to 0.03 agree, 0.1 moves dry friction by four standard deviations)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentalVariables(LoopEstimator):
    """Weighted instrumental variables from the simulated loop."""

    name: ClassVar[str] = "iv"
    title: ClassVar[str] = "instrumental variables"
    use: ClassVar[str] = "noise in the motion would bias least squares, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Janot2014",)
    compares_torques: ClassVar[bool] = False

    def parts(self, run: LoopRun, motion: SimulatedMotion, beta: Floats) -> tuple[Floats, Floats, Floats]:
        """Z of the simulated motion; Y of the measured motion for links, of the simulated motion for terms."""
        arm = run.simulator.arm
        log = run.run
        is_link = np.array(arm.columns) < 10 * arm.robot.dof  # columns of links come before those of terms
        exact = run.columns(motion)
        derived = run.derived(motion)  # filtered and differentiated like the log

        def of_links(q: Floats, dq: Floats, ddq: Floats) -> Floats:
            return regressor(arm.robot, q, dq, ddq, columns=arm.columns) * is_link

        flattened = of_links(*derived) if derived is not None else exact * is_link
        Y = (of_links(log.q, log.dq, log.ddq) + exact - flattened) * log.valid[:, :, None]
        window = log.valid * end_window(log)[:, None] * _reversal_window(run, motion)
        residual = np.where(log.valid, np.nan_to_num(log.effort), 0.0) - Y @ beta
        return exact * window[:, :, None], Y, residual


def end_window(run: Experiment) -> Floats:
    """(N,) window from 0 to 1 that rises and falls smoothly at the ends of every gap-free stretch."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(run.segment)) + 1, [run.samples]])
    samples = np.arange(run.samples)
    stretch = np.searchsorted(edges, samples, side="right") - 1  # number of each sample's stretch
    start = edges[stretch]
    stop = edges[stretch + 1]
    rise = np.minimum(RISE_S * run.rate_hz, 0.1 * (stop - start)).astype(np.int64)
    inside = np.minimum(samples - start, stop - 1 - samples)
    ramp = 0.5 - 0.5 * np.cos(np.pi * (inside + 0.5) / np.maximum(rise, 1))
    return np.where(inside < rise, ramp, 1.0)


def _reversal_window(run: LoopRun, motion: SimulatedMotion) -> Floats:
    """(N, n) window from 0 to 1 that vanishes where simulated velocities of joints with dry friction change their sign.

    A reversal that is simulated a little too early or late gives friction the wrong sign in some samples. That is a
    large error, and the spectrum of the noise does not contain it.
    """
    robot = run.simulator.arm.robot
    slides = np.array([joint.kind == "prismatic" for joint in robot.moving_joints])
    peaks = SLIDE_SHARE * np.abs(run.loop.reference.dq).max(axis=0, initial=0.0)
    speeds = np.where(slides & (peaks > 0.0), np.minimum(peaks, REVERSAL_SPEED), REVERSAL_SPEED)
    return np.where(dry_joints(robot), 1.0 - np.exp(-((motion.dq / speeds) ** 2)), 1.0)
