"""The proof: torque errors of an identified robot on held-out data, beside those of the prior model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid.checks import as_number, as_whole
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.estimation.rows import WIDEST_BAND, stretches, torque_of_terms
from dynid.kernels import inverse_dynamics
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.processing.experiment import Experiment, matched_runs
from dynid.processing.filters import Butterworth, filter_there_and_back
from dynid.public_calls import public
from dynid.robot.model import Robot
from dynid.stages import in_stage
from dynid.tables import Table, html_card
from dynid.terms.base import Term

__all__ = ["Validation", "cross_validate", "robot_error", "training_error_in_band", "validate"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SETTLED = 1e-2
"""Relative accuracy to which the filter must have settled at the ends of a compared stretch (convention)."""
ALIKE = 1.01
"""Ratio up to which the errors of two models count as equal (convention: 1 %, where chance decides which is larger)."""


class Fitted(Protocol):
    """Anything that was fitted to experiments and predicts torques: an `Identification`, a `Significance`."""

    @property
    def equations(self) -> Factors:
        """The equations of the fit."""

    @property
    def robot(self) -> Robot:
        """The prior model."""

    @property
    def training_error(self) -> Floats:
        """(n + 1,) relative torque error of each joint and of all together on the data used [%]."""

    def torque(self, experiment: Experiment) -> Floats:
        """(N, n) predicted torques [N m or N]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Validation:
    """Torque errors on held-out data."""

    joint_names: tuple[str, ...]
    per_joint: Floats
    """(n,) relative error 100 |measured - predicted| / |measured| of each joint [%]."""
    relative_error: float
    """Relative error over all joints together [%]."""
    prior_error: float
    """Relative error of the prior model over all joints together [%]."""
    prior_per_joint: Floats
    """(n,) relative error of the prior model for each joint [%]."""
    training_error: float
    """Relative error on the training data [%]; NaN where they are not at hand in this band."""
    rms: Floats
    """(n,) root mean square of each joint's residual torque [N m or N]."""
    whiteness: Floats
    """(n,) lag-one autocorrelation of each joint's residuals; near 1 means model error rather than noise."""
    samples: int
    """Number of joint samples that were compared."""
    limit: float
    """Largest relative error that passes [%]."""
    band_hz: float | None = None
    """Band to which measured and predicted torques were low-passed before the comparison [Hz]; None for all."""
    trim_s: float | None = None
    """Time left out at both ends of every low-passed stretch [s]; None for the settling time of the filter."""
    doubts: tuple[str, ...] = ()
    """What the gate named in the data that biases the parameters, a delay for example, and that nothing mended."""

    @property
    def passed(self) -> bool:
        """Whether the error is within the limit, not larger than that of the prior model, and nothing is doubtful."""
        is_small = self.relative_error <= self.limit and self.relative_error <= ALIKE * self.prior_error
        return bool(is_small and not self.doubts)

    @property
    def verdict(self) -> str:
        """The verdict as one sentence."""
        band = "" if self.band_hz is None else f" below {self.band_hz:g} Hz"
        error = f"{self.relative_error:.2f} % on held-out data{band}"
        if not np.isfinite(self.relative_error):
            return "failed: nothing could be compared"
        if self.relative_error > self.limit:
            return f"failed: {error} exceeds the limit of {self.limit:g} %"
        if self.relative_error > ALIKE * self.prior_error:
            return f"failed: {error} is worse than the prior model ({self.prior_error:.2f} %)"
        if self.doubts:
            return f"not passed: {error} is within the limit, but {'; '.join(self.doubts)}"
        training = f"training {self.training_error:.2f} %, " if np.isfinite(self.training_error) else ""
        return f"passed: {error} ({training}prior model {self.prior_error:.2f} %)"

    @property
    def joints_above_limit(self) -> str:
        """A sentence that names the joints whose own error exceeds the limit; empty where there are none."""
        above = [
            f"{name} ({error:.3g} %)"
            for name, error in zip(self.joint_names, self.per_joint, strict=True)
            if error > self.limit
        ]
        if not above:
            return ""
        return f"Above the limit of {self.limit:g} %: {', '.join(above)}; the verdict judges all joints together."

    def summary(self) -> str:
        """Verdict, the joints above the limit, and a table per joint."""
        head = "\n".join(filter(None, (self.verdict, self.joints_above_limit)))
        return f"{head}\n\n{self.table().to_text()}"

    def table(self) -> Table:
        """Errors of every joint."""
        columns = (self.per_joint, self.prior_per_joint, self.rms, self.whiteness)
        figures = np.column_stack(columns).tolist()
        rows = [(name, *row) for name, row in zip(self.joint_names, figures, strict=True)]
        return Table.of(["joint", "error %", "prior model %", "rms residual", "lag-one correlation"], rows)

    def __repr__(self) -> str:
        """The verdict in one line."""
        return f"Validation({self.verdict}; {len(self.joint_names)} joints, {self.samples} torques)"

    def _repr_html_(self) -> str:
        """The verdict and the errors of every joint, for notebooks."""
        return html_card(self.verdict, table=self.table())

    def to_json(self) -> dict[str, object]:
        """The validation as values that JSON can hold."""
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "relative_error_percent": finite_or_none(self.relative_error),
            "prior_error_percent": finite_or_none(self.prior_error),
            "training_error_percent": finite_or_none(self.training_error),
            "limit_percent": self.limit,
            "doubts": list(self.doubts),
            "band_hz": self.band_hz,
            "per_joint_percent": self._by_joint(self.per_joint),
            "prior_per_joint_percent": self._by_joint(self.prior_per_joint),
            "rms_residual": self._by_joint(self.rms),
            "lag_one_correlation": self._by_joint(self.whiteness),
            "joint_samples": self.samples,  # each joint counts for itself; data have samples in time
        }

    def _by_joint(self, values: Floats) -> dict[str, float | None]:
        """Joint -> value; None where nothing could be compared."""
        return {name: finite_or_none(value) for name, value in zip(self.joint_names, values, strict=True)}

    def __str__(self) -> str:
        return self.summary()


