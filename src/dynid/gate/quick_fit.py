"""Quick fits of a robot's equations to an experiment, one for every hypothesis about the log.

There are two kinds of fits. *Free*: all parameters are fitted, so only the structure of the equations is used, and that
friction brakes. *Prior*: the robot's own masses are believed within reason and only rotor inertia, friction and offset
of each joint are fitted, which also reveals signs and units that a free fit absorbs. Both give a relative rms residual
and a log-likelihood.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.gate.free_equations import FreeEquations, IndependentColumns, with_friction, with_smooth_sign
from dynid.kernels import inverse_dynamics, regressor
from dynid.processing.delay import count_ahead, independent_values
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

Result = TypeVar("Result")

MOST_RECENT = 12
"""Number of results of the latest motions that are kept (convention: four of three motions)."""
MOST_ROWS = 600
"""Number of samples of a quick fit (convention)."""
FEWEST = 60
"""Smallest number of samples of a quick fit (convention)."""
POWER_BLOCKS = 10
"""Number of parts of a log that the jackknife of the friction's power leaves out one by one (convention)."""
FINEST = 1e-3
"""Smallest relative residual of a joint that counts (convention: about the error of processing itself)."""
SPENT = 2.0
"""Independent values of the residual that each unknown of a fit takes up, as in `dynid.estimation.agreement`."""
FEWEST_COPIES = 3
"""Number of links with the same mass and inertia that make them copies of a template (convention, as in
robot/check.py)."""
ROUND = 1e-6
"""Relative difference of moments of inertia up to which a body is a ball (convention: files are rounded)."""
AT_REST = 1e-3
"""Share of a joint's largest speed below which it turns neither way (convention: after a stop, filters leave less; the
sign of that would be dry friction of a joint that stands)."""
STAND_ROWS = 10
"""Smallest number of such samples in a row (convention: a joint that turns round is as slow for one or two)."""
_DIRECTIONS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""Unit vectors of gravity, from which torques of any gravity are combined."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Evenly picked samples of an experiment, possibly altered by a hypothesis."""

    q: Floats
    """(M, n) [rad or m]"""
    dq: Floats
    """(M, n)"""
    ddq: Floats
    """(M, n)"""
    effort: Floats
    """(M, n) [N m or N]"""
    sign: Floats
    """(M, n) sign of the velocities, smoothed as the torques are."""
    used: NDArray[np.bool_]
    """(n,) joints whose torque is used."""
    gravity: Floats
    """(3,) [m/s^2]"""
    noise: Floats = field(default_factory=lambda: np.zeros(1))
    """(n,) or (1,) standard deviation of the noise in the torques, zero where it is unknown [N m or N]."""
    slope: Floats | None = None
    """(M, n) rate of the torques [N m/s or N/s]; None for isolated samples. Altered samples keep the old one."""
    time: Floats | None = None
    """(M,) [s]; None where it is unknown."""
    jerk: Floats | None = None
    """(M, n) rate of the accelerations; None where it is unknown."""
    far_from_reversals: NDArray[np.bool_] | None = None
    """(M, n) whether a joint is neither slow nor turns round about that time; None where it is unknown."""
    log: NDArray[np.int64] | None = None
    """(M,) number of the log, from 0, that a sample comes from; None where all come from one."""
    trust: Floats = field(init=False)
    """(n,) weight of each joint's torque, 0 to 1: zero where noise makes up half of its power."""
    weight: Floats = field(init=False)
    """(n,) one over the spread of each joint's torque, less where much of it is noise; 0 where it is unused."""

    def __post_init__(self) -> None:
        """Store one noise level per joint, and what follows from it."""
        noise, spread = np.broadcast_to(self.noise, self.used.shape), self.effort.std(axis=0)
        share = np.where(spread > 0.0, noise / np.maximum(spread, 1e-300), 1.0)
        trust = np.where(self.used, np.clip(1.0 - 2.0 * share**2, 0.0, 1.0), 0.0)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "trust", trust)
        object.__setattr__(self, "weight", np.sqrt(trust) / np.maximum(spread, 1e-300))

    @classmethod
    def of(
        cls, robot: Robot, experiment: Experiment, rows: int = MOST_ROWS, noise: Floats | None = None
    ) -> Samples | None:
        """Pick samples; None when too few are valid, or their torques never change."""
        share = experiment.valid.mean(axis=0)
        used = share > 0.2
        picked = pick(experiment, used, rows)
        if picked.size < FEWEST:
            return None
        effort = np.where(experiment.valid[picked], experiment.effort[picked], 0.0)
        if not np.ptp(effort[:, used], axis=0).any():
            return None
        dq = np.where(sense_of_motion(experiment.dq), experiment.dq, 0.0)
        sign = experiment.smooth(np.sign(dq))[picked]
        return cls(
            q=np.ascontiguousarray(experiment.q[picked]),
            dq=np.ascontiguousarray(dq[picked]),
            ddq=np.ascontiguousarray(experiment.ddq[picked]),
            effort=effort,
            sign=sign,
            used=used,
            gravity=robot.gravity,
            noise=np.zeros(1) if noise is None else noise,
            slope=_slope(experiment, picked),
            time=experiment.time[picked],
        )

    @property
    def floor(self) -> float:
        """The relative rms residual that noise alone leaves."""
        return float(np.sqrt(np.sum((self.weight * self.noise) ** 2) / max(float(self.trust.sum()), 1e-300)))

    def thin_out(self, step: int) -> Samples:
        """Every step-th sample."""
        return self.at(slice(None, None, step))

    def at(self, rows: slice | NDArray[np.bool_]) -> Samples:
        """Some of the samples, without what needs their neighbours."""
        names = ("q", "dq", "ddq", "effort", "sign")
        parts = {name: np.ascontiguousarray(getattr(self, name)[rows]) for name in names}
        return replace(self, **parts, slope=None, time=None, jerk=None, far_from_reversals=None, log=None)

    def with_torque_sign(self, joint: int) -> Samples:
        """The samples with the sign of one joint's torque reversed."""
        effort = self.effort.copy()
        effort[:, joint] *= -1.0
        return replace(self, effort=effort)

    def with_torque_scaled(self, joint: int, factor: float) -> Samples:
        """The samples with one joint's torque, and its noise, multiplied by a factor."""
        scale = np.where(np.arange(self.q.shape[1]) == joint, factor, 1.0)
        slope = None if self.slope is None else self.slope * scale
        return replace(self, effort=self.effort * scale, noise=self.noise * scale, slope=slope)

    def with_position_sign(self, joint: int) -> Samples:
        """The samples with the sign of one joint's motion reversed."""
        sign = np.where(np.arange(self.q.shape[1]) == joint, -1.0, 1.0)
        return replace(self, q=self.q * sign, dq=self.dq * sign, ddq=self.ddq * sign, sign=self.sign * sign)

    def with_offset(self, joint: int, angle: float) -> Samples:
        """The samples with the position of one joint shifted by an angle [rad]."""
        q = self.q.copy()
        q[:, joint] += angle
        return replace(self, q=q)

    def with_torques_swapped(self, first: int, second: int) -> Samples:
        """The samples with the torques of two joints exchanged."""
        order = _exchange(self.q.shape[1], first, second)
        return replace(self, effort=self.effort[:, order], used=self.used[order], noise=self.noise[order])

    def with_joints_swapped(self, first: int, second: int) -> Samples:
        """The samples with all columns of two joints exchanged."""
        order = _exchange(self.q.shape[1], first, second)
        motion = {name: np.ascontiguousarray(getattr(self, name)[:, order]) for name in ("q", "dq", "ddq", "sign")}
        return replace(self, **motion, effort=self.effort[:, order], used=self.used[order], noise=self.noise[order])

    def with_motion_scaled(self, factor: float | Floats) -> Samples:
        """The samples with positions and their derivatives multiplied by a factor, or by one (n,) for each joint."""
        return replace(self, q=self.q * factor, dq=self.dq * factor, ddq=self.ddq * factor)


