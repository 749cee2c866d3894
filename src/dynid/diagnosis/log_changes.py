"""Suspects that change the log or the model as a whole: signs, orders, units, the direction of gravity.

Each change is fitted like the log as it is. It is named where it leaves at most half of what is unexplained at some
joint, in blocks of time that were left out, by more than chance between the blocks can do. What all torques have in
common, such as their unit, shows in the masses of the model file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy import stats

from dynid.arrays import Floats, Ints
from dynid.diagnosis.evidence import Excerpt, gather
from dynid.diagnosis.suspects import Model, trusted_values
from dynid.diagnosis.verdicts import Fit
from dynid.findings import Finding
from dynid.kernels import inverse_dynamics, regressor
from dynid.parameters.base import choose_base
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous

ROWS, SCREENED, TRIED = 600, 200, 3
"""Samples that changes are compared by and screened by, and how many are compared (convention: effects are large)."""
HALF = 0.5
"""Share of what is unexplained at a joint that a change may leave; share of friction in a torque that has no other sign
(effect)."""
TORQUE_UNITS = {1e3: "N mm or mN m", 1e2: "N cm or percent", 10.197: "kgf cm", 8.851: "lbf in", 141.6: "ozf in",
                0.10197: "kgf m", 0.01: "shares of the rated torque", 1e-3: "kN m"}  # fmt: skip
"""Number of a unit in one N m -> its name (definitions of the units)."""
OTHER_UNIT, ALIKE = 5.0, 2.0
"""Factor of all torques over those of the model's masses from which on they are in another unit, and factor within
which most joints must have it (effect)."""
_AXES = {name: 9.81 * sign * axis for sign in (1.0, -1.0) for name, axis in zip(
    ("+x", "+y", "+z") if sign > 0.0 else ("-x", "-y", "-z"), np.eye(3), strict=True)}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Change:
    """One change of the log or of the model."""

    code: str
    where: str
    joint: int | None
    says: str
    remedy: str
    apply: Callable[[Excerpt], Excerpt] = lambda excerpt: excerpt
    gravity: Floats | None = None


def find_change(model: Model, level: float) -> Finding | None:
    """The change that explains runs best, at a rate of false alarms for all changes together; None where none does."""
    robot, excerpts = model.robot, [_thin(excerpt, ROWS) for excerpt in model.excerpts]
    before = _left_out(robot, excerpts)
    screen, changes = _Screen.of(robot, model.excerpts), list(_list_changes(robot, excerpts))
    best, found = None, (1.0, HALF)
    for change in sorted(changes, key=screen.unexplained)[:TRIED]:
        other = robot if change.gravity is None else robot.with_gravity(change.gravity)
        after = _left_out(other, [change.apply(excerpt) for excerpt in excerpts])
        ratio = np.log(np.maximum(after, 1e-20)) - np.log(np.maximum(before, 1e-20))
        known = np.isfinite(ratio)
        ratio = np.where(known, ratio, 0.0)
        most = float(np.min(ratio.sum(axis=1) / np.maximum(known.sum(axis=1), 1)))
        left = float(np.exp(0.5 * most))  # at the joint that gains most
        p = float(stats.ttest_1samp(ratio.sum(axis=0), 0.0, alternative="less").pvalue)
        if left < found[1] and p * len(changes) < level:
            best, found = change, (p, left)
    if best is None:
        return None
    return Finding(
        code=best.code,
        severity="error",
        where=best.where,
        joint=None if best.joint is None else robot.joint_names[best.joint],
        message=f"{best.says}: this leaves {100.0 * found[1]:.0f} % of what is unexplained",
        evidence={"left": found[1], "probability without it": found[0]},
        remedy=best.remedy,
        strength=1.0 / found[1],
    )


def _left_out(robot: Robot, excerpts: Sequence[Excerpt]) -> Floats:
    return Fit.of(gather(robot, choose_base(robot), excerpts)).left_out()


@dataclass(frozen=True, eq=False)
class _Screen:
    """A quick fit of few samples, by which the likely ones of many changes are found."""

    robots: tuple[Robot, ...]
    """The links alone, without gravity and under 1 m/s^2 along x, y and z: torques are linear in gravity."""
    gravity: Floats
    excerpts: tuple[Excerpt, ...]

    @classmethod
    def of(cls, robot: Robot, excerpts: Sequence[Excerpt]) -> _Screen:
        """The screen of some excerpts."""
        plain = replace(robot, couplings=()).with_terms()
        robots = tuple(plain.with_gravity(direction) for direction in (np.zeros(3), *np.eye(3)))
        return cls(robots, robot.gravity, tuple(_thin(excerpt, SCREENED) for excerpt in excerpts))

    def unexplained(self, change: Change) -> float:
        """Mean logarithm of the share of the joints' torques that a change leaves unexplained."""
        gravity = self.gravity if change.gravity is None else change.gravity
        n = self.robots[0].dof
        products = np.zeros((n, 10 * n + 6, 10 * n + 6))
        counts = np.zeros(n)
        for excerpt in map(change.apply, self.excerpts):
            run = excerpt.run
            still, *along = (regressor(arm, run.q, run.dq, run.ddq) for arm in self.robots)
            Y = still + sum(g * (Yg - still) for g, Yg in zip(gravity, along, strict=True))
            for j in range(n):
                rows, smooth = run.valid[:, j], excerpt.harmless
                own = [np.ones(run.samples), run.dq[:, j], run.ddq[:, j], smooth[0][:, j], smooth[3][:, j]]
                table = np.column_stack([Y[:, j], *own, np.where(rows, run.effort[:, j], 0.0)])[rows]
                products[j] += table.T @ table
                counts[j] += len(table)
        size = products[:, -1, -1]
        moving, left = size > 0.0, np.where(size > 0.0, size, 1.0)
        for _ in range(3):
            H = np.tensordot(np.where(moving, counts / left, 0.0), products, axes=1)
            ridge = 1e-8 * np.diagonal(H)[:-1] + 1e-12 * max(float(np.max(np.diagonal(H)[:-1])), 1e-300)
            values = np.append(np.linalg.solve(H[:-1, :-1] + np.diag(ridge), H[:-1, -1]), -1.0)
            left = np.maximum(np.einsum("p,jpq,q->j", values, products, values), 1e-8 * size) + (size <= 0.0)
        return float(np.mean(np.log(left[moving] / size[moving]))) if moving.any() else 0.0


