"""Maximum likelihood with torque noise of each joint's own colour, and with noise on the positions.

The true motion is unknown as well as the parameters. About the present motion the equations are linear in both; the
motion is eliminated, which leaves generalised least squares with a banded covariance, and is then moved to where it is
likely; and so on until nothing moves (Gauss-Newton for orthogonal distances). Each joint's torque noise follows from
the likelihood too: its variance by the fixed point ``v <- v |S^-1 u|^2 / trace(S^-1)``, its colour as an autoregression
whose order the Bayesian criterion chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from dynid.arrays import Floats
from dynid.checks import check_number
from dynid.decompositions import lstsq
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.noisy.autoregression import Autoregression, autocovariance
from dynid.estimation.noisy.linearisation import Linearisation, linearisation
from dynid.estimation.noisy.motion_noise import (
    check_inertia_sign,
    check_joints_move,
    check_noise_levels,
    law_stiffness,
    per_joint_std,
    position_noise,
    torque_lead,
)
from dynid.estimation.noisy.position_errors import NoisyStretch, Solution
from dynid.estimation.samples import sample_blocks
from dynid.findings import Finding
from dynid.kernels import regressor
from dynid.processing.cutoff import choose_cutoff
from dynid.processing.differentiation import CentralDifferences, Differentiation
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth
from dynid.terms.base import Dependence

CHUNK = 4096
"""Samples whose covariance is factorised together; neighbouring chunks are taken as independent. Convention."""
SHORTEST = 64
"""Least number of samples of a stretch with noisy positions. Convention."""
TORQUE_SHARE = 0.5
"""Least share of torque noise in a residual's variance for which the colour of the noise is fitted. Convention."""
COLOURED = (3, 4, 5)
"""Rounds in which colours are fitted; then they and the signs of dry friction stay, so that the search can end.
Convention."""
RESCALED = 12
"""Number of first rounds in which variances are improved. Convention."""
SETTLED = 0.05
"""Relative change of variances below which the search may end before `RESCALED` rounds. Convention."""
NEARLY = 1.0
"""Last step, in standard deviations, up to which the result counts, with a finding. Convention."""
ROUNDING = 1e-11
"""Steps below this share of the largest parameter are rounding. Convention."""
FASTER = 4.0
"""Control rate over that of the log above which a sampled torque says little of the motion between samples.
Experiment: with a ratio of 2 (1 kHz under 2 kHz) the search did not settle."""
LEVEL, MISFIT = 1e-4, 1.5
"""Probability of chance below which, and ratio of variances above which, residuals do not fit. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ML(Estimator):
    """Maximum likelihood; with white torques and exact positions the same as `WLS`."""

    name: ClassVar[str] = "ml"
    title: ClassVar[str] = "maximum likelihood"
    use: ClassVar[str] = "positions are noisy or the torque noise is coloured, and the model is right"
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)
    accepts_band: ClassVar[bool] = False

    position_std: float | None = None
    """Standard deviation of white noise on the positions [rad or m]; 0 for exact ones, None takes their spectrum's
    floor. With noise, use experiments that were not low-passed (``process(..., cutoff_hz=None)``)."""
    torque_std: float | tuple[float, ...] | None = None
    """Standard deviation of each joint's torque noise [N m or N]; None finds it, and its colour, from the data. Worth
    giving where the positions' noise does much more to the torques: the data then say little of it."""
    most_order: int = 6
    """Largest order of the torque noise's autoregression; 0 for white noise."""
    differentiation: Differentiation = field(default_factory=CentralDifferences)
    """How velocities and accelerations follow from positions."""
    fed_back: bool = True
    """Whether the law of a loop that is known sees the positions' noise, as it sees that of encoders; it matters where
    the law is several times faster than the log."""
    torque_delay_s: float | None = None
    """With noise on the positions: how much later than logged torques act [s]. None takes half a control period where a
    loop is known that is several times faster than the log: its law holds each torque from the logged instant on."""
    rounds: int = 40
    tolerance: float = 1e-2
    """The parameters' last step, in standard deviations, at which the search ends."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if self.rounds < 1 or self.most_order < 0:
            raise ArgumentError(f"rounds must be positive, order not negative: {self}")
        check_noise_levels(self.position_std, self.torque_std)
        check_number("torque_delay_s", self.torque_delay_s, "a time, zero or more [s], or None", zero=True)

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate; the covariance is the inverse of the Fisher information.

        Raises:
            EstimationError: The search does not end.
        """
        std = position_noise(equations.experiments) if self.position_std is None else self.position_std
        check_joints_move(equations, std)
        weights = refined_weights(equations)
        plain = least_squares_estimate(equations, weights, "maximum likelihood")
        if plain.undetermined.any():
            raise EstimationError(
                f"the likelihood has no single peak: the motion leaves {', '.join(_undetermined_names(plain))} open",
                remedy="Move the robot more, or use WLS(), which marks what stays open.",
            )
        found = _Search(self, equations, std).run() if std > 0.0 else self._exact_positions(equations, plain)
        orders = [model.order for model in found.noise]
        covariance = np.asarray(found.misfit * np.linalg.inv(found.information), dtype=float)
        check_inertia_sign(equations, found.beta, covariance)
        return replace(
            plain,
            values=found.beta,
            covariance=covariance,
            noise_std=np.sqrt([_marginal(model) for model in found.noise]),
            inflation=np.ones(equations.robot.dof),
            findings=(
                *plain.findings,
                *_low_pass_findings(equations, std, given=self.position_std is not None),
                *found.doubts,
                Finding(
                    code="noise-levels",
                    severity="note",
                    where="estimate",
                    message=f"positions are noisy by {std:.2g}, and the torque noise has the orders {orders}",
                    evidence={"position std": std, "highest order": float(max(orders))},
                ),
            ),
            extras={"iterations": float(found.rounds), "position_std": std},
        )

    @classmethod
    def for_logs(cls) -> Self:
        """Exact positions: processed logs have low-passed positions, whose noise is no longer white."""
        return cls(position_std=0.0)

    def _is_small(self, step: Floats, beta: Floats, information: Floats) -> bool:
        """Whether a step is small beside the standard deviations, or beside rounding where there is no noise."""
        small = np.abs(step) * np.sqrt(np.diagonal(information)) < self.tolerance
        return bool(np.all(small | (np.abs(step) < ROUNDING * np.abs(beta).max())))

    def _exact_positions(self, equations: Samples, plain: Estimate) -> _Found:
        """Generalised least squares with the residuals' own colour, until neither changes."""
        beta = plain.values
        for turn in range(1, self.rounds + 1):
            if turn <= max(COLOURED):
                noise = _residual_colours(equations, beta, self.most_order)
                A, g = _filtered_equations(equations, noise)
            step = np.linalg.solve(A, g) - beta
            beta = beta + step
            if self._is_small(step, beta, A):
                return _Found(beta, A, noise, turn)
        raise _unsettled_error(self.rounds)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    beta: Floats
    information: Floats
    noise: list[Autoregression]
    rounds: int
    moved: float = 0.0
    """Last step, in standard deviations, where it is still large."""
    misfit: float = 1.0
    """Variance of the residuals over that which the noise levels make likely, where it is much more than one."""

    @property
    def doubts(self) -> tuple[Finding, ...]:
        """What speaks against the answer."""
        unsettled = Finding(
            code="not-settled",
            severity="warning",
            where="estimate",
            message=f"the search still moves by {self.moved:.2g} standard deviations",
        )
        misfit = Finding(
            code="misfit",
            severity="warning",
            where="estimate",
            message=f"the model or the noise levels do not fit: the variance of the residuals is {self.misfit:.3g} "
            "times as large as it should be; intervals are widened by that, but a wrong model also shifts the values",
            remedy="Check position_std, torque_std and the terms.",
            evidence={"variance ratio": self.misfit},
        )
        return (unsettled,) * (self.moved > 0.0) + (misfit,) * (self.misfit > 1.0)