def pick(experiment: Experiment, used: NDArray[np.bool_], rows: int) -> NDArray[np.int64]:
    """Indices of evenly picked samples at which all joints in use are valid."""
    good = np.flatnonzero(experiment.valid[:, used].all(axis=1)) if used.any() else np.zeros(0, dtype=np.int64)
    return np.asarray(good[np.unique(np.linspace(0, max(good.size - 1, 0), min(rows, good.size)).astype(int))])


def sense_of_motion(dq: Floats) -> Floats:
    """Signs of velocities (N, n), zero where a joint stands; one that turns round does not stand."""
    if len(dq) < STAND_ROWS:
        return np.sign(dq)
    slow = np.abs(dq) <= AT_REST * np.max(np.abs(dq), axis=0, initial=0.0)
    begins = count_ahead(slow, STAND_ROWS) == STAND_ROWS
    if not begins.any():
        return np.sign(dq)
    stands = count_ahead(np.pad(begins, ((STAND_ROWS - 1, STAND_ROWS - 1), (0, 0))), STAND_ROWS) > 0
    return np.asarray(np.where(stands, 0.0, np.sign(dq)))


def _slope(experiment: Experiment, picked: NDArray[np.int64]) -> Floats | None:
    """(M, n) rate of the torques at picked samples by central differences; None for isolated samples."""
    if experiment.samples < 3:
        return None
    inner = np.clip(picked, 1, experiment.samples - 2)
    before, after = inner - 1, inner + 1
    beside = experiment.segment[before] == experiment.segment[after]
    if not np.any(beside):
        return None
    known = experiment.valid[before] & experiment.valid[after] & beside[:, None]
    difference = np.where(known, experiment.effort[after] - experiment.effort[before], 0.0)
    return np.asarray(0.5 * experiment.rate_hz * difference)


