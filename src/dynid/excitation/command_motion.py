"""Motions for logs without torque: stretches of commands, each of which shows something that the others hide.

Commands and encoders alone show a drive only where it deviates from its command. Levels that are reached from both
sides show dry friction beside gravity; ramps of several speeds show viscous friction; fast motion shows armature, delay
and gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.excitation.limits import MotionLimits
from dynid.files import write_atomically

REST_S = 2.0
"""Rest at the beginning and end, half as long at a level [s]; convention."""
LEVELS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Levels at which joints rest, as shares of the amplitude; convention."""
SPEEDS = (0.05, 0.2, 0.6)
"""Speeds of the ramps, as shares of the velocity limits; convention: an order of magnitude apart."""
FAST_S = 20.0
"""Length of the fast motion, twice the longest ramp [s]; convention: six periods of the usual lowest frequency."""
TONES = 8
"""Frequencies of a joint in the band; convention."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the motion."""

    name: str
    start_s: float
    stop_s: float
    shows: str
    """What it shows of the drives."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommandPlan:
    """Commands to send, and what each stretch of them shows."""

    joint_names: tuple[str, ...]
    time: Floats
    """(N,) [s]"""
    position: Floats
    """(N, n) commanded positions [rad or m]"""
    stretches: tuple[Stretch, ...]
    notes: tuple[str, ...] = ()
    """What is to be said about the whole."""

    def summary(self) -> str:
        """The stretches and the advice as text."""
        lines = [f"{self.time[-1]:.4g} s of commands for {len(self.joint_names)} joints"]
        lines += [f"{s.start_s:7.1f} to {s.stop_s:6.1f} s  {s.name}: {s.shows}" for s in self.stretches]
        return "\n".join([*lines, *self.notes, "", *self.advice()])

    def advice(self) -> tuple[str, ...]:
        """What the recording needs beside this motion."""
        return (
            "Log commands and measured positions with one clock, at this rate or faster.",
            "Repeat at half and at twice the gains: a single gain may show armature and gain scale together only.",
            "Repeat with two or three known loads: only they show friction that grows with the load.",
            "Back-EMF and viscous friction stay together: only a drive that is off for a moment shows friction alone.",
        )

    def contents(self) -> dict[str, Any]:
        """The stretches and the advice as plain data."""
        return {
            "joints": list(self.joint_names),
            "duration_s": float(self.time[-1]),
            "stretches": [asdict(stretch) for stretch in self.stretches],
            "notes": list(self.notes),
            "advice": list(self.advice()),
        }

    def write_csv(self, path: str | Path, *, force: bool = False) -> None:
        """Write time, commanded positions, one row per command."""
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
    motion, rest = _Commands(limits, rate_hz, amplitude), REST_S / 2
    motion.add("rest", "noise and steps of the encoders", [motion.hold(REST_S)])
    up_and_down = [*LEVELS, *reversed(LEVELS[:-1])]
    levels = [part for level in up_and_down for part in (motion.go(level), motion.hold(rest))]
    motion.add(
        "levels", "dry friction (each level is reached from both sides), gravity beside gains, encoder zeros", levels
    )
    ramps = [motion.ramp(sign, speed) for speed in SPEEDS for sign in (-1.0, 1.0)]
    motion.add("ramps", "viscous beside dry friction: the same way at three speeds", [*ramps, motion.go(0.0)])
    motion.add("fast", "armature, delay, gains and damping", [motion.shake(band_hz)])
    motion.add("rest", "the same position after all motion: drift of the zero", [motion.hold(REST_S)])
    return motion.plan()


class _Commands:
    """Puts stretches one behind the other."""

    def __init__(self, limits: MotionLimits, rate_hz: float, amplitude: float) -> None:
        self._limits, self._rate = limits, rate_hz
        self._middle = 0.5 * (limits.lower + limits.upper)
        self._reach = 0.5 * amplitude * (limits.upper - limits.lower)
        # a quarter of a second to the velocity limit where no acceleration limit is known
        self._acceleration = np.where(np.isfinite(limits.acceleration), limits.acceleration, 4.0 * limits.velocity)
        self._parts: list[Floats] = []
        self._stretches: list[Stretch] = []
        self._here = self._middle

    def plan(self) -> CommandPlan:
        position = np.concatenate(self._parts)
        return CommandPlan(
            joint_names=self._limits.joint_names,
            time=np.arange(len(position)) / self._rate,
            position=position,
            stretches=tuple(self._stretches),
        )

    def add(self, name: str, shows: str, parts: Sequence[Floats]) -> None:
        start = self._stretches[-1].stop_s if self._stretches else 0.0
        self._parts += parts
        self._stretches.append(Stretch(name, start, sum(map(len, self._parts)) / self._rate, shows))

    def hold(self, seconds: float) -> Floats:
        return np.repeat(self._here[None], max(1, round(seconds * self._rate)), axis=0)

    def ramp(self, sign: float, speed: float) -> Floats:
        """To the end of the range, or as far as a joint comes in half the time of the fast motion."""
        ways = np.maximum(2.0 * self._reach, np.finfo(float).eps)
        share = float(min(1.0, np.max(speed * self._limits.velocity * FAST_S / 2.0 / ways)))
        return self.go(sign * share, speed)

    def go(self, level: float, speed: float = 0.3) -> Floats:
        """All joints to a level, at the same time, by a constant speed that is reached and left evenly."""
        target = self._middle + level * self._reach
        way = target - self._here
        far = np.abs(way)
        least = float(np.max(far / self._acceleration))  # product of the times at constant speed and to reach it
        cruise = max(float(np.max(far / (speed * self._limits.velocity))), float(np.sqrt(least)))
        self._here = target
        if cruise == 0.0:
            return np.empty((0, way.size))
        rise = least / cruise
        total = cruise + rise
        count = int(np.ceil(total * self._rate))
        t = total * np.arange(1, count + 1) / count  # a whole number of commands, a little slower
        begun, ending = t**2 / (2.0 * rise), total - rise - (total - t) ** 2 / (2.0 * rise)
        passed = np.where(t < rise, begun, np.where(t > total - rise, ending, t - rise / 2.0))
        done = passed / (total - rise)
        return target - way + np.clip(done, 0.0, 1.0)[:, None] * way

    def shake(self, band_hz: tuple[float, float]) -> Floats:
        """A sum of sines in the band; every joint has frequencies of its own."""
        n, rate = self._middle.size, self._rate
        t = np.arange(round(FAST_S * rate)) / rate
        grid = np.geomspace(*band_hz, TONES * n).reshape(TONES, n)
        phase = 2.0 * np.pi * ((np.arange(TONES)[:, None] ** 2 / (2.0 * TONES) + np.arange(n) / n) % 1.0)
        tones = np.sin(2.0 * np.pi * grid * t[:, None, None] + phase) / grid
        fade = np.clip(np.minimum(t, t[-1] - t) / (REST_S / 4), 0.0, 1.0)
        wave = tones.sum(axis=1) * (fade * fade * (3.0 - 2.0 * fade))[:, None]
        fastest = rate * np.abs(np.diff(wave, axis=0)).max(axis=0)
        sharpest = rate**2 * np.abs(np.diff(wave, 2, axis=0)).max(axis=0)
        bounds = [self._reach, self._limits.velocity, self._acceleration]
        peaks = [np.abs(wave).max(axis=0), fastest, sharpest]
        return np.asarray(self._here + np.min(np.array(bounds) / np.array(peaks), axis=0) * wave)
