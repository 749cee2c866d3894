"""Commands for logs without torque: they keep the limits, begin and end at rest, and show more than a sine does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.actuators import CommandedMotion, PositionLaw, ServoModel
from dynid.actuators.servo_equations import ServoEquations
from dynid.errors import ArgumentError
from dynid.excitation import CommandPlan, CommandSettings, MotionLimits, design_commands
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.zoo.dh_tables import body


def limits_of(lower: list[float], upper: list[float], velocity: list[float], acceleration: list[float]) -> MotionLimits:
    names = tuple(f"joint{k + 1}" for k in range(len(lower)))
    parts = {"lower": lower, "upper": upper, "velocity": velocity, "acceleration": acceleration}
    free = np.full(len(lower), np.inf)
    arrays = {name: np.array(part) for name, part in parts.items()}
    return MotionLimits(joint_names=names, jerk=free, torque=free, **arrays)


JOINT = st.tuples(st.floats(-3.0, 0.0), st.floats(0.1, 3.0), st.floats(0.2, 8.0), st.floats(1.0, 60.0))


@settings(max_examples=15, deadline=None)
@given(st.lists(JOINT, min_size=1, max_size=4), st.floats(0.05, 1.0), st.floats(0.0, 1.0))
def test_commands_keep_every_limit(joints: list[tuple[float, ...]], amplitude: float, off_s: float) -> None:
    lower, width, velocity, acceleration = (np.array(part) for part in zip(*joints, strict=True))
    limits = limits_of(*(part.tolist() for part in (lower, lower + width, velocity, acceleration)))
    plan = design_commands(limits, CommandSettings(amplitude=amplitude, torque_off_s=off_s, rate_hz=50.0))
    q, step = plan.position, 1.0 / 50.0
    assert (q >= limits.lower - 1e-9).all()
    assert (q <= limits.upper + 1e-9).all()
    assert (np.abs(np.diff(q, axis=0)) / step <= 1.001 * limits.velocity + 1e-9).all()
    # the acceleration of sampled commands, averaged over two steps
    assert (np.abs(np.diff(q, 2, axis=0)) / step**2 <= 1.25 * limits.acceleration + 1e-9).all()
    middle = 0.5 * (limits.lower + limits.upper)
    np.testing.assert_allclose(q[[0, -1]], [middle, middle], atol=1e-9)
    assert plan.enabled.all() == (off_s == 0.0)


def pendulum_plan(**changes: float) -> CommandPlan:
    limits = limits_of([-1.5], [1.5], [6.0], [60.0])
    return design_commands(limits, CommandSettings(rate_hz=100.0, **changes))  # type: ignore[arg-type]


def deviations(command: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> dict[str, float]:
    """Standard deviation of every parameter of a servo with a pendulum, in units of the noise of its encoder."""
    rod = body(0.5, (0.1, 0.0, 0.0), (1e-4, 5e-3, 5e-3))
    robot = from_dh([DH(alpha=90)], degrees=True, name="pendulum", inertias=[rod])
    model = ServoModel(robot, PositionLaw(kp=8.0, kd=0.2), ("armature", "viscous", "coulomb", "zero", "delay"))
    time = np.arange(len(command)) / 100.0
    motion = CommandedMotion(joint_names=model.robot.joint_names, time=time, command=command, position=command)
    information = ServoEquations(model, (motion,)).normal(model.start).information
    spread = np.sqrt(np.diagonal(np.linalg.inv(information)))
    return {entry.name.split()[0]: float(value) for entry, value in zip(model.entries, spread, strict=True)}


def test_they_show_more_than_a_slow_sine_of_the_same_length() -> None:
    plan = pendulum_plan()
    designed = deviations(plan.position)
    sine = deviations(0.75 * np.sin(2.0 * np.pi * 0.3 * plan.time)[:, None])
    assert all(designed[name] < sine[name] for name in ("armature", "viscous", "delay"))
    assert designed["armature"] < 0.3 * sine["armature"]


def test_every_stretch_says_what_it_shows(tmp_path: Path) -> None:
    plan = pendulum_plan(torque_off_s=0.5)
    assert [stretch.name for stretch in plan.stretches][:4] == ["rest", "levels", "ramps", "fast"]
    assert all(stretch.shows for stretch in plan.stretches)
    off = [stretch for stretch in plan.stretches if stretch.name == "torque off"]
    assert len(off) == 2
    assert not plan.enabled[round(100 * off[0].start_s) : round(100 * off[0].stop_s)].any()
    plan.write_csv(tmp_path / "commands.csv")
    rows = np.loadtxt(tmp_path / "commands.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(rows[:, 1:2], plan.position, atol=1e-8)


@pytest.mark.parametrize(
    "wrong",
    [{"band_hz": (5.0, 0.3)}, {"band_hz": (0.3, 60.0)}, {"amplitude": 1.5}, {"hold_s": 0.0}, {"torque_off_s": -1.0}],
)
def test_settings_that_no_motion_has_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        CommandSettings(**wrong)  # type: ignore[arg-type]


def test_joints_without_limits_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no position or velocity limit"):
        design_commands(limits_of([-np.inf], [1.0], [1.0], [1.0]))