def _exchange(count: int, first: int, second: int) -> NDArray[np.int64]:
    order = np.arange(count)
    order[[first, second]] = order[[second, first]]
    return order


def has_masses(robot: Robot) -> bool:
    """Whether the bodies of the robot have masses at all."""
    return all(body.inertia.mass > 0.0 for body in robot.bodies[1:]) and robot.dof > 0 and bool(robot.bodies)


def has_prior(robot: Robot) -> bool:
    """Whether the robot's masses are evidence: they are there, and do not look made up."""
    return has_masses(robot) and not has_made_up_masses(robot)


@lru_cache(maxsize=64)
def has_made_up_masses(robot: Robot) -> bool:
    """Whether the inertias look like placeholders: one body copied to several links, or balls instead of links.

    No link of a real robot turns equally easily about all axes, and no two real links are exactly alike. Masses that
    somebody made up say nothing about a log.
    """
    bodies = [body.inertia for body in robot.bodies]
    turning = [body for body in bodies if body.mass > 0.0]
    balls = sum(_is_ball(body.about_com) for body in turning)
    # the trace and the norm of a tensor are the same in every frame
    tensors = [body.about_com for body in turning]
    sizes = [(body.mass, np.trace(J), np.linalg.norm(J)) for body, J in zip(turning, tensors, strict=True)]
    alike = Counter(tuple(f"{value:.6g}" for value in size) for size in sizes)
    copies = max(alike.values(), default=0)
    return 2 * balls > len(bodies) or copies >= FEWEST_COPIES or (len(bodies) > 1 and copies == len(bodies))


def _is_ball(tensor: Floats) -> bool:
    """Whether an inertia tensor (3, 3) about the centre of mass is the same about all axes."""
    mean = float(np.trace(tensor)) / 3.0
    return bool(np.abs(tensor - mean * np.eye(3)).max() <= ROUND * abs(mean))


@lru_cache(maxsize=64)
def _plain(robot: Robot, gravity: tuple[float, ...]) -> Robot:
    """The robot with nothing but its own masses, under a given gravity; cached, because many hypotheses share a few."""
    return replace(robot, couplings=()).with_terms().with_gravity(gravity)


