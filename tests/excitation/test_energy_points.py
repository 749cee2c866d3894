"""Point sequences of [GautierKhalil1992]: the three-joint robot of its section 6 and small searches."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.criteria import ConditionNumber, Equilibrium, FrobeniusCondition, GeometricCost
from dynid.excitation.limits import MotionLimits
from dynid.excitation.points.energy_points import EnergyPoints, optimise_points
from dynid.excitation.points.point_trajectory import design_point_trajectory
from dynid.kernels import energy_regressor
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot


def three_joints() -> Robot:
    """Table 1 of the paper."""
    return from_dh([DH(), DH(alpha=-90), DH(d=0.5, r=0.2)], degrees=True, name="gautier-khalil-1992")


@pytest.fixture(scope="module")
def model() -> EnergyPoints:
    return EnergyPoints(three_joints(), lower=-np.pi / 4, upper=np.pi / 4, velocity=0.845)


def test_matrix_is_the_difference_of_energy_rows(model: EnergyPoints) -> None:
    points = model.random(20, np.random.default_rng(0))
    rows = energy_regressor(three_joints(), points.q, points.dq)[:, list(model.columns)]
    assert points.W.shape == (20, 15)
    assert np.allclose(points.W, np.diff(rows, axis=0))


def test_change_of_variables_covers_the_limits(model: EnergyPoints) -> None:
    x = 10 * np.random.default_rng(0).normal(size=(500, 2, 3))
    q, dq = model.states(x)
    assert np.abs(q).max() <= np.pi / 4 + 1e-15
    assert np.abs(dq).max() <= 0.845
    again = model.states(model.variables(q, dq))
    assert np.allclose(again[0], q)
    assert np.allclose(again[1], dq)


@pytest.mark.parametrize(
    ("criterion", "count", "h"),
    [
        (ConditionNumber(), 200, 1e-5),
        (FrobeniusCondition(), 200, 1e-5),
        (Equilibrium(8.0), 15, 1e-8),
    ],
    ids=str,
)
def test_gradient(model: EnergyPoints, criterion, count: int, h: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(count + 1, 2, 3))
    value, gradient = model.value_and_gradient(x, criterion)
    for _ in range(3):
        d = rng.normal(size=x.shape)
        ends = [model.value_and_gradient(x + s * h * d, criterion)[0] for s in (1, -1)]
        assert np.vdot(gradient, d) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-4, abs=1e-5 * value)


def test_random_sequences_of_table_2(model: EnergyPoints) -> None:
    rng = np.random.default_rng(0)
    for count, mean, tolerance in ((30, 949, 0.25), (100, 479, 0.12), (500, 427, 0.07)):
        logs = [np.log(model.random(count, rng).condition_number) for _ in range(60)]
        assert np.exp(np.mean(logs)) == pytest.approx(mean, rel=tolerance)


def test_optimum_sequence_beats_the_paper(model: EnergyPoints) -> None:
    points = optimise_points(model, 20, seed=1, starts=1, iterations=150)
    assert points.condition_number < 20  # the paper: 30
    assert np.all(np.abs(points.q) <= np.pi / 4 + 1e-12)
    assert np.all(np.abs(points.dq) <= 0.845 + 1e-12)
    again = optimise_points(model, 20, seed=1, starts=1, iterations=150)
    assert np.array_equal(again.q, points.q)


def test_equilibrium_can_be_bought(model: EnergyPoints) -> None:
    first = optimise_points(model, 30, starts=1, iterations=100)
    cost = GeometricCost(((1.0, ConditionNumber()), (0.2, Equilibrium())))
    second = optimise_points(model, 30, criterion=cost, initial=first, starts=1, iterations=60)
    assert second.equilibrium < 2000
    assert second.condition_number < 20


def test_predicted_deviation_is_the_paper_s_covariance(model: EnergyPoints) -> None:
    points = model.random(40, np.random.default_rng(2))
    _, s, Vt = np.linalg.svd(points.W, full_matrices=False)
    expected = 0.1 * np.sqrt(((Vt.T / s) ** 2).sum(axis=1))
    assert points.predicted_deviation(0.1) == pytest.approx(expected)


def limits(acceleration: float, half: float = np.pi / 2) -> MotionLimits:
    ones = np.ones(3)
    return MotionLimits(
        joint_names=three_joints().joint_names,
        lower=-half * ones,
        upper=half * ones,
        velocity=2.0 * ones,
        acceleration=acceleration * ones,
        jerk=np.inf * ones,
        torque=np.inf * ones,
    )


def test_trajectory_through_the_points_keeps_all_limits() -> None:
    points, path = design_point_trajectory(three_joints(), limits(10.0), 18, iterations=60)
    low, high = path.position_range
    velocity, acceleration = path.peaks
    assert np.all((low >= -np.pi / 2) & (high <= np.pi / 2))
    assert np.all(velocity <= 2.0 * (1 + 1e-8))
    assert np.all(acceleration <= 10.0 * (1 + 1e-8))
    start, end = path.evaluate([0.0, path.duration])[1]
    assert not start.any()
    assert np.allclose(end, 0, atol=1e-9)
    assert points.condition_number < 60


def test_what_cannot_be_joined_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.excitation.points.point_trajectory._SPEEDS", (0.5,))
    with pytest.raises(ExcitationError, match="leave the position range of joint"):
        design_point_trajectory(three_joints(), limits(0.005, half=0.01), 15, iterations=1)
    with pytest.raises(ArgumentError, match="finite velocity and acceleration"):
        design_point_trajectory(three_joints(), limits(np.inf), 15)


def test_wrong_questions_are_refused(model: EnergyPoints) -> None:
    with pytest.raises(ArgumentError, match="cannot reveal 15"):
        optimise_points(model, 10)
    with pytest.raises(ArgumentError, match="finite ranges"):
        EnergyPoints(three_joints(), lower=0.0, upper=np.inf, velocity=1.0)
