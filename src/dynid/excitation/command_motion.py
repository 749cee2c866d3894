"""Design commands for logs without torque, from which drives are identified.

Commands and encoders alone show a drive only by its deviation from the command. The commands have several stretches,
each of which shows what the others hide: levels that are reached from both sides separate dry friction from gravity;
ramps of several speeds show viscous friction; fast motion shows armature, delay and gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.excitation.limits import MotionLimits
from dynid.safe_files import write_atomically

REST_S = 2.0
"""Rest at the beginning and at the end, half as long at a level [s] (convention)."""
LEVELS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Levels at which joints rest, as shares of the amplitude (convention)."""
SPEEDS = (0.05, 0.2, 0.6)
"""Speeds of the ramps, as shares of the velocity limits (convention: an order of magnitude apart)."""
FAST_S = 20.0
"""Length of the fast motion, twice that of the longest ramp [s] (convention: six periods of the usual lowest
frequency)."""
TONES = 8
"""Number of frequencies of each joint in the fast motion (convention)."""


@dataclass(frozen=True, slots=True)
class CommandPhase:
    """A part of the commands with one purpose."""

    name: str
    """``rest``, ``levels``, ``ramps`` or ``fast``."""
    start_s: float
    """Time of its start [s]."""
    stop_s: float
    """Time of its end [s]."""
    shows: str
    """What it shows of the drives, as a phrase."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommandPlan:
    """Commands to send, and what each stretch of them shows."""

    joint_names: tuple[str, ...]
    """n names, in the order of the columns."""
    time: Floats
    """(N,) times of the commands [s]."""
    position: Floats
    """(N, n) commanded positions [rad or m]."""
    stretches: tuple[CommandPhase, ...]
    """Parts of the commands, in order of time."""
    notes: tuple[str, ...] = ()
    """Sentences about the whole, for people."""

    def summary(self) -> str:
        """Write the stretches and the advice as text."""
        lines = [f"{self.time[-1]:.4g} s of commands for {len(self.joint_names)} joints"]
        lines += [f"{s.start_s:7.1f} to {s.stop_s:6.1f} s  {s.name}: {s.shows}" for s in self.stretches]
        return "\n".join([*lines, *self.notes, "", *self.advice()])

    def advice(self) -> tuple[str, ...]:
        """Return sentences about the recording that no motion can replace."""
        return (
            "Log commands and measured positions with one clock, at this rate or faster.",
            "Repeat at half and at twice the gains: a single gain may show armature and gain scale together only.",
            "Repeat with two or three known loads: only they show friction that grows with the load.",
            "Back-EMF and viscous friction stay together: only a drive that is off for a moment shows friction alone.",
        )

    def contents(self) -> dict[str, Any]:
        """Return the stretches and the advice as plain data, for JSON."""
        return {
            "joints": list(self.joint_names),
            "duration_s": float(self.time[-1]),
            "stretches": [asdict(stretch) for stretch in self.stretches],
            "notes": list(self.notes),
            "advice": list(self.advice()),
        }

    def write_csv(self, path: str | Path, *, force: bool = False) -> None:
        """Write a CSV file with a header: time and commanded positions, one row per command."""
        header = ["time", *(f"{name}_command" for name in self.joint_names)]
        rows = [",".join(f"{value:.9g}" for value in row) for row in np.column_stack([self.time, self.position])]
        write_atomically(Path(path), "\n".join([",".join(header), *rows]) + "\n", force=force)


def design_commands(
    limits: MotionLimits,
    *,
    rate_hz: float = 100.0,
    amplitude: float = 0.5,
    band_hz: tuple[float, float] = (0.3, 5.0),
) -> CommandPlan:
    """Design commands for a first log without torque, within position, velocity and acceleration limits.

    No model of the drives is needed.

    Args:
        limits: The limits; walls, torques and collisions are not checked.
        rate_hz: Rate of the commands [Hz].
        amplitude: Share of the position ranges that is used, about their middle.
        band_hz: Lowest and highest frequency of the fast motion [Hz]; the highest should reach the bandwidth of the
            drives.

    Example:
        >>> limits = dynid.excitation.MotionLimits.from_robot(dynid.robots.ur10())
        >>> plan = dynid.excitation.design_commands(limits)
        >>> [stretch.name for stretch in plan.stretches][:3]
        ['rest', 'levels', 'ramps']
    """
    as_number("rate_hz", rate_hz, above=0.0)
    as_number("amplitude", amplitude, above=0.0, most=1.0)
    low, high = band_hz
    if not 0.0 < low < high <= 0.25 * rate_hz:
        raise ArgumentError(
            f"the band is {low:g} to {high:g} Hz at {rate_hz:g} commands a second",
            remedy="Give the lower frequency first, and at least four commands in the period of the higher one.",
        )
    if not (np.isfinite(limits.lower) & np.isfinite(limits.upper) & np.isfinite(limits.velocity)).all():
        raise ArgumentError("a joint has no position or velocity limit", remedy="Give all limits of the joints.")
    motion = _Commands(limits, rate_hz, amplitude)
    motion.add("rest", "noise and steps of the encoders", [motion.hold(REST_S)])
    up_and_down = [*LEVELS, *reversed(LEVELS[:-1])]
    levels = [part for level in up_and_down for part in (motion.go(level), motion.hold(REST_S / 2))]
    motion.add(
        "levels", "dry friction (each level is reached from both sides), gravity beside gains, encoder zeros", levels
    )
    ramps = [motion.ramp(sign, speed) for speed in SPEEDS for sign in (-1.0, 1.0)]
    motion.add("ramps", "viscous beside dry friction: the same way at three speeds", [*ramps, motion.go(0.0)])
    motion.add("fast", "armature, delay, gains and damping", [motion.shake(band_hz)])
    motion.add("rest", "the same position after all motion: drift of the zero", [motion.hold(REST_S)])
    return motion.plan()


class _Commands:
    """Makes moves, each from where the last one ended, and joins them to stretches.

    `hold`, `ramp`, `go` and `shake` return the positions (k, n) of one move; `add` appends moves as a stretch.
    """

    def __init__(self, limits: MotionLimits, rate_hz: float, amplitude: float) -> None:
        """Start in the middle of the position ranges, without moves."""
        self._limits = limits
        self._rate = rate_hz
        self._middle = 0.5 * (limits.lower + limits.upper)
        self._reach = 0.5 * amplitude * (limits.upper - limits.lower)
        # a quarter of a second to the velocity limit if no acceleration limit is known
        self._acceleration = np.where(np.isfinite(limits.acceleration), limits.acceleration, 4.0 * limits.velocity)
        self._parts: list[Floats] = []
        self._stretches: list[CommandPhase] = []
        self._here = self._middle  # (n,) position at the end of the last move

    def plan(self) -> CommandPlan:
        """Join all stretches to a plan."""
        position = np.concatenate(self._parts)
        return CommandPlan(
            joint_names=self._limits.joint_names,
            time=np.arange(len(position)) / self._rate,
            position=position,
            stretches=tuple(self._stretches),
        )

    def add(self, name: str, shows: str, parts: Sequence[Floats]) -> None:
        """Append moves as a stretch."""
        start = self._stretches[-1].stop_s if self._stretches else 0.0
        self._parts += parts
        self._stretches.append(CommandPhase(name, start, sum(map(len, self._parts)) / self._rate, shows))

    def hold(self, seconds: float) -> Floats:
        """Stay."""
        return np.repeat(self._here[None], max(1, round(seconds * self._rate)), axis=0)

    def ramp(self, sign: float, speed: float) -> Floats:
        """Go to the end of the range, or as far as a joint comes in half the time of the fast motion.

        Args:
            sign: -1 for the lower end of the range, 1 for the upper one.
            speed: Share of the velocity limits.
        """
        distances = np.maximum(2.0 * self._reach, np.finfo(float).eps)
        share = float(min(1.0, np.max(speed * self._limits.velocity * FAST_S / 2.0 / distances)))
        return self.go(sign * share, speed)

    def go(self, level: float, speed: float = 0.3) -> Floats:
        """Move all joints to a level in the same time: constant acceleration, constant speed, constant deceleration.

        Args:
            level: Target as a share of the amplitude.
            speed: Share of the velocity limits.
        """
        target = self._middle + level * self._reach
        way = target - self._here
        distance = np.abs(way)
        # distance / speed is `cruise`, speed / acceleration is `rise`, so their product is distance / acceleration
        product = float(np.max(distance / self._acceleration))
        cruise = max(float(np.max(distance / (speed * self._limits.velocity))), float(np.sqrt(product)))
        self._here = target
        if cruise == 0.0:
            return np.empty((0, way.size))
        rise = product / cruise
        total = cruise + rise
        count = int(np.ceil(total * self._rate))
        t = total * np.arange(1, count + 1) / count  # a whole number of commands, so a little slower
        # way passed, over the constant speed
        accelerating = t**2 / (2.0 * rise)
        braking = total - rise - (total - t) ** 2 / (2.0 * rise)
        passed = np.where(t < rise, accelerating, np.where(t > total - rise, braking, t - rise / 2.0))
        share = passed / (total - rise)
        return target - way + np.clip(share, 0.0, 1.0)[:, None] * way

    def shake(self, band_hz: tuple[float, float]) -> Floats:
        """Move by sums of sines in the band, as large as the limits allow; each joint has its own frequencies."""
        n = self._middle.size
        rate = self._rate
        t = np.arange(round(FAST_S * rate)) / rate
        frequencies = np.geomspace(*band_hz, TONES * n).reshape(TONES, n)
        # quadratic in the number of the tone (Schroeder): the peaks of the tones do not add up
        phase = 2.0 * np.pi * ((np.arange(TONES)[:, None] ** 2 / (2.0 * TONES) + np.arange(n) / n) % 1.0)
        tones = np.sin(2.0 * np.pi * frequencies * t[:, None, None] + phase) / frequencies
        fade = np.clip(np.minimum(t, t[-1] - t) / (REST_S / 4), 0.0, 1.0)
        wave = tones.sum(axis=1) * (fade * fade * (3.0 - 2.0 * fade))[:, None]
        peaks = [
            np.abs(wave).max(axis=0),
            rate * np.abs(np.diff(wave, axis=0)).max(axis=0),
            rate**2 * np.abs(np.diff(wave, 2, axis=0)).max(axis=0),
        ]
        bounds = [self._reach, self._limits.velocity, self._acceleration]
        return np.asarray(self._here + np.min(np.array(bounds) / np.array(peaks), axis=0) * wave)
