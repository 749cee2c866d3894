"""Is the wrench what the log says it is? Hypotheses that explain it better are proposed, never applied.

Tried are: the other axes (sensor or base), reversed moments, a bias that drifts or changes from log to log, a late
wrench, a turned sensor, a tilted base, both; the sign is told by that of the mass, reversed moments also by an inertia
that no body can have, and N mm taken for N m by moments with a lever of metres.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from dynid.errors import EstimationError, IdentifiabilityError
from dynid.load.load import Load
from dynid.load.physical_load import possible_load
from dynid.load.wrench_delay import find_wrench_delay
from dynid.load.wrench_equations import WrenchData, WrenchForm
from dynid.load.wrist import FAR, Sensing, solve_load, wrench_data
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["Proposal", "check_wrench"]

Floats = NDArray[np.float64]
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
