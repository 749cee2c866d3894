"""Causes of what the free fit leaves: lengths, angles, encoder zeros, base tilt, gains, springs, drifts, single delays.

Each cause is one column beside the robot's equations: the torque per unit of its amount. Those of the geometry are
exact derivatives (`dynid.information.displacements`). Causes compete by what they gain away from reversals, where
friction has a known shape; the one that explains the log best is named with its value and error. What the log cannot
show is listed.

Samples of k logs are judged alike. A drift is that of one log; all other causes are properties of the robot, with one
value in all logs. What the equations lack repeats in every log and so reaches sqrt(k) times as many standard errors as
in one: of a property those per log count, its standard errors over sqrt(k).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Floats
from dynid.findings import Finding
from dynid.gate.profiled_fit import Amounts, ProfiledFit, logs_of
from dynid.gate.quick_fit import Samples
from dynid.information.displacements import displace, displacement_columns
from dynid.robot.model import Body, Robot
from dynid.terms.load_dependent import horizontal_axes

LIKELY = 4.5
"""Standard errors from which on a cause is noted (experiment: tests/campaigns/hypotheses.py, clean logs are not
accused)."""
SURE = 6.0
"""Standard errors from which on it is a warning, or a note where it shows at reversals alone (experiment: on the real
logs of docs/real-data.md causes that nobody knows of reach 5.9; chosen with these logs in view)."""
BEYOND_PLACEBOS = 3.0
"""Gain of a cause over the largest of any cause at wrong times that makes it a warning. Experiment: with noise of a
correlation of 0.98 from sample to sample, which alone made these warnings, at most 2.0; planted faults of
tests/campaigns/faults_within.py, seed 77000, at least 5.4."""
SHORTEST = 0.01
"""Distance between joints below which it is no length of a link [m] (convention)."""
ALIKE, TELLING = 0.02, 30.0
"""Relative and absolute difference of gains up to which the log cannot tell two causes apart (convention; a gain is
twice a log-likelihood)."""
REFINEMENTS = 2
"""Number of fits that refine a wrong gain (convention: each leaves the square of the error before)."""
RIVAL = 0.7
"""Share of the best gain from which on another cause is mentioned and the best one is no more than a note (convention;
without it 7 of 150 clean logs of tests/campaigns/gate_evidence.py were accused) ..."""
BEYOND_DOUBT = 12.0
"""... unless it has as many standard errors as this, and it and its rivals are all `PLACEMENTS`: then one of them is
there, and the warning names all of them (convention: twice `SURE`; experiment: of 40 clean logs of gate_evidence.py,
seed 81000, one had a tilt of 13.7 standard errors with a spring as its rival)."""
PLACEMENTS = ("zero", "slide zero", "length", "angle")
"""Kinds that displace a joint, so that the torques of several joints change together. A spring, a gain or a drift acts
on the torque of one joint, as friction does that no equation holds."""

FAR_AXIS = 0.2
"""Angle of an axis against the model's from which on it is that of another robot [rad] (convention: 11 deg are neither
calibration nor a crooked mount) ..."""
FAR_LENGTH = 0.25
"""... and error of a link's length, as a share of it ..."""
LEAST_LENGTH = 0.05
"""... and in any case [m] (conventions)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cause, in the order of preference where the log cannot tell two kinds apart."""

    code: str
    unit: str
    """Printed unit; of turning and of sliding joints where these differ, with "or" between them."""
    factor: float
    """Printed unit over SI unit."""
    least: float
    """Amount below which it does not matter [SI]; of drifts and springs as a share of the torque (convention)."""
    small: float
    """Amount up to which it is noted, above which it is a warning [SI]."""
    large: float
    """Amount from which on it is no plausible error, so that something else is wrong [SI]."""
    says: str
    remedy: str


