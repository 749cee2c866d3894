"""Experiments brought into a control loop: by the known law and commanded motion, or by assumed ones.

`with_loop` cuts the pieces of one log into gap-free parts and gives each its loop. `InLoop` does so for every log of
the equations, and then lets an estimator of `closed_loop` solve them; `dynid identify` uses it for these estimators.

If the commanded motion is not known, the measured motion, low-passed, takes its place. If the law is not known,
computed torque by a robot that `FeasibleWLS` fits to the data takes its place: it follows the motion as the real law
did. `DIDIM` compares torques along the simulated motion; without the law it ignores a commanded motion and
follows the measured one. Where `DIDIM` simulates the measured motion, the torques of a joint with dry
friction are left out near reversals of its velocity, because the sign of friction is uncertain there. The
findings of the estimate say what was assumed, and what the test of the law found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from typing import ClassVar

import numpy as np

from dynid.arrays import Floats
from dynid.checks import check_number
from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.closed_loop.law_test import PARTS
from dynid.estimation.closed_loop.loop_runs import require_loop
from dynid.estimation.closed_loop.loop_search import LoopEstimator, WrongLawError
from dynid.estimation.closed_loop.loop_stability import check_law_damping, loop_simulator
from dynid.estimation.closed_loop.loop_start import estimate_settling_time, estimate_starting_memory
from dynid.estimation.closed_loop.loop_stream import SHORTEST_S
from dynid.estimation.closed_loop.measured_motion import SplinedMotion, check_commanded_motion, exclude_reversals
from dynid.estimation.equations import (
    Factors,
    Samples,
    StreamedLog,
    StreamedLogs,
    build_equations,
    wrong_kind_error,
)
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.findings import Finding
from dynid.loop.cascade import Cascade
from dynid.loop.laws import PD, PID, ControlLaw, check_law, following_law
from dynid.loop.loop import Loop, ReferenceMotion, TimeFunction
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

MotionMaker = Callable[[], TimeFunction]
"""Returns a motion: a function from times (N,) in order to (q, dq, ddq)."""
BANDWIDTH_HZ = 8.0
"""Bandwidth of the assumed law's position loops [Hz]. Convention."""
ASSUMED_LAW_HZ = 4000.0
"""Least rate of an assumed law [Hz]. Convention."""
GIVEN_LAW_HZ = 1000.0
"""Least rate that is assumed for a given law of unknown rate [Hz]. Convention."""
LONGEST = 2**16
"""Most control instants of a part of a streamed log. Convention."""
RATE_TOLERANCE = 0.02
"""Largest deviation of a control rate from a multiple of a log's rate, as a share of it: clocks are that inexact.
Convention."""
SETTLING_S = 1.0
"""Time after which a loop has forgotten its initial state, if it cannot be computed [s]. Convention."""
POSES = 64
"""Least number of poses at which the damping of a law is checked; shorter logs give all of theirs. Convention."""
ASSUMED = "The law was assumed: what the model lacks, friction above all, looks the same."
"""Remedy of a doubt about a part of an assumed law."""


