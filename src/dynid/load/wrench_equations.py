"""Equations of a load on the far side of a force and torque sensor, from a robot's motion or from poses alone.

    wrench = A phi        A (6, 10), [Atkeson1986] eq. (8); at rest eq. (21); averaged over intervals eqs. (25)-(27)

The ten columns of A: 0-5 inertia XX XY XZ YY YZ ZZ about the frame's origin, 6-8 first moments h, 9 mass (the paper has
mass, first moments, inertia). The six rows: force, moment about the frame's origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from dynid.arrays import Bools, Floats, Ints
from dynid.checks import as_number, as_row
from dynid.errors import ArgumentError, DataError
from dynid.kernels import link_pose, wrench_regressor
from dynid.load.load_solver import count_blocks, label_blocks
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Smoothing
from dynid.robot.model import STANDARD_GRAVITY, Robot
from dynid.spatial import rotation_from_quaternion

WrenchForm = Literal["differential", "integral", "static"]
FORMS: tuple[str, ...] = get_args(WrenchForm)
ROTATION_TOLERANCE = 1e-3
"""Largest deviation from a rotation that the rounding of a log explains; convention."""
LONGEST_STEP = 1.5
"""Step between two samples, over the median one, above which there is a gap; convention."""
FEWEST = 4
"""Number of samples that a spline needs for a full cubic."""
SAME_POSE = 0.02
"""Largest step from sample to sample within one pose at rest [rad or m]: gravity turns by a degree."""
SLOW, SLOWEST = 0.01, 1e-3
"""Speed and acceleration below which the robot rests: a share of the largest, and at least this [rad/s, rad/s^2]."""
LEAST_REST, FEWEST_POSES = 0.2, 3
"""Share of the samples at rest, and number of rests, from which on a static log is one of poses; otherwise it is one of
slow motion."""
WIDER, HIGHEST = 3.0, 0.4
"""Cutoff of the low-pass of both sides over that of the positions, so that their motion is not touched, and the highest
one over the sampling rate; experiment: with 1, noise is remembered so long that a log has few independent blocks."""
FORCE, MOMENT = slice(0, 3), slice(3, 6)
"""Rows of a wrench."""
INERTIA, FIRST_MOMENTS, MASS = slice(0, 6), slice(6, 9), 9
"""Columns of the parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrenchData:
    """Equations of a load, one per sample, interval or pose."""

    matrix: Floats
    """(N, 6, 10) wrench per unit of each parameter, axes of the frame that describes the load, about its origin"""
    wrench: Floats
    """(N, 6) measured force [N] and moment [N m], sensor axes. `SensorPose` in load/sensing.py finds the rotation
    between these and the frame's axes; until then both count as equal."""
    time: Floats
    """(N,) [s]"""
    log: Ints
    """(N,) number of the log of each sample"""
    R_frame_base: Floats
    """(N, 3, 3) axes of the base in the frame"""
    gravity: Floats
    """(3,) gravity in `matrix`, base axes [m/s^2]"""
    cutoff_hz: float | None = None
    """Cutoff of the low-pass that matrix and wrench went through [Hz]; None without one"""
    rests: bool = False
    """Whether every equation is a pose of its own, at rest, so that their noise is independent"""

    def rows(self, rows: slice | Bools | Ints) -> WrenchData:
        """The equations of some samples."""
        own: dict[str, Any] = {name: getattr(self, name)[rows] for name in PER_SAMPLE}
        return replace(self, **own)

    def gaps(self) -> Bools:
        """(N - 1,) whether a gap in time or the end of a log lies between two equations."""
        steps = np.diff(self.time)
        longest = LONGEST_STEP * np.median(steps) if len(steps) else 0.0
        return np.asarray((steps <= 0.0) | (steps > longest) | (np.diff(self.log) != 0))

    def stretches(self) -> list[Ints]:
        """Numbers of the equations between gaps."""
        return np.split(np.arange(len(self.time)), np.flatnonzero(self.gaps()) + 1)

    def blocks(self) -> Ints:
        """(N,) number of the block of time of each equation; noise of different blocks is taken as independent."""
        if self.rests:
            return np.arange(len(self.time))
        parts = self.stretches()
        duration = sum(float(self.time[rows[-1]] - self.time[rows[0]]) for rows in parts if len(rows))
        return label_blocks(parts, count_blocks(duration, self.cutoff_hz))

    def poses(self, place: Floats) -> WrenchData:
        """One mean equation for each pose; place (N, k) is the pose of every sample [rad or m]."""
        moved = self.gaps() | np.any(np.abs(np.diff(place, axis=0)) > SAME_POSE, axis=1)
        first = np.append(0, np.flatnonzero(moved) + 1)
        count = np.diff(np.append(first, len(self.time)))
        matrix, wrench, time = (
            np.add.reduceat(x, first) / count.reshape(-1, *[1] * (x.ndim - 1))
            for x in (self.matrix, self.wrench, self.time)
        )
        return replace(self.rows(first), matrix=matrix, wrench=wrench, time=time, rests=True)

    @classmethod
    def join(cls, parts: Sequence[WrenchData]) -> WrenchData:
        """All equations of several runs, or of several stretches of one run."""
        joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_SAMPLE}
        return replace(parts[0], **joined)


