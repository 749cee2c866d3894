"""Drive gains [N m/A or N/A]: how much joint torque a motor current stands for, calibrated with known loads.

Three static or simple calibrations fit a line joint by joint: a lever on a force sensor, poses held against gravity,
and one motion with and without a known mass. `identify_drive_gains` needs no common motion: joint by joint it solves
``current = Y beta' + (1 / gain) Y_load phi`` with the arm's base parameters beta' (in units of current) free and the
load phi known. The equations are linear and their regressor is free of noise; the unloaded run separates beta' from the
load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.decompositions import lstsq, matrix_rank
from dynid.errors import ArgumentError, DataError
from dynid.kernels import gravity_torque, inverse_dynamics
from dynid.load.load_solver import inflate_covariance, run_spectral_gram, solve_minimum_norm, student_factor
from dynid.load.payload import PayloadProblem, Runs, payload_problem
from dynid.logs.drives import CurrentGains
from dynid.processing.experiment import Experiment, matched_runs
from dynid.public_calls import public
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.tables import Table

__all__ = [
    "DriveGains",
    "gains_from_added_mass",
    "gains_from_lever_arm",
    "gains_from_static_load",
    "gains_from_weighed_mass",
    "identify_drive_gains",
]

Floats = NDArray[np.float64]
MOST_SHIFT = 25
"""Largest shift [samples] that is tried between two runs of one motion; convention."""
LARGEST_DISTANCE = 0.05
"""Largest distance [rad or m] between two runs that count as one motion; convention."""
HEAVIEST_KG = 1000.0
"""Mass of a load from which on it is in grams [kg] (convention: no arm carries a tonne at its drives' calibration)."""
CLEAR = 3.0
"""Standard deviations by which a slope must differ from zero to count as a gain; convention."""
SHARED_ROUNDS = 200
"""Rounds between gains and load; convention: every round is a small solution, and the last ones change nothing."""
RESOLUTION = 1e-9
"""Smallest relative singular value of the scaled equations that counts as determined; rounding errors are smaller."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriveGains:
    """Calibrated gains with their uncertainty: ``torque = gain * current + offset``."""

    gain: Floats
    """(n,) [N m/A or N/A]; NaN for a joint on which the known load does not act"""
    stderr: Floats
    """(n,) [N m/A or N/A]; infinite for such a joint"""
    offset: Floats
    """(n,) torque at zero current [N m or N]; zero where it was not estimated"""
    joint_names: tuple[str, ...] = ()
    """(n,) names of the joints; empty where the calibration does not know them"""
    unit: str = "N m/A"
    """Unit of the gains: N m/A, N/A for slides; 1 where measured torques, and not currents, were scaled."""

    @property
    def conversion(self) -> CurrentGains:
        """The gains and offsets as a conversion of recordings."""
        return CurrentGains(self.gain, self.offset, self.stderr)

    @property
    def map_line(self) -> str:
        """The line of a channel map that states these gains, with ``?`` for those that stay unknown."""
        known = np.isfinite(self.gain) & np.isfinite(self.stderr)
        words = [
            f'"{gain:.4g} +- {std:.2g}"' if seen else '"?"'
            for gain, std, seen in zip(self.gain.tolist(), self.stderr.tolist(), known.tolist(), strict=True)
        ]
        return f"gain = [{', '.join(words)}]"

    def summary(self) -> str:
        """A table of the gains."""
        names = self.joint_names or tuple(f"joint {k + 1}" for k in range(len(self.gain)))
        rows = list(zip(names, self.gain.tolist(), self.stderr.tolist(), strict=True))
        return Table.of(["joint", f"gain [{self.unit}]", "std"], rows).to_text()

    def __str__(self) -> str:
        return self.summary()


def _line(x: Floats, y: Floats, intercept: bool) -> tuple[float, float, float]:
    """Slope, its standard error and offset of y = slope x + offset."""
    A = np.column_stack([x, np.ones_like(x)]) if intercept else x[:, None]
    if matrix_rank(A) < A.shape[1] or x.size <= A.shape[1]:
        return np.nan, np.inf, 0.0
    solution = lstsq(A, y)
    variance = float(np.sum((y - A @ solution) ** 2)) / (x.size - A.shape[1])
    stderr = float(np.sqrt(variance * np.linalg.inv(A.T @ A)[0, 0]))
    return float(solution[0]), stderr, float(solution[1]) if intercept else 0.0


@public
def gains_from_lever_arm(current: ArrayLike, force: ArrayLike, lever_m: float) -> DriveGains:
    """Calibrate one joint that presses on a force sensor at the end of a lever ([Atkeson1986] section 3.3).

    Args:
        current: (N,) motor current [A].
        force: (N,) force at the sensor, across the lever [N].
        lever_m: Distance from the joint axis to the sensor [m].

    Example:
        >>> type(dynid.load.gains_from_lever_arm([1.0, 2.0, 3.0], [10.0, 20.1, 29.9], 0.5)).__name__
        'DriveGains'
    """
    x, y = np.asarray(current, dtype=float), np.asarray(force, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ArgumentError(f"{x.shape} currents and {y.shape} forces", remedy="Give (N,) of both, sample for sample.")
    if not 0.0 < lever_m < np.inf:
        raise ArgumentError(f"a lever of {lever_m} m", remedy="Give its length, above zero [m].")
    known = np.isfinite(x) & np.isfinite(y)
    slope, stderr, offset = _line(x[known], lever_m * y[known], intercept=True)
    if not np.isfinite(slope):
        raise DataError("the current never changes", remedy="Press with at least three different currents.")
    if abs(slope) <= CLEAR * stderr:  # noise alone has no gain
        slope, stderr, offset = np.nan, np.inf, 0.0
    return DriveGains(gain=np.array([slope]), stderr=np.array([stderr]), offset=np.array([offset]))


@public
def gains_from_static_load(robot: Robot, q: ArrayLike, current: ArrayLike) -> DriveGains:
    """Calibrate drives from poses held against gravity, with a robot whose masses are known.

    Dry friction hides in the holding currents: approach every pose from both sides and give the mean current.

    Args:
        robot: The robot with the known load attached (`Robot.with_body`).
        q: (N, n) poses [rad or m].
        current: (N, n) currents that hold them [A].

    Example:
        >>> poses = np.random.default_rng(0).normal(size=(20, 3))
        >>> current = dynid.gravity_torque(robot, poses) / 10.0  # drives of 10 N m/A
        >>> round(float(dynid.load.gains_from_static_load(robot, poses, current).gain[1]), 3)
        10.0
    """
    poses, currents = np.asarray(q, dtype=float), np.asarray(current, dtype=float)
    if poses.ndim != 2 or poses.shape[1] != robot.dof or currents.shape != poses.shape:
        raise ArgumentError(
            f"poses of shape {poses.shape}, currents of shape {currents.shape}",
            remedy=f"Give (N, {robot.dof}) of both, pose for pose.",
        )
    torque = gravity_torque(robot, np.ascontiguousarray(poses))
    return _gains(currents, torque, intercept=True)


@public
def gains_from_added_mass(
    robot: Robot, loaded: Experiment, unloaded: Experiment, *, link: str, load: Inertia
) -> DriveGains:
    """Calibrate drives from one motion with and without a known load: friction and the robot's own mass cancel.

    Args:
        robot: Geometry; its own parameters do not matter.
        loaded: Processed run with the load; `effort` holds currents [A].
        unloaded: The same motion without the load, sample for sample.
        link: Name of the link that carries the load.
        load: Mass properties of the load in that link's frame.

    Example:
        >>> calibration = dynid.load.gains_from_added_mass(robot, loaded, run, link="link3", load=load.inertia)
        >>> calibration.gain.shape
        (3,)
    """
    loaded, unloaded = matched_runs(robot, (loaded, unloaded))
    samples = min(loaded.samples, unloaded.samples)
    apart = np.abs(loaded.q[:samples] - unloaded.q[:samples]).max()
    if apart > LARGEST_DISTANCE:
        raise DataError(
            f"the two runs differ by up to {apart:.3g} rad or m",
            remedy="Run the same trajectory twice and start both recordings at the same instant of it.",
        )
    shift = _shift(loaded.q[:samples], unloaded.q[:samples])
    if shift:
        raise DataError(
            f"the loaded run is {shift} samples later than the unloaded one",
            remedy="Start both recordings at the same instant of the trajectory, or drop the first samples of one.",
        )
    own = robot.with_terms()
    motion = (loaded.q[:samples], loaded.dq[:samples], loaded.ddq[:samples])
    heavier = own.with_body("calibration_load", parent=link, inertia=load)
    torque = inverse_dynamics(heavier, *motion) - inverse_dynamics(own, *motion)
    difference = loaded.effort[:samples] - unloaded.effort[:samples]
    usable = loaded.valid[:samples] & unloaded.valid[:samples]
    return _gains(np.where(usable, difference, np.nan), torque, intercept=False)


def _shift(a: Floats, b: Floats) -> int:
    """Delay [samples] of motion a (N, n) against motion b (N, n); 0 unless a shift at least halves their distance."""
    most = min(MOST_SHIFT, len(a) // 4)

    def apart(k: int) -> float:
        return float(np.sqrt(np.mean((a[max(k, 0) : len(a) + min(k, 0)] - b[max(-k, 0) : len(b) + min(-k, 0)]) ** 2)))

    best = min(range(-most, most + 1), key=lambda k: (apart(k), abs(k)))
    return best if apart(best) < 0.5 * apart(0) else 0


def _gains(current: Floats, torque: Floats, *, intercept: bool) -> DriveGains:
    """Fit ``current = torque / gain + constant`` per joint: the torque is exact, the current is measured."""
    gain, stderr, offset = [], [], []
    for i, t in zip(current.T, torque.T, strict=True):
        ok = np.isfinite(i) & np.isfinite(t)
        slope, error, zero = _line(t[ok], i[ok], intercept)
        seen = np.isfinite(slope) and abs(slope) > CLEAR * error
        gain.append(1.0 / slope if seen else np.nan)
        stderr.append(error / slope**2 if seen else np.inf)
        offset.append(-zero / slope if seen else 0.0)
    return DriveGains(gain=np.array(gain), stderr=np.array(stderr), offset=np.array(offset))


@public
def identify_drive_gains(
    robot: Robot, *, loaded: Runs, unloaded: Runs, known: Inertia, link: str | None = None
) -> DriveGains:
    """Calibrate drives with a load of known mass properties.

    Args:
        robot: Geometry and terms.
        loaded: Experiments with the known load; `effort` holds currents [A], or torques of doubtful scale.
        unloaded: Experiments without the load.
        known: Mass properties of the load in the link's frame.
        link: Link that carries the load; by default the link of the last body.

    Example:
        >>> gains = dynid.load.identify_drive_gains(robot, loaded=loaded, unloaded=run, known=load.inertia)
        >>> gains.gain.shape
        (3,)
    """
    if unloaded is None or unloaded == []:
        raise ArgumentError("drive gains need a run without the load", remedy="Give unloaded.")
    if not known.mass > 0.0:
        raise ArgumentError("the known load has no mass", remedy="Weigh it.")
    problem = payload_problem(robot, loaded, unloaded, link=link)
    found = [_joint_gain(problem, joint, known.vector) for joint in range(robot.dof)]
    gain, stderr = np.array(found).T
    return DriveGains(gain=gain, stderr=stderr, offset=np.zeros(robot.dof), joint_names=robot.joint_names)


def _joint_gain(problem: PayloadProblem, joint: int, load: Floats) -> tuple[float, float]:
    """Gain of one joint and its standard deviation; the arm's base parameters are estimated with it."""
    alone = np.eye(problem.robot.dof)[joint]
    k = len(problem.prior)
    known = np.eye(k + 10, k + 1)
    known[k:, k] = load
    factors = [information.weight(alone) for information, _ in problem.parts]
    designs = [problem.design(is_loaded) @ known for _, is_loaded in problem.parts]
    rows = np.vstack([f.R @ problem.base.grouping @ design for f, design in zip(factors, designs, strict=True)])
    target = np.concatenate([factor.z for factor in factors])
    values, covariance, undetermined = solve_minimum_norm(rows, target, RESOLUTION)
    squares = np.sum((target - rows @ values) ** 2) + sum(factor.residual for factor in factors)
    spare = max(1.0, float(problem.samples[joint]) - len(values) + np.count_nonzero(undetermined))
    std = max(float(np.sqrt(squares / spare)), 1e-150)
    noise = np.where(alone > 0.0, std, np.inf)
    grams = [
        run_spectral_gram(problem.robot, run, designs[is_loaded], values, covariance * std**2, noise)
        for run, is_loaded in problem.runs
    ]
    grown, growth = inflate_covariance(covariance * std**2, np.sum(grams, axis=0))
    inverse, spread = float(values[-1]), float(np.sqrt(grown[-1, -1])) * student_factor(spare / growth)
    if undetermined[-1] or abs(inverse) < CLEAR * spread:
        return float("nan"), float("inf")
    return 1.0 / inverse, spread / inverse**2


@public
def gains_from_weighed_mass(
    robot: Robot, *, loaded: Runs, unloaded: Runs, mass_kg: float, link: str | None = None
) -> DriveGains:
    """Calibrate drives with a load of which nothing but the mass is known.

    Joint by joint the currents give ``load / gain``; the mass sets the common scale, and the centre of mass and the
    moments of inertia, which all joints share, are estimated with the gains.

    Args:
        robot: Geometry and terms.
        loaded: Experiments with the load; `effort` holds currents [A], or torques of doubtful scale.
        unloaded: Experiments without the load.
        mass_kg: Mass of the load [kg].
        link: Link that carries the load; by default the link of the last body.

    Raises:
        DataError: The motion does not separate the mass from the rest of the load in any joint.

    Example:
        >>> gains = dynid.load.gains_from_weighed_mass(robot, loaded=loaded, unloaded=run, mass_kg=2.0)
        >>> gains.gain.shape
        (3,)
    """
    if not 0.0 < mass_kg < HEAVIEST_KG:
        remedy = "Weigh the load, and give kilograms" + (f": {mass_kg / 1000.0:g}." if mass_kg > 0.0 else ".")
        raise ArgumentError(f"the load has a mass of {mass_kg:g} kg", remedy=remedy)
    if unloaded is None or unloaded == []:
        raise ArgumentError("drive gains need a run without the load", remedy="Give unloaded.")
    problem = payload_problem(robot, loaded, unloaded, link=link)
    triangles = [_load_triangle(problem, joint) for joint in range(robot.dof)]
    load, growth = _shared_load(triangles, mass_kg)
    found = np.array([_joint_gain(problem, joint, load) for joint in range(robot.dof)])
    return DriveGains(
        gain=found[:, 0], stderr=found[:, 1] * growth, offset=np.zeros(robot.dof), joint_names=robot.joint_names
    )


def _load_triangle(problem: PayloadProblem, joint: int) -> tuple[Floats, Floats]:
    """Triangle (10, 10) and side (10,) of ``load / gain`` in one joint, the arm eliminated, in units of the noise."""
    alone = np.eye(problem.robot.dof)[joint]
    k = len(problem.prior)
    factors = [information.weight(alone) for information, _ in problem.parts]
    rows = np.vstack([
        factor.R @ problem.base.grouping @ problem.design(is_loaded)
        for factor, (_, is_loaded) in zip(factors, problem.parts, strict=True)
    ])  # fmt: skip
    target = np.concatenate([factor.z for factor in factors])
    triangle: Floats = np.asarray(np.linalg.qr(np.column_stack([rows, target]), mode="r"))
    triangle = np.vstack([triangle, np.zeros((max(0, k + 11 - len(triangle)), k + 11))])
    squares = float(triangle[k + 10, -1] ** 2) + sum(factor.residual for factor in factors)
    std = max(float(np.sqrt(squares / max(1.0, float(problem.samples[joint]) - k - 10))), 1e-150)
    return triangle[k : k + 10, k : k + 10] / std, triangle[k : k + 10, -1] / std


def _shared_load(triangles: list[tuple[Floats, Floats]], mass: float) -> tuple[Floats, Floats]:
    """The load (10,) of all joints, and how much less certain each gain is (n,) than if the load were known."""
    alone = [solve_minimum_norm(A, b, RESOLUTION) for A, b in triangles]
    clear = [0.0 if u[9] else abs(v[9]) / max(float(np.sqrt(C[9, 9])), 1e-300) for v, C, u in alone]
    best = int(np.argmax(clear))
    if clear[best] < CLEAR:
        raise DataError(
            "no joint shows the mass of the load apart from the rest of it",
            remedy="Move the first joints, with the arm stretched and bent, or give the centre of mass as well.",
        )
    load = alone[best][0] * (mass / alone[best][0][9])
    inverse = np.zeros(len(triangles))
    for _ in range(SHARED_ROUNDS):  # gains from the load, the load from the gains
        pushes = [A @ load for A, _ in triangles]
        inverse = np.array([(p @ b) / max(float(p @ p), 1e-300) for p, (_, b) in zip(pushes, triangles, strict=True)])
        rows = np.vstack([s * A for s, (A, _) in zip(inverse, triangles, strict=True)])
        side = np.concatenate([b for _, b in triangles]) - rows[:, 9] * mass
        load = np.append(solve_minimum_norm(rows[:, :9], side, RESOLUTION)[0], mass)
    n = len(triangles)
    slopes = np.zeros((10 * n, n + 9))
    for joint, (A, _) in enumerate(triangles):
        slopes[10 * joint : 10 * joint + 10, joint] = A @ load
        slopes[10 * joint : 10 * joint + 10, n:] = inverse[joint] * A[:, :9]
    together = solve_minimum_norm(slopes, np.zeros(10 * n), RESOLUTION)[1]
    known = np.array([1.0 / max(float((A @ load) @ (A @ load)), 1e-300) for A, _ in triangles])
    return load, np.sqrt(np.maximum(np.diag(together)[:n] / known, 1.0))
