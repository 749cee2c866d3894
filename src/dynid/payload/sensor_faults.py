"""Search for faults of a wrist sensor: wrong axes, units or signs, delays, drifts, gains, a turned sensor.

`check_wrench` proposes settings of the sensor, which are never applied; `find_wrench_delay` estimates a delay. Both are
public, and take processed experiments with a wrench channel. The equations of a faultless sensor are linear,

    wrench = A phi + zero        A (6, 10), phi the load's ten parameters, zero the sensor's bias,

and a small fault of amount a adds a column z: ``wrench = A phi + zero + z a``. Such a fault is called a suspect, and
the columns of load and bias are called harmless. `dynid.diagnosis.verdicts` tests whether an amount is significant: by
its scatter over blocks of time, and by the prediction of left-out blocks. Gross faults (axes, reversed moments, unit,
sign) change the log instead; these are tried by fitting the changed log.

A fault that is found goes into the settings, and the other suspects are tested with these.

Shapes: N samples, R rows (six channels of few samples), d amounts of a suspect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import one_blas_thread
from dynid.diagnosis.evidence import MOST_ROWS, Evidence
from dynid.diagnosis.log_changes import HALF
from dynid.diagnosis.naming import MOST_NAMED
from dynid.diagnosis.refinement import LONGEST_S, SETTLED_STEP_SHARE, Delay
from dynid.diagnosis.suspects import KINDS
from dynid.diagnosis.verdicts import LEVEL, Fit, Tried, Verdict, compare, judge_suspects, test_columns
from dynid.errors import EstimationError, IdentifiabilityError
from dynid.findings import Finding
from dynid.payload.load import CHANNELS, remark
from dynid.payload.load_solver import BlockEquations, solve_blocks
from dynid.payload.sensing import Find, Sensing
from dynid.payload.sensor_search import STEPS, SensorPose, find_sensor
from dynid.payload.wrench_equations import WrenchData, WrenchForm, wrench_data
from dynid.payload.wrist import FAR, is_negative, solve_load
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.spatial import EXACT, TINY

DRIFT = 0.02
"""Smallest drift of a zero that is reported, as a share of the range of its channel (effect)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorProposal:
    """Settings of the sensor that explain the wrench better."""

    finding: Finding
    """The fault that the data show, as a sentence."""
    sensing: Sensing
    """Settings that take this proposal and those before it into account."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A fault of the sensor that adds columns to the equations."""

    code: str
    """Code of its finding."""
    message: str
    """The message, in which ``{size}`` stands for the amount."""
    columns: Floats
    """(N, 6, d) wrench per unit of each amount [SI]; `_fit` turns it into rows (R, d). The amount of a bias is in units
    of the standard deviation of its channel."""
    least: float
    """Smallest amount [SI] that is reported."""
    factor: float = 100.0
    """Printed unit over SI unit."""
    find: Find | None = None
    """The entry of `Sensing.find` that takes the fault into account, if there is one."""