PER_SAMPLE = ("matrix", "wrench", "time", "log", "R_frame_base")
"""Fields of `WrenchData` with one row per equation."""


def acceleration_columns(a: Floats) -> Floats:
    """(N, 6, 10) equations of a frame that does not rotate: force m a, moment h x a.

    These columns of [Atkeson1986] eq. (8) remain without rotation; at rest, with a = -g, they are eq. (21).

    Args:
        a: (N, 3) acceleration of the frame's origin minus gravity [m/s^2], frame axes.
    """
    matrix = np.zeros((len(a), 6, 10))
    matrix[:, FORCE, MASS] = a
    matrix[:, MOMENT, FIRST_MOMENTS] = -_skew(a)
    return matrix


def _skew(v: Floats) -> Floats:
    """(N, 3, 3) matrices of the cross product with v (N, 3)."""
    return np.stack([np.cross(v, e) for e in np.eye(3)], axis=2)


def frame_axes(robot: Robot, link: str, q: Floats) -> Floats:
    """(N, 3, 3) ``R_link_base``: axes of the base in a link's frame, at joint positions q (N, n) [rad or m]."""
    return np.swapaxes(link_pose(robot, link, q)[:, :3, :3], 1, 2)


def shift_wrench(run: Experiment, delay_s: float) -> Experiment:
    """The same run with its wrench moved back in time by a delay [s]; samples without a wrench hold NaN."""
    if delay_s == 0.0 or run.wrench is None:
        return run
    shifted = np.full(run.wrench.shape, np.nan)
    measured_at = run.time + delay_s
    for rows in _measured_stretches(run):
        if len(rows) >= FEWEST:
            time, same_segment = run.time[rows], run.segment == run.segment[rows[0]]
            inside = same_segment & (measured_at >= time[0]) & (measured_at <= time[-1])
            shifted[inside] = CubicSpline(time, run.wrench[rows])(measured_at[inside])
    return replace(run, wrench=np.where(np.isfinite(run.wrench).all(axis=1, keepdims=True), shifted, np.nan))


def _wrench(run: Experiment) -> Floats:
    """(N, 6) the measured wrench; refused if there is none."""
    if run.wrench is None:
        raise DataError(
            "the experiment has no wrench", path=run.source, remedy="Map six wrench columns in the channel map."
        )
    if run.wrench.shape != (run.samples, 6):
        raise DataError(f"the wrench has shape {run.wrench.shape}, not {(run.samples, 6)}", path=run.source)
    return run.wrench


def _measured_stretches(run: Experiment) -> list[Ints]:
    """Rows of each stretch of consecutive samples of one segment that have a wrench: no filter spans a hole."""
    rows = np.flatnonzero(np.isfinite(_wrench(run)).all(axis=1))
    new_stretch = (np.diff(rows) > 1) | (np.diff(run.segment[rows]) != 0)
    return [part for part in np.split(rows, np.flatnonzero(new_stretch) + 1) if len(part)]


def robot_equations(
    robot: Robot,
    run: Experiment,
    frame: str,
    *,
    form: WrenchForm = "differential",
    interval_s: float = 0.1,
    wrench_axes: Literal["sensor", "base"] = "sensor",
) -> WrenchData:
    """Equations of a load from a robot's motion.

    Args:
        robot: Geometry and gravity.
        run: An experiment with a wrench channel.
        frame: Link in whose frame the load is described.
        form: ``differential`` (eq. 8) needs accelerations; ``integral`` (eqs. 25-27) averages over intervals and does
            not; ``static`` (eq. 21) uses gravity only: one equation for each rest, or for each sample of a motion that
            hardly rests.
        interval_s: Length of the intervals of the integral form [s].
        wrench_axes: Whether the wrench was recorded in the sensor's axes or in those of the base.
    """
    if form not in FORMS:
        raise ArgumentError(f"form is {form!r}", remedy=f"Forms are {', '.join(FORMS)}.")
    wrench, axes, rest = _wrench(run), frame_axes(robot, frame, run.q), np.zeros_like(run.q)
    if wrench_axes == "base":
        halves = [(axes @ half[..., None])[..., 0] for half in np.split(wrench, 2, axis=1)]
        wrench = np.concatenate(halves, axis=1)
        run = replace(run, wrench=wrench)
    moving = (rest, rest) if form == "static" else (run.dq, run.ddq)
    data = WrenchData(
        matrix=wrench_regressor(robot, frame, run.q, *moving), wrench=wrench, time=run.time,
        log=np.zeros(run.samples, dtype=np.int64), R_frame_base=axes, gravity=robot.gravity,
    )  # fmt: skip
    if form == "static":
        return _rests(run, data)
    low_pass = _low_pass(run)
    data = replace(data, cutoff_hz=low_pass.cutoff_hz if low_pass else None)
    if form == "integral":
        return _averaged(robot, run, frame, data, as_number("interval_s", interval_s, above=0.0))
    parts = [replace(data.rows(rows), matrix=A, wrench=y) for rows, y, A in _filter_alike(run, data.matrix)]
    return WrenchData.join(parts) if parts else data.rows(slice(0))


