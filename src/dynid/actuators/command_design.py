"""Commands that reveal the parameters of servos: the best of many random sums of sines, ramps and holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.actuators.motion import CommandedMotion
from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_knowledge import OpenDirection, entry_sizes, find_open_directions
from dynid.actuators.servo_model import ServoModel
from dynid.actuators.servo_simulator import simulate_servos
from dynid.arrays import Floats
from dynid.checks import as_number, as_whole
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, EstimationError

SHARE = 0.8
"""Share of a joint's range that commands use. Convention."""
FREQUENCIES_HZ = (0.1, 2.0)
"""Lowest and highest frequency of the sines [Hz]. Convention: what servos of a few N m follow."""
FLOOR = 1e-14
"""Eigenvalue, relative to the largest, that counts for one that is zero. Convention: below it lies rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class CommandDesign:
    """Designed commands and what they will tell."""

    motion: CommandedMotion
    """The commands; its positions are those that the model's first guess would give."""
    open_directions: tuple[OpenDirection, ...]
    """What even these commands cannot tell."""
    gain: float
    """Mean information over all candidates in the best one, as a factor of the parameters' variances."""


def refine_commands(
    model: ServoModel, *, duration_s: float = 20.0, rate_hz: float = 100.0, candidates: int = 32, seed: int = 0
) -> CommandDesign:
    """Choose commands under which the parameters of a model can be found best.

    They need a model with rough values, such as that of a first recording; `dynid.excitation.design_commands` needs the
    limits of the robot only. ``dynid excite --commands`` gives those, with ``--set law=FILE`` these.

    Each candidate mixes sums of sines, ramps, and moves with holds, within the joints' limits of position and velocity.
    Accelerations, torques and collisions are not checked. The best has the largest determinant of the information at
    the model's first guess.

    Args:
        model: The robot and its servos, with rough values as first guess.
        duration_s: Length of the motion [s].
        rate_hz: Rate of the commands [Hz].
        candidates: Number of candidates.
        seed: Seed of the candidates; equal seeds give equal commands.

    Raises:
        ArgumentError: A joint has no limit of position or velocity.
        EstimationError: No candidate can be simulated.

    Example:
        >>> design = dynid.actuators.refine_commands(servo, duration_s=4.0, candidates=4)
        >>> design.motion.command.shape, design.open_directions
        ((401, 1), ())
    """
    as_number("duration_s", duration_s, above=0.0)
    as_number("rate_hz", rate_hz, above=0.0)
    if not model.entries:
        raise ArgumentError("nothing of the model is free", remedy="Name the parameters that are to be found.")
    _check_limits(model)
    rng = np.random.default_rng(seed)
    time = np.arange(round(duration_s * rate_hz) + 1) / rate_hz
    found: list[tuple[float, CommandedMotion, Floats]] = []
    for _ in range(as_whole("candidates", candidates, least=1)):
        motion = _candidate(model, time, rng)
        try:
            information = ServoEquations(model, (motion,)).normal(model.start).information
        except EstimationError:
            continue
        found.append((_criterion(model, information), motion, information))
    if not found:
        raise EstimationError("no candidate can be simulated", remedy="Give the model other first guesses.")
    best = max(found, key=lambda item: item[0])
    mean = float(np.mean([item[0] for item in found]))
    return CommandDesign(
        motion=replace(best[1], position=simulate_servos(model, model.start, best[1])),
        open_directions=find_open_directions(model.entries, model.start, best[2]),
        gain=float(np.exp((best[0] - mean) / len(model.entries))),
    )


def _criterion(model: ServoModel, information: Floats) -> float:
    """Logarithm of the determinant of the information, each parameter in units of its size."""
    size = entry_sizes(model.entries, model.start)
    values = eigvalsh(information * np.outer(size, size))
    return float(np.sum(np.log(np.maximum(values, FLOOR * max(float(values[-1]), 1e-300)))))


def _candidate(model: ServoModel, time: Floats, rng: np.random.Generator) -> CommandedMotion:
    """Random commands of all joints."""
    columns = []
    for joint in model.robot.moving_joints:
        low, high, limit = joint.limits.lower, joint.limits.upper, joint.limits.velocity
        shape = rng.choice(["sines", "ramps", "holds"], p=[0.4, 0.3, 0.3])
        wave = {"sines": _sines, "ramps": _ramps, "holds": _holds}[str(shape)](time, rng)
        wave *= rng.uniform(0.4, 1.0) * 0.5 * SHARE * (high - low)
        farthest, fastest = limit * float(np.diff(time)[0]), float(np.abs(np.diff(wave)).max())
        if shape == "holds":
            wave = _slowed(wave, farthest)
        elif fastest > farthest:
            wave *= farthest / fastest
        columns.append(0.5 * (low + high) + wave)
    command = np.stack(columns, axis=1)
    names = model.robot.joint_names
    return CommandedMotion(joint_names=names, time=time, command=command, position=np.repeat(command[:1], time.size, 0))


def _check_limits(model: ServoModel) -> None:
    """Refuse joints without limits: commands for them might do harm."""
    for joint in model.robot.moving_joints:
        limits = joint.limits
        if not np.isfinite([limits.lower, limits.upper, limits.velocity]).all():
            raise ArgumentError(
                f"the joint '{joint.name}' has no limit of position or velocity",
                remedy='Write <limit lower="..." upper="..." velocity="..."/> into the file, or use Robot.with_limits.',
            )


def _slowed(wave: Floats, farthest: float) -> Floats:
    """(N,) the same levels, approached by at most `farthest` from sample to sample."""
    slow = np.array(wave)
    for k in range(1, len(slow)):
        slow[k] = slow[k - 1] + np.clip(wave[k] - slow[k - 1], -farthest, farthest)
    return slow


def _sines(time: Floats, rng: np.random.Generator) -> Floats:
    """Five sines, from zero on, at most one."""
    low, high = np.log(FREQUENCIES_HZ)
    frequencies = np.exp(rng.uniform(low, high, size=5))
    waves = np.sin(2.0 * np.pi * np.outer(time, frequencies)) * rng.uniform(0.3, 1.0, 5)
    return _unit(waves.sum(axis=1))


def _ramps(time: Floats, rng: np.random.Generator) -> Floats:
    """Triangles that become faster."""
    phase = rng.uniform(0.1, 0.3) * time + rng.uniform(0.2, 0.8) * time**2 / (2.0 * time[-1])
    return _unit(2.0 / np.pi * np.arcsin(np.sin(2.0 * np.pi * phase)))


def _holds(time: Floats, rng: np.random.Generator) -> Floats:
    """Jumps between random positions, each held for a while."""
    count = max(3, int(time[-1] / rng.uniform(0.5, 1.5)))
    levels = np.concatenate([[0.0], rng.uniform(-1.0, 1.0, count)])
    place = np.minimum((time / time[-1] * len(levels)).astype(np.int64), count)
    return _unit(levels[place])


def _unit(wave: ArrayLike) -> Floats:
    values = np.asarray(wave, dtype=float)
    return values / max(float(np.abs(values).max()), 1e-9)