KINDS: dict[str, Kind] = {
    "gain": Kind(
        "wrong-gain",
        "%",
        100.0,
        0.02,
        0.15,
        0.7,
        "the torque seems to be measured {size} too {large} beside those of the other joints",
        "Check the gain, the torque constant and the gear of this joint in the channel map.",
    ),
    "zero": Kind(
        "offset",
        "deg",
        180.0 / np.pi,
        0.004,
        0.01,
        0.6,
        "the encoder seems to read {size} too {little}",
        "Calibrate the zero, set the offset in the channel map, or estimate it (--set free=zeros).",
    ),
    "slide zero": Kind(
        "offset",
        "mm",
        1000.0,
        0.002,
        0.005,
        0.3,
        "the position seems to be {size} too {little}",
        "Calibrate the zero, set the offset in the channel map, or estimate it (--set free=zeros).",
    ),
    "length": Kind(
        "link-length",
        "mm",
        1000.0,
        0.002,
        0.005,
        0.3,
        "{link} seems to be {size} {longer} than the model states",
        "Measure it, or estimate it (--set free=lengths).",
    ),
    "tilt": Kind(
        "gravity-direction",
        "deg",
        180.0 / np.pi,
        0.005,
        0.03,
        0.6,
        "the base seems to be tilted by {size} about ({axis})",
        "Level the base, state gravity (--gravity x,y,z), or estimate it (--set free=tilt).",
    ),
    "drift": Kind(
        "drifting-offset",
        "N m/min or N/min",
        1.0,
        0.01,
        0.0,
        np.inf,
        "the offset of the torque drifts by {signed}",
        "Does the sensor or the gear warm up? Warm up first, or cut the log (--time).",
    ),
    "spring": Kind(
        "joint-spring",
        "N m/rad or N/m",
        1.0,
        0.01,
        0.0,
        np.inf,
        "a spring of {signed} seems to act on the joint, such as a cable or a counterbalance",
        "Add it to the model (--set springs={joint}).",
    ),
    "late": Kind(
        "late-joint",
        "ms",
        1000.0,
        0.001,
        0.002,
        0.2,
        "the torque of this joint alone seems to be {size} {late}",
        "Record all torques at the same instants, or shift this channel.",
    ),
    "angle": Kind(
        "link-angle",
        "deg",
        180.0 / np.pi,
        0.005,
        0.02,
        0.6,
        "the axis seems to be turned by {size} about ({axis}) of {link}",
        "Compare the angles of the model with the drawing of the robot.",
    ),
}
"""The kinds of causes."""

NAMED = frozenset(kind.code for kind in KINDS.values()) | {
    "change",
    "flipped",
    "gravity-compensated",
    "other-robot",
    "push",
    "swapped",
    "unit",
}
"""Codes of findings that name what may be wrong with a log or a model: also as notes they belong into every result."""

TESTED = {"length": 0.05, "zero": np.deg2rad(1.0), "gain": 0.05, "late": 0.01}
"""Errors that users want to know of: a share of a link's length, an encoder's zero [rad], a relative gain, a delay of
one joint [s] (convention)."""
LISTED = {
    "length": ("a 5 % error of the length of", "error of the length", "link"),
    "zero": ("an error of 1 deg at the zero of", "error of the zero", "joint"),
    "gain": ("a 5 % wrong gain of", "error of the gain", "joint"),
    "late": ("a delay of 10 ms in the torque of one joint:", "delay", "joint"),
}
"""What a note calls them, and its evidence, and what has them."""
MISSED = 1.64
"""Standard errors beyond `LIKELY` at which an error is missed in one of twenty logs (derivation: quantile of the normal
distribution)."""


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """One thing that may be wrong."""

    kind: str
    """A key of `KINDS`."""
    joint: int
    """Index of the joint concerned, from 0."""
    column: Floats
    """(M u,) weighted torque per unit of the amount"""
    direction: Floats
    """(6,) displacement of the joint per unit; zeros where it is none."""
    at_reversals: bool = False
    """Whether it shows at reversals alone, where friction may do what no equation says."""
    log: int | None = None
    """Number of the log in which it acts; None where it acts in all."""

    def unit(self, robot: Robot) -> str:
        """The printed unit of its amount, for a turning or a sliding joint."""
        turning, _, sliding = KINDS[self.kind].unit.partition(" or ")
        return sliding if sliding and robot.bodies[self.joint].is_prismatic else turning

    def describe(self, robot: Robot, value: float, error: float) -> str:
        """What is wrong, with its amount and two standard errors."""
        kind, unit = KINDS[self.kind], self.unit(robot)
        axis = ", ".join(f"{x:.2g}" for x in self.direction[3:] + 0.0)
        shown, spread = kind.factor * value, 2.0 * kind.factor * error
        return kind.says.format(
            size=f"{abs(shown):.3g} +- {spread:.2g} {unit}",
            signed=f"{shown:+.3g} +- {spread:.2g} {unit}",
            large="large" if value > 0.0 else "small",
            little="little" if value > 0.0 else "much",
            longer="longer" if value > 0.0 else "shorter",
            late="late" if value > 0.0 else "early",
            axis=axis,
            link=_carrier(robot, robot.bodies[self.joint]),
            joint=robot.joint_names[self.joint],
        )