def _low_pass(run: Experiment) -> Smoothing | None:
    """The low-pass of both sides: the one that the wrench went through, or else a wider one than the positions'."""
    if run.smoothing is not None or run.derivation is None:
        return run.smoothing
    made = run.derivation.smoothing
    if made.cutoff_hz is None or not WIDER * made.cutoff_hz < HIGHEST * run.rate_hz:
        return None
    return replace(made, cutoff_hz=WIDER * made.cutoff_hz, rate_hz=run.rate_hz)


def _filter_alike(run: Experiment, *sides: Floats) -> Iterator[tuple[Any, ...]]:
    """Rows of each stretch, its wrench, and other signals (N, ...), all through the same low-pass.

    The same linear filter on both sides leaves the equations true ([Atkeson1986] section 3.1.1). A wrench that was
    low-passed together with the torques is not filtered again; then the ends, where its filter knew more, go.
    """
    low_pass, is_done = _low_pass(run), run.smoothing is not None
    for rows in _measured_stretches(run):
        signals = [_wrench(run)[rows], *(side[rows] for side in sides)]
        if low_pass is None or low_pass.cutoff_hz is None or len(rows) < FEWEST:
            yield rows, *signals
            continue
        edge = int(np.ceil(low_pass.settling_s * run.rate_hz)) if is_done else 0
        if len(rows) > 2 * edge:
            smooth = [low_pass.apply(x.reshape(len(rows), -1)).reshape(x.shape) for x in signals[is_done:]]
            inner = slice(edge, len(rows) - edge)
            yield rows[inner], *(x[inner] for x in [*signals[:is_done], *smooth])


def _rests(run: Experiment, data: WrenchData) -> WrenchData:
    """Equations of gravity alone: one for each rest; where the motion hardly rests, one for each sample."""
    measured: Bools = np.asarray(np.isfinite(data.wrench).all(axis=1))
    still = measured.copy()
    for moving in (run.dq, run.ddq):  # a move begins and ends slowly, but with acceleration
        size = np.abs(moving).max(axis=1, initial=0.0)
        still &= np.asarray(size <= max(SLOW * float(np.quantile(size, 0.99)) if len(size) else 0.0, SLOWEST))
    poses = data.rows(still).poses(run.q[still]) if still.any() else data
    is_resting = still.sum() >= LEAST_REST * measured.sum() and len(poses.time) >= FEWEST_POSES
    return poses if is_resting else data.rows(measured)


def _averaged(robot: Robot, run: Experiment, frame: str, data: WrenchData, interval_s: float) -> WrenchData:
    """Mean of wrench and equations over consecutive intervals, without accelerations ([Atkeson1986] eqs. 25-27).

    With the momentum ``P phi`` of the load in its own axes, ``wrench = dP/dt phi + [w x; v x] P phi + gravity``; the
    first term integrates to a difference of momenta.
    """
    rest = np.zeros_like(run.q)
    # The wrench regressor is linear in accelerations when dq = 0 and g = 0: with dq in place of ddq it gives the
    # momentum per parameter.
    momentum = wrench_regressor(robot.with_gravity(np.zeros(3)), frame, run.q, rest, run.dq)
    w_cross = momentum[:, FORCE, FIRST_MOMENTS]  # linear momentum is m v + w x h
    v_cross = _skew(momentum[:, FORCE, MASS])
    # wrench per parameter except dP/dt: gravity, then with the linear momentum p and the angular momentum L:
    # force: w x p; moment: w x L + v x p
    remainder = wrench_regressor(robot, frame, run.q, rest, rest)  # [Atkeson1986] eq. (A5)
    remainder[:, FORCE] += w_cross @ momentum[:, FORCE]
    remainder[:, MOMENT] += w_cross @ momentum[:, MOMENT] + v_cross @ momentum[:, FORCE]
    steps = max(1, round(interval_s * run.rate_hz))
    parts = []
    for rows, wrench, smooth_momentum, smooth_remainder in _filter_alike(run, momentum, remainder):
        ends = np.arange(0, len(rows), steps)
        if len(ends) < 2:
            continue
        time, edges = run.time[rows], run.time[rows[ends]]
        mean = _mean_between(time, np.concatenate([smooth_remainder, wrench[:, :, None]], axis=2), edges)
        momentum_rate = np.diff(smooth_momentum[ends], axis=0) / np.diff(edges)[:, None, None]
        matrix = momentum_rate + mean[..., :10]  # [Atkeson1986] eqs. (26), (27)
        # a mean of rotations is nearly a rotation only over short intervals
        axes = _mean_between(time, data.R_frame_base[rows], edges)
        centres, log = 0.5 * (edges[1:] + edges[:-1]), data.log[: len(mean)]
        whole: dict[str, Any] = {
            "matrix": matrix,
            "wrench": mean[..., 10],
            "time": centres,
            "log": log,
            "R_frame_base": axes,
        }
        parts.append(replace(data, **whole))
    if not parts:
        raise DataError(
            f"no stretch of the log is longer than {interval_s:g} s", path=run.source, remedy="Shorten interval_s."
        )
    return WrenchData.join(parts)