class _Search:
    """The search with noise on the positions."""

    def __init__(self, settings: ML, equations: Samples, std: float) -> None:
        if equations.terms or equations.band_hz is not None:
            raise ArgumentError(
                "noise on positions is followed through links and the robot's own terms only",
                remedy="Leave terms and band out, or give position_std=0.",
            )
        self.settings, self.equations, self.std = settings, equations, std
        self.stretches = _stretches(equations, settings)
        layout = equations.base.layout
        kinds = [layout[column].dependence for column in equations.base.columns]
        self.dry = [k for k, kind in enumerate(kinds) if kind is Dependence.DIRECTION]
        loop = equations.experiments[0].loop
        speed = None if loop is None else loop.coarse_friction_speed
        self.model: Linearisation = linearisation(equations.robot, equations.base, speed)

    def run(self) -> _Found:
        """Parameters, motion and noise, in turn."""
        motions = [_smooth(stretch) for stretch in self.stretches]
        beta, noise = self._start(motions)
        given = self.settings.torque_std
        if given is not None:
            noise = [Autoregression.white(float(std) ** 2) for std in per_joint_std(given, len(noise))]
        signs: list[Floats] = []
        change = np.inf
        for turn in range(1, self.settings.rounds + 1):
            ready = [s.equations(self.model, q, beta) for s, q in zip(self.stretches, motions, strict=True)]
            if given is None and self.settings.most_order and turn in COLOURED:
                noise = self._fit_colours(ready, beta, noise)
            if turn > max(COLOURED):
                signs = signs or [Y[..., self.dry].copy() for _, Y, _ in ready]
                for (_, Y, _), fixed in zip(ready, signs, strict=True):
                    Y[..., self.dry] = fixed
            parts = [s.solve(e, self.std, noise) for s, e in zip(self.stretches, ready, strict=True)]
            information = np.sum([part.information for part in parts], axis=0)
            step = np.linalg.solve(information, np.sum([part.score for part in parts], axis=0)) - beta
            beta = beta + step
            motions = [s.q + part.shift(beta, len(s.q)) for s, part in zip(self.stretches, parts, strict=True)]
            if given is None and turn <= RESCALED:
                noise, change = _rescale(noise, parts, beta, np.linalg.inv(information))
            if (
                turn > max(COLOURED)
                and self.settings._is_small(step, beta, information)
                and (change < SETTLED or turn > RESCALED)
            ):
                return _Found(beta, information, noise, turn, misfit=self._misfit(ready, parts, beta))
        moved = float(np.abs(step * np.sqrt(np.diagonal(information))).max())
        if moved > NEARLY:
            raise _unsettled_error(self.settings.rounds)
        return _Found(beta, information, noise, self.settings.rounds, moved, self._misfit(ready, parts, beta))

    def _misfit(self, ready: list[tuple[Floats, Floats, Floats]], parts: list[Solution], beta: Floats) -> float:
        """Variance of the residuals over the expected one; 1 where that is no more than chance."""
        from scipy.special import chdtri

        if self.settings.torque_std is None:  # found from the residuals, so that they fit
            return 1.0
        squares = sum(part.misfit(t - Y @ beta, beta) for part, (t, Y, _) in zip(parts, ready, strict=True))
        spare = sum(int(np.any(J != 0.0, axis=2).sum()) for _, _, J in ready) - beta.size
        return squares / spare if spare > 0 and squares > max(chdtri(spare, LEVEL), MISFIT * spare) else 1.0

    def _start(self, motions: list[Floats]) -> tuple[Floats, list[Autoregression]]:
        """Least squares on smoothed motions, and what it leaves over as white noise."""
        columns, torques = [], []
        for stretch, q in zip(self.stretches, motions, strict=True):
            inner = slice(stretch.reach, len(q) - stretch.reach)
            valid, kept = stretch.valid[inner], self.equations.base.columns
            columns.append(regressor(self.equations.robot, *stretch.motion(q), columns=kept) * valid[..., None])
            torques.append(stretch.effort[inner] * valid)
        Y, tau = np.concatenate(columns), np.concatenate(torques)
        weights = np.ones(tau.shape[1])
        for _ in range(3):
            root = np.sqrt(weights)[:, None]
            rows = (Y * root).reshape(-1, Y.shape[2])
            beta = np.asarray(lstsq(rows, (tau * root[:, 0]).reshape(-1), rcond=1e-12), dtype=float)
            variances = np.maximum(np.mean((tau - Y @ beta) ** 2, axis=0), 1e-300)
            weights = 1.0 / np.maximum(variances, 1e-12 * variances.max())
        return beta, [Autoregression.white(float(1.0 / w)) for w in weights]

    def _fit_colours(
        self, ready: list[tuple[Floats, Floats, Floats]], beta: Floats, noise: list[Autoregression]
    ) -> list[Autoregression]:
        """The colour of each joint's torque noise: residuals' autocovariance less what positions explain."""
        most, n = self.settings.most_order, len(noise)
        found = []
        for joint in range(n):
            sums, count = np.zeros(most + 1), 0
            plain = 0.0
            for target, Y, J in ready:
                valid = np.any(J[:, joint] != 0.0, axis=1)
                covariances, samples = autocovariance(target[:, joint] - Y[:, joint] @ beta, valid, most)
                sums += samples * (covariances - self.std**2 * _row_covariance(J[:, joint], n, most))
                plain += samples * covariances[0]
                count += samples
            if sums[0] < TORQUE_SHARE * plain:
                found.append(noise[joint])
            else:
                found.append(Autoregression.fit(sums / max(count, 1), count))
        return found


