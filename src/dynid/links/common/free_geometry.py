"""Geometry that is estimated with the parameters: encoder zeros, lengths and angles of links, the tilt of the base.

Gauss-Newton on the freed quantities, with all linear parameters and further friction fitted anew at every step
(`ProfiledFit`): the derivatives are exact, and the robot itself is displaced, so nothing is linearised in the result.
A quantity that the logs do not determine is held at its value in the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding
from dynid.gate.causes import KINDS, SURE, Cause, placement_errors
from dynid.gate.measured_samples import measured_samples
from dynid.gate.profiled_fit import BLOCKS, ProfiledFit
from dynid.gate.quick_fit import Samples
from dynid.information.displacements import displace, displacement_columns
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.spatial import rotation_about

FREEDOMS: dict[str, tuple[str, ...]] = {
    "zeros": ("zero", "slide zero"),
    "lengths": ("length",),
    "tilt": ("tilt",),
    "angles": ("angle",),
}
"""What a recipe may free, and the kinds of causes that this means."""
ROWS = 3000
"""Number of samples that geometry is estimated from, over all runs (convention)."""
MOST_STEPS = 8
"""Most steps of Gauss-Newton (convention: quantities within 10 % of the truth settle in three)."""
SETTLED = 0.05
"""Largest step, in standard errors, that ends the search (convention)."""
SHOWN = 2.5
"""Standard errors from which on an estimated quantity is said to differ from the model (convention)."""
OPEN = {"zero": 0.03, "slide zero": 0.01, "length": 0.02, "tilt": 0.03, "angle": 0.03}
"""Standard errors from which on a quantity is held [rad or m] (convention: no drawing is so bad)."""


@dataclass(frozen=True, slots=True)
class Freed:
    """A quantity that was estimated."""

    kind: str
    joint: str
    value: float
    """Found minus stated [rad or m]."""
    error: float
    """Standard error [rad or m]; infinite where it was held."""


@dataclass(frozen=True, slots=True, eq=False)
class FreedGeometry:
    """A robot with the geometry that logs show."""

    robot: Robot
    quantities: tuple[Freed, ...]
    findings: tuple[Finding, ...]

    @property
    def is_shown(self) -> bool:
        """Whether the logs determine every quantity, and one of them surely differs from the model."""
        determined = all(np.isfinite(quantity.error) for quantity in self.quantities)
        return determined and any(abs(quantity.value) > SHOWN * quantity.error for quantity in self.quantities)


def check_freedoms(names: Iterable[str]) -> None:
    """Refuse names that are not in `FREEDOMS`."""
    for name in names:
        if name not in FREEDOMS:
            raise ArgumentError(f"free: there is no '{name}'", remedy=f"Known names: {', '.join(FREEDOMS)}.")


def free_geometry(robot: Robot, runs: Sequence[Experiment], freedoms: Sequence[str]) -> FreedGeometry:
    """Estimate quantities of a robot's geometry from experiments.

    Args:
        robot: The robot; its geometry is the start.
        runs: Experiments with torques as measured.
        freedoms: Keys of `FREEDOMS`.

    Raises:
        DataError: Too few samples are valid.
    """
    check_freedoms(freedoms)
    samples = _join([measured_samples(robot, run, max(ROWS // len(runs), 1)) for run in runs])
    kinds = [kind for name in freedoms for kind in FREEDOMS[name]]
    chosen = [
        (kind, j, direction)
        for j, body in enumerate(robot.bodies)
        for kind, direction in placement_errors(body, robot.gravity)
        if kind in kinds and (kind != "tilt" or j == 0)
    ]
    total, error = np.zeros(len(chosen)), np.full(len(chosen), np.inf)
    held, moved = np.zeros(len(chosen), dtype=bool), robot
    for _ in range(MOST_STEPS):
        before = held
        step, error, held = _step(moved, samples, chosen, held)
        # a step may show that the logs do not determine what an earlier one moved
        total = np.where(held, 0.0, total + step)
        moved = _move(robot, chosen, total)
        samples = replace(samples, gravity=moved.gravity)
        if np.array_equal(held, before) and np.all(np.abs(step[~held]) <= SETTLED * error[~held]):
            break
    found = tuple(
        Freed(kind, robot.joint_names[j], value, spread)
        for (kind, j, _), value, spread in zip(chosen, total.tolist(), error.tolist(), strict=True)
    )
    if robot.source is not None and robot.source.format == "mjcf":
        moved = replace(moved, source=None)  # its text is written back with new inertias only
    return FreedGeometry(moved, found, tuple(_report(robot, chosen, total, error)))


def _move(robot: Robot, chosen: Sequence[tuple[str, int, Floats]], amounts: Floats) -> Robot:
    """The robot with other geometry; a tilt of the base turns gravity the other way and leaves the base's frame."""
    shifts: dict[str, Floats] = {}
    tilt = np.zeros(3)
    for (kind, j, direction), amount in zip(chosen, amounts.tolist(), strict=True):
        if kind == "tilt":
            tilt = tilt + amount * direction[3:]
            continue
        name = robot.joint_names[j]
        shifts[name] = shifts.get(name, np.zeros(6)) + amount * direction
    angle = float(np.linalg.norm(tilt))
    if angle > 0.0:
        robot = robot.with_gravity(rotation_about(tilt / angle, -angle) @ robot.gravity)
    return displace(robot, shifts)