def _mean_between(time: Floats, values: Floats, edges: Floats) -> Floats:
    """Means (m, ...) of sampled values (N, ...) between m + 1 times, by the integral of a cubic spline."""
    integral = CubicSpline(time, values, axis=0).antiderivative()
    length = np.diff(edges).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(np.diff(integral(edges), axis=0) / length)


def pose_equations(
    orientation: ArrayLike, wrench: ArrayLike, *, time: ArrayLike | None = None, gravity: ArrayLike = STANDARD_GRAVITY
) -> WrenchData:
    """Equations from the poses of a sensor at rest, without a robot model ([Atkeson1986] eq. 21).

    Args:
        orientation: (N, 4) quaternions w, x, y, z, or (N, 3, 3) rotations ``R_world_sensor``.
        wrench: (N, 6) force [N] and moment [N m], sensor axes.
        time: (N,) [s]; the sample's number by default.
        gravity: (3,) in the world's axes [m/s^2].
    """
    measured, given = np.array(wrench, dtype=float), np.array(orientation, dtype=float)
    samples = len(measured) if measured.ndim else 0
    if measured.shape != (samples, 6) or given.shape not in ((samples, 4), (samples, 3, 3)):
        raise ArgumentError(
            f"orientations {given.shape} and wrenches {measured.shape} do not fit",
            remedy="Give (N, 4) quaternions or (N, 3, 3) rotations, and (N, 6) wrenches.",
        )
    if given.ndim == 2 and not np.all(np.abs(np.linalg.norm(given, axis=1) - 1.0) < ROTATION_TOLERANCE):
        raise ArgumentError("quaternions are not of unit length", remedy="Give w, x, y, z, finite and of length one.")
    R_world_sensor = given if given.ndim == 3 else np.array([rotation_from_quaternion(q) for q in given])
    R_sensor_world = np.swapaxes(R_world_sensor, 1, 2)
    deviation = np.abs(R_sensor_world @ R_world_sensor - np.eye(3))
    if not (np.all(deviation < ROTATION_TOLERANCE) and np.all(np.linalg.det(R_world_sensor) > 0.0)):
        raise ArgumentError("orientations are not rotations", remedy="Give orthonormal, right-handed R_world_sensor.")
    g = as_row("gravity", gravity, 3, each="one per axis")
    stamps = np.arange(samples, dtype=float) if time is None else as_row("time", time, samples, each="one per pose")
    known = np.isfinite(measured).all(axis=1)
    data = WrenchData(
        matrix=acceleration_columns(-(R_sensor_world @ g)), wrench=measured, time=stamps,
        log=np.zeros(samples, dtype=np.int64), R_frame_base=R_sensor_world, gravity=g,
    ).rows(np.asarray(known))  # fmt: skip
    return data.poses(R_world_sensor[known].reshape(-1, 9)) if known.any() else data


def swing_columns(bend: Floats) -> Floats:
    """(N, 6, 10) equations of a load that accelerates by (N, 6) [m/s^2, rad/s^2] against a resting frame.

    They are [Atkeson1986] eq. (8) without velocity and gravity, in our order of the parameters.
    """
    matrix, (x, y, z) = acceleration_columns(bend[:, :3]), bend[:, 3:].T
    matrix[:, FORCE, FIRST_MOMENTS] = _skew(bend[:, 3:])
    o = np.zeros_like(x)
    matrix[:, MOMENT, INERTIA] = np.array([[x, y, z, o, o, o], [o, x, o, y, z, o], [o, o, x, o, y, z]]).transpose(
        2, 0, 1
    )
    return matrix
