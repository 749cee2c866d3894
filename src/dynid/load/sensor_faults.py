"""Is the wrench what the log says it is? The one test of `dynid.diagnosis` on the six channels of a sensor.

The harmless columns are those of the load and of the sensor's zero. A suspect either adds columns to them (delay, turn,
tilt, drift, a zero that changes from log to log, a gain) or changes the log (axes, reversed moments, unit, sign). What
is found goes into the settings of the sensor, and the rest is tested with these. Settings are proposed, never applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from scipy import stats

from dynid.arrays import Floats
from dynid.decompositions import one_blas_thread
from dynid.diagnosis.evidence import MOST_ROWS, Evidence
from dynid.diagnosis.log_changes import HALF
from dynid.diagnosis.naming import MOST_NAMED
from dynid.diagnosis.refinement import LONGEST_S, MOST_STEPS, SETTLED, Delay
from dynid.diagnosis.suspects import KINDS
from dynid.diagnosis.verdicts import LEVEL, Fit, Tried, Verdict, judge_suspects, test_columns
from dynid.errors import EstimationError, IdentifiabilityError
from dynid.findings import Finding
from dynid.load.load import CHANNELS, remark
from dynid.load.load_solver import BlockEquations, solve_blocks
from dynid.load.sensing import Sensing, SensorPose, find_sensor
from dynid.load.wrench_equations import WrenchData, WrenchForm
from dynid.load.wrist import FAR, is_negative, solve_load, wrench_data
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

EFFECT = 0.01
"""Movement of a zero, over the spread of its channel by the load, from which on it is worth telling (effect)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Settings of the sensor that explain the wrench better."""

    finding: Finding
    """The fault that the data show, as a sentence."""
    sensing: Sensing
    """Settings that take this proposal and those before it into account."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A fault of the sensor that adds columns to the equations."""

    code: str
    says: str
    """``{size}`` stands for the amount."""
    columns: Floats
    """(N, 6, d), later (R, d): wrench per unit of the amount [SI]; a zero moves in units of its channel's spread."""
    least: float
    """Verdict from which on it is worth telling."""
    change: str | None = None
    """The setting of the sensor that takes it into account, if it is one that is on or off."""
    factor: float = 1.0
    """Printed unit over SI unit."""


