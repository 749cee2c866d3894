"""Do several runs agree, and do held-out runs agree with a model?

Each suspect of one run (a load, an offset, friction, a gain, a drift that the others lack) is tried in every run by
itself, on the reduced equations alone: its columns are combinations of those that are there. Beside a model that is
fixed, suspects explain what it leaves of held-out runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from dynid.array_types import Bools, Floats
from dynid.compiled import regressor
from dynid.diagnosis.evidence import BLOCKS, MOST_ROWS, Evidence
from dynid.diagnosis.suspects import KINDS, Suspect, friction_columns
from dynid.diagnosis.verdicts import (
    LEVEL,
    Fit,
    Tried,
    Verdict,
    columns_in_group,
    effect_of,
    judge_suspects,
    test_columns,
)
from dynid.estimators.equations import Factors
from dynid.findings import Finding
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

FEWEST_BLOCKS = 3
"""Blocks of time that a run must have to be compared (convention)."""
EXPLAINED = 0.6
"""Share of held-out residuals, in blocks that were left out, from which on a suspect is named (effect)."""
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


def diagnose_runs(equations: Factors, *, level: float = LEVEL) -> tuple[Finding, ...]:
    """Report runs that differ from the others, and in what, the strongest first; slight differences are notes.

    Args:
        equations: The equations of two runs or more; of a single run there is nothing to compare.
        level: Probability that runs which agree are reported, over all runs and suspects.
    """
    number = {segment: run for run, blocks in enumerate(equations.blocks) for segment in blocks}
    runs = np.array([number[segment] for segment in equations.information.segments])
    judged = [run for run in range(len(equations.blocks)) if np.count_nonzero(runs == run) >= FEWEST_BLOCKS]
    if len(judged) < 2:
        return ()
    evidence = Evidence.of(equations.information, len(equations.names), runs.tolist())
    fit = Fit.of(evidence)
    groups = np.array([runs == run for run in judged])
    suspects = list(_list_suspects(equations, evidence, fit))
    tried = [Tried(columns, groups) for _, columns in suspects]
    found = []
    for verdict in islice(judge_suspects(fit, tried, level=level), 2 * len(judged)):
        columns = columns_in_group(evidence, tried[verdict.suspect], verdict)
        effect = effect_of(evidence, columns, verdict.value)
        found.append(_describe(equations, suspects[verdict.suspect][0], judged[verdict.group or 0], verdict, effect))
    return tuple(sorted(found, key=lambda finding: -finding.strength))


def _list_suspects(equations: Factors, evidence: Evidence, fit: Fit) -> Iterator[tuple[Suspect, Floats]]:
    """Suspects with their columns (R, d), whose last amount is told."""
    robot, base, dof = equations.robot, equations.base, equations.robot.dof
    yield Suspect("load", None), evidence.columns[:, : base.rank] @ base.grouping[:, 10 * dof - 4 : 10 * dof]
    torque = evidence.columns @ fit.values
    terms = friction_columns(evidence, base, robot)
    blocks = np.bincount(evidence.runs)
    order = np.array([np.count_nonzero(evidence.runs[:b] == run) for b, run in enumerate(evidence.runs)])
    elapsed = (order + 0.5) / blocks[evidence.runs] - 0.5
    for j in range(dof):
        yield Suspect("gain", j), (torque * (evidence.joint == j))[:, None]
        offset = terms.get((j, Offset))
        if offset is not None:
            yield Suspect("offset", j), offset[:, None]
            yield Suspect("drift", j), (offset * elapsed[evidence.block])[:, None]
        rubbing = [terms[j, kind] for kind in (Viscous, Coulomb) if (j, kind) in terms]
        if rubbing:
            yield Suspect("friction", j), np.stack(rubbing, axis=1)


def _describe(equations: Factors, suspect: Suspect, run: int, verdict: Verdict, effect: float) -> Finding:
    kind, robot = KINDS[suspect.kind], equations.robot
    # a drift of a run is that from its beginning to its end
    unit = "N m or N" if suspect.kind == "drift" else suspect.unit(robot)
    value, spread = (kind.factor * float(x[-1]) for x in (verdict.value, verdict.half_width))
    source = equations.excerpts[run].source if run < len(equations.excerpts) else ""
    others = "the other run" if len(equations.blocks) == 2 else "the others"
    return Finding(
        code="runs-differ" if suspect.kind == "gain" else kind.code,
        severity="warning" if effect > KINDS["load"].least else "note",
        where=f"{Path(source).name or f'run {run + 1}'}: runs",
        joint=None if suspect.joint is None else robot.joint_names[suspect.joint],
        message=f"the {suspect.name(robot)} differs by {value:+.3g} +- {spread:.2g} {unit} "
        + ("within the run" if suspect.kind == "drift" else f"from {others}"),
        evidence={f"{suspect.kind} [{unit}]": value, "probability without it": verdict.p},
        remedy="Record it again, or leave it out; offsets and friction of a run can be freed (per_run).",
        strength=effect,
    )


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
    power = np.zeros(robot.dof)
    left = {kind: np.zeros(robot.dof) for kind in _TOLD}
    for run, torque in zip(runs, predicted, strict=True):
        rows = np.arange(0, run.samples, max(1, -(-run.samples * len(runs) // MOST_ROWS)))
        slope = np.gradient(torque, axis=0)[rows] if run.samples > 1 else np.zeros((len(rows), robot.dof))
        body = np.asarray(regressor(robot, run.q[rows], run.dq[rows], run.ddq[rows]))
        block = np.arange(len(rows)) * BLOCKS // len(rows)
        for j in np.flatnonzero(joints).tolist():
            good, dq = run.valid[rows, j], run.dq[rows, j]
            if not good.any():
                continue
            columns = {
                "friction": np.column_stack([np.sign(dq), dq]),
                "offset": np.ones((len(dq), 1)),
                "gain": torque[rows, j][:, None],
                "delay": slope[:, j][:, None],
                "load": body[:, j, 10 * robot.dof - 10 : 10 * robot.dof],
            }
            size = float(np.sum(run.effort[rows, j][good] ** 2))
            residual = (run.effort - torque)[rows, j][good]
            none = np.zeros((len(residual), 0))
            fit = Fit.of(Evidence.of_rows(none, residual, np.zeros(len(residual), dtype=int), block[good]))
            power[j] += float(residual @ residual) / max(size, 1e-300)
            verdicts = test_columns(fit, [table[good] for table in columns.values()])
            for kind, verdict in zip(columns, verdicts, strict=True):
                explained = verdict.left_out / max(float(fit.weights[0]) ** 2, 1e-300)
                left[kind][j] += (float(residual @ residual) - explained) / max(size, 1e-300)
    best = min(left, key=lambda kind: float(left[kind].sum()))
    share = 1.0 - float(left[best].sum()) / max(float(power.sum()), 1e-300)
    if not power.any() or share < EXPLAINED:
        return ()
    code, says, remedy = _TOLD[best]
    return (
        Finding(
            code=code,
            severity="warning",
            where="held-out residuals",
            joint=None if best == "load" else robot.joint_names[int(np.argmax(power - left[best]))],
            message=f"{says}: this explains {100.0 * share:.0f} % of the held-out residuals",
            evidence={"explained share": share},
            remedy=remedy,
            strength=share,
        ),
    )
