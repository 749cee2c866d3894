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
from dynid.diagnosis.suspects import KINDS, Suspect, own_terms
from dynid.diagnosis.verdicts import LEVEL, Fit, Tried, Verdict, judge_suspects, test_columns
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
_HELD_OUT_SUSPECTS = {
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
    named = islice(judge_suspects(fit, tried, level=level), 2 * len(judged))
    found = [_describe(equations, suspects[verdict.suspect][0], judged[verdict.group or 0], verdict,
                       evidence.effect(verdict.columns, verdict.value)) for verdict in named]  # fmt: skip
    return tuple(sorted(found, key=lambda finding: -finding.strength))


def _list_suspects(equations: Factors, evidence: Evidence, fit: Fit) -> Iterator[tuple[Suspect, Floats]]:
    """Suspects with their columns (R, d), whose last amount is told."""
    robot, base, dof = equations.robot, equations.base, equations.robot.dof
    yield Suspect("load", None), evidence.columns[:, : base.rank] @ base.grouping[:, 10 * dof - 4 : 10 * dof]
    own = own_terms(base, robot)
    blocks = np.bincount(evidence.runs)
    order = np.array([np.count_nonzero(evidence.runs[:b] == run) for b, run in enumerate(evidence.runs)])
    elapsed = ((order + 0.5) / blocks[evidence.runs] - 0.5)[evidence.block, None]  # (R, 1) share of the run's time
    for j, gain in enumerate(evidence.by_joint(evidence.columns @ fit.values)):
        yield Suspect("gain", j), gain
        if (j, Offset) in own:
            offset = evidence.columns[:, [own[j, Offset]]]
            yield Suspect("offset", j), offset
            yield Suspect("drift", j), offset * elapsed
        if rubbing := [own[j, kind] for kind in (Viscous, Coulomb) if (j, kind) in own]:
            yield Suspect("friction", j), evidence.columns[:, rubbing]


def _describe(equations: Factors, suspect: Suspect, run: int, verdict: Verdict, effect: float) -> Finding:
    kind, robot = KINDS[suspect.kind], equations.robot
    # a drift of a run is that from its beginning to its end
    unit = "N m or N" if suspect.kind == "drift" else suspect.unit(robot)
    value, spread = (kind.factor * float(x[-1]) for x in (verdict.value, verdict.half_width))
    source = equations.excerpts[run].source if run < len(equations.excerpts) else ""
    others = "the other run" if len(equations.blocks) == 2 else "the others"
    where = f"{Path(source).name or f'run {run + 1}'}: runs"
    return Finding("runs-differ" if suspect.kind == "gain" else kind.code,
                   "warning" if effect > KINDS["load"].least else "note", where,
                   f"the {suspect.name(robot)} differs by {value:+.3g} +- {spread:.2g} {unit} "
                   + ("within the run" if suspect.kind == "drift" else f"from {others}"),
                   "Record it again, or leave it out; offsets and friction of a run can be freed (per_run).",
                   joint=None if suspect.joint is None else robot.joint_names[suspect.joint], strength=effect,
                   evidence={f"{suspect.kind} [{unit}]": value, "probability without it": verdict.p})  # fmt: skip


def explain_residuals(
    robot: Robot, runs: Sequence[Experiment], predicted: Sequence[Floats], joints: Bools
) -> tuple[Finding, ...]:
    """Name the suspect that predicts most of the residuals of held-out runs; nothing where none does.

    The runs have their joints in the robot's order, of which some count (n,); each has predicted torques (N, n).
    """
    rows = _held_out_rows(robot, runs, predicted, joints)
    joint, block = rows[:, :2].astype(int).T
    measured, modelled, rate, dq, *load = rows[:, 2:].T
    if not measured.any():
        return ()
    # errors of joints are compared in proportion to the torques of the joint
    scale = 1.0 / np.maximum(np.sqrt(np.bincount(joint, measured**2)), 1e-12)[joint, None]
    fit = Fit.of(Evidence.of_rows(scale[:, :0], scale[:, 0] * (measured - modelled), np.zeros_like(joint), block))
    present = np.unique(joint)
    tables = {"friction": [np.sign(dq), dq], "offset": [np.ones(len(dq))], "gain": [modelled], "delay": [rate]}
    suspects = {kind: [np.column_stack(table) * (joint == j)[:, None] for j in present]
                for kind, table in tables.items()}  # fmt: skip
    if shown := [column for column in load if column.any()]:
        suspects["load"] = [np.column_stack(shown)]  # all joints carry it
    # by how much a suspect lowers the squares in blocks that were left out, in each joint
    gains = {kind: [v.left_out for v in test_columns(fit, [scale * x for x in own])] for kind, own in suspects.items()}
    best = max(gains, key=lambda kind: sum(gains[kind]))
    share = sum(gains[best]) / max(float(fit.residual @ fit.residual), 1e-300)
    if share < EXPLAINED:
        return ()
    code, says, remedy = _HELD_OUT_SUSPECTS[best]
    joint_name = None if best == "load" else robot.joint_names[int(present[np.argmax(gains[best])])]
    return (Finding(code, "warning", "held-out residuals",
                    f"{says}: this explains {100.0 * share:.0f} % of the held-out residuals", remedy,
                    joint=joint_name, evidence={"explained share": share}, strength=share),)  # fmt: skip


def _held_out_rows(robot: Robot, runs: Sequence[Experiment], predicted: Sequence[Floats], joints: Bools) -> Floats:
    """One row (16,) for each sample and joint that count.

    Its columns are joint, block of time, measured and modelled torque, rate of the modelled one [per sample], speed of
    the joint, and the ten columns of a load at the last link.
    """
    tables = []
    for number, (run, torque) in enumerate(zip(runs, predicted, strict=True)):
        sampled = np.arange(0, run.samples, run.samples * len(runs) // MOST_ROWS + 1)
        good = run.valid[sampled] & joints
        sample, joint = np.nonzero(good)
        block = BLOCKS * number + sample * BLOCKS // max(len(sampled), 1)
        rate = run.by_segment(lambda part: np.gradient(part, axis=0) if len(part) > 1 else 0.0 * part, torque)
        states = (np.ascontiguousarray(x[sampled]) for x in (run.q, run.dq, run.ddq))
        load = np.asarray(regressor(robot, *states))[good][:, 10 * robot.dof - 10 : 10 * robot.dof]
        own = (x[sampled][good] for x in (run.effort, torque, rate, run.dq))
        tables.append(np.column_stack([joint, block, *own, load]))
    return np.concatenate(tables)
