"""Is the wrench what the log says it is? Settings that explain it better are proposed, never applied.

Hypotheses: other axes (sensor or base), reversed moments, a bias that drifts or changes from log to log, a delayed
wrench, a turned sensor, a tilted base, both. A negative mass shows a reversed sign; an inertia that no body can have
shows reversed moments as well; moments with a lever of metres are in N mm.

The delay of the wrench is the shift in time that brings it nearest to what the load explains:

    measured(t) = predicted(t - delay)  ~  predicted - delay * d(predicted)/dt

It is found by Gauss-Newton steps: each is the linear problem of the load with one more column, whose uncertainty comes
with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import fdtri

from dynid.arrays import Floats
from dynid.errors import EstimationError, IdentifiabilityError
from dynid.findings import Finding
from dynid.load.load import FAR_SHIFT, Load, make_possible
from dynid.load.load_solver import solve_weighted
from dynid.load.sensor_pose import sensor_columns, solve_with_pose
from dynid.load.wrench_equations import WrenchData, WrenchForm
from dynid.load.wrist import FAR, Sensing, solve_load, wrench_data
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

SAMPLES = 400
"""Number of samples with which hypotheses are compared; convention: enough to tell them apart, and quick."""
BETTER = 1.15
"""Factor by which a hypothesis must shrink the residual (geometric mean over the channels) to be proposed; convention,
no false alarm and no fault missed in tests/campaigns/load_faults.py."""
AS_GOOD = 1.05
"""Hypotheses within this factor of the best count as equal, and the simplest of them is proposed; convention."""
CLEAR = 4.0
"""Standard deviations by which a delay must differ from the stated one to be proposed; convention."""
NEGATIVE = 3.0
"""Standard deviations below zero at which a mass counts as negative; convention."""
UNKNOWNS = 16
"""Number of unknowns: ten of the load, six of the bias."""
DETAILS = frozenset({"sensor-turned", "wrench-sign", "gravity-direction"})
"""Codes of findings about a fit with a turned sensor or a tilted base that explain a proposal."""
STEPS = 12
"""Largest number of steps in the search for a delay; convention."""
SETTLED = 0.1
"""Step of the delay [standard deviations] below which the search has settled; convention."""
SHORTEST = 8
"""Number of samples without a gap that a delay needs; convention."""
TINY = 1e-9
"""Step of the delay that rounding makes [s]."""
ENOUGH = 20_000
"""Number of samples that determine a delay to a fraction of the sampling period; convention."""
LONGEST = 0.5
"""Delay that no sensor has [s]; convention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Settings of the sensor that explain the wrench better."""

    finding: Finding
    """The fault that the data show, as a sentence."""
    sensing: Sensing
    """Settings that take this proposal and those before it into account."""
    improvement: float
    """Factor by which they shrink the residual, geometric mean over the channels; 1 for units and signs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrenchDelay:
    """Delay of the wrench against the positions."""

    seconds: float
    """[s]; negative where the wrench is early."""
    stderr_s: float
    """Standard deviation of the delay [s]."""


@dataclass(frozen=True, slots=True)
class _Hypothesis:
    """Other settings of the sensor, with the equations that follow from them."""

    finding: Finding
    data: WrenchData
    sensing: Sensing


