"""Drive gains [N m/A or N/A]: how much joint torque a motor current stands for, calibrated with known loads.

The currents of joint j, of a run with a load and one without, show ``load / gain_j``: with the arm eliminated, in units
of the noise,

    b_j = A_j load / gain_j + noise of unit variance

All joints share the load. The equations are linear in the load and in one over the gains, not in both: a common factor
of all gains and the load shows nowhere but in the mass. What was known before counts as more equations: gains as
stated, the weighed mass, and moments of inertia of a plausible size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from dynid.arrays import Bools, Floats
from dynid.decompositions import svd
from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding
from dynid.load.load import SURE, remark
from dynid.load.load_solver import (
    RESOLUTION,
    BlockEquations,
    block_meat,
    inertia_prior,
    solve_minimum_norm,
    student_factor,
)
from dynid.load.payload import Runs, payload_problem
from dynid.logs.drives import CurrentGains
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.tables import Table

PRIOR_ROUNDS = 3
"""Rounds between the load and the plausible size of its moments of inertia; convention: it changes little after two."""
WEAK_SHARE, WEAK_STD = 0.8, 0.1
"""Standard deviation of a gain, over the stated one or, without one, over the gain, from which on the load says little;
convention: gains of catalogues are known to 10 %."""
MOMENTS, ALL_BUT_MASS = 6, 9
"""How many of the ten parameters of a load are moments of inertia, and moments of any order."""
HEAVIEST_KG = 1000.0
"""Mass of a load from which on it is in grams [kg] (convention: no arm carries a tonne at its drives' calibration)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriveGains:
    """Calibrated gains with their uncertainty: ``torque = gain * current``."""

    gain: Floats
    """(n,) [N m/A or N/A]; NaN for a joint on which the known load does not act"""
    stderr: Floats
    """(n,) [N m/A or N/A]; infinite for such a joint"""
    joint_names: tuple[str, ...]
    """(n,)"""
    unit: str = "N m/A"
    """Unit of the gains: N m/A, N/A for slides; 1 where measured torques, and not currents, were scaled."""
    findings: tuple[Finding, ...] = ()
    """What the load does not determine, and stated gains that it contradicts."""

    @property
    def map_line(self) -> str:
        """The line of a channel map that states these gains, with ``?`` for those that stay unknown."""
        known = np.isfinite(self.gain) & np.isfinite(self.stderr)
        words = [
            f'"{gain:.4g} +- {std:.2g}"' if seen else '"?"'
            for gain, std, seen in zip(self.gain.tolist(), self.stderr.tolist(), known.tolist(), strict=True)
        ]
        return f"gain = [{', '.join(words)}]"

    def __str__(self) -> str:
        """A table of the gains."""
        rows = list(zip(self.joint_names, self.gain.tolist(), self.stderr.tolist(), strict=True))
        return Table.of(["joint", f"gain [{self.unit}]", "std"], rows).to_text()


def identify_drive_gains(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs,
    mass_kg: float,
    com: ArrayLike | None = None,
    link: str | None = None,
    stated: CurrentGains | None = None,
) -> DriveGains:
    """Calibrate drives with a load that was weighed.

    Moments of inertia, and the centre of mass where it is not given, are estimated with the gains: all joints share
    them, and the mass sets the common scale.

    Args:
        robot: Geometry and terms; its parameter values do not matter.
        loaded: Experiments with the load; `effort` holds currents [A], or torques of doubtful scale.
        unloaded: Experiments without the load; the motion may be another one.
        mass_kg: Mass of the load [kg].
        com: (3,) its centre of mass in the link's frame [m].
        link: Link that carries the load; by default the link of the last body.
        stated: Gains with their standard deviations as they were known before, which count together with the runs.

    Raises:
        DataError: The motion does not separate the mass from the rest of the load in any joint.

    Example:
        >>> gains = dynid.load.identify_drive_gains(robot, loaded=loaded, unloaded=run, mass_kg=2.0, com=load.com)
        >>> gains.gain.shape
        (3,)
    """
    if not 0.0 < mass_kg < HEAVIEST_KG:
        grams = f": {mass_kg / 1000.0:g}." if mass_kg > 0.0 else "."
        raise ArgumentError(f"the load has a mass of {mass_kg} kg", remedy=f"Weigh the load, and give kilograms{grams}")
    if unloaded is None or unloaded == []:
        raise ArgumentError("drive gains need a run without the load", remedy="Give unloaded.")
    problem = payload_problem(robot, loaded, unloaded, link=link)
    equations = problem.equations()
    joints = [_joint_equations(equations, joint) for joint in range(robot.dof)]
    remedy = "Use a heavier load, or more motion."
    if com is not None:
        starts, free = [Inertia.from_com(mass_kg, com, np.zeros((3, 3))).vector], MOMENTS
    else:  # a gain without end in some joints is a minimum, too
        starts, free = _start_loads(joints, mass_kg, stated), ALL_BUT_MASS
        remedy = "Give the centre of mass as well (--com), or use a heavier load or more motion."
    fits = [_fit_inverse_gains(joints, load, stated, free) for load in starts]
    return _turn_over(min(fits, key=lambda fit: fit.cost), robot.joint_names, stated, remedy)


@dataclass(frozen=True, slots=True, eq=False)
class _InverseGains:
    """One over the gains, which is what currents are linear in."""

    values: Floats
    """(n,) [A/(N m) or A/N]"""
    std: Floats
    """(n,) infinite where the data and the stated gains leave it open"""
    cost: float
    """Half the sum of the squared residuals, in units of the noise"""


def _joint_equations(equations: BlockEquations, joint: int) -> tuple[Floats, Floats]:
    """A (r, 10) and b (r,): what one joint shows of ``load / gain`` in units of the noise, with the arm eliminated."""
    blocks, rows = [block[joint] for block in equations.blocks], equations.channel(joint)
    values, root, _ = solve_minimum_norm(rows[:, :-1], rows[:, -1])
    spare = max(float(equations.counts[joint]) - root.shape[1], 1.0)
    std = max(float(np.linalg.norm(rows @ np.append(values, -1.0)) / np.sqrt(spare)), 1e-150)
    # the covariance of load / gain is ``L L^T`` times the noise; directions in which it is zero are open
    length = np.maximum(np.linalg.norm(rows[:, :10], axis=0), 1e-300)
    U, s, Vt = svd(root[:10] * length[:, None], full_matrices=False)
    good = s > RESOLUTION * s[0]
    A = U[:, good].T / s[good, None] * length
    turn = svd(A / np.maximum(np.linalg.norm(A, axis=0), 1e-300), full_matrices=False)[0].T
    A, alone = turn @ A / std, std * root @ (turn @ Vt[good]).T  # the load's directions, with the arm's answer to them
    meat, freedom = block_meat([rows / std for rows in blocks], values, alone)
    power = np.maximum(np.diag(meat), max(float(np.diag(meat).mean()), 1.0))  # few blocks hardly tell directions apart
    noise = np.sqrt(power) * student_factor(np.array(np.median(freedom[:10])))
    return A / noise[:, None], A @ values[:10] / noise


def _start_loads(joints: list[tuple[Floats, Floats]], mass: float, stated: CurrentGains | None) -> list[Floats]:
    """First loads (10,): by the stated gains; or else at the link's origin, and by every joint that shows the mass."""
    if stated is not None and _is_stated(stated).any():
        known = np.flatnonzero(_is_stated(stated))
        rows = np.vstack([joints[j][0] / stated.gain[j] for j in known])
        side = np.concatenate([joints[j][1] for j in known]) - rows[:, 9] * mass
        return [np.append(solve_minimum_norm(rows[:, :9], side)[0], mass)]
    alone = [solve_minimum_norm(A, b) for A, b in joints]
    clear = np.array([0.0 if u[9] else abs(v[9]) / max(float(np.linalg.norm(L[9])), 1e-300) for v, L, u in alone])
    if clear.max() < SURE:
        raise DataError(
            "no joint shows the mass of the load apart from the rest of it",
            remedy="Move the first joints, with the arm stretched and bent, give the centre of mass as well, or state "
            'the gains with their uncertainty in the channel map: gain = "13.3 +- 0.7".',
        )
    by_joints = [alone[j][0] * (mass / alone[j][0][9]) for j in np.flatnonzero(clear > 1.0)]
    return [mass * np.eye(10)[9], *by_joints]


def _fit_inverse_gains(
    joints: list[tuple[Floats, Floats]], load: Floats, stated: CurrentGains | None, free: int
) -> _InverseGains:
    """Fit one over the gains of all joints, together with the first `free` parameters of the load, which it guesses."""
    n = len(joints)
    expected, trust = np.zeros(n), np.zeros(n)  # one over each gain, and one over its standard deviation
    if stated is not None:
        known = _is_stated(stated)
        expected[known] = 1.0 / stated.gain[known]
        trust[known] = stated.gain[known] ** 2 / stated.stderr[known]
    alone = [float((A @ load) @ b) / max(float((A @ load) @ (A @ load)), 1e-300) for A, b in joints]
    x = np.append(np.where(trust > 0.0, expected, alone), load[:free])
    centre = np.append(expected, load[:free] if free == MOMENTS else np.zeros(free))
    for _ in range(PRIOR_ROUNDS):
        before = np.concatenate([trust, inertia_prior(np.append(x[n:], load[free:]))[:free]])

        def residual(x: Floats, before: Floats = before) -> Floats:
            now = np.append(x[n:], load[free:])
            return np.concatenate([*(g * (A @ now) - b for g, (A, b) in zip(x, joints)), before * (x - centre)])

        def slopes(x: Floats, before: Floats = before) -> Floats:
            now = np.append(x[n:], load[free:])
            rows = [np.hstack([np.outer(A @ now, np.eye(n)[j]), x[j] * A[:, :free]]) for j, (A, _) in enumerate(joints)]
            return np.vstack([*rows, np.diag(before)])

        best = least_squares(residual, x, slopes, method="lm", x_scale="jac", xtol=1e-9, ftol=1e-9, gtol=1e-9)
        x = best.x
    rows = slopes(x)
    _, root, undetermined = solve_minimum_norm(rows, np.zeros(len(rows)))
    return _InverseGains(x[:n], np.where(undetermined, np.inf, np.linalg.norm(root, axis=1))[:n], float(best.cost))


def _is_stated(stated: CurrentGains) -> Bools:
    """(n,) which gains have a standard deviation: one without counts as exact elsewhere, and is to be found here."""
    return np.asarray((stated.stderr > 0.0) & np.isfinite(stated.stderr) & np.isfinite(stated.gain))


def _turn_over(found: _InverseGains, names: tuple[str, ...], stated: CurrentGains | None, remedy: str) -> DriveGains:
    """The gains; each standard deviation is that of the longer side of the interval, within the stated one."""
    share = found.std / np.maximum(np.abs(found.values), 1e-300)  # relative standard deviation
    before = np.full(len(names), np.inf)
    if stated is not None:
        before = np.where(_is_stated(stated), stated.stderr / np.abs(stated.gain), np.inf)
    is_open = share * SURE > 1.0
    longer = share / np.maximum(1.0 - 1.96 * share, 1e-300)
    gain = np.where(is_open, np.nan, 1.0 / np.where(is_open, 1.0, found.values))
    stderr = np.where(is_open, np.inf, np.abs(gain) * np.minimum(longer, np.maximum(before, share)))
    findings = tuple(_judge(found, np.array(names), share, before, stated, remedy))
    return DriveGains(gain=gain, stderr=stderr, joint_names=names, findings=findings)


def _judge(
    found: _InverseGains,
    names: np.ndarray[tuple[int], np.dtype[np.str_]],
    share: Floats,
    before: Floats,
    stated: CurrentGains | None,
    remedy: str,
) -> Iterator[Finding]:
    """Say which gains the load hardly determines, and which stated ones it contradicts."""
    known = np.isfinite(before)
    if stated is not None and known.any():
        learnt = np.sqrt(np.maximum(before**2 - (found.std * stated.gain) ** 2, 1e-300))
        away = np.where(known, np.abs(found.values * stated.gain - 1.0) / learnt, 0.0)
        for j in np.flatnonzero(away > SURE):
            message = f"the load contradicts the stated gain by {away[j]:.1f} standard deviations"
            check = "Check the mass, the link that carries the load, and the stated gain and its uncertainty."
            said = remark("drive-gains", message, check, severity="warning", where="drives")
            yield replace(said, joint=str(names[j]), evidence={"standard deviations": float(away[j])})
    for weak, words in (
        (known & (share > WEAK_SHARE * before), "the load hardly tells more than the stated gains of {}"),
        (~known & (share > WEAK_STD), f"the load does not determine the gains of {{}} to {100 * WEAK_STD:.0f} %"),
    ):
        if weak.any():
            message = words.format(", ".join(names[weak]))
            yield remark("drive-gains", message, remedy, severity="warning", where="drives")
