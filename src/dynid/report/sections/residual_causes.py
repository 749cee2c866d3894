"""Why held-out torques are not predicted: noise or the model, and which change of the model explains the residuals.

Noise is measured above the band of the motion. What remains is correlated with something: with the direction of motion
(friction), with the torque itself (gain of a drive), with its derivative (delay), with the weight and inertia of a body
at the last link (load). A cause is named if one such group of columns explains most of the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import lstsq
from dynid.findings import Finding
from dynid.gate.torque_noise import noise_through
from dynid.kernels import regressor
from dynid.links.identify import Identification
from dynid.links.validation import Validation
from dynid.processing.experiment import Experiment
from dynid.report.series import FEWEST, autocorrelate

__all__ = ["JointResidual", "explain_residuals", "joint_residuals"]

Floats = NDArray[np.float64]
NOISE_SHARE = 0.5
"""Share of the residual's power from which noise is called its reason (convention: the larger part)."""
EXPLAINED = 0.6
"""Share of the residual's power that one change of the model must explain to be named as the cause (convention)."""
BAND_ORDER = 4
"""Order of the low-pass in which `validate` compares; it runs forwards and backwards."""
MOST_ROWS = 4000
"""Samples of the held-out data that the causes are fitted to (convention: enough for a dozen columns)."""


@dataclass(frozen=True, slots=True)
class JointResidual:
    """What is left of one joint's held-out torque."""

    name: str
    noise_percent: float
    """Share of noise in the power of the residual [%]."""
    correlation_s: float
    """Time after which the autocorrelation of the residual has fallen to 1/e [s]."""

    @property
    def is_noise(self) -> bool:
        """Whether noise is the larger part of the residual."""
        return self.noise_percent >= 100.0 * NOISE_SHARE

    @property
    def reason(self) -> str:
        """``noise`` or ``model``."""
        return "noise" if self.is_noise else "model"


def joint_residuals(fit: Identification, check: Validation, runs: Sequence[Experiment]) -> tuple[JointResidual, ...]:
    """Split the held-out residuals of every joint into noise and errors of the model.

    Args:
        fit: The identification.
        check: Its validation.
        runs: The runs of the validation.
    """

    def gain(frequency: Floats) -> Floats:
        if check.band_hz is None:
            return np.ones_like(frequency)
        return np.asarray(1.0 / (1.0 + (frequency / check.band_hz) ** (2 * BAND_ORDER)))

    longest = max(runs, key=lambda run: run.samples).matched(fit.robot)
    noise = noise_through(longest, check.band_hz, gain)
    residual = longest.effort - fit.torque(longest)
    found = []
    for j, name in enumerate(check.joint_names):
        e = residual[longest.valid[:, j], j]
        rms = float(check.rms[j])
        share = 100.0 * min(1.0, (noise[j] / rms) ** 2) if np.isfinite(rms) and rms > 0.0 else 100.0
        found.append(JointResidual(name, share, _correlation_time(e, longest.rate_hz)))
    return tuple(found)


def _correlation_time(e: Floats, rate_hz: float) -> float:
    """First lag at which the autocorrelation is below 1/e [s]; at most one second is looked at."""
    if e.size < FEWEST:
        return 0.0
    lags, correlation = autocorrelate(e, rate_hz)
    below = np.flatnonzero(correlation < np.exp(-1.0))
    return float(lags[below[0]] if below.size else lags[-1])