def _fit(data: WrenchData, frame: str, sensing: Sensing) -> tuple[Fit, list[_Suspect]]:
    """The fit of load and zero under some settings, and the suspects that these leave, in the rows of its evidence."""
    turned, tilted = sensing.find_orientation, sensing.find_gravity
    if turned or tilted:
        pose, _ = find_sensor(SensorPose.guess(data, sensing), data, sensing)
    else:
        pose = SensorPose.guess(data, sensing)
    W, zero = pose.equations(), sensing.zero_columns(data)
    phi = solve_blocks(BlockEquations.of(np.concatenate([W, *zero], axis=2), data.wrench, data.blocks())).values[:10]
    harmless = np.concatenate([W, *zero, *pose.columns(phi)], axis=2)
    thin = slice(None, None, max(1, -(-len(data.time) // MOST_ROWS)))
    blocks = np.unique(data.blocks()[thin], return_inverse=True)[1]

    def rows(columns: Floats) -> Floats:
        return columns[thin].reshape(-1, columns.shape[2])

    channel = np.tile(np.arange(6), len(blocks))
    evidence = Evidence.of_rows(rows(harmless), data.wrench[thin].ravel(), channel, np.repeat(blocks, 6))
    suspects = _list_suspects(data, frame, sensing, W @ phi, partial(_moves, pose, phi))
    return Fit.of(evidence), [replace(suspect, columns=rows(suspect.columns)) for suspect in suspects]


def _moves(pose: SensorPose, phi: Floats, *, turned: bool) -> Floats:
    """Columns of a turn of the sensor, or of a tilt of the base."""
    return replace(pose, turned=turned, tilted=not turned).columns(phi)[0]


def _list_suspects(
    data: WrenchData, frame: str, sensing: Sensing, wrench: Floats, moves: Callable[..., Floats]
) -> Iterator[_Suspect]:
    """All suspects that the settings leave, with their columns; wrench (N, 6) is what the load explains."""
    late = np.zeros_like(wrench)
    for rows in data.stretches():
        if len(rows) >= 3:  # no difference reaches across a gap
            late[rows] = -np.gradient(wrench[rows], data.time[rows], axis=0)
    if np.any(late) and not data.rests:
        yield _Suspect("delay", "the wrench is late by {size} ms", late[:, :, None], KINDS["delay"].least, factor=1e3)
    small, degrees = KINDS["tilt"].least, KINDS["tilt"].factor
    if not sensing.find_orientation:
        message = f"the sensor is turned against '{frame}' by some {{size}} deg"
        yield _Suspect("wrench-frame", message, moves(turned=True), small, "find_orientation", degrees)
    if not sensing.find_gravity and np.any(data.gravity):
        message = "the base is tilted against the gravity of the model by some {size} deg"
        yield _Suspect("gravity", message, moves(turned=False), small, "find_gravity", degrees)
    past = data.time - data.time.mean()
    for k, (name, spread) in enumerate(zip(CHANNELS, wrench.std(axis=0), strict=True)):
        own = np.eye(6)[k][:, None]
        if sensing.bias and not sensing.drift and np.any(past):
            message = f"the zero of {name} drifts by {{size}} % of its range"
            yield _Suspect("drift", message, spread * past[:, None, None] / past.std() * own, EFFECT, "drift", 100.0)
        if sensing.bias and np.any(data.log) and not sensing.bias_per_log:
            message = f"the zero of {name} changes from log to log by {{size}} % of its range"
            other = spread * (data.log[:, None, None] == np.unique(data.log)[1:]) * own
            yield _Suspect("drift", message, other, EFFECT, "bias_per_log", 100.0)
        message = f"{name} is measured too large by {{size}} %"
        yield _Suspect("gain", message, wrench[:, [k], None] * own, KINDS["gain"].least, factor=100.0)


@one_blas_thread()
def check_wrench(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> tuple[Proposal, ...]:
    """Look for wrong axes, signs, units, zeros, gains and delays of a sensor, and for tilted bases.

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
    settings = replace(sensing or Sensing(), find_compliance=False)
    equations = partial(wrench_data, robot, experiments, sensor_frame, form=form)
    proposals = []
    try:
        for finding, better in _find_faults(equations, sensor_frame, settings):
            proposals.append(Proposal(finding=finding, sensing=better))
    except (IdentifiabilityError, EstimationError):  # what was found before stands
        pass
    return tuple(proposals)


def _find_faults(
    equations: Callable[[Sensing], WrenchData], frame: str, settings: Sensing
) -> Iterator[tuple[Finding, Sensing]]:
    """Faults of the sensor, each with settings that take it and those before into account."""
    spread = equations(settings).wrench.std(axis=0)
    lever = float(np.linalg.norm(spread[3:]) / max(float(np.linalg.norm(spread[:3])), 1e-300))
    if lever > FAR:
        settings = replace(settings, moment_unit=0.001 * settings.moment_unit)
        message = f"moments over forces are {lever:.0f} m, so that moments are in N mm"
        yield _finding("unit", message, {"lever [m]": lever}), settings
    if (change := _find_change(equations, frame, settings)) is not None:
        yield change
        settings = change[1]
    for _ in range(MOST_NAMED):
        fit, suspects = _fit(equations(settings), frame, settings)
        least = [suspect.least for suspect in suspects]

        def is_worth(k: int, verdict: Verdict, least: list[float] = least) -> bool:
            return bool(np.linalg.norm(verdict.value) > least[k])

        tried = [Tried(suspect.columns) for suspect in suspects]
        found = next(judge_suspects(fit, tried, is_worth=is_worth), None)
        if found is None:
            break
        suspect = suspects[found.suspect]
        if suspect.code == "delay":  # to first order so far
            late = _search_delay(equations, frame, settings)
            found = replace(found, value=np.array([late.seconds - settings.delay_s]))
            settings = replace(settings, delay_s=late.seconds)
        elif suspect.change is not None:
            settings = replace(settings, **{suspect.change: True})  # type: ignore[arg-type]
        yield _describe(suspect, found), settings
        if suspect.code == "gain":  # no setting takes it into account
            break
    if is_negative(solve_load(equations(settings), frame=frame, sensing=settings)):
        settings = replace(settings, sign=-settings.sign)
        yield _finding("wrench-frame", "the mass is negative: the sensor reports the wrench on the robot"), settings


def _find_change(
    equations: Callable[[Sensing], WrenchData], frame: str, given: Sensing
) -> tuple[Finding, Sensing] | None:
    """Other axes or reversed moments, where they leave at most half of what is unexplained in some channel."""
    axes: Literal["sensor", "base"] = "base" if given.axes == "sensor" else "sensor"
    changes = (
        (f"the wrench is in the axes of the {axes}", replace(given, axes=axes)),
        ("the moments are reversed against the forces", replace(given, moment_unit=-given.moment_unit)),
    )
    before = _fit(equations(given), frame, given)[0].left_out()
    best, least = None, HALF
    for message, settings in changes:
        after = _fit(equations(settings), frame, settings)[0].left_out()
        ratio = np.log(np.maximum(after, 1e-20)) - np.log(np.maximum(before, 1e-20))
        left = float(np.exp(0.5 * ratio.mean(axis=1).min()))
        p = float(stats.ttest_1samp(ratio.sum(axis=0), 0.0, alternative="less").pvalue)
        if left < least and p * len(changes) < LEVEL:
            best, least = (_finding("wrench-frame", message, {"left": left}), settings), left
    return best


def _describe(suspect: _Suspect, found: Verdict) -> Finding:
    """The finding that names a suspect, with its amount and half its 95 % interval."""
    single = len(found.value) == 1
    value = suspect.factor * float(found.value[0] if single else np.linalg.norm(found.value))
    half = suspect.factor * float(np.max(found.half_width))
    message = suspect.says.format(size=f"{value:{'+' if single else ''}.3g} +- {half:.2g}")
    evidence = {"amount": value, "half of the 95 % interval": half, "probability without it": found.p}
    return _finding(suspect.code, message, evidence)


def _finding(code: str, message: str, evidence: dict[str, float] | None = None) -> Finding:
    return remark(code, message, severity="warning", where="wrench", evidence=evidence)


def find_wrench_delay(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> Delay:
    """Estimate the delay of the wrench behind the positions, from a motion under which the wrench changes.

    Args:
        robot: Geometry and gravity.
        experiments: Experiments with a wrench channel; the delay is common to all.
        sensor_frame: Link in whose frame the wrench is measured.
        sensing: Settings of the sensor; the search begins at its `delay_s`.
        form: See `identify_load`; ``integral`` is replaced by ``differential``, since intervals are too coarse.

    Raises:
        EstimationError: The wrench hardly changes, or no delay explains it.
    """
    form = "differential" if form == "integral" else form
    equations = partial(wrench_data, robot, experiments, sensor_frame, form=form)
    return _search_delay(equations, sensor_frame, sensing or Sensing())


def _search_delay(equations: Callable[[Sensing], WrenchData], frame: str, settings: Sensing) -> Delay:
    """Gauss-Newton over the suspect whose columns are the rate of the wrench."""
    for _ in range(2 * MOST_STEPS):
        data = equations(settings)
        fit, suspects = _fit(data, frame, settings) if len(data.time) else (None, [])
        late = [suspect.columns for suspect in suspects if suspect.code == "delay"]
        if fit is None or not late:
            break
        (found,) = test_columns(fit, late)
        step, half_width = float(found.value[0]), float(found.half_width[0])
        settings = replace(settings, delay_s=settings.delay_s + step)
        if abs(settings.delay_s) > LONGEST_S or not np.isfinite(half_width):
            break
        if abs(step) <= SETTLED * half_width:
            return Delay(settings.delay_s, half_width)
    raise EstimationError(
        "no delay of the wrench can be found", remedy="Move the load quickly, or state the delay in seconds."
    )