def find_causes(robot: Robot, samples: Samples, fit: ProfiledFit) -> tuple[list[Cause], Amounts]:
    """All causes with what each of them explains by itself; of several logs away from reversals alone."""
    causes = [*_displacements(robot, samples, fit), *_channels(samples, fit)]
    amounts = fit.judge(np.stack([cause.column for cause in causes], axis=1))
    if samples.log is not None:
        return causes, amounts
    unlikely = _deviations(samples, causes, amounts) <= LIKELY
    hidden = [k for k, x in enumerate(causes) if unlikely[k] and _may_show_at_reversals(x, float(amounts.error[k]))]
    if not hidden or samples.jerk is None:
        return causes, amounts
    still = replace(samples, jerk=None)
    every = ProfiledFit.of(robot, still)
    others = [*_displacements(robot, still, every), *_channels(still, every)]
    for k in hidden:
        causes[k] = replace(others[k], at_reversals=True)
    seen = every.judge(np.stack([causes[k].column for k in hidden], axis=1))
    for known, found in zip(amounts, seen, strict=True):
        known[hidden] = found
    return causes, amounts


def _may_show_at_reversals(cause: Cause, error: float) -> bool:
    """Whether all equations may show a cause that those away from reversals do not.

    Where friction prevails, a torque has the sign of the velocity away from reversals, and a wrong gain is hidden
    behind friction that grows with the load. A joint that is hardly ever far from a reversal shows no drift there, and
    no friction changes with time alone. What else is hidden altogether, is so at reversals, too.
    """
    shows_there = cause.kind in TESTED and cause.kind != "late"
    return cause.kind in ("gain", "drift") or (shows_there and bool(np.isfinite(error)))


def _displacements(robot: Robot, samples: Samples, fit: ProfiledFit) -> Iterator[Cause]:
    errors = [list(placement_errors(body, samples.gravity)) for body in robot.bodies]
    wanted = np.array([np.any([direction for _, direction in each], axis=0) for each in errors])
    columns = displacement_columns(robot, fit.theta, samples.q, samples.dq, samples.ddq, wanted)[:, fit.joints]
    columns *= fit.scale[None, :, None, None]
    for j, each in enumerate(errors):
        for kind, direction in each:
            yield Cause(kind, j, (columns[:, :, j] @ direction).reshape(-1), direction)


def placement_errors(body: Body, gravity: Floats) -> Iterator[tuple[str, Floats]]:
    """What may be wrong with the placement of a joint: the kind, and the displacement (6,) per unit."""
    axis = body.R_parent_joint @ body.axis
    length = float(np.linalg.norm(body.p_parent_joint))
    still = np.zeros(3)
    if body.is_prismatic:
        yield "slide zero", np.concatenate([axis, still])
    else:
        yield "zero", np.concatenate([still, axis])
    if length > SHORTEST and body.parent >= 0:
        yield "length", np.concatenate([body.p_parent_joint / length, still])
    if body.parent < 0:
        if np.any(gravity):
            yield from (("tilt", np.concatenate([still, across])) for across in horizontal_axes(gravity))
        return
    yield from (("angle", np.concatenate([still, across])) for across in horizontal_axes(axis))


