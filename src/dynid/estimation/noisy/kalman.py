"""Kalman filters for state and base parameters together, on line.

The state is ``[q, dq, beta]``: measured torques move it by the forward dynamics (fourth-order Runge-Kutta), measured
positions correct it. These are reference methods: the direct dynamic model needs a good start, honest noise levels and
a fast clock, where least squares needs none of them.

With the right model and noise levels the innovations, in standard deviations, are white with unit variance. Errors of
parameters come from slow innovations, so the covariance is inflated by the variance of means over blocks of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_whole, check_number
from dynid.errors import ArgumentError, DataError, EstimationError
from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.noise import check_data
from dynid.estimation.noisy.belief import Belief
from dynid.estimation.noisy.direct_model import DirectModel
from dynid.estimation.noisy.motion_noise import (
    check_joints_move,
    check_noise_levels,
    cubic_weights,
    law_stiffness,
    per_joint_std,
    position_noise,
)
from dynid.findings import Finding
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters, require_kept_columns
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

LEVEL = 1e-4
"""Probability that the innovations of one joint are called too large although the filter is right. Convention."""
WORSE = 2.0
"""Errors of prediction over those of constant velocity above which a filter is refused. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class Innovations:
    """The innovations of one gap-free stretch."""

    q: Floats
    """(N, n) measured positions [rad or m]"""
    surprise: Floats
    """(N, n) measured less expected positions [rad or m]"""
    std: Floats
    """(N, n) standard deviation of that difference as the filter has it"""


