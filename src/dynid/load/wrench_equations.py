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
from scipy.spatial.transform import Rotation, RotationSpline

from dynid.arrays import Bools, Floats, Ints
from dynid.errors import ArgumentError, DataError
from dynid.kernels import wrench_regressor
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


@dataclass(frozen=True, slots=True, eq=False)
class WrenchData:
    """Equations of a load, one per sample, interval or pose."""

    matrix: Floats
    """(N, 6, 10) wrench per unit of each parameter, axes of the frame that describes the load, about its origin"""
    wrench: Floats
    """(N, 6) measured force [N] and moment [N m], sensor axes. `solve_with_pose` in load/sensor_pose.py finds the
    rotation between these and the frame's axes; until then both count as equal."""
    time: Floats
    """(N,) [s]"""
    R_frame_base: Floats | None = None
    """(N, 3, 3) axes of the base in the frame; None where the orientation is unknown"""
    gravity: Floats | None = None
    """(3,) gravity in `matrix`, base axes [m/s^2]"""
    log: Ints | None = None
    """(N,) number of the log of each sample; None for one log"""
    cutoff_hz: float | None = None
    """Cutoff of the low-pass that matrix and wrench went through [Hz]; None without one"""
    rests: bool = False
    """Whether every equation is a pose of its own, at rest, so that their noise is independent"""

    def under_gravity(self, gravity: ArrayLike) -> WrenchData:
        """The same motion under another gravity (3,), base axes [m/s^2]."""
        R_frame_base, old = self.orientation()
        new = np.asarray(gravity, dtype=float)
        change = -(R_frame_base @ (new - old))  # of acceleration minus gravity, frame axes
        return replace(self, matrix=self.matrix + acceleration_columns(change), gravity=new)

    def orientation(self) -> tuple[Floats, Floats]:
        """`R_frame_base` (N, 3, 3) and `gravity` (3,); refused where they are unknown."""
        if self.R_frame_base is None or self.gravity is None:
            raise ArgumentError("the equations lack the orientation of the frame", remedy="Give poses, or a robot.")
        return self.R_frame_base, self.gravity

    def thin(self, samples: int) -> WrenchData:
        """At most `samples` of the equations, evenly spread."""
        return self.rows(slice(None, None, max(1, -(-len(self.time) // samples))))

    def rows(self, rows: slice | Bools | Ints) -> WrenchData:
        """The equations of some samples."""
        return replace(
            self,
            matrix=self.matrix[rows],
            wrench=self.wrench[rows],
            time=self.time[rows],
            R_frame_base=None if self.R_frame_base is None else self.R_frame_base[rows],
            log=None if self.log is None else self.log[rows],
        )

    def gaps(self) -> Bools:
        """(N - 1,) whether a gap in time or the end of a log lies between two equations."""
        steps = np.diff(self.time)
        found = (steps <= 0.0) | (steps > LONGEST_STEP * np.median(steps)) if len(steps) else np.zeros(0, dtype=bool)
        return np.asarray(found if self.log is None else found | (np.diff(self.log) != 0))

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
        means = [
            np.add.reduceat(x, first) / count.reshape(-1, *[1] * (x.ndim - 1))
            for x in (self.matrix, self.wrench, self.time)
        ]
        matrix, wrench, time = means
        return replace(self.rows(first), matrix=matrix, wrench=wrench, time=time, rests=True)

    @classmethod
    def join(cls, parts: Sequence[WrenchData]) -> WrenchData:
        """All equations of several runs, or of several stretches of one run; `log` is dropped: the caller sets it."""
        if not parts:
            raise DataError("no experiment was given")
        known = all(part.R_frame_base is not None for part in parts)
        axes = np.concatenate([part.R_frame_base for part in parts if part.R_frame_base is not None]) if known else None
        matrix, wrench, time = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("matrix", "wrench", "time")
        )
        return replace(parts[0], matrix=matrix, wrench=wrench, time=time, R_frame_base=axes, log=None)


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
    rest = np.zeros_like(q)
    # [Atkeson1986] eq. (21): at rest a unit mass under gravity e_k needs the force -R e_k
    columns = [-wrench_regressor(robot.with_gravity(e), link, q, rest, rest)[:, FORCE, MASS] for e in np.eye(3)]
    return np.stack(columns, axis=2)


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
    with_orientation: bool = False,
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
        with_orientation: Also compute `WrenchData.R_frame_base`.
    """
    wrench = _wrench(run)
    if form not in FORMS or not 0.0 < interval_s < np.inf:
        raise ArgumentError(
            f"form {form!r} with intervals of {interval_s} s",
            remedy=f"Forms are {', '.join(FORMS)}; interval_s is positive.",
        )
    axes = frame_axes(robot, frame, run.q) if with_orientation or wrench_axes == "base" else None
    if wrench_axes == "base" and axes is not None:  # always, then; the type checker cannot see it
        halves = (wrench[:, FORCE, None], wrench[:, MOMENT, None])
        run = replace(run, wrench=np.concatenate([(axes @ half)[..., 0] for half in halves], axis=1))
    if form == "integral":
        return _averaged(robot, run, frame, axes, interval_s)
    if form == "static":
        return _static(robot, run, frame, axes)
    matrix = wrench_regressor(robot, frame, run.q, run.dq, run.ddq)
    whole = WrenchData(matrix, wrench, run.time, axes, robot.gravity, cutoff_hz=_cutoff(run))
    parts = [replace(whole.rows(rows), matrix=A, wrench=y) for rows, y, A in _filter_alike(run, matrix)]
    return WrenchData.join(parts) if parts else whole.rows(slice(0))


def _low_pass(run: Experiment) -> Smoothing | None:
    """The low-pass of both sides: the one that the wrench went through, or else a wider one than the positions'."""
    if run.smoothing is not None or run.derivation is None:
        return run.smoothing
    made = run.derivation.smoothing
    if made.cutoff_hz is None or not WIDER * made.cutoff_hz < HIGHEST * run.rate_hz:
        return None
    return replace(made, cutoff_hz=WIDER * made.cutoff_hz, rate_hz=run.rate_hz)


def _cutoff(run: Experiment) -> float | None:
    low_pass = _low_pass(run)
    return low_pass.cutoff_hz if low_pass else None


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


def _static(robot: Robot, run: Experiment, frame: str, axes: Floats | None) -> WrenchData:
    """Equations of gravity alone: one for each rest; where the motion hardly rests, one for each sample."""
    rest = np.zeros_like(run.q)
    matrix = wrench_regressor(robot, frame, run.q, rest, rest)
    data = WrenchData(matrix, _wrench(run), run.time, axes, robot.gravity)
    measured: Bools = np.asarray(np.isfinite(data.wrench).all(axis=1))
    still = measured.copy()
    for moving in (run.dq, run.ddq):  # a move begins and ends slowly, but with acceleration
        size = np.abs(moving).max(axis=1, initial=0.0)
        still &= np.asarray(size <= max(SLOW * float(np.quantile(size, 0.99)) if len(size) else 0.0, SLOWEST))
    poses = data.rows(still).poses(run.q[still]) if still.any() else data
    is_resting = still.sum() >= LEAST_REST * measured.sum() and len(poses.time) >= FEWEST_POSES
    return poses if is_resting else data.rows(measured)


def _averaged(robot: Robot, run: Experiment, frame: str, axes: Floats | None, interval_s: float) -> WrenchData:
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
        mean_axes = None if axes is None else _mean_between(time, axes[rows], edges)
        centres = 0.5 * (edges[1:] + edges[:-1])
        parts.append(WrenchData(matrix, mean[..., 10], centres, mean_axes, robot.gravity, cutoff_hz=_cutoff(run)))
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
    orientation: ArrayLike,
    wrench: ArrayLike,
    *,
    time: ArrayLike | None = None,
    position: ArrayLike | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> WrenchData:
    """Equations from the poses of the sensor, without a robot model.

    Without positions the sensor counts as resting in every pose (eq. 21). With positions and times, velocities and
    accelerations are those of splines through the poses: smooth the poses before.

    Args:
        orientation: (N, 4) quaternions w, x, y, z, or (N, 3, 3) rotations ``R_world_sensor``.
        wrench: (N, 6) force [N] and moment [N m], sensor axes.
        time: (N,) [s]; the sample's number by default.
        position: (N, 3) position of the sensor's origin in the world [m], for a sensor that moves.
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
    g = _numbers("gravity", gravity, (3,))
    stamps = np.arange(samples, dtype=float) if time is None else _numbers("time", time, (samples,))
    if position is None:
        matrix = acceleration_columns(-(R_sensor_world @ g))  # [Atkeson1986] eq. (21)
    elif time is None or samples < FEWEST or not np.all(np.diff(stamps) > 0.0):
        raise ArgumentError("moving poses need at least four times that increase", place="time")
    else:
        a = CubicSpline(stamps, _numbers("position", position, (samples, 3))).derivative(2)(stamps) - g
        turning = RotationSpline(stamps, Rotation.from_matrix(R_world_sensor))
        w, dw = turning(stamps, 1), turning(stamps, 2)  # in the frame's own axes
        matrix = motion_columns(w, dw, (R_sensor_world @ a[..., None])[..., 0])
    known = np.isfinite(measured).all(axis=1)
    data = WrenchData(matrix, measured, stamps, R_sensor_world, g).rows(np.asarray(known))
    return data if position is not None or not known.any() else data.poses(R_world_sensor[known].reshape(-1, 9))


def _numbers(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """An argument as finite numbers of a shape."""
    array = np.asarray(values, dtype=float)
    if array.shape != shape or not np.isfinite(array).all():
        raise ArgumentError(f"expected finite numbers of shape {shape}, got shape {array.shape}", place=name)
    return array


def motion_columns(w: Floats, dw: Floats, a: Floats) -> Floats:
    """(N, 6, 10) equations of any motion: the matrix of [Atkeson1986] eq. (8), in our order of the parameters.

    Args:
        w: (N, 3) angular velocity [rad/s], frame axes.
        dw: (N, 3) angular acceleration [rad/s^2], frame axes.
        a: (N, 3) acceleration of the frame's origin minus gravity [m/s^2], frame axes.
    """
    matrix = acceleration_columns(a)
    matrix[:, FORCE, FIRST_MOMENTS] = _skew(dw) + _skew(w) @ _skew(w)
    matrix[:, MOMENT, INERTIA] = _tensor_times(dw) + _skew(w) @ _tensor_times(w)
    return matrix


def _tensor_times(v: Floats) -> Floats:
    """(N, 3, 6) with ``_tensor_times(v) @ (XX, XY, XZ, YY, YZ, ZZ) == J @ v`` ([Atkeson1986] eq. 6)."""
    result = np.zeros((len(v), 3, 6))
    for row, columns in enumerate(((0, 1, 2), (1, 3, 4), (2, 4, 5))):
        result[:, row, columns] = v
    return result