def finite_or_none(value: float) -> float | None:
    """The number, or None where it is not finite, as JSON needs it."""
    return float(value) if np.isfinite(value) else None


@in_stage("validate")
@public
def validate(
    fit: Fitted,
    experiments: Experiment | Sequence[Experiment],
    *,
    limit: float = 15.0,
    band_hz: float | None = None,
    trim_s: float | None = None,
) -> Validation:
    """Compare predicted and measured torques of experiments that were not used for the identification.

    Args:
        fit: The identification, or its significant parameters alone (`Identification.significance`).
        experiments: Held-out data, without samples of the identification.
        limit: Largest relative error that passes [%].
        band_hz: Low-pass measured and predicted torques alike before they are compared, so that sensor noise above the
            band does not count as error of the model [Hz]; the band of the identification by default.
        trim_s: Time left out at both ends of every low-passed stretch [s]; the filter's settling time by default.

    Raises:
        ArgumentError: An experiment was used for the identification.

    Example:
        >>> dynid.validate(fit, other).passed
        False
    """
    as_number("limit", limit, above=0.0)
    if hasattr(fit, "identification"):  # what `read_result` gives
        raise ArgumentError(
            f"fit is a {type(fit).__name__}, the content of a result file",
            remedy="Restore the identification first: dynid.validate(saved.identification(), experiment).",
        )
    band = fit.equations.band_hz if band_hz is None else band_hz
    runs = matched_runs(fit.robot, experiments)
    if any(_shares_samples(run, used) for run in runs for used in fit.equations.excerpts):
        raise ArgumentError(
            "an experiment that was used for the identification cannot validate it",
            remedy="Hold out one run, or a part of one.",
        )
    comparison = _Comparison(band, trim_s)
    residuals = []
    squares, total, prior, counts = np.zeros((4, fit.robot.dof))
    for run in runs:
        predicted, prior_torque = fit.torque(run), inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
        (measured, residual, prior_residual), counted = comparison.torques(
            run, run.effort, run.effort - predicted, run.effort - prior_torque
        )
        residuals.append(residual)
        squares += (residual**2).sum(axis=0)
        total += (measured**2).sum(axis=0)
        prior += (prior_residual**2).sum(axis=0)
        counts += counted.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Validation(
            joint_names=fit.robot.joint_names,
            per_joint=100.0 * np.sqrt(squares / total),
            relative_error=float(100.0 * np.sqrt(squares.sum() / total.sum())),
            prior_per_joint=100.0 * np.sqrt(prior / total),
            prior_error=float(100.0 * np.sqrt(prior.sum() / total.sum())),
            training_error=_training_error(fit, comparison),
            rms=np.sqrt(squares / counts),
            whiteness=np.sum([(r[1:] * r[:-1]).sum(axis=0) for r in residuals], axis=0) / squares,
            samples=int(counts.sum()),
            limit=limit,
            band_hz=band,
            trim_s=trim_s,
        )