def _channels(samples: Samples, fit: ProfiledFit) -> Iterator[Cause]:
    """What may be wrong with the torque of one joint."""
    minutes = [] if samples.time is None else [_minutes(samples.time, mine) for mine in logs_of(samples)]
    slope = samples.slope if samples.jerk is None else fit.slope  # measured samples tell it only without reversals
    none = np.zeros(6)
    for place, j in enumerate(fit.joints):
        yield Cause("gain", j, fit.at_joint(place, fit.explained[:, place]), none)
        for log, elapsed in enumerate(minutes):
            yield Cause("drift", j, fit.at_joint(place, elapsed), none, log=None if samples.log is None else log)
        yield Cause("spring", j, fit.at_joint(place, samples.q[:, j]), none)
        if slope is not None and len(fit.joints) > 1:
            yield Cause("late", j, fit.at_joint(place, -slope[:, j]), none)


def _minutes(time: Floats, mine: Floats) -> Floats:
    """(M,) minutes since the first sample of a log, of samples (M,) that are its own; zero for the others."""
    return np.asarray((time - time[int(mine.argmax())]) / 60.0 * mine)


def best_cause(
    samples: Samples, causes: list[Cause], amounts: Amounts, least: float = LIKELY
) -> tuple[int | None, Floats]:
    """The place of the cause that explains most, None where none is likely; and the gains (k,) of those that are."""
    plausible = [_matters(cause, value, samples) for cause, value in zip(causes, amounts.value.tolist(), strict=True)]
    bounds = np.array([SURE if cause.at_reversals else least for cause in causes])
    likely = np.array(plausible) & (_deviations(samples, causes, amounts) > bounds)
    gains = np.where(likely, amounts.gain, 0.0)
    if not likely.any():
        return None, gains
    order = list(KINDS)
    rivals = np.flatnonzero(gains.max() - gains <= min(ALIKE * gains.max(), TELLING)).tolist()
    return min(rivals, key=lambda place: (order.index(causes[place].kind), -gains[place])), gains


def _deviations(samples: Samples, causes: Sequence[Cause], amounts: Amounts) -> Floats:
    """(k,) amounts in standard errors; per log for what acts in all of several logs."""
    return np.asarray(np.abs(np.nan_to_num(amounts.value)) / amounts.error / [_spread(samples, x) for x in causes])


def _spread(samples: Samples, cause: Cause) -> float:
    """Square root of the number of logs in which a cause acts."""
    return 1.0 if cause.log is not None else float(np.sqrt(len(logs_of(samples))))