def explain_residuals(fit: Identification, runs: Sequence[Experiment]) -> tuple[Finding, ...]:
    """Name the change of the model that explains most of the held-out residuals, if one does.

    Args:
        fit: The identification.
        runs: Held-out runs.
    """
    tables = [_Table.of(fit, run, MOST_ROWS // max(1, len(runs))) for run in runs if run.samples]
    if not tables:
        return ()
    shares = {cause: _explained_share(cause, tables) for cause in CAUSES}
    best = max(CAUSES, key=lambda cause: shares[cause])
    if shares[best] < EXPLAINED:
        return ()
    joint = _worst_joint(best, tables)
    return (
        Finding(
            code=best.code,
            severity="warning",
            where="held-out residuals",
            joint=None if best.shared else fit.robot.joint_names[joint],
            message=f"{best.message}: this explains {100.0 * shares[best]:.0f} % of the held-out residuals",
            remedy=best.remedy,
            evidence={"explained share": shares[best]},
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Rows of one run."""

    residual: Floats
    """(r, n) measured minus predicted torque, zero where it does not count."""
    predicted: Floats
    slope: Floats
    """(r, n) time derivative of the predicted torque."""
    dq: Floats
    valid: NDArray[np.bool_]
    last_body: Floats
    """(r, n, 10) torque per parameter of the last body."""

    @classmethod
    def of(cls, fit: Identification, run: Experiment, most: int) -> _Table:
        """Rows spread evenly over a run."""
        run = run.matched(fit.robot)
        predicted = fit.torque(run)
        rows = np.arange(0, run.samples, max(1, -(-run.samples // max(1, most))))
        slope = np.gradient(predicted, axis=0) * run.rate_hz if run.samples > 1 else np.zeros_like(predicted)
        valid = run.valid[rows]
        Y = regressor(fit.robot, run.q[rows], run.dq[rows], run.ddq[rows])
        last = 10 * (fit.robot.dof - 1)
        return cls(
            residual=np.where(valid, run.effort[rows] - predicted[rows], 0.0),
            predicted=predicted[rows],
            slope=slope[rows],
            dq=run.dq[rows],
            valid=valid,
            last_body=np.asarray(Y)[:, :, last : last + 10],
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Cause:
    """A change of the model: the torques it can explain, and its words."""

    code: str
    columns: Callable[[_Table], Floats]
    """(r, n, k) torques per unit of its k unknowns."""
    shared: bool
    """Whether all joints share the unknowns; otherwise each joint has its own."""
    message: str
    remedy: str


CAUSES = (
    _Cause(
        "missing-friction",
        lambda t: np.stack([np.sign(t.dq), t.dq], axis=2),
        False,
        "the residuals follow the direction and the speed of the joints, so the model lacks friction",
        "Add friction terms, or let dynid select them.",
    ),
    _Cause(
        "torque-offset",
        lambda t: np.ones((*t.dq.shape, 1)),
        False,
        "the residuals are constant, so the torques of the held-out run have another offset",
        "Compare the zero of the torque sensors in both runs.",
    ),
    _Cause(
        "drive-gain",
        lambda t: t.predicted[:, :, None],
        False,
        "the residuals are proportional to the torques, so a drive has another gain than in the identification data",
        "Compare the torque constants and the units of both runs.",
    ),
    _Cause(
        "unsynchronised",
        lambda t: t.slope[:, :, None],
        False,
        "the residuals follow the rate of change of the torques, so torques and motion have different time stamps",
        "Estimate the delay of the torques.",
    ),
    _Cause(
        "other-load",
        lambda t: t.last_body,
        True,
        "the residuals are those of another load at the last link",
        "Record both runs with the same tool and load, or identify the load with dynid load.",
    ),
)
"""Changes of the model that are tried, with the codes of their findings."""


def _explained_share(cause: _Cause, tables: Sequence[_Table]) -> float:
    """Share of the residual's power that a cause explains, corrected for the number of its unknowns."""
    residual = np.concatenate([table.residual for table in tables])
    columns = np.concatenate([np.where(table.valid[:, :, None], cause.columns(table), 0.0) for table in tables])
    total = float(np.sum(residual**2))
    if total == 0.0:
        return 0.0
    n = residual.shape[1]
    parts = (
        [(residual.ravel(), columns.reshape(-1, columns.shape[2]))]
        if cause.shared
        else [(residual[:, j], columns[:, j]) for j in range(n)]
    )
    left = sum(_left_over(e, matrix) for e, matrix in parts)
    return float(1.0 - left / total)


def _left_over(e: Floats, matrix: Floats) -> float:
    """Sum of squares that the best combination of columns leaves, corrected for the number of columns."""
    found = lstsq(matrix, e)
    rest = float(np.sum((e - matrix @ found) ** 2))
    return float(rest * e.size / max(1, e.size - matrix.shape[1]))


def _worst_joint(cause: _Cause, tables: Sequence[_Table]) -> int:
    """The joint whose residual loses most by the cause."""
    residual = np.concatenate([table.residual for table in tables])
    columns = np.concatenate([np.where(table.valid[:, :, None], cause.columns(table), 0.0) for table in tables])
    gains = [np.sum(residual[:, j] ** 2) - _left_over(residual[:, j], columns[:, j]) for j in range(residual.shape[1])]
    return int(np.argmax(gains))
