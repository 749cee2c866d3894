"""Do several runs agree? The suspects of one run: a load, an offset, friction, a gain, a drift that the others lack.

Each suspect is tried in every run by itself (`dynid.diagnosis.leave_out.find_local`), on the reduced equations alone:
its columns are combinations of those that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.diagnosis.evidence import Evidence
from dynid.diagnosis.leave_out import Fit, Local, find_local
from dynid.diagnosis.naming import EFFECT, LEVEL
from dynid.diagnosis.suspects import friction_columns
from dynid.estimation.equations import Factors
from dynid.findings import Finding
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

FEWEST_BLOCKS = 3
"""Blocks of time that a run must have to be compared (convention)."""
_UNITS = {"gain": "%", "offset": "N m or N", "friction": "N m s or N s", "drift": "N m or N", "load": "kg"}


@dataclass(frozen=True, slots=True, eq=False)
class RunSuspect:
    """What one run may have for itself."""

    kind: str
    """load, offset, friction, gain or drift"""
    joint: int | None
    columns: Floats
    """(R, d) torque per unit in the rows of the evidence; the last amount is told."""


def diagnose_runs(equations: Factors, *, level: float = LEVEL) -> tuple[Finding, ...]:
    """Report runs that differ from the others, and in what, the strongest first; slight differences are notes.

    Args:
        equations: The equations of two runs or more; of a single run there is nothing to compare.
        level: Probability that runs which agree are reported, over all runs and suspects.

    Example:
        >>> dynid.diagnosis.diagnose_runs(dynid.estimation.build_equations(robot, [run, other]))
        ()
    """
    found = [_describe(equations, *difference) for difference in _differences(equations, level)]
    return tuple(sorted(found, key=lambda finding: -finding.strength))


def unequal_offsets(equations: Factors, *, level: float = LEVEL) -> list[int]:
    """Joints whose offsets differ between runs; none where a run differs in something else."""
    found = [suspect for suspect, *_ in _differences(equations, level)]
    offsets = {suspect.joint for suspect in found if suspect.kind == "offset" and suspect.joint is not None}
    return sorted(offsets) if all(suspect.kind == "offset" for suspect in found) else []


def _differences(equations: Factors, level: float) -> Iterator[tuple[RunSuspect, int, Local, float]]:
    """Suspects with the number of their run, what was found, and the torque that it makes over that of a joint."""
    segments = equations.information.segments
    number = {segment: run for run, blocks in enumerate(equations.blocks) for segment in blocks}
    runs = np.array([number[segment] for segment in segments])
    tried = [run for run in range(len(equations.blocks)) if np.count_nonzero(runs == run) >= FEWEST_BLOCKS]
    if len(tried) < 2:
        return
    evidence = Evidence.of(equations.information, len(equations.names), runs.tolist())
    fit = Fit.of(evidence)
    suspects = list(_list_suspects(equations, evidence, fit))
    groups = np.array([runs == run for run in tried])
    for _ in range(2 * len(tried)):
        results = [find_local(fit, suspect.columns, groups) for suspect in suspects]
        best = min(range(len(results)), key=lambda k: results[k].p)
        found = results[best]
        if found.p * len(suspects) > level:
            return
        column = suspects[best].columns * groups[found.group][evidence.block][:, None]
        yield suspects[best], tried[found.group], found, _effect(evidence, column, found.value)
        fit = fit.with_harmless(column)


def _effect(evidence: Evidence, column: Floats, value: Floats) -> float:
    """Largest rms torque of a suspect in its run over the rms torque of a joint there."""
    count, here = len(evidence.counts), column.any(axis=1)
    made = np.bincount(evidence.joint, (column @ value) ** 2, count)
    total = np.bincount(evidence.joint[here], evidence.torque[here] ** 2, count)
    return float(np.sqrt(np.max(np.divide(made, total, out=np.zeros(count), where=total > 0.0))))


def _list_suspects(equations: Factors, evidence: Evidence, fit: Fit) -> Iterator[RunSuspect]:
    robot, base, dof = equations.robot, equations.base, equations.robot.dof
    yield RunSuspect("load", None, evidence.columns[:, : base.rank] @ base.grouping[:, 10 * dof - 4 : 10 * dof])
    torque = evidence.columns @ fit.values
    terms = friction_columns(evidence, base, robot)
    blocks = np.bincount(evidence.runs)
    order = np.array([np.count_nonzero(evidence.runs[:b] == run) for b, run in enumerate(evidence.runs)])
    elapsed = (order + 0.5) / blocks[evidence.runs] - 0.5
    for j in range(dof):
        yield RunSuspect("gain", j, (torque * (evidence.joint == j))[:, None])
        offset = terms.get((j, Offset))
        if offset is not None:
            yield RunSuspect("offset", j, offset[:, None])
            yield RunSuspect("drift", j, (offset * elapsed[evidence.block])[:, None])
        rubbing = [terms[j, kind] for kind in (Viscous, Coulomb) if (j, kind) in terms]
        if rubbing:
            yield RunSuspect("friction", j, np.stack(rubbing, axis=1))


def _describe(equations: Factors, suspect: RunSuspect, run: int, found: Local, effect: float) -> Finding:
    value, spread = float(found.value[-1]), 2.0 * float(np.sqrt(max(found.covariance[-1, -1], 0.0)))
    factor, unit = (100.0 if suspect.kind == "gain" else 1.0), _UNITS[suspect.kind]
    whose = "" if suspect.joint is None else f" of {equations.robot.joint_names[suspect.joint]}"
    source = equations.excerpts[run].source if run < len(equations.excerpts) else ""
    others = "the other run" if len(equations.blocks) == 2 else "the others"
    return Finding(
        code="load" if suspect.kind == "load" else "drift" if suspect.kind == "drift" else "runs-differ",
        severity="warning" if effect > EFFECT else "note",
        where=f"{Path(source).name or f'run {run + 1}'}: runs",
        joint=None if suspect.joint is None else equations.robot.joint_names[suspect.joint],
        message=f"the {suspect.kind}{whose} differs by {factor * value:+.3g} +- {factor * spread:.2g} {unit} "
        + ("within the run" if suspect.kind == "drift" else f"from {others}"),
        evidence={f"{suspect.kind} [{unit}]": factor * value, "probability without it": found.p},
        remedy="Record it again, or leave it out; offsets and friction of a run can be freed (per_run).",
        strength=effect,
    )
