"""Drive gains [N m/A or N/A]: the joint torque per motor current, calibrated with a weighed load.

`identify_drive_gains` is the main function. Per unit of gain, the current of joint j is linear in the arm's parameters
and in the ten parameters of the load. So a run with the load and one without determine ``load / gain_j`` for each joint
(`_joint_equations`). With the arm eliminated, and divided by the standard deviation of the noise, these equations are

    b_j = A_j load / gain_j + noise of unit variance          A_j (r, 10), b_j (r,)

All joints share the load. `_fit_inverse_gains` solves for 1 / gain_j and the load together: a bilinear problem, solved
by Levenberg-Marquardt. A common factor of gains and load remains free; the weighed mass, or stated gains, fix it.
Prior knowledge adds equations: stated gains with their standard deviations, and moments of inertia of plausible size.

Shapes: n joints; k unknowns, which are the ten of the load and then the base parameters of the arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from dynid.array_types import Floats
from dynid.decompositions import one_blas_thread, svd
from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding
from dynid.logs.drives import CurrentGains
from dynid.payload.load import LARGE_SHARE, SIGNIFICANT_STD, SMALL_SHARE, remark
from dynid.payload.load_solver import (
    ROUNDS,
    BlockEquations,
    inertia_prior,
    solve_blocks,
    solve_minimum_norm,
)
from dynid.payload.payload import Runs, payload_problem
from dynid.robot.check import HEAVIEST_KG
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import SAME, TINY
from dynid.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriveGains:
    """Calibrated gains with their uncertainty: ``torque = gain * current``."""

    gain: Floats
    """(n,) gains [N m/A or N/A]; NaN for a joint whose gain the load does not determine."""
    stderr: Floats
    """(n,) standard deviations [N m/A or N/A]; infinite for such a joint."""
    joint_names: tuple[str, ...]
    """(n,) names of the joints."""
    unit: str = "N m/A"
    """Unit of the gains: N m/A, N/A for slides; 1 where measured torques, and not currents, were scaled."""
    findings: tuple[Finding, ...] = ()
    """Gains that the load does not determine, and stated gains that it contradicts."""

    @property
    def map_line(self) -> str:
        """The line that states these gains in a channel map, the file that names a log's columns; ``?`` if unknown."""
        pairs = zip(self.gain.tolist(), self.stderr.tolist(), strict=True)
        words = [f'"{gain:.4g} +- {std:.2g}"' if np.isfinite(std) else '"?"' for gain, std in pairs]
        return f"gain = [{', '.join(words)}]"

    def __str__(self) -> str:
        """A table of the gains."""
        rows = list(zip(self.joint_names, self.gain.tolist(), self.stderr.tolist(), strict=True))
        return Table.of(["joint", f"gain [{self.unit}]", "std"], rows).to_text()


