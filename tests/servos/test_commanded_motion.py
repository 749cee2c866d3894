"""`CommandedMotion` refuses what cannot be a motion, and cuts without changing numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.servos import CommandedMotion


def _fields(**changed: object) -> dict[str, object]:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(5, 2))
    return {"joint_names": ("a", "b"), "time": np.arange(5.0), "command": table, "position": table + 1.0} | changed


@pytest.mark.parametrize(
    "wrong",
    [
        {"time": [0.0, 1.0, 1.0, 2.0, 3.0]},
        {"command": np.zeros((5, 3))},
        {"position": np.full((5, 2), np.nan)},
        {"enabled": np.ones(5)},
        {"kp": np.ones(3)},
        {"voltage": -7.4},
    ],
)
def test_wrong_fields_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        CommandedMotion(**_fields(**wrong))


def test_parts_cover_the_motion_and_start_with_its_velocity() -> None:
    time = np.arange(0.0, 2.0, 0.01)
    position = np.stack([np.sin(3.0 * time), 0.5 * time], axis=1)
    motion = CommandedMotion(joint_names=("a", "b"), time=time, command=position, position=position)
    windows = motion.cut_at(0.25, 0.5, 0.75)
    assert [len(window.time) for window in windows] == [50, 50, 50, 50]
    np.testing.assert_array_equal(np.concatenate([window.position for window in windows]), position)
    for window in windows[1:]:
        np.testing.assert_allclose(window.velocity[0], [3.0 * np.cos(3.0 * window.time[0]), 0.5], rtol=1e-3)
