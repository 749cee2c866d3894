"""Arms that differ from their fleet: in a load, the gain of a torque, their links, or in their own parameters.

Shared parameters and gains: an arm is compared with all others (`dynid.fleet.fleet_causes`). No model is perfect, so
the gains of likelihood of arms that are alike are larger than noise makes them. How much larger, the fleet tells: the
median over the arms is set against the median of the distribution.

An arm whose logs disagree with one another (`dynid.fleet.odd_logs`) is not judged as a whole: its logs are compared
with the fleet one by one.

Own parameters: friction differs from arm to arm. The scatter of all other arms and the arm's own uncertainty say how
unusual a value is; so a small fleet can only tell of large differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from dynid.arrays import Bools, Floats
from dynid.fleet.fleet_causes import Cause, Gain, compare, likeliest, usual_gain
from dynid.fleet.odd_logs import CHANCE, LogGroup, arms_with_odd_logs, odd_group
from dynid.fleet.pooling import ArmEquations, Pool, share_of_others, without_own

FEWEST_ARMS = 5
"""Smallest fleet whose scatter can be judged (convention)."""
FEWEST_SHARED = 3
"""Smallest fleet in which the shared parameters of one arm are compared with those of the others (convention)."""
KNOWN_MASS = 0.3
"""Largest standard deviation of a load's mass, relative to it, with which the mass is stated (convention)."""
SMALLEST_GAIN = 0.1
"""Smallest size of a gain by which torques are divided (convention: below it there is no signal)."""
FAR = 1e-9
"""Chance below which only a bound is printed (convention: no distribution is known that far out)."""
CLEAR = 3.0
"""Scatter of the arms that a mean must exceed to be a measure of changes in per cent (convention)."""
MOST_NAMES = 4
"""Largest number of logs named in a sentence (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which an arm differs from its fleet."""

    arm: str
    what: str
    """Parameter, such as FC3, the link that carries a load, or the joint whose torque is measured wrongly."""
    kind: str
    """``load``, ``gain``, ``links``, ``logs`` (they disagree, and the fleet does not tell in what), ``own`` or
    ``change``."""
    deviations: float
    """Size in standard deviations."""
    sentence: str
    """What a person should know, with values and units."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repair:
    """How the torques of a log are made those of a usual arm, so that its friction can be compared."""

    shift: Floats
    """(s,) what the log adds to the shared parameters, such as a load."""
    gains: Floats
    """(n,) factors by which its torques are measured too large."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judgement:
    """Which arms differ."""

    differences: tuple[Difference, ...]
    present: tuple[int, ...]
    """Arms that are alike: the shared parameters are theirs."""
    shifts: Mapping[int, Floats] = field(default_factory=dict)
    """For arms that differ in all logs, what they add to the shared parameters (s,)."""
    repairs: Mapping[tuple[int, int], Repair] = field(default_factory=dict)
    """(arm, log) -> how a log of another load or gain is repaired."""


def different_arms(arms: Sequence[ArmEquations], pool: Pool, causes: Sequence[Cause]) -> Judgement:
    """Arms whose shared parameters or gains differ from those of the others.

    Arms whose logs disagree are taken out first. Then the arm that differs most is taken out, and the others are
    compared again without it, until none differs.

    Args:
        arms: Their equations.
        pool: All arms together.
        causes: What may differ.
    """
    mixed = arms_with_odd_logs(arms, pool, causes)
    present = [k for k in range(len(arms)) if k not in mixed.arms]
    triangles = {k: without_own(arms[k], pool, k) for k in present}
    odd: dict[int, float] = {}
    usual = [1.0] * len(causes)
    while len(present) >= FEWEST_SHARED:
        table = [_gains(triangles, pool, arm, present, causes) for arm in present]
        usual = [usual_gain(column) for column in zip(*table, strict=True)]
        worth = [
            max((gain.size / usual[k] - gain.rank for k, gain in enumerate(row)
                 if gain.chance(usual[k], len(present)) <= CHANCE / (len(arms) * len(causes))), default=0.0)
            for row in table
        ]  # fmt: skip
        place = int(np.argmax(worth))
        if worth[place] <= 0.0:
            break
        odd[present[place]] = min(gain.chance(usual[k], len(present)) for k, gain in enumerate(table[place]))
        present.remove(present[place])
    found: list[Difference] = []
    shifts: dict[int, Floats] = {}
    repairs: dict[tuple[int, int], Repair] = {}
    alike = share_of_others(arms, pool, present) if present and (odd or mixed.arms) else pool
    for arm, chance in odd.items():  # against those that are alike only
        gains = _gains({arm: without_own(arms[arm], alike, arm)}, pool, arm, present, causes)
        number = likeliest(causes, gains, usual)
        gain, cause = gains[number], causes[number]
        found.append(_described(arms[arm].name, cause, gain, usual[number], chance))
        if cause.directions is None:
            repairs |= {(arm, log): _repair(cause, gain, pool, arms[arm]) for log in range(len(arms[arm].logs))}
        else:
            shifts[arm] = cause.directions @ gain.change
    for arm in mixed.arms:
        group = None
        if len(present) >= FEWEST_SHARED - 1:
            logs = [without_own(arms[arm], alike, arm, log) for log in range(len(arms[arm].logs))]
            group = odd_group(mixed, logs, [pool.eliminated[k] for k in present], causes)
        found.append(_described_logs(arms[arm], group, causes, mixed.chance[arm]))
        if group is not None:
            repairs |= {(arm, log): _repair(causes[group.cause], gain, pool, arms[arm])
                        for log, gain in zip(group.logs, group.gains, strict=True)}  # fmt: skip
    return Judgement(differences=tuple(found), present=tuple(present), shifts=shifts, repairs=repairs)


