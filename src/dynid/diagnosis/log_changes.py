"""Faults that are no small errors: wrong signs, exchanged joints, wrong units, a wrong direction of gravity.

Each change of the log or model is tried out: the model is fitted to the changed log and to the log as recorded.
`find_change` reports a change whose fit predicts left-out blocks of time with at most half of the residual, by more
than chance between the blocks. Many changes are possible, so they are fitted to few samples by a fast approximate
fit: links shared by all joints, friction of every joint by itself.

A fit cannot show errors that all torques have in common, such as their unit, since the masses are fitted with them: so
`check_scales` compares the torques with those of the model file's masses, and `check_friction` finds friction that
would drive its joint. `dynid.diagnosis.naming.diagnose` calls all three, with the fitted `FittedRobot` of some runs.

Letters of shapes: N samples, n joints, B blocks of time, P columns, R rows of the evidence (equations compressed by
joint and block, see `dynid.diagnosis.evidence.Evidence`).
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
from dynid.diagnosis.suspects import FittedRobot, own_terms
from dynid.diagnosis.verdicts import EQUAL, RESOLUTION, Fit, compare, test_columns
from dynid.findings import Finding
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

ROWS, TRIED = 400, 3
"""Number of samples of a run by which changes are compared, and number of changes (the best in a fit of all blocks)
that are tested on left-out blocks (convention)."""
RIDGE = 1e-8
"""Ridge added to the diagonal of normal matrices, relative to it (convention: rounding noise of products)."""
HALF = 0.5
"""Largest ratio of residuals after and before a change that is named; least share of the residual in a part of a log
that a load or a push must explain; least share of friction in a torque of which a reversed friction is reported
(effect)."""
TORQUE_UNITS = {1e3: "N mm or mN m", 1e2: "N cm or percent", 10.197: "kgf cm", 8.851: "lbf in", 141.6: "ozf in",
                0.10197: "kgf m", 0.01: "shares of the rated torque", 1e-3: "kN m"}  # fmt: skip
"""Number of units that make one N m -> name of the unit (definitions of the units)."""
OTHER_UNIT = 5.0
"""Ratio of a quantity to its model, limit or derivative from which on it is in another unit (effect)."""
_AXES = {sign + name: size * axis for sign, size in (("+", 9.81), ("-", -9.81))
         for name, axis in zip("xyz", np.eye(3), strict=True)}  # fmt: skip
"""Direction in the base frame -> (3,) gravity [m/s^2] along it."""


@dataclass(frozen=True, eq=False)
class Change:
    """One change of the log or of the model; by default none."""

    code: str = ""
    """Code of its finding."""
    where: str = ""
    """Channel that is wrong: "q", "effort", or "model"."""
    joint: int | None = None
    says: str = ""
    remedy: str = ""
    apply: Callable[[Excerpt], Excerpt] = lambda excerpt: excerpt
    """Changes the samples of a run."""
    gravity: Floats | None = None
    """(3,) other gravity [m/s^2] in the base frame; None for that of the model."""
    pair: str = ""
    """Names of two joints of which all columns are exchanged."""


def find_change(model: FittedRobot, level: float, left: float) -> tuple[Finding | None, tuple[str, ...]]:
    """Find the change that explains runs best, and rivals that explain them about as well.

    Args:
        model: The robot, fitted to the runs, and samples of these.
        level: Probability that any change is named in faultless runs.
        left: Ratio of rms residuals (left-out blocks), after over before, which the change must stay below.

    Returns:
        The finding, None if no change qualifies; and in words the exchanges of joints that cannot be excluded.
    """
    robot, trial = model.robot, _Trial.of(model)
    changes = list(_list_changes(robot, trial.excerpts))
    before = trial.left_out(Change())
    # sum over joints of the logarithm of the residual share, in a fit of all blocks: of the log as recorded, of changes
    usual, *fitted = [float(np.sum(np.log(trial.fit(trial.products(one))[1]))) for one in (Change(), *changes)]
    tried = [changes[place] for place in np.argsort(fitted)[:TRIED].tolist()]
    rated = [(*compare(trial.left_out(change), before, len(changes)), change) for change in tried]
    named = sorted(((ratio, p, one) for p, ratio, one in rated if p < level and ratio < left), key=lambda one: one[0])
    hidden = tuple(
        f"order of {change.pair}"
        for change, found in zip(changes, fitted, strict=True)
        if change.pair and found - usual < -2.0 * np.log(HALF)  # its rms residual is less than twice the usual one
    )
    if not named:
        return None, hidden
    left, p, best = named[0]
    others = "".join(f"; or {'' if one.joint is None else robot.joint_names[one.joint] + ': '}{one.says}"
                     for ratio, _, one in named[1:] if left > EQUAL * ratio)  # fmt: skip
    finding = Finding(best.code, "error", best.where,
                      f"{best.says}: this leaves {100.0 * left:.2g} % of what is unexplained{others}", best.remedy,
                      joint=None if best.joint is None else robot.joint_names[best.joint],
                      evidence={"left": left, "probability without it": p}, strength=1.0 / left)  # fmt: skip
    return finding, hidden


@dataclass(frozen=True, eq=False)
class _Trial:
    """Few samples of runs, with a fast approximate fit by which changes are compared."""

    robots: tuple[Robot, ...]
    """The robot without friction, under four gravities: zero, and 1 m/s^2 along x, y and z. Regressors are affine in
    gravity, so that these four give that of any gravity."""
    gravity: Floats
    """(3,) gravity of the model [m/s^2]."""
    excerpts: tuple[Excerpt, ...]
    tables: tuple[tuple[Floats, ...], ...]
    """For each excerpt the regressors (N, n, p) of the four robots."""

    @classmethod
    def of(cls, model: FittedRobot) -> _Trial:
        """Thin the excerpts of a model to about `ROWS` samples of a run."""
        plain = model.robot.with_terms()
        robots = tuple(plain.with_gravity(direction) for direction in (np.zeros(3), *np.eye(3)))
        thin = []
        for excerpt in model.excerpts:
            rows = np.arange(0, excerpt.run.samples, max(1, excerpt.run.samples // ROWS))
            # without the last two shapes of friction, which grow with a torque fitted to the unchanged log
            harmless = tuple(np.ascontiguousarray(shape[rows]) for shape in excerpt.harmless[:-2])
            thin.append(Excerpt(excerpt.run.rows(rows), excerpt.slope[rows], harmless))
        tables = tuple(tuple(regressor(arm, e.run.q, e.run.dq, e.run.ddq) for arm in robots) for e in thin)
        return cls(robots, model.robot.gravity, tuple(thin), tables)

    def products(self, change: Change, blocks: int = 1) -> Floats:
        """Form the normal matrices (B, n, P, P) of a changed log, for each joint and block of time (so many per run).

        The P columns are: inertial parameters of the links (shared by all joints); offset, viscous friction, rotor
        inertia and further friction of the joint alone; and last the torque.
        """
        gravity = self.gravity if change.gravity is None else change.gravity
        found = []
        for excerpt, tables in zip(self.excerpts, self.tables, strict=True):
            changed = change.apply(excerpt)
            run = changed.run
            if run.q is not excerpt.run.q:  # other motion, other regressors, except of gravity's zero components
                tables = tuple(table if k and not gravity[k - 1] else regressor(arm, run.q, run.dq, run.ddq)
                               for k, (arm, table) in enumerate(zip(self.robots, tables, strict=True)))  # fmt: skip
            Y = tables[0] + sum(g * (Yg - tables[0]) for g, Yg in zip(gravity, tables[1:], strict=True) if g)
            own = np.stack([np.ones_like(run.dq), run.dq, run.ddq, *changed.harmless, run.effort], axis=2)
            rows = np.concatenate([Y, own], axis=2).transpose(1, 0, 2)  # (n, N, P)
            rows = np.where(run.valid.T[:, :, None], rows, 0.0)
            found += [block.transpose(0, 2, 1) @ block for block in np.array_split(rows, blocks, axis=1)]
        return np.array(found)

    def fit(self, products: Floats) -> tuple[Floats, Floats]:
        """Fit all columns to the torques of blocks (B, n, P, P), by least squares weighted by the residual of a joint.

        Returns:
            (n, P) values of the columns at each joint, -1 for that of the torque, so that columns @ values is the
            residual; (n,) squared residual of each joint over its squared torque.
        """
        total = products.sum(axis=0)
        n = len(total)
        size = np.maximum(total[:, -1, -1], 1e-300)  # squared torques of each joint
        total += np.eye(total.shape[1]) * np.maximum(RIDGE * np.diagonal(total, axis1=1, axis2=2), 1e-300)[:, :, None]
        # Schur complement: eliminate the columns of a joint alone; links and torque remain
        shared = self.tables[0][0].shape[2]  # number of the links' columns
        own = slice(shared, -1)
        links = np.r_[:shared, total.shape[1] - 1]
        taken = np.linalg.solve(total[:, own, own], total[:, own][:, :, links])
        rest = total[:, links][:, :, links] - total[:, links][:, :, own] @ taken
        left = np.ones(n)
        for _ in range(3):  # reweighted by the residual; three times suffice
            weighted = np.tensordot(1.0 / (size * left), rest, axes=1)  # sum over joints
            weighted += np.diag(np.maximum(RIDGE * np.diagonal(weighted), 1e-300))
            values = np.append(np.linalg.solve(weighted[:-1, :-1], weighted[:-1, -1]), -1.0)
            left = np.maximum(np.einsum("p,jpq,q->j", values, rest, values) / size, RIDGE)  # quadratic form per joint
        return np.column_stack([np.tile(values[:-1], (n, 1)), -taken @ values, np.full(n, -1.0)]), left

    def left_out(self, change: Change) -> Floats:
        """(B, n) squared error of predicting a block by the fit of all others, over its squared torque; or NaN."""
        products = self.products(change, max(BLOCKS // len(self.excerpts), FEWEST_BLOCKS))
        size = np.where(products[:, :, -1, -1] > 0.0, products[:, :, -1, -1], np.nan)  # NaN without valid samples
        left = []
        for block in range(len(products)):
            values, _ = self.fit(np.delete(products, block, axis=0))
            left.append(np.einsum("jp,jpq,jq->j", values, products[block], values))
        return np.maximum(np.array(left) / size, RIDGE)


def _change_motion(excerpt: Excerpt, factor: Floats, order: Ints | None = None, shift: Floats | float = 0.0) -> Excerpt:
    """Scale the motion of each joint by a factor (n,), then exchange joints, then shift q.

    The shapes of friction are exchanged too, and follow the sign of the factor.
    """
    run, order = excerpt.run, np.arange(len(factor)) if order is None else order
    q, dq, ddq = (np.ascontiguousarray((x * factor)[:, order]) for x in (run.q, run.dq, run.ddq))
    harmless = tuple(np.ascontiguousarray((shape * np.sign(factor))[:, order]) for shape in excerpt.harmless)
    return replace(excerpt, run=replace(run, q=q + shift, dq=dq, ddq=ddq), harmless=harmless)


def _with_torques(excerpt: Excerpt, factor: Floats, order: Ints | None = None) -> Excerpt:
    """Scale the torque of each joint by a factor (n,), then exchange joints; `order` (n,) is the new order."""
    run, order = excerpt.run, np.arange(len(factor)) if order is None else order
    effort, valid = (run.effort * factor)[:, order], run.valid & run.valid[:, order]
    return replace(excerpt, run=replace(run, effort=np.where(valid, effort, np.nan), valid=valid))


def _list_changes(robot: Robot, excerpts: Sequence[Excerpt]) -> Iterator[Change]:
    """List every change that is tried."""
    n, names, same = robot.dof, robot.joint_names, np.ones(robot.dof)
    turning = np.array([not body.is_prismatic for body in robot.bodies])
    span = np.max([np.ptp(excerpt.run.q, axis=0) for excerpt in excerpts], axis=0)  # (n,) range of motion

    def at(j: int, value: float) -> Floats:
        """(n,) factors: the value at joint j, 1 at all others."""
        return np.where(np.arange(n) == j, value, 1.0)

    declare = "Declare the unit in the channel map."
    for j in range(n):
        yield Change("flipped", "effort", j, "the torque has the opposite sign", "Flip its sign in the channel map.",
                     partial(_with_torques, factor=at(j, -1.0)))  # fmt: skip
        yield Change("flipped", "q", j, "the position has the opposite sign", "Flip its sign in the channel map.",
                     partial(_change_motion, factor=at(j, -1.0)))  # fmt: skip
        for unit, name in TORQUE_UNITS.items():
            yield Change("unit", "effort", j, f"the torque is in {name}", declare,
                         partial(_with_torques, factor=at(j, 1.0 / unit)))  # fmt: skip
        if turning[j]:
            yield from (
                Change("geometry", "q", j, f"the zero of the encoder is {degrees} deg off",
                       "Set the offset in the channel map.",
                       partial(_change_motion, factor=same, shift=turn * (at(j, 2.0) - same)))
                for degrees, turn in ((90, 0.5 * np.pi), (180, np.pi), (-90, -0.5 * np.pi))
            )  # fmt: skip
    for i, j in combinations(range(n), 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        text = f"with those of {names[j]}, or the convention of the DH table is wrong"
        remedy = "Match the columns by joint name in the channel map; is the DH table modified or standard?"
        yield Change("swapped", "effort", i, f"the torques are exchanged {text}", remedy,
                     partial(_with_torques, factor=same, order=order))  # fmt: skip
        yield Change("swapped", "q", i, f"all columns are exchanged {text}", remedy,
                     partial(lambda order, excerpt: _with_torques(_change_motion(excerpt, same, order), same, order),
                             order),
                     pair=f"{names[i]} and {names[j]}")  # fmt: skip
    # only where the range of motion suggests the unit: more than half a turn in rad, or less than 1 rad
    for factor, name, likely in ((np.pi / 180.0, "degrees", span > np.pi), (2.0 * np.pi, "turns", span < 1.0),
                                 (180.0 / np.pi, "radians, not degrees", span < 1.0)):  # fmt: skip
        suggested = np.flatnonzero(likely & turning).tolist()
        if suggested:
            yield Change("unit", "q", None, f"positions are in {name}", declare,
                         partial(_change_motion, factor=np.where(turning, factor, 1.0)))  # fmt: skip
        yield from (Change("unit", "q", j, f"the position is in {name}", declare,
                           partial(_change_motion, factor=at(j, factor)))
                    for j in suggested)  # fmt: skip
    for name, gravity in _AXES.items():
        if np.linalg.norm(gravity - robot.gravity) > 1.0:
            yield Change("gravity", "model", None, f"gravity acts along {name} of the base",
                         f"State it: --gravity {','.join(f'{x:g}' for x in gravity)}.", gravity=gravity)  # fmt: skip
    if np.any(robot.gravity):
        yield Change("gravity", "effort", None, "the torques do not hold the weight of the links",
                     "Does the controller subtract gravity? Log the full torque, or state --gravity 0,0,0.",
                     gravity=np.zeros(3))  # fmt: skip


def check_scales(model: FittedRobot, evidence: Evidence) -> tuple[list[Finding], list[Finding]]:
    """Compare the torques with those of the model file's masses: units, signs, and weight that is not held.

    For each joint a factor is estimated: measured torque over torque of the model's links. Friction is free.

    Returns:
        Findings on the factor of all torques and on weight that is not held; and findings on the factors of single
        joints, with a note on those that the masses do not show. The masses of single links are often wrong, so the
        whole interval of such a factor must lie beyond that of another unit; for a large factor, its square.
    """
    robot, n, base = model.robot, model.robot.dof, model.base
    if not has_masses(robot):
        return [], []
    fit, links = _free_friction(model, evidence, offset=True)
    # (n, 2) ends of the interval of each factor
    ends = np.array([found.value[0] + [-1.0, 1.0] * found.half_width for found in test_columns(fit, links)])
    sure = ends[ends[:, 0] * ends[:, 1] > 0.0]
    factor = float(np.median(sure.mean(axis=1))) if len(sure) else 1.0
    common = []
    if factor < -1.0 / OTHER_UNIT:
        common.append(_scale_finding(robot, "flipped", None, factor, "all torques have the opposite sign of"))
    elif not 1.0 / OTHER_UNIT < factor < OTHER_UNIT:
        unit = min(TORQUE_UNITS, key=lambda value: abs(np.log(abs(factor) / value)))
        common.append(_scale_finding(robot, "unit", None, factor,
                                     f"all torques are {factor:.3g} times (as in {TORQUE_UNITS[unit]}?)"))  # fmt: skip
    arm = robot.with_terms()
    weight = np.max([np.abs(gravity_torque(arm, excerpt.run.q)).max(axis=0) for excerpt in model.excerpts], axis=0)
    # a vertical sliding joint holds a constant weight, which a free offset would explain as well: without offset
    held = test_columns(*_free_friction(model, evidence, offset=False))
    for j in np.flatnonzero(np.isinf(ends[:, 0]) & (weight > RESOLUTION * weight.max())).tolist():
        most = float(held[j].value[0] + held[j].half_width[0])  # upper end of the interval
        if most < -1.0 / OTHER_UNIT:
            common.append(_scale_finding(robot, "flipped", j, most, "torque or position has the opposite sign of"))
        elif most < 1.0 / OTHER_UNIT:
            says = "the torque, perhaps of another joint, does not hold the weight, compared with"
            common.append(_scale_finding(robot, "gravity", j, most, says))
    # (R, 10) columns of the inertial parameters of the last link, as of a load that is fixed to it
    load = evidence.columns[:, : base.rank] @ base.grouping[:, 10 * n - 10 : 10 * n]
    single = []
    for j, (low, high) in enumerate(ends.tolist()):
        is_large = low > OTHER_UNIT**2 and not _is_load(fit.evidence, links, j, load)
        if is_large or 0.0 < low < high < 1.0 / OTHER_UNIT:
            single.append(_scale_finding(robot, "unit", j, high, f"the torque is {low:.2g} to {high:.2g} times"))
    if hidden := [name for name, low in zip(robot.joint_names, ends[:, 0], strict=True) if low <= 0.0]:
        single.append(Finding("untestable", "note", "effort",
                              f"the masses do not show the unit of the torque of {', '.join(hidden)}"))  # fmt: skip
    return common, single


def _is_load(evidence: Evidence, links: Sequence[Floats], joint: int, load: Floats) -> bool:
    """Whether a load (R, 10) at the last link explains as much as a wrong unit of one joint.

    `links` holds for each joint the torque (R, 1) of the model's links; the evidence has friction as harmless columns.
    """
    free = np.hstack([evidence.columns, *links[:joint], *links[joint + 1 :]])
    fit = Fit.of(replace(evidence, columns=free, harmless=free.shape[1]))
    load = load[:, fit.is_shown(load)]  # those columns that other ones do not explain
    unit, carried = test_columns(fit, [links[joint], load])
    return carried.gain > EQUAL * unit.gain


def _free_friction(model: FittedRobot, evidence: Evidence, *, offset: bool) -> tuple[Fit, list[Floats]]:
    """Fit friction, rotor inertias and perhaps offsets alone, without the links.

    Returns:
        The fit, and for each joint the torque (R, 1) of the model file's links, zero in rows of other joints.
    """
    robot, n, rank = model.robot, model.robot.dof, model.base.rank
    columns = evidence.columns[:, :rank] @ model.base.grouping  # (R, p) of standard parameters
    links = columns[:, : 10 * n] @ robot.parameter_vector[: 10 * n]
    terms = [column for column, placed in enumerate(robot.terms, start=10 * n)
             if offset or not isinstance(placed.term, Offset)]  # fmt: skip
    free = np.hstack([columns[:, terms], evidence.columns[:, rank : evidence.harmless]])
    fit = Fit.of(replace(evidence, columns=free, harmless=free.shape[1]))
    return fit, evidence.by_joint(links)


_SCALE_REMEDIES = {
    "flipped": "Flip the sign in the channel map; or are the masses of the robot file wrong?",
    "unit": "Declare the unit of torque in the channel map; or are the masses of the robot file wrong?",
    "gravity": "Does the controller or a spring hold the weight? Log the full torque, or state --gravity 0,0,0.",
}


def _scale_finding(robot: Robot, code: str, joint: int | None, factor: float, says: str) -> Finding:
    return Finding(code, "error", "effort", f"{says} that of the model's masses", _SCALE_REMEDIES[code],
                   joint=None if joint is None else robot.joint_names[joint],
                   evidence={"torque over the model's": factor}, strength=OTHER_UNIT)  # fmt: skip


def check_friction(model: FittedRobot, fit: Fit, level: float) -> Iterator[Finding]:
    """Report joints with negative friction power: the position or the torque has the opposite sign.

    A wrong sign may not show otherwise, where hardly anything but friction and weight acts on a joint.
    """
    robot, evidence, rank = model.robot, fit.evidence, model.base.rank
    values = model.values(evidence, fit.weights)
    own = own_terms(model.base, robot)
    for j in range(robot.dof):
        if not {(j, Viscous), (j, Coulomb), (j, Offset)} <= own.keys():
            continue  # friction of this joint cannot be told from that of others
        rows = evidence.joint == j
        columns = evidence.columns[rows]
        # the further shapes of friction stand behind the base columns, each for all joints in turn
        rubbing = [own[j, Viscous], own[j, Coulomb], *range(rank + j, evidence.harmless, robot.dof)]
        friction = columns[:, rubbing] @ values[rubbing]
        # (B,) friction times speed, summed over each block; the column of viscous friction is the speed
        power = np.bincount(evidence.block[rows], friction * columns[:, own[j, Viscous]], len(evidence.runs))
        weight = columns[:, own[j, Offset]]  # the column of ones, by which the torque's mean is taken out
        torque = evidence.torque[rows] - weight * (weight @ evidence.torque[rows]) / max(weight @ weight, 1e-300)
        p = float(stats.ttest_1samp(power, 0.0, alternative="less").pvalue)
        if p * robot.dof < level and np.linalg.norm(friction) > HALF * np.linalg.norm(torque):
            yield Finding("flipped", "error", "effort",
                          "friction would drive this joint: its torque or its position has the opposite sign",
                          "Flip one of them in the channel map.", joint=robot.joint_names[j],
                          evidence={"probability without it": p}, strength=OTHER_UNIT)  # fmt: skip


def has_masses(robot: Robot) -> bool:
    """Whether the model file's masses are credible: every body has one, and most differ from one another."""
    sizes = [(body.inertia.mass, float(np.linalg.norm(body.inertia.about_com))) for body in robot.bodies]
    return all(mass > 0.0 for mass, _ in sizes[1:]) and len({f"{m:.4g} {J:.4g}" for m, J in sizes}) > len(sizes) // 2
