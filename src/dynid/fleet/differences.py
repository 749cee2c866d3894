"""Arms that differ from their fleet: in a load, the gain of a torque or their links, or in their own parameters.

Loads, gains and links are suspects of the test of `dynid.diagnosis.verdicts`, tried in every arm and in groups of its
logs: the part of the residual that a suspect explains there is compared with the part that it explains in other logs,
so that errors of the model do not count as differences. Friction and offsets are free in every log (nuisance
parameters), so that a torque that they can explain is never put down to a load.

Own parameters (friction and offsets) differ from arm to arm by nature. The scatter of all other arms and the
uncertainty of the arm say how unusual a value is; so a small fleet shows large differences only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import orth
from scipy.stats import t

from dynid.array_types import Bools, Floats
from dynid.diagnosis.evidence import BLOCKS, Evidence
from dynid.diagnosis.verdicts import LEVEL, RESOLUTION, Fit, Tried, Verdict, judge_suspects
from dynid.fleet.pooling import ArmEquations, Elimination, Pool
from dynid.identifiability.base_set import BaseParameters
from dynid.robot.model import Robot
from dynid.spatial import TINY

FEWEST_ARMS, FEWEST_SHARED = 5, 3
"""Smallest number of arms with which own parameters and shared ones are compared (convention)."""
CLEAR = 3.0
"""Standard deviations of the arms by which a mean must differ from zero to be a measure of changes in per cent
(convention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference of an arm from its fleet, or one change over time."""

    arm: str
    """Name of the arm."""
    what: str
    """Parameter, such as FC3, the link that carries a load, or the joint whose torque is measured wrongly."""
    kind: str
    """``load``, ``gain``, ``links``, ``own`` or ``change``."""
    chance: float
    """p-value: probability of such a difference without a cause."""
    told: str
    """Description of the difference, with values and units."""

    @property
    def sentence(self) -> str:
        """The description with the p-value."""
        p = "p < 1e-9" if self.chance < 1e-9 else f"p = {self.chance:.0e}".replace("e-0", "e-")
        return f"{self.told}, beyond chance ({p})"


@dataclass(frozen=True, slots=True, eq=False)
class Repair:
    """A correction of the torques of a log for a difference, so that friction can be compared with other arms."""

    shift: Floats
    """(s,) change of the shared parameters in the log, such as a load."""
    gains: Floats
    """(n,) factors by which its torques are measured too large."""


class _Suspect(NamedTuple):
    """A possible difference."""

    kind: str
    """``load``, ``gain`` or ``links``."""
    name: str
    """Link that would carry a load, or joint whose torque is measured wrongly."""
    directions: Floats
    """(s + n, d) change of the shared parameters and of the gains per unit; for a load the mass is the last."""


def find_differences(
    robot: Robot, base: BaseParameters, arms: Sequence[ArmEquations], pool: Pool
) -> Iterator[tuple[Difference, int, dict[int, Repair]]]:
    """Iterate over differences in shared parameters and gains: each with the number of its arm, and repairs of logs.

    Args:
        robot: The robot.
        base: Its base parameters.
        arms: Their equations.
        pool: All arms together.
    """
    suspects = _list_suspects(robot, base, pool)
    blocks = list(_list_blocks(arms, pool))
    while len({block.arm for block in blocks}) >= FEWEST_SHARED:
        owner = np.array([block.arm for block in blocks])
        ends = np.searchsorted(owner, owner, "right").tolist()
        # all runs of neighbouring blocks of one arm
        spans = [(first, last) for first, end in enumerate(ends) for last in range(first + 1, end + 1)]
        groups = np.array([np.isin(np.arange(len(owner)), np.arange(*span)) for span in spans])
        fit = _fit_shared(blocks, len(pool.shared_places))
        tried = [Tried(fit.evidence.columns @ one.directions, groups, general=one.kind == "links") for one in suspects]
        found = next(judge_suspects(fit, tried), None)
        if found is None:
            return
        suspect, span = suspects[found.suspect], slice(*spans[found.group or 0])
        arm, logs = blocks[span][0].arm, [log for block in blocks[span] for log in block.logs]
        change = suspect.directions @ found.value
        yield (
            Difference(arm=arms[arm].name, what=suspect.name, kind=suspect.kind, chance=found.p * len(suspects),
                       told=_describe(suspect, found) + _where(arms[arm], logs)),
            arm,
            dict.fromkeys(logs, Repair(change[: -robot.dof], 1.0 + change[-robot.dof :])),
        )  # fmt: skip
        del blocks[span]  # their cause is found


def _list_suspects(robot: Robot, base: BaseParameters, pool: Pool) -> list[_Suspect]:
    """List the suspects: loads on the last bodies, gains of the torques, and last any change of the links."""
    parents = {body.parent for body in robot.bodies}
    dof = robot.dof
    grouping = base.grouping[list(pool.shared_places)]
    none = np.zeros((dof, 10))  # a load changes no gain
    size = len(grouping)
    loads = [
        _Suspect("load", body.joint.child, np.vstack([grouping[:, 10 * j : 10 * j + 10], none]))
        for j, body in enumerate(robot.bodies)
        if j not in parents
    ]
    gains = [_Suspect("gain", name, np.eye(size + dof)[:, [size + j]]) for j, name in enumerate(robot.joint_names)]
    return [*loads, *gains, _Suspect("links", "links", np.eye(size + dof)[:, :size])]


class _Block(NamedTuple):
    """Some neighbouring logs of an arm."""

    arm: int
    """Number of the arm."""
    logs: list[int]
    """Numbers of the logs."""
    rows: Floats
    """(r, s + n + 1) equations: columns of shared parameters and gains, torque; own parameters are eliminated."""


def _list_blocks(arms: Sequence[ArmEquations], pool: Pool) -> Iterator[_Block]:
    """Divide the logs of every arm into blocks, and eliminate its own parameters from each."""
    own = list(pool.own_places)
    shared = list(pool.shared_places)
    size = len(own) + len(shared)
    kept = [*shared, *range(size, size + arms[0].logs[0].dof)]
    for number, arm in enumerate(arms):
        for part in np.array_split(np.arange(len(arm.logs)), min(len(arm.logs), BLOCKS // 2)):
            rows = arm.rows(part.tolist(), pool.base_values(number))
            triangle = Elimination.of(rows, own, kept).triangle
            yield _Block(number, part.tolist(), triangle[:-1])  # the last row is the norm of the residual


def _fit_shared(blocks: Sequence[_Block], shared: int) -> Fit:
    """Fit the shared parameters to all blocks; their rows are weighted to unit variance."""
    rows = np.concatenate([block.rows for block in blocks])
    number = np.repeat(np.arange(len(blocks)), [len(block.rows) for block in blocks])
    runs = np.array([block.arm for block in blocks])
    evidence = Evidence(
        rows[:, :-1], rows[:, -1], np.zeros_like(number), number, np.array([len(rows)]), shared, runs
    )  # fmt: skip
    X = evidence.columns[:, :shared]
    basis = orth(X / np.maximum(np.linalg.norm(X, axis=0), TINY), rcond=RESOLUTION)
    along = basis.T @ evidence.torque
    return Fit(evidence, np.ones(1), basis, np.zeros(shared), evidence.torque - basis @ along)


def _describe(suspect: _Suspect, found: Verdict) -> str:
    """Describe a suspect with its size and 95 % interval, where that is known."""
    if suspect.kind == "links":
        return "its links differ from those of the fleet"
    value, half = float(found.value[-1]), float(found.half_width[-1])
    if suspect.kind == "gain":
        return f"as if the torque of {suspect.name} were measured {1.0 + value:.3g} ± {half:.2g} times as large (95 %)"
    if half > abs(value):
        return f"as if {suspect.name} held another load"
    return f"as if {suspect.name} held {value:+.3g} ± {half:.2g} kg (95 %)"


def _where(arm: ArmEquations, logs: Sequence[int]) -> str:
    """Name the logs of an arm in which a difference shows; empty where these are all."""
    if len(logs) == len(arm.logs):
        return ""
    first, last = arm.log_names[logs[0]], arm.log_names[logs[-1]]
    return f" in {len(logs)} of {len(arm.logs)} logs ({first}{f' to {last}' if len(logs) > 1 else ''})"


def unusual_values(
    names: Sequence[str], units: Sequence[str], kinds: Sequence[str], arms: Sequence[str], pool: Pool
) -> list[Difference]:
    """Find the own parameters that are far from those of the fleet.

    Arms scatter by nature, and few arms do not show how much. Parameters of one kind, such as the dry friction of all
    joints, scatter by about the same share of their means: the scatter of a parameter is that of its kind, or its own
    one where that is larger. The most unusual value is removed, and the rest compared again.

    Args:
        names: (k,) names of the own parameters.
        units: (k,) their units.
        kinds: (k,) their kinds.
        arms: Names of the arms.
        pool: The fleet.
    """
    values, std = (np.array([getattr(own, part) for own in pool.own]) for part in ("values", "std"))
    found = []
    known = np.isfinite(std)
    clear = np.array([is_clear_of_zero(values[known[:, k], k]) for k in range(values.shape[1])])
    mates = [[m for m, kind in enumerate(kinds) if m == k or (kind == kinds[k] and clear[m] and clear[k])]
             for k in range(len(names))]  # fmt: skip
    while len(arms) >= FEWEST_ARMS:
        tried = [
            (_judge_value(values, std, known, arm, k, mates[k]), arm, k)
            for arm, k in zip(*np.nonzero(known), strict=True)
            if known[:, k].sum() >= FEWEST_ARMS - 1
        ]
        (chance, mean), arm, k = min(tried, default=((1.0, 0.0), 0, 0))
        if chance > LEVEL / values.size:
            break
        share = percent(float(values[arm, k]) - mean, mean) if clear[k] else ""
        told = f"{names[k]} is {values[arm, k]:.4g} {units[k]} against {mean:.4g} {units[k]} of the fleet{share}"
        found.append(Difference(arm=arms[arm], what=names[k], kind="own", chance=chance, told=told))
        known[arm, k] = False
    return found


def _judge_value(
    values: Floats, std: Floats, known: Bools, arm: int, k: int, mates: Sequence[int]
) -> tuple[float, float]:
    """Judge the value of parameter k of an arm by the mean of the other arms, by Student's test.

    Args:
        values: (arms, k) estimates.
        std: (arms, k) standard deviations.
        known: (arms, k) whether values count.
        arm: Number of the arm.
        k: Number of the parameter.
        mates: Numbers of the parameters of the same kind, k included.

    Returns:
        The p-value, and the mean of the other arms.
    """
    others = known.copy()
    others[arm] = False
    shares, freedom = {}, 0
    for mate in mates:
        rows = others[:, mate]
        if rows.sum() > 1:
            size = float(values[rows, mate].mean()) if len(mates) > 1 else 1.0
            scatter = float(values[rows, mate].var(ddof=1)) - float(np.mean(std[rows, mate] ** 2))
            shares[mate] = scatter / size**2
            freedom += int(rows.sum()) - 1
    rows = others[:, k]
    mean = float(values[rows, k].mean())
    natural = (mean**2 if len(mates) > 1 else 1.0) * max(float(np.mean(list(shares.values()))), shares[k], 0.0)
    own = float(np.mean(std[rows, k] ** 2))
    deviations = (float(values[arm, k]) - mean) / np.sqrt(natural + std[arm, k] ** 2 + (natural + own) / rows.sum())
    return 2.0 * float(t.sf(abs(deviations), freedom)), mean


def is_clear_of_zero(values: Floats) -> bool:
    """Whether values (arms,) lie so far from zero that changes in per cent mean something; offsets seldom do."""
    middle = float(np.median(values)) if values.size else 0.0
    scatter = 1.4826 * float(np.median(np.abs(values - middle))) if values.size else 0.0  # of a normal distribution
    return abs(middle) > CLEAR * scatter


def percent(change: float, before: float) -> str:
    """Write a change in per cent, after a comma; nothing where the sign changes or the value grows tenfold."""
    return f", {100.0 * change / before:+.0f} %" if before and -1.0 <= change / before < 10.0 else ""
