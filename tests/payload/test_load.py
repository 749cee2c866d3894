"""The load itself: frames, tare, derived numbers and their uncertainty, where principal axes mean something."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid.errors import ArgumentError
from dynid.payload.load import Load, make_possible
from dynid.robot.inertia import Inertia
from dynid.spatial import transform

Floats = NDArray[np.float64]
COM = np.array([0.02, -0.03, 0.1])
TURN = Rotation.from_euler("xyz", [20.0, -35.0, 50.0], degrees=True).as_matrix()


def load_of(moments: Floats, *, mass: float = 2.0, noise: float = 1e-5) -> Load:
    body = Inertia.from_com(mass, COM, TURN @ np.diag(moments) @ TURN.T)
    return Load.of(body, "tool", stderr=noise)


def noisy(load: Load, seed: int) -> Load:
    rng = np.random.default_rng(seed)
    vector = load.vector + rng.multivariate_normal(np.zeros(10), load.covariance)
    return Load(frame="tool", vector=vector, covariance=load.covariance, undetermined=load.undetermined)


def test_another_frame_is_that_of_the_body() -> None:
    load = load_of(np.array([0.002, 0.004, 0.005]))
    T = transform(Rotation.from_euler("y", 30, degrees=True).as_matrix(), np.array([0.1, 0.0, -0.2]))
    moved = load.in_frame(T, "flange")
    np.testing.assert_allclose(moved.vector, load.inertia.in_frame(T).vector, atol=1e-12)
    np.testing.assert_allclose(moved.principal.moments, load.principal.moments, atol=1e-12)
    assert moved.frame == "flange"


def test_open_parameters_stay_open_in_another_frame() -> None:
    open_inertia = np.array([True] * 6 + [False] * 4)
    known = load_of(np.array([0.002, 0.004, 0.005]))
    load = Load(frame="tool", vector=known.vector, covariance=known.covariance, undetermined=open_inertia)
    moved = load.in_frame(transform(TURN, np.array([0.1, 0.2, 0.3])), "flange")
    np.testing.assert_array_equal(moved.undetermined, open_inertia)
    assert np.isinf(moved.stderr[:6]).all()
    assert np.isnan(moved.inertia_about_com).all()
    assert moved.mass == pytest.approx(2.0)
    assert moved.inertia.is_physical  # a point mass stands for what is not known


def test_tare_is_subtracted_with_its_uncertainty() -> None:
    gripper = Load.of(Inertia.from_com(0.8, [0.0, 0.0, 0.05], np.eye(3) * 1e-3), "tool", stderr=0.003)
    both = Load.of(Inertia.from_vector(load_of(np.ones(3) * 0.004).vector + gripper.vector), "tool", stderr=0.004)
    found = both.minus(gripper)
    assert found.mass == pytest.approx(2.0)
    np.testing.assert_allclose(found.com, COM, atol=1e-12)
    np.testing.assert_allclose(found.stderr, 0.005)
    with pytest.raises(ArgumentError, match="frame"):
        both.minus(Load.of(Inertia.zero(), "flange"))


@pytest.mark.parametrize(
    ("moments", "ill"),
    [
        ([0.003, 0.003, 0.003], {(0, 1), (0, 2), (1, 2)}),  # sphere, or cube
        ([0.0004, 0.006, 0.006], {(1, 2)}),  # long bar
        ([0.003, 0.003, 0.005], {(0, 1)}),  # disc
        ([0.002, 0.004, 0.005], set()),  # brick
    ],
)
@pytest.mark.parametrize("noise", [1e-12, 2e-5])
def test_axes_are_flagged_exactly_where_they_are_ill_defined(
    moments: list[float], ill: set[tuple[int, int]], noise: float
) -> None:
    exact = load_of(np.array(moments), noise=noise)
    loads = [exact, *(noisy(exact, seed) for seed in range(20))] if noise > 1e-9 else [exact]
    assert all(set(load.principal.ill_defined) == ill for load in loads)
    wrong = [np.isinf(load.principal.angle_stderr).sum() for load in loads]
    assert set(wrong) == {len(ill)}


def test_angles_of_axes_spread_as_they_say() -> None:
    exact = load_of(np.array([0.002, 0.004, 0.007]), noise=1e-5)
    axes = exact.principal.axes
    turns = []
    for seed in range(200):
        found = noisy(exact, seed).principal.axes
        found = found * np.sign(np.sum(found * axes, axis=0))
        turns.append(Rotation.from_matrix(axes.T @ found).as_rotvec())
    np.testing.assert_allclose(np.std(turns, axis=0), exact.principal.angle_stderr, rtol=0.25)


def test_an_impossible_estimate_becomes_the_nearest_possible_body() -> None:
    bad = load_of(np.array([0.0005, 0.001, 0.004]), noise=3e-4)  # the largest exceeds the sum of the others
    good = make_possible(bad)
    assert not bad.inertia.is_physical
    assert good.inertia.is_physical
    assert good.findings[-1].code == "impossible-estimate"
    assert np.all(np.abs(good.vector - bad.vector) < 5 * bad.stderr)
    fine = load_of(np.array([0.002, 0.004, 0.005]))
    assert make_possible(fine) is fine


def test_a_frame_that_is_no_rigid_motion_is_refused() -> None:
    load = Load.of(Inertia.from_com(1.0, [0.0, 0.0, 0.1], 1e-3 * np.eye(3)), "tool")
    for wrong in (np.eye(3), np.diag([2.0, 2.0, 2.0, 1.0]), np.diag([1.0, 1.0, -1.0, 1.0]), np.nan * np.eye(4)):
        with pytest.raises(ArgumentError, match="rigid"):
            load.in_frame(wrong, "flange")
