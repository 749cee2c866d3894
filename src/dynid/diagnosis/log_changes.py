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

from dynid.array_types import Floats, Ints
from dynid.compiled import gravity_torque, regressor
from dynid.diagnosis.evidence import BLOCKS, FEWEST_BLOCKS, Evidence, Excerpt
from dynid.diagnosis.suspects import Model, friction_columns, trusted_values
from dynid.diagnosis.verdicts import EQUAL, RESOLUTION, Fit, compare, test_columns
from dynid.findings import Finding
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

ROWS, TRIED = 400, 3
"""Samples that changes are compared by, and how many changes predict left-out blocks (convention)."""
RIDGE = 1e-8
"""Share of their squares by which columns are held at zero (convention: rounding noise of products)."""
HALF = 0.5
"""Share of what is unexplained at a joint that a change may leave, and of that in a part of a log that a load or a push
there must explain; share of friction in a torque that has no other sign
(effect)."""
TORQUE_UNITS = {1e3: "N mm or mN m", 1e2: "N cm or percent", 10.197: "kgf cm", 8.851: "lbf in", 141.6: "ozf in",
                0.10197: "kgf m", 0.01: "shares of the rated torque", 1e-3: "kN m"}  # fmt: skip
"""Number of a unit in one N m -> its name (definitions of the units)."""
OTHER_UNIT = 5.0
"""Factor of a quantity over its model, limit or derivative from which on it is in another unit (effect)."""
_AXES = {name: 9.81 * sign * axis for sign in (1.0, -1.0) for name, axis in zip(
    ("+x", "+y", "+z") if sign > 0.0 else ("-x", "-y", "-z"), np.eye(3), strict=True)}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Change:
    """One change of the log or of the model; by default none."""

    code: str = ""
    where: str = ""
    joint: int | None = None
    says: str = ""
    remedy: str = ""
    apply: Callable[[Excerpt], Excerpt] = lambda excerpt: excerpt
    gravity: Floats | None = None


def find_change(model: Model, level: float, left: float) -> tuple[Finding | None, tuple[str, ...]]:
    """The change that explains runs best, at a rate of false alarms for all changes together; None where none does.

    Args:
        model: The robot and its runs.
        level: Probability that faultless runs are accused, over all changes.
        left: Share of what is unexplained that a change leaves at most: what the best of the other suspects leaves.

    Returns:
        The finding, and the names of exchanges of joints which explain the runs about as well as the log as it is.
    """
    robot, trial = model.robot, _Trial.of(model)
    changes = list(_list_changes(robot, trial.excerpts))
    before = trial.left_out(Change())
    best, p = None, 1.0
    fitted = [float(np.sum(np.log(trial.fit(trial.products(change))[1]))) for change in changes]
    for place in np.argsort(fitted)[:TRIED].tolist():
        chance, share = compare(trial.left_out(changes[place]), before, len(changes))
        if chance < level and share < left:
            best, p, left = changes[place], chance, share
    usual = float(np.sum(np.log(trial.fit(trial.products(Change()))[1])))
    hidden = tuple(
        f"order of {robot.joint_names[change.joint]} and {change.says.split()[-1]}"
        for change, found in zip(changes, fitted, strict=True)
        if change.code == "swapped" and change.where == "q" and change.joint is not None
        if found - usual < -2.0 * np.log(HALF)
    )
    if best is None:
        return None, hidden
    finding = Finding(
        code=best.code,
        severity="error",
        where=best.where,
        joint=None if best.joint is None else robot.joint_names[best.joint],
        message=f"{best.says}: this leaves {100.0 * left:.2g} % of what is unexplained",
        evidence={"left": left, "probability without it": p},
        remedy=best.remedy,
        strength=1.0 / left,
    )
    return finding, hidden


