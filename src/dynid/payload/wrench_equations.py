"""Equations of a load beyond a force and torque sensor, from a robot's motion or from poses of the sensor at rest.

    wrench = A phi        A (6, 10), [Atkeson1986] eq. (8); at rest eq. (21); averaged over intervals eqs. (25)-(27)

The ten parameters phi, columns of A: 0-5 inertia XX XY XZ YY YZ ZZ about the frame's origin, 6-8 first moments, 9 mass
(the paper's order is mass, first moments, inertia). The six rows: force, moment about the frame's origin.

`wrench_data` makes the equations of experiments, `pose_equations` those of poses without a robot model. Both return a
`WrenchData`, which `dynid.payload.wrist` solves. Both sides of the equations are the measured wrench and A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from dynid.array_types import Floats, Ints
from dynid.checks import as_number, as_row
from dynid.compiled import link_pose, wrench_regressor
from dynid.diagnosis.evidence import WIDER
from dynid.dynamics.inertia_maps import mixed_kinetic_matrix
from dynid.errors import ArgumentError, DataError
from dynid.payload.load_solver import count_blocks, label_blocks
from dynid.payload.sensing import Sensing
from dynid.processing.cutoff import HIGHEST_CUTOFF
from dynid.processing.experiment import Experiment, matched_runs
from dynid.processing.filters import Butterworth
from dynid.robot.model import STANDARD_GRAVITY, Robot

WrenchForm = Literal["differential", "integral", "static"]
"""How a motion enters the equations, see `_run_equations`."""
ROTATION_TOLERANCE = 1e-3
"""Largest deviation from a rotation that the rounding of a log explains (convention)."""
SAME_POSE = 0.02
"""Largest change from sample to sample within one pose at rest: of a position [rad or m], or of an entry of a rotation
matrix (convention: gravity turns by a degree)."""
REST_SHARE, REST_FLOOR = 0.01, 1e-3
"""Speed and acceleration up to which the robot rests: this share of their 99 % quantile, or this number
[rad/s, rad/s^2] if that is larger (convention)."""
LEAST_RESTS, FEWEST_POSES = 0.2, 3
"""Share of samples at rest, and number of rests, from which on a static log is one of poses, not of slow motion
(convention)."""
FORCE, MOMENT = np.arange(6).reshape(2, 3)
"""Rows of a wrench."""
# mixed_kinetic_matrix has the order moment and rotation before force and translation; the rolls exchange the halves
UNIT_ACCELERATIONS = np.array([np.roll(mixed_kinetic_matrix(np.roll(axis, 3)), 3, axis=1).T for axis in np.eye(6)])
"""(6, 6, 10) equations of a load that accelerates by one along x, y, z, then about x, y, z."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrenchData:
    """Equations of a load, one per sample, interval or pose."""

    matrix: Floats
    """(N, 6, 10) wrench per unit of each parameter, in the axes and about the origin of the frame of the load."""
    wrench: Floats
    """(N, 6) measured force [N] and moment [N m], sensor axes. `SensorPose` in payload/sensor_search.py finds the
    rotation between these and the frame's axes; until then both count as equal."""
    time: Floats
    """(N,) times [s]."""
    log: Ints
    """(N,) number of the log that each equation is from."""
    stretch: Ints
    """(N,) number of the gap-free stretch of each equation within its log."""
    R_frame_base: Floats
    """(N, 3, 3) rotations from base to frame axes."""
    gravity: Floats
    """(3,) gravity that `matrix` contains, base axes [m/s^2]."""
    cutoff_hz: float | None = None
    """Cutoff of the low-pass that matrix and wrench went through [Hz]; None without one."""
    rests: bool = False
    """Whether every equation is the mean of one pose at rest, so that their noise is independent."""

    def rows(self, rows: slice | Ints) -> WrenchData:
        """Select some equations."""
        selected: dict[str, Any] = {name: getattr(self, name)[rows] for name in PER_SAMPLE}
        return replace(self, **selected)

    def starts(self, further: Any = False) -> Ints:
        """Find the numbers of the first equations of all stretches.

        Args:
            further: (N - 1,) whether a new stretch begins with each equation but the first for another reason.
        """
        changed = (np.diff(self.stretch) != 0) | (np.diff(self.log) != 0) | further
        return np.append(0, np.flatnonzero(changed) + 1)

    def stretches(self) -> list[Ints]:
        """List the numbers of the equations of each stretch."""
        return np.split(np.arange(len(self.time)), self.starts()[1:])

    def blocks(self) -> Ints:
        """Number the blocks of time (N,) of the equations; noise of different blocks counts as independent."""
        if self.rests:
            return np.arange(len(self.time))
        parts = self.stretches()
        duration = sum(float(self.time[rows[-1]] - self.time[rows[0]]) for rows in parts if len(rows))
        return label_blocks(parts, count_blocks(duration, self.cutoff_hz))

    def poses(self, place: Floats) -> WrenchData:
        """Average the equations of each pose.

        Args:
            place: (N, k) pose of every sample: joint positions [rad or m] or the entries of a rotation matrix.
        """
        first = self.starts(np.any(np.abs(np.diff(place, axis=0)) > SAME_POSE, axis=1))
        count = np.diff(np.append(first, len(self.time)))
        means: dict[str, Any] = {
            name: np.add.reduceat(x, first) / count.reshape(-1, *[1] * (x.ndim - 1))
            for name, x in (("matrix", self.matrix), ("wrench", self.wrench), ("time", self.time))
        }
        return replace(self.rows(first), **means, rests=True)

    def bias_columns(self, sensing: Sensing) -> list[Floats]:
        """Make the columns (N, 6, 6) of what is estimated of the bias.

        They are, in this order and if ``sensing`` asks for them: a constant wrench, its change per second, and its
        change from the first log to each other one.
        """
        scales = []
        if sensing.bias:
            scales.append(np.ones_like(self.time))
        if "drift" in sensing.find:
            scales.append(self.time - self.time.mean())
        if "bias_per_log" in sensing.find:
            scales += [self.log == k for k in np.unique(self.log)[1:]]
        return [scale[:, None, None] * np.eye(6) for scale in scales]

    @classmethod
    def join(cls, parts: Sequence[WrenchData]) -> WrenchData:
        """Join the equations of several runs, or of several stretches of one run."""
        joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_SAMPLE}
        return replace(parts[0], **joined)


