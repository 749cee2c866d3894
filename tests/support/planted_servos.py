"""Commands and encoder readings of servos whose parameters are known, because they are simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.robot.model import Robot
from dynid.servos import CommandedMotion, ServoModel, simulate_servos


def chirp(robot: Robot, *, amplitude: float = 0.6, duration_s: float = 6.0, seed: int = 0) -> CommandedMotion:
    """Sines of rising frequency, 0.3 to 2 Hz, another phase for each joint, sampled at 200 Hz."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, duration_s, 0.005)
    phase = 2 * np.pi * (0.3 * time + 1.7 * time**2 / (2 * duration_s))
    shift, size = rng.uniform(0.0, 2 * np.pi, robot.dof), rng.uniform(0.7, 1.3, robot.dof)
    command = amplitude * size * (np.sin(phase[:, None] + shift) - np.sin(shift))
    return CommandedMotion(joint_names=robot.joint_names, time=time, command=command, position=np.zeros_like(command))


def planted(model: ServoModel, truth: ArrayLike, motion: CommandedMotion, noise: float, seed: int) -> CommandedMotion:
    """The motion with simulated readings and encoder noise [rad or m]; the first reading is exact."""
    position = simulate_servos(model, truth, motion)
    errors = noise * np.random.default_rng(seed).normal(size=position.shape)
    errors[0] = 0.0
    return replace(motion, position=position + errors)
