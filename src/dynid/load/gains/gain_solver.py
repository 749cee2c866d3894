"""Gains of drives and the load that calibrates them, from the equations of all joints together.

The currents of joint j show ``load / gain_j``: ten numbers of which some are uncertain or open. With the arm eliminated
and the noise, which is correlated in time, whitened they are

    b_j = A_j load / gain_j + noise of unit variance

All joints share the load. The equations are linear in the load and in one over the gains, not in both: a common factor
of all gains and the load shows nowhere but in the mass. What was known before counts as more equations: gains as
stated, the weighed mass, and moments of inertia of a plausible size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from dynid.arrays import Floats
from dynid.decompositions import eigh, lstsq, svd
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.load.load_solver import inertia_prior, run_spectral_gram, solve_minimum_norm, student_factor
from dynid.load.payload import PayloadProblem
from dynid.logs.drives import CurrentGains

CLEAR = 3.0
"""Standard deviations by which a slope must differ from zero to count as a gain; convention."""
RESOLUTION = 1e-9
"""Smallest relative singular value of the scaled equations that counts as determined; rounding errors are smaller."""
PRIOR_ROUNDS = 3
"""Rounds between the load and the plausible size of its moments of inertia; convention: it changes little after two."""
WEAK_SHARE = 0.8
"""Standard deviation of a gain, relative to the stated one, from which on the load says little; convention."""
WEAK_STD = 0.1
"""Relative standard deviation of a gain from which on the load says little where none is stated; convention: gains of
catalogues are about as good."""
CONTRADICTS = 4.0
"""Standard deviations by which a gain must leave the stated one to contradict it; convention."""
MOMENTS, ALL_BUT_MASS = 6, 9
"""How many of the ten parameters of a load are moments of inertia, and moments of any order."""
TINY = 1e-300
"""Keeps quotients finite."""


@dataclass(frozen=True, slots=True, eq=False)
class JointEquations:
    """What one joint shows of ``load / gain``, in units of the noise."""

    A: Floats
    """(r, 10)"""
    b: Floats
    """(r,)"""


@dataclass(frozen=True, slots=True, eq=False)
class InverseGains:
    """One over the gains, which is what currents are linear in."""

    values: Floats
    """(n,) [A/(N m) or A/N]"""
    std: Floats
    """(n,) infinite where the data and the stated gains leave it open"""
    cost: float
    """Half the sum of the squared residuals, in units of the noise"""


def joint_equations(problem: PayloadProblem, joint: int) -> JointEquations:
    """Eliminate the arm from the equations of one joint, and whiten what is left for noise correlated in time."""
    alone = np.eye(problem.robot.dof)[joint]
    k = len(problem.prior)
    factors = [information.weight(alone) for information, _ in problem.parts]
    designs = [problem.design(is_loaded) for _, is_loaded in problem.parts]
    rows = np.vstack([f.R @ problem.base.grouping @ design for f, design in zip(factors, designs, strict=True)])
    target = np.concatenate([factor.z for factor in factors])
    values, covariance, undetermined = solve_minimum_norm(rows, target, RESOLUTION)
    squares = float(np.sum((target - rows @ values) ** 2)) + sum(factor.residual for factor in factors)
    spare = max(1.0, float(problem.samples[joint]) - len(values) + np.count_nonzero(undetermined))
    std = max(float(np.sqrt(squares / spare)), 1e-150)
    noise = np.where(alone > 0.0, std, np.inf)
    gram = np.sum([
        run_spectral_gram(problem.robot, run, problem.design(is_loaded), values, covariance * std**2, noise)
        for run, is_loaded in problem.runs
    ], axis=0)  # fmt: skip
    length = np.maximum(np.linalg.norm(rows[:, :k], axis=0), TINY)
    of_arm = lstsq(rows[:, :k] / length, np.column_stack([rows[:, k:], target]), RESOLUTION)  # the arm's share
    left = (np.column_stack([rows[:, k:], target]) - (rows[:, :k] / length) @ of_arm) / std
    apart = np.vstack([-of_arm[:, :10] / length[:, None], np.eye(10)])
    return _whiten(left[:, :10], left[:, 10], apart.T @ gram @ apart, spare)


def _whiten(rows: Floats, target: Floats, gram: Floats, spare: float) -> JointEquations:
    """Equations of unit noise in every direction that the rows show.

    Args:
        rows: (m, 10) in units of white noise.
        target: (m,)
        gram: (10, 10) covariance of ``rows^T noise``; ``rows^T rows`` for white noise.
        spare: Degrees of freedom of the noise.
    """
    length = np.linalg.norm(rows, axis=0)
    scale = np.where(length > 1e-12 * length.max(initial=0.0), length, np.inf)  # what rounding left shows nothing
    U, s, Vt = svd(rows / scale)
    good = s > RESOLUTION * max(float(s[0]), TINY)
    shown = Vt[good] / scale
    size = s[good]
    power, axes = eigh(shown @ gram @ shown.T / np.outer(size, size))
    growth = float(np.mean(power)) if len(power) else 1.0
    if growth <= 1.0:
        power, axes, growth = np.ones(len(size)), np.eye(len(size)), 1.0
    spread = np.sqrt(np.maximum(power, 1e-6 * growth)) * student_factor(spare / growth)
    side = U[:, : len(s)][:, good].T @ target
    unscaled = np.where(np.isfinite(scale), scale, 0.0)
    return JointEquations(axes.T @ (size[:, None] * Vt[good] * unscaled) / spread[:, None], axes.T @ side / spread)


def start_loads(equations: list[JointEquations], mass: float, stated: CurrentGains | None) -> list[Floats]:
    """First loads (10,): by the stated gains; or else at the link's origin, and by every joint that shows the mass.

    Raises:
        DataError: No gain is stated, and the motion does not separate the mass from the rest of the load in any joint.
    """
    if stated is not None and is_stated(stated).any():
        known = np.flatnonzero(is_stated(stated))
        rows = np.vstack([equations[j].A / stated.gain[j] for j in known])
        side = np.concatenate([equations[j].b for j in known]) - rows[:, 9] * mass
        return [np.append(solve_minimum_norm(rows[:, :9], side, RESOLUTION)[0], mass)]
    alone = [solve_minimum_norm(joint.A, joint.b, RESOLUTION) for joint in equations]
    clear = np.array([0.0 if u[9] else abs(v[9]) / max(float(np.sqrt(C[9, 9])), TINY) for v, C, u in alone])
    if clear.max() < CLEAR:
        raise DataError(
            "no joint shows the mass of the load apart from the rest of it",
            remedy="Move the first joints, with the arm stretched and bent, give the centre of mass as well, or state "
            'the gains with their uncertainty in the channel map: gain = "13.3 +- 0.7".',
        )
    by_joints = [alone[j][0] * (mass / alone[j][0][9]) for j in np.flatnonzero(clear > 1.0)]
    return [mass * np.eye(10)[9], *by_joints]


def fit_inverse_gains(
    equations: list[JointEquations], load: Floats, *, stated: CurrentGains | None, free: int
) -> InverseGains:
    """Fit one over the gains of all joints, together with what is not known of the load.

    Args:
        equations: Of each joint.
        load: (10,) the load; a first guess of what is not known.
        stated: Gains as they were known before; a standard deviation of zero counts as none.
        free: How many parameters of the load are not known, the first ones: 0, `MOMENTS` of inertia, or `ALL_BUT_MASS`.
    """
    n = len(equations)
    expected, trust = np.zeros(n), np.zeros(n)  # one over each gain, and one over its standard deviation
    if stated is not None:
        known = is_stated(stated)
        expected[known] = 1.0 / stated.gain[known]
        trust[known] = stated.gain[known] ** 2 / stated.stderr[known]
    pushes = [joint.A @ load for joint in equations]
    alone = [float(p @ joint.b) / max(float(p @ p), TINY) for p, joint in zip(pushes, equations, strict=True)]
    x = np.append(np.where(trust > 0.0, expected, alone), load[:free])
    centre = np.append(expected, load[:free] if free == MOMENTS else np.zeros(free))
    for _ in range(PRIOR_ROUNDS if free else 1):
        vector = np.append(x[n:], load[free:])
        before = np.concatenate([trust, inertia_prior(vector)[:free]])

        def residual(x: Floats, before: Floats = before) -> Floats:
            now = np.append(x[n:], load[free:])
            data = [s * (joint.A @ now) - joint.b for s, joint in zip(x[:n], equations, strict=True)]
            return np.concatenate([*data, before * (x - centre)])

        def slopes(x: Floats, before: Floats = before) -> Floats:
            now = np.append(x[n:], load[free:])
            of_gains = [np.outer(joint.A @ now, np.eye(n)[j]) for j, joint in enumerate(equations)]
            of_load = [s * joint.A[:, :free] for s, joint in zip(x[:n], equations, strict=True)]
            return np.vstack([np.hstack([np.vstack(of_gains), np.vstack(of_load)]), np.diag(before)])

        best = least_squares(residual, x, slopes, x_scale="jac", xtol=1e-12, ftol=1e-12, gtol=1e-12)
        x = best.x
    rows = slopes(x)
    _, covariance, undetermined = solve_minimum_norm(rows, np.zeros(len(rows)), RESOLUTION)
    std = np.where(undetermined[:n], np.inf, np.sqrt(np.diag(covariance)[:n]))
    return InverseGains(x[:n], std, float(best.cost))


def is_stated(stated: CurrentGains) -> NDArray[np.bool_]:
    """(n,) which gains have a standard deviation: one without counts as exact elsewhere, and is to be found here."""
    return np.asarray((stated.stderr > 0.0) & np.isfinite(stated.stderr) & np.isfinite(stated.gain))


def judge_gains(
    found: InverseGains, names: tuple[str, ...], stated: CurrentGains | None, *, remedy: str
) -> tuple[Finding, ...]:
    """Say which gains the load hardly determines, and which stated ones it contradicts."""
    share = found.std / np.maximum(np.abs(found.values), TINY)
    known = np.zeros(len(names), dtype=bool) if stated is None else is_stated(stated)
    before = np.full(len(names), WEAK_STD)
    away = np.zeros(len(names))
    if stated is not None and known.any():
        before[known] = stated.stderr[known] / np.abs(stated.gain[known])
        learnt = np.sqrt(np.maximum(before**2 - (found.std * stated.gain) ** 2, TINY))
        away[known] = (np.abs(found.values * stated.gain - 1.0) / learnt)[known]
        before[known] *= WEAK_SHARE
    findings = [
        Finding(
            code="gain-contradiction", severity="warning", where="drives", joint=names[j],
            message=f"the load contradicts the stated gain by {away[j]:.1f} standard deviations",
            remedy="Check the mass, the link that carries the load, and the stated gain and its uncertainty.",
            evidence={"standard deviations": float(away[j])},
        )
        for j in np.flatnonzero(away > CONTRADICTS)
    ]  # fmt: skip
    for weak, message in (
        (known & (share > before), "the load hardly tells more than the stated gains of {}"),
        (~known & (share > before), f"the load does not determine the gains of {{}} to {100 * WEAK_STD:.0f} %"),
    ):
        if weak.any():
            findings.append(
                Finding(
                    code="gains-open", severity="warning", where="drives",
                    message=message.format(", ".join(np.array(names)[weak])), remedy=remedy,
                )
            )  # fmt: skip
    return tuple(findings)
