"""Hypotheses about faults that would explain the log better: a flipped sign, exchanged joints, another gravity or unit.

Explanations are proposed with their evidence and never applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynid.findings import Finding
from dynid.gate.quick_fit import Samples, block_losses, dissipation, has_prior, residuals
from dynid.robot.model import Robot

__all__ = ["check_hypotheses"]

Floats = NDArray[np.float64]

UNEXPLAINED = 0.25
"""Relative residual of the free fit above which a log is reported, if no hypothesis is better; tuned on the fault
campaigns of docs/evidence.md (tests/campaigns/real_faults.py, seeds 530000 and 550000)."""
DRIVEN = -0.05
"""Power that friction puts into a joint, relative to its torque and speed, from which on it cannot be friction ..."""
DRIVEN_SIGMAS = 5.0
"""... if it exceeds its standard error by this factor. Both tuned on the fault campaigns of docs/evidence.md
(tests/campaigns/real_faults.py, seeds 530000 and 550000)."""
ROUGH = 200
"""Number of samples that separate good hypotheses from bad ones ..."""
FINALISTS = 6
"""... and number of the best hypotheses that are then judged on all samples (convention)."""
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
SMALLER = 0.9
"""Ratio of the free residuals, with a hypothesis and without, above which the log does not show the hypothesis, however
well the masses of the model fit; set with tests/campaigns/fault_injection.py, real_faults.py and gate_evidence.py: the
hypotheses that were true gave at most 0.89, except for exchanged joints of a wrist (0.96 to 0.99), and those that were
false at least 0.91; moved zeros and other gravities, false ones, down to 0.81, so that they need `BETTER`."""
PARTS = 10
"""Number of parts of the log whose gains are compared (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Hypothesis:
    code: str
    joint: str | None
    says: str
    remedy: str
    samples: Samples

    @property
    def shows_without_masses(self) -> bool:
        """Whether a fit of all parameters would improve: the direction of gravity may show by the masses alone."""
        return self.code not in ("gravity-direction", "gravity-compensated")

    @property
    def largest_ratio(self) -> float:
        """Ratio of the free residuals, with the hypothesis and without, below which the log shows it."""
        return SMALLER if self.code in ("flipped", "swapped", "unit") else BETTER


def check_hypotheses(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Look for hypotheses that explain the log much better than the robot's equations, and for driving friction.

    The size of a residual says little: exchanged wrist joints may leave a smaller residual than noise in other joints.
    A wrong hypothesis, however, increases the residual.
    """
    free, prior = residuals(robot, samples)
    best = _best_hypothesis(robot, samples, free, prior)
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
    rough = [float(block_losses(robot, hypothesis.samples, 1).sum()) for hypothesis in _hypotheses(robot, few)]
    whole, judged = list(_hypotheses(robot, samples)), []
    for place in sorted(range(len(rough)), key=lambda place: rough[place])[:FINALISTS]:
        judged.append((block_losses(robot, whole[place].samples, PARTS), whole[place]))
    losses, best = min(judged, key=lambda item: float(item[0].sum()))
    gains = block_losses(robot, samples, PARTS) - losses
    (gain, error), (free_gain, free_error) = _total(gains.sum(axis=0)), _total(gains[0])
    if gain < max(GAIN * samples.q.shape[0], SIGMAS * error):
        return None
    free_h, prior_h = residuals(robot, best.samples)
    if best.shows_without_masses and (free_gain <= 0.0 or free_h >= free):
        return None  # the masses of the model alone speak for it, and they are what is to be identified
    shown = free_gain > SIGMAS * free_error and free_h < best.largest_ratio * free
    shown = shown or (not best.shows_without_masses and has_prior(robot))
    sure = shown and free_h * prior_h < BETTER * free * prior
    return Finding(
        code=best.code,
        severity="error" if sure else "warning" if shown else "note",
        where="model",
        joint=best.joint,
        message=f"the log fits {'' if sure else 'somewhat ' if shown else 'slightly '}better if {best.says}",
        evidence={
            "free residual before": free,
            "free residual after": free_h,
            "prior residual before": prior,
            "prior residual after": prior_h,
            "gain of log-likelihood": gain,
            "standard error": error,
        },
        remedy=best.remedy if shown else f"This motion hardly shows it. If you doubt the channel map: {best.remedy}",
    )


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
    for unit, factor in (("radians", 180.0 / np.pi), ("degrees", np.pi / 180.0)):
        says = f"positions were taken for {'degrees' if unit == 'radians' else 'radians'} and are {unit}"
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
