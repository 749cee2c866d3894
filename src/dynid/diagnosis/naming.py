"""Which suspects do runs of one robot show? All that add columns, tested at one level, the strongest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Bools, Floats
from dynid.diagnosis.evidence import gather
from dynid.diagnosis.leave_out import Amount, Fit, Local, find_local, test_columns
from dynid.diagnosis.log_changes import check_friction, check_scale, find_change
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
from dynid.findings import Finding
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

LEVEL = 0.01
"""Probability that a faultless log is accused, over all suspects (level)."""
EQUAL = 0.8
"""Share of what a suspect explains from which on another explains the log equally well (effect)."""
MOST_NAMED = 3
"""Largest number of suspects that are named beside one another (convention)."""


EFFECT, HALF = 0.05, 0.5
"""Torque of a load over the torques meanwhile from which on it is worth telling, and share of what is unexplained there
that it must explain (effect)."""


@dataclass(frozen=True, eq=False)
class Case:
    """Suspects with their columns in the rows of the evidence."""

    robot: Robot
    fit: Fit
    suspects: tuple[Suspect, ...]
    columns: tuple[Floats, ...]
    load: Floats
    """(R, 4) first moments [kg m] and mass [kg] of a load on the last link."""

    @classmethod
    def of(cls, model: Model) -> Case:
        """Gather the evidence of a model's runs."""
        placed, dof = list(placements(model.robot)), model.robot.dof
        columns = [[*placement_columns(model, e, placed), *channel_columns(model.robot, e)] for e in model.excerpts]
        evidence = gather(model.robot, model.base, model.excerpts, columns)
        fit = Fit.of(evidence)
        own = [evidence.suspects[:, [k]] for k in range(evidence.suspects.shape[1])]
        late = evidence.suspects[:, len(placed) : len(placed) + dof].sum(axis=1, keepdims=True)
        gains = [Suspect("gain", j) for j in range(dof)]
        values = trusted_values(fit, model.base, model.robot)
        return cls(
            model.robot,
            fit,
            (*placed, *channels(model.robot), Suspect("delay", None), *gains),
            (*own, late, *gain_columns(evidence, values, dof)),
            evidence.columns[:, : model.base.rank] @ model.base.grouping[:, 10 * dof - 4 : 10 * dof],
        )

    def effect(self, column: Floats, value: Floats) -> float:
        """Largest rms torque of a suspect over the rms torque of a joint."""
        evidence, count = self.fit.evidence, len(self.fit.evidence.counts)
        made = np.bincount(evidence.joint, (column @ value) ** 2, count)
        total = np.bincount(evidence.joint, evidence.torque**2, count)
        return float(np.sqrt(np.max(np.divide(made, total, out=np.zeros(count), where=total > 0.0))))

    def matters(self, place: int, amount: Amount) -> bool:
        """Whether an amount is worth telling, and plausible for its kind."""
        kind, size = KINDS[self.suspects[place].kind], float(abs(amount.value[0]))
        if np.isinf(kind.most):
            return self.effect(self.columns[place], amount.value) > kind.least
        return kind.least < size < kind.most


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
    change = find_change(model, level)
    if change is not None:
        return (change,)
    case = Case.of(model)
    flipped = [*check_scale(model)] or [*check_friction(model, case.fit, level)]
    return tuple(flipped or _name_suspects(case, runs, level))