def gravity_torques(robot: Robot, samples: Samples) -> Floats:
    """(3, M, n) torque of unit gravity along x, y, z with the robot's own masses [N m per m/s^2]."""
    still = np.zeros_like(samples.q)
    return np.stack([inverse_dynamics(_plain(robot, e), samples.q, still, still) for e in _DIRECTIONS])


def inertial_torque(robot: Robot, samples: Samples) -> Floats:
    """(M, n) torque of the robot's own masses without gravity [N m]."""
    return inverse_dynamics(_plain(robot, (0.0, 0.0, 0.0)), samples.q, samples.dq, samples.ddq)


def own_torque(robot: Robot, samples: Samples) -> Floats:
    """(M, n) torque of the robot's own masses under the samples' gravity [N m]."""
    parts = of_motion("parts", robot, samples, lambda: np.concatenate(
        [inertial_torque(robot, samples)[None], gravity_torques(robot, samples)]
    ))  # fmt: skip
    return np.asarray(parts[0] + np.tensordot(samples.gravity, parts[1:], axes=1))


class _Recent(threading.local):
    """What was computed for the latest motions: hypotheses about torques alone have the same motion."""

    def __init__(self) -> None:
        self.known: OrderedDict[tuple[object, ...], tuple[object, Any]] = OrderedDict()


_recent = _Recent()


def of_motion(what: str, robot: Robot, samples: Samples, make: Callable[[], Result], *further: object) -> Result:
    """What depends on the robot, the motion of the samples and further arrays alone, computed once for them."""
    return _once(what, (robot, samples.q, samples.dq, samples.ddq, samples.sign, *further), make)


def _once(what: str, sources: tuple[object, ...], make: Callable[[], Result]) -> Result:
    """What depends on some objects alone, computed once for them."""
    key = (what, *map(id, sources))
    if key not in _recent.known:
        _recent.known[key] = (sources, make())  # the sources stay alive, so that no other array gets their identity
        if len(_recent.known) > MOST_RECENT:
            _recent.known.popitem(last=False)
    _recent.known.move_to_end(key)
    found: Result = _recent.known[key][1]
    return found


def friction_bases(robot: Robot, samples: Samples) -> Floats:
    """(n, M, k) rotor inertia, viscous, dry friction and offset of each joint, orthonormal; zeros where dependent.

    Joints that the robot model couples also have the columns of the shared motor.
    """
    sources = (robot, samples.dq, samples.ddq, samples.sign)
    return _once("friction", sources, lambda: _friction_bases(robot, samples))


def _friction_bases(robot: Robot, samples: Samples) -> Floats:
    columns = np.stack([samples.ddq.T, samples.dq.T, samples.sign.T, np.ones_like(samples.dq.T)], axis=2)
    for coupling in robot.couplings:
        ratios = np.array([coupling.ratios.get(name, 0.0) for name in robot.joint_names])
        speed = samples.dq @ ratios
        motor = np.column_stack([samples.ddq @ ratios, speed, np.sign(speed)])
        columns = np.concatenate([columns, (ratios != 0.0)[:, None, None] * motor], axis=2)
    length = np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-300)
    Q, R = np.linalg.qr(columns / length)  # the singular values are those of the small triangles
    U, s, _ = svd(R, full_matrices=False)
    return np.asarray(Q @ (U * (s > 1e-8)[:, None, :]))


def residuals(robot: Robot, samples: Samples) -> tuple[float, float]:
    """Relative residuals of the free fit and of the prior fit; the latter is 1 if the masses are placeholders."""
    return free_residual(robot, samples), prior_residual(robot, samples) if has_prior(robot) else 1.0


def free_residual(robot: Robot, samples: Samples) -> float:
    """Relative rms residual with all parameters of `with_friction(robot)` fitted so that friction drives no joint."""
    return relative_size(float(np.sum(_free_rest(robot, samples) ** 2)), samples)


