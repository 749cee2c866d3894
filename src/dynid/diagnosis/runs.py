"""Do several runs agree? The suspects of one run: a load, an offset, friction, a gain, a drift that the others lack.

Each suspect is tried in every run by itself (`dynid.diagnosis.verdicts`), on the reduced equations alone: its columns
are combinations of those that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.diagnosis.evidence import Evidence
from dynid.diagnosis.suspects import KINDS, Suspect, friction_columns
from dynid.diagnosis.verdicts import LEVEL, Fit, Tried, Verdict, columns_in_group, effect_of, judge_suspects
from dynid.estimation.equations import Factors
from dynid.findings import Finding
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

FEWEST_BLOCKS = 3
"""Blocks of time that a run must have to be compared (convention)."""


def diagnose_runs(equations: Factors, *, level: float = LEVEL) -> tuple[Finding, ...]:
    """Report runs that differ from the others, and in what, the strongest first; slight differences are notes.

    Args:
        equations: The equations of two runs or more; of a single run there is nothing to compare.
        level: Probability that runs which agree are reported, over all runs and suspects.

    Example:
        >>> dynid.diagnosis.diagnose_runs(dynid.estimation.build_equations(robot, [run, other]))
        ()
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