def _name_suspects(case: Case, runs: Sequence[Experiment], level: float) -> Iterator[Finding]:
    fit, open_ones, loaded = case.fit, set(range(len(case.suspects))), False
    for rounds in range(MOST_NAMED):
        tried = sorted(open_ones)
        amounts = dict(zip(tried, test_columns(fit, [case.columns[k] for k in tried]), strict=True))
        if not rounds:
            hidden = [k for k in tried if not amounts[k].half_width[0] < 3.0 * KINDS[case.suspects[k].kind].least]
        each = level / (len(tried) + 1)
        likely = {
            k: amount
            for k, amount in amounts.items()
            if amount.p < each and amount.left_out > 0.0 and case.matters(k, amount)
        }
        load = _find_load(case, fit)
        if load is not None and load[0].p < each and load[0].gain > max((a.gain for a in likely.values()), default=0.0):
            yield _load_finding(case, runs, *load)
            fit, loaded = fit.with_harmless(load[1]), True
            continue
        if loaded or not likely:  # what the edges of a load leave accuses nothing else
            break
        best = max(likely, key=lambda k: likely[k].left_out)
        rivals = [k for k in likely if k != best and likely[k].gain > EQUAL * likely[best].gain]
        yield _finding(case, best, likely[best], rivals)
        fit = fit.with_harmless(case.columns[best])
        open_ones -= {best}
    names = dict.fromkeys(
        case.suspects[k].name(case.robot) for k in hidden if np.isfinite(KINDS[case.suspects[k].kind].most)
    )
    if names:
        yield Finding(
            code="untestable",
            severity="note",
            where="model",
            message=f"this motion cannot show small errors of: {', '.join(names)}",
            remedy="Faster and wider motions of all joints together show more (dynid excite).",
        )


def _finding(case: Case, place: int, amount: Amount, rivals: Sequence[int]) -> Finding:
    suspect, robot = case.suspects[place], case.robot
    kind, value = KINDS[suspect.kind], float(amount.value[0])
    others = "".join(f"; or {case.suspects[k].name(robot)}, which explains it as well" for k in rivals[:2])
    return Finding(
        code=kind.code,
        severity="warning",
        where="model" if suspect.direction is not None else "effort",
        joint=None if suspect.joint is None or suspect.kind == "tilt" else robot.joint_names[suspect.joint],
        message=suspect.describe(robot, value, float(amount.half_width[0])) + others,
        evidence={
            f"amount [{suspect.unit(robot)}]": kind.factor * value,
            "half of the 95 % interval": kind.factor * float(amount.half_width[0]),
            "probability without it": amount.p,
        },
        remedy=suspect.remedy(robot, value),
        strength=case.effect(case.columns[place], amount.value),
    )


def _find_load(case: Case, fit: Fit) -> tuple[Local, Floats, Bools] | None:
    """A load that is held in one part of the runs, with its column and the blocks of time.

    It must explain most of what is unexplained there.
    """
    count = len(fit.evidence.runs)
    groups = np.array([
        [start <= block < start + length for block in range(count)]
        for length in range(1, count // 2 + 1)
        for start in range(count - length + 1)
    ])  # fmt: skip
    found = find_local(fit, case.load, groups)
    held = groups[found.group][fit.evidence.block]
    column = case.load * held[:, None]
    made, torque = column @ found.value, fit.evidence.torque[held]
    explains = found.gain > HALF * float(np.sum(fit.residual[held] ** 2))
    matters = float(made @ made) > (EFFECT**2) * float(torque @ torque)
    return (found, column, groups[found.group]) if explains and matters else None


def _load_finding(case: Case, runs: Sequence[Experiment], load: Local, column: Floats, held: Bools) -> Finding:
    mass, spread = float(load.value[-1]), 2.0 * float(np.sqrt(max(load.covariance[-1, -1], 0.0)))
    blocks, run = np.flatnonzero(held), runs[int(case.fit.evidence.runs[int(np.flatnonzero(held)[0])])]
    own = np.flatnonzero(case.fit.evidence.runs == case.fit.evidence.runs[blocks[0]])
    start, stop = (blocks[0] - own[0]) / len(own), (blocks[-1] + 1 - own[0]) / len(own)
    time = run.time[0] + (run.time[-1] - run.time[0]) * np.array([start, min(stop, 1.0)])
    return Finding(
        code="load",
        severity="warning",
        where="effort",
        message=f"the load differs by {mass:+.2g} +- {spread:.1g} kg from {time[0]:.4g} to {time[1]:.4g} s",
        evidence={"mass [kg]": mass, "from [s]": float(time[0]), "to [s]": float(time[1]), "probability": load.p},
        remedy="Was a load taken up, or an obstacle touched? Cut the log there (--time).",
        strength=case.effect(column, load.value),
    )
