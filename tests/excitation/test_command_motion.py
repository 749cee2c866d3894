"""Commands for logs without torque: they keep the limits, begin and end at rest, and show more than a sine does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.errors import ArgumentError
from dynid.excitation.command_motion import design_commands

from .conftest import limits_of

JOINT = st.tuples(st.floats(-3.0, 0.0), st.floats(0.1, 3.0), st.floats(0.2, 8.0), st.floats(1.0, 60.0))


@settings(max_examples=15, deadline=None)
@given(st.lists(JOINT, min_size=1, max_size=4), st.floats(0.05, 1.0))
def test_commands_keep_every_limit(joints: list[tuple[float, ...]], amplitude: float) -> None:
    lower, width, velocity, acceleration = (np.array(part) for part in zip(*joints, strict=True))
    limits = limits_of(*(part.tolist() for part in (lower, lower + width, velocity, acceleration)))
    plan = design_commands(limits, amplitude=amplitude, rate_hz=50.0)
    q, step = plan.position, 1.0 / 50.0
    assert (q >= limits.lower - 1e-9).all()
    assert (q <= limits.upper + 1e-9).all()
    assert (np.abs(np.diff(q, axis=0)) / step <= 1.001 * limits.velocity + 1e-9).all()
    # the acceleration of sampled commands, averaged over two steps
    assert (np.abs(np.diff(q, 2, axis=0)) / step**2 <= 1.25 * limits.acceleration + 1e-9).all()
    middle = 0.5 * (limits.lower + limits.upper)
    np.testing.assert_allclose(q[[0, -1]], [middle, middle], atol=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [{"band_hz": (5.0, 0.3)}, {"band_hz": (0.3, 60.0)}, {"amplitude": 1.5}],
)
def test_settings_that_no_motion_has_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        design_commands(limits_of([-1.0], [1.0], [1.0], [1.0]), **wrong)  # type: ignore[arg-type]


def test_joints_without_limits_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no position or velocity limit"):
        design_commands(limits_of([-np.inf], [1.0], [1.0], [1.0]))
