"""Checks of commanded motions: do the positions follow these commands, as a robot under position control does?

Nothing is known of the robot here. A drive follows its command within half a second, weaker perhaps, but in the same
direction: the position of a joint is a + g u(t - lag), with a gain g > 0 of its command u. What else may be in the
columns (another sign, joint or quantity, a later or an earlier clock) is the same regression on another signal or lag,
named where it leaves at most half of what this one leaves, by more than chance between blocks of time can do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np
from scipy.signal import correlate

from dynid.array_types import Bools, Floats
from dynid.diagnosis.evidence import BLOCKS, FEW
from dynid.diagnosis.log_changes import HALF, OTHER_UNIT, RIDGE
from dynid.diagnosis.signals import STILL
from dynid.diagnosis.verdicts import LEVEL, compare
from dynid.findings import Finding, Severity
from dynid.logs.recording import Commands, Recording

STEP_S, LONGEST = 0.01, 20_000
"""Time between compared samples [s], and most of these (convention: longer logs are compared in larger steps)."""
EARLY_S, USUAL_S, LATE_S = (-0.5, 0.0), (0.0, 0.5), (0.5, 2.0)
"""Lags behind its command that are looked for [s]; those between the second ones are a drive's (effect)."""
TURNS = 3.0 * np.pi
"""Positions beyond this are degrees or counts rather than radians [rad] (effect: one and a half turns)."""
SUPPLY_V = (1.0, 100.0)
"""Supply voltages of servos and legs [V] (effect)."""
FAST = 8.0
"""Steps of the encoder in two samples from which a joint surely moves (effect)."""

_FAULTS = {
    "backward-time": ("", "Sort the commands by their time, or give the right column of time."),
    "command-clock": ("commands", "Give both the same clock: check unit and column of time of either file."),
    "command-kind": ("commands", "Name commanded positions under [reference], velocities under "
                     "[reference_velocity]."),
    "constant-command": ("commands", "Check the columns of [reference]; commands of torques or velocities do not "
                         "belong there."),
    "copied-command": ("commands", "Name the columns of what was sent to the drives under [reference]."),
    "drive-setting": ("", "Check the column and its unit; take the section out where the log does not hold it."),
    "exchanged": ("commands", "Exchange [position] and [reference] in the channel map, or mend the clock of one of "
                  "them."),
    "flipped": ("", "Set sign = -1 for positions or commands of this joint in the channel map."),
    "frozen": ("", "Check the encoder, its column, and whether the drive was on."),
    "enabled": ("drive-setting", "Check what the column of [enabled] means: above zero is on."),
    "late-motion": ("delay", "Check that both clocks start at the same instant; no drive is that late."),
    "not-finite": ("", "Handled: the command before counts; where they are missing for more than 0.1 s, the motion is "
                   "cut. Give commands at a lower rate as a file with its own clock."),
    "stale": ("repeated-samples", "Packets were lost between robot and logger: record again, or drop the rows."),
    "swapped": ("", "Put the columns of commands and positions into one order of joints."),
    "unit": ("", "Give the unit of positions and of commands (rad, deg, or counts with a gear); or the joint was "
             "blocked."),
    "unusable": ("", "Record it again."),
}  # fmt: skip
"""Fault -> code of its finding, where that is not its own name, and what to do."""


def _finding(
    fault: str,
    where: str,
    message: str,
    joint: str | None = None,
    severity: Severity = "error",
    **evidence: float,
) -> Finding:
    code, remedy = _FAULTS[fault]
    numbers = {name.replace("_", " "): float(x) for name, x in evidence.items()}
    return Finding(code=code or fault, severity=severity, where=where, joint=joint, message=message, evidence=numbers,
                   remedy=remedy)  # fmt: skip


def check_commands(recording: Recording) -> Iterator[Finding]:
    """Check what the drives were told against where the joints went."""
    told = recording.commands
    if told is None or recording.isolated:
        return
    broken = [*_check_numbers(told, recording), *_check_settings(told, recording.joint_names)]
    yield from broken
    if any(finding.severity == "error" for finding in broken):
        return
    seen = _Tracking.of(recording, told)
    if seen is None:
        yield _finding("command-clock", "commands", "commands and positions were not logged at the same time",
                       **{"commands from [s]": told.time[0], "positions from [s]": recording.time[0]})  # fmt: skip
        return
    for check in (_check_enabled, _check_ranges, _check_following):
        found = [*check(seen)]
        yield from found
        if any(finding.severity == "error" for finding in found):  # it explains whatever the others would find
            return
    yield from _check_stale(recording)


def _check_numbers(told: Commands, recording: Recording) -> Iterator[Finding]:
    """Check the numbers of the commands by themselves."""
    known = np.isfinite(recording.q).all(axis=1) & np.isfinite(recording.time)
    if min(told.time.size, int(known.sum())) < 2:
        yield _finding("unusable", "commands", "the log holds fewer than two commands, or positions of all joints")
        return
    bad = ~np.isfinite(told.position).all(axis=1) | ~np.isfinite(told.time)
    if bad.any():
        yield _finding("not-finite", "commands", "commanded positions are missing",
                       severity="error" if bad.mean() > HALF else "warning", share=bad.mean())  # fmt: skip
    if (np.diff(told.time[np.isfinite(told.time)]) < 0.0).any():
        yield _finding("backward-time", "commands", "the time of the commands runs backwards")