def _thin(excerpt: Excerpt, most: int) -> Excerpt:
    rows = np.arange(0, excerpt.run.samples, max(1, excerpt.run.samples // most))
    harmless = tuple(np.ascontiguousarray(shape[rows]) for shape in excerpt.harmless[:-1])  # the load may be wrong
    return Excerpt(excerpt.run.rows(rows), excerpt.slope[rows], harmless)


def _moved(excerpt: Excerpt, factor: Floats, order: Ints | None = None, shift: Floats | float = 0.0) -> Excerpt:
    """The motion with each joint scaled (n,), exchanged and shifted; friction follows the sign."""
    run, order = excerpt.run, np.arange(len(factor)) if order is None else order
    motion = {name: np.ascontiguousarray((getattr(run, name) * factor)[:, order]) for name in ("q", "dq", "ddq")}
    motion["q"] = motion["q"] + shift
    harmless = tuple(np.ascontiguousarray((shape * np.sign(factor))[:, order]) for shape in excerpt.harmless)
    moved = replace(run, q=motion["q"], dq=motion["dq"], ddq=motion["ddq"])
    return replace(excerpt, run=moved, harmless=harmless)


def _with_torques(excerpt: Excerpt, factor: Floats, order: Ints | None = None) -> Excerpt:
    """The torques with each joint scaled (n,) and exchanged."""
    run, order = excerpt.run, np.arange(len(factor)) if order is None else order
    effort, valid = (run.effort * factor)[:, order], run.valid & run.valid[:, order]
    return replace(excerpt, run=replace(run, effort=np.where(valid, effort, np.nan), valid=valid))


def _exchange(excerpt: Excerpt, order: Ints) -> Excerpt:
    """All columns of joints exchanged."""
    same = np.ones(len(order))
    return _with_torques(_moved(excerpt, same, order), same, order)


def _list_changes(robot: Robot, excerpts: Sequence[Excerpt]) -> Iterator[Change]:
    """Every change that is tried."""
    n, names = robot.dof, robot.joint_names
    turning = np.array([not body.is_prismatic for body in robot.bodies])
    span = np.max([np.ptp(excerpt.run.q, axis=0) for excerpt in excerpts], axis=0)

    def at(j: int, value: float) -> Floats:
        return np.where(np.arange(n) == j, value, 1.0)

    declare = "Declare the unit in the channel map."
    for j in range(n):
        yield Change("flipped", "effort", j, "the torque has the opposite sign", "Flip its sign in the channel map.",
                     partial(_with_torques, factor=at(j, -1.0)))  # fmt: skip
        yield Change("flipped", "q", j, "the position has the opposite sign", "Flip its sign in the channel map.",
                     partial(_moved, factor=at(j, -1.0)))  # fmt: skip
        for unit, name in TORQUE_UNITS.items():
            yield Change("unit", "effort", j, f"the torque is in {name}", declare,
                         partial(_with_torques, factor=at(j, 1.0 / unit)))  # fmt: skip
        if turning[j]:
            yield from (
                Change("geometry", "q", j, f"the zero of the encoder is {degrees} deg off",
                       "Set the offset in the channel map.",
                       partial(_moved, factor=np.ones(n), shift=turn * (at(j, 2.0) - 1.0)))
                for degrees, turn in ((90, 0.5 * np.pi), (180, np.pi), (-90, -0.5 * np.pi))
            )  # fmt: skip
    for i, j in combinations(range(n), 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        text, remedy = f"with those of {names[j]}", "Match the columns by joint name in the channel map."
        yield Change("swapped", "effort", i, f"the torques are exchanged {text}", remedy,
                     partial(_with_torques, factor=np.ones(n), order=order))  # fmt: skip
        yield Change("swapped", "q", i, f"all columns are exchanged {text}", remedy,
                     partial(_exchange, order=order))  # fmt: skip
    for factor, name, likely in ((np.pi / 180.0, "degrees", span > np.pi), (2.0 * np.pi, "turns", span < 1.0),
                                 (180.0 / np.pi, "radians, not degrees", span < 0.1)):  # fmt: skip
        if (likely & turning).any():
            yield Change("unit", "q", None, f"positions are in {name}", declare,
                         partial(_moved, factor=np.where(turning, factor, 1.0)))  # fmt: skip
        for j in np.flatnonzero(likely & turning).tolist():
            yield Change("unit", "q", j, f"the position is in {name}", declare,
                         partial(_moved, factor=at(j, factor)))  # fmt: skip
    for name, gravity in _AXES.items():
        if np.linalg.norm(gravity - robot.gravity) > 1.0:
            yield Change("gravity", "model", None, f"gravity acts along {name} of the base",
                         f"State it: --gravity {','.join(f'{x:g}' for x in gravity)}.", gravity=gravity)  # fmt: skip
    if np.any(robot.gravity):
        yield Change("gravity", "effort", None, "the torques do not hold the weight of the links",
                     "Does the controller subtract gravity? Log the full torque, or state --gravity 0,0,0.",
                     gravity=np.zeros(3))  # fmt: skip


def check_scale(model: Model) -> Iterator[Finding]:
    """Compare all torques with those of the model file's masses: another unit, or the opposite sign."""
    robot, ratios = model.robot, []
    masses = np.where(np.arange(robot.parameter_vector.size) < 10 * robot.dof, robot.parameter_vector, 0.0)
    if not has_masses(robot):
        return
    plain = robot.with_parameters(masses)
    for excerpt in model.excerpts:
        run = excerpt.run
        own = inverse_dynamics(plain, run.q, run.dq, run.ddq)
        for j in range(robot.dof):
            rows = run.valid[:, j]
            if np.count_nonzero(rows) < 20:
                continue
            friction = [shape[rows, j] for shape in excerpt.harmless[:-1]]
            basis, _ = np.linalg.qr(
                np.column_stack([np.ones(rows.sum()), run.dq[rows, j], run.ddq[rows, j], *friction])
            )
            x, y = (v - basis @ (basis.T @ v) for v in (own[rows, j], run.effort[rows, j]))
            if x @ x > 0.01 * np.sum(own[rows, j] ** 2):  # elsewhere friction decides
                ratios.append(float(x @ y / (x @ x)))
    factor = float(np.median(ratios)) if ratios else 1.0
    alike = [ratio for ratio in ratios if abs(factor) / ALIKE < ratio * np.sign(factor) < abs(factor) * ALIKE]
    if len(ratios) > 1 and np.mean(np.array(ratios) < 0.0) > 0.8:
        says, code, remedy = "have the opposite sign of", "flipped", "Flip their sign in the channel map."
    elif not 1.0 / OTHER_UNIT < factor < OTHER_UNIT and factor > 0.0 and 2 * len(alike) > len(ratios) > 1:
        unit = min(TORQUE_UNITS, key=lambda value: abs(np.log(factor / value)))
        near = abs(np.log(factor / unit)) < np.log(ALIKE)
        code, remedy = "unit", "Declare the unit of torque in the channel map."
        says = f"are {factor:.3g} times" + (f" (as in {TORQUE_UNITS[unit]})" if near else " (currents, motor torques?)")
    else:
        return
    yield Finding(code=code, severity="error", where="effort",
                  message=f"all torques {says} those of the model's masses",
                  evidence={"torque over the model's": factor}, remedy=remedy, strength=10.0)  # fmt: skip


def check_friction(model: Model, fit: Fit, level: float) -> Iterator[Finding]:
    """Report joints whose friction drives them: the position or the torque has the opposite sign.

    In other fits such a joint shows nothing, where hardly anything but its friction acts on it.
    """
    robot, evidence, places = model.robot, fit.evidence, {column: k for k, column in enumerate(model.base.columns)}
    values = trusted_values(fit, model.base, robot)
    for column, placed in enumerate(robot.terms, start=10 * robot.dof):
        if not isinstance(placed.term, Viscous) or column not in places or len(placed.joints) != 1:
            continue
        j, rows = placed.joints[0], np.flatnonzero(evidence.joint == placed.joints[0])
        terms = enumerate(robot.terms, start=10 * robot.dof)
        mine = [c for c, other in terms if other.joints == (j,) and isinstance(other.term, Viscous | Coulomb)]
        own = [places[c] for c in mine if c in places]
        own += range(model.base.rank + j, evidence.harmless, robot.dof)  # harmless friction stands joint by joint
        table, speed = evidence.columns[rows][:, own], evidence.columns[rows, places[column]]
        friction = table @ values[own]
        power = np.bincount(evidence.block[rows], friction * speed, len(evidence.runs))
        share = np.sqrt(float(friction @ friction) / max(float(np.sum(evidence.torque[rows] ** 2)), 1e-300))
        p = float(stats.ttest_1samp(power, 0.0, alternative="less").pvalue)
        if p * robot.dof < level and share > HALF:
            yield Finding(
                code="flipped", severity="error", where="effort", joint=robot.joint_names[j],
                message="friction would drive this joint: its torque or its position has the opposite sign",
                evidence={"probability without it": p}, remedy="Flip one of them in the channel map.", strength=5.0,
            )  # fmt: skip


def has_masses(robot: Robot) -> bool:
    """Whether the model file's masses are evidence: every body has one, and they are no copies of one another."""
    sizes = [(body.inertia.mass, float(np.linalg.norm(body.inertia.about_com))) for body in robot.bodies]
    return all(mass > 0.0 for mass, _ in sizes[1:]) and len({f"{m:.4g} {J:.4g}" for m, J in sizes}) > len(sizes) // 2