PER_SAMPLE = ("matrix", "wrench", "time", "log", "stretch", "R_frame_base")
"""Fields of `WrenchData` with one row per equation."""


def acceleration_matrix(acceleration: Floats) -> Floats:
    """Compute the equations (N, 6, 10) of a load that accelerates from rest, [Atkeson1986] eq. (8) without velocities.

    With the acceleration -g they are those of gravity g alone, eq. (21).

    Args:
        acceleration: (N, 3) acceleration of the frame's origin [m/s^2], or (N, 6) with the angular acceleration
            [rad/s^2] behind it, frame axes.
    """
    return np.asarray(np.tensordot(acceleration, UNIT_ACCELERATIONS[: acceleration.shape[1]], axes=1))


def wrench_data(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    frame: str,
    sensing: Sensing,
    *,
    form: WrenchForm | None = None,
    interval_s: float = 0.1,
) -> WrenchData:
    """Make the equations of all experiments, with corrected wrenches; see `identify_load` for the arguments."""
    runs = matched_runs(robot, experiments)
    chosen = form or ("differential" if any(np.any(run.ddq) for run in runs) else "static")
    if chosen not in get_args(WrenchForm):
        raise ArgumentError(f"form is {form!r}", remedy=f"Forms are {', '.join(get_args(WrenchForm))}.")
    if "compliance" in sensing.find:  # a low-pass would remove the oscillation; without a derivation none is applied
        runs = tuple(replace(run, derivation=None) for run in runs)
    if not runs:
        raise DataError("no experiment was given")
    length = as_number("interval_s", interval_s, above=0.0)
    parts = [_run_equations(robot, run, frame, sensing, chosen, length) for run in runs]
    return WrenchData.join([replace(part, log=part.log + k) for k, part in enumerate(parts)])