def _free_rest(robot: Robot, samples: Samples) -> Floats:
    """Residual (M, u) of the weighted torques in the free fit; a first fit gives the weights of the joints."""
    equations = narrow_equations(robot, samples)
    used = np.flatnonzero(samples.used)
    tau = samples.effort[:, used] * samples.weight[used]
    along = equations.along(tau, samples.weight, used)
    products = equations.products[used]
    # the normal equations are accurate enough to tell 1e-4 from 1e-3, and ten times as fast
    scale = np.sqrt(samples.weight[used] ** 2 @ np.diagonal(products, axis1=1, axis2=2))
    seen = np.flatnonzero(scale > 1e-9 * scale.max())
    shrink, brakes = 1.0 / scale[seen], brake_powers(samples, equations.columns, equations.width)
    brakes, both = brakes[:, seen] * shrink, np.outer(shrink, shrink)
    left = np.ones(used.size)
    for _ in range(2):
        whole = ((samples.weight[used] ** 2 / left) @ products.reshape(used.size, -1)).reshape(products.shape[1:])
        G = (whole if seen.size == len(whole) else whole[np.ix_(seen, seen)]) * both
        theta = np.zeros(scale.size)
        theta[seen] = shrink * _solve_braking(G, (along @ (1.0 / left))[seen] * shrink, brakes)
        rest = tau - equations.torques(theta)[:, used] * samples.weight[used]
        left = np.maximum(np.mean(rest**2, axis=0), FINEST**2)
    return rest


def unspent(robot: Robot, samples: Samples) -> float:
    """Share of the independent values of the residual that the free fit leaves: 1 for many, 0.1 or more.

    Errors that last have few of them. A fit then takes up much of these errors by chance, and another motion or another
    torque may take up more than the right one.
    """
    rest = _free_rest(robot, samples)
    trusted = samples.trust[samples.used] > 0.0
    values = float(independent_values(rest, np.broadcast_to(trusted, rest.shape)).sum())
    unknowns = narrow_equations(robot, samples).columns.size
    return max(1.0 - SPENT * unknowns / max(values, 1e-300), 0.1)


def equations_of(robot: Robot, samples: Samples) -> FreeEquations:
    """The equations of a motion, which hypotheses about torques alone share."""
    model = with_friction(robot, tuple(samples.gravity.tolist()))
    return of_motion("equations", model, samples, lambda: FreeEquations.of(_free_regressor(model, samples)))


def narrow_equations(robot: Robot, samples: Samples) -> FreeEquations:
    """The same equations by independent columns; by all under another gravity, which may make more independent."""
    model = with_friction(robot)
    known = IndependentColumns.of(model)
    if not np.array_equal(samples.gravity, robot.gravity) or not known.hold_friction:
        return equations_of(robot, samples)

    def make() -> FreeEquations:
        Y = regressor(model, samples.q, samples.dq, samples.ddq, columns=known.columns.tolist())
        return FreeEquations.of_independent(with_smooth_sign(Y, samples.sign, known.columns), known)

    return of_motion("narrow equations", model, samples, make)


def brake_powers(samples: Samples, columns: NDArray[np.int64], width: int) -> Floats:
    """(n', c) power that a unit of each of some parameters takes from each joint that counts."""
    joints = samples.q.shape[1]
    power = np.zeros((joints, width))
    place, first = np.arange(joints), 10 * joints + 4 * np.arange(joints)
    power[place, first + 1] = np.mean(samples.dq**2, axis=0)
    power[place, first + 2] = np.mean(samples.dq * samples.sign, axis=0)
    return np.asarray(power[samples.trust > 0.0][:, columns])


def _solve_braking(G: Floats, b: Floats, brakes: Floats) -> Floats:
    """Solve normal equations (p, p) and (p,) with friction that drives no joint: where it would, it is zero."""
    return hold_driven(solve_singular(G, np.column_stack([b, brakes.T])), brakes)


