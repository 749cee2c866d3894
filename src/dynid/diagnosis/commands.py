"""Checks of commanded motions: do the positions follow these commands, as a robot under position control does?

Nothing is known of the robot here. A drive follows its command later, weaker and with an error, but in the same
direction, of the same joint, in the same unit, while it is on. Thresholds come from 27 real logs of a leg robot, a
servo bench, a low-cost arm and a slide, none of which may be accused: their
positions move by 0.10 to 1.0 of what was commanded, and follow best after 0 to 0.4 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.diagnosis.signals import FEW
from dynid.findings import Finding, Severity
from dynid.logs.recording import Commands, Recording

Mask = NDArray[np.bool_]
STEP_S = 0.01
"""Time between compared samples [s]; convention."""
LONGEST = 20_000
"""Most compared samples: longer logs are compared in larger steps; convention."""
MOVING = 1e-3
"""Range above which a command moves its joint [rad or m]; convention: below the steps of usual encoders."""
LOOK_S = 0.2
"""Reach of the comparison of earlier with later [s]; convention."""
EARLY = 0.02
"""Excess of the correlation with earlier over that with later positions from which they precede their commands. Real
logs: at most 0.006."""
LATE_S, LATEST_S, LATE = 0.5, 2.0, 0.05
"""Lag from which positions are late [s], the longest looked for [s], and what the correlation must gain by it. Real
logs: a gain of at most 0.02 beyond 0.5 s."""
REVERSED = -0.6
"""Correlation at and below which a joint moves against its command. Real logs: at least -0.2."""
SMALL, LARGE = 0.04, 3.0
"""Shares of the commanded range below and above which positions are in another unit. Real logs: 0.10 to 1.0."""
NEARER = 0.5
"""Share of its own distance below which each of two exchanged joints must come. Real logs: no pair."""
TURNS = 3.0 * np.pi
"""Positions beyond this are degrees or counts rather than radians [rad]; convention: one and a half turns."""
SUPPLY_V = (1.0, 100.0)
"""Supply voltages of servos and legs [V]; convention."""
FAST = 8.0
"""Steps of the encoder in two samples from which a joint moves fast; convention."""
FOLLOWS = 0.9
"""Correlation with the command, after the best lag, from which on a joint follows it. Real logs: 0.99 or more while the
drive is on, 0 while it is off."""


_REMEDIES = {
    "backward-time": "Sort the commands by their time, or give the right column of time.",
    "command-clock": "Give both the same clock: check unit and column of time of either file.",
    "command-kind": "Name commanded positions under [reference], velocities under [reference_velocity].",
    "constant-command": "Check the columns of [reference]; commands of torques or velocities do not belong there.",
    "copied-command": "Name the columns of what was sent to the drives under [reference].",
    "drive-setting": "Check the column and its unit; take the section out where the log does not hold it.",
    "exchanged": "Exchange [position] and [reference] in the channel map, or mend the clock of one of them.",
    "flipped": "Set sign = -1 for positions or commands of this joint in the channel map.",
    "frozen": "Check the encoder, its column, and whether the drive was on.",
    "inverted-enable": "Check what the column of [enabled] means: above zero is on.",
    "late-motion": "Check that both clocks start at the same instant; no drive is that late.",
    "never-enabled": "Record with the torque enabled, or check the column of [enabled].",
    "not-finite": "Handled: the command before counts until the next one. Commands at a lower rate belong into a file "
    "with a clock of its own.",
    "stale": "Packets were lost between robot and logger: record again, or drop the rows.",
    "swapped": "Put the columns of commands and positions into one order of joints.",
    "unit": "Give the unit of positions and of commands (rad, deg, or counts with a gear); or the joint was blocked.",
    "unusable": "Record it again.",
}
"""Fault -> what to do."""
_CODES = {
    "command-clock": "commands", "command-kind": "commands", "constant-command": "commands",
    "copied-command": "commands", "exchanged": "commands", "never-enabled": "drive-setting",
    "inverted-enable": "drive-setting", "late-motion": "delay", "stale": "repeated-samples",
}  # fmt: skip
"""Fault -> code of its finding, where that is not its own name."""


def _finding(
    fault: str,
    where: str,
    message: str,
    joint: str | None = None,
    *,
    severity: Severity = "error",
    evidence: dict[str, float] | None = None,
) -> Finding:
    numbers = {name: float(value) for name, value in (evidence or {}).items()}
    return Finding(
        code=_CODES.get(fault, fault),
        severity=severity,
        where=where,
        joint=joint,
        message=message,
        evidence=numbers,
        remedy=_REMEDIES[fault],
    )


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
        starts = {"commands from [s]": told.time[0], "positions from [s]": recording.time[0]}
        yield _finding(
            "command-clock", "commands", "commands and positions were not logged at the same time", evidence=starts
        )
        return
    inverted = [*_check_enabled(seen)]
    yield from inverted
    if inverted:  # every other check asks where the drives are on
        return
    first = [*_check_dead(seen), *_check_copy(seen), *_check_units(seen)]
    yield from first
    if any(finding.severity == "error" for finding in first):
        return
    for check in (_check_swapped, _check_reversed, _check_late):
        yield from check(seen)
    yield from _check_order(seen)
    yield from _check_stale(recording)


def _check_numbers(told: Commands, recording: Recording) -> Iterator[Finding]:
    """Check the numbers of the commands by themselves."""
    if told.time.size < 2 or recording.time.size < 2:
        yield _finding("unusable", "commands", "the log holds fewer than two samples")
        return
    if (np.isfinite(recording.q).all(axis=1) & np.isfinite(recording.time)).sum() < 2:
        yield _finding("unusable", "q", "fewer than two samples have the positions of all joints")
        return
    bad = ~np.isfinite(told.position).all(axis=1) | ~np.isfinite(told.time)
    if bad.any():
        severity: Severity = "error" if bad.mean() > 0.5 else "warning"
        share = {"share": float(bad.mean())}
        yield _finding("not-finite", "commands", "commanded positions are missing", severity=severity, evidence=share)
    if (np.diff(told.time[np.isfinite(told.time)]) < 0.0).any():
        yield _finding("backward-time", "commands", "the time of the commands runs backwards")


def _check_settings(told: Commands, names: tuple[str, ...]) -> Iterator[Finding]:
    """Check gains, supply and flags of the drives by themselves."""
    for gain in ("kp", "kd"):
        values = getattr(told, gain)
        for j in range(0 if values is None else len(names)):
            if not np.isfinite(values[:, j]).all() or (values[:, j] < 0.0).any() or not values[:, j].any():
                yield _finding("drive-setting", gain, f"{gain} is negative, missing or always zero", names[j])
    if told.supply is not None:
        level = float(np.nanmedian(told.supply)) if np.isfinite(told.supply).any() else np.nan
        if not SUPPLY_V[0] <= level <= SUPPLY_V[1]:
            yield _finding("drive-setting", "supply", f"a supply of {level:.4g} V drives no servo")
    if told.enabled is not None:
        for j in np.flatnonzero(~told.enabled.any(axis=0)).tolist():
            yield _finding("never-enabled", "enabled", "the drive is never on", names[j])


@dataclass(frozen=True, slots=True, eq=False)
class _Tracking:
    """Commands and positions on one clock."""

    step_s: float
    command: Floats
    """(K, n)"""
    position: Floats
    """(K, n)"""
    on: Mask
    """(K, n)"""
    names: tuple[str, ...]

    @classmethod
    def of(cls, recording: Recording, told: Commands) -> _Tracking | None:
        """None where they hardly overlap."""
        time, rows = recording.time, np.isfinite(recording.q).all(axis=1) & np.isfinite(recording.time)
        known = np.isfinite(told.position).all(axis=1) & np.isfinite(told.time)
        time, q = time[rows], recording.q[rows]
        start, stop = max(time[0], told.time[known][0]), min(time[-1], told.time[known][-1])
        lengths = (time[-1] - time[0], told.time[known][-1] - told.time[known][0])
        if stop - start < max(0.5 * min(lengths), 0.1 * max(lengths)):
            return None
        step = max(STEP_S, (stop - start) / LONGEST)
        clock = np.arange(start, stop, step)
        if clock.size < 4:
            return None
        sent = np.clip(np.searchsorted(told.time[known], clock, side="right") - 1, 0, int(known.sum()) - 1)
        on = np.ones((clock.size, q.shape[1]), dtype=bool) if told.enabled is None else told.enabled[known][sent]
        position = np.column_stack([np.interp(clock, time, column) for column in q.T])
        command = np.column_stack([np.interp(clock, told.time[known], column) for column in told.position[known].T])
        return cls(step, command, position, on, recording.joint_names)

    def moving(self) -> list[int]:
        """The joints that are commanded to move while they are on."""
        return [
            j
            for j in range(len(self.names))
            if self.on[:, j].sum() > 3 and _range(self.command[self.on[:, j], j]) > MOVING
        ]

    def correlation(self, j: int, k: int, lag: int) -> float:
        """Of the command of joint j with the position of joint k, `lag` steps later."""
        first, second = (slice(0, -lag), slice(lag, None)) if lag > 0 else (slice(-lag, None), slice(0, lag or None))
        both = self.on[first, j] & self.on[second, j]
        a, b = self.command[first, j][both], self.position[second, k][both]
        if a.size < 4 or _range(a) <= MOVING or _range(b) == 0.0:
            return 0.0
        a, b = a - a.mean(), b - b.mean()
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    def correlations(self, j: int, lags: range) -> Floats:
        return np.array([self.correlation(j, j, lag) for lag in lags])

    def distance(self, j: int, k: int) -> float:
        """Root mean square of the position of joint k from the command of joint j, while j is on."""
        on = self.on[:, j]
        return float(np.sqrt(np.mean((self.command[on, j] - self.position[on, k]) ** 2)))


def _range(x: Floats) -> float:
    return float(np.ptp(x)) if x.size else 0.0


def _check_dead(seen: _Tracking) -> Iterator[Finding]:
    """Commands that never change, and joints that never move."""
    moving = seen.moving()
    if not moving and any(_range(column) > 20.0 * MOVING for column in seen.position.T):
        yield _finding("constant-command", "commands", "joints move although no command changes")
    for j in moving:
        sent, went = _range(seen.command[seen.on[:, j], j]), _range(seen.position[seen.on[:, j], j])
        if went <= 1e-9 * sent:
            message = "the position never changes although the command does"
            yield _finding("frozen", "q", message, seen.names[j], evidence={"commanded range": sent})


def _check_copy(seen: _Tracking) -> Iterator[Finding]:
    """Commands that are the measured positions."""
    moving = seen.moving()
    if moving and all(seen.distance(j, j) < 1e-9 * max(_range(seen.command[:, j]), 1e-9) for j in moving):
        yield _finding("copied-command", "commands", "the commands are the measured positions")


def _check_units(seen: _Tracking) -> Iterator[Finding]:
    """Ranges that no drive makes of its command; positions of many turns."""
    for j in seen.moving():
        on, name = seen.on[:, j], seen.names[j]
        sent, went = _range(seen.command[on, j]), _range(seen.position[on, j])
        ranges = {"commanded range": sent, "measured range": went}
        if went > 1e-9 * sent and not SMALL <= went / sent <= LARGE:
            message = f"the position moves by {went / sent:.3g} of what was commanded"
            yield _finding("unit", "commands", message, name, evidence=ranges)
        elif min(sent, went) > TURNS:
            message = "commands and positions span more than one and a half turns"
            yield _finding("unit", "q", message, name, severity="warning", evidence=ranges)


def _check_enabled(seen: _Tracking) -> Iterator[Finding]:
    """A flag that says on where the joint hangs free."""
    for j in range(len(seen.names)):
        on = seen.on[:, j]
        if min(on.mean(), 1.0 - on.mean()) < 0.05 or _range(seen.command[:, j]) <= MOVING:
            continue
        lags = range(0, max(2, round(LATE_S / seen.step_s)))
        follows = [float(replace(seen, on=flags).correlations(j, lags).max()) for flags in (seen.on, ~seen.on)]
        if follows[0] < FOLLOWS < follows[1]:
            evidence = {"correlation while on": follows[0], "while off": follows[1]}
            message = "the joint follows its command while the drive is said to be off"
            yield _finding("inverted-enable", "enabled", message, seen.names[j], evidence=evidence)


def _check_stale(recording: Recording) -> Iterator[Finding]:
    """Rows that repeat the row before, while joints move both before and after."""
    q = recording.q[np.isfinite(recording.q).all(axis=1)]
    if len(q) < 20:
        return
    steps = np.abs(np.diff(q, axis=0))
    quantum = np.array([column[column > 0.0].min(initial=np.inf) for column in steps.T])
    before, after = np.abs(q[2:-3] - q[:-5]), np.abs(q[5:] - q[3:-2])
    fast = ((before > FAST * quantum) & (after > FAST * quantum)).any(axis=1)
    repeated = (q[3:-2] == q[2:-3]).all(axis=1)
    if fast.sum() >= 20 and (share := float(repeated[fast].mean())) > FEW:
        message = "rows repeat the row before while joints move"
        yield _finding("stale", "q", message, severity="warning", evidence={"share": share})


def _check_swapped(seen: _Tracking) -> Iterator[Finding]:
    """Pairs of joints, each of which follows the other's command."""
    moving = seen.moving()
    for place, j in enumerate(moving):
        for k in moving[place + 1 :]:
            own = (seen.distance(j, j), seen.distance(k, k))
            other = (seen.distance(j, k), seen.distance(k, j))
            if all(b < NEARER * a for a, b in zip(own, other, strict=True)):
                message = f"the commands of {seen.names[j]} and {seen.names[k]} fit the positions of each other"
                distances = {"distance": max(own), "distance exchanged": max(other)}
                yield _finding("swapped", "commands", message, seen.names[j], evidence=distances)