def innovation_inflation(stretches: Sequence[Innovations], joints: Sequence[str]) -> tuple[Floats, tuple[Finding, ...]]:
    """(n,) factor by which innovations vary more than the filter says, at least 1; and a finding where it is more.

    Args:
        stretches: All that were filtered.
        joints: (n,) their names.
    """
    from scipy.special import chdtri

    means = []
    for stretch in stretches:
        relative = stretch.surprise / stretch.std
        size = max(1, isqrt(len(relative)))  # blocks as long as there are many
        blocks = relative[: len(relative) // size * size].reshape(-1, size, relative.shape[1])
        means.append(blocks.sum(axis=1) / np.sqrt(size))
    together = np.concatenate(means)
    squares = np.mean(together**2, axis=0)
    usual = chdtri(len(together), LEVEL) / len(together)
    inflation = np.where(squares > usual, squares, 1.0)
    if not np.any(inflation > 1.0):
        return inflation, ()
    worst = int(np.argmax(inflation))
    message = (
        f"the model or the noise levels do not fit: the variance of the innovations is {inflation[worst]:.3g} times as "
        "large as it should be; intervals are widened by that, but a wrong model also shifts the values"
    )
    found = Finding(
        code="misfit",
        severity="warning",
        where="q",
        joint=joints[worst],
        message=message,
        remedy="Check torque_std, position_std, torque_between and the terms.",
        evidence={"variance ratio": float(inflation[worst])},
    )
    return inflation, (found,)


def check_predictions(stretches: Sequence[Innovations], joints: Sequence[str]) -> None:
    """Check that the filter predicts positions better than constant velocity does.

    Raises:
        EstimationError: The predictions of some joint are much worse.
    """
    surprise = np.concatenate([np.abs(stretch.surprise) for stretch in stretches])
    coasting = np.concatenate([np.abs(np.diff(stretch.q, 2, axis=0)) for stretch in stretches])
    # medians, so that the first samples after a poor start do not count
    off, usual = np.median(surprise, axis=0), np.median(coasting, axis=0)
    expected = np.median(np.concatenate([stretch.std for stretch in stretches]), axis=0)
    hopeless = np.flatnonzero(off > WORSE * np.maximum(usual, expected))
    if hopeless.size:
        joint = int(hopeless[0])
        raise EstimationError(
            f"the measured torques do not move {joints[joint]!r} as the model says: positions are {off[joint]:.2g} off "
            f"after one sample, {usual[joint]:.2g} with constant velocity",
            remedy="Check the torques' signs and scale and the terms, or start closer to the truth (start=...).",
        )


SAME_RATE = 0.5
"""Control periods per sample, beyond one, up to which the logged torque is taken for the acting one. Convention."""
LEAST_POSITION_STD = 1e-9
"""Least position noise that is assumed, so that the filter's equations stay regular [rad or m]. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kalman(Estimator):
    """Extended or unscented Kalman filter, with covariances or their square roots."""

    name: ClassVar[str] = "kalman"
    on_command_line: ClassVar[bool] = False
    title: ClassVar[str] = "Kalman filter"
    use: ClassVar[str] = "state and parameters are wanted on line"
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)
    accepts_terms: ClassVar[bool] = False
    accepts_band: ClassVar[bool] = False

    kind: Literal["extended", "unscented"] = "extended"
    square_root: bool = False
    """Whether the covariance is propagated as its root."""
    position_std: float | None = None
    """Standard deviation of the positions' noise [rad or m]; None takes it from their spectrum."""
    torque_std: float | tuple[float, ...] | None = None
    """Standard deviation of the torques' noise [N m or N]; None takes it from the residuals of least squares. Where a
    loop is known that is faster than the log, what its law answers to the positions' noise is added."""
    start: tuple[float, ...] | None = None
    """(b,) base parameters to start from; the robot's own by default."""
    start_std: float = 0.3
    """Standard deviation of the start relative to its values; of zeros, relative to the mean size of their kind."""
    torque_between: Literal["held", "smooth"] | None = None
    """How torques go on between samples: held by a digital controller, or along cubics through them. None holds them
    where a loop is known that is no faster than the log, and takes cubics otherwise; on line, where no later torque is
    known, each is held."""
    torque_delay_s: float | None = None
    """How much later than logged smooth torques act [s]. None takes half a control period where a loop is known that is
    faster than the log: its law holds each torque from the logged instant on."""
    drift: float = 0.0
    """Standard deviation that parameters gain in one second, relative to that of the start."""
    passes: int = 1
    """How often the data are gone through, each time with the means of the last one and the uncertainty renewed."""
    spread: float = 0.5
    """Distance of sigma points from the mean [standard deviations]; far ones may be robots that cannot exist."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if self.kind not in ("extended", "unscented"):
            raise ArgumentError(f"there is no {self.kind!r} Kalman filter", remedy="Choose extended or unscented.")
        if self.torque_between not in ("held", "smooth", None):
            raise ArgumentError(f"torque_between is {self.torque_between!r}", remedy="Choose held, smooth or None.")
        check_noise_levels(self.position_std, self.torque_std)
        check_number("torque_delay_s", self.torque_delay_s, "a time, zero or more [s], or None", zero=True)
        as_whole("passes", self.passes, least=1)
        check_number("start_std", self.start_std, "a number above zero, relative to the start's values")
        check_number("spread", self.spread, "a number above zero [standard deviations]")
        check_number("drift", self.drift, "a number from zero on, relative to start_std", zero=True)

    def begin(
        self,
        robot: Robot,
        q: ArrayLike,
        dq: ArrayLike | None = None,
        *,
        rate_hz: float,
        base: BaseParameters | None = None,
        friction_speed: float | None = None,
    ) -> OnlineFilter:
        """Start on line.

        Args:
            robot: Geometry, terms, and the values to start from.
            q: (n,) first measured positions [rad or m].
            dq: (n,) velocities then; at rest by default.
            rate_hz: Sampling rate [Hz].
            base: The base parameters to estimate; those of every motion by default.
            friction_speed: Below this speed dry friction is smoothed [rad/s or m/s]; None leaves its jump.
        """
        position_std, torque_std = self._noise_levels()
        n, chosen = robot.dof, require_kept_columns(choose_base(robot, base))
        noise = per_joint_std(torque_std, n)
        position = np.full(n, max(position_std, LEAST_POSITION_STD))
        beta, spread = self._start(robot, chosen)
        velocity = np.zeros(n) if dq is None else np.asarray(dq, dtype=float)
        std = np.concatenate([position, 4.0 * position * rate_hz, spread])
        mean = np.concatenate([np.asarray(q, dtype=float), velocity, beta])
        return OnlineFilter(
            settings=self,
            surprise=np.zeros(n),
            surprise_std=position,
            model=DirectModel(robot, chosen, friction_speed),
            belief=Belief.of(mean, std, square_root=self.square_root),
            position_std=position,
            torque_std=noise,
            drift=self.drift * spread,
            rate_hz=rate_hz,
        )

    def _noise_levels(self) -> tuple[float, float | tuple[float, ...]]:
        """Standard deviations of positions and torques.

        Raises:
            ArgumentError: One of them is None.
        """
        if self.position_std is None or self.torque_std is None:
            raise ArgumentError("on line, noise levels must be known", remedy="Give position_std and torque_std.")
        return self.position_std, self.torque_std

    def _start(self, robot: Robot, base: BaseParameters) -> tuple[Floats, Floats]:
        """(b,) values and (b,) standard deviations at the start."""
        beta = base.project(robot.parameter_vector) if self.start is None else np.asarray(self.start, dtype=float)
        if beta.shape != (base.rank,):
            raise ArgumentError(f"the start has shape {beta.shape}", remedy=f"Give {base.rank} base parameters.")
        size = np.abs(beta)
        for unit in set(base.units):
            same = np.array(base.units) == unit
            size[same] = np.maximum(size[same], size[same].mean())
        return beta, self.start_std * np.where(size > 0.0, size, 1.0)

    def estimate(self, equations: Samples) -> Estimate:
        """Go through all experiments, one after the other; the parameters are those at the end.

        Raises:
            EstimationError: The filter runs away, or the positions are nowhere near those it expects.
        """
        check_data(equations)
        plain = least_squares_estimate(equations, refined_weights(equations), f"{self._name} Kalman filter")
        settings = self._resolve_noise_levels(equations, plain)
        belief, innovations = settings._one_pass(equations, None)
        for _ in range(self.passes - 1):
            belief, innovations = settings._one_pass(equations, belief)
        states = 2 * equations.robot.dof
        check_predictions(innovations, equations.robot.joint_names)
        inflation, doubts = innovation_inflation(innovations, equations.robot.joint_names)
        levels = Finding(
            code="noise-levels",
            severity="note",
            where="estimate",
            message=f"positions are taken to be noisy by {settings.position_std:.2g}, "
            f"the start by {100 * self.start_std:.3g} %",
        )
        return replace(
            plain,
            values=belief.mean[states:],
            covariance=inflation.max() * belief.covariance[states:, states:],
            undetermined=np.zeros(equations.base.rank, dtype=bool),
            inflation=inflation,
            findings=(*self._contradictions(equations), *doubts, levels),
        )

    @property
    def _name(self) -> str:
        return ("square-root " if self.square_root else "") + self.kind

    def _resolve_noise_levels(self, equations: Samples, plain: Estimate) -> Kalman:
        """These settings with numbers for the noise levels."""
        position = position_noise(equations.experiments) if self.position_std is None else self.position_std
        torque = tuple(float(std) for std in plain.noise_std) if self.torque_std is None else self.torque_std
        check_joints_move(equations, position)
        return replace(self, position_std=position, torque_std=torque)

    def _one_pass(self, equations: Samples, before: Belief | None) -> tuple[Belief, list[Innovations]]:
        """The belief after all samples, from the means of an earlier pass where there was one; and the surprises."""
        start = None if before is None else tuple(before.mean[2 * equations.robot.dof :].tolist())
        belief: Belief | None = None
        innovations = []
        for run, rows in _usable_stretches(equations):
            settings = self._for_run(run) if start is None else replace(self._for_run(run), start=start)
            filtered = settings.begin(
                equations.robot,
                run.q[rows][0],
                run.dq[rows][0],
                rate_hz=run.rate_hz,
                base=equations.base,
                friction_speed=None if run.loop is None else run.loop.coarse_friction_speed,
            )
            if belief is not None:
                filtered = filtered.with_parameters_of(belief)
            states = list(filtered.steps(run.q[rows], run.effort[rows]))
            surprise, std = (np.array([getattr(s, name) for s in states]) for name in ("surprise", "surprise_std"))
            innovations.append(Innovations(run.q[rows], surprise, std))
            belief = states[-1].belief
        if belief is None:
            raise DataError("no stretch has four samples with torques", remedy="See Experiment.dropped.")
        return belief, innovations

    def _contradictions(self, equations: Samples) -> tuple[Finding, ...]:
        """Settings that contradict the known control loops."""
        periods = [_control_periods(run) for run in equations.experiments if run.loop is not None]
        if self.torque_between != "held" or max(periods, default=1.0) <= 1.0 + SAME_RATE:
            return ()
        return (
            Finding(
                code="held-torques",
                severity="warning",
                where="effort",
                message="torques are taken to be constant between samples, but the loop changes them "
                f"{max(periods):.3g} times in a sample, so values are shifted",
                remedy="Use torque_between=None.",
                evidence={"control periods in a sample": max(periods)},
            ),
        )

    def _for_run(self, run: Experiment) -> Kalman:
        """The same with what a run's loop, if it is known, makes of the torques between samples."""
        position_std, torque_std = self._noise_levels()
        periods = _control_periods(run)
        between = self.torque_between or ("smooth" if periods > 1.0 + SAME_RATE else "held")
        stiffness = law_stiffness(run)
        delay = 0.5 / (periods * run.rate_hz) if self.torque_delay_s is None else self.torque_delay_s
        if stiffness is None or periods <= 1.0 + SAME_RATE:
            return replace(self, torque_between=between, torque_delay_s=delay)
        # the logged torque answers the noise of one control period, the one that acts the mean of all their noises
        answered = stiffness * position_std * np.sqrt(1.0 - 1.0 / periods)
        torque = np.hypot(per_joint_std(torque_std, answered.size), answered)
        return replace(self, torque_between=between, torque_std=tuple(torque.tolist()), torque_delay_s=delay)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineFilter:
    """A filter at work. Immutable: `predict` and `update` return the next one."""

    settings: Kalman
    model: DirectModel
    belief: Belief
    """Of positions, velocities and base parameters (2 n + b,)."""
    position_std: Floats
    """(n,)"""
    torque_std: Floats
    """(n,)"""
    drift: Floats
    """(b,) standard deviation that the parameters gain in one second"""
    rate_hz: float
    surprise: Floats
    """(n,) the innovation: last measured positions less the expected ones; NaN where a joint's was missing"""
    surprise_std: Floats
    """(n,) standard deviation of the innovation according to the filter"""

    @property
    def values(self) -> Floats:
        """(b,) base parameters."""
        return self.belief.mean[2 * self.torque_std.size :]

    @property
    def stderr(self) -> Floats:
        """(b,) standard deviation of each value."""
        return np.asarray(np.sqrt(np.diagonal(self.belief.covariance)[2 * self.torque_std.size :]))

    @property
    def q(self) -> Floats:
        """(n,) positions [rad or m]."""
        return self.belief.mean[: self.torque_std.size]

    @property
    def dq(self) -> Floats:
        """(n,) velocities."""
        return self.belief.mean[self.torque_std.size : 2 * self.torque_std.size]

    def predict(self, torque: ArrayLike) -> OnlineFilter:
        """One sampling period on.

        Args:
            torque: (n,) measured torque that is held [N m or N], or (3, n) at the start, middle and end of the period.

        Raises:
            EstimationError: The model has run away.
        """
        tau = np.asarray(torque, dtype=float)
        stages = np.broadcast_to(tau, (3, self.torque_std.size)) if tau.ndim == 1 else tau
        h = 1.0 / self.rate_hz
        mean, F, G = self.model.linear_step(self.belief.mean, stages, h)
        noise = np.zeros((mean.size, G.shape[1] + self.drift.size * bool(self.drift.any())))
        noise[:, : G.shape[1]] = G * self.torque_std
        if self.drift.any():
            noise[-self.drift.size :, G.shape[1] :] = np.diag(np.sqrt(h) * self.drift)
        with np.errstate(over="ignore", invalid="ignore"):  # said below, as an error
            if self.settings.kind == "extended":
                belief = self.belief.predict(mean, F, noise)
            else:
                belief = self.belief.predict_by_points(
                    lambda points: self.model.steps(points, stages, h), noise, self.settings.spread
                )
        if not (np.isfinite(belief.mean).all() and np.isfinite(belief.matrix).all()):
            raise EstimationError(
                "the Kalman filter has run away",
                remedy="Start from an estimate by least squares (start=...), with honest noise levels.",
            )
        return replace(self, belief=belief)

    def update(self, q: ArrayLike) -> OnlineFilter:
        """Corrected by measured positions (n,) [rad or m]; NaN where a joint's is missing."""
        measured = np.asarray(q, dtype=float)
        here = np.flatnonzero(np.isfinite(measured))
        H = np.eye(self.torque_std.size, self.belief.mean.size)[here]
        return replace(
            self,
            belief=self.belief.correct(H, measured[here], self.position_std[here]),
            surprise=measured - self.q,
            surprise_std=np.hypot(self.belief.std[: measured.size], self.position_std),
        )

    def steps(self, q: Floats, torque: Floats) -> Iterator[OnlineFilter]:
        """After each sample but the first of a gap-free stretch (N, n), the first position already known."""
        state = self
        for k in range(len(q) - 1):
            state = state.predict(self._between(torque, k)).update(q[k + 1])
            yield state

    def run(self, q: Floats, torque: Floats) -> OnlineFilter:
        """Through a gap-free stretch of positions and torques (N, n), the first position already known."""
        state = self
        for following in self.steps(q, torque):
            state = following
        return state

    def with_parameters_of(self, belief: Belief) -> OnlineFilter:
        """The same state with the parameters, and their uncertainty, of another belief."""
        n = 2 * self.torque_std.size
        mean = np.concatenate([self.belief.mean[:n], belief.mean[n:]])
        P = np.zeros_like(self.belief.matrix)
        P[:n, :n], P[n:, n:] = self.belief.covariance[:n, :n], belief.covariance[n:, n:]
        matrix = np.asarray(np.linalg.cholesky(P), dtype=float) if self.belief.square_root else P
        return replace(self, belief=replace(self.belief, mean=mean, matrix=matrix))

    def _between(self, torque: Floats, k: int) -> Floats:
        """(3, n) torque at the start, middle and end of period k."""
        if self.settings.torque_between != "smooth":
            return np.broadcast_to(torque[k], (3, torque.shape[1]))
        rows = torque[np.clip(np.arange(k - 1, k + 3), 0, len(torque) - 1)]
        return cubic_weights(np.array([0.0, 0.5, 1.0]) - (self.settings.torque_delay_s or 0.0) * self.rate_hz) @ rows


def _control_periods(run: Experiment) -> float:
    """Control periods in a sample; infinite where no loop is known."""
    return np.inf if run.loop is None else run.loop.reference.rate_hz / run.rate_hz


def _usable_stretches(equations: Samples) -> Iterator[tuple[Experiment, slice]]:
    """The gap-free stretches of at least four samples in which all torques are known."""
    for run in equations.experiments:
        known = np.asarray(np.isfinite(run.effort).all(axis=1))
        number = np.cumsum((np.diff(run.segment, prepend=run.segment[0]) != 0) | ~known)
        edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), run.samples]
        for start, stop in pairwise(edges):
            first = start if known[start] else start + 1
            if stop - first >= 4:
                yield run, slice(first, stop)