@dataclass(frozen=True, slots=True)
class _Log:
    """The experiments that are examined."""

    robot: Robot
    experiments: Experiment | Sequence[Experiment]
    frame: str
    form: WrenchForm | None

    def equations(self, sensing: Sensing) -> WrenchData:
        """Enough equations to tell hypotheses apart."""
        data = wrench_data(self.robot, self.experiments, self.frame, sensing, form=self.form, with_orientation=True)
        return data.thin(SAMPLES)

    def delayed(self, sensing: Sensing) -> _Hypothesis | None:
        """A delay of the wrench, where the motion shows one clearly."""
        runs = (self.experiments,) if isinstance(self.experiments, Experiment) else tuple(self.experiments)
        if self.form == "static" or not all(np.any(run.ddq) for run in runs):
            return None
        try:
            delay = find_wrench_delay(self.robot, runs, sensor_frame=self.frame, sensing=sensing, form=self.form)
        except (IdentifiabilityError, EstimationError):
            return None
        more = delay.seconds - sensing.delay_s
        if abs(more) < max(CLEAR * delay.stderr_s, 0.5 / max(run.rate_hz for run in runs)):
            return None
        finding = _finding(
            "wrench-delay",
            f"the wrench is {'late' if more > 0.0 else 'early'} by {1e3 * abs(more):.3g} ms "
            f"(std {1e3 * delay.stderr_s:.2g} ms)",
            {"delay [s]": more, "std [s]": delay.stderr_s},
        )
        moved = replace(sensing, delay_s=delay.seconds)
        return _Hypothesis(finding, self.equations(moved), moved)


