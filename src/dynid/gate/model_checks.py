"""Checks against a robot's model: limits, units, gravity, synchronisation, changes during the log, excitation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import lstsq, matrix_rank, pivoted_triangle
from dynid.findings import Finding
from dynid.gate.free_equations import IndependentColumns, with_friction
from dynid.gate.quick_fit import (
    Samples,
    free_residual,
    friction_bases,
    gravity_torques,
    has_made_up_masses,
    has_masses,
    has_prior,
    inertial_torque,
    normal_equations,
    own_torque,
    relative_size,
    rest_of_fit,
)
from dynid.kernels import regressor
from dynid.logs.recording import Recording
from dynid.parameters.layout import parameter_layout
from dynid.robot.model import Robot
from dynid.robot.parts import Joint

BEYOND_LIMITS = 1.5
"""Ratio of a position to the joint's range above which the position lies far beyond it (convention)."""
LONGEST_SLIDE = 10.0
"""Range of a slide without limits [m] (convention: gantries are shorter, and 10 m are 10 000 mm)."""
SURELY_BEYOND = 5.0
"""Ratio of positions to the robot's limits above which the limits cannot be the error (convention: degrees that span a
tenth of the range, taken for radians, are at 5.7)."""
MOST_BEYOND = 0.05
"""Share of such positions or torques above which the unit is wrong (convention)."""
BEYOND_EFFORT = 10.0
"""Ratio of a torque to the joint's effort limit above which the torque lies far beyond it (convention: peak torques
stay below a few times the rated torque that some files state, and mistaken units are factors of 1000 or of a gear)."""
USUAL_FACTOR = (0.25, 4.0)
"""Ratios of measured to expected torques within which the masses of the model may be wrong and the unit right
(convention)."""
MADE_UP_FACTOR = (0.1, 10.0)
"""The same ratios for masses that look made up: they say little, so that it is noted and no more (convention)."""
LARGER_UNITS = {("turns", "radians"): 2.0 * np.pi, ("radians", "degrees"): 180.0 / np.pi}
"""Unit of positions, and the smaller one for which it may be taken -> the first over the second."""
MUCH_BETTER = 0.6
"""Ratio of the free residuals with another unit of positions and without, below which the unit is wrong (convention, as
for the hypotheses in hypotheses.py)."""
FEWEST_FOR_CHANGE = 300
"""Smallest number of samples for the search for a change (convention)."""
FEW = 0.03
"""Share of the samples without which a change must show as well (convention)."""
NOTABLE_RESIDUAL = 0.02
"""Relative residual of the whole log below which a change does not matter (convention)."""
LOST = 1e-3
"""Size of a parameter's regressor column, orthogonal to the others and relative to wide motion, below which the motion
hardly excites it (convention)."""
COMPENSATED = 0.3
"""Share of the expected gravity below which, at a standard error of a third of it, gravity is compensated
(convention)."""
ELSEWHERE_SIGMAS = 4.0
"""Deviation of gravity from its direction, in standard errors, from which on it points elsewhere
(convention)."""
LOADED = 0.5
"""Squares that a load leaves unexplained, as a share of those that one factor leaves, below which large torques are
those of a load (convention) ..."""
HEAVIEST_LOAD = 2.0
"""... and mass of a load over that of all moving links up to which an arm may hold it (convention: most lift less than
their own mass) ..."""
SURELY_LOADED = 0.02
"""... unless the load leaves less than this share (convention: planted loads leave below 0.001, units above 30)."""
LARGEST_SIZE = 10.0
"""Rms of a joint's torque over the largest rms that the model's masses need at any joint, above which the unit is wrong
(convention: shoulders carry the arm, and no wrist needs ten times as much) ..."""
SMALLEST_SIZE = 1.0 / 30.0
"""... and rms of a joint's torque over that of the model's masses at this joint below which it is wrong as well
(convention: no link weighs a thirtieth of its model) ..."""
TINY_SIZE = 5e-4
"""... and rms of a joint's torque over the largest of all joints below which it is wrong, too (convention: the last
joint of the Panda has a hundredth)."""
SLOW = 0.02
"""Inertial torques below this share of the gravity torques are not used (convention)."""
BLOCKS = 20
"""Number of parts of a log; a change is looked for at their borders (convention)."""
ABOVE_NOISE = 1.25
"""Ratio of a residual to the noise above which the residual is more than noise (convention)."""
DEAD = 5.0
"""Ratio of the expected torque to its noise above which a torque below the noise is missing (convention)."""
CHANGED = 0.75
"""Largest residual of two sets of parameters, before and after an instant, as a share of the residual of two sets that
alternate (convention)."""
STANDS_OUT = 0.8
"""Ratio of the residuals of sets that change at the best instant and of sets that change elsewhere (the median of all
instants), below which the instant is that of a change. Experiment: loads of 1.4 to 5 kg reach at most 0.78 (24 logs of
four robots, 16 of a UR10 with noise that is correlated over half a second); clean logs with such noise at least 0.82,
and the first log of kuka_kr300 0.85."""