def name_causes(
    robot: Robot,
    samples: Samples,
    causes: list[Cause],
    amounts: Amounts,
    least: float = LIKELY,
    *,
    fit: ProfiledFit | None = None,
) -> Iterator[Finding]:
    """Report the cause that explains most; it is a warning only if it is sure.

    Where another cause explains nearly as much, neither is sure, for what no equation holds may look like both; but far
    beyond doubt a joint is displaced, one way or the other.

    Args:
        robot: The robot.
        samples: The samples.
        causes: The causes.
        amounts: What each of them explains.
        least: Standard errors from which on a cause is named.
        fit: The fit of the samples, with which a sure cause must explain more than any cause does at wrong times.
    """
    best, gains = best_cause(samples, causes, amounts, least)
    if best is None:
        return
    cause, kind = causes[best], KINDS[causes[best].kind]
    value, error = float(amounts.value[best]), float(amounts.error[best])
    used = replace(samples, jerk=None) if cause.at_reversals else samples
    if cause.kind == "gain":
        value, error = _refine_gain(robot, used, cause.joint, value)
    elif cause.direction.any():
        refined = _refine_placement(robot, used, cause, value)
        value, error = refined if np.isfinite(refined).all() else (value, error)
    rivals = [
        causes[place] for place in np.argsort(-gains).tolist() if place != best and gains[place] > RIVAL * gains[best]
    ]
    others = [f"{KINDS[rival.kind].code} of {robot.joint_names[rival.joint]}" for rival in rivals]
    least_sure = BEYOND_DOUBT if all(each.kind in PLACEMENTS for each in (cause, *rivals)) else np.inf
    corrected = abs(value) / error / _spread(samples, cause)  # a true cause is as sure once corrected
    deviations = min(float(_deviations(samples, causes, amounts)[best]), corrected)
    sure = abs(value) > kind.small and deviations > (least_sure if rivals else SURE)
    sure = sure and not cause.at_reversals and (cause.kind == "late" or _shows_at_reversals(robot, samples, cause))
    sure = sure and (fit is None or float(amounts.gain[best]) > BEYOND_PLACEBOS * _most_by_placebos(fit, causes, best))
    far = cause.kind in ("angle", "length") and sure and abs(value) > farthest(robot, cause)
    asks = "Is this the right robot file? " if far else ""
    doubt = f" Nearly as well explained by: {', '.join(dict.fromkeys(others))}." if others else ""
    yield Finding(
        code=kind.code,
        severity="warning" if sure else "note",
        where="effort" if cause.kind in ("gain", "drift", "spring", "late") else "model",
        joint=None if cause.kind == "tilt" else robot.joint_names[cause.joint],
        message=cause.describe(robot, value, error),
        evidence={
            f"amount [{cause.unit(robot)}]": kind.factor * value,
            f"standard error [{cause.unit(robot)}]": kind.factor * error,
            "gain of log-likelihood": 0.5 * float(amounts.gain[best]),
            **({} if samples.log is None else {"logs": len(logs_of(samples))}),
        },
        remedy=asks + kind.remedy.format(joint=robot.joint_names[cause.joint]) + doubt,
    )


def _most_by_placebos(fit: ProfiledFit, causes: Sequence[Cause], best: int) -> float:
    """The largest gain of any cause at wrong times, beside the best one."""
    beside = fit.with_column(causes[best].column)
    columns = np.stack([cause.column for cause in causes], axis=1)
    return max(float(beside.judge(moved).gain.max()) for moved in beside.placebos(columns))


def _shows_at_reversals(robot: Robot, samples: Samples, cause: Cause) -> bool:
    """Whether a cause is as sure by all equations: except for a delay, what is true elsewhere is true at reversals."""
    every = replace(samples, jerk=None)
    causes, amounts = find_causes(robot, every, ProfiledFit.of(robot, every))
    (same,) = (
        place
        for place, other in enumerate(causes)
        if (other.kind, other.joint, other.log) == (cause.kind, cause.joint, cause.log)
        and np.array_equal(other.direction, cause.direction)
    )
    return bool(abs(np.nan_to_num(amounts.value[same])) > SURE * _spread(samples, cause) * amounts.error[same])


def farthest(robot: Robot, cause: Cause) -> float:
    """Amount of a placement from which on it is that of another robot [rad or m]."""
    length = float(np.linalg.norm(robot.bodies[cause.joint].p_parent_joint))
    return FAR_AXIS if cause.kind == "angle" else max(FAR_LENGTH * length, LEAST_LENGTH)


def _matters(cause: Cause, value: float, samples: Samples) -> bool:
    """Whether the amount of a cause is plausible and not too small to matter."""
    kind, size = KINDS[cause.kind], abs(value)
    if cause.kind in ("drift", "spring"):
        rows = slice(None) if samples.log is None or cause.log is None else samples.log == cause.log
        torque = samples.effort[rows, cause.joint]
        shape = samples.q[:, cause.joint] if cause.kind == "spring" else samples.time
        size *= 0.0 if shape is None else float(shape[rows].std()) / (60.0 if cause.kind == "drift" else 1.0)
        size /= max(float(torque.std()), 1e-300)
    return kind.least < size < kind.large


