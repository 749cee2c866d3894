"""The diagnosis of runs by the robot's equations: which faults of logs or model explain the residual torques?

Two sorts of faults are tried. A suspect is a small error that adds a torque linear in its amount, such as a late torque
or an encoder zero that is off (`dynid.diagnosis.suspects`); a change is a gross one, such as exchanged channels
(`dynid.diagnosis.log_changes`). A change that explains more than the best suspect is reported alone. Otherwise all
suspects that are significant together are reported, the strongest first, and those that the motion cannot show.

`diagnose` is called with processed runs by the check of a log (`dynid.diagnosis.log_check`), by the reader of long
logs, and by the watch of a running robot.

Terms: evidence are the rows of the equations, compressed by joint and block of time, of which there are about twenty.
A verdict is the result of the test of one suspect. Some suspects (a load, a push) act in a window only, a sequence of
blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy import stats

from dynid.array_types import Bools, Ints
from dynid.decompositions import lstsq
from dynid.diagnosis.evidence import Evidence
from dynid.diagnosis.log_changes import HALF, check_friction, check_scales, find_change
from dynid.diagnosis.refinement import find_delay
from dynid.diagnosis.suspects import KINDS, FittedRobot, Suspect, linear_suspects
from dynid.diagnosis.verdicts import LEVEL, RESOLUTION, Fit, Tried, Verdict, compare, judge_suspects, test_suspects
from dynid.findings import Finding
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.motors import Offset

MOST_NAMED = 3
"""Largest number of suspects that are named in one diagnosis (convention)."""
UNEVEN = 0.1
"""Factor on the level for suspects that act in a whole log. The test takes the errors of all blocks to be alike, which
errors of the model are not (level: with this factor, one in a hundred simulated clean logs is accused)."""


def diagnose(robot: Robot, runs: Sequence[Experiment], *, level: float = LEVEL) -> tuple[Finding, ...]:
    """Name the faults that runs of one robot show, the strongest first, and those that they cannot show.

    Args:
        robot: The robot; its masses serve as the prior.
        runs: The processed logs; a fault has the same amount in all of them.
        level: Probability that faultless runs are accused, over all suspects.

    Example:
        >>> [finding.code for finding in dynid.diagnosis.diagnose(robot, [run])]
        ['untestable']
    """
    model = FittedRobot.of(robot, runs)
    case = Case.of(model)
    first = test_suspects(case.fit, case.tried)
    named = [*_name_suspects(case, first, level)]
    # A gross change must explain more than the strongest suspect does: smaller errors in left-out blocks.
    rest = [case.fit.with_harmless(verdict.columns).left_out() for verdict in named[:1]]
    ratios = [compare(left.T, case.fit.left_out().T, 1)[1] for left in rest]
    change, hidden = find_change(model, level, min([HALF, *ratios]))
    if change is not None:
        return (change,)
    # The first of these that finds anything is reported: factors common to all torques, by the masses of the model
    # file; signs, by friction; suspects; factors of single joints.
    common, single = check_scales(model, case.fit.evidence)
    found = common or [*check_friction(model, case.fit, level)]
    found = found or [_finding(case, runs, verdict) for verdict in named] or single
    return (*found, *_report_detectable(case, first, level, hidden))


@dataclass(frozen=True, eq=False)
class Case:
    """All suspects of some runs, with their columns in the rows of the evidence."""

    robot: Robot
    fit: Fit
    """The fit of the columns that a robot without faults has as well: links and friction."""
    varying: Evidence
    """The same rows without the mean torque of each joint. Effects are compared with this torque, since a constant
    weight says nothing about them."""
    suspects: tuple[Suspect, ...]
    """Kind and joint of each suspect."""
    tried: tuple[Tried, ...]
    """Columns of each suspect and the windows in which it may act, in the same order."""

    @classmethod
    def of(cls, model: FittedRobot) -> Case:
        """Form the columns of all suspects of a model's runs, in the rows (R) of the evidence."""
        robot, dof = model.robot, model.robot.dof
        linear = list(linear_suspects(robot))
        evidence = model.evidence(linear)
        fit = Fit.of(evidence)
        own = [evidence.suspects[:, [k]] for k in range(evidence.suspects.shape[1])]  # (R, 1) each
        gains = evidence.by_joint(evidence.columns[:, : evidence.harmless] @ model.values(evidence, fit.weights))
        windows = _windows(evidence.runs)
        several = windows[windows.sum(axis=1) > 1]  # a load must predict a block that is left out
        # (R, p) columns of the standard parameters: first moments and mass of the last link, offsets of the joints
        standard = evidence.columns[:, : model.base.rank] @ model.base.grouping
        offsets = [k for k, term in enumerate(robot.terms, start=10 * dof) if isinstance(term.term, Offset)]
        load, push = standard[:, 10 * dof - 4 : 10 * dof], standard[:, offsets]
        # mean torque of each joint: the fit of offsets alone
        mean = push @ lstsq(push, evidence.torque, rcond=RESOLUTION)
        varying = replace(evidence, torque=evidence.torque - mean)
        # one entry of each tuple per suspect, in the same order; a push, a free torque, can explain almost anything
        suspects = (*linear, *(Suspect("gain", j) for j in range(dof)), Suspect("load", None), Suspect("push", None))
        tried = (*map(Tried, (*own, *gains)), Tried(load, several), Tried(push, windows, general=True))
        return cls(robot, fit, varying, suspects, tried)

    def is_worth(self, index: int, verdict: Verdict) -> bool:
        """Whether the amount of a suspect is large enough to be reported, and plausible for its kind."""
        kind = KINDS[self.suspects[index].kind]
        if np.isfinite(kind.most):
            return kind.least < float(abs(verdict.value[0])) < kind.most
        if self.varying.effect(verdict.columns, verdict.value) < kind.least:  # relative rms torque
            return False
        groups = self.tried[index].groups
        if groups is None or verdict.group is None:
            return True
        if self.suspects[index].kind == "load" and abs(verdict.value[-1]) < verdict.half_width[-1]:
            return False  # it has no mass
        in_window = groups[verdict.group][self.fit.evidence.block]  # (R,)
        return verdict.left_out > HALF * float(np.sum(self.fit.residual[in_window] ** 2))


