"""Simulation of a robot under a sampled controller, with encoders, noise, torque limits and an energy balance."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_row, as_whole
from dynid.control.plant import Plant, RungeKuttaPlant
from dynid.errors import ArgumentError
from dynid.kernels import energy_regressor, inertia_matrix
from dynid.robot.model import Robot

LOST = 0.01
"""Share of the energy turnover that the integrator may lose before a warning; a convention."""
ROUNDING = 1e-9
"""Share of the energy that is taken as rounding; a convention, far above 1e-16 per step."""


class Controller(Protocol):
    """Anything that computes torques from measurements."""

    def torque(self, time: float, q: Floats, dq: Floats) -> Floats:
        """Compute torques (n,) [N m or N] from the time [s] and the measured positions and velocities (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imperfections:
    """Imperfections of drives and sensors."""

    encoder_step: float = 0.0
    """Resolution of the encoders at the joint [rad or m]; 0 for exact positions. Velocities are then differences."""
    torque_noise: float = 0.0
    """Standard deviation of the drive torque, as a share of each joint's torque limit, which must be finite."""
    limit_torque: bool = True
    """Whether the effort limits of the robot bound the torques."""

    def __post_init__(self) -> None:
        """Refuse negative and non-finite values."""
        as_number("encoder_step", self.encoder_step, least=0.0)
        as_number("torque_noise", self.torque_noise, least=0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """State of the robot at the N + 1 control instants."""

    time: Floats
    """(N + 1,) [s]"""
    q: Floats
    """(N + 1, n) true positions [rad or m]"""
    dq: Floats
    """(N + 1, n) true velocities"""
    torque: Floats
    """(N, n) torque that acts from each instant to the next [N m or N]"""
    energy: Floats
    """(N + 1,) kinetic energy, rotors included, and potential energy [J]"""
    kinetic: Floats
    """(N + 1,) kinetic energy, rotors included [J]"""
    work: Floats
    """(N + 1,) work of drives and friction since the start [J]"""

    @property
    def turnover(self) -> float:
        """Scale for the energy error [J]: range of the energy plus the largest work and kinetic energy."""
        return float(np.ptp(self.energy) + np.abs(self.work).max() + np.abs(self.kinetic).max())

    @property
    def energy_error(self) -> float:
        """Largest difference between the change of energy and the work [J]: the error of the integrator."""
        return float(np.abs(self.energy - self.energy[0] - self.work).max())


def simulate(
    robot: Robot | Plant,
    controller: Controller,
    *,
    duration: float,
    q0: ArrayLike,
    dq0: ArrayLike | None = None,
    rate_hz: float = 1000.0,
    substeps: int = 1,
    imperfections: Imperfections | None = None,
    seed: int = 0,
) -> Simulation:
    """Simulate a robot under a controller.

    Args:
        robot: The true robot (fixed Runge-Kutta steps), or a plant with another integrator.
        controller: Called once per control period; its torque is held until the next call.
        duration: Length of the simulation [s].
        q0: (n,) positions at the start [rad or m].
        dq0: (n,) velocities at the start; zero by default.
        rate_hz: Control rate [Hz].
        substeps: Integrator steps per control period.
        imperfections: Imperfections of drives and sensors; none by default.
        seed: Seed of the noise.

    Example:
        >>> dynid.control.simulate(robot, dynid.control.GravityCompensation(robot), duration=0.1, q0=q).q.shape
        (101, 3)
    """
    plant = RungeKuttaPlant(robot) if isinstance(robot, Robot) else robot
    arm, flaws, n = plant.robot, imperfections or Imperfections(), plant.robot.dof
    rate_hz, substeps = as_number("rate_hz", rate_hz, above=0.0), as_whole("substeps", substeps, least=1)
    steps = round(as_number("duration", duration, least=0.0) * rate_hz)
    if steps < 1:
        raise ArgumentError("the simulation has no steps", remedy="Give a duration of at least one control period.")
    drives = _Drives(arm, flaws, np.random.default_rng(seed))
    states, torques = np.zeros((steps + 1, 2 * n + 1)), np.zeros((steps, n))
    states[0, :n] = as_row("q0", q0, n)
    states[0, n : 2 * n] = 0.0 if dq0 is None else as_row("dq0", dq0, n)
    before = _measure(states[0, :n], flaws)
    for k in range(steps):
        q = _measure(states[k, :n], flaws)
        dq = (q - before) * rate_hz if flaws.encoder_step else states[k, n : 2 * n]
        before = q
        torques[k] = drives.apply(as_row("the controller's torque", controller.torque(k / rate_hz, q, dq), n))
        state = states[k]
        for _ in range(substeps):
            state = plant.advance(state, torques[k], 1.0 / (rate_hz * substeps))
        if not np.isfinite(state).all():
            raise ArgumentError(
                f"the simulation diverges after {k / rate_hz:.3f} s", remedy="Lower the gains or raise the rate."
            )
        states[k + 1] = state
    run = _collect(arm, states, torques, rate_hz)
    if run.energy_error > LOST * run.turnover + ROUNDING * float(np.abs(run.energy).max()):
        warnings.warn(
            f"the energy error is {run.energy_error:.2g} J of {run.turnover:.2g} J: raise rate_hz or substeps",
            stacklevel=2,
        )
    return run


class _Drives:
    """Drives: commanded torques become noisy and limited."""

    def __init__(self, robot: Robot, flaws: Imperfections, rng: np.random.Generator) -> None:
        self._limits = np.array([joint.limits.effort for joint in robot.moving_joints])
        endless = [j.name for j in robot.moving_joints if not np.isfinite(j.limits.effort)]
        if flaws.torque_noise and endless:
            raise ArgumentError(
                f"torque_noise is a share of the torque limit, but joint '{endless[0]}' has no limit",
                remedy="Give the robot effort limits, or omit torque_noise.",
            )
        self._noise = flaws.torque_noise * self._limits if flaws.torque_noise else np.zeros(robot.dof)
        self._limited = flaws.limit_torque
        self._rng = rng

    def apply(self, torque: Floats) -> Floats:
        """Torque (n,) that the drives produce [N m or N]."""
        acting = torque + self._noise * self._rng.normal(size=torque.shape) if self._noise.any() else torque
        return np.clip(acting, -self._limits, self._limits) if self._limited else acting


def _measure(q: Floats, flaws: Imperfections) -> Floats:
    return np.round(q / flaws.encoder_step) * flaws.encoder_step if flaws.encoder_step else q.copy()


def _collect(robot: Robot, states: Floats, torques: Floats, rate_hz: float) -> Simulation:
    n = robot.dof
    q, dq = states[:, :n].copy(), states[:, n : 2 * n].copy()
    kinetic = 0.5 * np.einsum("ni,nij,nj->n", dq, inertia_matrix(robot, q), dq)
    potential = energy_regressor(robot, q, np.zeros_like(q)) @ robot.inertial_vector
    return Simulation(
        time=np.arange(len(states)) / rate_hz,
        q=q,
        dq=dq,
        torque=torques,
        energy=kinetic + potential,
        kinetic=kinetic,
        work=states[:, -1].copy(),
    )