def _refine_gain(robot: Robot, samples: Samples, joint: int, value: float) -> tuple[float, float]:
    """The error of a gain and its standard error, by fits to torques that are divided by the gain."""
    error = np.inf
    for _ in range(REFINEMENTS):
        effort = samples.effort.copy()
        effort[:, joint] /= 1.0 + value
        fit = ProfiledFit.of(robot, replace(samples, effort=effort))
        place = fit.joints.index(joint)
        rest = fit.judge(fit.at_joint(place, fit.explained[:, place])[:, None])
        more, error = float(np.nan_to_num(rest.value[0])), float(rest.error[0]) * (1.0 + value)
        value = (1.0 + value) * (1.0 + float(np.clip(more, -0.5, 0.5))) - 1.0
    return value, error


def _refine_placement(robot: Robot, samples: Samples, cause: Cause, value: float) -> tuple[float, float]:
    """The amount of a displacement and its standard error, by a fit to the robot that is displaced by it.

    Parameters that were fitted to the wrong geometry are wrong themselves, by a share that grows with the amount.
    """
    moved = displace(robot, {robot.joint_names[cause.joint]: value * cause.direction})
    fit = ProfiledFit.of(moved, samples)
    wanted = np.zeros((robot.dof, 6), dtype=bool)
    wanted[cause.joint] = cause.direction != 0.0
    columns = displacement_columns(moved, fit.theta, samples.q, samples.dq, samples.ddq, wanted)[:, fit.joints]
    column = (columns[:, :, cause.joint] @ cause.direction) * fit.scale
    rest = fit.judge(column.reshape(-1, 1))
    return value + float(rest.value[0]), float(rest.error[0])


def untestable(robot: Robot, causes: list[Cause], amounts: Amounts) -> Iterator[Finding]:
    """A note that lists the lengths, zeros, gains and single delays whose usual errors this log may not show.

    Its evidence is the smallest error of each that the log surely shows; what it never shows, has none.
    """
    hidden: dict[str, list[str]] = {kind: [] for kind in TESTED}
    shown = dict[str, float]()
    for cause, error in zip(causes, amounts.error.tolist(), strict=True):
        if cause.kind not in TESTED:
            continue
        body = robot.bodies[cause.joint]
        length = float(np.linalg.norm(body.p_parent_joint)) if cause.kind == "length" else 1.0
        limit = ((SURE if cause.at_reversals else LIKELY) + MISSED) * error
        if limit > TESTED[cause.kind] * length:
            named = _carrier(robot, body) if cause.kind == "length" else robot.joint_names[cause.joint]
            hidden[cause.kind].append(named)
            if np.isfinite(limit):
                kind = KINDS[cause.kind]
                shown[f"smallest {LISTED[cause.kind][1]} of {named} [{kind.unit}]"] = kind.factor * limit
    listed = {kind: list(dict.fromkeys(names)) for kind, names in hidden.items() if names}
    if listed:
        spelt = (f"{LISTED[kind][0]} {', '.join(names)}" for kind, names in listed.items())
        counted = (
            f"{LISTED[kind][0]} {len(names)} {LISTED[kind][2]}{'s' if len(names) > 1 else ''}"
            for kind, names in listed.items()
        )
        yield Finding(
            code="untestable",
            severity="note",
            where="model",
            message=f"this log may not show {'; '.join(spelt)}",
            brief=f"this log may not show {sum(map(len, listed.values()))} usual errors: {'; '.join(counted)}",
            evidence=shown,
            remedy="Compare them with the data sheet of the robot; wider and faster motions with more load show more.",
        )


def _carrier(robot: Robot, body: Body) -> str:
    """Name of the link that carries a body's joint."""
    return robot.root if body.parent < 0 else robot.bodies[body.parent].joint.child