def _windows(run: Ints) -> Bools:
    """(G, B) all sequences of blocks of one run that leave a block for comparison, two more being their edges."""
    count, block = len(run), np.arange(len(run))  # run (B,): number of each block's run
    spans = [(start, start + length) for length in range(1, count - 2) for start in range(count - length + 1)]
    return np.array([(block >= start) & (block < stop) for start, stop in spans if run[start] == run[stop - 1]])


def _name_suspects(case: Case, first: Sequence[Verdict], level: float) -> Iterator[Verdict]:
    """Verdicts on the suspects that are named, the strongest first; `first` judges each of them by itself."""
    is_local = False  # whether the last one named acts in a window

    def is_worth(index: int, verdict: Verdict) -> bool:
        if verdict.group is not None:
            return case.is_worth(index, verdict)
        # Begin and end of a window fall within blocks, which leaves a residual there: after a suspect of a window,
        # none of the whole log is named.
        return not is_local and verdict.p * len(case.tried) < UNEVEN * level and case.is_worth(index, verdict)

    judged = judge_suspects(case.fit, case.tried, level=level, is_worth=is_worth, first=first)
    for verdict in islice(judged, MOST_NAMED):
        is_local = verdict.group is not None
        yield verdict
        if case.suspects[verdict.suspect].kind == "delay":  # its one column is a linearisation, the rest is no fault
            break