def robot_error(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    terms: Sequence[Term] = (),
    gains: Floats | float = 1.0,
    band_hz: float | None = None,
    trim_s: float | None = None,
) -> float:
    """Relative torque error of a robot, such as one read from a file, over all joints and experiments together [%].

    Args:
        robot: The robot with its terms.
        experiments: The measured motion and torques.
        terms: Further terms with their values, such as friction with memory.
        gains: (n,) torque that the log states over that of the robot and the terms, for drives whose gain is known.
        band_hz: Band of the comparison, as for `validate`; all frequencies by default.
        trim_s: As for `validate`.
    """
    comparison = _Comparison(band_hz, trim_s)
    squares = total = 0.0
    for run in matched_runs(robot, experiments):
        torque = inverse_dynamics(robot, run.q, run.dq, run.ddq)
        if terms:
            torque = torque + torque_of_terms(robot, terms, np.array([term.value for term in terms]), run)
        (measured, residual), _ = comparison.torques(run, run.effort, run.effort - gains * torque)
        squares += float(np.sum(residual**2))
        total += float(np.sum(measured**2))
    return 100.0 * float(np.sqrt(squares / total)) if total > 0.0 else float("nan")


@public
def cross_validate(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    recipe: Recipe | None = None,
    *,
    folds: int = 5,
    **options: Any,
) -> tuple[Validation, ...]:
    """Leave out each part of the data in turn: identify from the others, and validate on it.

    Several experiments are left out one at a time; a single one is cut into blocks of time.

    Args:
        robot: As for `identify`.
        experiments: One or several.
        recipe: All settings, as for `identify`; its limit decides the verdicts.
        folds: Number of blocks of time of a single experiment.
        **options: Further arguments of `identify`.

    Example:
        >>> recipe = dynid.Recipe.bare()
        >>> checks = dynid.links.cross_validate(robot, [run, other], recipe, folds=2, estimator=dynid.WLS())
        >>> len(checks)
        2
    """
    as_whole("folds", folds, least=2)
    runs = matched_runs(robot, experiments)
    if len(runs) > 1:
        for (i, one), (j, other) in combinations(enumerate(runs, start=1), 2):
            if _shares_samples(one, other):
                raise ArgumentError(
                    f"experiments {i} and {j} have the same samples, so neither can validate the other",
                    remedy="Give each run once; a single one is cut into blocks of time.",
                )
        pairs = [(runs[:k] + runs[k + 1 :], run) for k, run in enumerate(runs)]
    else:
        pairs = [((train,), held) for train, held in _blocks(runs[0], folds)]
    chosen = recipe or Recipe()
    limit = chosen.limit_percent
    return tuple(validate(identify(robot, train, chosen, **options), held, limit=limit) for train, held in pairs)


def _shares_samples(run: Experiment, other: Experiment) -> bool:
    """Whether two experiments have the same content, and a sample counts in both."""
    if run is other:
        return True
    if run.q.shape != other.q.shape or not np.array_equal(run.q, other.q):
        return False
    both = run.valid & other.valid
    return bool(both.any() and np.array_equal(run.effort[both], other.effort[both]))


