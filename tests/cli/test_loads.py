"""Loads on the command line: the gripper alone as tare, objects recognised, broken files named."""

from __future__ import annotations

import json
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("loads")
    time = np.arange(3000) / 250.0
    q, dq, ddq = sum_of_sines(6, period_s=6.0, amplitude=1.5)(time)
    for seed, (name, vector) in enumerate({"grip": GRIPPER.vector, "both": GRIPPER.vector + CAN.vector}.items()):
        wrench = wrench_regressor(ROBOT, LINK, q, dq, ddq) @ vector
        noisy = wrench + np.random.default_rng(seed).normal(size=wrench.shape) * np.repeat([0.02, 0.001], 3)
        header = ",".join(["t", *(f"q{j}" for j in range(1, 7)), "fx", "fy", "fz", "tx", "ty", "tz"])
        np.savetxt(target / f"{name}.csv", np.column_stack([time, q, noisy]), delimiter=",", header=header, comments="")
        if name == "both":
            late = np.column_stack([time, q, CubicSpline(time, wrench)(time - 0.04) + noisy - wrench])
            np.savetxt(target / "late.csv", late, delimiter=",", header=header, comments="")
    (target / "map.toml").write_text(MAP)
    write_urdf(ARM_ROBOT, target / "arm.urdf")
    moving = ARM_ROBOT.with_terms(Viscous(2.0), Coulomb(1.5), Offset(0.3))
    for seed, (name, robot) in enumerate({"empty": moving, "held": holding(moving)}.items()):
        torque = inverse_dynamics(robot, q, dq, ddq)
        torque += np.random.default_rng(seed).normal(size=torque.shape) * 0.01 * np.sqrt((torque**2).mean(axis=0))
        header = ",".join(["t", *(f"q{j}" for j in range(1, 7)), *(f"tau{j}" for j in range(1, 7))])
        table = np.column_stack([time, q, torque])
        np.savetxt(target / f"{name}.csv", table, delimiter=",", header=header, comments="")
    (target / "torque_map.toml").write_text(TORQUE_MAP)
    (target / "library.toml").write_text(LIBRARY)
    return target


def test_the_gripper_is_subtracted_and_the_object_recognised(folder: Path) -> None:
    alone = run("load", "puma560", folder / "grip.csv", "--map", folder / "map.toml", "--sensor", LINK,
                "--out", folder / "grip")  # fmt: skip
    assert alone.exit_code == 0, alone.output
    result = run("load", "puma560", folder / "both.csv", "--map", folder / "map.toml", "--sensor", LINK, "--json",
                 "--tare", folder / "grip" / "load.json", "--set", f"library={folder / 'library.toml'}")  # fmt: skip
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
    away = np.abs(np.array(said["com_m"]) - CAN.com) / np.array(said["com_stderr_m"])
    assert away.max() < 4
    assert max(said["recognition"], key=said["recognition"].get) == "can"
    assert said["recognition"]["can"] > 0.9


def test_a_load_is_not_its_own_tare(folder: Path) -> None:
    sensor = ("load", "puma560", folder / "grip.csv", "--map", folder / "map.toml", "--sensor", LINK)
    assert run(*sensor, "--out", folder / "own").exit_code == 0
    own = run(*sensor, "--tare", folder / "own" / "load.json")
    assert (own.exit_code, "nothing would be left" in own.output.replace("\n", " ")) == (2, True)


def test_the_link_that_carries_the_load(folder: Path) -> None:
    pair = (
        "load",
        folder / "arm.urdf",
        folder / "held.csv",
        "--unloaded",
        folder / "empty.csv",
        "--map",
        folder / "torque_map.toml",
    )
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


def test_what_is_known_of_the_arm_decides_what_is_told(folder: Path) -> None:
    one = (
        "load",
        folder / "arm.urdf",
        folder / "held.csv",
        "--map",
        folder / "torque_map.toml",
        "--set",
        "link=tool",
        "--json",
    )
    limits = run(*one, "--arm", "0.02,0.002", "--out", folder / "limits")
    facts = json.loads((folder / "limits" / "run.json").read_text())
    assert facts["options"]["arm"] == "0.02,0.002"
    assert "--arm 0.02,0.002" in facts["command"]
    said = json.loads(limits.stdout)
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
    assert any("2 %" in note["message"] and "2 mm" in note["message"] for note in said["notes"])


def test_a_late_wrench_is_named_with_the_option_that_mends_it(folder: Path) -> None:
    late = ("load", "puma560", folder / "late.csv", "--map", folder / "map.toml", "--sensor", LINK)
    doubtful = run(*late)
    assert doubtful.exit_code == 1
    assert "warning [delay]: wrench: the wrench is late by +40" in doubtful.output
    assert "Try: --set delay_s=0.04" in doubtful.output
    reversed_sign = run("load", "puma560", folder / "both.csv", *late[3:], "--set", "sign=-1")
    assert (reversed_sign.exit_code, "Try: --set sign=1." in reversed_sign.output) == (1, True)
    for delay in ("0.04", "auto"):
        mended = run(*late, "--set", f"delay_s={delay}")
        assert mended.exit_code == 0, mended.output
        assert "UR: set_target_payload" in mended.output
    assert "delayed by 40 ms" in mended.stderr


def test_a_weighed_can_calibrates_the_drives(folder: Path) -> None:
    words = ("drives", folder / "arm.urdf", folder / "held.csv", "--unloaded", folder / "empty.csv",
             "--map", folder / "torque_map.toml", "--mass", CAN.mass, "--link", "tool")  # fmt: skip
    said = json.loads(run(*words, "--json").stdout)
    clear = [(gain, std) for gain, std in zip(said["gain"], said["stderr"], strict=True) if gain is not None]
    assert len(clear) >= 2
    assert all(abs(gain - 1.0) < 4.0 * std for gain, std in clear)
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert said["map"] in shown.output
    assert run(*words, "--com", "1", "2").exit_code == 2


def test_drives_print_the_gains_of_the_numbers_in_the_log(folder: Path) -> None:
    """Torques that the map doubles are calibrated as they stand in the log, so that the printed line replaces its."""
    (folder / "double_map.toml").write_text(TORQUE_MAP + 'gain = "2 +- 30 %"\n')
    done = run("drives", folder / "arm.urdf", folder / "held.csv", "--unloaded", folder / "empty.csv",
               "--map", folder / "double_map.toml", "--mass", CAN.mass, "--link", "tool", "--json")  # fmt: skip
    said = json.loads(done.stdout)
    tight = [(gain, std) for gain, std in zip(said["gain"], said["stderr"], strict=True) if std < 0.1]
    assert tight
    assert all(abs(gain - 1.0) < 4.0 * std for gain, std in tight)


def test_a_load_by_uncertain_gains_says_so(folder: Path) -> None:
    (folder / "gain_map.toml").write_text(TORQUE_MAP + 'gain = "1 +- 10 %"\n')
    done = run("load", folder / "arm.urdf", folder / "held.csv", "--unloaded", folder / "empty.csv", "--json",
               "--map", folder / "gain_map.toml", "--set", "link=tool", "--set", "gate=false")  # fmt: skip
    assert done.exit_code in (0, 1), done.output  # so light a can is doubtful then
    said = json.loads(done.stdout)
    assert [note["code"] for note in said["notes"]] == ["drive-gains"]
    assert said["mass_stderr_kg"] > 0.05 * said["mass_kg"]  # exact gains: 0.1 %
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