def _fit(data: WrenchData, frame: str, sensing: Sensing) -> tuple[Fit, list[_Suspect]]:
    """Fit load and bias under some settings, and list the suspects that these do not contain, with columns (R, d)."""
    pose = SensorPose.guess(data, sensing)
    if sensing.finds_pose:
        pose = find_sensor(pose, data, sensing)[0]
    W = pose.equations()
    zero = data.bias_columns(sensing)
    blocks = data.blocks()
    phi = solve_blocks(BlockEquations.of(np.concatenate([W, *zero], axis=2), data.wrench, blocks)).values[:10]
    thin = slice(None, None, max(1, -(-len(data.time) // MOST_ROWS)))  # -(-a // b) rounds up

    def rows(columns: Floats) -> Floats:
        """Thin columns (N, 6, k) and put their channels below one another: (R, k)."""
        return columns[thin].reshape(-1, columns.shape[2])

    numbers = np.repeat(np.unique(blocks[thin], return_inverse=True)[1], 6)  # (R,) block of each row, from 0
    harmless = rows(np.concatenate([W, *zero, *pose.columns(phi)], axis=2))
    channel = np.arange(len(numbers)) % 6
    evidence = Evidence.of_rows(harmless, data.wrench[thin].ravel(), channel, numbers)
    suspects = _list_suspects(data, frame, sensing, pose, phi)
    return Fit.of(evidence), [replace(suspect, columns=rows(suspect.columns)) for suspect in suspects]


def _list_suspects(data: WrenchData, frame: str, sensing: Sensing, pose: SensorPose, phi: Floats) -> Iterator[_Suspect]:
    """All suspects that the settings do not contain yet, with their columns for a load phi (10,)."""
    wrench = pose.equations() @ phi
    late = np.zeros_like(wrench)  # change of the wrench per second of delay
    tilt_kind = KINDS["tilt"]  # turns of the sensor are judged like tilts of the base
    for rows in data.stretches():
        if len(rows) >= 3:  # no difference reaches across a gap
            late[rows] = -np.gradient(wrench[rows], data.time[rows], axis=0)
    if np.any(late) and not data.rests:
        yield _Suspect("delay", "the wrench is late by {size} ms", late[:, :, None], KINDS["delay"].least, 1e3)
    if not pose.turned:
        turn = replace(pose, turned=True, tilted=False).columns(phi)[0]
        message = f"the sensor is turned against '{frame}' by some {{size}} deg"
        yield _Suspect("wrench-frame", message, turn, tilt_kind.least, tilt_kind.factor, "orientation")
    if not pose.tilted and np.any(data.gravity):
        tilt = replace(pose, turned=False, tilted=True).columns(phi)[0]
        message = "the base is tilted against the gravity of the model by some {size} deg"
        yield _Suspect("gravity", message, tilt, tilt_kind.least, tilt_kind.factor, "gravity")
    past = data.time - data.time.mean()
    # for each channel: its standard deviation, and the column (6, 1) that selects it
    for name, spread, own in zip(CHANNELS, wrench.std(axis=0), np.eye(6)[:, :, None], strict=True):
        if sensing.bias and "drift" not in sensing.find and np.any(past):
            line = spread * past[:, None, None] / past.std() * own
            yield _Suspect("drift", f"the zero of {name} drifts by {{size}} % of its range", line, DRIFT, find="drift")
        if sensing.bias and np.any(data.log) and "bias_per_log" not in sensing.find:
            steps = spread * (data.log[:, None, None] == np.unique(data.log)[1:]) * own
            message = f"the zero of {name} changes from log to log by {{size}} % of its range"
            yield _Suspect("drift", message, steps, DRIFT, find="bias_per_log")
        message = f"{name} is measured too large by {{size}} %"
        yield _Suspect("gain", message, wrench[:, :, None] * own, KINDS["gain"].least)


@one_blas_thread()
def check_wrench(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> tuple[SensorProposal, ...]:
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
    """
    given = sensing or Sensing()
    rigid = replace(given, find=tuple(name for name in given.find if name != "compliance"))
    equations = partial(wrench_data, robot, experiments, sensor_frame, form=form)
    proposals = []
    with suppress(IdentifiabilityError, EstimationError):  # what was found before stands
        for code, message, evidence, better in _find_faults(equations, sensor_frame, rigid):
            finding = remark(code, message, severity="warning", where="wrench", evidence=evidence)
            proposals.append(SensorProposal(finding=finding, sensing=better))
    return tuple(proposals)


Fault = tuple[str, str, dict[str, float], Sensing]
"""Code, message and numbers of a finding, and settings that take this fault and those before into account."""


def _find_faults(equations: Callable[[Sensing], WrenchData], frame: str, settings: Sensing) -> Iterator[Fault]:
    """Find faults one after the other: unit of moments, axes or reversed moments, suspects, sign of the mass.

    `equations` makes those of the log with given settings; the wrench should be in the frame of the link `frame`.
    """
    spread = equations(settings).wrench.std(axis=0)
    # how far away a force would have to act
    lever = float(np.linalg.norm(spread[3:]) / np.maximum(np.linalg.norm(spread[:3]), TINY))
    if lever > FAR:
        settings = replace(settings, moment_unit=0.001 * settings.moment_unit)
        yield "unit", f"moments over forces are {lever:.0f} m, so that moments are in N mm", {"lever": lever}, settings
    for change in _find_change(equations, frame, settings):  # one or none
        settings = change[-1]
        yield change
    for _ in range(MOST_NAMED):
        fit, suspects = _fit(equations(settings), frame, settings)

        def is_worth(k: int, verdict: Verdict, suspects: Sequence[_Suspect] = suspects) -> bool:
            return bool(np.linalg.norm(verdict.value) > suspects[k].least)

        tried = [Tried(suspect.columns) for suspect in suspects]
        found = next(judge_suspects(fit, tried, is_worth=is_worth), None)
        if found is None:
            break
        suspect = suspects[found.suspect]
        if suspect.code == "delay":  # its amount is exact to first order only
            late = _search_delay(equations, frame, settings)
            found = replace(found, value=np.array([late.seconds - settings.delay_s]))
            settings = replace(settings, delay_s=late.seconds)
        elif suspect.find is not None:
            settings = replace(settings, find=(*settings.find, suspect.find))
        is_single = len(found.value) == 1  # of several amounts the length is told
        value = suspect.factor * float(found.value[0] if is_single else np.linalg.norm(found.value))
        half = suspect.factor * float(np.max(found.half_width))
        message = suspect.message.format(size=f"{value:{'+' if is_single else ''}.3g} +- {half:.2g}")
        told = {"amount": value, "half of the 95 % interval": half, "probability without it": found.p}
        yield suspect.code, message, told, settings
        if suspect.code == "gain":  # no setting takes it into account, so nothing can be tested after it
            break
    if is_negative(solve_load(equations(settings), frame, settings)):
        message = "the mass is negative: the sensor reports the wrench on the robot"
        yield "wrench-frame", message, {}, replace(settings, sign=-settings.sign)


def _find_change(equations: Callable[[Sensing], WrenchData], frame: str, given: Sensing) -> Iterator[Fault]:
    """Test other axes and reversed moments: the better one, if it leaves at most half of the residual, else nothing."""

    def left_out_squares(settings: Sensing) -> Floats:
        """(B, 6) squared residuals in left-out blocks of time, over the squared wrench."""
        return np.maximum(_fit(equations(settings), frame, settings)[0].left_out().T, EXACT**2)

    axes: Literal["sensor", "base"] = "base" if given.axes == "sensor" else "sensor"
    changes = {
        f"the wrench is in the axes of the {axes}": replace(given, axes=axes),
        "the moments are reversed against the forces": replace(given, moment_unit=-given.moment_unit),
    }
    usual = left_out_squares(given)
    # p-value and ratio of the rms residuals of each change
    rated = [
        (*compare(left_out_squares(settings), usual, len(changes)), message) for message, settings in changes.items()
    ]
    chance, left, message = min(rated, key=lambda one: one[1])
    if left < HALF and chance < LEVEL:
        yield "wrench-frame", message, {"left": left}, changes[message]


def find_wrench_delay(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
) -> Delay:
    """Estimate the delay of the wrench behind the positions, from a motion under which the wrench changes.

    The arguments are those of `check_wrench`. The search begins at the delay of the settings. The form ``integral`` is
    replaced by ``differential``, since intervals are too coarse.

    Raises:
        EstimationError: The wrench hardly changes, or no delay explains it.
    """
    form = "differential" if form == "integral" else form
    equations = partial(wrench_data, robot, experiments, sensor_frame, form=form)
    return _search_delay(equations, sensor_frame, sensing or Sensing())


def _search_delay(equations: Callable[[Sensing], WrenchData], frame: str, settings: Sensing) -> Delay:
    """Estimate the delay by Gauss-Newton steps, with the rate of the wrench as the column."""
    for _ in range(STEPS):
        data = equations(settings)
        fit, suspects = _fit(data, frame, settings) if len(data.time) else (None, [])
        if fit is None or not suspects or suspects[0].code != "delay":
            break
        (found,) = test_columns(fit, [suspects[0].columns])
        step, half_width = float(found.value[0]), float(found.half_width[0])
        settings = replace(settings, delay_s=settings.delay_s + step)
        if abs(settings.delay_s) > LONGEST_S or not np.isfinite(half_width):
            break
        if abs(step) <= SETTLED_STEP_SHARE * half_width:
            return Delay(settings.delay_s, half_width)
    raise EstimationError(
        "no delay of the wrench can be found", remedy="Move the load quickly, or state the delay in seconds."
    )