def _gains(
    triangles: Mapping[int, Floats], pool: Pool, arm: int, present: Sequence[int], causes: Sequence[Cause]
) -> list[Gain]:
    comparison = compare(triangles[arm], [pool.eliminated[k] for k in present if k != arm], len(pool.shared_places))
    return [comparison.gain(cause) for cause in causes]


def _repair(cause: Cause, gain: Gain, pool: Pool, arm: ArmEquations) -> Repair:
    shift, gains = np.zeros(len(pool.shared_places)), np.ones(arm.information.dof)
    if cause.directions is not None:
        shift = cause.directions @ gain.change
    elif abs(1.0 + gain.change[0]) > SMALLEST_GAIN:
        gains[cause.joint] = 1.0 + gain.change[0]
    return Repair(shift=shift, gains=gains)


def unusual_values(
    names: Sequence[str], units: Sequence[str], kinds: Sequence[str], arms: Sequence[str], pool: Pool
) -> list[Difference]:
    """Own parameters that are far from those of the fleet.

    Arms scatter by nature, and few arms tell little of it. Parameters of one kind, such as the dry friction of all
    joints, scatter by about the same share of their means: their scatter is that of the kind, or that of the joint
    itself where that is larger. The farthest value is taken out, and the rest compared again.

    Args:
        names: (k,) names of the own parameters, gains included.
        units: (k,) their units.
        kinds: (k,) their kinds.
        arms: Names of the arms.
        pool: The fleet.
    """
    if len(arms) < FEWEST_ARMS:
        return []
    values, std = (np.array([getattr(own, part) for own in pool.own]) for part in ("values", "std"))
    found, known = [], np.isfinite(std)
    clear = np.array([is_clear_of_zero(values[known[:, k], k]) for k in range(values.shape[1])])
    level = CHANCE / max(values.size, 1)
    while True:
        farthest = min(
            (_distance(values, std, known, (arm, k), _mates(kinds, clear, k))
             for arm, k in zip(*np.nonzero(known), strict=True) if known[:, k].sum() >= FEWEST_ARMS - 1),
            key=lambda one: one.chance, default=None,
        )  # fmt: skip
        if farthest is None or farthest.chance > level:
            break
        arm, k = farthest.place
        value, mean, of = float(values[arm, k]), farthest.mean, f" {units[k]}" if units[k] else ""  # gains are factors
        share = percent(value - mean, mean) if clear[k] else ""
        sentence = f"{names[k]} is {value:.4g}{of} against {mean:.4g}{of} of the fleet{share}, "
        found.append(Difference(arm=arms[arm], what=names[k], kind="own", deviations=abs(farthest.deviations),
                                sentence=sentence + sureness(farthest.chance)))  # fmt: skip
        known[arm, k] = False
    return sorted(found, key=lambda difference: -difference.deviations)


class _Distance(NamedTuple):
    """How far a value of one arm is from those of the others."""

    place: tuple[int, int]
    mean: float
    deviations: float
    chance: float


def _mates(kinds: Sequence[str], clear: Bools, place: int) -> list[int]:
    """Parameters whose scatter, as a share of their means, is that of one of them; itself alone near zero."""
    if not clear[place]:
        return [place]
    return [k for k, kind in enumerate(kinds) if kind == kinds[place] and clear[k]]


