"""Hypotheses about faults that would explain the log better: a flipped sign, exchanged joints, another gravity or unit.

Explanations are proposed with their evidence and never applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dynid.arrays import Floats
from dynid.findings import Finding
from dynid.gate.free_equations import FreeEquations
from dynid.gate.model_checks import BEYOND_LIMITS, LARGER_UNITS, joint_reach, likely_unit, torque_ratios
from dynid.gate.profiled_fit import ProfiledFit, relative_gains
from dynid.gate.quick_fit import (
    FINEST,
    Samples,
    block_losses,
    brake_powers,
    dissipation,
    free_residual,
    free_rows,
    friction_bases,
    has_prior,
    hold_driven,
    mass_torques,
    narrow_equations,
    residuals,
    solve_singular,
    unspent,
)
from dynid.robot.model import Robot

UNEXPLAINED = 0.25
"""Relative residual of the free fit above which a log is reported, if no hypothesis is better; tuned on the fault
campaigns of docs/evidence.md (tests/campaigns/real_faults.py, seeds 530000 and 550000)."""
DRIVEN = -0.05
"""Power that friction puts into a joint, relative to its torque and speed, from which on it cannot be friction ..."""
DRIVEN_SIGMAS = 5.0
"""... if it exceeds its standard error by this factor. Both tuned on the fault campaigns of docs/evidence.md
(tests/campaigns/real_faults.py, seeds 530000 and 550000)."""
ROUGH = 200
"""Number of samples that separate good hypotheses from bad ones (convention)."""
TOGETHER = 16
"""Number of hypotheses that are fitted together (convention: their normal equations stay in the processor's cache)."""
FINALISTS = 6
"""Number of the best hypotheses that are then judged on all samples (convention)."""
BETTER = 0.6
"""A hypothesis that reduces the product of both residuals below this share is certain; tuned on the fault campaigns of
docs/evidence.md (tests/campaigns/real_faults.py, seeds 530000 and 550000)."""
WORSE = 1.5
"""A flipped sign must not increase the product of both residuals by more than this factor, if friction drives a joint;
tuned on the fault campaigns of docs/evidence.md (tests/campaigns/real_faults.py, seeds 530000 and 550000)."""
SAME_GRAVITY = 0.1
"""Difference of gravity vectors, as a share of their length, up to which they are the same (convention)."""
GAIN = 0.1
"""Smallest gain of log-likelihood per sample of a hypothesis that is worth a warning ..."""
SIGMAS = 2.5
"""... and smallest ratio of this gain to its scatter between parts of the log. Both tuned on the fault campaigns of
docs/evidence.md (tests/campaigns/real_faults.py, seeds 530000 and 550000)."""
SHOWN = 0.51
"""Gain of log-likelihood per sample above which the log shows a hypothesis: of the free fit, however well the masses of
the model fit; of both fits where only masses can show it. Friction that no equation holds repeats with the motion: a
false hypothesis that fits it gains in all parts of the log, so that no number of standard errors tells it from a true
one, but the size of the gain does. The gain is minus the logarithm of the product of the joints' residuals, with the
hypothesis over without it: here that of `BETTER`. Experiment (gate_evidence.py and joint_units.py, 600 samples): clean
logs gained at most 0.40 by signs, units and exchanged joints, planted ones at least 0.70."""
PARTS = 10
"""Number of parts of the log whose gains are compared (convention)."""
FAINT = 1e-4
"""Weight of a joint's equations, over those of the others, with which they change no shared parameter (convention)."""
ZOOM = (1.5, 1.2, 1.08)
"""Steps of the factors that are tried, up and down, around that which the other joints imply (convention)."""
SMALLEST_FACTOR = 4.0
"""Factor of one joint's torque, or one over it, from which on it is a mistaken unit or gear (convention: a wrong gain
is smaller, and a third of the masses may be wrong)."""
NEAR_ENOUGH = 0.3
"""Relative correction of a factor, and its standard error, up to which a linear fit gives it (convention)."""
POSITION_FACTORS: dict[float, tuple[str, str]] = {
    180.0 / np.pi: ("radians were declared as degrees", ""),
    np.pi / 180.0: ("degrees were declared as radians", ""),
    2.0 * np.pi: ("turns were declared as radians", ""),
    10.0: ("", "centimetres were declared as millimetres"),
    100.0: ("", "metres were declared as centimetres"),
    1000.0: ("radians were declared as milliradians", "metres were declared as millimetres"),
    0.1: ("", "millimetres were declared as centimetres"),
    0.01: ("", "centimetres were declared as metres"),
    0.001: ("milliradians were declared as radians", "millimetres were declared as metres"),
}
"""True position over the logged one -> the mistake of a turning joint and of a slide; empty where no unit has this
factor (definitions of the units)."""
POSITION_UNITS = {**LARGER_UNITS, ("degrees", "radians"): np.pi / 180.0}
"""Unit of all positions, and that for which it may be taken -> the first over the second."""
SMALLEST_MOTION = (0.017, 0.002)
"""Standard deviation of a position below which nobody moves a joint on purpose: of turning joints [rad], of slides [m]
(convention: one degree, two millimetres)."""
KNOWN_GAIN = 0.15
"""Relative error of a joint's factor beside those of the others, below which the log shows it (convention) ..."""
OFF_GAIN = 1.5
"""... and the factor, or one over it, from which on the gain of a joint is off (convention; experiment: with friction
that no equation holds, known factors of clean logs are 0.8 to 1.5, and gain less than 0.1 of log-likelihood per sample;
in percent of the rated torques they gain 1.8 to 9.6) ..."""
UNEVEN = 0.85
"""... and the share that they may leave of the residual, and of that of another hypothesis (convention)."""
IMPOSSIBLE_RATIO = 300.0
"""Ratio of a joint's torque to that of the model's masses, or one over it, from which on the masses alone show a wrong
unit, if all other joints are below `SMALLEST_FACTOR`: no robot is that much heavier or lighter than its model, and a
load changes the last joints by less (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Hypothesis:
    code: str
    joint: str | None
    says: str
    remedy: str
    samples: Samples
    factor: float = 1.0
    """By how much the torque of the joint is too large."""
    by_masses: bool = False
    """Whether the masses of the model alone show it."""
    position_factor: float = 1.0
    """By how much the position of the joint is too small."""

    @property
    def shows_without_masses(self) -> bool:
        """Whether a fit of all parameters would improve: the direction of gravity may show by the masses alone."""
        return self.code not in ("gravity-direction", "gravity-compensated") and not self.by_masses

    @property
    def largest_ratio(self) -> float:
        """Ratio of the free residuals, with the hypothesis and without, below which the log shows it."""
        return 1.0 if self.code in ("flipped", "swapped", "unit") else BETTER


def check_hypotheses(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Look for hypotheses that explain the log much better than the robot's equations, and for driving friction.

    The size of a residual says little: exchanged wrist joints may leave a smaller residual than noise in other joints.
    A wrong hypothesis, however, increases the residual.
    """
    free, prior = residuals(robot, samples)
    best = _best_hypothesis(robot, samples, free, prior)
    uneven = _uneven_gains(robot, samples, free)
    best = uneven if _explains_more(uneven, best) else best
    if best is not None:
        yield best
        return
    driven = list(_driven_joints(robot, samples, free, prior))
    yield from driven
    if np.sqrt(max(free**2 - samples.floor**2, 0.0)) > UNEXPLAINED and not driven:
        yield Finding(
            code="unexplained",
            severity="warning",
            where="model",
            message="the robot's equations explain little of the torque, and no simple cause was found",
            evidence={"free residual": free, "prior residual": prior},
            remedy="Check geometry, units, joint order and gears; look for contact or a changed load.",
        )


def _best_hypothesis(robot: Robot, samples: Samples, free: float, prior: float) -> Finding | None:
    """Find the hypothesis under which the log is most likely, if it is clearly more likely than without one."""
    few = samples.thin_out(max(3, samples.q.shape[0] // ROUGH))
    factors, positions = dict(_torque_factors(robot, few)), list(_position_factors(robot, few))
    tried = list(_every_hypothesis(robot, few, factors, positions))
    rough = rough_losses(robot, [hypothesis.samples for hypothesis in tried])
    finalists = sorted(range(len(rough)), key=lambda place: rough[place])[:FINALISTS]
    every = enumerate(_every_hypothesis(robot, samples, factors, positions))
    whole = {place: hypothesis for place, hypothesis in every if place in finalists}
    judged = [(block_losses(robot, whole[place].samples, PARTS), whole[place]) for place in finalists]
    losses, best = min(judged, key=lambda item: float(item[0].sum()))
    gains = block_losses(robot, samples, PARTS) - losses
    (gain, error), (free_gain, free_error) = _total(gains.sum(axis=0)), _total(gains[0])
    if gain < max(GAIN * samples.q.shape[0], SIGMAS * error):
        return None
    free_h, prior_h = residuals(robot, best.samples)
    if best.shows_without_masses and (free_gain <= 0.0 or free_h >= free):
        return None  # the masses of the model alone speak for it, and they are what is to be identified
    least = SHOWN * samples.q.shape[0]
    shown = free_gain > max(least, SIGMAS * free_error) and free_h < best.largest_ratio * free
    if not best.shows_without_masses and has_prior(robot):
        shown = shown or (gain > least and prior_h < BETTER * prior)
    says, amount = _said(robot, best)
    sure = shown and free_h * prior_h < BETTER * free * prior
    if shown and not sure and best.shows_without_masses:
        shown = free_gain * unspent(robot, best.samples) > least  # more than a fit of lasting errors gains by chance
    return Finding(
        code=best.code,
        severity="error" if sure else "warning" if shown else "note",
        where="model",
        joint=best.joint,
        message=f"the log fits {'' if sure else 'somewhat ' if shown else 'slightly '}better if {says}",
        evidence={
            **amount,
            "free residual before": free,
            "free residual after": free_h,
            "prior residual before": prior,
            "prior residual after": prior_h,
            "gain of log-likelihood": gain,
            "standard error": error,
        },
        remedy=best.remedy if shown else f"This motion hardly shows it. If you doubt the channel map: {best.remedy}",
    )


def rough_losses(robot: Robot, tried: Sequence[Samples]) -> list[float]:
    """The sum of `block_losses` of each of many samples, of equal number, fitted together.

    A hypothesis takes some small matrix products and solutions; one by one they would take longer to call than to do.
    """
    losses, waiting = [0.0] * len(tried), dict[bytes, list[tuple[int, Samples, FreeEquations]]]()
    for place, samples in enumerate(tried):
        equations = narrow_equations(robot, samples)
        group = waiting.setdefault(equations.columns.tobytes(), [])
        group.append((place, samples, equations))
        if len(group) == TOGETHER:
            _fit_together(robot, group, losses)
            group.clear()
    for group in filter(None, waiting.values()):
        _fit_together(robot, group, losses)
    return losses


def _fit_together(robot: Robot, group: list[tuple[int, Samples, FreeEquations]], losses: list[float]) -> None:
    """Write the losses of hypotheses whose equations have the same columns; joints that are not used weigh nothing."""
    places, every, equations = zip(*group, strict=True)
    weight, trust = (np.stack([getattr(samples, name) for samples in every]) for name in ("weight", "trust"))
    effort = np.stack([samples.effort for samples in every])
    tau = effort * weight[:, None]
    rest = _free_rests(every, equations, weight, tau)
    total = _sums_of_losses(rest, trust)
    if has_prior(robot):
        own = np.stack([mass_torques(robot, part) for part in equations])
        left = ((effort - own) * weight[:, None]).swapaxes(1, 2)[..., None]
        Q = np.stack([friction_bases(robot, samples) for samples in every])
        total += _sums_of_losses((left - Q @ (Q.swapaxes(2, 3) @ left))[..., 0].swapaxes(1, 2), trust)
    for place, loss in zip(places, total.tolist(), strict=True):
        losses[place] = loss


def _free_rests(every: Sequence[Samples], equations: Sequence[FreeEquations], weight: Floats, tau: Floats) -> Floats:
    """(h, M, n) residuals of the free fits of weighted torques (h, M, n), each as `free_residual` does it."""
    joints = np.arange(weight.shape[1])
    pairs = list(zip(equations, weight, tau, strict=True))
    along = np.stack([part.along(y, w, joints) for part, w, y in pairs])
    diagonals = np.stack([np.diagonal(part.products, axis1=1, axis2=2) for part in equations])
    scale = np.sqrt(np.einsum("hj,hjc->hc", weight**2, diagonals))
    seen = scale > 1e-9 * scale.max(axis=1, keepdims=True)
    shrink = np.where(seen, 1.0 / np.where(seen, scale, 1.0), 0.0)
    brakes = np.zeros((len(every), *diagonals.shape[1:]))
    for powers, samples, part in zip(brakes, every, equations, strict=True):
        powers[samples.trust > 0.0] = brake_powers(samples, part.columns, part.width)
    brakes *= shrink[:, None]
    left = np.ones(weight.shape)
    for _ in range(2):
        share = weight**2 / left
        G = np.stack([part.weighted(w) for part, w in zip(equations, share, strict=True)])
        G *= shrink[:, :, None] * shrink[:, None]
        b = np.einsum("hcj,hj->hc", along, 1.0 / left) * shrink
        moves = solve_singular(G, np.concatenate([b[:, :, None], brakes.swapaxes(1, 2)], axis=2))
        theta = shrink * np.stack([hold_driven(*pair) for pair in zip(moves, brakes, strict=True)])
        rest = tau - np.stack([part.torques(x) for part, x in zip(equations, theta, strict=True)]) * weight[:, None]
        left = np.maximum(np.mean(rest**2, axis=1), FINEST**2)
    return rest


def _sums_of_losses(rest: Floats, trust: Floats) -> Floats:
    """(h,) negative log-likelihoods of residuals (h, M, n) of joints that are trusted (h, n)."""
    variance = np.maximum(np.mean(rest**2, axis=1), FINEST**2)
    squares = np.sum(rest**2, axis=1) / variance
    return np.asarray(0.5 * np.sum((squares + rest.shape[1] * np.log(variance)) * trust, axis=1))


def _torque_factors(robot: Robot, samples: Samples) -> Iterator[tuple[int, tuple[float, bool]]]:
    """For joints whose torque may be in another unit: the best factor, and whether the model's masses alone show it."""
    ratio, error = torque_ratios(robot, samples) if has_prior(robot) else np.full((2, robot.dof), np.nan)
    known = (ratio > 3.0 * error) & np.isfinite(ratio)
    size = np.where(known, np.abs(np.log(np.where(known, ratio, 1.0))), 0.0)
    implied = dict(_implied_factors(robot, samples))
    for j in np.flatnonzero(samples.trust > 0.0).tolist():
        others = np.delete(size, j)[np.delete(known, j)]
        alone = bool(others.size) and bool(np.all(others < np.log(SMALLEST_FACTOR)))
        by_masses = alone and bool(size[j] > np.log(IMPOSSIBLE_RATIO))
        starts = [implied[j]] if j in implied else []
        starts += [float(ratio[j])] if by_masses else []
        best = min(starts, key=lambda f: _loss(robot, samples, j, f), default=1.0)
        if abs(np.log(best)) < np.log(SMALLEST_FACTOR / ZOOM[0]):
            continue
        for step in ZOOM:
            best = min((best / step, best, best * step), key=lambda f: _loss(robot, samples, j, f))
        if abs(np.log(best)) > np.log(SMALLEST_FACTOR):
            yield j, (best, by_masses)


def _implied_factors(robot: Robot, samples: Samples) -> Iterator[tuple[int, float]]:
    """For each joint the factor of its torque that the parameters of the other joints' equations imply.

    With equations Y_i theta = tau_i of the others and Y_j theta - g tau_j = 0 of the joint, which count so little that
    they settle only what the others leave open, least squares gives theta and g; the factor is 1 / g.
    """
    rows, torque = free_rows(robot, samples)
    joints = np.flatnonzero(samples.used).tolist()
    scale = np.linalg.norm(rows, axis=0)
    seen = scale > 1e-9 * scale.max(initial=1e-300)
    Y = (rows[:, seen] / scale[seen]).reshape(len(samples.q), len(joints), -1)
    tau = torque.reshape(len(samples.q), -1)
    products, along = np.einsum("mjp,mjq->jpq", Y, Y, optimize=True), np.einsum("mjp,mj->jp", Y, tau)
    for place, j in enumerate(joints if len(joints) > 1 else []):
        G = products.sum(axis=0) - products[place]
        shared = np.diagonal(G) > 1e-12 * np.diagonal(products[place])
        more = np.diagonal(products[place])[shared] / np.diagonal(G)[shared]
        if not more.any() or not samples.trust[j]:
            continue
        weight = FAINT / float(more.max())
        joined = np.zeros((len(G) + 1, len(G) + 1))
        joined[:-1, :-1] = G + weight * products[place]
        joined[-1, :-1] = joined[:-1, -1] = -weight * along[place]
        joined[-1, -1] = weight * float(tau[:, place] @ tau[:, place])
        right = np.append(along.sum(axis=0) - along[place], 0.0)
        size = np.sqrt(np.maximum(np.diagonal(joined), 1e-12 * float(np.diagonal(joined).max())))
        share = float((solve_singular(joined / np.outer(size, size), right / size) / size)[-1])
        if share > 0.0:
            yield j, 1.0 / share


def _explains_more(uneven: Finding | None, best: Finding | None) -> bool:
    """Whether uneven gains leave much less than another hypothesis, which has fewer of them."""
    if uneven is None or best is None or best.severity == "note":
        return uneven is not None
    return uneven.evidence["free residual after"] < UNEVEN * best.evidence["free residual after"]


def _uneven_gains(robot: Robot, samples: Samples, free: float) -> Finding | None:
    """Report torques of joints that do not belong together: each has a factor of its own, whatever the masses are."""
    factors, errors = relative_gains(robot, samples.thin_out(max(3, samples.q.shape[0] // ROUGH)))
    known = errors < KNOWN_GAIN
    if known.sum() < 2:
        return None
    middle = float(np.exp(np.median(np.log(factors[known]))))
    scale = np.where(known, factors / middle, 1.0)
    off = np.flatnonzero(np.abs(np.log(scale)) > np.log(OFF_GAIN)).tolist()
    if not off:
        return None
    scaled = replace(samples, effort=samples.effort * scale, noise=samples.noise * scale)
    gain, error = _total((block_losses(robot, samples, PARTS) - block_losses(robot, scaled, PARTS))[0])
    left = free_residual(robot, scaled)
    if gain < max(SHOWN * samples.q.shape[0], SIGMAS * error) or left > UNEVEN * free:
        return None
    names = [robot.joint_names[j] for j in np.flatnonzero(known).tolist()]
    listed = ", ".join(f"{name} {value:.2g}" for name, value in zip(names, scale[known].tolist(), strict=True))
    return Finding(
        code="unit" if len(off) > 1 else "wrong-gain",
        severity="error" if len(off) > 1 and left < BETTER * free else "warning",
        where="effort",
        joint=None if len(off) > 1 else robot.joint_names[off[0]],
        message=f"the torques of the joints fit each other much better if they are multiplied by: {listed}, as if they "
        "were in percent of each joint's rated torque, in currents, or without their gears",
        evidence={
            "free residual before": free,
            "free residual after": left,
            "gain of log-likelihood": gain,
            "standard error": error,
            **{f"factor of {name}": value for name, value in zip(names, scale[known].tolist(), strict=True)},
        },
        remedy="Declare the unit of torque, and the gear and torque constant of each joint, in the channel map.",
    )


def _loss(robot: Robot, samples: Samples, joint: int, factor: float) -> float:
    return float(block_losses(robot, samples.with_torque_scaled(joint, 1.0 / factor), 1).sum())


def _every_hypothesis(
    robot: Robot, samples: Samples, factors: dict[int, tuple[float, bool]], positions: list[tuple[int, float]]
) -> Iterator[_Hypothesis]:
    """All hypotheses, in the same order for all samples of a log."""
    yield from _hypotheses(robot, samples)
    yield from _units(robot, samples, factors)
    yield from _position_units(robot, samples, positions)


def _position_factors(robot: Robot, samples: Samples) -> Iterator[tuple[int, float]]:
    """Joints and factors by which their positions may be too small: those that leave a plausible motion."""
    for j, joint in enumerate(robot.moving_joints):
        spread, least = float(samples.q[:, j].std()), SMALLEST_MOTION[joint.kind == "prismatic"]
        largest = float(np.percentile(np.abs(samples.q[:, j]), 95.0))
        reach = joint_reach(joint)
        yield from ((j, f) for f in POSITION_FACTORS if f * spread > least and f * largest <= BEYOND_LIMITS * reach)


def _position_units(robot: Robot, samples: Samples, positions: list[tuple[int, float]]) -> Iterator[_Hypothesis]:
    """The hypotheses that one joint's position is in another unit."""
    remedy = "Declare the unit of this joint's position in the channel map (a list of units, one for each column)."
    for j, factor in positions:
        joint = robot.moving_joints[j]
        mistake = POSITION_FACTORS[factor][joint.kind == "prismatic"] or "a unit or a gear were mistaken"
        times = f"multiplied by {factor:.4g}" if factor > 1.0 else f"divided by {1.0 / factor:.4g}"
        scaled = samples.with_motion_scaled(np.where(np.arange(robot.dof) == j, factor, 1.0))
        says = f"the position of {joint.name} is {times}, as if {mistake}"
        yield _Hypothesis("unit", joint.name, says, remedy, scaled, position_factor=factor)


def _units(robot: Robot, samples: Samples, factors: dict[int, tuple[float, bool]]) -> Iterator[_Hypothesis]:
    """The hypotheses that one joint's torque is in another unit."""
    remedy = "Declare the unit of this joint's torque in the channel map, and its gear or torque constant."
    for j, (factor, by_masses) in factors.items():
        scaled = samples.with_torque_scaled(j, 1.0 / factor)
        yield _Hypothesis("unit", robot.joint_names[j], "", remedy, scaled, factor, by_masses)


def _said(robot: Robot, hypothesis: _Hypothesis) -> tuple[str, dict[str, float]]:
    """What a hypothesis says; of a mistaken unit with the factor, also as evidence."""
    if hypothesis.position_factor != 1.0:
        return hypothesis.says, {"factor of the position": hypothesis.position_factor}
    if hypothesis.says or hypothesis.joint is None:
        return hypothesis.says, {}
    joint = robot.joint_names.index(hypothesis.joint)
    fit = ProfiledFit.of(robot, hypothesis.samples)
    place = fit.joints.index(joint)
    rest = fit.judge(fit.at_joint(place, fit.explained[:, place])[:, None])
    more, error = float(np.nan_to_num(rest.value[0])), float(rest.error[0])
    known = error < NEAR_ENOUGH and abs(more) < NEAR_ENOUGH
    value = hypothesis.factor * (1.0 + more) if known else hypothesis.factor
    shown = f"{value:.4g} +- {2.0 * value * error:.2g}" if known else f"about {value:.2g}"
    unit = likely_unit(value, slide=robot.moving_joints[joint].kind == "prismatic")
    cause = f"as if it were in {unit}" if unit else "as if a gear, a torque constant or a rated torque were missing"
    return f"the torque of {hypothesis.joint} is divided by {shown}, {cause}", {"factor": value}


def _total(gains: Floats) -> tuple[float, float]:
    """Sum of the gains (PARTS,) of all parts of a log, and its standard error by their scatter."""
    return float(gains.sum()), float(np.sqrt(PARTS) * gains.std(ddof=1))


def _driven_joints(robot: Robot, samples: Samples, free: float, prior: float) -> Iterator[Finding]:
    """Report joints that friction would have to drive: the sign of their torque or motion is wrong."""
    before, error = dissipation(robot, samples)
    for j in np.flatnonzero((before < DRIVEN) & (before < -DRIVEN_SIGMAS * error)).tolist():
        name = robot.joint_names[j]
        after = dissipation(robot, samples.with_torque_sign(j))[0][j]
        free_h, prior_h = residuals(robot, samples.with_torque_sign(j))
        if after > 0.0 and free_h * prior_h < WORSE * free * prior:
            yield Finding(
                code="flipped",
                severity="error",
                where="model",
                joint=name,
                message=f"with these signs friction would push {name} instead of braking it: its torque or its "
                "position is flipped",
                evidence={
                    "friction power": float(before[j]),
                    "standard error": float(error[j]),
                    "after": float(after),
                    "free residual": free_h,
                },
                remedy="Set the sign in the channel map after checking it on the robot.",
            )


def _hypotheses(robot: Robot, samples: Samples) -> Iterator[_Hypothesis]:
    names, joints = robot.joint_names, range(robot.dof)
    flip = "Set the sign in the channel map after checking it on the robot."
    for j in joints:
        yield _Hypothesis(
            "flipped", names[j], f"the torque of {names[j]} is flipped", flip, samples.with_torque_sign(j)
        )
        moved = samples.with_position_sign(j)
        yield _Hypothesis("flipped", names[j], f"the motion of {names[j]} is flipped", flip, moved)
        both = moved.with_torque_sign(j)  # hypotheses with the same motion share its regressor
        yield _Hypothesis("flipped", names[j], f"motion and torque of {names[j]} are flipped", flip, both)
    every = replace(samples, effort=-samples.effort)
    yield _Hypothesis("flipped", None, "all torques are flipped", flip, every)
    yield from _swaps(robot, samples)
    for j in np.flatnonzero([joint.kind != "prismatic" for joint in robot.moving_joints]).tolist():
        for degrees in (90, -90, 180):
            turned = samples.with_offset(j, np.deg2rad(degrees))
            says = f"the zero of {names[j]} is moved by {degrees} degrees"
            yield _Hypothesis("offset", names[j], says, "Set the offset in the channel map.", turned)
    yield from _gravities(samples)
    for (unit, taken), factor in POSITION_UNITS.items():
        says = f"positions were taken for {taken} and are {unit}"
        scaled = samples.with_motion_scaled(factor)
        yield _Hypothesis("unit", None, says, "Declare the unit of position in the channel map.", scaled)


def _swaps(robot: Robot, samples: Samples) -> Iterator[_Hypothesis]:
    remedy = "Match the columns by joint name in the channel map."
    names = robot.joint_names
    for i, k in combinations(range(robot.dof), 2):
        pair = f"{names[i]} and {names[k]}"
        torques = samples.with_torques_swapped(i, k)
        yield _Hypothesis("swapped", names[i], f"the torques of {pair} are exchanged", remedy, torques)
        both = samples.with_joints_swapped(i, k)
        motions = both.with_torques_swapped(i, k)
        yield _Hypothesis("swapped", names[i], f"the motions of {pair} are exchanged", remedy, motions)
        yield _Hypothesis("swapped", names[i], f"{pair} are exchanged", remedy, both)


def _gravities(samples: Samples) -> Iterator[_Hypothesis]:
    remedy = "Turn the first joint in the robot's file, or use `with_base_orientation` or `with_gravity`."
    strength = float(np.linalg.norm(samples.gravity)) or 9.81
    for axis, name in enumerate("xyz"):
        for sign in (1.0, -1.0):
            gravity = np.zeros(3)
            gravity[axis] = sign * strength
            if np.allclose(gravity, samples.gravity, atol=SAME_GRAVITY * strength):
                continue
            says = f"gravity points along {'+' if sign > 0 else '-'}{name} of the base"
            yield _Hypothesis("gravity-direction", None, says, remedy, replace(samples, gravity=gravity))
    none = replace(samples, gravity=np.zeros(3))
    says = "the torques are already compensated for gravity"
    remedy = "Log the full torque, or identify with gravity (0, 0, 0) and add the compensation's model afterwards."
    yield _Hypothesis("gravity-compensated", None, says, remedy, none)
