"""Loads on the command line: the gripper alone as tare, objects recognised, broken files named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import dynid
from dynid.cli import main
from dynid.data.simulation import sum_of_sines
from dynid.kernels import wrench_regressor
from dynid.robot.inertia import Inertia

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
LIBRARY = """[[object]]
name = "can"
mass = 0.6
principal_moments = [2e-3, 3e-3, 4e-3]

[[object]]
name = "bottle"
mass = 0.9
"""


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
    (target / "map.toml").write_text(MAP)
    (target / "library.toml").write_text(LIBRARY)
    return target


def test_the_gripper_is_subtracted_and_the_object_recognised(folder: Path) -> None:
    alone = run("load", "puma560", folder / "grip.csv", "--map", folder / "map.toml", "--sensor", LINK,
                "--out", folder / "grip")  # fmt: skip
    assert alone.exit_code == 0, alone.output
    result = run("load", "puma560", folder / "both.csv", "--map", folder / "map.toml", "--sensor", LINK, "--json",
                 "--tare", folder / "grip" / "load.json", "--library", folder / "library.toml")  # fmt: skip
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert abs(said["mass_kg"] - CAN.mass) < 4 * said["mass_stderr_kg"]
    away = np.abs(np.array(said["com_m"]) - CAN.com) / np.array(said["com_stderr_m"])
    assert away.max() < 4
    assert max(said["recognition"], key=said["recognition"].get) == "can"
    assert said["recognition"]["can"] > 0.9


@pytest.mark.parametrize(
    ("option", "content", "expected"),
    [
        ("--tare", "{}", "not a load"),
        ("--tare", "[1, 2", "cannot be read"),
        ("--tare", "[]", "not a table"),
        ("--library", "", "no object"),
        ("--library", "[[object]]\nname = 'x'\nmass = -1.0", "positive mass"),
        ("--library", "[[object]]\nname = 'x'\nweight = 1.0", "object 1"),
        ("--library", "[[object]]\nname = 'x'\nmass = 1.0\nprincipal_moments = [1.0]", "object 1"),
    ],
)
def test_broken_files_are_named_with_a_remedy(
    folder: Path, tmp_path: Path, option: str, content: str, expected: str
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(content)
    result = run("load", "puma560", folder / "both.csv", "--map", folder / "map.toml", "--sensor", LINK, option, broken)
    assert result.exit_code == 3
    assert expected in result.output.replace("\n", " ")
    assert str(broken.name) in result.output.replace("\n", "")


def test_options_of_a_sensor_need_a_sensor(folder: Path) -> None:
    result = run("load", "puma560", folder / "both.csv", "--map", folder / "map.toml", "--drift")
    assert result.exit_code == 2
    assert "--sensor" in result.output