def _row_covariance(J: Floats, n: int, most: int) -> Floats:
    """(most + 1,) mean autocovariance of one joint's torque under positions of unit noise; J (m, W n)."""
    width = J.shape[1]
    rows = len(J)
    sums = [
        float(np.sum(J[lag:, : width - lag * n] * J[: rows - lag, lag * n :])) if lag * n < width else 0.0
        for lag in range(most + 1)
    ]
    return np.array(sums) / rows


def _rescale(
    noise: list[Autoregression], parts: list[Solution], beta: Floats, covariance: Floats
) -> tuple[list[Autoregression], float]:
    """Each joint's variance nearer to the restricted likelihood's peak, and the largest relative change."""
    squares = np.sum([part.squares(beta) for part in parts], axis=0)
    ratios = squares / np.sum([part.spare(covariance) for part in parts], axis=0)
    ratios = np.clip(ratios, 0.1, 10.0)
    largest = max(model.variance for model in noise)
    moved = [
        replace(model, variance=max(model.variance * float(ratio), 1e-12 * largest))
        for model, ratio in zip(noise, ratios, strict=True)
    ]
    return moved, float(np.abs(ratios - 1.0).max())


def _stretches(equations: Samples, settings: ML) -> list[NoisyStretch]:
    """All experiments, cut into chunks."""
    found = []
    for run in equations.experiments:
        answer = _answer(run) if settings.fed_back else None
        delay = 0.0 if settings.torque_delay_s is None and not _is_fast(run) else settings.torque_delay_s
        lead = torque_lead(run, delay)
        borders = np.flatnonzero(np.diff(run.segment)) + 1
        for rows in np.split(np.arange(run.samples), borders):
            for part in np.array_split(rows, max(1, round(len(rows) / CHUNK))):
                if len(part) >= SHORTEST:
                    valid = run.valid[part]
                    effort = np.where(valid, run.effort[part], 0.0)
                    measured = (run.q[part], effort, valid, run.rate_hz)
                    found.append(NoisyStretch(*measured, settings.differentiation, answer, lead))
    if not found:
        raise EstimationError(f"no stretch has {SHORTEST} samples", remedy="Record for longer, or give position_std=0.")
    return found


