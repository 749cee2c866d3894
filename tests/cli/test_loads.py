"""Loads on the command line: the gripper alone as tare, objects recognised, broken files named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.interpolate import CubicSpline

import dynid
from dynid.cli import main
from dynid.compiled import inverse_dynamics, wrench_regressor
from dynid.processing.simulation import sum_of_sines
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from support.header_styles import write_columns

ROBOT = dynid.robots.puma560()
LINK = ROBOT.bodies[-1].joint.child
GRIPPER = Inertia.from_com(0.8, [0.0, 0.01, 0.05], np.diag([2e-3, 2e-3, 1e-3]))
CAN = Inertia.from_com(0.6, [0.01, 0.0, 0.12], np.diag([3e-3, 4e-3, 2e-3]))
MAP = """[time]
column = "t"
unit = "s"
[position]
columns = "q{1..6}"
unit = "rad"
[wrench]
columns = ["fx", "fy", "fz", "tx", "ty", "tz"]
unit = ["N", "N", "N", "N m", "N m", "N m"]
"""
TORQUE_MAP = """[time]
column = "t"
unit = "s"
[position]
columns = "q{1..6}"
unit = "rad"
[effort]
columns = "tau{1..6}"
unit = "N m"
"""
LIBRARY = """[[object]]
name = "can"
mass = 0.6
principal_moments = [2e-3, 3e-3, 4e-3]

[[object]]
name = "bottle"
mass = 0.9
"""


def _with_tool(robot: Robot) -> Robot:
    """The arm with a link on its last body that carries loads."""
    T = np.eye(4)
    T[:3, 3] = [0.0, 0.02, 0.1]
    return robot.with_body("tool", parent=LINK, inertia=Inertia.zero(), T_parent_body=T)


ARM_ROBOT = _with_tool(ROBOT)


def holding(robot: Robot) -> Robot:
    """The arm with the can in its tool."""
    return robot.with_body("can", parent="tool", inertia=CAN)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The working directory: logs of a wrench and of torques, with and without the can, maps, a robot and a library."""
    with chdir(tmp_path_factory.mktemp("loads")):
        write_files()
        yield


def write_files() -> None:
    time = np.arange(3000) / 250.0
    q, dq, ddq = sum_of_sines(6, period_s=6.0, amplitude=1.5)(time)
    positions = ["t", *(f"q{j}" for j in range(1, 7))]
    forces, torques = ["fx", "fy", "fz", "tx", "ty", "tz"], [f"tau{j}" for j in range(1, 7)]
    for seed, (name, vector) in enumerate({"grip": GRIPPER.vector, "both": GRIPPER.vector + CAN.vector}.items()):
        wrench = wrench_regressor(ROBOT, LINK, q, dq, ddq) @ vector
        noise = np.random.default_rng(seed).normal(size=wrench.shape) * np.repeat([0.02, 0.001], 3)
        write_columns(Path(f"{name}.csv"), positions + forces, [time, q, wrench + noise])
    late = CubicSpline(time, wrench)(time - 0.04) + noise
    write_columns(Path("late.csv"), positions + forces, [time, q, late])
    moving = ARM_ROBOT.with_terms(Viscous(2.0), Coulomb(1.5), Offset(0.3))
    for seed, (name, robot) in enumerate({"empty": moving, "held": holding(moving)}.items()):
        torque = inverse_dynamics(robot, q, dq, ddq)
        torque += np.random.default_rng(seed).normal(size=torque.shape) * 0.01 * np.sqrt((torque**2).mean(axis=0))
        write_columns(Path(f"{name}.csv"), positions + torques, [time, q, torque])
    write_urdf(ARM_ROBOT, "arm.urdf")
    for name, text in {"map": MAP, "torque_map": TORQUE_MAP, "library": LIBRARY}.items():
        Path(f"{name}.toml").write_text(text)


SENSOR = ("--map", "map.toml", "--sensor", LINK)
HELD = ("arm.urdf", "held.csv", "--unloaded", "empty.csv", "--map")
"""The torques with the can beside those without it; the map follows."""


