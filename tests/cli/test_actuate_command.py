"""dynid actuate: servos from a log without torque, its folder, and its refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.robot.parts import JointLimits
from dynid.servos import PositionLaw, ServoModel, ServoParameter
from dynid.workflows.actuator_run import IdentifyServos
from dynid.workflows.run_folder import read_run
from support.header_styles import write_columns
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum, write_lerobot

LAW = """kind = "position"
kp = 20.0
kd = 1.0
free = ["armature", "viscous", "coulomb"]
shared = ["delay"]
[start]
armature = 0.05
[lower]
delay = 0.0
"""
MAP = """[time]
column = "t"
unit = "s"
[position]
columns = ["first", "second"]
unit = "rad"
[reference]
columns = ["first_sent", "second_sent"]
unit = "rad"
"""
TRUTH = {"armature": [0.03, 0.02], "viscous": [0.2, 0.1], "coulomb": [0.15, 0.3], "delay": 0.01}


HEADER = "t,first,second,first_sent,second_sent"


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The working directory: a robot, its law, a map and two logs."""
    robot = double_pendulum()
    robot = robot.with_limits(dict.fromkeys(robot.joint_names, JointLimits(lower=-3.0, upper=3.0, velocity=5.0)))
    parameters = tuple(ServoParameter(kind, start=value, free=False) for kind, value in TRUTH.items())
    model = ServoModel(robot, PositionLaw(kp=20.0, kd=1.0), parameters)
    with chdir(tmp_path_factory.mktemp("actuate")):
        dynid.write_urdf(robot, "arm.urdf")
        Path("law.toml").write_text(LAW)
        Path("map.toml").write_text(MAP)
        for number in (1, 2):
            motion = planted(model, [], chirp(robot, duration_s=4.0, seed=number), 2e-4, seed=number)
            write_columns(Path(f"log{number}.csv"), [HEADER], [motion.time, motion.position, motion.command])
        yield


