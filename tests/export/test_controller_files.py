"""Files and dialogs of controllers: each as its documentation says; the load's own weight must vanish."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

import dynid
from dynid.cli import main
from dynid.errors import ArgumentError, ExportError
from dynid.export.controller_files import payload_dialogs, ros2_gravity_compensation, ur_payload_script
from dynid.spatial import transform
from support.written_loads import write_load

TURN = Rotation.from_euler("xyz", [10.0, 20.0, -70.0], degrees=True).as_matrix()
BODY = dynid.Inertia.from_com(2.5, [0.012, -0.034, 0.088], TURN @ np.diag([0.012, 0.02, 0.025]) @ TURN.T)
LOAD = dynid.Load.of(BODY, "tool0", stderr=1e-3)


def payload_of(script: str) -> tuple[object, ...]:
    """Run the program: its one statement has the same form in Python."""
    lines = [line for line in script.splitlines() if not line.startswith("#")]
    assert lines[0] == "def set_dynid_payload():"
    assert lines[2:] == ["end"]
    calls: list[tuple[object, ...]] = []
    exec(lines[1].strip(), {"set_target_payload": lambda *arguments: calls.append(arguments)})
    return calls[0]


def test_the_program_sets_the_body() -> None:
    mass, com, (xx, yy, zz, xy, xz, yz) = payload_of(ur_payload_script(LOAD).text)
    assert mass == 2.5
    np.testing.assert_allclose(com, BODY.com, atol=1e-5)
    spread = ", ".join(f"{1000 * value:.2g}" for value in LOAD.com_stderr)
    assert f"# standard deviations: mass 0.001 kg, centre of mass {spread} mm\n" in ur_payload_script(LOAD).text
    assert "standard dev" not in ur_payload_script(dynid.Load.of(BODY, "tool0")).text
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], BODY.about_com, atol=1e-7)


def test_the_flange_frame_counts_and_open_moments_are_named() -> None:
    T = transform(TURN, np.array([0.0, 0.1, 0.0]))
    np.testing.assert_allclose(
        payload_of(ur_payload_script(LOAD.in_frame(T, "flange")).text)[1], BODY.in_frame(T).com, atol=1e-5
    )
    file = ur_payload_script(replace(LOAD, undetermined=np.isin(range(10), [0, 2])))
    assert len(payload_of(file.text)) == 2
    assert [finding.code for finding in file.findings] == ["not-in-format"]
    assert "XY, YY, YZ, ZZ are known" in file.findings[0].message
    assert not ur_payload_script(LOAD).findings


def compensated(text: str, R_world_sensor: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """The filter's algorithm as its page states it: f - R g_w, and the moment less p x (R g_w)."""
    yaml = pytest.importorskip("yaml")
    parameters = yaml.safe_load(text)["gravity_compensation"]["ros__parameters"]
    assert parameters["sensor_frame"] == "tool0"
    assert parameters["world_frame"] == "base_link"
    weight = R_world_sensor.T @ np.array(parameters["CoG"]["force"])
    return wrench - np.concatenate([weight, np.cross(parameters["CoG"]["pos"], weight)])


def test_the_filter_takes_the_weight_away() -> None:
    """Readings by dynid's own equations at rest; the sensor feels the opposite of what holds the body."""
    robot = dynid.robots.puma560()
    link = robot.bodies[-1].joint.child
    text = ros2_gravity_compensation(LOAD, world_frame="base_link", gravity=robot.gravity).text
    assert "# weight under gravity (0, 0, -9.81) m/s^2 in the axes of base_link\n" in text
    rest = np.zeros(6)
    for q in np.random.default_rng(0).normal(size=(3, 6)):
        reading = -dynid.compiled.wrench_regressor(robot, link, q, rest, rest) @ BODY.vector
        R = dynid.compiled.link_pose(robot, link, q)[:3, :3]
        np.testing.assert_allclose(compensated(text, R, reading), 0.0, atol=1e-7)


def test_the_admittance_controller_gets_the_weight_as_one_number() -> None:
    yaml = pytest.importorskip("yaml")
    file = ros2_gravity_compensation(LOAD, "admittance_controller", frame="ft_sensor", gravity=[0.0, 0.0, -9.8])
    part = yaml.safe_load(file.text)["admittance_controller"]["ros__parameters"]["gravity_compensation"]
    assert part["frame"]["id"] == "ft_sensor"
    assert part["CoG"]["force"] == pytest.approx(2.5 * 9.8)
    np.testing.assert_allclose(part["CoG"]["pos"], BODY.com, atol=1e-9)
    assert [finding.code for finding in file.findings] == ["not-in-format"]
    assert "# weight under gravity (0, 0, -9.8) m/s^2 in the controller's world frame\n" in file.text
    for wrong in ([0.0, -1.0, -9.8], [0.0, 0.0, 9.8]):
        with pytest.raises(ExportError, match="along -z only"):
            ros2_gravity_compensation(LOAD, "admittance_controller", gravity=wrong)
    assert "force: [0.0, 0.0, -24.5]\n" in ros2_gravity_compensation(LOAD, gravity=[-0.0, 0.0, -9.8]).text


