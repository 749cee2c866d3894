"""What explains held-out residuals: the change of the model that accounts for most of them.

What noise does not explain is constant (an offset of the run), or it is correlated with something: with the direction
of motion (friction), with the torque itself (gain of a drive), with its derivative (delay), with the weight and inertia
of a body at the last link (load). A cause is named if one such group of columns explains most of the residuals. Each
joint counts by its relative error: newtons and newton metres cannot be added. Each run has its own unknowns, for a load
may be in one of them alone. Offsets are named, with the error that is left without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import lstsq
from dynid.findings import Finding
from dynid.kernels import regressor
from dynid.links.common.log_errors import name_logs
from dynid.links.validation import Fitted, Validation, validate
from dynid.processing.experiment import Experiment

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
    used = [run.matched(fit.robot) for run in runs if run.samples]
    if not (is_beyond and check.of_model.any() and used):
        return ()
    tables = [_Table.of(fit, run, MOST_ROWS // len(used)) for run in used]
    power = np.sum([table.power for table in tables], axis=0)
    counts = (power > 0.0) & check.of_model
    weight = np.where(counts, 1.0 / np.sqrt(np.where(counts, power, 1.0)), 0.0)
    tables = [replace(table, weight=weight) for table in tables]
    shares = {cause: _explained_share(cause, tables) for cause in CAUSES}
    best = max(CAUSES, key=lambda cause: shares[cause])
    if shares[best] < EXPLAINED:
        return ()
    gains = [_explained(best, table)[0] for table in tables]
    place = f", most of them in {name_logs(used)[int(np.argmax(gains))]}" if len(used) > 1 else ""
    found = Finding(
        code=best.code,
        severity="warning",
        where=HELD_OUT,
        joint=None if best.shared else fit.robot.joint_names[_worst_joint(best, tables)],
        message=f"{best.message}: this explains {100.0 * shares[best]:.0f} % of the held-out residuals{place}",
        remedy=best.remedy,
        evidence={"explained share": shares[best]},
    )
    return (_name_offsets(found, fit, check, used, tables) if best.is_offset else found,)


def _name_offsets(
    found: Finding, fit: Fitted, check: Validation, runs: Sequence[Experiment], tables: Sequence[_Table]
) -> Finding:
    """The finding with the offsets that make up most of a joint's residual, and the error without them."""
    kinds = ["N" if body.is_prismatic else "N m" for body in fit.robot.bodies]
    settled, clauses, evidence = [], [], dict(found.evidence)
    for run, table, log in zip(runs, tables, name_logs(runs), strict=True):
        offsets = np.where(table.weight > 0.0, table.offsets, 0.0)
        settled.append(replace(run, effort=run.effort - offsets))
        named = {f"OFF{j + 1}": (float(offsets[j]), kinds[j]) for j in np.flatnonzero(offsets)}
        evidence |= {f"{name} of {log}": size for name, (size, _) in named.items()}
        sizes = ", ".join(f"{name} by {size:+.3g} {unit}" for name, (size, unit) in named.items())
        clauses += [f"{sizes} in {log}"] if named else []
    left = validate(fit, settled, limit=check.limit, band_hz=check.band_hz, trim_s=check.trim_s).relative_error
    return replace(
        found,
        joint=None,
        message=f"offsets of the held-out data differ from those of the identification: {'; '.join(clauses)}; without "
        f"them the error would be {left:.3g} %",
        evidence=evidence | {"error without them [%]": left},
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

    @property
    def offsets(self) -> Floats:
        """(n,) mean residual of the joints where it makes up most of the residual; zero for the others."""
        mean = self.residual.sum(axis=0) / np.maximum(self.valid.sum(axis=0), 1)
        part = self.valid.sum(axis=0) * mean**2 / np.maximum(np.square(self.residual).sum(axis=0), 1e-300)
        return np.where(part >= EXPLAINED, mean, 0.0)

    def weighted(self, cause: _Cause) -> tuple[Floats, Floats]:
        """(r, n) residuals and (r, n, k) columns of a cause, each joint's with its weight."""
        columns = np.where(self.valid[:, :, None], cause.columns(self), 0.0)
        return self.residual * self.weight, columns * self.weight[:, None]

    @classmethod
    def of(cls, fit: Fitted, run: Experiment, most: int) -> _Table:
        """Rows spread evenly over a run, whose joints are in the order of the robot's."""
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
    is_offset: bool = False
    """Whether its unknowns are offsets."""


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
        is_offset=True,
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
    gains, totals = zip(*(_explained(cause, table) for table in tables), strict=True)
    return sum(gains) / sum(totals) if sum(totals) > 0.0 else 0.0


def _explained(cause: _Cause, table: _Table) -> tuple[float, float]:
    """The residual's power in one run that a cause explains, and all of it."""
    residual, columns = table.weighted(cause)
    parts = (
        [(residual.ravel(), columns.reshape(-1, columns.shape[2]))]
        if cause.shared
        else [(residual[:, j], columns[:, j]) for j in range(residual.shape[1])]
    )
    total = float(np.sum(residual**2))
    return total - sum(_left_over(e, matrix) for e, matrix in parts), total


def _left_over(e: Floats, matrix: Floats) -> float:
    """Sum of squares that the best combination of columns leaves, corrected for the number of columns."""
    found = lstsq(matrix, e)
    rest = float(np.sum((e - matrix @ found) ** 2))
    return float(rest * e.size / max(1, e.size - matrix.shape[1]))


def _worst_joint(cause: _Cause, tables: Sequence[_Table]) -> int:
    """The joint whose residual loses most by the cause."""
    gains = np.zeros(tables[0].residual.shape[1])
    for table in tables:
        residual, columns = table.weighted(cause)
        for j in range(gains.size):
            gains[j] += np.sum(residual[:, j] ** 2) - _left_over(residual[:, j], columns[:, j])
    return int(np.argmax(gains))