@dataclass(frozen=True, eq=False)
class _Trial:
    """Few samples of runs, by which changes are compared."""

    robots: tuple[Robot, ...]
    """Without joint friction; without gravity, then under 1 m/s^2 along x, y and z: torques are linear in gravity."""
    gravity: Floats
    excerpts: tuple[Excerpt, ...]
    tables: tuple[tuple[Floats, ...], ...]
    """For each excerpt the regressor of every robot."""

    @classmethod
    def of(cls, model: Model) -> _Trial:
        """Thin the excerpts of a model."""
        plain = model.robot.with_terms()
        robots = tuple(plain.with_gravity(direction) for direction in (np.zeros(3), *np.eye(3)))
        thin = tuple(_thin(excerpt) for excerpt in model.excerpts)
        tables = tuple(tuple(regressor(arm, e.run.q, e.run.dq, e.run.ddq) for arm in robots) for e in thin)
        return cls(robots, model.robot.gravity, thin, tables)

    def products(self, change: Change, blocks: int = 1) -> Floats:
        """(B, n, P, P) products of all columns and the torque of every block of every run and joint.

        First stand the columns of links and couplings, which joints share, then those of a joint alone, and its torque.
        """
        gravity = self.gravity if change.gravity is None else change.gravity
        found = []
        for excerpt, tables in zip(self.excerpts, self.tables, strict=True):
            changed = change.apply(excerpt)
            run = changed.run
            if run.q is not excerpt.run.q:
                tables = tuple(table if k and not gravity[k - 1] else regressor(arm, run.q, run.dq, run.ddq)
                               for k, (arm, table) in enumerate(zip(self.robots, tables, strict=True)))  # fmt: skip
            Y = tables[0] + sum(g * (Yg - tables[0]) for g, Yg in zip(gravity, tables[1:], strict=True) if g)
            own = np.stack([np.ones_like(run.dq), run.dq, run.ddq, *changed.harmless, run.effort], axis=2)
            rows = np.concatenate([Y, own], axis=2).transpose(1, 0, 2)
            rows = np.where(run.valid.T[:, :, None], rows, 0.0)
            found += [block.transpose(0, 2, 1) @ block for block in np.array_split(rows, blocks, axis=1)]
        return np.array(found)

    def fit(self, products: Floats) -> tuple[Floats, Floats]:
        """Values of all columns at every joint (n, P), -1 for the torque, and the share of it (n,) that they leave.

        Each joint is weighted by what is left. Products (B, n, P, P) are of the blocks that count.
        """
        total, shared = products.sum(axis=0), self.tables[0][0].shape[2]
        n, size = len(total), np.maximum(total[:, -1, -1], 1e-300)
        total += np.eye(total.shape[1]) * (RIDGE * np.diagonal(total, axis1=1, axis2=2) + 1e-300)[:, :, None]
        own, links = slice(shared, -1), np.r_[:shared, total.shape[1] - 1]
        taken = np.linalg.solve(total[:, own, own], total[:, own][:, :, links])
        rest = total[:, links][:, :, links] - total[:, links][:, :, own] @ taken
        left = np.ones(n)
        for _ in range(3):
            weighted = np.tensordot(1.0 / (size * left), rest, axes=1)
            weighted += np.diag(RIDGE * np.diagonal(weighted) + 1e-300)
            values = np.append(np.linalg.solve(weighted[:-1, :-1], weighted[:-1, -1]), -1.0)
            left = np.maximum(np.einsum("p,jpq,q->j", values, rest, values) / size, RIDGE)
        return np.column_stack([np.tile(values[:-1], (n, 1)), -taken @ values, np.full(n, -1.0)]), left

    def left_out(self, change: Change) -> Floats:
        """(B, n) share of the torque of a block that the fit of the others leaves."""
        products = self.products(change, max(BLOCKS // len(self.excerpts), FEWEST_BLOCKS))
        found = []
        for block in range(len(products)):
            values, _ = self.fit(np.delete(products, block, axis=0))
            left = np.einsum("jp,jpq,jq->j", values, products[block], values)
            found.append(np.maximum(left / np.maximum(products[block, :, -1, -1], 1e-300), RIDGE))
        return np.array(found)


def _thin(excerpt: Excerpt) -> Excerpt:
    rows = np.arange(0, excerpt.run.samples, max(1, excerpt.run.samples // ROWS))
    harmless = tuple(np.ascontiguousarray(shape[rows]) for shape in excerpt.harmless[:-2])  # the load may be wrong
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
                                 (180.0 / np.pi, "radians, not degrees", span < 1.0)):  # fmt: skip
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


def check_scale(model: Model, evidence: Evidence) -> Iterator[Finding]:
    """Compare torques with those of the model file's masses: the unit or sign of all, the weight that some lift."""
    robot = model.robot
    if not has_masses(robot):
        return
    free, fixed = (test_columns(*_free_friction(model, evidence, offset=offset)) for offset in (True, False))
    sure = [float(found.value[0]) for found in free if abs(found.value[0]) > found.half_width[0]]
    factor = float(np.median(sure)) if sure else 1.0
    if factor < -1.0 / OTHER_UNIT:
        yield _scale_finding(robot, "flipped", None, factor, "all torques have the opposite sign of")
    elif not 1.0 / OTHER_UNIT < factor < OTHER_UNIT:
        unit = min(TORQUE_UNITS, key=lambda value: abs(np.log(abs(factor) / value)))
        yield _scale_finding(robot, "unit", None, factor,
                             f"all torques are {factor:.3g} times (as in {TORQUE_UNITS[unit]}?)")  # fmt: skip
    links = robot.with_terms()
    weight = np.max([np.abs(gravity_torque(links, excerpt.run.q)).max(axis=0) for excerpt in model.excerpts], axis=0)
    is_shown = np.isfinite([found.half_width[0] for found in free])
    # joints that lift links straight up show nothing but an offset
    for j in np.flatnonzero(~is_shown & (weight > RESOLUTION * weight.max())).tolist():
        most = float(fixed[j].value[0] + fixed[j].half_width[0])
        if most < -1.0 / OTHER_UNIT:
            yield _scale_finding(robot, "flipped", j, most, "torque or position has the opposite sign of")
        elif most < 1.0 / OTHER_UNIT:
            yield _scale_finding(robot, "gravity", j, most, "the torque does not hold the weight of the links, by")


def check_single_scales(model: Model, evidence: Evidence) -> Iterator[Finding]:
    """Compare the torque of each joint with that of the masses; of a single link these are known less."""
    if not has_masses(model.robot):
        return
    n, base = model.robot.dof, model.base
    load = evidence.columns[:, : base.rank] @ base.grouping[:, 10 * n - 10 : 10 * n]
    fit, links = _free_friction(model, evidence, offset=True)
    hidden: list[str] = []
    for j, found in enumerate(test_columns(fit, links)):
        low, high = (float(found.value[0] + sign * found.half_width[0]) for sign in (-1.0, 1.0))
        is_large = low > OTHER_UNIT**2 and not _is_load(fit.evidence, links, j, load)
        if is_large or 0.0 < low < high < 1.0 / OTHER_UNIT:
            yield _scale_finding(model.robot, "unit", j, high, f"the torque is {low:.2g} to {high:.2g} times")
        elif low <= 0.0:
            hidden.append(model.robot.joint_names[j])
    if hidden:
        yield Finding(code="untestable", severity="note", where="effort",
                      message=f"the masses do not show the unit of the torque of {', '.join(hidden)}")  # fmt: skip


def _is_load(evidence: Evidence, links: Sequence[Floats], joint: int, load: Floats) -> bool:
    """Whether a load at the last link, which other joints carry as well, explains as much as a unit of one joint."""
    free = np.hstack([evidence.columns, *links[:joint], *links[joint + 1 :]])
    fit = Fit.of(replace(evidence, columns=free, harmless=free.shape[1]))
    load = load[:, fit.beyond(load)[1]]
    unit, carried = test_columns(fit, [links[joint], load])
    return carried.gain > EQUAL * unit.gain


def _free_friction(model: Model, evidence: Evidence, *, offset: bool) -> tuple[Fit, list[Floats]]:
    """A fit of friction, rotors and perhaps offsets, and for each joint the torque (R, 1) of the model's masses."""
    robot, n, rank = model.robot, model.robot.dof, model.base.rank
    columns = evidence.columns[:, :rank] @ model.base.grouping
    links = columns[:, : 10 * n] @ robot.parameter_vector[: 10 * n]
    terms = [column for column, placed in enumerate(robot.terms, start=10 * n)
             if offset or not isinstance(placed.term, Offset)]  # fmt: skip
    free = np.hstack([columns[:, terms], evidence.columns[:, rank : evidence.harmless]])
    fit = Fit.of(replace(evidence, columns=free, harmless=free.shape[1]))
    return fit, [(links * (evidence.joint == j))[:, None] for j in range(n)]


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
        strength=OTHER_UNIT,
    )


def check_friction(model: Model, fit: Fit, level: float) -> Iterator[Finding]:
    """Report joints whose friction drives them: the position or the torque has the opposite sign.

    In other fits such a joint shows nothing, where hardly anything but its friction and its weight acts on it.
    """
    robot, evidence, rank = model.robot, fit.evidence, model.base.rank
    values = trusted_values(evidence, fit.weights, model.base, robot)
    terms = friction_columns(evidence, model.base, robot)
    own = {column: k for k, column in enumerate(model.base.columns)}
    for j in range(robot.dof):
        if not {(j, Viscous), (j, Coulomb), (j, Offset)} <= terms.keys():
            continue
        rows = evidence.joint == j
        rubbing = [own[column] for column, placed in enumerate(robot.terms, start=10 * robot.dof)
                   if placed.joints == (j,) and isinstance(placed.term, Viscous | Coulomb)]  # fmt: skip
        rubbing += range(rank + j, evidence.harmless, robot.dof)  # harmless friction stands joint by joint
        friction = evidence.columns[rows][:, rubbing] @ values[rubbing]
        power = np.bincount(evidence.block[rows], friction * terms[j, Viscous][rows], len(evidence.runs))
        weight = terms[j, Offset][rows]
        torque = evidence.torque[rows] - weight * (weight @ evidence.torque[rows]) / max(weight @ weight, 1e-300)
        p = float(stats.ttest_1samp(power, 0.0, alternative="less").pvalue)
        if p * robot.dof < level and np.linalg.norm(friction) > HALF * np.linalg.norm(torque):
            yield Finding(
                code="flipped", severity="error", where="effort", joint=robot.joint_names[j],
                message="friction would drive this joint: its torque or its position has the opposite sign",
                evidence={"probability without it": p}, remedy="Flip one of them in the channel map.",
                strength=OTHER_UNIT,
            )  # fmt: skip


def has_masses(robot: Robot) -> bool:
    """Whether the model file's masses are evidence: every body has one, and they are no copies of one another."""
    sizes = [(body.inertia.mass, float(np.linalg.norm(body.inertia.about_com))) for body in robot.bodies]
    return all(mass > 0.0 for mass, _ in sizes[1:]) and len({f"{m:.4g} {J:.4g}" for m, J in sizes}) > len(sizes) // 2