def _join(parts: Sequence[Samples | None]) -> Samples:
    """Samples of several runs, one after the other."""
    good = [part for part in parts if part is not None]
    if not good:
        raise DataError("too few samples are valid to estimate geometry", remedy="Leave `free` out, or record more.")
    names = ("q", "dq", "ddq", "effort", "sign")
    joined = {name: np.concatenate([getattr(part, name) for part in good]) for name in names}
    slopes = [part.slope for part in good if part.slope is not None]
    slope = np.concatenate(slopes) if len(slopes) == len(good) else None
    used = np.all([part.used for part in good], axis=0)
    return replace(good[0], **joined, slope=slope, time=None, jerk=None, far_from_reversals=None, used=used)


def _step(
    robot: Robot, samples: Samples, chosen: Sequence[tuple[str, int, Floats]], held: NDArray[np.bool_]
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """One step (k,), the standard errors (k,), and which quantities stay where they are."""
    fit = ProfiledFit.of(robot, samples)
    columns = displacement_columns(robot, fit.theta, samples.q, samples.dq, samples.ddq)[:, fit.joints]
    columns *= fit.scale[None, :, None, None]
    ground = [j for j, body in enumerate(robot.bodies) if body.parent < 0]
    moving = [(ground if kind == "tilt" else [j], direction) for kind, j, direction in chosen]
    every = np.stack([(columns[:, :, j].sum(axis=2) @ direction).reshape(-1) for j, direction in moving], axis=1)
    free, held = fit.left(every), held.copy()
    limit = np.array([OPEN[kind] for kind, _, _ in chosen])
    step, error = np.zeros(len(chosen)), np.full(len(chosen), np.inf)
    while not held.all():
        step[:], error[:] = 0.0, np.inf
        step[~held], error[~held] = _solve(fit, free[:, ~held])
        worst = int(np.argmax(np.where(held, -np.inf, error / limit)))
        if error[worst] <= limit[worst]:
            break
        held[_together(chosen, worst)] = True
    step[held], error[held] = 0.0, np.inf
    largest = 5.0 * limit
    return np.clip(step, -largest, largest), error, held


def _together(chosen: Sequence[tuple[str, int, Floats]], place: int) -> list[int]:
    """Places of what is held with a quantity: half a tilt of the base would be a tilt about another axis."""
    return [k for k, (kind, _, _) in enumerate(chosen) if k == place or kind == chosen[place][0] == "tilt"]


def _solve(fit: ProfiledFit, free: Floats) -> tuple[Floats, Floats]:
    """Least squares of the residual by columns (M u, k), and standard errors by the scores of blocks of time."""
    scale = np.maximum(np.linalg.norm(free, axis=0), 1e-300)
    unit = free / scale
    inverse = np.linalg.inv(unit.T @ unit + 1e-12 * np.eye(unit.shape[1]))
    step = inverse @ (unit.T @ fit.residual)
    rest = fit.residual - unit @ step
    edges = len(fit.joints) * np.linspace(0, len(rest) // len(fit.joints), BLOCKS + 1).astype(int)
    scores = np.add.reduceat(unit * rest[:, None], edges[:-1], axis=0)
    noise = float(rest @ rest) / max(len(rest) - fit.basis.shape[1], 1)
    by_blocks = inverse @ (scores.T @ scores * BLOCKS / (BLOCKS - 1)) @ inverse
    variance = np.maximum(np.diagonal(by_blocks), noise * np.diagonal(inverse))
    return step / scale, np.sqrt(variance) / scale


def _report(robot: Robot, chosen: Sequence[tuple[str, int, Floats]], total: Floats, error: Floats) -> Iterable[Finding]:
    """One finding for each quantity that differs from the model, one for all that do not, and one for all held."""
    held, same = list[str](), list[str]()
    for (kind, j, direction), value, spread in zip(chosen, total.tolist(), error.tolist(), strict=True):
        rule, name, cause = KINDS[kind], robot.joint_names[j], Cause(kind, j, np.zeros(0), direction)
        quantity = "tilt of the base" if kind == "tilt" else f"{kind} of {name}"
        if not np.isfinite(spread):
            held.append(quantity)
            continue
        if abs(value) < max(SHOWN * spread, rule.least):
            bound = f"{rule.factor * (abs(value) + 2.0 * spread):.2g} {cause.unit(robot)}"
            same.append(f"{quantity} (within {bound}; the identified robot has {rule.factor * value:+.2g})")
            continue
        sure = abs(value) > max(SURE * spread, rule.small)
        yield Finding(
            code="freed-geometry",
            severity="warning" if sure else "note",
            where="model",
            joint=None if kind == "tilt" else name,
            message=cause.describe(robot, value, spread).replace(" seems to be", " is"),
            evidence={f"amount [{rule.unit}]": rule.factor * value, "standard error": rule.factor * spread},
            remedy="The identified robot has this geometry; measure it to be sure." if sure else "",
        )
    if same:
        yield Finding(
            code="freed-geometry",
            severity="note",
            where="model",
            message=f"the logs show nothing else than the model states for {', '.join(same)}",
            remedy="",
        )
    if held:
        yield Finding(
            code="untestable",
            severity="note",
            where="model",
            message=f"the logs do not determine {', '.join(dict.fromkeys(held))}: there the geometry stays as the "
            "model states it",
            remedy="Other motions may show them; some never act on the torques.",
        )
