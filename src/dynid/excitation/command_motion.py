"""Motions for logs without torque: stretches of commands, each of which shows something that the others hide.

Commands and encoders alone show a drive only where it deviates from its command. Levels that are reached from both
sides show dry friction beside gravity; ramps of several speeds show viscous friction; fast motion shows armature, delay
and gains; a drive that is off shows friction without its back-EMF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.checks import check_number
from dynid.errors import ArgumentError
from dynid.excitation.limits import MotionLimits
from dynid.files import write_atomically

REST_S = 2.0
"""Rest at the beginning and end [s]; convention."""
LEVELS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Levels at which joints rest, as shares of the amplitude; convention."""
SPEEDS = (0.05, 0.2, 0.6)
"""Speeds of the ramps, as shares of the velocity limits; convention: an order of magnitude apart."""
RAMP_S = 10.0
"""Longest ramp at constant speed [s]; convention."""
STEP_SPEED = 0.3
"""Speed between levels, as a share of the velocity limits; convention."""
TONES = 8
"""Frequencies of a joint in the band; convention."""
FAST_S = 20.0
"""Length of the fast motion [s]; convention: six periods of the usual lowest frequency."""
FADE_S = 0.5
"""Time in which the fast motion begins and ends [s]; convention."""
RISE_S = 0.25
"""Time to the velocity limit where no acceleration limit is known [s]; convention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """Settings of a motion for logs without torque."""

    band_hz: tuple[float, float] = (0.3, 5.0)
    """Lowest and highest frequency of the fast motion [Hz]; the highest should reach the bandwidth of the drives."""
    amplitude: float = 0.5
    """Share of the position ranges that is used, about their middle."""
    hold_s: float = 1.0
    """Rest at every level [s]."""
    torque_off_s: float = 0.0
    """Time for which the drives are off, once below and once above the middle [s]; 0 for never."""
    rate_hz: float = 100.0
    """Rate of the commands [Hz]."""

    def __post_init__(self) -> None:
        """Refuse numbers that no motion has."""
        check_number("amplitude", self.amplitude, "a share above 0, at most 1", 1.0)
        check_number("hold_s", self.hold_s, "a time above zero [s]")
        check_number("torque_off_s", self.torque_off_s, "a time from zero up [s]", zero=True)
        check_number("rate_hz", self.rate_hz, "a rate above zero [Hz]")
        low, high = self.band_hz
        if not 0.0 < low < high <= 0.25 * self.rate_hz:
            raise ArgumentError(
                f"the band is {low:g} to {high:g} Hz at {self.rate_hz:g} commands a second",
                remedy="Give the lower frequency first, and at least four commands in the period of the higher one.",
            )


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
    enabled: NDArray[np.bool_]
    """(N, n) whether the drives are on"""
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
        off = (
            "The drives stay on, which leaves back-EMF and viscous friction together: --set torque_off_s=1 switches "
            "them off for a second, where the joints may fall.",
        )
        return (
            "Log commands and measured positions with one clock, at this rate or faster.",
            "Repeat at half and at twice the gains: a single gain may show armature and gain scale together only.",
            "Repeat with two or three known loads: only they show friction that grows with the load.",
            *(off if self.enabled.all() else ()),
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
        """Write time, commanded positions and, where drives go off, their flags, one row per command."""
        flags = [] if self.enabled.all() else [f"{name}_enabled" for name in self.joint_names]
        header = ["time", *(f"{name}_command" for name in self.joint_names), *flags]
        columns = [self.time[:, None], self.position, *([self.enabled.astype(float)] if flags else [])]
        rows = [",".join(f"{value:.9g}" for value in row) for row in np.concatenate(columns, axis=1)]
        write_atomically(Path(path), "\n".join([",".join(header), *rows]) + "\n", force=force)


def design_commands(limits: MotionLimits, settings: CommandSettings | None = None) -> CommandPlan:
    """Design commands for a first log without torque, within position, velocity and acceleration limits.

    No model of the drives is needed. With one, `dynid.actuators.refine_commands` chooses commands that reveal its
    parameters best.

    Args:
        limits: The limits; walls, torques and collisions are not checked.
        settings: Band, amplitude and rests.

    Example:
        >>> limits = dynid.excitation.MotionLimits.from_robot(dynid.robots.ur10())
        >>> plan = dynid.excitation.design_commands(limits)
        >>> [stretch.name for stretch in plan.stretches][:3]
        ['rest', 'levels', 'ramps']
    """
    return _Plan(limits, settings or CommandSettings()).made()


class _Plan:
    """Puts stretches one behind the other."""

    def __init__(self, limits: MotionLimits, settings: CommandSettings) -> None:
        if not (np.isfinite(limits.lower) & np.isfinite(limits.upper) & np.isfinite(limits.velocity)).all():
            raise ArgumentError("a joint has no position or velocity limit", remedy="Give all limits of the joints.")
        self._limits, self._settings = limits, settings
        self._middle = 0.5 * (limits.lower + limits.upper)
        self._reach = 0.5 * settings.amplitude * (limits.upper - limits.lower)
        self._acceleration = np.where(np.isfinite(limits.acceleration), limits.acceleration, limits.velocity / RISE_S)
        self._parts: list[Floats] = []
        self._off: list[bool] = []
        self._stretches: list[Stretch] = []
        self._here = self._middle

    def made(self) -> CommandPlan:
        s = self._settings
        self._stretch("rest", "noise and steps of the encoders", [self._hold(REST_S)])
        up_and_down = [*LEVELS, *reversed(LEVELS[:-1])]
        levels = [part for level in up_and_down for part in (self._go(level, STEP_SPEED), self._hold(s.hold_s))]
        shown = "dry friction (each level is reached from both sides), gravity beside gains, encoder zeros"
        self._stretch("levels", shown, levels)
        ramps = [self._go(level * self._share(speed), speed) for speed in SPEEDS for level in (-1.0, 1.0)]
        shown = "viscous beside dry friction: the same way at three speeds"
        self._stretch("ramps", shown, [*ramps, self._go(0.0, STEP_SPEED)])
        self._stretch("fast", "armature, delay, gains and damping", [self._fast()])
        if s.torque_off_s > 0.0:
            self._switch_off()
        self._stretch("rest", "the same position after all motion: drift of the zero", [self._hold(REST_S)])
        position = np.concatenate(self._parts)
        on = ~np.array(self._off)
        return CommandPlan(
            joint_names=self._limits.joint_names,
            time=np.arange(len(position)) / s.rate_hz,
            position=position,
            enabled=np.repeat(on[:, None], position.shape[1], axis=1),
            stretches=tuple(stretch for stretch in self._stretches if stretch.shows),
        )

    def _switch_off(self) -> None:
        """Drives off and on again, below and above the middle."""
        s = self._settings
        for level in (-0.5, 0.5):
            self._stretch("reach", "", [self._go(level, STEP_SPEED), self._hold(s.hold_s)])
            shown = "friction without back-EMF, and the inertia that swings"
            self._stretch("torque off", shown, [self._hold(s.torque_off_s)], off=True)
            shown = "the drive takes over where the joint fell: switch on with low gains"
            self._stretch("catch", shown, [self._hold(2.0 * s.hold_s)])
        self._stretch("back", "", [self._go(0.0, STEP_SPEED)])

    def _stretch(self, name: str, shows: str, parts: Sequence[Floats], *, off: bool = False) -> None:
        start = len(self._off)
        for part in parts:
            self._parts.append(part)
            self._off += [off] * len(part)
        rate = self._settings.rate_hz
        self._stretches.append(Stretch(name, start / rate, len(self._off) / rate, shows))

    def _hold(self, seconds: float) -> Floats:
        return np.repeat(self._here[None], max(1, round(seconds * self._settings.rate_hz)), axis=0)

    def _share(self, speed: float) -> float:
        """Share of the amplitude that a ramp of a speed passes in `RAMP_S`; at most all of it."""
        ways = np.maximum(2.0 * self._reach, 1e-12)
        return float(min(1.0, np.max(speed * self._limits.velocity * RAMP_S / ways)))

    def _go(self, level: float, speed: float) -> Floats:
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
        count = int(np.ceil(total * self._settings.rate_hz))
        t = total * np.arange(1, count + 1) / count  # a whole number of commands, a little slower
        begun, ending = t**2 / (2.0 * rise), total - rise - (total - t) ** 2 / (2.0 * rise)
        passed = np.where(t < rise, begun, np.where(t > total - rise, ending, t - rise / 2.0))
        done = passed / (total - rise)
        return target - way + np.clip(done, 0.0, 1.0)[:, None] * way

    def _fast(self) -> Floats:
        """A sum of sines in the band; every joint has frequencies of its own."""
        low, high = self._settings.band_hz
        n = self._middle.size
        count = round(FAST_S * self._settings.rate_hz)
        t = np.arange(count) / self._settings.rate_hz
        grid = np.geomspace(low, high, TONES * n).reshape(TONES, n)
        phase = 2.0 * np.pi * ((np.arange(TONES)[:, None] ** 2 / (2.0 * TONES) + np.arange(n) / n) % 1.0)
        tones = np.sin(2.0 * np.pi * grid * t[:, None, None] + phase) / grid
        fade = np.clip(np.minimum(t, t[-1] - t) / FADE_S, 0.0, 1.0)
        wave = tones.sum(axis=1) * (fade * fade * (3.0 - 2.0 * fade))[:, None]
        rate = self._settings.rate_hz
        fastest = rate * np.abs(np.diff(wave, axis=0)).max(axis=0)
        sharpest = rate**2 * np.abs(np.diff(wave, 2, axis=0)).max(axis=0)
        sizes = (
            self._reach / np.abs(wave).max(axis=0), self._limits.velocity / fastest, self._acceleration / sharpest
        )  # fmt: skip
        return np.asarray(self._here + np.minimum.reduce(sizes) * wave)