def _distance(values: Floats, std: Floats, known: Bools, place: tuple[int, int], mates: Sequence[int]) -> _Distance:
    """The distance of a value from the mean of the others, against their natural scatter and its own uncertainty."""
    arm, k = (int(number) for number in place)
    others = known.copy()
    others[arm] = False
    shares, freedom = {}, 0
    for mate in mates:
        rows = others[:, mate]
        if rows.sum() > 1:
            size = float(values[rows, mate].mean()) if len(mates) > 1 else 1.0
            shares[mate] = (float(values[rows, mate].var(ddof=1)) - float(np.mean(std[rows, mate] ** 2))) / size**2
            freedom += int(rows.sum()) - 1
    mean, count = float(values[others[:, k], k].mean()), int(others[:, k].sum())
    scale = mean**2 if len(mates) > 1 else 1.0
    natural = scale * max(float(np.mean(list(shares.values()))), shares[k], 0.0)
    own = float(np.mean(std[others[:, k], k] ** 2))
    deviations = (float(values[arm, k]) - mean) / np.sqrt(natural + std[arm, k] ** 2 + (natural + own) / count)
    return _Distance((arm, k), mean, float(deviations), 2.0 * float(t.sf(abs(deviations), freedom)))


def is_clear_of_zero(values: Floats) -> bool:
    """Whether the values of a fleet lie so far from zero that changes in per cent mean something; offsets seldom do."""
    middle = float(np.median(values)) if values.size else 0.0
    scatter = 1.4826 * float(np.median(np.abs(values - middle))) if values.size else 0.0  # of a normal distribution
    return abs(middle) > CLEAR * scatter


def percent(change: float, before: float) -> str:
    """A change in per cent, with a comma before it; empty where the sign changes or the value grows tenfold."""
    return f", {100.0 * change / before:+.0f} %" if before and -1.0 <= change / before < 10.0 else ""


def sureness(chance: float) -> str:
    """How unlikely a difference is by chance."""
    return f"far beyond chance (p < {FAR:.0e})".replace("e-0", "e-") if chance < FAR else (
        f"beyond chance (p = {chance:.0e})".replace("e-0", "e-"))  # fmt: skip


def _described(arm: str, cause: Cause, gain: Gain, usual: float, chance: float) -> Difference:
    size = float(np.sqrt(gain.size / usual))
    return Difference(arm=arm, what=cause.name or "links", kind=cause.kind, deviations=size,
                      sentence=f"{_told(cause, gain, usual)}, {sureness(chance)}")  # fmt: skip


def _told(cause: Cause, gain: Gain, usual: float) -> str:
    """A cause with its size and 95 % interval, where that is known."""
    if cause.kind == "links":
        return "its links differ from those of the fleet"
    value, half = float(gain.change[-1]), float(1.96 * gain.std[-1] * np.sqrt(usual))
    if cause.kind == "gain":
        return f"as if the torque of {cause.name} were measured {1.0 + value:.3g} ± {half:.2g} times as large (95 %)"
    known = half < 1.96 * KNOWN_MASS * abs(value)
    return f"as if {cause.name} held {value:+.3g} ± {half:.2g} kg (95 %)" if known else (
        f"as if {cause.name} held another load")  # fmt: skip


def _described_logs(arm: ArmEquations, group: LogGroup | None, causes: Sequence[Cause], chance: float) -> Difference:
    """An arm whose logs disagree: in which of them what is different."""
    if group is None:
        return Difference(arm=arm.name, what="logs", kind="logs", deviations=0.0, sentence=(
            f"its {len(arm.logs)} logs disagree with one another in more than friction, {sureness(chance)}; the fleet "
            "does not tell which are unusual"))  # fmt: skip
    cause, whole, usual = causes[group.cause], group.whole, group.usual
    names = [arm.log_names[log] if arm.log_names else f"log {log + 1}" for log in group.logs]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    where = f"{len(names)} of {len(arm.logs)} logs ({', '.join(names[:MOST_NAMES])}{more})"
    words = {"load": "another load", "gain": "another gain", "links": "other links"}[cause.kind]
    values = [float(gain.change[-1]) for gain in group.gains]
    told = _told(cause, whole, usual)
    if group.scatter:
        low, high = min(values), max(values)
        told = f"as if {cause.name} held {low:+.3g} to {high:+.3g} kg" if cause.kind == "load" else (
            f"as if the torque of {cause.name} were measured {1.0 + low:.3g} to {1.0 + high:.3g} times as large"
        )  # fmt: skip
    if cause.kind == "links" and len(names) == len(arm.logs):
        return _described(arm.name, cause, whole, usual, chance)
    return Difference(
        arm=arm.name, what=cause.name or "links", kind=cause.kind, deviations=float(np.sqrt(whole.size / usual)),
        sentence=f"{words} in {where}: {told}, {sureness(chance)}",
    )  # fmt: skip
