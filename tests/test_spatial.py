"""Rotations and transforms against SciPy and against themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from dynid.spatial import (
    cross,
    inverse_transform,
    rotation_about,
    rotation_from_quaternion,
    rotation_from_rpy,
    rpy_from_rotation,
    skew,
    snap,
    transform,
)

angles = st.floats(-np.pi, np.pi)


@given(angles, angles, angles)
def test_roll_pitch_yaw_is_scipys_fixed_axis_convention(roll: float, pitch: float, yaw: float) -> None:
    expected = Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix()
    np.testing.assert_allclose(rotation_from_rpy([roll, pitch, yaw]), expected, atol=1e-14)


@given(angles, st.sampled_from([-np.pi / 2, np.pi / 2, 0.3, 1.5707963, -1.57079632]), angles)
def test_roll_pitch_yaw_comes_back_also_at_gimbal_lock(roll: float, pitch: float, yaw: float) -> None:
    R = rotation_from_rpy([roll, pitch, yaw])
    np.testing.assert_allclose(rotation_from_rpy(rpy_from_rotation(R)), R, atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_rotation_about_any_axis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    angle = rng.uniform(-7, 7)
    np.testing.assert_allclose(rotation_about(axis, angle), Rotation.from_rotvec(angle * axis).as_matrix(), atol=1e-14)


def test_rotation_about_a_coordinate_axis_keeps_exact_zeros_and_ones() -> None:
    for k, sign in ((0, 1), (1, -1), (2, 1)):
        R = rotation_about(sign * np.eye(3)[k], 0.7)
        assert R[k, k] == 1.0
        assert np.count_nonzero(R == 0.0) == 4


def test_quaternion_order_is_w_first() -> None:
    expected = Rotation.from_quat([0.1, 0.2, 0.3, 0.9]).as_matrix()
    np.testing.assert_allclose(rotation_from_quaternion([0.9, 0.1, 0.2, 0.3]), expected, atol=1e-14)


def test_skew_is_the_cross_product() -> None:
    a, b = np.array([1.0, -2.0, 0.5]), np.array([0.3, 4.0, -1.0])
    np.testing.assert_array_equal(skew(a) @ b, np.cross(a, b))
    np.testing.assert_array_equal(cross(a, b), np.cross(a, b))


def test_inverse_transform() -> None:
    T = transform(rotation_from_rpy([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(inverse_transform(T) @ T, np.eye(4), atol=1e-15)


def test_snap_touches_only_what_is_near() -> None:
    np.testing.assert_array_equal(snap([1e-16, 0.5, -1 + 1e-15, 1e-3]), [0.0, 0.5, -1.0, 1e-3])
