"""The verb that designs motions: limits by options, what was checked is said, leftovers are not used, odd words."""

from __future__ import annotations

import csv
import functools
import json
import math
import re
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from click.testing import CliRunner, Result

from dynid.cli import main
from dynid.excitation.point_design import design_energy_points
from dynid.excitation.search import SearchSettings
from dynid.identifiability.base import base_parameters
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits

QUICK = ["--set", "period_s=5", "--set", "rate_hz=50", "--time-limit", "0.3"]
WHOLE = [*QUICK, "--time-limit", "60"]
"""To the end of a `brief` search: equal seeds then give equal designs."""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>
<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="{velocity}"{effort}/>{more}</joint>"""
LINK = """<link name="{name}">{inertial}<collision><origin xyz="0.2 0 0"/><geometry>
<box size="0.4 0.08 0.08"/></geometry></collision></link>"""
INERTIAL = """<inertial><origin xyz="0.2 0.01 0.02"/><mass value="2"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0.002" iyz="0.001"/></inertial>"""


def arm(path: Path, *, effort: float | None = 100.0, more: str = "") -> Path:
    """An arm of three joints over a base at height 0.3 m whose links are beams 0.4 m long."""
    parts = ['<robot name="beams"><link name="base"/>']
    axes, places = ("0 0 1", "0 1 0", "0 1 0"), ("0 0 0.3", "0 0 0", "0.4 0 0")
    word = "" if effort is None else f' effort="{effort}"'
    for k, (axis, at) in enumerate(zip(axes, places, strict=True)):
        parent = "base" if k == 0 else f"link{k - 1}"
        box = LINK.format(name=f"link{k}", inertial=INERTIAL)
        parts.append(box if k else re.sub(r"<collision>.*</collision>", "", box, flags=re.S))
        parts.append(JOINT.format(name="abc"[k], kind="revolute", parent=parent, child=f"link{k}", at=at, axis=axis,
                                  velocity=2, effort=word, more=more if k == 2 else ""))  # fmt: skip
    path.write_text("".join(parts) + "</robot>")
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["excite", "--verbose", *map(str, words)])


