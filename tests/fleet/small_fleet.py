"""A small fleet of simulated arms with planted differences, as log files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.identifiability.layout import parameter_layout
from dynid.identification.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from support.header_styles import write_columns

ROBOT = zoo.ddarm().with_terms(Viscous(1.0), Coulomb(2.0), Offset(0.1))
MAP = {
    "time": {"column": "t", "unit": "s"},
    "position": {"columns": ["q0", "q1", "q2"], "unit": "rad"},
    "effort": {"columns": ["tau0", "tau1", "tau2"], "unit": "N m"},
}
RECIPE = Recipe.bare(gate=False, cutoff_hz=15.0)
DAY_S, START_S = 86400.0, 1.76e9


def friction_place(name: str) -> int:
    """Place of a term among the robot's parameters."""
    return parameter_layout(ROBOT).index(name)


def tool(mass_kg: float) -> np.ndarray:
    """Ten parameters of a load in the frame of the last link."""
    c = np.array([0.02, 0.01, 0.08])
    inertia = mass_kg * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([*inertia[np.triu_indices(3)], *(mass_kg * c), mass_kg])


def arm(number: int, changes: dict[str, float] | None = None, load_kg: float = 0.0) -> Robot:
    """One arm: friction scatters by 4 %, offsets by 0.1 N m; some friction is multiplied by the factors given."""
    rng = np.random.default_rng(1000 + number)
    theta = ROBOT.parameter_vector.copy()
    own = slice(10 * ROBOT.dof, None)
    theta[own] *= 1.0 + 0.04 * rng.standard_normal(theta[own].size)
    for name, factor in (changes or {}).items():
        theta[friction_place(name)] *= factor
    last = 10 * (ROBOT.dof - 1)
    theta[last : last + 10] += tool(load_kg)
    return ROBOT.with_parameters(theta)


def record(
    robot: Robot, seed: int, *, start_s: float = START_S, duration_s: float = 10.0, effort: float = 0.2
) -> Recording:
    """A log of a motion of its own, with noise of the torques [N m]."""
    motion = sum_of_sines(robot.dof, period_s=5.0, harmonics=5, amplitude=0.7, seed=seed)
    noise = Noise(position=1e-5, effort=effort)
    log = simulate_experiment(robot, motion, rate_hz=100.0, duration_s=duration_s, noise=noise, seed=seed)
    return replace(log, time=log.time + start_s)


def write_log(robot: Robot, path: Path, seed: int, start_s: float = START_S, duration_s: float = 10.0) -> Path:
    """The same as a file."""
    log = record(robot, seed, start_s=start_s, duration_s=duration_s)
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ["t", *(f"{what}{j}" for what in ("q", "tau") for j in range(robot.dof))]
    return write_columns(path, names, [log.time, log.q, log.effort])