def joint_reach(joint: Joint) -> float:
    """Largest position of a joint [rad or m], a usual one where the robot's file has no limits."""
    reach = max(abs(joint.limits.lower), abs(joint.limits.upper))
    if np.isfinite(reach):
        return reach
    return LONGEST_SLIDE if joint.kind == "prismatic" else 2.0 * np.pi if joint.kind == "revolute" else np.inf


def check_limits(robot: Robot, recording: Recording) -> Iterator[Finding]:
    """Report positions beyond 1.5 times the robot's limits: the unit, the joint or the limits are wrong.

    Limits of files are often narrower than those of the robot, so that only positions far beyond them tell a unit.
    """
    for j, joint in enumerate(robot.moving_joints):
        q, reach = recording.q[:, j], joint_reach(joint)
        beyond = np.abs(q[np.isfinite(q)]) > BEYOND_LIMITS * reach
        if beyond.size and np.mean(beyond) > MOST_BEYOND:
            largest = float(np.nanpercentile(np.abs(q), 99.0))
            mistaken, unit = ("millimetres", "metres") if joint.kind == "prismatic" else ("degrees", "radians")
            evidence = {"99th percentile": largest, "range": reach, "share beyond": float(np.mean(beyond))}
            if largest <= SURELY_BEYOND * reach:
                yield Finding(
                    code="beyond-limits",
                    severity="warning",
                    where="q",
                    joint=joint.name,
                    message="positions lie beyond the range that the robot's file states",
                    evidence=evidence,
                    remedy=f"Correct the limits in the robot's file, or declare the unit if these are {mistaken}.",
                )
                continue
            yield Finding(
                code="unit",
                severity="error",
                where="q",
                joint=joint.name,
                message=f"positions lie far beyond the joint's range, as if {mistaken} were taken for {unit}",
                evidence=evidence,
                remedy="Declare the unit of position in the channel map.",
            )


def check_effort_limits(robot: Robot, recording: Recording) -> Iterator[Finding]:
    """Report torques beyond 10 times the robot's effort limits, joint by joint: the unit or the gear is wrong."""
    if recording.effort is None:
        return
    for joint, effort in zip(robot.moving_joints, np.abs(recording.effort).T, strict=True):
        limit = joint.limits.effort  # zero in a file means that nobody stated a limit
        known = effort[np.isfinite(effort)]
        share = float(np.mean(known > BEYOND_EFFORT * limit)) if known.size and limit > 0.0 else 0.0
        if share > MOST_BEYOND:
            largest = float(np.percentile(known, 99.0))
            unit = "N" if joint.kind == "prismatic" else "N m"
            yield Finding(
                code="unit",
                severity="error",
                where="effort",
                joint=joint.name,
                message=f"torques of up to {largest:.4g} {unit} are {largest / limit:.3g} times the effort limit of "
                f"the robot file, {limit:g} {unit}, as if in another unit",
                evidence={f"99th percentile [{unit}]": largest, f"limit [{unit}]": limit, "share beyond": share},
                remedy="Declare the unit of this joint's torque and its gear in the channel map, or mend the limit in "
                "the robot file.",
            )


