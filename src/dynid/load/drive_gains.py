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
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.decompositions import lstsq, matrix_rank
from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding
from dynid.kernels import gravity_torque, inverse_dynamics
from dynid.load.gains.gain_solver import (
    ALL_BUT_MASS,
    CLEAR,
    MOMENTS,
    TINY,
    InverseGains,
    fit_inverse_gains,
    is_stated,
    joint_equations,
    judge_gains,
    start_loads,
)
from dynid.load.payload import Runs, payload_problem
from dynid.logs.drives import CurrentGains
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.tables import Table

MOST_SHIFT = 25
"""Largest shift [samples] that is tried between two runs of one motion; convention."""
LARGEST_DISTANCE = 0.05
"""Largest distance [rad or m] between two runs that count as one motion; convention."""
HEAVIEST_KG = 1000.0
"""Mass of a load from which on it is in grams [kg] (convention: no arm carries a tonne at its drives' calibration)."""
INTERVAL = 1.96
"""Standard deviations to each side of an interval of 95 %."""


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
    findings: tuple[Finding, ...] = ()
    """What the load does not determine, and stated gains that it contradicts."""

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


def identify_drive_gains(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs,
    known: Inertia,
    link: str | None = None,
    stated: CurrentGains | None = None,
) -> DriveGains:
    """Calibrate drives with a load of known mass properties.

    Args:
        robot: Geometry and terms.
        loaded: Experiments with the known load; `effort` holds currents [A], or torques of doubtful scale.
        unloaded: Experiments without the load.
        known: Mass properties of the load in the link's frame.
        link: Link that carries the load; by default the link of the last body.
        stated: Gains with their standard deviations as they were known before, which count together with the runs.

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
    equations = [joint_equations(problem, joint) for joint in range(robot.dof)]
    found = fit_inverse_gains(equations, known.vector, stated=stated, free=0)
    return _turn_over(found, robot.joint_names, stated, remedy="Use a heavier load, or more motion.")


def gains_from_weighed_mass(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs,
    mass_kg: float,
    com: ArrayLike | None = None,
    link: str | None = None,
    stated: CurrentGains | None = None,
) -> DriveGains:
    """Calibrate drives with a load of which nothing but the mass is known, and perhaps the centre of mass.

    Joint by joint the currents give ``load / gain``; the mass sets the common scale. The moments of inertia, and the
    centre of mass where it is not given, are estimated with the gains: all joints share them.

    Args:
        robot: Geometry and terms.
        loaded: Experiments with the load; `effort` holds currents [A], or torques of doubtful scale.
        unloaded: Experiments without the load.
        mass_kg: Mass of the load [kg].
        com: (3,) its centre of mass in the link's frame [m].
        link: Link that carries the load; by default the link of the last body.
        stated: Gains with their standard deviations as they were known before, which count together with the runs.

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
    equations = [joint_equations(problem, joint) for joint in range(robot.dof)]
    if com is not None:
        point = Inertia.from_com(mass_kg, com, np.zeros((3, 3)))
        found = fit_inverse_gains(equations, point.vector, stated=stated, free=MOMENTS)
        return _turn_over(found, robot.joint_names, stated, remedy="Use a heavier load, or more motion.")
    starts = start_loads(equations, mass_kg, stated)  # a gain without end in some joints is a minimum, too
    fits = [fit_inverse_gains(equations, load, stated=stated, free=ALL_BUT_MASS) for load in starts]
    found = min(fits, key=lambda fit: fit.cost)
    remedy = "Give the centre of mass as well (--com), or use a heavier load or more motion."
    return _turn_over(found, robot.joint_names, stated, remedy=remedy)


def _turn_over(found: InverseGains, names: tuple[str, ...], stated: CurrentGains | None, *, remedy: str) -> DriveGains:
    """The gains; each standard deviation is that of the longer side of the interval, within the stated one."""
    share = found.std / np.maximum(np.abs(found.values), TINY)  # relative standard deviation
    before = np.full(len(names), np.inf)
    if stated is not None:
        before = np.where(is_stated(stated), stated.stderr / np.abs(stated.gain), np.inf)
    open_ones = share * CLEAR > 1.0
    longer = share / np.maximum(1.0 - INTERVAL * share, TINY)
    gain = np.where(open_ones, np.nan, 1.0 / np.where(open_ones, 1.0, found.values))
    stderr = np.where(open_ones, np.inf, np.abs(gain) * np.minimum(longer, np.maximum(before, share)))
    findings = judge_gains(found, names, stated, remedy=remedy)
    return DriveGains(gain=gain, stderr=stderr, offset=np.zeros(len(names)), joint_names=names, findings=findings)