def test_odd_names_stay_in_their_line() -> None:
    yaml = pytest.importorskip("yaml")
    odd = dynid.Load.of(BODY, "tool's\nforce: [1, 2, 3]")
    text = ros2_gravity_compensation(odd, frame="it's: {a}").text
    parameters = yaml.safe_load(text)["gravity_compensation"]["ros__parameters"]
    assert parameters["sensor_frame"] == "it's: {a}"
    assert set(parameters) == {"world_frame", "sensor_frame", "CoG"}
    assert payload_of(ur_payload_script(odd).text)[0] == 2.5


def test_what_no_controller_accepts_is_refused() -> None:
    for write in (ur_payload_script, ros2_gravity_compensation, payload_dialogs):
        with pytest.raises(ExportError, match="not determined"):
            write(replace(LOAD, undetermined=np.ones(10, bool)))
    with pytest.raises(ExportError, match="no physical body"):
        payload_dialogs(dynid.Load.of(dynid.Inertia.from_com(1.0, np.zeros(3), np.diag([0.1, 0.1, 0.5])), "flange"))
    for wrong in ({"target": "moveit"}, {"gravity": [0.0, 0.0]}):
        with pytest.raises(ArgumentError):
            ros2_gravity_compensation(LOAD, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "name"), [("urscript", "payload.script"), ("ros2", "gravity_compensation.yaml")])
def test_the_command_writes_the_file_of_a_load(kind: str, name: str, tmp_path: Path) -> None:
    write_load(tmp_path, LOAD, verdict="good")
    words = ["export", str(tmp_path), "--to", kind, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "2.5" in (tmp_path / "out" / name).read_text() or "24.525" in (tmp_path / "out" / name).read_text()
    assert CliRunner().invoke(main, words).exit_code == 5  # exists
    write_load(tmp_path, LOAD, verdict="doubtful")
    refused = CliRunner().invoke(main, [*words, "--force"])
    assert refused.exit_code == 5
    assert "doubtful" in refused.output


def numbers(text: str) -> np.ndarray:
    return np.array([float(x) for x in re.findall(r"-?\d+\.\d+", text)])


def texts(load: dynid.Load) -> dict[str, str]:
    return {dialog.controller: dialog.text for dialog in payload_dialogs(load)}


def test_every_controller_gets_the_same_body() -> None:
    said = texts(LOAD)
    ur = numbers(said["UR"])
    assert said["UR"].startswith("set_target_payload(2.5000, [0.01200, -0.03400, 0.08800], [")
    xx, yy, zz, xy, xz, yz = ur[4:]
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], BODY.about_com, atol=1e-6)
    franka = numbers(said["Franka"])
    np.testing.assert_allclose(franka[4:].reshape(3, 3, order="F"), BODY.about_com, atol=1e-6)
    kuka = numbers(said["KUKA"])
    np.testing.assert_allclose(kuka[1:4], 1e3 * BODY.com, atol=1e-2)
    R = Rotation.from_euler("ZYX", kuka[4:7], degrees=True).as_matrix()
    np.testing.assert_allclose(R @ np.diag(kuka[7:]) @ R.T, BODY.about_com, atol=1e-5)
    abb = numbers(said["ABB"].split(":=")[1])
    R = Rotation.from_quat(np.roll(abb[4:8], -1)).as_matrix()
    np.testing.assert_allclose(R @ np.diag(abb[8:]) @ R.T, BODY.about_com, atol=1e-5)
    assert said["KUKA"].startswith("LOAD_DATA[1]={M 2.500,CM {X 12.00,Y -34.00,Z 88.00,A ")
    assert said["ABB"].endswith("];")


def test_unknown_inertia_is_a_point_mass_and_said_so() -> None:
    load = replace(LOAD, undetermined=np.arange(10) < 6)
    said = texts(load)
    assert said["UR"] == "set_target_payload(2.5000, [0.01200, -0.03400, 0.08800])"
    assert said["ABB"] == (
        "PERS loaddata load1:=[2.500,[12.00, -34.00, 88.00],[1.000000, 0.000000, 0.000000, 0.000000],"
        "0.00000000,0.00000000,0.00000000]; ! zeros: moments of inertia unknown"
    )
    assert said["Franka"].endswith(") // zeros: moments of inertia unknown")
    assert said["KUKA"].endswith("} ; zeros: moments of inertia unknown")
    assert all("the inertia is not determined" in str(dialog) for dialog in payload_dialogs(load))
    some = replace(load, undetermined=np.arange(10) < 2)
    assert texts(some)["KUKA"].endswith("} ; zeros: XX, XY unknown")
    assert "XX, XY are not determined; known about the centre of mass" in str(payload_dialogs(some)[0])
