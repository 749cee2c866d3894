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
from numpy.typing import NDArray
from scipy.special import fdtri

from dynid.errors import EstimationError, IdentifiabilityError
from dynid.load.load import Load
from dynid.load.load_solver import solve_weighted
from dynid.load.physical_load import possible_load
from dynid.load.sensor_pose import sensor_columns, turned_solution
from dynid.load.wrench_equations import WrenchData, WrenchForm
from dynid.load.wrist import FAR, Sensing, solve_load, wrench_data
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["Proposal", "WrenchDelay", "check_wrench", "find_wrench_delay"]

Floats = NDArray[np.float64]
STEPS = 12
SETTLED = 0.1
"""Step, in standard deviations of the delay, after which the search has settled."""
SHORTEST = 8
"""Samples without a gap that a delay needs."""
TINY = 1e-9
"""Step that rounding makes [s]."""
ENOUGH = 20_000
"""Samples that tell a delay to a fraction of their distance."""
LONGEST = 0.5
"""Delay that no sensor has [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrenchDelay:
    """How late the wrench is stamped against the positions."""

    seconds: float
    """[s]; negative where it is early."""
    stderr_s: float
    """Its standard deviation [s]."""


def find_wrench_delay(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> WrenchDelay:
    """Estimate how late wrenches are stamped, from a motion under which the wrench changes.

    Args:
        robot: Geometry and gravity.
        experiments: With a wrench channel; the delay is common to all.
        sensor_frame: Link in whose frame the wrench is measured.
        sensing: What is known of the sensor; its `delay_s` is where the search begins.
        form: See `identify_load`; intervals are too coarse for a delay, so that accelerations take their place.

    Raises:
        EstimationError: The wrench hardly changes, or no delay explains it.
    """
    believed = sensing or Sensing()
    form = "differential" if form == "integral" else form
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    if not any(np.unique(run.segment, return_counts=True)[1].max() >= SHORTEST for run in runs):
        raise EstimationError(
            "single samples tell no delay of the wrench", remedy="Give logs of a motion without gaps."
        )
    for _ in range(STEPS):
        data = wrench_data(robot, runs, sensor_frame, believed, form=form, with_axes=believed.find_gravity)
        step, stderr = _late_by(data, believed) if len(data.time) else (0.0, np.inf)
        believed = replace(believed, delay_s=believed.delay_s + step)
        if abs(believed.delay_s) > LONGEST or not np.isfinite(stderr):
            break
        if abs(step) <= max(SETTLED * stderr, TINY):
            return WrenchDelay(seconds=believed.delay_s, stderr_s=stderr)
    raise EstimationError(
        "no delay of the wrench can be found", remedy="Move the load quickly, or state the delay in seconds."
    )


def _late_by(data: WrenchData, sensing: Sensing) -> tuple[float, float]:
    """Delay of the wrench against the equations to first order, and its standard deviation [s]."""
    seen, sides = data, sensor_columns(data, sensing)
    if sensing.find_orientation or sensing.find_gravity:
        asked = {"orientation": sensing.find_orientation, "gravity": sensing.find_gravity}
        pose, _, _ = turned_solution(data, sensing, **asked)
        seen = data.under_gravity(pose.gravity) if pose.tilted and pose.gravity is not None else data
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
    steps = np.diff(data.time)
    gap = (steps <= 0.0) | (steps > 1.5 * np.median(steps))
    if data.log is not None:
        gap |= np.diff(data.log) != 0
    slope = np.zeros_like(wrench)
    for rows in np.split(np.arange(len(wrench)), np.flatnonzero(gap) + 1):
        if len(rows) >= 3:
            slope[rows] = np.gradient(wrench[rows], data.time[rows], axis=0)
    return slope


SAMPLES = 400
"""Equations that are enough to tell hypotheses apart."""
BETTER = 1.15
"""Factor by which a hypothesis must shrink the residual, geometric mean over the channels, to be worth a word."""
AS_GOOD = 1.05
"""Hypotheses within this factor of the best are as good; the simplest of them is proposed."""
SURE = 4.0
"""Standard deviations off every possible body that chance does not explain."""
UNKNOWNS = 16
"""Ten of the load, six of the bias."""
REVERSED = "the moments are reversed against the forces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Something about the wrench that should be looked at."""

    text: str
    """What the data say, as a clause."""
    sensing: Sensing
    """Settings that would take it, and the proposals before it, into account."""
    improvement: float
    """Factor by which they shrink the residual, geometric mean over the channels; 1 where they only change units."""


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
        experiments: With a wrench channel.
        sensor_frame: Link in whose frame the wrench should be.
        sensing: What is believed of the sensor.
        form: See `identify_load`.

    Returns:
        Proposals on the unit, the axes and the sign, each with the settings of those before it as well; empty where all
        is as believed, or where the poses are too few to tell.
    """
    settings = given = sensing or Sensing()
    log = _Log(robot, experiments, sensor_frame, form)
    data = log.equations(settings)
    proposals = []
    lever = _lever(data)
    if lever > FAR:
        settings = replace(settings, moment_unit=0.001 * settings.moment_unit)
        data = _scaled(data, 1.0, 0.001)
        proposals.append(_proposal(f"moments over forces are {lever:.0f} m: moments are in N mm", settings))
    try:
        load = solve_load(data, frame=sensor_frame, sensing=settings)
    except (IdentifiabilityError, EstimationError):
        return tuple(proposals)
    tried = list(_alternatives(data, sensor_frame, settings, log.late(settings)))
    best = min((_size(other) for _, other, *_ in tried), default=np.inf)
    if best * _needed(data) < _size(load):
        text, better, data, settings = next(entry for entry in tried if _size(entry[1]) <= AS_GOOD * best)
        proposals.append(_proposal(text, settings, _size(load) / _size(better)))
        load = better
    if settings.delay_s == given.delay_s and (late := log.late(settings)) is not None:
        text, data, settings = late
        better = solve_load(data, frame=sensor_frame, sensing=settings)
        proposals.append(_proposal(text, settings, _size(load) / _size(better)))
        load = better
    if load.mass + 3.0 * load.mass_stderr < 0.0:
        settings, data = replace(settings, sign=-settings.sign), _scaled(data, -1.0, -1.0)
        load = replace(load, vector=-load.vector)
        proposals.append(_proposal("the mass is negative: the sensor reports the wrench on the robot", settings))
    if _impossible(load) > SURE and settings.moment_sign == given.moment_sign:
        other = solve_load(_scaled(data, 1.0, -1.0), frame=sensor_frame, sensing=settings)
        if _impossible(other) < 0.5 * _impossible(load):
            settings = replace(settings, moment_sign=-settings.moment_sign)
            proposals.append(_proposal(f"no body turns like this: {REVERSED}", settings))
    return tuple(proposals)


@dataclass(frozen=True, slots=True)
class _Log:
    """What is looked at."""

    robot: Robot
    experiments: Experiment | Sequence[Experiment]
    frame: str
    form: WrenchForm | None

    def equations(self, sensing: Sensing) -> WrenchData:
        """Enough of them to tell hypotheses apart."""
        data = wrench_data(self.robot, self.experiments, self.frame, sensing, form=self.form, with_axes=True)
        return data.thinned(SAMPLES)

    def late(self, sensing: Sensing) -> tuple[str, WrenchData, Sensing] | None:
        """A delay of the wrench, in words, as equations and as settings, where the motion shows one beyond doubt."""
        runs = (self.experiments,) if isinstance(self.experiments, Experiment) else tuple(self.experiments)
        if self.form == "static" or not all(np.any(run.ddq) for run in runs):
            return None
        try:
            delay = find_wrench_delay(self.robot, runs, sensor_frame=self.frame, sensing=sensing, form=self.form)
        except (IdentifiabilityError, EstimationError):
            return None
        more = delay.seconds - sensing.delay_s
        if abs(more) < max(SURE * delay.stderr_s, 0.5 / max(run.rate_hz for run in runs)):
            return None
        words = f"the wrench is {'late' if more > 0.0 else 'early'} by {1e3 * abs(more):.3g} ms"
        moved = replace(sensing, delay_s=delay.seconds)
        return f"{words} (std {1e3 * delay.stderr_s:.2g} ms)", self.equations(moved), moved


def _scaled(data: WrenchData, force: float, moment: float) -> WrenchData:
    return replace(data, wrench=data.wrench * np.repeat([force, moment], 3))


def _needed(data: WrenchData) -> float:
    """Factor of residuals that chance does not make of so few samples: 99.9 % point of a ratio of variances."""
    freedom = max(1.0, 6.0 * len(data.time) - UNKNOWNS)
    return max(BETTER, float(np.sqrt(fdtri(freedom, freedom, 0.999))))


def _impossible(load: Load) -> float:
    """Standard deviations to the nearest load that a body can have."""
    return float(possible_load(load).extras.get("shift", np.zeros(1))[0])


def _proposal(text: str, sensing: Sensing, improvement: float = 1.0) -> Proposal:
    return Proposal(text=text, sensing=sensing, improvement=improvement)


def _lever(data: WrenchData) -> float:
    """Spread of the moments over that of the forces [m]: about the distance of the centre of mass."""
    spread = data.wrench.std(axis=0)
    return float(np.linalg.norm(spread[3:]) / max(float(np.linalg.norm(spread[:3])), 1e-300))


def _size(load: Load) -> float:
    """Geometric mean of the residuals of all channels."""
    return float(np.exp(np.log(np.maximum(load.residual_std, 1e-300)).mean()))


def _alternatives(
    data: WrenchData, frame: str, given: Sensing, late: tuple[str, WrenchData, Sensing] | None
) -> Iterator[tuple[str, Load, WrenchData, Sensing]]:
    """Other hypotheses with their fits, the simplest first."""
    other = replace(given, axes="base" if given.axes == "sensor" else "sensor")
    candidates = [
        (f"the wrench is in the axes of the {other.axes}", _turned(data, other.axes == "base"), other),
        (REVERSED, _scaled(data, 1.0, -1.0), replace(given, moment_sign=-given.moment_sign)),
        *_zeros(data, given),
        *([] if late is None else [late]),
        ("the base is tilted against the model's gravity", data, replace(given, find_gravity=True)),
        (f"the sensor is turned against '{frame}'", data, replace(given, find_orientation=True)),
        (
            f"the base is tilted, and the sensor is turned against '{frame}'",
            data,
            replace(given, find_orientation=True, find_gravity=True),
        ),
    ]
    for text, seen, sensing in candidates:
        try:
            load = solve_load(seen, frame=frame, sensing=sensing)
        except (IdentifiabilityError, EstimationError):
            continue
        details = [note for note in load.notes if note.startswith(("the sensor", "gravity"))]
        yield "; ".join([text, *details]), load, seen, sensing


def _zeros(data: WrenchData, given: Sensing) -> list[tuple[str, WrenchData, Sensing]]:
    """Hypotheses on the sensor's zero."""
    found = []
    if given.bias and data.log is not None and not given.bias_per_log:
        found.append(("the sensor's bias changes from log to log", data, replace(given, bias_per_log=True)))
    if given.bias and not given.drift:
        found.append(("the sensor's bias drifts", data, replace(given, drift=True)))
    return found


def _turned(data: WrenchData, from_base: bool) -> WrenchData:
    """The equations with the measured wrench turned from base to frame axes, or back."""
    assert data.R_frame_base is not None
    turn = data.R_frame_base if from_base else np.swapaxes(data.R_frame_base, 1, 2)
    halves = [(turn @ part[..., None])[..., 0] for part in (data.wrench[:, :3], data.wrench[:, 3:])]
    return replace(data, wrench=np.concatenate(halves, axis=1))