def _check_settings(told: Commands, names: tuple[str, ...]) -> Iterator[Finding]:
    """Check gains, supply and flags of the drives by themselves."""
    for gain in ("kp", "kd"):
        values = cast("Floats | None", getattr(told, gain))
        for name, column in zip(names, () if values is None else values.T, strict=values is not None):
            if not (column >= 0.0).all() or not column.any():
                yield _finding("drive-setting", gain, f"{gain} is negative, missing or always zero", name)
    if told.supply is not None:
        level = float(np.median(told.supply[np.isfinite(told.supply)])) if np.isfinite(told.supply).any() else np.nan
        if not SUPPLY_V[0] <= level <= SUPPLY_V[1]:
            yield _finding("drive-setting", "supply", f"a supply of {level:.4g} V drives no servo")
    for j in [] if told.enabled is None else np.flatnonzero(~told.enabled.any(axis=0)).tolist():
        yield _finding("enabled", "enabled", "the drive is never on", names[j])


@dataclass(frozen=True, slots=True, eq=False)
class _Tracking:
    """Commands and positions on one clock."""

    step_s: float
    command: Floats
    """(K, n)"""
    position: Floats
    """(K, n)"""
    on: Bools
    """(K, n)"""
    names: tuple[str, ...]

    @classmethod
    def of(cls, recording: Recording, told: Commands) -> _Tracking | None:
        """None where they overlap by less than half of the shorter one."""
        rows = np.isfinite(recording.q).all(axis=1) & np.isfinite(recording.time)
        known = np.isfinite(told.position).all(axis=1) & np.isfinite(told.time)
        time, q, sent_at = recording.time[rows], recording.q[rows], told.time[known]
        start, stop = max(time[0], sent_at[0]), min(time[-1], sent_at[-1])
        clock = np.arange(start, stop, max(STEP_S, (stop - start) / LONGEST))
        if stop - start < HALF * min(np.ptp(time), np.ptp(sent_at)) or clock.size < BLOCKS:
            return None
        sent = np.searchsorted(sent_at, clock, side="right") - 1
        on = np.ones((clock.size, q.shape[1]), dtype=bool) if told.enabled is None else told.enabled[known][sent]
        position = np.column_stack([np.interp(clock, time, column) for column in q.T])
        command = np.column_stack([np.interp(clock, sent_at, column) for column in told.position[known].T])
        return cls(float(clock[1] - clock[0]), command, position, on, recording.joint_names)

    def moving(self) -> list[int]:
        """The joints that are commanded to move while they are on."""
        return [j for j, on in enumerate(self.on.T) if on.any() and np.ptp(self.command[on, j]) > STILL]

    def follow(
        self, response: Floats, command: Floats, on: Bools, lags_s: tuple[float, float] = USUAL_S, sign: float = 1.0
    ) -> tuple[float, Floats]:
        """Regress a response on a command some time before, both (K,), while the drive is on.

        Returns:
            The lag [s] that leaves least with a gain of this sign, and the share (B,) of the response that it leaves in
            blocks of time of equal motion; all of it where no lag has such a gain.
        """
        early, late = (min(round(s / self.step_s), len(on) // 4) for s in (-EARLY_S[0], LATE_S[1]))
        core = slice(late, len(on) - early)  # the same rows at all lags
        weight, u = on[core].astype(float), command - command[on].mean() if on.any() else command
        y = weight * (response[core] - response[core].mean(where=on[core])) if weight.any() else weight
        along, mean, square = (correlate(x, z, mode="valid")[::-1]
                               for x, z in ((u, y), (u, weight), (u**2, weight)))  # fmt: skip
        size = square - mean**2 / max(float(weight.sum()), 1.0)
        gains = along / np.maximum(size, STILL**2)
        lag = np.arange(-early, late + 1) * self.step_s
        explained = np.where((lag >= lags_s[0]) & (lag <= lags_s[1]) & (gains * sign > 0.0), gains * along, 0.0)
        best = int(np.argmax(explained))
        gain, rows = float(gains[best]) * bool(explained[best]), np.arange(len(on))[core]
        sent = u[rows - (best - early)]
        left = y - gain * weight * (sent - (weight @ sent) / max(float(weight.sum()), 1.0))
        power = np.cumsum(y**2) + 1e-300
        block = np.minimum(BLOCKS * power // power[-1], BLOCKS - 1).astype(int)  # each with as much of the motion
        return float(lag[best]), BLOCKS * np.bincount(block, left**2, BLOCKS) / power[-1] + RIDGE


def _check_enabled(seen: _Tracking) -> Iterator[Finding]:
    """A flag that says on where the joint hangs free."""
    for j, on in enumerate(seen.on.T):
        if on.all() or np.ptp(seen.command[:, j]) <= STILL:
            continue
        left = [seen.follow(seen.position[:, j], seen.command[:, j], flags)[1].mean() for flags in (on, ~on)]
        if left[1] < HALF**2 < left[0]:
            yield _finding("enabled", "enabled", "the joint follows its command while the drive is said to be off",
                           seen.names[j], unexplained_while_on=left[0], while_off=left[1])  # fmt: skip


def _check_ranges(seen: _Tracking) -> Iterator[Finding]:
    """Commands or joints that never move, copies, ranges that no drive makes of its command, many turns."""
    moving = seen.moving()
    if not moving and (np.ptp(seen.position, axis=0) > STILL).any():
        yield _finding("constant-command", "commands", "joints move although no command changes")
    if moving and np.allclose(seen.position[:, moving], seen.command[:, moving]):
        yield _finding("copied-command", "commands", "the commands are the measured positions")
    for j in sorted({*range(len(seen.names))} - {*moving}) if moving else ():
        yield _finding("constant-command", "commands", "the command never changes; little is known of its drive",
                       seen.names[j], "warning")  # fmt: skip
    for j in moving:
        on, name = seen.on[:, j], seen.names[j]
        sent, went = (float(np.ptp(x[on, j])) for x in (seen.command, seen.position))
        if went == 0.0:
            yield _finding("frozen", "q", "the position never changes although the command does", name,
                           commanded_range=sent)  # fmt: skip
        elif not OTHER_UNIT**-2 <= went / sent <= OTHER_UNIT:
            yield _finding("unit", "commands", f"the position moves by {went / sent:.3g} of what was commanded", name,
                           commanded_range=sent, measured_range=went)  # fmt: skip
        elif min(sent, went) > TURNS:
            yield _finding("unit", "q", "commands and positions span more than one and a half turns", name, "warning",
                           commanded_range=sent, measured_range=went)  # fmt: skip


def _check_following(seen: _Tracking) -> Iterator[Finding]:
    """What else than a drive that follows its own command explains the positions."""
    moving = seen.moving()
    own = {j: seen.follow(seen.position[:, j], seen.command[:, j], seen.on[:, j])[1] for j in moving}

    def is_better(rival: Floats, usual: Floats, tried: int) -> bool:
        p, left = compare(rival[:, None], usual[:, None], tried)
        return p < LEVEL and left < HALF

    for j in moving:
        q, u, on, name = seen.position[:, j], seen.command[:, j], seen.on[:, j], seen.names[j]
        if is_better(seen.follow(q, u, on, sign=-1.0)[1], own[j], len(moving)):
            yield _finding("flipped", "commands", "the joint moves against its command", name)
        elif is_better(seen.follow(np.gradient(q), u, on)[1], own[j], len(moving)):
            yield _finding("command-kind", "commands",
                           "the commands follow the velocity of the joint, not its position", name)  # fmt: skip
    pairs = list(combinations(moving, 2))
    for j, k in pairs:
        crossed = (seen.follow(seen.position[:, b], seen.command[:, a], seen.on[:, a])[1] for a, b in ((k, j), (j, k)))
        if all(is_better(left, own[b], len(pairs)) for left, b in zip(crossed, (j, k), strict=True)):
            yield _finding("swapped", "commands", f"the commands of {seen.names[j]} and {seen.names[k]} fit the "
                           "positions of each other", seen.names[j])  # fmt: skip
    for fault, where, severity, lags, says in (
        ("exchanged", "commands", "error", EARLY_S, "precede their commands by"),
        ("late-motion", "q", "warning", LATE_S, "follow their commands after"),
    ):
        found = [seen.follow(seen.position[:, j], seen.command[:, j], seen.on[:, j], lags) for j in moving]
        rival, before = (np.exp(np.mean([np.log(left) for left in all_left], axis=0)) if moving else np.ones(BLOCKS)
                         for all_left in ([left for _, left in found], [own[j] for j in moving]))  # fmt: skip
        if is_better(rival, before, 2):
            lag = abs(float(np.median([lag_s for lag_s, _ in found])))
            yield _finding(fault, where, f"the positions {says} {lag:.3g} s", None, cast("Severity", severity),
                           **{"lag [s]": lag})  # fmt: skip


def _check_stale(recording: Recording) -> Iterator[Finding]:
    """Rows that repeat the row before, while joints move both before and after."""
    q = recording.q[np.isfinite(recording.q).all(axis=1)]
    steps = np.abs(np.diff(q, axis=0))
    quantum = np.array([column[column > 0.0].min(initial=np.inf) for column in steps.T])
    moved = np.abs(q[2:] - q[:-2])
    before_and_after = np.minimum(moved[:-3], moved[3:])
    fast = (before_and_after > FAST * quantum).any(axis=1)
    repeated = (steps[2:-2] == 0.0).all(axis=1)
    if fast.sum() >= BLOCKS and (share := float(repeated[fast].mean())) > FEW:
        yield _finding("stale", "q", "rows repeat the row before while joints move", severity="warning", share=share)