def hold_driven(moves: Floats, brakes: Floats) -> Floats:
    """Parameters (p,) with friction that drives no joint, from solutions (p, 1 + r) of the normal equations.

    Unconstrained friction would explain a flipped torque by driving the joint, which no friction does. The equations
    are factorised once: powers (r, p) are held at zero by forces ``G^-1 brakes.T`` (Lagrange's multipliers).
    """
    free, forces = moves[:, 0], moves[:, 1:]
    resting, theta = np.zeros(len(brakes), dtype=bool), free
    if not (brakes @ theta < 0.0).any():
        return theta
    powers, across = brakes @ free, brakes @ forces
    while (driven := (brakes @ theta < 0.0) & ~resting).any():
        resting |= driven
        held = np.flatnonzero(resting)
        theta = free - forces[:, held] @ np.linalg.solve(across[np.ix_(held, held)], powers[held])
    return theta


def dissipation(robot: Robot, samples: Samples) -> tuple[Floats, Floats]:
    """(n,) power that friction takes from each joint in the free fit, over rms torque times rms speed, and its error.

    Friction brakes. A joint that it drives has the wrong sign of its torque or of its motion. The standard error (n,)
    is that of the jackknife over blocks of time, which includes noise correlated in time and everything else that the
    equations do not explain. Both are 0 for joints that are not used.
    """
    joints, count = samples.q.shape[1], samples.q.shape[0]
    rows, tau = free_rows(robot, samples)
    scale = np.linalg.norm(rows, axis=0)
    seen = scale > 1e-9 * scale.max()
    joined = np.column_stack([rows[:, seen] / scale[seen], tau])
    edges = int(samples.used.sum()) * np.linspace(0, count, POWER_BLOCKS + 1).astype(int)
    parts = np.array([joined[start:stop].T @ joined[start:stop] for start, stop in pairwise(edges.tolist())])
    viscous, dry = np.mean(samples.dq**2, axis=0), np.mean(samples.dq * samples.sign, axis=0)
    size = samples.effort.std(axis=0) * np.sqrt(viscous)

    def power(total: Floats) -> Floats:
        theta = np.zeros(scale.size)
        theta[seen] = solve_singular(total[:-1, :-1], total[:-1, -1]) / scale[seen]
        values = theta[10 * joints : 14 * joints].reshape(joints, 4)
        taken = values[:, 1] * viscous + values[:, 2] * dry
        return np.where(samples.trust > 0.0, taken / np.maximum(size, 1e-300), 0.0)

    whole = parts.sum(axis=0)
    without = np.array([power(whole - part) for part in parts])
    return power(whole), np.asarray(np.sqrt((POWER_BLOCKS - 1) * np.var(without, axis=0)))


def relative_size(squares: float, samples: Samples) -> float:
    """Root of a sum of weighted squares relative to the sum of the weighted squares of the torques."""
    return float(np.sqrt(squares / max(samples.q.shape[0] * float(samples.trust.sum()), 1e-300)))


def free_rows(robot: Robot, samples: Samples) -> tuple[Floats, Floats]:
    """Weighted regressor (M u, p) and torque (M u,) of the u joints in use, sample after sample."""
    model = with_friction(robot, tuple(samples.gravity.tolist()))
    Y = _free_regressor(model, samples)
    rows = (Y * samples.weight[None, :, None])[:, samples.used].reshape(-1, Y.shape[2])
    return rows, (samples.effort * samples.weight)[:, samples.used].reshape(-1)


def _free_regressor(model: Robot, samples: Samples) -> Floats:
    """(M, n, p) regressor of `with_friction`, with smoothed signs."""
    return of_motion("regressor", model, samples, lambda: with_smooth_sign(
        regressor(model, samples.q, samples.dq, samples.ddq), samples.sign
    ))  # fmt: skip


def body_columns(robot: Robot, samples: Samples) -> Floats:
    """(M u, 4) torque per unit of the first moments and the mass of the last body, sample after sample [N m or N]."""
    model = with_friction(robot, tuple(samples.gravity.tolist()))
    first = 10 * (robot.dof - 1)
    Y = regressor(model, samples.q, samples.dq, samples.ddq)[:, samples.used, first + 6 : first + 10]
    return np.ascontiguousarray(Y.reshape(-1, 4))