@one_blas_thread()
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
        >>> gains = dynid.payload.identify_drive_gains(robot, loaded=loaded, unloaded=run, mass_kg=2.0, com=load.com)
        >>> gains.gain.shape
        (3,)
    """
    if not 0.0 < mass_kg < HEAVIEST_KG:
        grams = f": {mass_kg / 1000.0:g}." if mass_kg > 0.0 else "."
        raise ArgumentError(f"the load has a mass of {mass_kg} kg", remedy=f"Weigh the load, and give kilograms{grams}")
    if unloaded is None or unloaded == []:
        raise ArgumentError("drive gains need a run without the load", remedy="Give unloaded.")
    equations = payload_problem(robot, loaded, unloaded, link=link).equations()
    joints = [_joint_equations(equations, joint) for joint in range(robot.dof)]
    # (n,) relative standard deviations of the stated gains, infinite where none is stated
    before, usual = np.full(robot.dof, np.inf), np.ones(robot.dof)
    if stated is not None:  # elsewhere a gain without a standard deviation is exact; here it is to be calibrated
        is_stated = (stated.stderr > 0.0) & np.isfinite([stated.stderr, stated.gain]).all(axis=0)
        usual = np.where(is_stated, stated.gain, usual)
        before = np.where(is_stated, stated.stderr / np.abs(usual), before)
    known = np.isfinite(before)
    # `free`: number of the first parameters of the load that are fitted (six moments, three first moments; not mass)
    if com is None:  # several starts, as an infinite gain of some joints is a local minimum
        starts = _start_loads(joints, mass_kg, needs_mass=not known.any())
        free = 9
    else:
        starts = [Inertia.from_com(mass_kg, com, np.zeros((3, 3))).vector]
        free = 6
    # the first round takes the noise from each joint alone, the second from one arm and load for all joints
    for _ in range(2):
        fits = [_fit_inverse_gains(joints, load, usual, before, free) for load in starts]
        inverse, std, _ = min(fits, key=lambda fit: fit[2])  # 1 / gains and their standard deviations, of least cost
        joints = [_joint_equations(equations, joint, one) for joint, one in enumerate(_fit_one_arm(equations, inverse))]
    more = "use a heavier load or more motion."
    remedy = f"Give the centre of mass as well (--com), or {more}" if com is None else more.capitalize()
    return _to_gains(robot.joint_names, inverse, std, usual, before, remedy)


def _to_gains(
    names: tuple[str, ...], inverse: Floats, std: Floats, usual: Floats, before: Floats, remedy: str
) -> DriveGains:
    """Make the gains, their standard deviations and the findings about them.

    Args:
        names: (n,) of the joints.
        inverse: (n,) one over the gains.
        std: (n,) standard deviations of `inverse`.
        usual: (n,) the stated gains.
        before: (n,) their relative standard deviations; infinite where none is stated.
        remedy: How a load determines the gains better.
    """
    share = std / np.maximum(np.abs(inverse), TINY)  # relative standard deviation
    is_open = share * SIGNIFICANT_STD > 1.0
    gain = 1.0 / np.where(is_open, np.nan, inverse)
    # the interval of gain = 1 / inverse is not symmetric: its longer side counts, but no more than the stated one
    longer = np.minimum(share / np.maximum(1.0 - 1.96 * share, TINY), np.maximum(before, share))
    stderr = np.where(is_open, np.inf, np.abs(gain) * longer)
    # Difference to the stated gain over the standard deviation of this difference. The estimate contains the stated
    # gain, so that variance is the one before minus the one after (Hausman).
    removed = np.sqrt(np.maximum(before**2 - np.where(is_open, 0.0, std * usual) ** 2, TINY))
    departure = np.abs(inverse * usual - 1.0) / removed
    findings = tuple(_judge(np.array(names), departure, share, before, remedy))
    return DriveGains(gain=gain, stderr=stderr, joint_names=names, findings=findings)


def _judge(names: NDArray[np.str_], departure: Floats, share: Floats, before: Floats, remedy: str) -> Iterator[Finding]:
    """Report stated gains that the load contradicts, and gains that it hardly determines.

    Args:
        names: (n,) of the joints.
        departure: (n,) differences between gains and stated gains, over their standard deviations.
        share: (n,) relative standard deviations of the gains.
        before: (n,) those of the stated gains; infinite where none is stated.
        remedy: How a load determines the gains better.
    """
    for name, away in zip(names.tolist(), departure.tolist(), strict=True):
        if away > SIGNIFICANT_STD:
            message = f"the load contradicts the stated gain by {away:.1f} standard deviations"
            check = "Check the mass, the link that carries the load, and the stated gain and its uncertainty."
            finding = remark("drive-gains", message, check, severity="warning", where="drives")
            yield replace(finding, joint=name, evidence={"standard deviations": away})
    known = np.isfinite(before)
    for weak, words in (
        (known & (share > (1.0 - LARGE_SHARE) * before), "the load hardly tells more than the stated gains of {}"),
        (~known & (share > SMALL_SHARE), f"the load does not determine the gains of {{}} to {100 * SMALL_SHARE:.0f} %"),
    ):
        if weak.any():
            message = words.format(", ".join(names[weak]))
            yield remark("drive-gains", message, remedy, severity="warning", where="drives")


def _joint_equations(equations: BlockEquations, joint: int, shared: Floats | None = None) -> tuple[Floats, Floats]:
    """Eliminate the arm from the equations of one joint: A (r, 10) and b (r,) of the module docstring.

    Args:
        equations: Rows ``[W | current]`` of every joint and block of time, for the k unknowns over the gain.
        joint: Index of the joint.
        shared: (k,) unknowns over the gain, from whose residual the noise is taken; by default those that fit this
            joint best.
    """
    blocks = [block[joint] for block in equations.blocks]
    rows = equations.channels[joint]  # of all blocks
    values, root, _ = solve_minimum_norm(rows[:, :-1], rows[:, -1])  # least squares, with covariance root root^T
    # A whitens load / gain: A^T A is the inverse of its covariance, from the SVD of this covariance's root. Columns
    # are scaled by their lengths first; directions of zero covariance are those that the joint does not show.
    length = np.maximum(np.linalg.norm(rows[:, :10], axis=0), TINY)
    U, s, Vt = svd(root[:10] * length[:, None], full_matrices=False)
    is_shown = s > SAME * s[0]
    A = U[:, is_shown].T / s[is_shown, None] * length
    # sandwich over blocks: the scores of white noise of unit variance would have a mean square of one
    fit = np.append(values if shared is None else shared, -1.0)
    scores = [rows @ fit @ rows[:, :-1] @ root @ Vt[is_shown].T for rows in blocks]
    noise = max(np.linalg.norm(scores) / max(len(A), 1) ** 0.5, np.sqrt(TINY))  # one for all directions
    return A / noise, A @ values[:10] / noise


def _fit_one_arm(equations: BlockEquations, inverse: Floats) -> Floats:
    """Fit one arm and one load to all joints, alternating with the gains.

    A joint fitted alone has so many unknowns that they absorb much of a slow noise, whose size is wanted here.

    Args:
        equations: Rows ``[W | current]`` of every joint and block.
        inverse: (n,) first values of one over the gains.

    Returns:
        (n, k) unknowns over the gain of each joint.
    """
    for _ in range(ROUNDS):
        # given the gains: torques instead of currents, from which the unknowns of arm and load follow
        torques = [
            [np.column_stack([rows[:, :-1], rows[:, -1] / (one or 1.0)]) for rows, one in zip(block, inverse.tolist())]
            for block in equations.blocks
        ]
        arm = solve_blocks(replace(equations, blocks=torques)).values
        # given arm and load: the regression of each joint's currents on its torques
        made = [rows[:, :-1] @ arm for rows in equations.channels]
        inverse = np.array([p @ rows[:, -1] / np.maximum(p @ p, TINY) for p, rows in zip(made, equations.channels)])
    return np.outer(inverse, arm)


def _start_loads(joints: list[tuple[Floats, Floats]], mass: float, *, needs_mass: bool) -> list[Floats]:
    """Make first loads (10,) with the weighed mass: a point at the link's origin, and the estimates of single joints.

    Each joint that shows a mass / gain estimates a load / gain, which is scaled to the weighed mass.

    Args:
        joints: A and b of each joint.
        mass: The weighed mass [kg].
        needs_mass: Whether a joint must show the mass significantly, because no gains are stated.
    """
    alone = [solve_minimum_norm(A, b) for A, b in joints]  # values v, root L of the covariance, which are open u
    # (n,) mass / gain over its standard deviation
    clear = np.array([0.0 if u[9] else abs(v[9]) / np.maximum(np.linalg.norm(L[9]), TINY) for v, L, u in alone])
    if needs_mass and clear.max() < SIGNIFICANT_STD:
        raise DataError(
            "no joint shows the mass of the load apart from the rest of it",
            remedy="Move the first joints, with the arm stretched and bent, give the centre of mass as well, or state "
            'the gains with their uncertainty in the channel map: gain = "13.3 +- 0.7".',
        )
    return [mass * np.eye(10)[9], *(values * (mass / values[9]) for (values, _, _), c in zip(alone, clear) if c > 1.0)]


def _fit_inverse_gains(
    joints: list[tuple[Floats, Floats]], load: Floats, usual: Floats, before: Floats, free: int
) -> tuple[Floats, Floats, float]:
    """Fit one over the gains of all joints, together with the first parameters of the load.

    Args:
        joints: A and b of each joint.
        load: (10,) first values of the load.
        usual: (n,) the stated gains.
        before: (n,) their relative standard deviations; infinite where none is stated.
        free: Number of parameters of the load that are fitted: the moments of inertia, or all but the mass.

    Returns:
        (n,) one over the gains, their standard deviations, and half the sum of the squared residuals over the noise.
    """
    n, known = len(joints), np.isfinite(before)
    # prior mean of 1 / gain, and one over its standard deviation (zero where no gain is stated)
    expected, trust = np.where(known, 1.0 / usual, 0.0), np.abs(usual) / before
    alone = [(A @ load) @ b / np.maximum((A @ load) @ (A @ load), TINY) for A, b in joints]  # with this load
    x = np.append(np.where(known, expected, alone), load[:free])  # unknowns: 1 / gains, then the load's
    # prior mean of the unknowns; with a known centre of mass the moments are expected near those of a point mass
    centre = np.append(expected, load[:free] if free == 6 else np.zeros(free))
    for _ in range(ROUNDS):  # the weak prior of the moments depends on the load's centre of mass
        weights = np.append(trust, inertia_prior(np.append(x[n:], load[free:]))[:free])

        def residual(x: Floats, weights: Floats = weights) -> Floats:
            """Residuals over the noise: of all joints, then of the prior."""
            now = np.append(x[n:], load[free:])
            return np.concatenate([*(g * (A @ now) - b for g, (A, b) in zip(x, joints)), weights * (x - centre)])

        best = least_squares(residual, x, method="lm", x_scale="jac")
        x = best.x
    _, root, undetermined = solve_minimum_norm(best.jac, np.zeros(len(best.jac)))
    return x[:n], np.where(undetermined, np.inf, np.linalg.norm(root, axis=1))[:n], float(best.cost)
