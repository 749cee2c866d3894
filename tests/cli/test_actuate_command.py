"""dynid actuate: servos from a log without torque, its folder, and its refusals."""

from __future__ import annotations

import json
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
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot, its law, a map and two logs."""
    place, robot = tmp_path_factory.mktemp("actuate"), double_pendulum()
    robot = robot.with_limits(dict.fromkeys(robot.joint_names, JointLimits(lower=-3.0, upper=3.0, velocity=5.0)))
    parameters = tuple(ServoParameter(kind, start=value, free=False) for kind, value in TRUTH.items())
    model = ServoModel(robot, PositionLaw(kp=20.0, kd=1.0), parameters)
    dynid.write_urdf(robot, place / "arm.urdf")
    (place / "law.toml").write_text(LAW)
    (place / "map.toml").write_text(MAP)
    for number in (1, 2):
        motion = planted(model, [], chirp(robot, duration_s=4.0, seed=number), 2e-4, seed=number)
        table = np.column_stack([motion.time, motion.position, motion.command])
        header = "t,first,second,first_sent,second_sent"
        np.savetxt(place / f"log{number}.csv", table, delimiter=",", header=header, comments="", fmt="%.9f")
    return place


def _run(folder: Path, *words: str) -> tuple[int, str]:
    given = [str(folder / word) if (folder / word).exists() else word for word in words]
    done = CliRunner().invoke(
        main, ["actuate", "--verbose", str(folder / "arm.urdf"), *given, "--map", str(folder / "map.toml")]
    )
    return done.exit_code, done.output


def test_the_truth_is_printed_with_intervals(folder: Path) -> None:
    code, output = _run(folder, "log1.csv", "--law", "law.toml", "--held-out", "log2.csv", "--json")
    assert code == 0, output
    content = json.loads(output)
    truth = [*TRUTH["armature"], *TRUTH["viscous"], *TRUTH["coulomb"], TRUTH["delay"]]
    for found, value in zip(content["parameters"], truth, strict=True):
        assert abs(found["value"] - value) < 4.5 * found["std"], found
    assert content["motions"][1]["trained"] is False
    assert content["motions"][1]["rms"] < 4e-4


def test_a_law_without_a_limit_that_asks_for_more_than_the_drives_have_is_told(folder: Path, tmp_path: Path) -> None:
    robot = dynid.read_urdf(folder / "arm.urdf")
    weak = {"first": JointLimits(lower=-3.0, upper=3.0, velocity=5.0, effort=5.0)}
    dynid.write_urdf(robot.with_limits(weak), tmp_path / "weak.urdf")
    for text, told in ((LAW, [(True, False)]), (LAW + "[fixed]\neffort_limit = 50.0\n", [])):
        (tmp_path / "law.toml").write_text(text)
        law = tmp_path / "law.toml"
        task = IdentifyServos(dynid.read_urdf(tmp_path / "weak.urdf"), [folder / "log1.csv"], law,
                                         (), folder / "map.toml")  # fmt: skip
        found = [one.message for one in dynid.workflows.run(task).findings if one.where == "law"]
        assert [("first" in one, "second" in one) for one in found] == told


def test_the_folder_holds_report_and_files_for_simulators(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "servos"
    code, output = _run(folder, "log1.csv", "log2.csv", "--law", "law.toml", "--out", str(out))
    assert code == 0, output
    names = {path.name for path in out.iterdir()}
    assert {"servos.json", "servos.xml", "servos.urdf", "isaac_actuators.json", "report.html"} <= names
    assert "delay" in (out / "not_in_the_files.txt").read_text()
    report = (out / "report.md").read_text()
    assert "Simulated and measured" in report
    assert read_run(out)["finished"]
    again = CliRunner().invoke(main, ["rerun", str(out), "--out", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again" / "servos.json").read_bytes() == (out / "servos.json").read_bytes()


def test_a_folder_is_validated_on_another_log(folder: Path, tmp_path: Path) -> None:
    """Errors by joint and a verdict; commands and positions exchanged, or joints crossed, fail."""
    out, chart = tmp_path / "servos", str(folder / "map.toml")
    code, output = _run(folder, "log1.csv", "--law", "law.toml", "--held-out", "log2.csv", "--out", str(out))
    assert code == 0, output

    def validate(log: str, *more: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["validate", str(out), log, "--map", chart, *more])
        return done.exit_code, done.output

    code, output = validate(str(folder / "log2.csv"), "--json")
    assert code == 0, output
    content = json.loads(output)
    assert content["joints"]["joint"] == ["first", "second"]
    assert max(content["joints"]["model"]) < 0.4  # mrad
    rows = (folder / "log2.csv").read_text().replace("first", "third").replace("second", "first")
    (tmp_path / "crossed.csv").write_text(rows.replace("third", "second"))
    code, output = validate(str(tmp_path / "crossed.csv"))
    assert code == 1, output
    assert "NOT USABLE: these logs" in output
    assert validate(str(folder / "log1.csv"))[0] == 2
    assert validate(str(folder / "log2.csv"), "--rows", "0:100")[0] == 2
    content = json.loads((out / "servos.json").read_text())
    content["model"]["law"]["kp"] = "much"
    (out / "servos.json").write_text(json.dumps(content))
    code, output = validate(str(folder / "log2.csv"))
    assert (code, "no servos that can be read" in output) == (3, True), output


def test_joints_without_a_known_name_are_paired_by_order(folder: Path, tmp_path: Path) -> None:
    names = {"first": "m_pan", "second": "m_lift"}
    log, chart = (folder / "log1.csv").read_text(), MAP
    for name, other in names.items():
        log, chart = log.replace(name, other), chart.replace(name, other)
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "map.toml").write_text(f"joints = {json.dumps(list(names.values()))}\n{chart}")
    words = ["actuate", str(folder / "arm.urdf"), str(tmp_path / "log.csv"), "--law", str(folder / "law.toml")]
    done = CliRunner().invoke(main, [*words, "--map", str(tmp_path / "map.toml"), "--json"])
    told = [one["message"] for one in json.loads(done.stdout)["findings"] if one["code"] == "joint-order"]
    assert told == ["paired with the robot by order: m_pan = first, m_lift = second"]


def test_commands_are_designed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "commands"
    words = ["excite", str(folder / "arm.urdf"), "--method", "commands", "--out", str(out)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "report.html" not in done.output
    assert {path.name for path in out.iterdir()} >= {"commands.csv"}
    table = np.loadtxt(out / "commands.csv", delimiter=",", skiprows=1)
    assert table.shape[1] == 3
    assert np.ptp(table[:, 1:], axis=0).min() > 0.1


EXCHANGED = MAP.replace("first_sent", "a").replace("second_sent", "b")
EXCHANGED = EXCHANGED.replace('"first", "second"', '"first_sent", "second_sent"').replace(
    '"a", "b"', '"first", "second"'
)
DEGREES = MAP.rpartition('"rad"')[0] + '"deg"\n'


@pytest.mark.parametrize("wrong", [EXCHANGED, DEGREES], ids=["exchanged", "degrees"])
def test_wrong_maps_are_refused(folder: Path, tmp_path: Path, wrong: str) -> None:
    (tmp_path / "map.toml").write_text(wrong)
    words = [str(folder / name) for name in ("arm.urdf", "log1.csv")]
    options = ["--law", str(folder / "law.toml"), "--map", str(tmp_path / "map.toml")]
    done = CliRunner().invoke(main, ["actuate", "--verbose", *words, *options])
    assert done.exit_code == 3, done.output


@pytest.mark.parametrize(("columns", "factor"), [(slice(0, 1), 1e3), (slice(1, None), 180.0 / np.pi)])
def test_milliseconds_and_degrees_are_refused_before_the_fit(
    folder: Path, tmp_path: Path, columns: slice, factor: float
) -> None:
    table = np.loadtxt(folder / "log1.csv", delimiter=",", skiprows=1)
    table[:, columns] *= factor
    header = "t,first,second,first_sent,second_sent"
    np.savetxt(tmp_path / "wrong.csv", table, delimiter=",", header=header, comments="")
    code, output = _run(folder, str(tmp_path / "wrong.csv"), "--law", "law.toml")
    assert code == 3, output
    assert "Declare the unit" in output


def test_alike_joints_share_their_values(folder: Path, tmp_path: Path) -> None:
    (folder / "alike.toml").write_text('alike = [["first", "second"]]\n' + LAW)
    out = tmp_path / "alike"
    code, output = _run(folder, "log1.csv", "--law", "alike.toml", "--held-out", "25%", "--out", str(out))
    assert code == 0, output
    entries = json.loads((out / "servos.json").read_text())["parameters"]
    assert {tuple(entry["joints"]) for entry in entries} == {("first", "second")}
    (folder / "named.toml").write_text("alike = true\n" + LAW)
    code, output = _run(folder, "log1.csv", "--law", "named.toml")
    assert code == 2
    assert "names that differ in the first word only" in output
    code, output = _run(folder, "log1.csv", "--law", "law.toml", "--held-out", "25%", "--held-out", "log2.csv")
    assert code == 2
    assert "one share such as 30%" in output


def test_inspect_maps_a_log_by_its_names(folder: Path, tmp_path: Path) -> None:
    """A newcomer's way: inspect writes the map, and a law without `free` finds what drives usually have."""
    table = np.loadtxt(folder / "log1.csv", delimiter=",", skiprows=1)
    log, chosen = tmp_path / "run.csv", tmp_path / "map.toml"
    np.savetxt(log, table, delimiter=",", header="time,first,second,first_cmd,second_cmd", comments="", fmt="%.9f")
    proposed = CliRunner().invoke(main, ["inspect", str(log), "--robot", str(folder / "arm.urdf")])
    chosen.write_text(proposed.stdout)
    assert 'columns = ["first_cmd", "second_cmd"]' in proposed.stdout
    (tmp_path / "law.toml").write_text('kind = "position"\nkp = 20.0\nkd = 1.0\n')
    words = ["actuate", str(folder / "arm.urdf"), str(log), "--map", str(chosen), "--law", str(tmp_path / "law.toml")]
    done = CliRunner().invoke(main, [*words, "--verbose", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "out" / "servos.json").read_text())
    kinds = ("armature", "viscous", "coulomb", "load_drive", "load_external", "offset", "delay", "gain_scale")
    assert {entry["kind"] for entry in content["parameters"]} == set(kinds)