def check_noise(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Report joints whose torque is hardly more than noise; no other check uses them."""
    expected = own_torque(robot, samples).std(axis=0) if has_prior(robot) else np.zeros(robot.dof)
    for j in np.flatnonzero(samples.used & (samples.trust == 0.0) & (samples.noise > 0.0)).tolist():
        dead = bool(expected[j] > DEAD * samples.noise[j])
        yield Finding(
            code="noise",
            severity="warning" if dead else "note",
            where="effort",
            joint=robot.joint_names[j],
            message="the torque is below its noise" + (", though that of the model's masses is not" if dead else ""),
            evidence={
                "spread [N m or N]": float(samples.effort[:, j].std()),
                "noise": float(samples.noise[j]),
                "expected of the masses": float(expected[j]),
            },
            remedy="Is the channel alive, and mapped to this joint?"
            if dead
            else "Little can be learnt from it, and nothing else is judged by it; move faster, or average periods.",
        )


def check_gravity_and_units(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Compare the torque with that of the robot's own masses: overall factor, and strength and direction of gravity."""
    estimate = _fit_gravity(robot, samples) if has_masses(robot) else None
    if estimate is None:
        return
    gravity, inertial, stderr = estimate
    strength = float(np.linalg.norm(robot.gravity))
    along = float(gravity @ robot.gravity) / strength**2 if strength else 0.0
    across = float(np.linalg.norm(gravity - along * robot.gravity)) / max(strength, 1e-12)
    evidence = {"gravity / expected": along, "across": across, "inertia / expected": inertial}
    error = float(np.max(stderr)) / max(strength, 1e-12)
    alike = inertial > 0.0 and along > 0.0 and abs(np.log(inertial / along)) < 1.0
    made_up = has_made_up_masses(robot)
    low, high = MADE_UP_FACTOR if made_up else USUAL_FACTOR
    one_factor = error < 0.15 * max(1.0, abs(along)) and alike and across < 0.35 * along and not low < along < high
    # a counterbalance reduces gravity only; nearly nothing but a wrong unit scales gravity and inertia alike;
    # without inertial torques there is only one factor, and gravity may be compensated
    both = along > 3.0 * error and abs(np.log(max(inertial, 1e-300) / along)) < 2.0
    both_large = both and min(along - 3.0 * error, inertial) > high
    both_small = both and not np.isclose(inertial, along, rtol=1e-6) and max(along + 3.0 * error, inertial) < low
    if strength and (one_factor or both_large or both_small) and _most_are_beyond(robot, samples, low, high):
        held = _held_mass(robot, samples) if along > high else None
        if held is not None:
            yield Finding(
                code="held-load",
                severity="note",
                where="model",
                message=f"the torques are as if the last link held about {_rounded(held)} kg which the model does not "
                "have" + (", more than such an arm lifts" if held > HEAVIEST_LOAD * _arm_mass(robot) else ""),
                evidence=evidence,
                remedy="If it held nothing, declare the unit of torque and the gears in the channel map.",
            )
            return
        before, after = free_residual(robot, samples), _position_units(robot, samples)
        best = min(after, key=lambda pair: after[pair], default=None)
        if best is not None and after[best] < MUCH_BETTER * before:
            yield _position_unit(*best, before, after[best])
            return
        rivals = [pair for pair in after if after[pair] <= before and _has_usual_size(robot, samples, pair, low, high)]
        aside = "".join(f"; or positions are {unit} that were taken for {taken}" for unit, taken in rivals)
        yield Finding(
            code="unit",
            severity="note" if made_up else "error",
            where="effort",
            message=f"torques are {inertial:.3g} times those of the model"
            + (", whose masses look made up" if made_up else _as_if_in(inertial, *torque_ratios(robot, samples)))
            + aside,
            evidence=evidence,
            remedy="Declare the unit of torque (N m, mN m, A, %)"
            + (", that of position (rad, deg, rev)" if aside else "")
            + " and the gears in the channel map"
            + (", unless the masses are wrong." if made_up else "."),
        )


def _position_units(robot: Robot, samples: Samples) -> dict[tuple[str, str], float]:
    """Free residual with positions of turning joints in each larger unit that the joints' ranges allow.

    Accelerations are then as much too small as the positions, which looks like torques that are too large.
    """
    turning = _are_turning(robot)
    reach = BEYOND_LIMITS * np.array([joint_reach(joint) for joint in robot.moving_joints])
    largest = np.percentile(np.abs(samples.q), 95.0, axis=0)
    return {
        pair: free_residual(robot, _in_larger_unit(robot, samples, pair))
        for pair, factor in LARGER_UNITS.items()
        if np.all(factor * largest[turning] <= reach[turning])
    }


def _are_turning(robot: Robot) -> NDArray[np.bool_]:
    return np.array([joint.kind != "prismatic" for joint in robot.moving_joints])


def _in_larger_unit(robot: Robot, samples: Samples, pair: tuple[str, str]) -> Samples:
    return samples.with_motion_scaled(np.where(_are_turning(robot), LARGER_UNITS[pair], 1.0))


def _has_usual_size(robot: Robot, samples: Samples, pair: tuple[str, str], low: float, high: float) -> bool:
    """Whether torques have the size of the model's with positions in a larger unit."""
    estimate = _fit_gravity(robot, _in_larger_unit(robot, samples, pair))
    if estimate is None:
        return False
    gravity, inertial, _ = estimate
    along = float(gravity @ robot.gravity) / max(float(robot.gravity @ robot.gravity), 1e-12)
    return low < along < high and low < inertial < high


def _position_unit(unit: str, taken: str, before: float, after: float) -> Finding:
    return Finding(
        code="unit",
        severity="error",
        where="q",
        message=f"positions were taken for {taken} and are {unit}: multiplied by {LARGER_UNITS[unit, taken]:.4g}, they "
        "explain the torques much better",
        evidence={"free residual before": before, "free residual after": after},
        remedy="Declare the unit of position (rad, deg, rev) in the channel map.",
    )


def _most_are_beyond(robot: Robot, samples: Samples, low: float, high: float) -> bool:
    """Whether most joints' torques are beyond those of the model, so that no single joint pretends it for all."""
    ratio, error = torque_ratios(robot, samples)
    known = ratio[ratio > 3.0 * error]
    return not known.size or not low < float(np.median(known)) < high


def _held_mass(robot: Robot, samples: Samples) -> float | None:
    """Mass of a load on the last link that explains the torques better than one factor of all of them does [kg].

    None where no load does, where it would be too heavy for the arm and does not explain nearly all that the factor
    leaves, or where the motion does not show its mass.
    """
    own, bases = own_torque(robot, samples), friction_bases(robot, samples)
    load = regressor(robot, samples.q, samples.dq, samples.ddq)[:, :, 10 * robot.dof - 10 : 10 * robot.dof]
    rows = []
    for j in np.flatnonzero(samples.used).tolist():
        block = np.column_stack([load[:, j], own[:, j], samples.effort[:, j]]) * samples.weight[j]
        rows.append(block - bases[j] @ (bases[j].T @ block))
    table = np.vstack(rows)
    columns, masses, torque = table[:, :10], table[:, 10], table[:, 11]
    if matrix_rank(columns[:, 6:]) < 4:  # first moments and mass
        return None
    values = lstsq(columns, torque - masses)
    by_load = float(np.sum((torque - masses - columns @ values) ** 2))
    by_factor = float(torque @ torque - (masses @ torque) ** 2 / (masses @ masses))
    mass = float(values[9])
    enough = LOADED if mass < HEAVIEST_LOAD * _arm_mass(robot) else SURELY_LOADED
    return mass if by_load < enough * by_factor and mass > 0.0 else None


def _rounded(mass: float) -> str:
    return f"{mass:.2g}" if mass < 10.0 else f"{mass:.0f}"


def _arm_mass(robot: Robot) -> float:
    """Mass of all moving links [kg]."""
    return float(robot.inertial_vector.reshape(-1, 10)[:, 9].sum())


def check_torque_sizes(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Report joints whose torque has an impossible size beside the model's masses, where the equations show no unit.

    Friction may be all that a joint of the wrist shows, and friction has any gain; but no friction of one joint exceeds
    by far the torque of the whole arm's weight, and none makes a torque smaller than the masses need.
    """
    if not has_prior(robot):
        return
    needed = np.sqrt(np.mean(own_torque(robot, samples) ** 2, axis=0))
    sizes = np.sqrt(np.mean(samples.effort**2, axis=0)) * samples.used
    slides = np.array([joint.kind == "prismatic" for joint in robot.moving_joints])
    for j in np.flatnonzero(samples.used).tolist():
        size, unit = float(sizes[j]), "N" if slides[j] else "N m"
        alike = slides == slides[j]
        most = float(needed[alike].max())
        largest = int(np.argmax(np.where(alike & (sizes <= LARGEST_SIZE * most), sizes, 0.0)))
        if size > LARGEST_SIZE * most > 0.0:
            beside = f"the masses of the model need {most:.3g} {unit} at most at any joint"
        elif size < SMALLEST_SIZE * float(needed[j]):
            beside = f"the masses of the model need {needed[j]:.3g} {unit} there"
        elif samples.trust[j] and size < TINY_SIZE * float(sizes[largest]):  # noise alone has no unit
            beside = f"that of {robot.joint_names[largest]} has {sizes[largest]:.3g} {unit}"
        else:
            continue
        yield Finding(
            code="unit",
            severity="warning",
            where="effort",
            joint=robot.joint_names[j],
            message=f"the torque has an rms of {size:.3g} {unit}, while {beside}, as if in another unit or without its "
            "gear",
            evidence={f"rms [{unit}]": size, f"rms of the masses [{unit}]": float(needed[j])},
            remedy="Declare the unit of this joint's torque and its gear or torque constant in the channel map.",
        )


def check_gravity_direction(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Report gravity that surely points elsewhere, as estimated from the torques and the robot's masses."""
    estimate = _fit_gravity(robot, samples) if has_prior(robot) else None
    strength = float(np.linalg.norm(robot.gravity))
    if estimate is None or not strength:
        return
    found, error = estimate[0] / strength, float(np.max(estimate[2])) / strength
    along = float(found @ robot.gravity) / strength
    across = float(np.linalg.norm(found - along * robot.gravity / strength))
    elsewhere = max(across if across > abs(along) else 0.0, -along)
    if elsewhere > max(COMPENSATED, ELSEWHERE_SIGMAS * error):
        yield Finding(
            code="gravity-direction",
            severity="warning",
            where="model",
            message="with the model's masses, the torques show gravity along "
            f"({', '.join(f'{x:.2f}' for x in found)}) in the axes of the base",
            evidence={"along the model's gravity": along, "across": across, "standard error": error},
            remedy="Is this the right robot file? If so, turn the first joint in it, or use `with_base_orientation` or "
            "`with_gravity`.",
        )


def check_compensation(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Report torques that surely hold next to no gravity but are otherwise those of the robot."""
    estimate = _fit_gravity(robot, samples) if has_prior(robot) else None
    strength = float(np.linalg.norm(robot.gravity))
    if estimate is None or not strength:
        return
    left, error = float(np.linalg.norm(estimate[0])) / strength, float(np.max(estimate[2])) / strength
    if left < COMPENSATED and error < COMPENSATED / 3.0:
        yield Finding(
            code="gravity-compensated",
            severity="warning",
            where="effort",
            message="the torques show little of the gravity that acts on the model's masses",
            evidence={"gravity / expected": left, "standard error": error},
            remedy="Is this the right robot file? If so, does the controller subtract gravity, or a counterbalance "
            "carry it? Log the full torque, or model both.",
        )


UNIT_FACTORS = {
    1000.0: ("N mm or mN m", "mN"),
    100.0: ("N cm or percent", "percent"),
    10.197: ("kgf cm", ""),
    8.851: ("lbf in", ""),
    141.6: ("ozf in", ""),
    0.7376: ("lbf ft", ""),
    0.2248: ("", "lbf"),
    0.10197: ("kgf m", "kgf"),
    0.01: ("shares of 1 of the rated torque or motor-side torques", "shares of 1 of the rated force"),
    0.001: ("kN m", "kN"),
}
"""Number of a unit in one N m or N -> units of torques and of forces that have it (definitions of the units)."""
NEAR_UNIT = 0.55
"""Natural logarithm of a factor over that of a unit up to which the unit is named (convention: loads and wrong masses
change the factor)."""

EXACT_UNIT = 0.2
"""The same up to which no other reason is named, if all joints have the factor (convention: good masses are wrong by a
tenth or two) ..."""
EXACT_SPREAD = 0.35
"""... where the logarithms of the factors of all joints differ by less than this (convention: links that are wrong by
0.6 to 1.5 give 0.15, torque constants of a series of drives more) ..."""
KNOWN_RATIO = 10.0
"""... among joints whose factor is that many standard errors (convention)."""


def likely_unit(factor: float, *, slide: bool = False) -> str:
    """The unit in which torques, or the forces of a slide, look that many times too large; empty where none is near."""
    named = {value: names[slide] for value, names in UNIT_FACTORS.items() if names[slide]}
    nearest = min(named, key=lambda value: abs(np.log(factor / value)))
    return named[nearest] if abs(np.log(factor / nearest)) < NEAR_UNIT else ""


def _as_if_in(factor: float, ratios: Floats, errors: Floats) -> str:
    """A clause that names the units in which torques look that many times too large, and what else is as likely.

    A unit has one exact factor. Currents, motor-side torques and percent have another one at every joint; but so have
    torques in a unit beside wrong masses of the model.

    Args:
        factor: The factor of all torques.
        ratios: (n,) factor of each joint.
        errors: (n,) standard errors of these.
    """
    others = "currents, motor-side torques or percent"
    unit = likely_unit(factor)
    if not unit:
        return f"; {others}?"
    known = ratios[ratios > KNOWN_RATIO * errors]
    spread = float(np.ptp(np.log(known))) if known.size else 0.0
    away = {names[0]: abs(np.log(factor / value)) for value, names in UNIT_FACTORS.items() if names[0]}
    exact = [name for name in sorted(away, key=lambda name: away[name]) if away[name] < EXACT_UNIT]
    if exact and spread < EXACT_SPREAD:
        return f", as if in {' or '.join(exact)}"
    single = f", {known.min():.2g} to {known.max():.2g} times at single joints" if spread >= EXACT_SPREAD else ""
    return f"{single}: {others}, or {unit} if the masses of the model are wrong"


def torque_ratios(robot: Robot, samples: Samples) -> tuple[Floats, Floats]:
    """(n,) torque of each joint over that of the model's masses, friction and offset removed, and its standard error.

    Both are NaN where the model's masses hardly load the joint.
    """
    own, bases = own_torque(robot, samples), friction_bases(robot, samples)
    ratio, error = np.full((2, robot.dof), np.nan)
    for j in np.flatnonzero(samples.used).tolist():
        x, y = (v - bases[j] @ (bases[j].T @ v) for v in (own[:, j], samples.effort[:, j]))
        size = float(x @ x)
        if size > SLOW**2 * float(own[:, j] @ own[:, j]):
            ratio[j] = float(x @ y) / size
            spread = float(np.mean((y - ratio[j] * x) ** 2))
            error[j] = np.sqrt(10.0 * spread / size)  # neighbouring samples are not independent
    return ratio, error


def _fit_gravity(robot: Robot, samples: Samples) -> tuple[Floats, float, Floats] | None:
    """Gravity vector and factor of the inertial torque that fit best, friction removed, and the errors of the vector.

    Where the robot moves too slowly for inertial torques, their factor is assumed to be that of gravity.
    """
    parts = np.concatenate([gravity_torques(robot, samples), inertial_torque(robot, samples)[None]])
    rows, torque, bases = [], [], friction_bases(robot, samples)
    for j in np.flatnonzero(samples.used).tolist():
        Q, w = bases[j], samples.weight[j]
        block = np.column_stack([parts[:, :, j].T, samples.effort[:, j]]) * w
        block = block - Q @ (Q.T @ block)
        rows.append(block[:, :4])
        torque.append(block[:, 4])
    A, b = np.vstack(rows), np.concatenate(torque)
    weight = np.linalg.norm(A, axis=0) * np.array([*[np.linalg.norm(robot.gravity)] * 3, 1.0])
    slow = weight[3] < SLOW * weight[:3].max()
    A = A[:, :3] if slow else A
    if matrix_rank(A) < A.shape[1]:
        return None
    solution = lstsq(A, b)
    variance = float(np.mean((b - A @ solution) ** 2)) * np.diag(np.linalg.inv(A.T @ A))
    along = float(solution[:3] @ robot.gravity) / max(float(robot.gravity @ robot.gravity), 1e-12)
    stderr = np.sqrt(variance[:3] * 10.0)  # neighbouring samples are not independent
    return solution[:3], along if slow else float(solution[3]), stderr


def check_changes(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Report a log that one set of parameters does not explain: there was contact, or the load changed.

    Two sets of parameters always fit better than one. So two sets that hold before and after an instant are compared
    with two sets that alternate, block by block: these overfit as much and do not benefit from a change. A change has
    its instant: cuts elsewhere do not help as much, whereas errors that last are taken up by cuts anywhere. And it
    lasts, so that it shows without the few samples that fit worst, too: filters leave such where accelerations jump.
    """
    if samples.q.shape[0] < FEWEST_FOR_CHANGE:
        return
    evidence, worst = _find_change(robot, samples)
    if evidence is None or _find_change(robot, samples.at(worst < np.quantile(worst, 1.0 - FEW)))[0] is None:
        return
    yield Finding(
        code="change",
        severity="warning",
        where="model",
        message="two sets of parameters, before and after an instant, explain the log much better than one",
        evidence=evidence,
        remedy="Was a load taken up or an obstacle touched? Cut the log there.",
    )


def _find_change(robot: Robot, samples: Samples) -> tuple[dict[str, float] | None, Floats]:
    """Evidence of a change, None where there is none; and (M,) the largest residual of each sample with one set."""
    residual, parts = normal_equations(robot, samples, BLOCKS)
    whole = relative_size(float(np.sum(residual**2)), samples)
    turns = sum(rest_of_fit(parts[k::2]) for k in range(2))
    splits = {cut: rest_of_fit(parts[:cut]) + rest_of_fit(parts[cut:]) for cut in range(3, BLOCKS - 2)}
    cut = min(splits, key=lambda place: splits[place])
    ratio = float(np.sqrt(splits[cut] / max(turns, 1e-300)))
    elsewhere = float(np.median([rest for place, rest in splits.items() if abs(place - cut) > 1]))
    beside = float(np.sqrt(splits[cut] / max(elsewhere, 1e-300)))
    changes = ratio < CHANGED and beside < STANDS_OUT and whole > max(NOTABLE_RESIDUAL, ABOVE_NOISE * samples.floor)
    instant = {} if samples.time is None else {"at [s]": float(samples.time[len(samples.time) * cut // BLOCKS])}
    evidence = {
        **instant,
        "at share of the log": cut / BLOCKS,
        "residual": whole,
        "residual ratio": ratio,
        "ratio to other instants": beside,
    }
    return evidence if changes else None, np.asarray(np.abs(residual).max(axis=1))


def check_excitation(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Report parameters that other motions of the robot would reveal and this motion does not."""
    model = with_friction(robot)
    known = IndependentColumns.of(model)
    Y = regressor(model, samples.q, samples.dq, samples.ddq, columns=known.columns.tolist())[:, samples.used]
    rank = known.columns.size
    R, order = pivoted_triangle(Y.reshape(-1, rank) / known.scale)
    size = np.zeros(rank)
    size[: min(R.shape)] = np.abs(np.diag(R))
    lost = known.columns[order[size < LOST * np.sqrt(Y.shape[0])]]
    if lost.size:
        names = parameter_layout(model).names
        yield Finding(
            code="low-excitation",
            severity="warning",
            where="model",
            message=f"the motion hardly excites {', '.join(names[k] for k in sorted(lost))}",
            evidence={"parameters": int(lost.size), "of": rank},
            remedy="They will keep their prior values; use `design_excitation` or dynid excite for a better motion.",
        )
