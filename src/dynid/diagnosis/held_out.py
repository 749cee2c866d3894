"""What explains held-out residuals: the suspects of single runs beside a model that is already fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Bools, Floats
from dynid.decompositions import lstsq
from dynid.diagnosis.evidence import BLOCKS
from dynid.findings import Finding
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

EXPLAINED = 0.6
"""Share of the residuals' power, in blocks that were left out, from which on a suspect is named (effect)."""
MOST_ROWS = 4000
"""Samples that are looked at (convention)."""
_TOLD = {
    "friction": ("missing-friction", "the residuals follow direction and speed of the joints: the model lacks friction",
                 "Use the rich friction, or record slower and faster motions of these joints."),
    "offset": ("runs-differ", "the offsets of the torques differ from those of the identification",
               "Compare the zero of the torque sensors in both runs."),
    "gain": ("gain", "the residuals follow the torques: a drive or sensor has another gain than before",
             "Compare the torque constants and the units of both runs."),
    "delay": ("delay", "the residuals follow the rate of the torques: torques and motion have different time stamps",
              "Estimate the delay (--set delay_s=auto)."),
    "load": ("load", "the residuals are those of another load at the last link",
             "Record both runs with the same tool and load, or identify the load with dynid load."),
}  # fmt: skip
"""Suspect -> code, sentence and remedy of its finding."""


def explain_residuals(
    robot: Robot, runs: Sequence[Experiment], predicted: Sequence[Floats], joints: Bools
) -> tuple[Finding, ...]:
    """Name the suspect that predicts most of the residuals of held-out runs; nothing where none does.

    Args:
        robot: The robot.
        runs: The held-out runs, their joints in the robot's order.
        predicted: For each run its predicted torques (N, n).
        joints: (n,) the joints that count.
    """
    power, left = np.zeros(robot.dof), {kind: np.zeros(robot.dof) for kind in _TOLD}
    for run, torque in zip(runs, predicted, strict=True):
        rows = np.arange(0, run.samples, max(1, -(-run.samples * len(runs) // MOST_ROWS)))
        slope = np.gradient(torque, axis=0)[rows] if run.samples > 1 else np.zeros((len(rows), robot.dof))
        body = np.asarray(regressor(robot, run.q[rows], run.dq[rows], run.ddq[rows]))
        last = body[:, :, 10 * robot.dof - 10 : 10 * robot.dof]
        for j in np.flatnonzero(joints).tolist():
            good = run.valid[rows, j]
            if np.count_nonzero(good) < 2 * BLOCKS:
                continue
            dq, size = run.dq[rows, j][good], float(np.mean(run.effort[rows, j][good] ** 2))
            residual = run.effort[rows, j][good] - torque[rows, j][good]
            columns = {
                "friction": np.column_stack([np.sign(dq), dq]),
                "offset": np.ones((len(dq), 1)),
                "gain": torque[rows, j][good][:, None],
                "delay": slope[good, j][:, None],
                "load": last[good, j],
            }
            power[j] += float(residual @ residual) / max(size, 1e-300)
            for kind, table in columns.items():
                left[kind][j] += _left_out(table, residual) / max(size, 1e-300)
    if not power.sum() > 0.0:
        return ()
    best = min(left, key=lambda kind: float(left[kind].sum()))
    share = 1.0 - float(left[best].sum() / power.sum())
    if share < EXPLAINED:
        return ()
    code, says, remedy = _TOLD[best]
    worst = robot.joint_names[int(np.argmax(power - left[best]))]
    return (
        Finding(
            code=code,
            severity="warning",
            where="held-out residuals",
            joint=None if best == "load" else worst,
            message=f"{says}: this explains {100.0 * share:.0f} % of the held-out residuals",
            evidence={"explained share": share},
            remedy=remedy,
            strength=share,
        ),
    )


def _left_out(columns: Floats, residual: Floats) -> float:
    """Squares that remain of a residual in blocks of time that were left out of the fit of columns (N, d)."""
    block = np.arange(len(residual)) * BLOCKS // len(residual)
    products = [columns[block == b].T @ columns[block == b] for b in range(BLOCKS)]
    scores = [columns[block == b].T @ residual[block == b] for b in range(BLOCKS)]
    rest = 0.0
    for b in range(BLOCKS):
        values = lstsq(sum(products) - products[b], sum(scores) - scores[b], rcond=1e-9)
        rest += float(np.sum((residual[block == b] - columns[block == b] @ values) ** 2))
    return rest