def with_loop(
    pieces: Iterable[Experiment],
    motion: TimeFunction | None = None,
    *,
    law: ControlLaw,
    rate_hz: float | None = None,
    longest: int = LONGEST,
    settling_s: float = SETTLING_S,
) -> Iterator[Experiment]:
    """The consecutive pieces of a log, gap-free and not too long, each with the part of the loop that made it.

    A piece is what the caller gives; a part is gap-free and has about `longest` instants at most; a stretch is what
    lies between two gaps, one part or several. A stretch is simulated from its beginning: from its measured state, and
    with the memory of the law that explains the first torques. Only the `q0`, `dq0` and `memory0` of its first part are
    used: `StreamSearch` carries the state on to a part whose `Loop.start_s` is the end of the part before. Parts are
    therefore for `stream_equations`; in memory, give `longest` so that each stretch is one part.

    Args:
        pieces: Consecutive pieces of a processed log; see `dynid.process_stream`.
        motion: The commanded motion: times (N,) in order -> (q, dq, ddq); the measured motion by default.
        law: The control law.
        rate_hz: Rate of the law [Hz]; by default the lowest multiple of the log's rate that is at least 1 kHz.
        longest: About the most control instants of a part (whole samples, two at least); in memory, more than the
            longest stretch has.
        settling_s: Time at the beginning of every stretch that is simulated but not kept [s]: by then the loop has
            forgotten that it started from noisy measurements, so `Loop.start_known` is True; that the time is long
            enough is the caller's claim. Zero drops only the time in which the log's own low-pass settles; then
            `Loop.start_known` is False, and estimators in memory remove the effect of the start.

    Raises:
        ArgumentError: The motion is not one of the log's joints, or a rate does not fit.

    Example:
        >>> looped = next(dynid.estimation.with_loop([run], motion, law=law, rate_hz=500.0))
        >>> looped.loop.law is law
        True
    """
    if motion is None:
        pieces, ahead = tee(pieces)
        motion = SplinedMotion((piece.time, piece.q) for piece in ahead)
    check_law(law)
    check_number("rate_hz", rate_hz, "a rate above zero [Hz], or None")
    if not 0.0 <= settling_s < np.inf:
        raise ArgumentError(f"settling_s is {settling_s}", remedy="Give a finite time [s], zero or more.")
    last_s = -np.inf  # last sample of the part before
    begun_s = -np.inf  # first sample of the stretch
    has_kept = False  # whether samples of the stretch were kept already
    for piece in pieces:
        factor = control_factor(piece.rate_hz, rate_hz or GIVEN_LAW_HZ, exact=rate_hz is not None)
        rate = factor * piece.rate_hz
        for rows in _cut(piece, max(2, longest // factor)):
            part = piece.rows(rows)
            if part.time[0] - last_s >= 1.5 / part.rate_hz:
                begun_s, has_kept = float(part.time[0]), False
            begins_stretch = part.time[0] == begun_s
            start_s = last_s if has_kept else begun_s  # before last_s becomes that of this part
            last_s = float(part.time[-1])
            filter_s = 0.0 if part.derivation is None else part.derivation.smoothing.settling_s
            reference = _reference(motion, part, rate, start_s=start_s, last_s=last_s, beyond_s=filter_s)
            if begins_stretch:
                memory0 = estimate_starting_memory(part, law, reference)
                start = Loop(law=law, reference=reference, q0=part.q[0], dq0=part.dq[0], memory0=memory0)
            # the simulation is low-passed as the log was, and its low-pass needs time to settle as well
            from_s = begun_s + max(settling_s, filter_s) - 0.5 / part.rate_hz
            settled = part.rows(slice(np.searchsorted(part.time, from_s), None))
            if settled.samples:
                loop = replace(start, reference=reference, start_s=start_s, start_known=settling_s > 0.0)
                has_kept = True
                yield replace(settled, loop=loop)


def _reference(
    motion: TimeFunction, part: Experiment, rate_hz: float, *, start_s: float, last_s: float, beyond_s: float
) -> ReferenceMotion:
    """The commanded motion of a part, from a first to a last instant [s] and, if known, some time beyond [s].

    Raises:
        ArgumentError: It is no motion of the log's joints, or does not cover them.
    """
    for end_s in (last_s + beyond_s, last_s):  # first try beyond the end; a motion that ends there raises
        instants = start_s + np.arange(round((end_s - start_s) * rate_hz) + 1) / rate_hz
        try:
            states = motion(instants)
            break
        except ArgumentError:
            if end_s == last_s:
                raise
    shape = (instants.size, part.q.shape[1])
    if not isinstance(states, tuple) or len(states) != 3 or any(np.shape(x) != shape for x in states):
        raise ArgumentError(
            f"the commanded motion at {instants.size} instants is no (q, dq, ddq) of the log's {shape[1]} joints each",
            remedy=f"Return three arrays of shape (N, {shape[1]}) for N instants.",
        )
    return ReferenceMotion(q=states[0], dq=states[1], ddq=states[2], rate_hz=rate_hz)


def control_factor(log_hz: float, rate_hz: float, *, exact: bool) -> int:
    """Control periods per sample of a log.

    Args:
        log_hz: Rate of the log [Hz].
        rate_hz: Rate of the control law, or a lower bound for it [Hz].
        exact: Whether `rate_hz` is the law's rate; otherwise it is a lower bound.

    Raises:
        ArgumentError: The control rate is no multiple of the log's.
    """
    ratio = rate_hz / log_hz
    if not exact:
        return max(1, int(np.ceil(ratio - 1e-6)))
    if ratio < 1.0 - RATE_TOLERANCE or abs(ratio - round(ratio)) > RATE_TOLERANCE * ratio:
        near = max(1, int(np.ceil(ratio))) * log_hz
        raise ArgumentError(
            f"a control rate of {rate_hz:g} Hz is no multiple of the log's {log_hz:.6g} Hz",
            remedy=f"Give a whole multiple, such as {near:.6g} Hz, or resample the log.",
        )
    return round(ratio)


def _cut(piece: Experiment, longest: int) -> Iterator[slice]:
    """The rows of the gap-free stretches of a piece, cut into parts of at most `longest` samples."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(piece.segment)) + 1, [piece.samples]])
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        for first in range(start, stop, longest):
            yield slice(first, min(first + longest, stop))


@dataclass(frozen=True, slots=True, kw_only=True)
class InLoop(Estimator):
    """An estimator that simulates the loop, for experiments without their loop; one that they carry is replaced."""

    name: ClassVar[str] = "in-loop"
    on_command_line: ClassVar[bool] = False
    title: ClassVar[str] = "estimator in a given or assumed loop"
    use: ClassVar[str] = "the experiments do not carry their control loop"
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples, StreamedLogs)
    accepts_terms: ClassVar[bool] = False
    accepts_band: ClassVar[bool] = False
    simulates_loop: ClassVar[bool] = True

    estimator: LoopEstimator
    """The estimator that simulates the loop."""
    law: ControlLaw | None = None
    """The control law; computed torque by a robot near the data by default, which a finding says."""
    rate_hz: float | None = None
    """Rate of the law [Hz], a multiple of the log's rate; assumed to be high by default, which a finding says."""
    motions: Sequence[MotionMaker] = ()
    """The commanded motion of each experiment or streamed log: a function without arguments that returns a motion,
    itself a function from times (N,) in order to (q, dq, ddq). By default the measured motion, low-passed, is assumed,
    which a finding says. PD, PID and cascade laws need the commanded motion; without a law only
    `InstrumentalVariables` uses it."""

    def __post_init__(self) -> None:
        """Refuse what is no law, and an estimator that simulates no loop: nothing would test the law."""
        if self.law is not None:
            check_law(self.law)
        check_number("rate_hz", self.rate_hz, "a rate above zero [Hz], or None")
        if not isinstance(self.motions, Sequence):
            raise ArgumentError(
                f"motions is {self.motions!r}", remedy="Give one for each log: motions=(lambda: motion,)."
            )
        if not isinstance(self.estimator, LoopEstimator):
            raise ArgumentError(
                f"{type(self.estimator).__name__} simulates no control loop",
                remedy="Give InstrumentalVariables or DIDIM, or use it without InLoop.",
            )
        if isinstance(self.law, PD | PID | Cascade) and not self.motions:
            raise ArgumentError(
                f"a {type(self.law).__name__} law makes its torques from commanded minus measured positions, and the "
                "commanded ones are not known",
                remedy="Give them (motions; on the command line [reference] in the channel map), or leave the law out: "
                "one that follows the measured motion is then assumed.",
            )

    def estimate(self, equations: Samples | StreamedLogs) -> Estimate:
        """Estimate the base parameters.

        Raises:
            ArgumentError: There is no gap-free stretch of a second, or the law has other joints.
            EstimationError: As the estimator does.
        """
        if isinstance(equations, StreamedLogs) and StreamedLogs not in self.estimator.needs:
            raise wrong_kind_error(type(self.estimator).__name__, equations, self.estimator.needs)
        robot, feasible_parameters = equations.robot, FeasibleWLS(prior_weight=1.0).solve(equations).standard
        # a feasible robot near the data gives an assumed law its model, and the search its step sizes, its prior and
        # one of its starts
        if feasible_parameters is not None:
            robot = robot.with_parameters(feasible_parameters)
        poses = _poses(equations.excerpts)
        law = self.law or following_law(robot, BANDWIDTH_HZ)
        law.check_joints(robot.joint_names)
        check_law_damping(law, robot, poses, min(self._control_rates_hz(equations)))
        try:
            estimate = self.estimator.solve(self._add_loops(equations, robot, law))
        except WrongLawError:
            raise
        # noise may have spoilt the fitted robot: the given one is tried, with the same law
        except EstimationError as error:
            try:
                estimate = self.estimator.solve(self._add_loops(equations, equations.robot, law))
            except (EstimationError, IdentifiabilityError):
                raise error from None
        # the usual remedy of a doubted part of the law is to correct it; nobody can correct an assumed law
        findings = [
            replace(finding, remedy=ASSUMED) if self.law is None and finding.where in PARTS else finding
            for finding in estimate.findings
        ]
        return replace(estimate, findings=(*self._assumptions(equations), _verdict(estimate), *findings))

    @property
    def _motion_is_instrument_only(self) -> bool:
        """Whether the simulated motion only makes instruments: it need not be that of the log."""
        return self.estimator.compares == "instruments"

    @property
    def _simulates_commanded(self) -> bool:
        """Whether the commanded motion is simulated."""
        return bool(self.motions) and (self.law is not None or self._motion_is_instrument_only)

    def _add_loops(self, equations: Samples | StreamedLogs, robot: Robot, law: ControlLaw) -> Samples | StreamedLogs:
        """The equations with a loop for every experiment or streamed log."""
        if isinstance(equations, StreamedLogs):
            # in memory the effect of the start is removed from the equations; a stream cannot do that, so it drops
            # samples until the start is forgotten: the first loops only serve to compute that time
            logs = self._put_logs_in_loop(equations, robot, law, settling_s=0.0)
            if not self._motion_is_instrument_only:  # instruments may have any start
                settling_s = max(_settling_time_s(equations, robot, _first_part(log)) for log in logs)
                logs = self._put_logs_in_loop(equations, robot, law, settling_s)
            looped: Samples | StreamedLogs = replace(
                equations, robot=robot, logs=logs, excerpts=tuple(_first_part(log) for log in logs)
            )
        else:
            rates_hz, makers = self._control_rates_hz(equations), self._motion_makers(equations)
            parts = [
                part
                for run, rate_hz, make_motion in zip(equations.experiments, rates_hz, makers, strict=True)
                for part in self._put_in_loop(robot, law, rate_hz, make_motion, [run])
            ]
            runs = [part for part in parts if part.samples > SHORTEST_S * part.rate_hz]
            if not runs:
                raise _too_short()
            looped = build_equations(robot, runs, base=equations.base)
        if self._simulates_commanded:
            for run in looped.excerpts:
                check_commanded_motion(run, robot)
        return looped

    def _put_logs_in_loop(
        self, equations: StreamedLogs, robot: Robot, law: ControlLaw, settling_s: float
    ) -> tuple[StreamedLog, ...]:
        """The streamed logs, each put in its loop anew whenever it is read."""

        def in_loop(log: StreamedLog, rate_hz: float, make_motion: MotionMaker | None) -> StreamedLog:
            return lambda: self._put_in_loop(robot, law, rate_hz, make_motion, log(), settling_s, LONGEST)

        return tuple(map(in_loop, equations.logs, self._control_rates_hz(equations), self._motion_makers(equations)))

    def _put_in_loop(
        self,
        robot: Robot,
        law: ControlLaw,
        rate_hz: float,
        make_motion: MotionMaker | None,
        pieces: Iterable[Experiment],
        settling_s: float = 0.0,
        longest: int = np.iinfo(np.int64).max,
    ) -> Iterator[Experiment]:
        """The pieces of a log as `with_loop` gives them, without reversals where the measured motion is simulated."""
        motion = make_motion() if make_motion is not None else None
        parts = with_loop(pieces, motion, law=law, rate_hz=rate_hz, longest=longest, settling_s=settling_s)
        if self._simulates_commanded or self._motion_is_instrument_only:
            return parts
        return (exclude_reversals(part, robot) for part in parts)

    def _motion_makers(self, equations: Factors) -> Sequence[MotionMaker | None]:
        """For every log the function that makes its commanded motion; None where the measured motion is simulated.

        Raises:
            ArgumentError: They are not as many as the logs.
        """
        logs = len(equations.excerpts)
        if self.motions and len(self.motions) != logs:
            raise ArgumentError(
                f"{len(self.motions)} commanded motions for {logs} logs", remedy="Give one for each log, in order."
            )
        checked = [_check_motion_maker(make_motion, k) for k, make_motion in enumerate(self.motions)]
        return checked if self._simulates_commanded else (None,) * logs

    def _control_rates_hz(self, equations: Factors) -> list[float]:
        """For every log the rate of the law [Hz]: the given one; otherwise the assumed one, a multiple of the log's."""
        logs_hz = [run.rate_hz for run in equations.excerpts]
        if self.rate_hz is not None:
            return [self.rate_hz] * len(logs_hz)
        least_hz = ASSUMED_LAW_HZ if self.law is None else GIVEN_LAW_HZ
        return [log_hz * control_factor(log_hz, least_hz, exact=False) for log_hz in logs_hz]

    def _assumptions(self, equations: Factors) -> tuple[Finding, ...]:
        """One note for each of the law, the commanded motion and the control rate that had to be assumed."""
        found = []
        if self.law is None:
            found.append(
                (
                    "assumed-law",
                    "the control law is unknown; computed torque by a robot near the data, with a bandwidth of "
                    f"{BANDWIDTH_HZ:g} Hz, is assumed",
                )
            )
        if not self._simulates_commanded:
            reason = "does not help without the control law" if self.motions else "is unknown"
            found.append(
                (
                    "assumed-motion",
                    f"the commanded motion {reason}; the measured motion, low-passed, is assumed; its remaining noise "
                    "biases the estimate as in least squares, and intervals do not include that",
                )
            )
        if self.rate_hz is None:
            rates = " and ".join(f"{rate_hz:g}" for rate_hz in sorted(set(self._control_rates_hz(equations))))
            found.append(("assumed-rate", f"the control rate is unknown; {rates} Hz are assumed"))
        return tuple(Finding(code=code, severity="note", where="law", message=message) for code, message in found)


def _check_motion_maker(make_motion: MotionMaker, number: int) -> MotionMaker:
    """The same function, with a check that it returns a motion."""

    def make_checked_motion() -> TimeFunction:
        try:
            motion = make_motion()
        except TypeError as error:
            raise _no_motion(number, f"cannot be called without arguments: {error}") from error
        if not callable(motion):
            raise _no_motion(number, f"gives a {type(motion).__name__}, not a function of time")
        return motion

    return make_checked_motion


def _no_motion(number: int, reason: str) -> ArgumentError:
    return ArgumentError(
        f"motions[{number}] {reason}",
        remedy="Give a function that returns a motion: motions=(lambda: motion,) with motion(times) -> (q, dq, ddq).",
    )


def _first_part(log: StreamedLog) -> Experiment:
    """The first part of a log.

    Raises:
        ArgumentError: There is none.
    """
    piece = next(iter(log()), None)
    if piece is None:
        raise _too_short()
    return piece


def _too_short() -> ArgumentError:
    return ArgumentError(
        f"no gap-free stretch is longer than {SHORTEST_S:g} s and the settling time: nothing can be simulated",
        remedy="Give a log with fewer gaps, or allow longer ones (max_gap_s), or use weighted least squares.",
    )


def _settling_time_s(equations: Factors, robot: Robot, piece: Experiment) -> float:
    """Time after which a simulation of a robot near the data has forgotten where it started [s]."""
    simulator = loop_simulator(replace(equations, robot=robot), require_loop(piece))
    try:
        return estimate_settling_time(simulator, equations.base.project(robot.parameter_vector))
    except EstimationError:  # the search for parameters says so, if no other robot is found
        return SETTLING_S


def _verdict(estimate: Estimate) -> Finding:
    """The result of the test of the law as one finding; the details are findings of their own."""
    if estimate.extras.get("controller_mismatch", 0.0) > 0.0:
        message = "the measured torques contradict the control law, so the estimate is doubtful as well"
        remedy = "Check the law, or use weighted least squares, which needs none."
        return Finding(code="law-doubted", severity="warning", where="law", message=message, remedy=remedy)
    message = "the measured torques and positions do not contradict the control law"
    return Finding(code="law-accepted", severity="note", where="law", message=message)


def _poses(runs: Sequence[Experiment]) -> Floats:
    """(K, n) some of the measured positions."""
    every = max(1, sum(run.samples for run in runs) // POSES)
    return np.concatenate([run.q[::every] for run in runs])