def _run_equations(
    robot: Robot, run: Experiment, frame: str, sensing: Sensing, form: WrenchForm, interval_s: float
) -> WrenchData:
    """Make the equations of one experiment.

    The form ``differential`` (eq. 8) needs accelerations; ``integral`` (eqs. 25-27) averages over intervals and does
    not; ``static`` (eq. 21) uses gravity only: one equation for each rest, or for each sample of a motion that hardly
    rests.
    """
    wrench = delayed_wrench(run, sensing.delay_s)
    kept = np.flatnonzero(np.isfinite(wrench).all(axis=1))
    run = replace(run.rows(kept), segment=_number_stretches(kept, run.segment))
    axes = np.swapaxes(link_pose(robot, frame, run.q)[:, :3, :3], 1, 2)
    still = np.zeros_like(run.q)
    moving = (still, still) if form == "static" else (run.dq, run.ddq)
    low_pass = None if form == "static" else _low_pass(run)
    data = WrenchData(
        matrix=wrench_regressor(robot, frame, run.q, *moving), wrench=sensing.correct(wrench[kept], axes),
        time=run.time, log=np.zeros_like(kept), stretch=run.segment, R_frame_base=axes, gravity=robot.gravity,
        cutoff_hz=low_pass.cutoff_hz if low_pass else None,
    )  # fmt: skip
    if form == "static":
        return _rests(run, data)
    if form == "integral":
        return _average_intervals(robot, run, frame, data, interval_s)
    parts = [replace(data.rows(rows), matrix=A, wrench=y) for rows, y, A in _filter_both_sides(run, data, data.matrix)]
    return WrenchData.join(parts) if parts else data.rows(slice(0))


def delayed_wrench(run: Experiment, delay_s: float) -> Floats:
    """Shift the wrench of an experiment to earlier times, by a spline within each gap-free stretch.

    Args:
        run: The experiment.
        delay_s: Delay of the wrench behind the positions [s].

    Returns:
        (N, 6) the wrench that belongs to each sample's motion; NaN if none was measured then.
    """
    if run.wrench is None or run.wrench.shape != (run.samples, 6):
        reason = "no wrench" if run.wrench is None else f"a wrench of shape {run.wrench.shape}, not {(run.samples, 6)}"
        remedy = "Map six wrench columns in the channel map."
        raise DataError(f"the experiment has {reason}", path=run.source, remedy=remedy)
    if not delay_s:
        return run.wrench
    shifted = np.full(run.wrench.shape, np.nan)
    later = run.time + delay_s
    kept = np.flatnonzero(np.isfinite(run.wrench).all(axis=1))
    number = _number_stretches(kept, run.segment)
    for rows in (kept[number == stretch] for stretch in np.unique(number)):
        time = run.time[rows]
        inside = (run.segment == run.segment[rows[0]]) & (later >= time[0]) & (later <= time[-1])
        if len(rows) > 1:
            shifted[inside] = CubicSpline(time, run.wrench[rows])(later[inside])
    return shifted


def _number_stretches(rows: Ints, segment: Ints) -> Ints:
    """Number the gap-free stretches of m rows (m,): they end at left-out rows and at the end of a segment (N,)."""
    changed = (np.diff(rows) > 1) | (np.diff(segment[rows]) != 0)
    return np.append(0, np.cumsum(changed))[: len(rows)]


def _low_pass(run: Experiment) -> Butterworth | None:
    """Choose the low-pass for both sides of the equations.

    It is the wrench's own if it was filtered. Otherwise it has `WIDER` times the cutoff of the positions, or is None if
    that is near half the sampling rate or there is none. Three times that cutoff leaves the motion as it is; with the
    cutoff itself noise would be correlated for so long that a log had few independent blocks (experiment).
    """
    if run.smoothing is not None or run.derivation is None:
        return run.smoothing
    made = run.derivation.smoothing
    if made.cutoff_hz is None or not WIDER * made.cutoff_hz < HIGHEST_CUTOFF * run.rate_hz:
        return None
    return replace(made, cutoff_hz=WIDER * made.cutoff_hz, rate_hz=run.rate_hz)