def _check_reversed(seen: _Tracking) -> Iterator[Finding]:
    """Joints that move against their command; commands that are velocities."""
    lags = range(0, max(2, round(LOOK_S / seen.step_s) + 1))
    for j in seen.moving():
        found = seen.correlations(j, lags)
        rate = replace(seen, position=np.gradient(seen.position, seen.step_s, axis=0)).correlations(j, lags).max()
        if rate > max(FOLLOWS, found.max() + 0.2):
            message = "the commands follow the velocity of the joint, not its position"
            yield _finding("command-kind", "commands", message, seen.names[j])
        elif found.min() <= REVERSED and found.max() < 0.2:
            evidence = {"correlation": float(found.min())}
            yield _finding(
                "flipped", "commands", "the joint moves against its command", seen.names[j], evidence=evidence
            )


def _check_order(seen: _Tracking) -> Iterator[Finding]:
    """Positions before their commands: the columns, or the clocks, are exchanged."""
    reach = max(2, round(LOOK_S / seen.step_s))
    excess = [
        float(seen.correlations(j, range(-reach, 0)).max() - seen.correlations(j, range(1, reach + 1)).max())
        for j in seen.moving()
    ]
    if not excess:
        return
    evidence = {"excess of correlation": float(np.median(excess))}
    if float(np.median(excess)) > EARLY:
        yield _finding("exchanged", "commands", "the positions precede their commands", evidence=evidence)


def _check_late(seen: _Tracking) -> Iterator[Finding]:
    """Positions that follow their commands much later than any drive does."""
    usual, longest = round(LATE_S / seen.step_s), round(min(LATEST_S / seen.step_s, len(seen.command) / 4))
    if usual < 1 or longest <= usual:
        return
    stride = max(1, longest // 100)
    lags, gains = [], []
    for j in seen.moving():
        early, late = range(0, usual, stride), range(usual, longest, stride)
        before, after = seen.correlations(j, early), seen.correlations(j, late)
        gains.append(float(after.max() - before.max()))
        lags.append(seen.step_s * late[int(after.argmax())])
    if gains and float(np.median(gains)) > LATE:
        lag = float(np.median(lags))
        evidence = {"lag [s]": lag, "gain of correlation": float(np.median(gains))}
        message = f"the positions follow their commands {lag:.3g} s later"
        yield _finding("late-motion", "q", message, severity="warning", evidence=evidence)
