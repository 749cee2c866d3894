"""Which suspects do runs of one robot show? All that add columns, tested at one level, the strongest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy import stats

from dynid.array_types import Bools, Floats, Ints
from dynid.decompositions import lstsq
from dynid.diagnosis.evidence import FEWEST_BLOCKS, Evidence, gather
from dynid.diagnosis.log_changes import HALF, check_friction, check_scale, check_single_scales, find_change
from dynid.diagnosis.refinement import find_delay
from dynid.diagnosis.suspects import (
    KINDS,
    Model,
    Suspect,
    channel_columns,
    channels,
    gain_columns,
    placement_columns,
    placements,
    trusted_values,
)
from dynid.diagnosis.verdicts import (
    LEVEL,
    RESOLUTION,
    Fit,
    Tried,
    Verdict,
    columns_in_group,
    compare,
    effect_of,
    judge_suspects,
    test_suspects,
)
from dynid.findings import Finding
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.motors import Offset

MOST_NAMED = 3
"""Largest number of suspects that are named one after the other (convention)."""

UNEVEN = 0.1
"""Part of the level at which suspects of a whole log are named: errors of the model are less alike in all blocks of
time than the test takes them to be (level: of simulated clean logs one in a hundred is accused then)."""


@dataclass(frozen=True, eq=False)
class Case:
    """Suspects with their columns in the rows of the evidence."""

    robot: Robot
    fit: Fit
    varying: Evidence
    """The same rows, with the torque of every joint less its mean: a constant weight hides no other effect."""
    suspects: tuple[Suspect, ...]
    tried: tuple[Tried, ...]

    @classmethod
    def of(cls, model: Model) -> Case:
        """Gather the evidence of a model's runs."""
        placed, dof = list(placements(model.robot)), model.robot.dof
        columns = [[*placement_columns(model, e, placed), *channel_columns(model.robot, e)] for e in model.excerpts]
        evidence = gather(model.robot, model.base, model.excerpts, columns)
        fit = Fit.of(evidence)
        own = [evidence.suspects[:, [k]] for k in range(evidence.suspects.shape[1])]
        late = evidence.suspects[:, len(placed) : len(placed) + dof].sum(axis=1, keepdims=True)
        gains = gain_columns(evidence, trusted_values(evidence, fit.weights, model.base, model.robot), dof)
        windows = _windows(evidence.runs)
        held = windows[windows.sum(axis=1) > 1]  # a load must predict a block that is left out
        given = evidence.columns[:, : model.base.rank] @ model.base.grouping
        offsets = [k for k, term in enumerate(model.robot.terms, start=10 * dof) if isinstance(term.term, Offset)]
        load, push = given[:, 10 * dof - 4 : 10 * dof], given[:, offsets]
        mean = push @ lstsq(push, evidence.torque, rcond=RESOLUTION)
        return cls(
            model.robot,
            fit,
            replace(evidence, torque=evidence.torque - mean),
            (*placed, *channels(model.robot), Suspect("delay", None), *(Suspect("gain", j) for j in range(dof)),
             Suspect("load", None), Suspect("push", None)),
            (*map(Tried, (*own, late, *gains)), Tried(load, held), Tried(push, windows, general=True)),
        )  # fmt: skip

    def matters(self, place: int, verdict: Verdict) -> bool:
        """Whether an amount is worth telling, and plausible for its kind."""
        kind = KINDS[self.suspects[place].kind]
        if np.isfinite(kind.most):
            return kind.least < float(abs(verdict.value[0])) < kind.most
        if effect_of(self.varying, self.columns(place, verdict), verdict.value) < kind.least:
            return False
        groups = self.tried[place].groups
        if groups is None or verdict.group is None:
            return True
        held = groups[verdict.group][self.fit.evidence.block]
        if self.suspects[place].kind == "load" and abs(verdict.value[-1]) < verdict.half_width[-1]:
            return False  # it has no mass
        return verdict.left_out > HALF * float(np.sum(self.fit.residual[held] ** 2))

    def left(self, verdict: Verdict) -> float:
        """Share of what is unexplained in left-out blocks that a suspect leaves."""
        rest = self.fit.with_harmless(self.columns(verdict.suspect, verdict))
        return compare(rest.left_out().T, self.fit.left_out().T, 1)[1]

    def columns(self, place: int, verdict: Verdict) -> Floats:
        """(R, d) where a suspect acts by its verdict."""
        return columns_in_group(self.fit.evidence, self.tried[place], verdict)


def _windows(runs: Sequence[int] | Ints) -> Bools:
    """(G, B) all sequences of blocks of one run that leave some blocks."""
    run, count = np.asarray(runs), len(runs)
    block = np.arange(count)
    return np.array([
        (block >= start) & (block < start + length)
        for length in range(1, count - FEWEST_BLOCKS + 1)
        for start in range(count - length + 1)
        if run[start] == run[start + length - 1]
    ])  # fmt: skip


