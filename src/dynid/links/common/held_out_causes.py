"""What explains held-out residuals: the change of the model that accounts for most of them.

What noise does not explain is correlated with something: with the direction of motion (friction), with the torque
itself (gain of a drive), with its derivative (delay), with the weight and inertia of a body at the last link (load). A
cause is named if one such group of columns explains most of the residuals. Each joint counts by its relative error:
newtons and newton metres cannot be added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import lstsq
from dynid.findings import Finding
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment

if TYPE_CHECKING:
    from dynid.links.validation import Fitted, Validation

__all__ = ["HELD_OUT", "explain_failure", "explain_residuals"]

Floats = NDArray[np.float64]
HELD_OUT = "held-out residuals"
"""Where such findings are."""
EXPLAINED = 0.6
"""Share of the residual's power that one change of the model must explain to be named as the cause (convention)."""
MOST_ROWS = 4000
"""Samples of the held-out data that the causes are fitted to (convention: enough for a dozen columns)."""


def explain_failure(fit: Fitted, check: Validation, runs: Sequence[Experiment]) -> tuple[Finding, ...]:
    """Name the cause of errors above the limit; nothing where there are none, or noise is the reason.

    Args:
        fit: The identification.
        check: Its validation.
        runs: The runs of the validation.
    """
    is_beyond = not check.passed or bool(np.any(check.per_joint > check.limit))
    return explain_residuals(fit, runs, check.of_model) if is_beyond and check.of_model.any() else ()


def explain_residuals(
    fit: Fitted, runs: Sequence[Experiment], joints: NDArray[np.bool_] | None = None
) -> tuple[Finding, ...]:
    """Name the change of the model that explains most of the held-out residuals, if one does.

    Args:
        fit: The identification.
        runs: Held-out runs.
        joints: (n,) joints whose residuals count; all by default.
    """
    tables = [_Table.of(fit, run, MOST_ROWS // max(1, len(runs))) for run in runs if run.samples]
    if not tables:
        return ()
    power = np.sum([table.power for table in tables], axis=0)
    counts = (power > 0.0) if joints is None else (power > 0.0) & joints
    weight = np.where(counts, 1.0 / np.sqrt(np.where(counts, power, 1.0)), 0.0)
    tables = [replace(table, weight=weight) for table in tables]
    shares = {cause: _explained_share(cause, tables) for cause in CAUSES}
    best = max(CAUSES, key=lambda cause: shares[cause])
    if shares[best] < EXPLAINED:
        return ()
    joint = _worst_joint(best, tables)
    return (
        Finding(
            code=best.code,
            severity="warning",
            where=HELD_OUT,
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
    power: Floats
    """(n,) sum of the squares of the measured torques."""
    weight: Floats
    """(n,) by how much a joint's residual counts."""

    def weighted(self, cause: _Cause) -> tuple[Floats, Floats]:
        """(r, n) residuals and (r, n, k) columns of a cause, each joint's with its weight."""
        columns = np.where(self.valid[:, :, None], cause.columns(self), 0.0)
        return self.residual * self.weight, columns * self.weight[:, None]

    @classmethod
    def of(cls, fit: Fitted, run: Experiment, most: int) -> _Table:
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
            power=np.sum(np.where(valid, run.effort[rows], 0.0) ** 2, axis=0),
            weight=np.ones(valid.shape[1]),
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


def _stack(cause: _Cause, tables: Sequence[_Table]) -> tuple[Floats, Floats]:
    """Weighted residuals (r, n) and columns (r, n, k) of all tables."""
    residuals, columns = zip(*(table.weighted(cause) for table in tables), strict=True)
    return np.concatenate(residuals), np.concatenate(columns)


def _explained_share(cause: _Cause, tables: Sequence[_Table]) -> float:
    """Share of the residual's power that a cause explains, corrected for the number of its unknowns."""
    residual, columns = _stack(cause, tables)
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
    residual, columns = _stack(cause, tables)
    gains = [np.sum(residual[:, j] ** 2) - _left_over(residual[:, j], columns[:, j]) for j in range(residual.shape[1])]
    return int(np.argmax(gains))