def test_the_gripper_is_subtracted_and_the_object_recognised() -> None:
    alone = run("load", "puma560", "grip.csv", *SENSOR, "--out", "grip")
    assert alone.exit_code == 0, alone.output
    words = ("--tare", "grip/load.json", "--set", "library=library.toml")
    result = run("load", "puma560", "both.csv", *SENSOR, *words, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
    away = np.abs(np.array(said["com_m"]) - CAN.com) / np.array(said["com_stderr_m"])
    assert away.max() < 4
    assert max(said["recognition"], key=said["recognition"].get) == "can"
    assert said["recognition"]["can"] > 0.9
    own = run("load", "puma560", "grip.csv", *SENSOR, "--tare", "grip/load.json")
    assert (own.exit_code, "nothing would be left" in own.output.replace("\n", " ")) == (2, True)


def test_the_link_that_carries_the_load() -> None:
    pair = ("load", *HELD, "torque_map.toml")
    result = run(*pair, "--set", "link=tool", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["frame"] == "tool"
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
    np.testing.assert_allclose(said["com_m"], CAN.com, atol=4 * max(said["com_stderr_m"]))
    unknown = run(*pair, "--set", "link=toool")
    assert unknown.exit_code == 2
    assert "toool" in unknown.output
    assert "tool" in unknown.output.replace("toool", "")


def test_what_is_known_of_the_arm_decides_what_is_told() -> None:
    one = ("load", "arm.urdf", "held.csv", "--map", "torque_map.toml", "--set", "link=tool", "--json")
    limits = run(*one, "--arm", "0.02,0.002", "--out", "limits")
    facts = json.loads(Path("limits/run.json").read_text())
    assert facts["options"]["arm"] == "0.02,0.002"
    assert "--arm 0.02,0.002" in facts["command"]
    said = json.loads(limits.stdout)
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
    assert any("2 %" in note["message"] and "2 mm" in note["message"] for note in said["notes"])


def test_a_late_wrench_is_named_with_the_option_that_mends_it() -> None:
    late = ("load", "puma560", "late.csv", *SENSOR)
    doubtful = run(*late)
    assert doubtful.exit_code == 1
    assert "warning [delay]: wrench: the wrench is late by +40" in doubtful.output
    assert "Try: --set delay_s=0.04" in doubtful.output
    reversed_sign = run("load", "puma560", "both.csv", *SENSOR, "--set", "sign=-1")
    assert (reversed_sign.exit_code, "Try: --set sign=1." in reversed_sign.output) == (1, True)
    for delay in ("0.04", "auto"):
        mended = run(*late, "--set", f"delay_s={delay}")
        assert mended.exit_code == 0, mended.output
        assert "UR: set_target_payload" in mended.output
    assert "delayed by 40 ms" in mended.stderr


def test_a_weighed_can_calibrates_the_drives() -> None:
    words = ("drives", *HELD, "torque_map.toml", "--mass", CAN.mass, "--link", "tool")
    said = json.loads(run(*words, "--json").stdout)
    clear = [(gain, std) for gain, std in zip(said["gain"], said["stderr"], strict=True) if gain is not None]
    assert len(clear) >= 2
    assert all(abs(gain - 1.0) < 4.0 * std for gain, std in clear)
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert said["map"] in shown.output
    assert run(*words, "--com", "1", "2").exit_code == 2


def test_drives_print_the_gains_of_the_numbers_in_the_log() -> None:
    """Torques that the map doubles are calibrated as they stand in the log, so that the printed line replaces its."""
    Path("double_map.toml").write_text(TORQUE_MAP + 'gain = "2 +- 30 %"\n')
    done = run("drives", *HELD, "double_map.toml", "--mass", CAN.mass, "--link", "tool", "--json")
    said = json.loads(done.stdout)
    tight = [(gain, std) for gain, std in zip(said["gain"], said["stderr"], strict=True) if std < 0.1]
    assert tight
    assert all(abs(gain - 1.0) < 4.0 * std for gain, std in tight)


def test_a_load_by_uncertain_gains_says_so() -> None:
    Path("gain_map.toml").write_text(TORQUE_MAP + 'gain = "1 +- 10 %"\n')
    done = run("load", *HELD, "gain_map.toml", "--set", "link=tool", "--set", "gate=false", "--json")
    assert done.exit_code in (0, 1), done.output  # so light a can is doubtful then
    said = json.loads(done.stdout)
    assert [note["code"] for note in said["notes"]] == ["drive-gains"]
    assert said["mass_stderr_kg"] > 0.05 * said["mass_kg"]  # exact gains: 0.1 %
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