def _filter_both_sides(run: Experiment, data: WrenchData, *signals: Floats) -> Iterator[tuple[Any, ...]]:
    """Low-pass the wrench and other signals (N, ...) alike; yield the rows of each stretch, its wrench and signals.

    The same linear filter on both sides leaves the equations true ([Atkeson1986] section 3.1.1). A wrench that was
    low-passed together with the torques is not filtered again. Then the ends of the stretches are left out: the filter
    of the wrench saw samples beyond them, which that of the signals here does not see.
    """
    low_pass = _low_pass(run)
    is_wrench_filtered = run.smoothing is not None
    edge = int(np.ceil(low_pass.settling_s * run.rate_hz)) if low_pass and is_wrench_filtered else 0
    for rows in data.stretches():
        inner = slice(edge, len(rows) - edge)
        wrench, *others = (x[rows] for x in (data.wrench, *signals))
        if low_pass is not None:
            others = [low_pass.apply(x.reshape(len(rows), -1)).reshape(x.shape) for x in others]
            if not is_wrench_filtered:
                wrench = low_pass.apply(wrench)
        if len(rows[inner]):
            yield rows[inner], *(x[inner] for x in (wrench, *others))


def _rests(run: Experiment, data: WrenchData) -> WrenchData:
    """Average equations of gravity over each rest; keep one per sample if the motion hardly rests."""
    is_still = np.ones(run.samples, dtype=bool)
    for rates in (run.dq, run.ddq):  # a move begins and ends slowly, but with acceleration
        size = np.abs(rates).max(axis=1, initial=0.0)
        # the quantile, not the largest, because of single peaks
        is_still &= size <= max(REST_SHARE * float(np.quantile(size, 0.99)) if len(size) else 0.0, REST_FLOOR)
    still = np.flatnonzero(is_still)
    if not len(still) or len(still) < LEAST_RESTS * run.samples:
        return data
    rests = replace(data.rows(still), stretch=_number_stretches(still, run.segment)).poses(run.q[still])
    return rests if len(rests.time) >= FEWEST_POSES else data


def _average_intervals(robot: Robot, run: Experiment, frame: str, data: WrenchData, interval_s: float) -> WrenchData:
    """Average wrench and equations over consecutive intervals, without accelerations ([Atkeson1986] eqs. 25-27).

    With the momentum ``P phi`` of the load in its own axes, ``wrench = dP/dt phi + [w x; v x] P phi + gravity``; the
    first term integrates to a difference of momenta. Here w and v are the angular and linear velocity of the frame.
    """
    rest = np.zeros_like(run.q)
    # The wrench regressor is linear in accelerations if dq = 0 and g = 0: with dq in place of ddq it gives the
    # momentum per parameter. The force rows of its columns of mass (9) and first moments (6-8) are v and [w x].
    momentum = wrench_regressor(robot.with_gravity(np.zeros(3)), frame, run.q, rest, run.dq)
    linear = momentum[:, FORCE]
    angular = momentum[:, MOMENT]
    v = linear[:, :, [9]]
    w_cross = linear[:, :, 6:9]
    # wrench per parameter except dP/dt: gravity, then the force w x p, and the moment w x L + v x p
    remainder = wrench_regressor(robot, frame, run.q, rest, rest)  # [Atkeson1986] eq. (A5)
    remainder[:, FORCE] += w_cross @ linear
    remainder[:, MOMENT] += w_cross @ angular + np.cross(v, linear, axis=1)
    steps = max(1, round(interval_s * run.rate_hz))
    parts = []
    for rows, wrench, smooth_momentum, smooth_remainder in _filter_both_sides(run, data, momentum, remainder):
        ends = np.arange(0, len(rows), steps)
        if len(ends) < 2:
            continue
        time = run.time[rows]
        edges = run.time[rows[ends]]
        momentum_rate = np.diff(smooth_momentum[ends], axis=0) / np.diff(edges)[:, None, None]
        averaged: dict[str, Any] = {
            "matrix": momentum_rate + _mean_between(time, smooth_remainder, edges),  # [Atkeson1986] eqs. (26), (27)
            "wrench": _mean_between(time, wrench, edges),
            "time": 0.5 * (edges[1:] + edges[:-1]),
            # a mean of rotations is nearly a rotation only over short intervals
            "R_frame_base": _mean_between(time, data.R_frame_base[rows], edges),
        }
        parts.append(replace(data.rows(rows[ends[1:]]), **averaged))
    if not parts:
        raise DataError(
            f"no stretch of the log is longer than {interval_s:g} s", path=run.source, remedy="Shorten interval_s."
        )
    return WrenchData.join(parts)