def _report_detectable(case: Case, first: Sequence[Verdict], level: float, hidden: Iterable[str]) -> Iterator[Finding]:
    """Report the smallest detectable amount of each suspect of a whole log, and suspects that cannot be detected.

    `first` judges each suspect by itself; `hidden` are exchanges of joints that cannot be excluded, in words.
    """
    robot = case.robot
    none = dict.fromkeys(hidden)  # names of suspects that cannot be detected, each once
    large = []  # texts of those of which only large amounts can be
    least = {}  # name -> smallest detectable amount in printed units
    for suspect, tried, verdict in zip(case.suspects, case.tried, first, strict=True):
        if tried.groups is not None:
            continue
        kind, unit, name = KINDS[suspect.kind], suspect.unit(robot), suspect.label(robot)
        # `kind.least` is an amount, or the relative rms torque of one: `each` of these per unit
        each = 1.0 if np.isfinite(kind.most) else case.varying.effect(tried.columns, np.ones(1))
        # smallest significant amount [SI]: t quantile (two-sided, Bonferroni) times the standard error
        sure = float(stats.t.isf(0.5 * UNEVEN * level / len(case.tried), verdict.freedom) * verdict.stderr[0])
        if not sure < kind.most:
            none[suspect.name(robot)] = None
            continue
        amount = least[f"{name} [{unit}]"] = kind.factor * max(sure, kind.least / each)
        if sure * each > kind.least:  # amounts that would be worth reporting are not all significant
            large.append(f"{name} (from {amount:.2g} {unit})")
    if none or large:
        brief = f"this motion cannot show errors of: {', '.join(none)}"
        yield Finding("untestable", "note", "model", f"{brief}; only large ones of: {', '.join(large)}",
                      "Faster and wider motions of all joints together show more (dynid excite).",
                      brief=f"{brief}; only large ones of {len(large)} others", evidence=least)  # fmt: skip


def _finding(case: Case, runs: Sequence[Experiment], verdict: Verdict) -> Finding:
    """The finding of a verdict, with the one amount that is printed."""
    suspect = case.suspects[verdict.suspect]
    robot = case.robot
    shown = len(verdict.value) - 1  # the amount that is printed; of a load, the mass is last
    if suspect.kind == "push":  # one amount per joint: that of the joint with the largest effect
        each = [case.varying.effect(verdict.columns[:, [j]], verdict.value[[j]]) for j in range(robot.dof)]
        shown = int(np.argmax(each))
        suspect = Suspect("push", shown)
    kind, value, spread = KINDS[suspect.kind], float(verdict.value[shown]), float(verdict.half_width[shown])
    if suspect.kind == "delay":  # a linearised amount so far: estimate it
        delay = find_delay(robot, runs)
        value, spread = delay.seconds, delay.half_width_s
    others = "".join(f"; or {case.suspects[k].name(robot)}, which explains it as well" for k in verdict.rivals[:2])
    groups = case.tried[verdict.suspect].groups
    when, times = "", {}
    if groups is not None and verdict.group is not None:
        window, run = groups[verdict.group], case.fit.evidence.runs  # (B,) blocks of one run
        number = int(run[window][0])
        own = window[run == number]
        edges = np.flatnonzero(own)[[0, -1]] + [0, 1]
        start, stop = np.interp(edges, [0, len(own)], runs[number].time[[0, -1]]).tolist()
        when, times = f" from {start:.4g} to {stop:.4g} s", {"from [s]": start, "to [s]": stop}
    joint = None if suspect.joint is None or suspect.kind == "tilt" else robot.joint_names[suspect.joint]
    return Finding(kind.code, "warning", "model" if suspect.direction is not None else "effort",
                   suspect.describe(robot, value, spread) + when + others,
                   kind.remedy.format(seconds=value, joint=joint), joint=joint,
                   evidence={f"amount [{suspect.unit(robot)}]": kind.factor * value, **times,
                             "half of the 95 % interval": kind.factor * spread, "probability without it": verdict.p},
                   strength=case.varying.effect(verdict.columns, verdict.value))  # fmt: skip