def _blocks(run: Experiment, folds: int) -> list[tuple[Experiment, Experiment]]:
    """For each block of time the run without it, and the run with nothing else."""
    if not 2 <= folds <= run.samples:
        raise ArgumentError(f"{folds} folds of {run.samples} samples", remedy="Use two or more, each of some samples.")
    number = np.arange(run.samples) * folds // run.samples
    masks = [(number == fold)[:, None] for fold in range(folds)]
    return [(replace(run, valid=run.valid & ~mask), replace(run, valid=run.valid & mask)) for mask in masks]


def training_error_in_band(fit: Fitted) -> float:
    """Relative error on the data of the identification in the band of its equations [%]; NaN without their samples."""
    return _training_error(fit, _Comparison(fit.equations.band_hz, None))


def _training_error(fit: Fitted, comparison: _Comparison) -> float:
    """Relative error on the data of the identification [%], in the same band as the held-out data."""
    if comparison.band_hz is None:
        return float(fit.training_error[-1])
    squares = total = 0.0
    for run in fit.equations.excerpts:
        (measured, residual), _ = comparison.torques(run, run.effort, run.effort - fit.torque(run))
        squares += float(np.sum(residual**2))
        total += float(np.sum(measured**2))
    return 100.0 * float(np.sqrt(squares / total)) if total > 0.0 else float("nan")


@dataclass(frozen=True, slots=True)
class _Comparison:
    """How measured and predicted torques are compared."""

    band_hz: float | None
    """Band to which the torques are low-passed [Hz]; None for no filter."""
    trim_s: float | None
    """Time left out at both ends of a low-passed stretch [s]; None for the settling time of the filter."""

    def torques(self, run: Experiment, *torques: Floats) -> tuple[tuple[Floats, ...], Mask]:
        """Torques (N, n) as they are compared, zero where a sample does not count, and the mask of those that count.

        With a band they are low-passed wherever they were measured, also at rest and in slow rows that do not count.
        The filter is the usual one, a Butterworth filter of order 4 run forwards and backwards with odd extension of
        the ends. Samples near the ends, where the filter has not settled, are left out.
        """
        if self.band_hz is None or self.band_hz >= WIDEST_BAND * run.rate_hz:
            return tuple(np.where(run.valid, torque, 0.0) for torque in torques), run.valid
        smooth, counts = np.zeros((len(torques), *run.effort.shape)), np.zeros_like(run.valid)
        trim = Butterworth().settling_s(self.band_hz, SETTLED) if self.trim_s is None else self.trim_s
        margin = int(np.ceil(trim * run.rate_hz - 1e-9))
        for rows, joint in _measured_stretches(run, margin):
            known = np.isfinite(run.effort[rows, joint])
            whole = np.column_stack([_bridge_holes(torque[rows, joint], known) for torque in torques])
            table = filter_there_and_back(whole, self.band_hz / run.rate_hz)
            inner = slice(rows.start + margin, rows.stop - margin)
            smooth[:, inner, joint] = table[margin : len(table) - margin].T
            counts[inner, joint] = run.valid[inner, joint]
        return tuple(np.where(counts, smooth, 0.0)), counts


def _measured_stretches(run: Experiment, margin: int) -> Iterator[tuple[slice, int]]:
    """Rows and joint of every stretch whose torques were measured without a hole longer than the margin."""
    for rows, _ in stretches(run):
        for joint in range(run.q.shape[1]):
            known = rows.start + np.flatnonzero(np.isfinite(run.effort[rows, joint]))
            for part in np.split(known, np.flatnonzero(np.diff(known) > margin) + 1):
                if part.size and part[-1] - part[0] > 2 * margin:
                    yield slice(int(part[0]), int(part[-1]) + 1), joint


def _bridge_holes(torque: Floats, known: Mask) -> Floats:
    """(N,) torques, interpolated linearly where they are not known."""
    rows = np.arange(torque.size)
    return np.interp(rows, rows[known], torque[known])
