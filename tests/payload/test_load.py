"""The load itself: frames, tare, derived numbers and their uncertainty, where principal axes mean something."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid.dynamics.inertia_maps import transport
from dynid.errors import ArgumentError
from dynid.payload.load import Load, PrincipalAxes, make_possible
from dynid.robot.inertia import Inertia
from dynid.spatial import transform

Floats = NDArray[np.float64]
COM = np.array([0.02, -0.03, 0.1])
TURN = Rotation.from_euler("xyz", [20.0, -35.0, 50.0], degrees=True).as_matrix()


def load_of(moments: Floats, *, mass: float = 2.0, noise: float = 1e-5) -> Load:
    body = Inertia.from_com(mass, COM, TURN @ np.diag(moments) @ TURN.T)
    return Load.of(body, "tool", stderr=noise)


def noisy(load: Load, seed: int) -> Load:
    return replace(load, vector=np.random.default_rng(seed).multivariate_normal(load.vector, load.covariance))


def test_another_frame_is_that_of_the_body() -> None:
    load = load_of(np.array([0.002, 0.004, 0.005]))
    T = transform(Rotation.from_euler("y", 30, degrees=True).as_matrix(), np.array([0.1, 0.0, -0.2]))
    moved = load.in_frame(T, "flange")
    np.testing.assert_allclose(moved.vector, load.inertia.in_frame(T).vector, atol=1e-12)
    np.testing.assert_allclose(moved.principal.moments, load.principal.moments, atol=1e-12)
    assert moved.frame == "flange"


OPEN_INERTIA = np.array([True] * 6 + [False] * 4)


def test_open_parameters_stay_open_in_another_frame() -> None:
    load = replace(load_of(np.array([0.002, 0.004, 0.005])), undetermined=OPEN_INERTIA)
    moved = load.in_frame(transform(TURN, np.array([0.1, 0.2, 0.3])), "flange")
    np.testing.assert_array_equal(moved.undetermined, OPEN_INERTIA)
    assert np.isinf(moved.stderr[:6]).all()
    assert np.isnan(moved.inertia_about_com).all()
    assert moved.mass == pytest.approx(2.0)
    point = Inertia.from_com(2.0, moved.com, np.zeros((3, 3)))  # stands for what is not known
    np.testing.assert_allclose(moved.inertia.vector, point.vector, atol=1e-15)
    without_mass = replace(load, undetermined=OPEN_INERTIA | (np.arange(10) == 9))
    np.testing.assert_array_equal(without_mass.inertia.vector, [0.0] * 6 + [*load.vector[6:9], 0.0])


@pytest.mark.parametrize(
    ("deg", "std", "still_open"),
    [(11.0, 0.01, "YY"), (13.0, 0.01, "XY YY"), (27.0, 0.01, "XX XY YY"), (11.0, 0.0, "XX XY YY")],
)
def test_a_small_part_of_an_open_moment_is_counted_by_its_prior(deg: float, std: float, still_open: str) -> None:
    """Of YY, XY gets the share sin(deg) cos(deg), and XX sin(deg)^2; a fifth is small."""
    known = Load.of(Inertia.from_com(1.0, COM, 0.01 * np.eye(3)), "tool", stderr=std)
    load = replace(known, undetermined=np.arange(10) == 3)
    turned = load.in_frame(transform(Rotation.from_euler("z", deg, degrees=True).as_matrix(), np.zeros(3)), "flange")
    assert " ".join(turned.open_moments) == still_open


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
    for axes in (load.principal for load in loads):
        assert (set(axes.ill_defined), np.isinf(axes.angle_stderr).sum()) == (ill, len(ill))


def test_moments_and_angles_spread_as_the_entries_in_principal_axes() -> None:
    spread = np.diag([0.03, 0.01, 0.04, 0.03, 0.09, 0.16])
    spread[0, 3] = spread[3, 0] = 0.015  # the difference of the first two has the variance 0.03, their sum 0.09
    T = transport(TURN, np.zeros(3))[:6, :6]
    found = PrincipalAxes.of(TURN @ np.diag([1.0, 2.0, 9.0]) @ TURN.T, T @ spread @ T.T)
    assert found.ill_defined == ()
    np.testing.assert_allclose(found.moments_stderr, np.sqrt([0.03, 0.03, 0.16]))
    np.testing.assert_allclose(found.angle_stderr, [0.3 / 7.0, 0.2 / 8.0, 0.1 / 1.0])
    nearly = [PrincipalAxes.of(np.diag([100.0, 100.0 + gap, 300.0]), 0.0 * spread) for gap in (2e-7, 4e-7)]
    assert [axes.ill_defined for axes in nearly] == [((0, 1),), ()]
    assert "axes 1 and 2 are ill-defined" in load_of(np.array([0.003, 0.003, 0.005])).table()


def test_an_impossible_estimate_becomes_the_nearest_possible_body() -> None:
    for noise, severity in ((3e-4, "note"), (3e-5, "warning")):
        bad = load_of(np.array([0.0005, 0.001, 0.004]), noise=noise)  # the largest exceeds the sum of the others
        good = make_possible(bad)
        assert not bad.inertia.is_physical
        assert good.inertia.is_physical
        assert (good.findings[-1].code, good.findings[-1].severity) == ("impossible-estimate", severity)
        assert np.sum(((good.vector - bad.vector) / noise) ** 2) == pytest.approx(good.extras["shift"][0] ** 2)
        np.testing.assert_array_equal(good.extras["plain"], bad.vector)
    negative = replace(bad, vector=-bad.vector)
    fine = load_of(np.array([0.002, 0.004, 0.005]))
    for load in (
        negative,
        fine,
        replace(bad, undetermined=OPEN_INERTIA),
        replace(fine, undetermined=np.arange(10) < 1),
    ):
        assert make_possible(load) is load


def test_a_frame_that_is_no_rigid_motion_is_refused() -> None:
    load = Load.of(Inertia.from_com(1.0, [0.0, 0.0, 0.1], 1e-3 * np.eye(3)), "tool")
    for wrong in (np.eye(3), np.diag([2.0, 2.0, 2.0, 1.0]), np.diag([1.0, 1.0, -1.0, 1.0]), np.nan * np.eye(4)):
        with pytest.raises(ArgumentError, match="rigid"):
            load.in_frame(wrong, "flange")