def diagnose(robot: Robot, runs: Sequence[Experiment], *, level: float = LEVEL) -> tuple[Finding, ...]:
    """Say which suspects runs of one robot show, the strongest first, and what they cannot show.

    Args:
        robot: The robot; its masses serve as the prior.
        runs: The runs; what is wrong has one value in all of them.
        level: Probability that faultless runs are accused, over all suspects.

    Example:
        >>> [finding.code for finding in dynid.diagnosis.diagnose(robot, [run])]
        ['untestable']
    """
    model = Model.of(robot, runs)
    case = Case.of(model)
    first = test_suspects(case.fit, case.tried)
    named = [*_name_suspects(case, first, level)]
    change, hidden = find_change(model, level, min([HALF, *(case.left(verdict) for verdict in named[:1])]))
    if change is not None:
        return (change,)
    # the masses of the model file are evidence of what all torques have in common
    found = [*check_scale(model, case.fit.evidence)] or [*check_friction(model, case.fit, level)]
    found = found or [_finding(case, runs, verdict) for verdict in named]
    found = found or [*check_single_scales(model, case.fit.evidence)]
    return (*found, *_tell_least(case, first, level, hidden))


def _name_suspects(case: Case, first: Sequence[Verdict], level: float) -> Iterator[Verdict]:
    is_local = False

    def is_worth(place: int, verdict: Verdict) -> bool:
        if verdict.group is None:  # what the edges of a load leave accuses nothing else
            return not is_local and verdict.p * len(case.tried) < UNEVEN * level and case.matters(place, verdict)
        return case.matters(place, verdict)

    judged = judge_suspects(case.fit, case.tried, level=level, is_worth=is_worth, first=first)
    for verdict in islice(judged, MOST_NAMED):
        is_local = verdict.group is not None
        yield verdict
        if case.suspects[verdict.suspect].kind == "delay":  # one column is not all of it, the rest accuses nothing else
            break


def _tell_least(case: Case, verdicts: Sequence[Verdict], level: float, hidden: Iterable[str]) -> Iterator[Finding]:
    """From which amount on each suspect of a whole log is told, and which are not told at all."""
    robot, none, large, least = case.robot, dict.fromkeys(hidden), [], {}
    for suspect, tried, verdict in zip(case.suspects, case.tried, verdicts, strict=True):
        if tried.groups is not None:
            continue
        kind, unit, name = KINDS[suspect.kind], suspect.unit(robot), suspect.label(robot)
        each = 1.0 if np.isfinite(kind.most) else effect_of(case.varying, tried.columns, np.ones(1))
        sure = float(stats.t.isf(0.5 * UNEVEN * level / len(case.tried), verdict.freedom) * verdict.stderr[0])
        if not sure < kind.most:
            none[suspect.name(robot)] = None
            continue
        amount = least[f"{name} [{unit}]"] = kind.factor * max(sure, kind.least / each)
        if sure * each > kind.least:
            large.append(f"{name} (from {amount:.2g} {unit})")
    if none or large:
        brief = f"this motion cannot show errors of: {', '.join(none)}"
        yield Finding(
            code="untestable",
            severity="note",
            where="model",
            message=f"{brief}; only large ones of: {', '.join(large)}",
            brief=f"{brief}; only large ones of {len(large)} others",
            evidence=least,
            remedy="Faster and wider motions of all joints together show more (dynid excite).",
        )


def _finding(case: Case, runs: Sequence[Experiment], verdict: Verdict) -> Finding:
    suspect, robot, evidence = case.suspects[verdict.suspect], case.robot, case.fit.evidence
    columns, told = case.columns(verdict.suspect, verdict), len(verdict.value) - 1
    if suspect.kind == "push":
        each = [effect_of(case.varying, columns[:, [j]], verdict.value[[j]]) for j in range(robot.dof)]
        told = int(np.argmax(each))
        suspect = Suspect("push", told)
    kind, value, spread = KINDS[suspect.kind], float(verdict.value[told]), float(verdict.half_width[told])
    if suspect.kind == "delay":
        delay = find_delay(robot, runs)
        value, spread = delay.seconds, delay.half_width_s
    others = "".join(f"; or {case.suspects[k].name(robot)}, which explains it as well" for k in verdict.rivals[:2])
    groups = case.tried[verdict.suspect].groups
    when, times = "", {}
    if groups is not None and verdict.group is not None:
        start, stop = _times(runs, evidence, groups[verdict.group])
        when, times = f" from {start:.4g} to {stop:.4g} s", {"from [s]": start, "to [s]": stop}
    return Finding(
        code=kind.code,
        severity="warning",
        where="model" if suspect.direction is not None else "effort",
        joint=None if suspect.joint is None or suspect.kind == "tilt" else robot.joint_names[suspect.joint],
        message=suspect.describe(robot, value, spread) + when + others,
        evidence={
            f"amount [{suspect.unit(robot)}]": kind.factor * value,
            "half of the 95 % interval": kind.factor * spread,
            "probability without it": verdict.p,
            **times,
        },
        remedy=suspect.remedy(robot, value),
        strength=effect_of(case.varying, columns, verdict.value),
    )


def _times(runs: Sequence[Experiment], evidence: Evidence, held: Bools) -> tuple[float, float]:
    """Start and end of a window of blocks [s]."""
    number = int(evidence.runs[np.flatnonzero(held)[0]])
    own = held[evidence.runs == number]
    first, last = np.flatnonzero(own)[[0, -1]] + [0, 1]
    time = runs[number].time
    start, stop = time[0] + (time[-1] - time[0]) * np.array([first, last]) / len(own)
    return float(start), float(stop)