def run(*words: str | Path) -> tuple[int, str]:
    """Exit code and output of a command."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.output


def actuate(log: str | Path, *words: str | Path, law: str | Path = "law.toml", columns: str | Path = "map.toml",
            robot: str | Path = "arm.urdf") -> tuple[int, str]:  # fmt: skip
    return run("actuate", "--verbose", robot, log, *words, "--law", law, "--map", columns)


def table(number: int = 1) -> np.ndarray:
    return np.loadtxt(f"log{number}.csv", delimiter=",", skiprows=1)


def test_the_truth_is_printed_with_intervals() -> None:
    code, output = actuate("log1.csv", "--held-out", "log2.csv", "--json")
    assert code == 0, output
    content = json.loads(output)
    truth = [*TRUTH["armature"], *TRUTH["viscous"], *TRUTH["coulomb"], TRUTH["delay"]]
    for found, value in zip(content["parameters"], truth, strict=True):
        assert abs(found["value"] - value) < 4.5 * found["std"], found
    assert content["motions"][1]["trained"] is False
    assert content["motions"][1]["rms"] < 4e-4


def test_a_law_without_a_limit_that_asks_for_more_than_the_drives_have_is_told(tmp_path: Path) -> None:
    weak = JointLimits(lower=-3.0, upper=3.0, velocity=5.0, effort=5.0)
    robot, law = dynid.read_urdf("arm.urdf").with_limits({"first": weak}), tmp_path / "law.toml"
    for text, told in ((LAW, [(True, False)]), (LAW + "[fixed]\neffort_limit = 50.0\n", [])):
        law.write_text(text)
        task = IdentifyServos(robot, [Path("log1.csv")], law, (), Path("map.toml"))
        found = [one.message for one in dynid.workflows.run(task).findings if one.where == "law"]
        assert [("first" in one, "second" in one) for one in found] == told


def test_the_folder_holds_report_and_files_for_simulators(tmp_path: Path) -> None:
    out = tmp_path / "servos"
    code, output = actuate("log1.csv", "log2.csv", "--out", out)
    assert code == 0, output
    names = {path.name for path in out.iterdir()}
    assert {"servos.json", "servos.xml", "servos.urdf", "isaac_actuators.json", "report.html"} <= names
    assert "delay" in (out / "not_in_the_files.txt").read_text()
    assert "Simulated and measured" in (out / "report.md").read_text()
    assert read_run(out)["finished"]
    code, output = run("rerun", out, "--out", tmp_path / "again")
    assert code == 0, output
    assert (tmp_path / "again" / "servos.json").read_bytes() == (out / "servos.json").read_bytes()


def test_a_folder_is_validated_on_another_log(tmp_path: Path) -> None:
    """Errors by joint and a verdict; joints crossed fail, and so does a result that was edited."""
    out, crossed = tmp_path / "servos", tmp_path / "crossed.csv"
    code, output = actuate("log1.csv", "--held-out", "log2.csv", "--out", out)
    assert code == 0, output
    code, output = run("validate", out, "log2.csv", "--map", "map.toml", "--json")
    assert code == 0, output
    content = json.loads(output)
    assert content["joints"]["joint"] == ["first", "second"]
    assert max(content["joints"]["model"]) < 0.4  # mrad
    write_columns(crossed, [HEADER], [table(2)[:, [0, 2, 1, 4, 3]]])
    code, output = run("validate", out, crossed, "--map", "map.toml")
    assert (code, "NOT USABLE: these logs" in output) == (1, True), output
    assert run("validate", out, "log1.csv", "--map", "map.toml")[0] == 2
    assert run("validate", out, "log2.csv", "--map", "map.toml", "--rows", "0:100")[0] == 2
    content = json.loads((out / "servos.json").read_text())
    content["model"]["law"]["kp"] = "much"
    (out / "servos.json").write_text(json.dumps(content))
    code, output = run("validate", out, "log2.csv", "--map", "map.toml")
    assert (code, "no servos that can be read" in output) == (3, True), output


def test_commands_are_designed(tmp_path: Path) -> None:
    code, output = run("excite", "arm.urdf", "--method", "commands", "--out", tmp_path / "commands")
    assert code == 0, output
    assert "report.html" not in output
    designed = np.loadtxt(tmp_path / "commands" / "commands.csv", delimiter=",", skiprows=1)
    assert designed.shape[1] == 3
    assert np.ptp(designed[:, 1:], axis=0).min() > 0.1


EXCHANGED = MAP.replace("first_sent", "a").replace("second_sent", "b")
EXCHANGED = EXCHANGED.replace('"first", "second"', '"first_sent", "second_sent"').replace(
    '"a", "b"', '"first", "second"'
)
DEGREES = MAP.rpartition('"rad"')[0] + '"deg"\n'


@pytest.mark.parametrize("wrong", [EXCHANGED, DEGREES], ids=["exchanged", "degrees"])
def test_wrong_maps_are_refused(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "map.toml").write_text(wrong)
    code, output = actuate("log1.csv", columns=tmp_path / "map.toml")
    assert code == 3, output


@pytest.mark.parametrize(("columns", "factor"), [(slice(0, 1), 1e3), (slice(1, None), 180.0 / np.pi)])
def test_milliseconds_and_degrees_are_refused_before_the_fit(tmp_path: Path, columns: slice, factor: float) -> None:
    wrong = table()
    wrong[:, columns] *= factor
    code, output = actuate(write_columns(tmp_path / "wrong.csv", [HEADER], [wrong]))
    assert (code, "Declare the unit" in output) == (3, True), output


def test_alike_joints_share_their_values(tmp_path: Path) -> None:
    law, out = tmp_path / "alike.toml", tmp_path / "alike"
    law.write_text('alike = [["first", "second"]]\n' + LAW)
    code, output = actuate("log1.csv", "--held-out", "25%", "--out", out, law=law)
    assert code == 0, output
    entries = json.loads((out / "servos.json").read_text())["parameters"]
    assert {tuple(entry["joints"]) for entry in entries} == {("first", "second")}
    law.write_text("alike = true\n" + LAW)
    code, output = actuate("log1.csv", law=law)
    assert (code, "names that differ in the first word only" in output) == (2, True), output
    code, output = actuate("log1.csv", "--held-out", "25%", "--held-out", "log2.csv")
    assert (code, "one share such as 30%" in output) == (2, True), output


def test_inspect_maps_a_log_by_its_names(tmp_path: Path) -> None:
    """A newcomer's way: inspect writes the map, and a law without `free` finds what drives usually have."""
    log = write_columns(tmp_path / "run.csv", ["time,first,second,first_cmd,second_cmd"], [table()])
    proposed = CliRunner().invoke(main, ["inspect", str(log), "--robot", "arm.urdf"]).stdout
    assert 'columns = ["first_cmd", "second_cmd"]' in proposed
    (tmp_path / "map.toml").write_text(proposed)
    (tmp_path / "law.toml").write_text('kind = "position"\nkp = 20.0\nkd = 1.0\n')
    chosen = {"law": tmp_path / "law.toml", "columns": tmp_path / "map.toml"}
    code, output = actuate(log, "--out", tmp_path / "out", **chosen)
    assert code == 0, output
    content = json.loads((tmp_path / "out" / "servos.json").read_text())
    kinds = ("armature", "viscous", "coulomb", "load_drive", "load_external", "offset", "delay", "gain_scale")
    assert {entry["kind"] for entry in content["parameters"]} == set(kinds)


