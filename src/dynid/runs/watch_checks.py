"""Doubts about logs before their alarms: wrong signs, units or orders of joints, and logs that were fitted.

An identified model tells them apart from pushes, loads and wear, of which it still explains a part of the torques.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.findings import Finding
from dynid.links.common.copies import SeenSamples
from dynid.links.identify import Identification
from dynid.links.log_reader import Log, Notice
from dynid.monitor.calibration import Calibration
from dynid.processing.experiment import Experiment

SAMPLES = 2000
"""Samples of a log that are looked at (convention)."""
TOLD = 5.0
"""Standard deviations that the model's torque must vary by, for a joint to be judged (convention)."""
UNLIKE = 1.25
"""Spread of the residual over that of the torque above which a model explains nothing (experiment: a flipped sign has
2, exchanged joints of a UR10 0.8 to 5, loads and doubled friction at most 0.6) ..."""
LARGE = 4.0
"""Spread of the torques of all joints over the model's above which their unit is doubted (convention: no load makes all
joints carry so much) ..."""
EXPLAINED = 0.5
"""... and the share of it that the right cause leaves at most (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Cause:
    """What may be wrong with a log, and the log without it."""

    code: str
    says: str
    run: Experiment
    joint: str | None = None


def check_log(fit: Identification, run: Experiment, calibration: Calibration) -> Iterator[Finding]:
    """Look for faults of a log that would raise alarms, though nothing pushes.

    Args:
        fit: The identified model.
        run: The log.
        calibration: What a clean robot does.
    """
    matched = run.matched(fit.robot)
    known = np.flatnonzero(np.isfinite(matched.effort).all(axis=1))
    if not known.size:
        return
    few = matched.rows(known[:: max(1, known.size // SAMPLES)])
    expected = _spread(fit.torque(few))
    is_told = expected > TOLD * calibration.typical_std
    constant = np.ptp(few.effort, axis=0) == 0.0
    frozen = constant & (is_told | constant.all())  # a joint at rest may carry one torque, but not all of them
    names = np.array(fit.robot.joint_names)
    if frozen.any():
        yield Finding(
            code="frozen",
            severity="warning",
            where=f"{run.source}: effort",
            joint=str(names[frozen][0]) if frozen.sum() == 1 else None,
            message=f"the torques of {', '.join(names[frozen])} never change: the alarms say nothing about pushes",
            evidence={str(names[j]): float(expected[j]) for j in np.flatnonzero(frozen)},
            remedy="Check the torques of the log and their columns in the channel map.",
        )
        return
    size = _spread(few.effort)
    unlike = is_told & (_residual_spread(fit, few) > UNLIKE * size)
    if not unlike.any() and (size > LARGE * expected)[is_told].all():
        unlike = is_told
    if unlike.any():
        yield _name_cause(fit, few, calibration, names[unlike].tolist())


def _name_cause(fit: Identification, run: Experiment, known: Calibration, unlike: list[str]) -> Finding:
    """The fault without which the model explains the log, or that none was found."""

    def loss(tried: Experiment) -> float:
        return float((_residual_spread(fit, tried) / known.band.high_torque).sum())

    before = loss(run)
    after, best = min(((loss(cause.run), cause) for cause in _causes(fit, run)), key=lambda pair: pair[0])
    is_named = after < EXPLAINED * before
    cause = f"but would be if {best.says}" if is_named else "and no simple cause was found"
    return Finding(
        code=best.code if is_named else "unexplained",
        severity="warning",
        where=f"{run.source}: model",
        joint=best.joint if is_named else None,
        message=f"the torques of {', '.join(unlike)} are not those of the model, {cause}: the alarms say nothing about "
        "pushes",
        evidence={"residual": before, "residual without it": after},
        remedy="Correct the channel map (units, signs, order of the columns), or watch with the result of this robot.",
    )


def _causes(fit: Identification, run: Experiment) -> Iterator[_Cause]:
    """Wrong units, signs and orders of joints."""
    names, n = fit.robot.joint_names, fit.robot.dof
    slides = np.array([body.is_prismatic for body in fit.robot.bodies])
    degrees, radians = np.where(slides, 1e-3, np.pi / 180.0), np.where(slides, 1e3, 180.0 / np.pi)
    for factors, says in (
        (degrees, "the positions are in degrees (millimetres for slides), not in radians (metres)"),
        (radians, "the positions are in radians (metres for slides), not in degrees (millimetres)"),
    ):
        yield _Cause("unit", says, _scaled(run, factors))
    factor = _spread(fit.torque(run)).sum() / max(_spread(run.effort).sum(), 1e-12)
    yield _Cause("unit", f"all torques were {factor:.3g} times as large", replace(run, effort=factor * run.effort))
    yield _Cause("flipped", "all torques have the opposite sign", replace(run, effort=-run.effort))
    for j in range(n):
        sign = np.where(np.arange(n) == j, -1.0, 1.0)
        for factors, unit in ((degrees, "mm" if slides[j] else "degrees"), (radians, "m" if slides[j] else "radians")):
            scaled = _scaled(run, np.where(np.arange(n) == j, factors, 1.0))
            yield _Cause("unit", f"the position of {names[j]} is in {unit}", scaled, names[j])
        says = f"of {names[j]} has the opposite sign"
        yield _Cause("flipped", f"the torque {says}", replace(run, effort=sign * run.effort), names[j])
        yield _Cause("flipped", f"the position {says}", _scaled(run, sign), names[j])
    yield _Cause("swapped", "the joints are in the reverse order", _ordered(run, list(range(n))[::-1]))
    for i, j in combinations(range(n), 2):
        order = list(range(n))
        order[i], order[j] = j, i
        pair = f"{names[i]} and {names[j]}"
        yield _Cause("swapped", f"{pair} are exchanged", _ordered(run, order))
        yield _Cause("swapped", f"the torques of {pair} are exchanged", replace(run, effort=run.effort[:, order]))


def _scaled(run: Experiment, factors: Floats) -> Experiment:
    """The run with other units or signs of its motion."""
    return replace(run, q=factors * run.q, dq=factors * run.dq, ddq=factors * run.ddq)


def _ordered(run: Experiment, order: list[int]) -> Experiment:
    """The run with its channels in another order."""
    return replace(run, **{name: getattr(run, name)[:, order] for name in ("q", "dq", "ddq", "effort", "valid")})


def _residual_spread(fit: Identification, run: Experiment) -> Floats:
    return _spread(run.effort - fit.torque(run))


def _spread(values: Floats) -> Floats:
    """(n,) median distance of the rows (N, n) from their median: neither offsets nor short pushes count."""
    return np.asarray(np.median(np.abs(values - np.median(values, axis=0)), axis=0))


def watched_samples(fit: Identification, clean: Sequence[Log | Experiment], notice: Notice) -> SeenSamples:
    """The samples of logs that are read for a watch; those that the result was identified from are told.

    Args:
        fit: The identification.
        clean: Logs that calibrate the watch.
        notice: Called with every finding.
    """
    calibrating = {id(log) for log in clean}
    fitted = [(run.source, run.stretch_keys) for run in fit.equations.excerpts]

    def tell(log: Log, what: str) -> None:
        source = log if isinstance(log, str | Path) else log.source
        notice(_seen(Path(source).name, what, is_clean=id(log) in calibrating))

    return SeenSamples(fitted, tell)


def tell_fitted(fit: Identification, runs: Sequence[Experiment], notice: Notice, *, is_clean: bool = False) -> None:
    """Tell which experiments an identification in memory was made from."""
    for run in runs:
        if any(run is other for other in fit.equations.excerpts):
            notice(_seen(run.source, "the result was identified from it", is_clean=is_clean))


def _seen(source: str, what: str, *, is_clean: bool) -> Finding:
    """A warning about a log that was fitted."""
    effect = (
        "that its residuals are too small, and false alarms come more often than is stated"
        if is_clean
        else "that what pushed in it is partly in the model, and no alarm in it proves little"
    )
    remedy = "Omit it: parts of the logs of the result are left out in turn." if is_clean else "Watch another log."
    return Finding(
        code="watch-seen",
        severity="warning",
        where=source,
        message=f"{what}, so {effect}",
        remedy=remedy,
    )


def refuse_watched(clean: Sequence[Experiment], watched: Sequence[Experiment]) -> None:
    """Refuse experiments that calibrate a watch and are watched by it.

    Raises:
        ArgumentError: One of them is both.
    """
    for run in clean:
        if any(run is other or np.array_equal(run.effort, other.effort, equal_nan=True) for other in watched):
            raise ArgumentError(
                f"{run.source} is watched, and is a log in which nothing touched the robot (clean)",
                remedy="Calibrate with other logs than those that are watched: a push in the log would set its own "
                "threshold.",
            )