def _answer(run: Experiment) -> Floats | None:
    """(n,) stiffness of a known law that is much faster than the log; None otherwise."""
    return law_stiffness(run) if _is_fast(run) else None


def _is_fast(run: Experiment) -> bool:
    """Whether the loop is known, and its law much faster than the log."""
    return run.loop is not None and run.loop.reference.rate_hz >= FASTER * run.rate_hz


def _smooth(stretch: NoisyStretch) -> Floats:
    """The stretch's positions, low-passed where their spectrum says."""
    low_pass = Butterworth()
    choice = choose_cutoff([stretch.q], stretch.rate_hz, differentiation=stretch.differentiation, low_pass=low_pass)
    return low_pass.apply(stretch.q, stretch.rate_hz, choice.hz)


def _residual_colours(equations: Samples, beta: Floats, most: int) -> list[Autoregression]:
    """The colour of each joint's residuals over all experiments."""
    n = equations.robot.dof
    sums, counts = np.zeros((n, most + 1)), np.zeros(n, dtype=int)
    for block in sample_blocks(equations, CHUNK):
        rest = block.effort - block.matrix @ beta
        for joint in range(n):
            covariances, samples = autocovariance(rest[:, joint], block.valid[:, joint], most)
            sums[joint] += samples * covariances
            counts[joint] += samples
    share = 1.0 - beta.size / max(int(counts.sum()), beta.size + 1)
    floor = 1e-20 * max(float((sums[:, 0] / np.maximum(counts, 1)).max()), 1e-280)
    fits = []
    for joint in range(n):
        covariances = sums[joint] / max(int(counts[joint]), 1) / share
        covariances[0] = max(covariances[0], floor)
        fits.append(Autoregression.fit(covariances, int(counts[joint])))
    return fits