def test_episodes_of_a_lerobot_folder_are_motions(tmp_path: Path) -> None:
    both, log = np.concatenate([table(1), table(2)]), tmp_path / "set"
    columns = {"timestamp": both[:, 0], "episode_index": np.repeat([0, 1], len(both) // 2),
               "observation.state": both[:, 1:3], "action": both[:, 3:5]}  # fmt: skip
    write_lerobot(log, ["first.pos", "second.pos"], 200, columns)
    words = ("actuate", "arm.urdf", log, "--law", "law.toml", "--json")
    code, output = run(*words)
    assert (code, "--map lerobot_rad" in output) == (3, True), output
    code, output = run(*words, "--map", "lerobot_rad")
    assert code == 0, output
    names = [motion["name"] for motion in json.loads(output)["motions"]]
    assert names == ["set 0", "set 1"] * 2  # fitted, then left out
    assert "[reference]" in run("inspect", log)[1]


def test_a_law_that_does_not_fit_is_said_first_everywhere(tmp_path: Path) -> None:
    """Gains per degree, as if they were per radian: exit code 1, and the first line of every text says so."""
    law, out = tmp_path / "weak.toml", tmp_path / "bad"
    law.write_text('kind = "position"\nkp = 0.01\nkd = 0.001\nfree = ["armature", "viscous"]\n')
    code, output = actuate("log1.csv", "--out", out, law=law)
    assert code == 1, output
    assert "NOT USABLE: parts of the logs that the fit did not see are predicted to" in output.splitlines()[0]
    assert "gains (per radian or metre)" in output
    assert "NOT USABLE" in (out / "not_in_the_files.txt").read_text().splitlines()[0]
    assert "Do not use these values" in (out / "report.md").read_text()


def test_gains_of_the_logs_are_written_where_they_agree(tmp_path: Path) -> None:
    """The log states kp; servos.xml has it. Two logs with different gains: the text says what to do."""
    (tmp_path / "law.toml").write_text(LAW.replace("kp = 20.0\n", ""))
    (tmp_path / "map.toml").write_text(MAP + '[kp]\ncolumns = "kp"\n')
    logs = [
        write_columns(tmp_path / f"log{k}.csv", [HEADER, "kp"], [table(k), np.full(len(table(k)), gain)])
        for k, gain in ((1, 20.0), (2, 20.5))
    ]
    for given in (logs[:1], logs):
        out, agree = tmp_path / f"out{len(given)}", len(given) == 1
        chosen = {"law": tmp_path / "law.toml", "columns": tmp_path / "map.toml"}
        code, output = actuate(*given, "--out", out, **chosen)
        assert code == 0, output
        assert (out / "servos.xml").exists() == agree
        told = "Write kp of the robot at work into the law's file" in (out / "not_in_the_files.txt").read_text()
        assert told != agree
    assert 'gainprm="20.0 0 0"' in (tmp_path / "out1" / "servos.xml").read_text()


def test_a_robot_without_masses_is_warned_of(tmp_path: Path) -> None:
    """Nothing but the geometry is in the file: one warning names the joints."""
    dynid.write_urdf(double_pendulum().with_parameters(np.zeros(20)), tmp_path / "bare.urdf")
    findings = json.loads(actuate("log1.csv", "--json", robot=tmp_path / "bare.urdf")[1])["findings"]
    told = [finding["message"].split(";")[0] for finding in findings if finding["code"] == "unusual-inertia"]
    assert [message[-13:] for message in told] == ["first, second"]
