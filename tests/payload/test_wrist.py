"""Loads from a wrist sensor: planted truth in every form of the equations, and faults of the sensor found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynid
from dynid.compiled import energy_regressor, link_pose, wrench_regressor
from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.payload.load import Load
from dynid.payload.sensing import Sensing
from dynid.payload.sensor_faults import check_wrench
from dynid.payload.sensor_search import calibrate_sensor
from dynid.payload.wrench_equations import wrench_data
from dynid.payload.wrist import identify_load, identify_load_from_poses
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia
from support.exact_runs import exact_run

Floats = NDArray[np.float64]
ROBOT = dynid.robots.puma560()
LINK = ROBOT.bodies[-1].joint.child
TRUTH = Inertia.from_com(1.8, [0.01, -0.02, 0.08], np.diag([0.010, 0.014, 0.006]))
TURN = Rotation.from_euler("zyx", [58.8, 5.0, -3.0], degrees=True).as_matrix()
BIAS = np.array([-1.1, -3.0, 6.8, 0.06, -0.15, 0.01])


def run_of(
    wrench: Any = None,
    *,
    noise: float = 0.0,
    bias: Any = 0.0,
    drift: Any = 0.0,
    robot: dynid.Robot = ROBOT,
    seed: int = 0,
    rate: float = 50.0,
    amplitude: float = 1.5,
) -> Experiment:
    """Six seconds of motion; ``wrench`` maps (true wrench, run's q) to what the sensor makes of it."""
    time = np.arange(int(6 * rate)) / rate
    q, dq, ddq = sum_of_sines(robot.dof, period_s=6.0, amplitude=amplitude, seed=seed)(time)
    true = wrench_regressor(robot, LINK, q, dq, ddq) @ TRUTH.vector
    measured = true if wrench is None else wrench(true, q)
    measured = measured + bias + np.multiply.outer(time, np.broadcast_to(drift, (6,)))
    rng = np.random.default_rng(seed)
    noisy = measured + rng.normal(size=measured.shape) * np.repeat([noise, 0.05 * noise], 3)
    return exact_run(time, (q, dq, ddq), wrench=noisy)


def poses_of(count: int, seed: int, noise: float) -> tuple[Floats, Floats]:
    """Rotations (N, 3, 3) and wrenches (N, 6) of the load at rest (eq. 21)."""
    R = Rotation.random(count, random_state=seed).as_matrix()
    force = TRUTH.mass * (np.swapaxes(R, 1, 2) @ np.array([0.0, 0.0, 9.81]))
    error = np.random.default_rng(seed).normal(size=(count, 6)) * np.repeat([noise, 0.05 * noise], 3)
    return R, np.hstack([force, np.cross(TRUTH.com, force)]) + BIAS + error


def halves(wrench: Floats, turn: Floats) -> Floats:
    """Force and moment (N, 6) turned by matrices (3, 3) or (N, 3, 3)."""
    return np.concatenate([(turn @ part[..., None])[..., 0] for part in (wrench[:, :3], wrench[:, 3:])], axis=1)


def settled(load: Load, tolerance: float = 1e-7) -> None:
    np.testing.assert_allclose(load.vector, TRUTH.vector, atol=tolerance)


def test_all_ten_parameters_and_the_bias_from_motion() -> None:
    load = identify_load(ROBOT, run_of(bias=BIAS), sensor_frame=LINK)
    settled(load)
    np.testing.assert_allclose(load.bias, BIAS, atol=1e-6)
    assert load.has_inertia


def test_poses_at_rest_leave_the_inertia_open() -> None:
    run = run_of(bias=BIAS)
    still = np.zeros_like(run.q)
    at_rest = wrench_regressor(ROBOT, LINK, run.q, still, still) @ TRUTH.vector + BIAS
    load = identify_load(ROBOT, replace(run, wrench=at_rest, ddq=still), sensor_frame=LINK)
    assert load.mass == pytest.approx(TRUTH.mass, abs=1e-8)
    np.testing.assert_allclose(load.com, TRUTH.com, atol=1e-8)
    assert np.isinf(load.stderr[:6]).all()
    assert load.findings[0].code == "load-uncertain"


def test_integral_form_needs_no_accelerations() -> None:
    run = run_of(bias=BIAS, rate=400.0)
    blind = replace(run, ddq=np.zeros_like(run.q))
    load = identify_load(ROBOT, blind, sensor_frame=LINK, form="integral", interval_s=0.05)
    settled(load, 2e-5)
    np.testing.assert_allclose(load.bias, BIAS, atol=1e-4)


def test_integral_equations_are_means_of_the_differential_ones() -> None:
    run = run_of(rate=800.0)
    means = wrench_data(ROBOT, run, LINK, Sensing(), form="integral", interval_s=0.1)
    whole = wrench_data(ROBOT, run, LINK, Sensing())
    assert means.time[3] == pytest.approx(0.35)
    np.testing.assert_allclose(means.matrix[3], np.trapezoid(whole.matrix[240:321], dx=1 / 80, axis=0), atol=2e-3)
    q, dq = run.q[7], run.dq[7]
    floating = ROBOT.with_gravity([0, 0, 0])
    momentum = wrench_regressor(floating, LINK, q, 0 * q, dq)
    v, w = momentum[:3, 9], momentum[[2, 0, 1], [7, 8, 6]]
    energy = energy_regressor(floating, q, dq)[-10:]  # half of twist times momentum, parameter by parameter
    np.testing.assert_allclose(0.5 * (v @ momentum[:3] + w @ momentum[3:]), energy, atol=1e-12)


def test_no_interval_spans_samples_without_a_wrench() -> None:
    run = run_of(rate=400.0)
    assert run.wrench is not None
    hole = slice(1000, 1180)
    wrench = run.wrench.copy()
    wrench[hole] = np.nan
    data = wrench_data(ROBOT, replace(run, wrench=wrench), LINK, Sensing(), form="integral", interval_s=0.05)
    np.testing.assert_allclose(data.matrix @ TRUTH.vector, data.wrench, atol=1e-3)
    begin, end = run.time[hole][[0, -1]]
    assert np.all((data.time < begin - 0.02) | (data.time > end + 0.02))
    np.testing.assert_array_equal(data.blocks(), replace(data, time=data.time + 9.0).blocks())


@pytest.mark.parametrize("turned", [False, True])
def test_tilted_base(turned: bool) -> None:
    tilt = Rotation.from_euler("xy", [7.0, -4.0], degrees=True).as_matrix()
    real = ROBOT.with_base_orientation(tilt)
    run = run_of((lambda w, q: halves(w, TURN.T)) if turned else None, robot=real, bias=BIAS, noise=0.02)
    sensing = Sensing(find=("gravity", *["orientation"] * turned))
    load = identify_load(ROBOT, run, sensor_frame=LINK, sensing=sensing)
    assert np.all(np.abs(load.extras["gravity"] - real.gravity) < 4 * load.extras["gravity_stderr"] + 1e-9)
    assert np.all(np.abs(load.vector - TRUTH.vector) < 4 * load.stderr)
    if turned:
        error = Rotation.from_matrix(load.extras["R_frame_sensor"].T @ TURN).as_rotvec()
        assert np.all(np.abs(error) < 4 * load.extras["orientation_stderr"])
        assert np.all(load.extras["orientation_stderr"] < 0.01)
    (tilt,) = [finding for finding in load.findings if finding.code == "gravity"]
    assert tilt.evidence["angle [deg]"] == pytest.approx(8.0, abs=0.999)


FAULTS = {
    "nothing": (None, ROBOT, ()),
    "turned sensor": (lambda w, q: halves(w, TURN.T), ROBOT, ("wrench-frame",)),
    "base axes": (
        lambda w, q: halves(w, link_pose(ROBOT, LINK, q)[:, :3, :3]),
        ROBOT,
        ("wrench-frame", "gravity"),  # a constant bias in base axes is a weight
    ),
    "N mm": (lambda w, q: w * np.repeat([1.0, 1000.0], 3), ROBOT, ("unit",)),
    "reaction": (lambda w, q: -w, ROBOT, ("wrench-frame",)),
    "tilted base": (
        None,
        ROBOT.with_base_orientation(Rotation.from_euler("x", 6, degrees=True).as_matrix()),
        ("gravity",),
    ),
    "moments reversed": (
        lambda w, q: w * np.repeat([1.0, -1.0], 3),
        ROBOT,
        ("wrench-frame",),
    ),
    "turned and N mm": (
        lambda w, q: halves(w, TURN.T) * np.repeat([1.0, 1000.0], 3),
        ROBOT,
        ("unit", "wrench-frame"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found_and_proposed(fault: str) -> None:
    spoil, robot, expected = FAULTS[fault]
    run = run_of(spoil, robot=robot, noise=0.1, bias=0.3)
    proposals = check_wrench(ROBOT, run, sensor_frame=LINK)
    assert tuple(proposal.finding.code for proposal in proposals) == expected
    believed = proposals[-1].sensing if proposals else Sensing()
    load = identify_load(ROBOT, run, sensor_frame=LINK, sensing=believed)  # what is proposed is right
    assert abs(load.mass - TRUTH.mass) < 0.02
    np.testing.assert_allclose(load.com, TRUTH.com, atol=2e-3)


def test_quaternions_without_a_robot_model() -> None:
    R, wrench = poses_of(40, 3, 0.0)
    quaternions = np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1)
    load = identify_load_from_poses(quaternions, wrench, frame="wrist")
    assert load.mass == pytest.approx(TRUTH.mass, abs=1e-9)
    np.testing.assert_allclose(load.com, TRUTH.com, atol=1e-9)
    assert not load.has_inertia
    with pytest.raises(ArgumentError, match="do not fit"):
        identify_load_from_poses(quaternions[:5], wrench)


def test_known_loads_at_rest_must_differ_in_their_centre_of_mass() -> None:
    rest = replace(run_of(), dq=0 * run_of().q, ddq=0 * run_of().q)
    data = wrench_data(ROBOT, rest, LINK, Sensing())
    rng = np.random.default_rng(1)
    gain = np.eye(6) + 0.05 * rng.normal(size=(6, 6))
    loads = [Inertia.from_com(1.0 + k, com, np.zeros((3, 3))) for k, com in enumerate(0.1 * np.eye(4, 3))]
    runs = [(replace(rest, wrench=data.matrix @ body.vector @ gain.T + BIAS), body) for body in loads]
    found = calibrate_sensor(ROBOT, runs, sensor_frame=LINK)
    np.testing.assert_allclose(found.gain, gain, atol=1e-6)
    np.testing.assert_allclose(found.bias, BIAS, atol=1e-6)
    right = wrench_data(ROBOT, runs[1][0], LINK, Sensing(calibration=found))
    np.testing.assert_allclose(right.wrench, data.matrix @ loads[1].vector, atol=1e-6)
    alone = calibrate_sensor(
        ROBOT, runs[:1], sensor_frame=LINK
    )  # along x: moments about y and z follow from forces along z and y
    np.testing.assert_array_equal(np.isinf(alone.stderr[0]), [False, True, True, True, True, True])


def test_errors_say_what_is_missing() -> None:
    run = run_of()
    one_pose = replace(run, q=np.tile(run.q[:1], (len(run.q), 1)), dq=0 * run.q, ddq=0 * run.q)
    for runs, error, message in (
        ([replace(run, wrench=None)], DataError, "no wrench"),
        ([], DataError, "no experiment"),
        ([one_pose], IdentifiabilityError, "bias"),
    ):
        with pytest.raises(error, match=message):
            identify_load(ROBOT, runs, sensor_frame=LINK)
