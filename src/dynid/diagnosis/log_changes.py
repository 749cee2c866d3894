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
from dynid.diagnosis.evidence import BLOCKS, Evidence, Excerpt, gather
from dynid.diagnosis.suspects import Model, trusted_values
from dynid.diagnosis.verdicts import Fit, test_columns
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
NOTABLE = 0.05
"""Share of a joint's torque that the masses of the model file must make for it to be compared with them (effect)."""
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
    screen, changes = _Screen.of(robot, model.excerpts), list(_list_changes(robot, excerpts))
    usual = screen.unexplained(Change("", "", None, "", ""))
    screened = [(float(left.mean()), place) for place, change in enumerate(changes)
                if (left := screen.unexplained(change) - usual).min(initial=0.0) < np.log(HALF)]  # fmt: skip
    if not screened:
        return None
    before, best, found, most = _left_out(robot, excerpts), None, (1.0, 1.0), 0.0
    for change in (changes[place] for _, place in sorted(screened)[:TRIED]):
        other = robot if change.gravity is None else robot.with_gravity(change.gravity)
        after = _left_out(other, [change.apply(excerpt) for excerpt in excerpts])
        ratio = np.log(np.maximum(after, 1e-20)) - np.log(np.maximum(before, 1e-20))
        known = np.isfinite(ratio)
        ratio = np.where(known, ratio, 0.0)
        each = ratio.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        left = np.exp(0.5 * each)  # at each joint
        p = float(stats.ttest_1samp(ratio.sum(axis=0), 0.0, alternative="less").pvalue)
        is_likely = left.min() < HALF and left.max() < 1.0 / HALF and p * len(changes) < level
        if is_likely and each.sum() < most:
            best, found, most = change, (p, float(left.min())), float(each.sum())
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
    tables: tuple[tuple[Floats, ...], ...]
    """For each excerpt the regressor of every robot."""

    @classmethod
    def of(cls, robot: Robot, excerpts: Sequence[Excerpt]) -> _Screen:
        """The screen of some excerpts."""
        plain = replace(robot, couplings=()).with_terms()
        robots = tuple(plain.with_gravity(direction) for direction in (np.zeros(3), *np.eye(3)))
        thin = tuple(_thin(excerpt, SCREENED) for excerpt in excerpts)
        tables = tuple(tuple(regressor(arm, e.run.q, e.run.dq, e.run.ddq) for arm in robots) for e in thin)
        return cls(robots, robot.gravity, thin, tables)

    def unexplained(self, change: Change) -> Floats:
        """(n,) logarithm of the share of each joint's torque that a change leaves unexplained."""
        gravity = self.gravity if change.gravity is None else change.gravity
        n = self.robots[0].dof
        products, counts = np.zeros((n, 10 * n + 6, 10 * n + 6)), np.zeros(n)
        for excerpt, tables in zip(self.excerpts, self.tables, strict=True):
            changed = change.apply(excerpt)
            run, smooth = changed.run, changed.harmless
            if run.q is not excerpt.run.q:
                tables = tuple(table if k and not gravity[k - 1] else regressor(arm, run.q, run.dq, run.ddq)
                          for k, (arm, table) in enumerate(zip(self.robots, tables, strict=True)))  # fmt: skip
            Y = tables[0] + sum(g * (Yg - tables[0]) for g, Yg in zip(gravity, tables[1:], strict=True) if g)
            for j in range(n):
                rows = run.valid[:, j]
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
        return np.log(np.where(moving, left / np.where(moving, size, 1.0), 1.0))


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
    """Compare torques with those of the model file's masses: another unit, or the opposite sign, of all or of one."""
    robot = model.robot
    if not has_masses(robot):
        return
    ratios, lifting = _mass_ratios(model)
    middle = np.array([np.mean(ratio) for ratio in ratios.values()])
    factor = float(np.median(middle)) if ratios else 1.0
    alike = np.mean(np.abs(np.log(np.maximum(middle, 1e-300) / max(factor, 1e-300))) < np.log(ALIKE)) if ratios else 0.0
    if len(ratios) > 1 and np.mean(middle < 0.0) > 0.8:
        yield _scale_finding(robot, "flipped", None, factor, "all torques have the opposite sign of")
    elif len(ratios) > 1 and not 1.0 / OTHER_UNIT < factor < OTHER_UNIT and factor > 0.0 and alike > HALF:
        unit = min(TORQUE_UNITS, key=lambda value: abs(np.log(factor / value)))
        near = abs(np.log(factor / unit)) < np.log(ALIKE)
        which = f"as in {TORQUE_UNITS[unit]}" if near else "currents, motor torques?"
        yield _scale_finding(robot, "unit", None, factor, f"all torques are {factor:.3g} times ({which})")
    else:  # of a single link the mass is known less
        for j, (low, high) in ratios.items():
            if -OTHER_UNIT < low < high < -1.0 / OTHER_UNIT:
                yield _scale_finding(robot, "flipped", j, low, "torque or position has the opposite sign of")
            elif -1.0 / OTHER_UNIT < low < high < 1.0 / OTHER_UNIT and j in lifting:
                yield _scale_finding(robot, "gravity", j, high, "the torque does not hold the weight of the links, by")
            elif low > OTHER_UNIT**2 or -1.0 / OTHER_UNIT < low < high < 1.0 / OTHER_UNIT:
                yield _scale_finding(robot, "unit", j, high, f"the torque is {low:.2g} to {high:.2g} times")