def _filtered_equations(equations: Samples, noise: list[Autoregression]) -> tuple[Floats, Floats]:
    """Normal equations (b, b) and (b,) of the whitened samples."""
    size = len(equations.names)
    A, g = np.zeros((size, size)), np.zeros(size)
    for block in sample_blocks(equations, CHUNK):
        for joint, model in enumerate(noise):
            valid = block.valid[:, joint]
            if len(valid) <= model.order:
                continue
            counts = np.all(np.lib.stride_tricks.sliding_window_view(valid, model.order + 1), axis=1)
            Y = model.whiten(block.matrix[:, joint] * valid[:, None])[counts]
            tau = model.whiten(block.effort[:, joint])[counts]
            A += Y.T @ Y / model.variance
            g += Y.T @ tau / model.variance
    return A, g


def _marginal(model: Autoregression) -> float:
    """Variance of the process itself, not of what drives it: the sum of its squared impulse response."""
    from scipy.signal import lfilter

    impulse = np.zeros(4096)
    impulse[0] = 1.0
    return model.variance * float(np.sum(lfilter([1.0], model.taps, impulse) ** 2))


def _low_pass_findings(equations: Samples, std: float, *, given: bool) -> tuple[Finding, ...]:
    """A finding where positions were low-passed although their noise is modelled."""
    low_passed = [
        run for run in equations.experiments if run.derivation is not None and run.derivation.smoothing.cutoff_hz
    ]
    if not low_passed or not std > 0.0:
        return ()
    source = "the given noise level is no longer theirs" if given else "their noise level cannot be estimated"
    return (
        Finding(
            code="position-filter",
            severity="warning",
            where="q",
            message=f"positions were low-passed, so that {source}",
            remedy="Use process(..., cutoff_hz=None), or ML(position_std=0) on low-passed positions.",
        ),
    )


def _undetermined_names(plain: Estimate) -> list[str]:
    return [name for name, free in zip(plain.names, plain.undetermined, strict=True) if free]


def _unsettled_error(rounds: int) -> EstimationError:
    return EstimationError(
        f"the likelihood's peak is not reached in {rounds} rounds",
        remedy="Check the noise level of the positions, low-pass them and give position_std=0, or raise rounds.",
    )