def check_wrench(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> tuple[Proposal, ...]:
    """Look for wrong axes, reversed moments, drifts, delays, turned sensors, tilted bases, signs and units.

    Args:
        robot: Geometry and gravity.
        experiments: Experiments with a wrench channel.
        sensor_frame: Link in whose frame the wrench should be.
        sensing: The settings to question.
        form: How equations are made, see `identify_load`.

    Returns:
        Proposals, each with the settings of those before it as well; empty where the settings explain the wrench, or
        where the poses are too few to judge.

    Example:
        >>> dynid.load.check_wrench(robot, wrist, sensor_frame="link3")
        ()
    """
    settings = given = replace(sensing or Sensing(), find_compliance=False)  # thinned samples do not show a swing
    log = _Log(robot, experiments, sensor_frame, form)
    data = log.equations(settings)
    proposals = []
    lever = _lever(data)
    if lever > FAR:
        settings = replace(settings, moment_unit=0.001 * settings.moment_unit)
        data = _scale(data, 1.0, 0.001)
        message = f"moments divided by forces are {lever:.0f} m, so that moments are in N mm"
        proposals.append(_proposal(_finding("moment-unit", message, {"lever [m]": lever}), settings))
    try:
        load = solve_load(data, frame=sensor_frame, sensing=settings)
    except (IdentifiabilityError, EstimationError):
        return tuple(proposals)
    tried = list(_alternatives(data, sensor_frame, settings, log.delayed(settings)))
    best = min((_residual(fit) for _, fit in tried), default=np.inf)
    if best * _needed_factor(data) < _residual(load):
        better, fit = next((other, fit) for other, fit in tried if _residual(fit) <= AS_GOOD * best)
        proposals.append(_proposal(better.finding, better.sensing, _residual(load) / _residual(fit)))
        load, data, settings = fit, better.data, better.sensing
    if settings.delay_s == given.delay_s and (late := log.delayed(settings)) is not None:
        fit = solve_load(late.data, frame=sensor_frame, sensing=late.sensing)
        proposals.append(_proposal(late.finding, late.sensing, _residual(load) / _residual(fit)))
        load, data, settings = fit, late.data, late.sensing
    if load.mass + NEGATIVE * load.mass_stderr < 0.0:
        settings, data = replace(settings, sign=-settings.sign), _scale(data, -1.0, -1.0)
        load = replace(load, vector=-load.vector)
        message = "the mass is negative, so that the sensor reports the wrench on the robot"
        proposals.append(_proposal(_finding("wrench-sign", message), settings))
    if _impossibility(load) > FAR_SHIFT and settings.moment_sign == given.moment_sign:
        other = solve_load(_scale(data, 1.0, -1.0), frame=sensor_frame, sensing=settings)
        if _impossibility(other) < 0.5 * _impossibility(load):
            settings = replace(settings, moment_sign=-settings.moment_sign)
            message = "no body turns like this, so that the moments are reversed against the forces"
            proposals.append(_proposal(_finding("moment-sign", message), settings))
    return tuple(proposals)


def _finding(code: str, message: str, evidence: dict[str, float] | None = None) -> Finding:
    return Finding(code=code, severity="warning", where="wrench", message=message, evidence=evidence or {})


def _proposal(finding: Finding, sensing: Sensing, improvement: float = 1.0) -> Proposal:
    return Proposal(finding=finding, sensing=sensing, improvement=improvement)


def _scale(data: WrenchData, force: float, moment: float) -> WrenchData:
    return replace(data, wrench=data.wrench * np.repeat([force, moment], 3))


def _needed_factor(data: WrenchData) -> float:
    """Factor of residuals that chance does not make with these samples: 99.9 % point of a ratio of variances."""
    freedom = max(1.0, 6.0 * len(data.time) - UNKNOWNS)
    return max(BETTER, float(np.sqrt(fdtri(freedom, freedom, 0.999))))


def _impossibility(load: Load) -> float:
    """Distance to the nearest load that a body can have [standard deviations]; zero for a possible load."""
    return float(make_possible(load).extras.get("shift", np.zeros(1))[0])


def _lever(data: WrenchData) -> float:
    """Spread of the moments divided by that of the forces [m]: about the distance of the centre of mass."""
    spread = data.wrench.std(axis=0)
    return float(np.linalg.norm(spread[3:]) / max(float(np.linalg.norm(spread[:3])), 1e-300))


def _residual(load: Load) -> float:
    """Geometric mean of the residuals of all channels."""
    return float(np.exp(np.log(np.maximum(load.residual_std, 1e-300)).mean()))


def _alternatives(
    data: WrenchData, frame: str, given: Sensing, late: _Hypothesis | None
) -> Iterator[tuple[_Hypothesis, Load]]:
    """Other hypotheses with their fits, the simplest first."""
    for other in _hypotheses(data, frame, given, late):
        try:
            load = solve_load(other.data, frame=frame, sensing=other.sensing)
        except (IdentifiabilityError, EstimationError):
            continue
        details = [finding for finding in load.findings if finding.code in DETAILS]
        message = "; ".join([other.finding.message, *(finding.message for finding in details)])
        evidence = {name: value for detail in details for name, value in detail.evidence.items()}
        finding = replace(other.finding, message=message, evidence=evidence | dict(other.finding.evidence))
        yield replace(other, finding=finding), load


def _hypotheses(data: WrenchData, frame: str, given: Sensing, late: _Hypothesis | None) -> Iterator[_Hypothesis]:
    """Other settings that may explain the wrench, the simplest first."""
    other = replace(given, axes="base" if given.axes == "sensor" else "sensor")
    message = f"the wrench is in the axes of the {other.axes}"
    yield _Hypothesis(_finding("wrench-axes", message), _turn(data, other.axes == "base"), other)
    finding = _finding("moment-sign", "the moments are reversed against the forces")
    yield _Hypothesis(finding, _scale(data, 1.0, -1.0), replace(given, moment_sign=-given.moment_sign))
    if given.bias and data.log is not None and not given.bias_per_log:
        finding = _finding("bias-changes", "the sensor's bias changes from log to log")
        yield _Hypothesis(finding, data, replace(given, bias_per_log=True))
    if given.bias and not given.drift:
        yield _Hypothesis(_finding("drift", "the sensor's bias drifts"), data, replace(given, drift=True))
    if late is not None:
        yield late
    finding = _finding("gravity-direction", "the base is tilted against the gravity of the model")
    yield _Hypothesis(finding, data, replace(given, find_gravity=True))
    finding = _finding("sensor-turned", f"the sensor is turned against '{frame}'")
    yield _Hypothesis(finding, data, replace(given, find_orientation=True))
    finding = _finding("sensor-and-gravity", f"the base is tilted, and the sensor is turned against '{frame}'")
    yield _Hypothesis(finding, data, replace(given, find_orientation=True, find_gravity=True))


def _turn(data: WrenchData, from_base: bool) -> WrenchData:
    """The equations with the measured wrench turned from base axes to frame axes, or back."""
    R_frame_base, _ = data.orientation()
    turn = R_frame_base if from_base else np.swapaxes(R_frame_base, 1, 2)
    halves = [(turn @ part[..., None])[..., 0] for part in (data.wrench[:, :3], data.wrench[:, 3:])]
    return replace(data, wrench=np.concatenate(halves, axis=1))


# --- the delay of the wrench ---


def find_wrench_delay(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> WrenchDelay:
    """Estimate the delay of the wrench, from a motion under which the wrench changes.

    Args:
        robot: Geometry and gravity.
        experiments: Experiments with a wrench channel; the delay is common to all.
        sensor_frame: Link in whose frame the wrench is measured.
        sensing: Settings of the sensor; the search begins at its `delay_s`.
        form: See `identify_load`; ``integral`` is replaced by ``differential``, since intervals are too coarse.

    Raises:
        EstimationError: The wrench hardly changes, or no delay explains it.

    Example:
        >>> delay = dynid.load.find_wrench_delay(robot, wrist, sensor_frame="link3")
        >>> abs(delay.seconds) < 0.005
        True
    """
    settings = sensing or Sensing()
    form = "differential" if form == "integral" else form
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    if not any(np.unique(run.segment, return_counts=True)[1].max() >= SHORTEST for run in runs):
        raise EstimationError(
            "isolated samples do not show the delay of the wrench", remedy="Give logs of a motion without gaps."
        )
    for _ in range(STEPS):
        data = wrench_data(robot, runs, sensor_frame, settings, form=form, with_orientation=settings.find_gravity)
        step, stderr = _delay_step(data, settings) if len(data.time) else (0.0, np.inf)
        settings = replace(settings, delay_s=settings.delay_s + step)
        if abs(settings.delay_s) > LONGEST or not np.isfinite(stderr):
            break
        if abs(step) <= max(SETTLED * stderr, TINY):
            return WrenchDelay(seconds=settings.delay_s, stderr_s=stderr)
    raise EstimationError(
        "no delay of the wrench can be found", remedy="Move the load quickly, or state the delay in seconds."
    )


def _delay_step(data: WrenchData, sensing: Sensing) -> tuple[float, float]:
    """Delay of the wrench against the equations to first order, and its standard deviation [s]."""
    seen, sides = data, sensor_columns(data, sensing)
    if sensing.find_orientation or sensing.find_gravity:
        pose, _, _ = solve_with_pose(data, sensing, orientation=sensing.find_orientation, gravity=sensing.find_gravity)
        seen = data.under_gravity(pose.gravity) if pose.tilted else data
        turn = np.asarray(np.kron(np.eye(2), pose.R_frame_sensor.T), dtype=float)
        seen = replace(seen, matrix=pose.sign * (turn @ seen.matrix))
    values = solve_weighted(np.concatenate([seen.matrix, *sides], axis=2), data.wrench).values
    slope = _slope(data, seen.matrix @ values[:10])
    if not np.any(slope):
        return 0.0, np.inf
    W = np.concatenate([seen.matrix, *sides, -slope[:, :, None]], axis=2)
    few = slice(None, None, max(1, len(W) // ENOUGH))
    solution = solve_weighted(W[few], data.wrench[few])
    spread = np.inf if solution.undetermined[-1] else float(np.sqrt(solution.covariance[-1, -1]))
    return float(solution.values[-1]), spread


def _slope(data: WrenchData, wrench: Floats) -> Floats:
    """(N, 6) change of a wrench per second, by differences that do not reach across gaps and logs."""
    slope = np.zeros_like(wrench)
    for rows in data.stretches():
        if len(rows) >= 3:
            slope[rows] = np.gradient(wrench[rows], data.time[rows], axis=0)
    return slope