def _mean_between(time: Floats, values: Floats, edges: Floats) -> Floats:
    """Compute the means (m, ...) of sampled values (N, ...) between m + 1 times, by the integral of a cubic spline."""
    integral = CubicSpline(time, values, axis=0).antiderivative()
    length = np.diff(edges).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(np.diff(integral(edges), axis=0) / length)


def pose_equations(
    orientation: ArrayLike,
    wrench: ArrayLike,
    sensing: Sensing,
    *,
    time: ArrayLike | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> WrenchData:
    """Make equations from the poses of a sensor at rest, without a robot model ([Atkeson1986] eq. 21).

    Args:
        orientation: (N, 4) quaternions w, x, y, z, or (N, 3, 3) rotations from sensor to world axes.
        wrench: (N, 6) force [N] and moment [N m].
        sensing: How the wrench was recorded.
        time: (N,) times [s]; the sample's number by default.
        gravity: (3,) gravity in the world's axes [m/s^2].
    """
    measured = np.array(wrench, dtype=float)
    given = np.array(orientation, dtype=float)
    samples = len(measured) if measured.ndim else 0
    if measured.shape != (samples, 6) or given.shape not in ((samples, 4), (samples, 3, 3)):
        raise ArgumentError(
            f"orientations {given.shape} and wrenches {measured.shape} do not fit",
            remedy="Give (N, 4) quaternions or (N, 3, 3) rotations, and (N, 6) wrenches.",
        )
    if given.ndim == 2:
        if not np.all(np.abs(np.linalg.norm(given, axis=1) - 1.0) < ROTATION_TOLERANCE):
            remedy = "Give w, x, y, z, finite and of length one."
            raise ArgumentError("quaternions are not of unit length", remedy=remedy)
        given = Rotation.from_quat(np.roll(given, -1, axis=1)).as_matrix()
    R_sensor_world = np.swapaxes(given, 1, 2)
    deviation = np.abs(R_sensor_world @ given - np.eye(3))
    if not (np.all(deviation < ROTATION_TOLERANCE) and np.all(np.linalg.det(given) > 0.0)):
        raise ArgumentError("orientations are not rotations", remedy="Give orthonormal, right-handed R_world_sensor.")
    g = as_row("gravity", gravity, 3, each="one per axis")
    kept = np.flatnonzero(np.isfinite(measured).all(axis=1))
    stamps = np.arange(samples, dtype=float) if time is None else as_row("time", time, samples, each="one per pose")
    data = WrenchData(
        matrix=acceleration_matrix(-(R_sensor_world @ g)),
        wrench=sensing.correct(measured, R_sensor_world), time=stamps,
        log=np.zeros(samples, dtype=np.int64), stretch=np.zeros(samples, dtype=np.int64), R_frame_base=R_sensor_world,
        gravity=g,
    ).rows(kept)  # fmt: skip
    return data.poses(given[kept].reshape(-1, 9)) if len(kept) else data