def solve_singular(G: Floats, b: Floats) -> Floats:
    """Short solutions of singular normal equations (..., p, p); the damping is too small to change the residual."""
    damped = G.copy()
    place = np.arange(G.shape[-1])
    damped[..., place, place] += 1e-9 * np.maximum(np.trace(G, axis1=-2, axis2=-1), 1e-300)[..., None]
    return np.asarray(np.linalg.solve(damped, b))


def normal_equations(robot: Robot, samples: Samples, blocks: int) -> tuple[Floats, list[Floats]]:
    """Weighted residual (M, u) of the free fit, and per block of time the cross products (p + 1, p + 1) with torques.

    Each joint's equations are weighted by their residual, so that a joint with little noise counts for more.
    """
    rows, tau = free_rows(robot, samples)
    scale = np.linalg.norm(rows, axis=0)
    seen = scale > 1e-9 * scale.max()
    joined = np.column_stack([rows[:, seen] / scale[seen], tau])
    whole = joined.T @ joined
    residual = tau - joined[:, :-1] @ solve_singular(whole[:-1, :-1], whole[:-1, -1])
    joints = int(samples.used.sum())
    residual = residual.reshape(-1, joints)
    left = np.sqrt(np.mean(residual**2, axis=0))
    joined /= np.tile(np.maximum(left, 1e-3), samples.q.shape[0])[:, None]
    edges = joints * np.linspace(0, samples.q.shape[0], blocks + 1).astype(int)
    parts = [joined[start:stop].T @ joined[start:stop] for start, stop in pairwise(edges.tolist())]
    return residual, parts


def rest_of_fit(parts: list[Floats]) -> float:
    """Residual sum of squares of a free fit to blocks of `normal_equations`."""
    total = np.sum(parts, axis=0)
    G, b, square = total[:-1, :-1], total[:-1, -1], total[-1, -1]
    return max(float(square - b @ solve_singular(G, b)), 1e-12 * float(square))


def mass_torques(robot: Robot, equations: FreeEquations) -> Floats:
    """(M, n) torques of the robot's own masses [N m or N]."""
    masses = np.zeros(equations.width)
    masses[: 10 * robot.dof] = robot.inertial_vector
    return equations.torques(equations.values(masses))


def prior_residual(robot: Robot, samples: Samples) -> float:
    """Relative rms residual with the robot's own masses; friction and rotor inertia are fitted joint by joint."""
    rest = _prior_rest(robot, samples)
    return relative_size(float(np.sum(rest**2)), samples)


def _prior_rest(robot: Robot, samples: Samples) -> Floats:
    """Residual (M, u) of the weighted torques in the fit with the robot's own masses."""
    own = mass_torques(robot, narrow_equations(robot, samples))  # the free fit has these equations, too
    difference = ((samples.effort - own) * samples.weight).T[samples.used, :, None]
    Q = friction_bases(robot, samples)[samples.used]
    return np.asarray((difference - Q @ (Q.swapaxes(1, 2) @ difference))[:, :, 0].T)


def block_losses(robot: Robot, samples: Samples, blocks: int) -> Floats:
    """(2, blocks) negative log-likelihood of each block of time in the free fit and in the prior fit.

    The noise of a joint is its residual. So a joint that is explained well counts as much as one that is not, whereas a
    sum of squares is dominated by the worst joint. The prior row is zero if the masses are placeholders.
    """
    free = _losses(_free_rest(robot, samples), samples, blocks)
    prior = _losses(_prior_rest(robot, samples), samples, blocks) if has_prior(robot) else np.zeros(blocks)
    return np.stack([free, prior])


def _losses(rest: Floats, samples: Samples, blocks: int) -> Floats:
    """(blocks,) negative log-likelihood of a residual (M, u)."""
    variance = np.maximum(np.mean(rest**2, axis=0), FINEST**2)
    losses = 0.5 * (rest**2 / variance + np.log(variance)) @ samples.trust[samples.used]
    return np.asarray(np.add.reduceat(losses, np.linspace(0, len(losses), blocks + 1).astype(int)[:-1]))