def test_episodes_of_a_lerobot_folder_are_motions(folder: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    tables = [np.loadtxt(folder / f"log{k}.csv", delimiter=",", skiprows=1) for k in (1, 2)]
    feature = {"dtype": "float64", "shape": [2], "names": ["first.pos", "second.pos"]}
    info = {"codebase_version": "v3.0", "fps": 200, "features": {"observation.state": feature, "action": feature}}
    for place in ("meta", "data/chunk-000"):
        (tmp_path / "set" / place).mkdir(parents=True)
    (tmp_path / "set" / "meta" / "info.json").write_text(json.dumps(info))
    rows = np.concatenate(tables)
    columns = {"timestamp": rows[:, 0], "episode_index": np.repeat([0, 1], [len(table) for table in tables]),
               "observation.state": list(rows[:, 1:3]), "action": list(rows[:, 3:5])}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "set" / "data" / "chunk-000" / "file-000.parquet")
    words = ["actuate", str(folder / "arm.urdf"), str(tmp_path / "set"), "--law", str(folder / "law.toml"), "--json"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 3, refused.output
    assert "--map lerobot_rad" in refused.output
    done = CliRunner().invoke(main, [*words, "--map", "lerobot_rad"])
    assert done.exit_code == 0, done.output
    assert [motion["name"] for motion in json.loads(done.stdout)["motions"]] == 2 * [
        "set 0",
        "set 1",
    ]  # fitted, then left out
    proposed = CliRunner().invoke(main, ["inspect", str(tmp_path / "set")])
    assert "[reference]" in proposed.stdout, proposed.output


def test_a_map_whose_joints_contradict_its_columns_is_refused(folder: Path, tmp_path: Path) -> None:
    """The exchanged joints would be fitted all the same, with an error that few would notice."""
    one, other = double_pendulum().joint_names
    declared = f'joints = ["{other}", "{one}"]\n' + MAP.replace("first", one).replace("second", other)
    log = (folder / "log1.csv").read_text().replace("first", one).replace("second", other)
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "map.toml").write_text(declared)
    words = ["actuate", str(folder / "arm.urdf"), str(tmp_path / "log.csv"), "--law", str(folder / "law.toml")]
    refused = CliRunner().invoke(main, [*words, "--map", str(tmp_path / "map.toml")])
    assert refused.exit_code == 3, refused.output
    assert f"joints are {other}, {one}, but the columns of position are named {one}, {other}" in refused.output