_SCALE_REMEDIES = {
    "flipped": "Flip the sign in the channel map; or are the masses of the robot file wrong?",
    "unit": "Declare the unit of torque in the channel map; or are the masses of the robot file wrong?",
    "gravity": "Does the controller or a spring hold the weight? Log the full torque, or state --gravity 0,0,0.",
}


def _scale_finding(robot: Robot, code: str, joint: int | None, factor: float, says: str) -> Finding:
    return Finding(
        code=code,
        severity="error",
        where="effort",
        joint=None if joint is None else robot.joint_names[joint],
        message=f"{says} that of the model's masses",
        evidence={"torque over the model's": factor},
        remedy=_SCALE_REMEDIES[code],
        strength=10.0,
    )


def _mass_ratios(model: Model) -> tuple[dict[int, tuple[float, float]], set[int]]:
    """Joint -> interval of the measured torque over that of the model's masses, where the log shows it.

    Friction and rotor inertia are free, and the offset once free and once not: joints that lift links straight up,
    which are returned as well, show nothing but an offset.
    """
    robot, n = model.robot, model.robot.dof
    plain = robot.with_parameters(
        np.where(np.arange(robot.parameter_vector.size) < 10 * n, robot.parameter_vector, 0.0)
    )
    own, torque, valid, *free = (np.concatenate(parts) for parts in zip(*(
        (inverse_dynamics(plain, e.run.q, e.run.dq, e.run.ddq), e.run.effort, e.run.valid, e.run.dq, e.run.ddq,
         *e.harmless[:-1]) for e in model.excerpts), strict=True))  # fmt: skip
    found: dict[int, tuple[float, float]] = {}
    lifting = set()
    for j in range(n):
        rows = np.flatnonzero(valid[:, j])
        if rows.size < 10 * BLOCKS:
            continue
        x, y, one = own[rows, j][:, None], torque[rows, j], np.zeros(rows.size, dtype=int)
        columns, ends = np.column_stack([part[rows, j] for part in free]), []
        for table in (columns, np.column_stack([columns, one + 1.0])):
            fit = Fit.of(Evidence.of_rows(table, y, one, np.arange(rows.size) * BLOCKS // rows.size))
            verdict, length = test_columns(fit, [x])[0], float(fit.beyond(x)[2][0])
            value, spread = float(verdict.value[0]), float(verdict.half_width[0])
            share = max(1.0, abs(value) - spread) * length  # also of torques in a far smaller unit
            if share > NOTABLE * float(np.linalg.norm(y)) * fit.weights[0] and spread < np.inf:
                ends += [value - spread, value + spread]
        if ends:
            found[j] = (min(ends), max(ends))
        if len(ends) == 2:
            lifting.add(j)
    return found, lifting


def check_friction(model: Model, fit: Fit, level: float) -> Iterator[Finding]:
    """Report joints whose friction drives them: the position or the torque has the opposite sign.

    In other fits such a joint shows nothing, where hardly anything but its friction acts on it.
    """
    robot, evidence, places = model.robot, fit.evidence, {column: k for k, column in enumerate(model.base.columns)}
    values = trusted_values(evidence, fit.weights, model.base, robot)
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
