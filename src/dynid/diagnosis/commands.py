"""Checks of commanded positions: do the joints follow the commands that the log holds, as under position control?

No model of the robot is needed. The position q of a joint with a position controller follows its command u as

    q(t) = a + g u(t - lag),   gain g > 0,   0 <= lag <= 0.5 s.

This regression is compared with others: gain of the opposite sign, command of another joint, velocity in place of
position, lag beyond these limits. Such a rival is reported if it leaves at most half of the residual, by more than
chance between blocks of time (`dynid.diagnosis.verdicts.compare`).

`check_commands` is called by `dynid.diagnosis.log_check` and by the identification of drives, with a raw recording.
Every check yields findings. Shapes: N samples, n joints, K samples of the common clock, B blocks of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
"""Period of the common clock [s], and its largest number of samples (convention: longer logs have a longer period)."""
EARLY_S, USUAL_S, LATE_S = (-0.5, 0.0), (0.0, 0.5), (0.5, 2.0)
"""Smallest and largest lag of a position behind its command [s]: too early, usual for a drive, too late (effect)."""
TURNS = 3.0 * np.pi
"""Ranges of positions beyond this are degrees or counts rather than radians [rad] (effect: one and a half turns)."""
SUPPLY_V = (1.0, 100.0)
"""Supply voltages of servos and legs [V] (effect)."""
FAST = 8.0
"""A joint surely moves if it passes this many steps of its encoder in two samples (effect)."""

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
"""Fault -> code of its finding (empty: the fault's own name), and the remedy."""


def _finding(
    fault: str, where: str, message: str, joint: str | None = None, severity: Severity = "error", **evidence: float
) -> Finding:
    """Make the finding of a fault in `_FAULTS`; the underscores of names of evidence become spaces."""
    code, remedy = _FAULTS[fault]
    numbers = {name.replace("_", " "): float(x) for name, x in evidence.items()}
    return Finding(code or fault, severity, where, message, remedy, joint=joint, evidence=numbers)


def check_commands(recording: Recording) -> Iterator[Finding]:
    """Check the commands of a recording against its positions.

    A check that finds an error ends the list, since that error explains whatever later checks would find.
    """
    commands = recording.commands
    if commands is None or recording.isolated:  # isolated samples are no motion
        return
    broken = [*_check_numbers(commands, recording), *_check_settings(commands, recording.joint_names)]
    yield from broken
    if any(finding.severity == "error" for finding in broken):
        return
    tracking = _Tracking.of(recording, commands)
    if tracking is None:
        yield _finding("command-clock", "commands", "commands and positions were not logged at the same time",
                       **{"commands from [s]": commands.time[0], "positions from [s]": recording.time[0]})  # fmt: skip
        return
    for check in (_check_enabled, _check_ranges, _check_following):
        found = [*check(tracking)]
        yield from found
        if any(finding.severity == "error" for finding in found):
            return
    yield from _check_stale(recording)


def _check_numbers(commands: Commands, recording: Recording) -> Iterator[Finding]:
    """Check that commands are there, are finite, and have a clock that runs forwards."""
    known = np.isfinite(recording.q).all(axis=1) & np.isfinite(recording.time)
    if min(commands.time.size, int(known.sum())) < 2:
        yield _finding("unusable", "commands", "the log holds fewer than two commands, or positions of all joints")
        return
    bad = ~np.isfinite(commands.position).all(axis=1) | ~np.isfinite(commands.time)
    if bad.any():
        yield _finding("not-finite", "commands", "commanded positions are missing",
                       severity="error" if bad.mean() > HALF else "warning", share=bad.mean())  # fmt: skip
    if (np.diff(commands.time[np.isfinite(commands.time)]) < 0.0).any():
        yield _finding("backward-time", "commands", "the time of the commands runs backwards")


def _check_settings(commands: Commands, names: tuple[str, ...]) -> Iterator[Finding]:
    """Check logged controller gains, supply voltage and on-flags of the drives."""
    for gain in ("kp", "kd"):
        values = cast("Floats | None", getattr(commands, gain))
        for name, column in zip(names, () if values is None else values.T, strict=values is not None):
            if not (column >= 0.0).all() or not column.any():
                yield _finding("drive-setting", gain, f"{gain} is negative, missing or always zero", name)
    if commands.supply is not None:
        volts = commands.supply[np.isfinite(commands.supply)]
        level = float(np.median(volts)) if volts.size else np.nan
        if not SUPPLY_V[0] <= level <= SUPPLY_V[1]:
            yield _finding("drive-setting", "supply", f"a supply of {level:.4g} V drives no servo")
    for j in [] if commands.enabled is None else np.flatnonzero(~commands.enabled.any(axis=0)).tolist():
        yield _finding("enabled", "enabled", "the drive is never on", names[j])


@dataclass(frozen=True, slots=True, eq=False)
class _Tracking:
    """Commands and positions, interpolated to a common clock of K samples."""

    step_s: float
    """Period of the clock [s]."""
    command: Floats
    """(K, n) [rad or m]"""
    position: Floats
    """(K, n) [rad or m]"""
    on: Bools
    """(K, n) whether the drive is on."""
    names: tuple[str, ...]
    """Names of the n joints."""

    @classmethod
    def of(cls, recording: Recording, commands: Commands) -> _Tracking | None:
        """Interpolate a recording; None where commands and positions overlap by less than half of the shorter one."""
        rows = np.isfinite(recording.q).all(axis=1) & np.isfinite(recording.time)
        known = np.isfinite(commands.position).all(axis=1) & np.isfinite(commands.time)
        time, q, sent_at = recording.time[rows], recording.q[rows], commands.time[known]
        start, stop = max(time[0], sent_at[0]), min(time[-1], sent_at[-1])
        clock = np.arange(start, stop, max(STEP_S, (stop - start) / LONGEST))
        if stop - start < HALF * min(np.ptp(time), np.ptp(sent_at)) or clock.size < BLOCKS:
            return None
        sent = np.searchsorted(sent_at, clock, side="right") - 1  # the last command before each instant
        on = np.ones((clock.size, q.shape[1]), dtype=bool)
        if commands.enabled is not None:
            on = commands.enabled[known][sent]
        position = np.column_stack([np.interp(clock, time, column) for column in q.T])
        command = np.column_stack([np.interp(clock, sent_at, column) for column in commands.position[known].T])
        return cls(float(clock[1] - clock[0]), command, position, on, recording.joint_names)

    def moving(self) -> list[int]:
        """Indices of the joints that are commanded to move while they are on."""
        return [j for j, on in enumerate(self.on.T) if on.any() and np.ptp(self.command[on, j]) > STILL]

    def follow(self, j: int, k: int, lags_s: tuple[float, float] = USUAL_S) -> tuple[float, Floats]:
        """Regress the position of joint k on the delayed command of joint j, while the drive of k is on.

        Returns:
            The lag [s] with the smallest residual, of those between the two given ones; and (B,) the squared residual
            in blocks of time with equal motion, over the squared position. It is 1 where no lag has a positive gain.
        """
        on, q, u = self.on[:, k], self.position[:, k], self.command[:, j]
        # the largest lags in samples; `core` are the samples that have a command at every lag
        early, late = (min(round(s / self.step_s), len(on) // 4) for s in (-EARLY_S[0], LATE_S[1]))
        core = slice(late, len(on) - early)
        weight = on[core].astype(float)
        u = u - u[on].mean() if on.any() else u
        y = weight * (q[core] - q[core].mean(where=on[core])) if weight.any() else weight
        # regression at every lag at once: its sums of u y, u and u^2 over the samples are cross-correlations
        along, mean, square = (correlate(x, z, mode="valid")[::-1]
                               for x, z in ((u, y), (u, weight), (u**2, weight)))  # fmt: skip
        size = square - mean**2 / max(float(weight.sum()), 1.0)  # squares of the command about its mean
        gains = along / np.maximum(size, STILL**2)
        lag = np.arange(-early, late + 1) * self.step_s
        explained = np.where((lag >= lags_s[0]) & (lag <= lags_s[1]) & (gains > 0.0), gains * along, 0.0)
        best = int(np.argmax(explained))
        gain = float(gains[best]) * bool(explained[best])
        sent = u[np.arange(len(on))[core] - (best - early)]  # the command at the best lag
        left = y - gain * weight * (sent - (weight @ sent) / max(float(weight.sum()), 1.0))
        power = np.cumsum(y**2) + 1e-300
        block = np.minimum(BLOCKS * power // power[-1], BLOCKS - 1).astype(int)  # each with as much of the motion
        return float(lag[best]), np.maximum(BLOCKS * np.bincount(block, left**2, BLOCKS) / power[-1], RIDGE)


def _check_enabled(tracking: _Tracking) -> Iterator[Finding]:
    """Report flags with the opposite meaning: the joint follows its command where they say off, and not where on."""
    off = replace(tracking, on=~tracking.on)
    for j, on in enumerate(tracking.on.T):
        if on.all() or np.ptp(tracking.command[:, j]) <= STILL:
            continue
        left = [flags.follow(j, j)[1].mean() for flags in (tracking, off)]
        if left[1] < HALF**2 < left[0]:  # squared residual, so half of the rms
            yield _finding("enabled", "enabled", "the joint follows its command while the drive is said to be off",
                           tracking.names[j], unexplained_while_on=left[0], while_off=left[1])  # fmt: skip


def _check_ranges(tracking: _Tracking) -> Iterator[Finding]:
    """Report constant or copied commands, frozen joints, and ranges of motion that suggest another unit."""
    moving = tracking.moving()
    if not moving and (np.ptp(tracking.position, axis=0) > STILL).any():
        yield _finding("constant-command", "commands", "joints move although no command changes")
    if moving and np.allclose(tracking.position[:, moving], tracking.command[:, moving]):
        yield _finding("copied-command", "commands", "the commands are the measured positions")
    for j in sorted({*range(len(tracking.names))} - {*moving}) if moving else ():
        yield _finding("constant-command", "commands", "the command never changes; little is known of its drive",
                       tracking.names[j], "warning")  # fmt: skip
    for j in moving:
        on, name = tracking.on[:, j], tracking.names[j]
        sent, went = (float(np.ptp(x[on, j])) for x in (tracking.command, tracking.position))  # ranges
        if went == 0.0:
            yield _finding("frozen", "q", "the position never changes although the command does", name,
                           commanded_range=sent)  # fmt: skip
        elif not OTHER_UNIT**-2 <= went / sent <= OTHER_UNIT:  # a weak drive moves less than commanded, never more
            yield _finding("unit", "commands", f"the position moves by {went / sent:.3g} of what was commanded", name,
                           commanded_range=sent, measured_range=went)  # fmt: skip
        elif min(sent, went) > TURNS:
            yield _finding("unit", "q", "commands and positions span more than one and a half turns", name, "warning",
                           commanded_range=sent, measured_range=went)  # fmt: skip


def _check_following(tracking: _Tracking) -> Iterator[Finding]:
    """Report commands for which another regression explains the positions better than the usual one."""
    moving, names = tracking.moving(), tracking.names
    own = {j: tracking.follow(j, j)[1] for j in moving}
    against = replace(tracking, command=-tracking.command)
    speeds = replace(tracking, position=np.gradient(tracking.position, axis=0))

    def is_better(rival: Floats, usual: Floats, tried: int) -> bool:
        """Whether one of so many rivals leaves significantly less, and at most half, of the rms residual."""
        p, left = compare(rival[:, None], usual[:, None], tried)
        return p < LEVEL and left < HALF

    for j in moving:
        if is_better(against.follow(j, j)[1], own[j], len(moving)):
            yield _finding("flipped", "commands", "the joint moves against its command", names[j])
        elif is_better(speeds.follow(j, j)[1], own[j], len(moving)):
            yield _finding("command-kind", "commands",
                           "the commands follow the velocity of the joint, not its position", names[j])  # fmt: skip
    pairs = list(combinations(moving, 2))
    for j, k in pairs:
        if all(is_better(tracking.follow(a, b)[1], own[b], len(pairs)) for a, b in ((k, j), (j, k))):
            yield _finding("swapped", "commands", f"the commands of {names[j]} and {names[k]} fit the positions of "
                           "each other", names[j])  # fmt: skip
    if not moving:
        return
    usual = np.exp(np.mean([np.log(own[j]) for j in moving], axis=0))  # (B,) geometric mean over joints
    for fault, where, severity, lags, says in (
        ("exchanged", "commands", "error", EARLY_S, "precede their commands by"),
        ("late-motion", "q", "warning", LATE_S, "follow their commands after"),
    ):
        found = [tracking.follow(j, j, lags) for j in moving]
        if is_better(np.exp(np.mean([np.log(left) for _, left in found], axis=0)), usual, 2):
            lag = abs(float(np.median([lag_s for lag_s, _ in found])))
            yield _finding(fault, where, f"the positions {says} {lag:.3g} s", None, cast("Severity", severity),
                           **{"lag [s]": lag})  # fmt: skip


def _check_stale(recording: Recording) -> Iterator[Finding]:
    """Report rows that repeat the positions of the row before, while joints move both before and after."""
    q = recording.q[np.isfinite(recording.q).all(axis=1)]
    steps = np.abs(np.diff(q, axis=0))
    quantum = np.array([column[column > 0.0].min(initial=np.inf) for column in steps.T])  # (n,) step of each encoder
    moved = np.abs(q[2:] - q[:-2])
    before_and_after = np.minimum(moved[:-3], moved[3:])  # in the two steps before a step and the two after it
    fast = (before_and_after > FAST * quantum).any(axis=1)
    repeated = (steps[2:-2] == 0.0).all(axis=1)
    if fast.sum() >= BLOCKS and (share := float(repeated[fast].mean())) > FEW:
        yield _finding("stale", "q", "rows repeat the row before while joints move", severity="warning", share=share)