def test_a_law_that_does_not_fit_is_said_first_everywhere(folder: Path, tmp_path: Path) -> None:
    """Gains per degree, as if they were per radian: exit code 1, and the first line of every text says so."""
    (tmp_path / "weak.toml").write_text('kind = "position"\nkp = 0.01\nkd = 0.001\nfree = ["armature", "viscous"]\n')
    code, output = _run(folder, "log1.csv", "--law", str(tmp_path / "weak.toml"), "--out", str(tmp_path / "bad"))
    assert code == 1, output
    assert "NOT USABLE: parts of the logs that the fit did not see are predicted to" in output.splitlines()[0]
    assert "NOT USABLE" in (tmp_path / "bad" / "not_in_the_files.txt").read_text().splitlines()[0]
    assert "Do not use these values" in (tmp_path / "bad" / "report.md").read_text()


def test_gains_of_the_logs_are_written_where_they_agree(folder: Path, tmp_path: Path) -> None:
    """The log states kp; servos.xml has it. Two logs with different gains: the text says what to do."""
    law = tmp_path / "law.toml"
    law.write_text(LAW.replace("kp = 20.0\n", ""))
    (tmp_path / "map.toml").write_text(MAP + '[kp]\ncolumns = "kp"\n')
    for number, gain in ((1, 20.0), (2, 20.5)):
        table = np.loadtxt(folder / f"log{number}.csv", delimiter=",", skiprows=1)
        header = "t,first,second,first_sent,second_sent,kp"
        table = np.column_stack([table, np.full(len(table), gain)])
        np.savetxt(tmp_path / f"log{number}.csv", table, delimiter=",", header=header, comments="", fmt="%.9f")
    start = ["actuate", str(folder / "arm.urdf"), "--law", str(law), "--map", str(tmp_path / "map.toml")]
    for logs, written in ((("log1.csv",), True), (("log1.csv", "log2.csv"), False)):
        out = tmp_path / f"out{len(logs)}"
        done = CliRunner().invoke(main, [*start, *(str(tmp_path / log) for log in logs), "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert (out / "servos.xml").exists() == written
        text = (out / "not_in_the_files.txt").read_text()
        assert ("Write kp of the robot at work into the law's file" in text) == (not written)
    assert 'gainprm="20.0 0 0"' in (tmp_path / "out1" / "servos.xml").read_text()


def test_a_robot_without_masses_is_warned_of(folder: Path, tmp_path: Path) -> None:
    """Nothing but the geometry is in the file: one warning names the joints."""
    robot = double_pendulum()
    dynid.write_urdf(robot.with_parameters(np.zeros(20)), tmp_path / "bare.urdf")
    start = ["actuate", str(tmp_path / "bare.urdf"), str(folder / "log1.csv"), "--law", str(folder / "law.toml")]
    done = CliRunner().invoke(main, [*start, "--map", str(folder / "map.toml"), "--json"])
    found = [finding for finding in json.loads(done.output)["findings"] if finding["code"] == "unusual-inertia"]
    assert [finding["message"].split(";")[0][-13:] for finding in found] == ["first, second"]