def good(*words: object) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def beams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return arm(tmp_path_factory.mktemp("robot") / "beams.urdf")


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends by itself soon."""
    monkeypatch.setattr(
        "dynid.workflows.plan_run.SearchSettings", functools.partial(SearchSettings, iterations=4, outer=2)
    )


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def motion(folder: Path) -> np.ndarray:
    """Rows of the written trajectory: time, then positions, velocities, accelerations of the joints."""
    with (folder / "trajectory.csv").open() as stream:
        return np.array([[float(x) for x in row] for row in list(csv.reader(stream))[1:]])


def corner_heights(urdf: Path, q: np.ndarray) -> np.ndarray:
    """Heights of the corners of the two beams in the base frame, by Pinocchio (N, 2, 8)."""
    model = pinocchio.buildModelFromUrdf(str(urdf))
    data = model.createData()
    signs = np.array([[x, y, z] for x in (0.0, 0.4) for y in (-0.04, 0.04) for z in (-0.04, 0.04)])
    heights = []
    for row in q:
        pinocchio.framesForwardKinematics(model, data, row)
        poses = [data.oMf[model.getFrameId(f"link{k}")] for k in (1, 2)]
        heights.append([(signs @ T.rotation.T + T.translation)[:, 2] for T in poses])
    return np.array(heights)


def test_every_limit_that_is_asked_for_is_kept(beams: Path) -> None:
    limits = ["--acceleration", "3,4,5", "--set", "jerk=40", "--set", "floor=0.1",
              "--set", "tool_speed=0.6", "--set", "box=:,-0.5:0.5,:0.8"]  # fmt: skip
    text = good(beams, *QUICK, *limits, "--set", "clearance=0.01", "--out", "plan")
    assert "Checked: position, velocity, acceleration, jerk, torque, workspace, tool speed, floor or wall" in text
    assert "acceleration" not in text.partition("Not checked: ")[2].partition(".")[0]
    rows = motion(Path("plan"))
    q, dq, ddq = rows[:, 1:4], rows[:, 4:7], rows[:, 7:10]
    assert np.all(np.abs(ddq) <= [3 + 1e-6, 4 + 1e-6, 5 + 1e-6])
    assert corner_heights(beams, q).min() >= 0.1 - 1e-9
    model = pinocchio.buildModelFromUrdf(str(beams))
    data = model.createData()
    torque = np.array([pinocchio.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    assert np.abs(torque).max() <= 80.0
    tip = model.getFrameId("link2")
    for row, speed in zip(q, dq, strict=True):
        pinocchio.forwardKinematics(model, data, row, speed)
        velocity = pinocchio.getFrameVelocity(model, data, tip, pinocchio.LOCAL_WORLD_ALIGNED).linear
        place = pinocchio.updateFramePlacement(model, data, tip).translation
        assert np.linalg.norm(velocity) <= 0.6 + 1e-6
        assert abs(place[1]) <= 0.5 + 1e-9
        assert place[2] <= 0.8 + 1e-9


def test_what_was_not_checked_is_said_everywhere(beams: Path) -> None:
    said = "Not checked: acceleration; jerk; floor and walls; tool speed; self-collision."
    assert said in good(beams, *QUICK, "--out", "plan")
    contents = json.loads(Path("plan/plan.json").read_text())
    assert contents["not_checked"] == ["acceleration", "jerk", "floor and walls", "tool speed", "self-collision"]
    assert said in Path("plan/plan.txt").read_text()
    assert said in Path("plan/report.html").read_text()
    good("ur10", *QUICK, "--out", "ur10")
    assert "Not checked: " in Path("ur10/trajectory.script").read_text().splitlines()[0]


def test_nothing_that_bounds_acceleration_is_a_caution() -> None:
    free = arm(Path("free.urdf"), effort=None)
    assert "nothing but the period bounds the acceleration of a, b, c" in good(free, *QUICK, "--out", "p")
    assert "bounds the acceleration" not in good(free, *QUICK, "--acceleration", "5", "--out", "q")


def test_the_floor_without_geometry_is_for_joint_origins_and_says_so() -> None:
    text = good("ur10", *QUICK, "--set", "floor=0", "--out", "plan")
    assert "joint origins stand for the bodies" in text
    assert "floor and walls for the bodies around the joint origins" in text


@pytest.mark.usefixtures("brief")
def test_predictions_state_noise_rate_and_units(beams: Path) -> None:
    loud = good(beams, *WHOLE, "--verbose", "--out", "loud")
    assert "torque noise of 1 N m (N where a joint slides), independent from sample to sample at 100 Hz" in loud
    assert re.search(r"kg m\^2 +\d+ +[0-9.]+", loud)
    calm = good(beams, *WHOLE, "--json", "--out", "calm")
    plain, noisy = json.loads(calm), json.loads(Path("loud/plan.json").read_text())
    assert noisy["coefficients"] == plain["coefficients"]
    assert plain["units"]["FC1"] == "N m"
    assert "FC1" in Path("loud/plan.txt").read_text()


def test_force_leaves_no_script_of_another_robot(beams: Path) -> None:
    good("ur10", *QUICK, "--out", "plan")
    assert Path("plan/trajectory.script").exists()
    good(beams, *QUICK, "--force", "--out", "plan")
    assert not Path("plan/trajectory.script").exists()
    assert "trajectory.script" not in json.loads(Path("plan/run.json").read_text())["outputs"]


def test_a_floor_above_all_leaves_no_folder(beams: Path) -> None:
    result = run(beams, *QUICK, "--set", "floor=5", "--out", "new")
    assert result.exit_code == 2, result.output
    assert "beyond 'z >= 5 m'" in result.output
    assert not Path("new").exists()


def test_a_mimic_joint_is_held_by_an_option() -> None:
    finger = arm(Path("finger.urdf"), more='<mimic joint="a"/>')
    result = run(finger, *QUICK, "--out", "new")
    assert result.exit_code == 3
    assert "Hold the joint: --hold c, or" in result.output
    good(finger, *QUICK, "--hold", "c", "--out", "new")


def test_the_assumed_range_is_the_used_one(beams: Path) -> None:
    endless = Path("endless.urdf")
    endless.write_text(beams.read_text().replace('lower="-2" upper="2"', 'lower="-1e9" upper="1e9"'))
    text = good(endless, *QUICK, "--out", "plan")
    assert "-180 to 180 deg are assumed for a, b, c, of which 144 deg either way are used" in " ".join(text.split())
    assert np.abs(motion(Path("plan"))[:, 1:4]).max() <= math.radians(144.0)


def test_joint_names_with_commas_and_quotes_keep_the_columns(beams: Path) -> None:
    odd = Path("odd.urdf")
    odd.write_text(beams.read_text().replace('<joint name="a"', "<joint name='a,\"b\"'"))
    good(odd, *QUICK, "--out", "plan")
    with Path("plan/trajectory.csv").open() as stream:
        header, first, *_ = csv.reader(stream)
    assert header[1] == 'q_a,"b"'
    assert len(header) == len(first) == 10


def test_an_interrupt_before_anything_was_found_promises_nothing(beams: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynid.excitation.search.rest_positions", stop)
    result = run(beams, *QUICK, "--out", "plan")
    assert result.exit_code == 130
    assert "earlier files stay" in result.output


def energy_matrix(robot: Robot, points: dict[str, list[list[float]]]) -> np.ndarray:
    """Energy differences between consecutive points per unit of each base parameter, by Pinocchio (r, b)."""
    write_urdf(robot, "arm.urdf")
    model = pinocchio.buildModelFromUrdf("arm.urdf")
    data = model.createData()
    rows = []
    for q, dq in zip(np.array(points["q"])[1:-1], np.array(points["dq"])[1:-1], strict=True):
        kinetic = pinocchio.computeKineticEnergyRegressor(model, data, q, dq)
        rows.append(kinetic + pinocchio.computePotentialEnergyRegressor(model, data, q))
    order = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]  # XX XY XZ YY YZ ZZ MX MY MZ M in m MX MY MZ XX XY YY XZ YZ ZZ
    columns = [10 * (c // 10) + order[c % 10] for c in base_parameters(robot).columns]
    return np.diff(np.array(rows), axis=0)[:, columns]


def test_points_of_the_paper_s_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    short = functools.partial(design_energy_points, iterations=50)
    monkeypatch.setattr("dynid.workflows.plan_run.design_energy_points", short)
    words = ["gautier_khalil_3r", "--method", "energy-points", "--set", "points=15", "--acceleration", 10]
    words += ["--set", "velocity=2", "--set", "rate_hz=200", "--verbose", "--out"]
    text = good(*words, "plan")
    plan = json.loads(Path("plan/plan.json").read_text())
    ball = Inertia.from_com(1.0, [0.1, 0.1, 0.1], 0.01 * np.eye(3))  # the paper's links are no bodies, W is geometry
    rows = [DH(), DH(alpha=-90), DH(d=0.5, r=0.2)]
    bounds = [JointLimits(lower=-3.0, upper=3.0, velocity=2.0, effort=100.0)] * 3
    balls = from_dh(rows, degrees=True, name="table1", inertias=[ball] * 3, limits=bounds)
    W = energy_matrix(balls, plan["points"])
    assert W.shape == (15, 15)
    assert np.linalg.cond(W) == pytest.approx(plan["energies"]["condition_number"], rel=1e-6)
    assert np.linalg.cond(W) <= 53  # [GautierKhalil1992] Table 2
    assert np.abs(W).max() / np.abs(W).min() == pytest.approx(plan["energies"]["equilibrium"], rel=1e-6)
    assert "15 energy differences: Cond(W)" in text
    rows = motion(Path("plan"))
    time, q, dq, ddq = rows[:, 0], rows[:, 1:4], rows[:, 4:7], rows[:, 7:10]
    assert np.abs(q).max() <= 0.8 * np.pi
    assert np.abs(dq).max() <= 1.6
    assert np.abs(ddq).max() <= 10.0
    slope = np.gradient(q, time, axis=0)[1:-1]
    assert slope == pytest.approx(dq[1:-1], abs=0.5 * 10.0 / 200)  # the written velocities are those of the positions
