"""Logs of one arm that disagree with one another: a tool that was on for some days, a sensor that was exchanged.

Each log is compared with the arm's other logs, so that nothing is needed of the fleet but how large such differences
usually are. Own parameters are free in every log: friction that changes is no disagreement. The fleet then tells which
of the logs are the unusual ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.fleet.fleet_causes import Cause, Gain, compare, likeliest, usual_gain
from dynid.fleet.pooling import ArmEquations, Pool, without_own
from dynid.information.triangular import append_rows

CHANCE = 1e-2
"""Probability that any arm of a fleet without differences is reported, over all arms, causes and parameters."""
SCATTER = 3.0
"""Standard deviations between two logs from which on their loads are different ones (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OddLogs:
    """Arms whose logs disagree."""

    arms: tuple[int, ...]
    chance: Mapping[int, float]
    """For each of these arms the probability of such a disagreement by chance."""
    usual: tuple[float, ...]
    """For each cause how much larger gains between logs that agree are than noise makes them."""
    logs: int
    """Number of logs that told so."""
    shared: int
    """Number of shared parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogGroup:
    """The unusual logs of an arm."""

    logs: tuple[int, ...]
    cause: int
    """Number of the cause that explains them best."""
    whole: Gain
    """What it explains in all of them together."""
    gains: tuple[Gain, ...]
    """What it explains in each; that of all of them together where they agree."""
    scatter: bool
    """Whether these logs disagree with one another in turn: several loads."""
    usual: float


def arms_with_odd_logs(arms: Sequence[ArmEquations], pool: Pool, causes: Sequence[Cause]) -> OddLogs:
    """Find arms whose logs disagree with one another in more than own parameters.

    Args:
        arms: Their equations, each log by itself among them.
        pool: All arms together.
        causes: In what logs may differ.
    """
    shared = len(pool.shared_places)
    triangles = {
        k: tuple(without_own(arm, pool, k, log) for log in range(len(arm.logs)))
        for k, arm in enumerate(arms)
        if len(arm.logs) > 1
    }
    gains = {k: [_gains(one, rest, shared, causes) for one, rest in _with_rest(logs, shared)]
             for k, logs in triangles.items()}  # fmt: skip
    rows = [row for of_arm in gains.values() for row in of_arm]
    usual = tuple(usual_gain(column) for column in zip(*rows, strict=True)) if rows else ()
    chances = {
        k: min(gain.chance(scale, len(rows)) for row in of_arm for gain, scale in zip(row, usual, strict=True))
        for k, of_arm in gains.items()
    }
    odd = {k: chance for k, chance in chances.items() if chance <= CHANCE / (len(rows) * len(causes))}
    return OddLogs(
        arms=tuple(odd), chance=odd, usual=usual, logs=len(rows),
        shared=shared,
    )  # fmt: skip


def odd_group(
    found: OddLogs, logs: Sequence[Floats], others: Sequence[Floats], causes: Sequence[Cause]
) -> LogGroup | None:
    """The logs of an arm that differ from the fleet, and in what; None where none does.

    Args:
        found: The arms whose logs disagree.
        logs: The equations of each log of one of them, see `without_own`.
        others: (., s + 1) equations of the arms that are alike.
        causes: In what logs may differ.
    """
    rows = [_gains(one, others, found.shared, causes) for one in logs]
    limit = CHANCE / (len(logs) * len(causes))
    odd = [
        k for k, row in enumerate(rows)
        if min(gain.chance(scale, found.logs) for gain, scale in zip(row, found.usual, strict=True)) <= limit
    ]  # fmt: skip
    if not odd:
        return None
    whole = _gains(_merged([logs[k] for k in odd]), others, found.shared, causes)
    singly = [likeliest(causes, rows[k], found.usual) for k in odd]
    cause = likeliest(causes, whole, found.usual)
    if causes[cause].kind == "links" and len(set(singly)) == 1:  # several loads are not one load
        cause = singly[0]
    gains = [rows[k][cause] for k in odd]
    value = np.array([gain.change[-1] for gain in gains])
    std = np.array([gain.std[-1] for gain in gains]) * np.sqrt(found.usual[cause])
    low, high = int(value.argmin()), int(value.argmax())
    differ = bool(value[high] - value[low] > SCATTER * np.hypot(std[low], std[high]))
    scatter = differ and causes[cause].kind != "links"
    return LogGroup(
        logs=tuple(odd), cause=cause, whole=whole[cause], usual=found.usual[cause], scatter=scatter,
        gains=tuple(gains) if scatter else (whole[cause],) * len(odd),
    )  # fmt: skip


def _gains(triangle: Floats, others: Sequence[Floats], shared: int, causes: Sequence[Cause]) -> list[Gain]:
    comparison = compare(triangle, others, shared)
    return [comparison.gain(cause) for cause in causes]


def _with_rest(logs: Sequence[Floats], shared: int) -> list[tuple[Floats, list[Floats]]]:
    """Each log with the equations of all others, merged from both ends so that many logs cost little."""
    plain = [np.column_stack([one[:, :shared], one[:, -1]]) for one in logs]
    nothing = np.zeros((shared + 1,) * 2)
    before, after = [nothing], [nothing]
    for one in plain[:-1]:
        before.append(append_rows(before[-1], one))
    for one in plain[:0:-1]:
        after.append(append_rows(after[-1], one))
    return [(one, [b, a]) for one, b, a in zip(logs, before, after[::-1], strict=True)]


def _merged(triangles: Sequence[Floats]) -> Floats:
    total = triangles[0]
    for one in triangles[1:]:
        total = append_rows(total, one)
    return total
