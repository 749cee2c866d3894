"""`inspect_log` with a robot writes a map that reads the usual header styles without editing."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from campaigns.log_writers import joint_state
from dynid.errors import DataError
from dynid.logs.inspect import inspect_log
from dynid.logs.joint_order import column_order, match_joints
from dynid.logs.reading import read_recording, runs_in
from logs.test_readers import write_states
from support.chains import chain
from support.header_styles import (
    NAMES,
    STYLES,
    Motion,
    by_name,
    file_per_quantity,
    joint_pos,
    motion,
    write_columns,
)


def arm(names: Sequence[str] = NAMES) -> dynid.Robot:
    """An arm with given joint names; those of slides say so."""
    kinds = ["prismatic" if "slide" in name else "revolute" for name in names]
    joints = ({"name": name, "kind": kind} for name, kind in zip(names, kinds, strict=True))
    return chain("arm", *((dynid.Inertia.zero(), joint) for joint in joints))


def planted_header(path: Path, names: list[str], *values: Any) -> Path:
    """A log with the time of the motion, and columns that the names belong to."""
    return write_columns(path, ["t", *names], [MOTION.time, *values])


ARM, MOTION = arm(), motion()
CLOCK = {"column": "t", "unit": "s"}
ORDER = [3, 0, 2, 1, 5, 4]
"""An order of the joints that is not the robot's."""
SHUFFLED = [NAMES[j] for j in ORDER]


@pytest.mark.parametrize("write", STYLES, ids=lambda write: write.__name__)
def test_the_map_of_inspect_reads_the_log(write: Callable[[Path, Motion], Path], tmp_path: Path) -> None:
    path = write(tmp_path, MOTION)
    toml = inspect_log(path, ARM).toml.replace('"?"', "1.0")  # torque constants, which no log states
    recording = read_recording(path, ARM, channel_map=tomllib.loads(toml))
    assert recording.joint_names == NAMES
    for field in STYLES[write]:
        np.testing.assert_allclose(getattr(recording, field), getattr(MOTION, field), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(recording.time - recording.time[0], MOTION.time, atol=2e-6)


BOOM = ("turntable", "shoulder", "boom_slide", "wrist_roll", "wrist_bend")
"""Joints of an arm whose third one slides."""
UNIT_STYLES = {
    "load": ("t [s]", ("#.angle(deg)", "#.travel(mm)"), ("#.load(Nm)", "#.load(N)")),
    "spaced": ("Time [s]", ("# position [deg]", "# position [mm]"), ("# load [N m]", "# load [N]")),
    "moment": ("time_s", ("#_angle_deg", "#_stroke_mm"), ("#_moment_Nm", "#_force_N")),
    "prefix": ("time", ("q_act_#_deg", "q_act_#_mm"), ("tau_act_#_Nm", "tau_act_#_N")),
    "plc": ("Time [s]", ("MAIN.#.ActPos[deg]", "MAIN.#.ActPos[mm]"), ("MAIN.#.ActTorque[Nm]", "MAIN.#.ActTorque[N]")),
    "signs": ("Elapsed (s)", ("#: Rotation (°)", "#: Displacement (mm)"), ("#: Torque (N·m)", "#: Force (N)")),
    "german": ("Zeit [s]", ("Istwinkel # [Grad]", "Istposition # [mm]"), ("Drehmoment # [Nm]", "Drehmoment # [N]")),
    "unit only": ("t", ("# [deg]", "# [mm]"), ("# [Nm]", "# [N]")),
    "unknown words": ("t", ("#.drehgeber (deg)", "#.lineal (mm)"), ("#.sensor (Nm)", "#.zelle (N)")),
    "false words": ("t", ("#.T (deg)", "#.T (mm)"), ("#.position (Nm)", "#.position (N)")),
}  # fmt: skip
"""Style -> names of time, and of positions and efforts of a turning and of a sliding joint; # is the joint's name."""


@pytest.mark.parametrize("style", UNIT_STYLES)
@pytest.mark.parametrize("order", [[4, 2, 0, 3, 1], [2, 0, 1, 3, 4]], ids=["turn first", "slide first"])
def test_units_decide_the_quantity_and_names_the_order(style: str, order: list[int], tmp_path: Path) -> None:
    slides = np.array([name == "boom_slide" for name in BOOM])
    q, effort = MOTION.q[:, :5] * np.where(slides, 0.2, 1.0), MOTION.effort[:, :5]
    clock, *pairs = UNIT_STYLES[style]
    names = [pair[int(slides[j])].replace("#", BOOM[j]) for pair in pairs for j in order]
    written = q * np.where(slides, 1e3, 180.0 / np.pi)
    columns = [MOTION.time, written[:, order], effort[:, order]]
    path = write_columns(tmp_path / "run.csv", [clock, *names], columns, ";")
    proposal = inspect_log(path, arm(BOOM))
    recording = read_recording(path, arm(BOOM), channel_map=tomllib.loads(proposal.toml))
    np.testing.assert_allclose(recording.q, q)
    np.testing.assert_allclose(recording.effort, effort)
    assert "not mapped" not in proposal.explanation


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("t,a_pos,b_pos,a_load,b_load", "[unknown quantity] not mapped: a_load, b_load"),
        (
            "t,a_pos,b_pos,a load [permille],b load [permille]",
            "[unknown quantity] not mapped: a load [permille], b load [permille]",
        ),
        ("t,a_pos,b_pos,a_tau", "[effort] not mapped: a_tau: they do not make one column for each joint; robot 'arm'"),
        ("t,a_pos,b_pos,a_pos2 [deg],b_pos2 [Nm]", "[effort] not mapped: b_pos2 [Nm]"),
        (
            "t,a_pos,b_pos,a_cmd_tau,b_cmd_tau",
            "[commanded effort] not mapped: a_cmd_tau, b_cmd_tau: they are commanded",
        ),
    ],
)
def test_columns_outside_the_map_are_named(header: str, said: str, tmp_path: Path) -> None:
    rows = [[0.01 * k, *((-1) ** k * 0.1 * j for j in range(1, header.count(",") + 1))] for k in range(5)]
    proposal = inspect_log(write_columns(tmp_path / "run.csv", [header], [np.array(rows)]), arm("ab"))
    assert tomllib.loads(proposal.toml)["position"]["columns"] == ["a_pos", "b_pos"]
    assert said in proposal.explanation


def test_a_log_of_another_robot_is_told_by_its_joints(tmp_path: Path) -> None:
    """Names come first: nothing is said of units while the joints differ."""
    path = by_name(tmp_path, MOTION)
    channel_map = tomllib.loads(inspect_log(path).toml)
    assert len(channel_map["position"]["columns"]) == 6
    panda, slide = dynid.robots.panda(), dynid.robots.scara()
    for robot, missing in ((panda, "joint7"), (slide, "joint4")):
        with pytest.raises(
            DataError, match=rf"the log lacks joint1.*{missing}; .*no joint for elbow_joint_pos"
        ) as caught:
            read_recording(path, robot, channel_map=channel_map)
        assert "unit" not in str(caught.value)
        assert missing in inspect_log(path, robot).explanation
    assert "# check: none is a joint of the robot" in inspect_log(path, arm(tuple("abcdef"))).toml
    bag = write_shuffled_bag(tmp_path / "run.db3", list(range(6)), extra=False)
    with pytest.raises(DataError, match=r"no position of joint1.*joint7; it has shoulder_pan_joint"):
        read_recording(bag, panda)


def write_shuffled_bag(path: Path, order: list[int], extra: bool) -> Path:
    """A bag whose publisher lists the joints in another order, some with a gripper among them."""
    names = [NAMES[j] for j in order]
    parts = [x[:, order] for x in (MOTION.q, MOTION.dq, MOTION.effort)]
    if extra:
        names.insert(2, "finger_joint")
        parts = [np.insert(x, 2, 0.01, axis=1) for x in parts]
    stamps = [1_700_000_000_000_000_000 + round(t * 1e9) for t in MOTION.time]
    write_states(path, [joint_state(stamp, tuple(names), [x[k] for x in parts]) for k, stamp in enumerate(stamps)])
    return path


@pytest.mark.parametrize("seed", range(4))
def test_bags_with_shuffled_joints_are_mapped_by_name(seed: int, tmp_path: Path) -> None:
    order = np.random.default_rng(seed).permutation(6).tolist()
    path = write_shuffled_bag(tmp_path / "run.db3", order, extra=seed % 3 == 0)
    proposal = inspect_log(path, ARM)
    for chosen in (tomllib.loads(proposal.toml), None):
        recording = read_recording(path, ARM, channel_map=chosen)
        assert recording.joint_names == NAMES
        for field in ("q", "dq", "effort"):
            np.testing.assert_array_equal(getattr(recording, field), getattr(MOTION, field))
        codes = [finding.code for finding in recording.findings]
        assert codes == (["joint-order"] if order != list(range(6)) else [])
    assert "check" not in proposal.toml


def shuffled(order: list[int]) -> dynid.Recording:
    """The motion in memory, joints in another order."""
    return dynid.Recording(
        time=MOTION.time, q=MOTION.q[:, order], dq=MOTION.dq[:, order], effort=MOTION.effort[:, order],
        joint_names=tuple(NAMES[j] for j in order),
    )  # fmt: skip


def test_a_map_with_the_joints_in_another_order_is_a_warning(tmp_path: Path) -> None:
    """Lists of signs and units follow the columns as the map lists them; the values are matched by name."""
    names = [f"{name}_pos" for name in SHUFFLED]
    path = planted_header(tmp_path / "run.csv", names, MOTION.q[:, ORDER])
    sign = [-1, 1, 1, 1, 1, 1]
    by_columns = {"time": CLOCK, "position": {"columns": names, "unit": "rad", "sign": sign}}
    by_joints = {
        "time": CLOCK,
        "joints": SHUFFLED,
        "position": {"columns": "{joint}_pos", "unit": "rad", "sign": sign},
    }
    wanted = MOTION.q.copy()
    wanted[:, ORDER[0]] *= -1.0
    for chosen in (by_columns, by_joints):
        recording = read_recording(path, ARM, channel_map=chosen)
        np.testing.assert_allclose(recording.q, wanted)
        assert [(finding.code, finding.severity) for finding in recording.findings] == [("joint-order", "warning")]
    other_names = read_recording(path, arm(tuple("abcdef")), channel_map=by_joints)
    np.testing.assert_allclose(
        np.abs(other_names.q), np.abs(MOTION.q[:, ORDER])
    )  # names that say nothing keep the order
    assert ["paired with the robot by order" in finding.message for finding in other_names.findings] == [True]


@pytest.mark.parametrize("twice", [False, True], ids=["misspelt", "twice"])
def test_a_map_that_names_a_joint_wrongly_is_refused(twice: bool, tmp_path: Path) -> None:
    """Names are never dropped: for one wrong name all columns would be taken by their places."""
    path = planted_header(tmp_path / "run.csv", list("abcdef"), MOTION.q[:, ORDER])
    joints, missing = list(SHUFFLED), SHUFFLED[2]
    joints[2] = joints[0] if twice else missing[1:]
    position = {"columns": list("abcdef"), "unit": "rad"}
    with pytest.raises(DataError) as caught:
        read_recording(path, ARM, channel_map={"time": CLOCK, "joints": joints, "position": position})
    said = f"is given twice; missing: {missing}" if twice else f"'{missing[1:]}' (near: {missing})"
    wanted = (str(path), "joints of", "channel map", f"'{joints[2]}'", said, ", ".join(NAMES))
    assert [word for word in wanted if word not in str(caught.value)] == []


def test_a_map_whose_joints_contradict_its_columns_is_refused(tmp_path: Path) -> None:
    """The exchanged joints would be fitted all the same, with an error that few would notice."""
    path = planted_header(tmp_path / "run.csv", list(NAMES), MOTION.q)
    position = {"columns": list(NAMES), "unit": "rad"}
    with pytest.raises(DataError, match=f"joints are {SHUFFLED[0]}, .* columns of position are named {NAMES[0]}, "):
        read_recording(path, ARM, channel_map={"time": CLOCK, "joints": SHUFFLED, "position": position})


def test_torques_without_names_beside_shuffled_positions(tmp_path: Path) -> None:
    """Nobody can tell whether they have the robot's order or that of the positions: refused, or a warning."""
    names = [*(f"{name}_pos" for name in SHUFFLED), *(f"tau_{k}" for k in range(6))]
    path = planted_header(tmp_path / "run.csv", names, MOTION.q[:, ORDER], MOTION.effort[:, ORDER])
    channel_map = {
        "time": CLOCK,
        "position": {"columns": names[:6], "unit": "rad"},
        "effort": {"columns": names[6:], "unit": "N m"},
    }
    with pytest.raises(DataError, match=r"those of effort \(tau_0, .*\) do not say their joints"):
        read_recording(path, ARM, channel_map=channel_map)
    recording = read_recording(path, ARM, channel_map={**channel_map, "joints": SHUFFLED})
    np.testing.assert_array_equal(recording.effort, MOTION.effort)
    proposal = inspect_log(path, ARM)
    assert "# check: other columns name the joints" in proposal.toml
    recording = read_recording(path, ARM, channel_map=tomllib.loads(proposal.toml))
    assert [(finding.code, finding.where) for finding in recording.findings] == [("joint-order", "[effort] columns")]


def test_names_of_a_log_that_are_partly_the_robots_are_refused() -> None:
    names = ("gripper", *NAMES[:0:-1])
    recording = replace(shuffled(list(range(6))), joint_names=names)
    for use in (match_joints, lambda log, robot: dynid.process(log).matched(robot), dynid.check_recording):
        with pytest.raises(DataError, match=f"'gripper'.*missing: {NAMES[0]}"):
            use(recording, ARM)


def test_names_that_only_count_keep_the_order() -> None:
    """``joint_0`` to ``joint_5`` are the columns of ``joint_1`` to ``joint_6``, though five of the names agree."""
    robot = arm(tuple(f"joint_{k}" for k in range(1, 7)))
    assert column_order([f"j{k}" for k in (2, 1, 3, 4, 5, 6)], robot) is None
    assert column_order([f"joint_{k}" for k in range(6)], robot) is None
    with pytest.raises(DataError, match="joint_0"):
        column_order([f"joint_{k}" for k in (0, 3, 2, 1, 4, 5)], robot)


def test_recordings_and_experiments_in_memory_are_matched_by_name() -> None:
    order = [5, 4, 0, 1, 3, 2]
    recording = match_joints(shuffled(order), ARM)
    np.testing.assert_array_equal(recording.q, MOTION.q)
    np.testing.assert_array_equal(recording.effort, MOTION.effort)
    assert [finding.code for finding in recording.findings] == ["joint-order"]
    experiment = dynid.process(shuffled(order)).matched(ARM)
    np.testing.assert_array_equal(experiment.q, dynid.process(shuffled(list(range(6)))).q)
    assert "joint-order" in [finding.code for finding in dynid.check_recording(shuffled(order), ARM).findings]


@pytest.mark.parametrize(
    ("robot_names", "log_names"),
    [
        (tuple(f"panda_joint{k}" for k in range(1, 7)), [f"joint{k}" for k in (3, 1, 2, 6, 5, 4)]),
        (tuple(f"joint_a{k}" for k in range(1, 7)), [f"A{k}" for k in (6, 5, 4, 3, 2, 1)]),
        (("j3", "j1", "j2", "j6", "j5", "j4"), ["J1", "J2", "J3", "J4", "J5", "J6"]),
    ],
)
def test_names_are_spelled_in_several_ways(robot_names: tuple[str, ...], log_names: list[str]) -> None:
    """A common prefix may be missing, and a number names the joint that has it."""
    robot = arm(robot_names)
    order = column_order(log_names, robot)
    numbers = [int(name[-1]) for name in robot_names]
    assert [int(log_names[k][-1]) for k in order] == numbers


def test_one_map_for_several_runs(tmp_path: Path) -> None:
    for run in ("run1", "run2"):
        (tmp_path / run).mkdir()
        file_per_quantity(tmp_path / run, MOTION)
    proposal = inspect_log(tmp_path, ARM)
    assert any("2 runs" in note for note in proposal.notes)
    assert runs_in(tmp_path, tomllib.loads(proposal.toml)) == [tmp_path / "run1", tmp_path / "run2"]
    assert runs_in(tmp_path / "run1", tomllib.loads(proposal.toml)) == [tmp_path / "run1"]
    for run in ("run1", "run2"):
        recording = read_recording(tmp_path / run, ARM, channel_map=tomllib.loads(proposal.toml))
        np.testing.assert_allclose(recording.effort, MOTION.effort)
    flat = tmp_path / "flat"
    flat.mkdir()
    for k in range(3):
        (flat / f"log{k}.csv").write_bytes(joint_pos(tmp_path, MOTION).read_bytes())
    proposal = inspect_log(flat, ARM)
    assert any("3 runs" in note for note in proposal.notes)
    chosen = tomllib.loads(proposal.toml)
    assert "files" not in chosen
    assert runs_in(flat, chosen) == [flat / f"log{k}.csv" for k in range(3)]


def test_one_number_per_line(tmp_path: Path) -> None:
    """A file per quantity, the joints of a sample one below the other; the clock has a file of its own."""
    for name, values in (("time", MOTION.time), ("positions", MOTION.q), ("torques", MOTION.effort)):
        np.savetxt(tmp_path / f"traj_{name}.txt", values.ravel(), fmt="%.17g")
    recording = read_recording(tmp_path, ARM, channel_map=tomllib.loads(inspect_log(tmp_path, ARM).toml))
    np.testing.assert_array_equal(recording.q, MOTION.q)
    np.testing.assert_array_equal(recording.effort, MOTION.effort)


def test_two_sets_of_torques_are_not_one(tmp_path: Path) -> None:
    header = "t,a angle,b angle,a torque,b torque,a effort,b effort"
    (tmp_path / "run.csv").write_text(header + "\n" + "".join(f"{0.01 * k},1,{k},4,-{k},3,{k}\n" for k in range(30)))
    found = tomllib.loads(inspect_log(tmp_path / "run.csv").toml)
    assert len(found["effort"]["columns"]) == 2


def test_a_percent_sign_within_a_header_is_no_comment(tmp_path: Path) -> None:
    header = "t,Axis1 Position [deg],Axis2 Position [deg],Axis1 Torque [%],Axis2 Torque [%]"
    (tmp_path / "run.csv").write_text(header + "\n" + "".join(f"{0.01 * k},1,{k},4,-{k}\n" for k in range(30)))
    found = tomllib.loads(inspect_log(tmp_path / "run.csv").toml)
    assert found["effort"] == {"columns": ["Axis1 Torque [%]", "Axis2 Torque [%]"], "unit": "%"}


@pytest.mark.parametrize(
    ("names", "columns", "unit"),
    [
        ([f"motor_temp_{k}" for k in (1, 2, 3)], [0, 1, 2], "degC"),
        (["elbow temperature [K]", "wrist temperature [K]", "shoulder temperature [K]"], [2, 0, 1], "K"),
        (["ambient_temp_F"], [0, 0, 0], "degF"),
    ],
)
def test_temperatures_get_a_section(names: list[str], columns: list[int], unit: str, tmp_path: Path) -> None:
    joints = ("shoulder", "elbow", "wrist")
    rng = np.random.default_rng(0)
    written = 20.0 + 10.0 * np.arange(len(names)) + rng.uniform(size=(50, len(names)))
    shown = {"degC": written, "K": written + 273.15, "degF": 1.8 * written + 32.0}[unit]
    head = ["t", *(f"{joint} position [rad]" for joint in joints), *names]
    log = write_columns(tmp_path / "run.csv", head, [np.arange(50) / 100, rng.normal(size=(50, 3)), shown])
    (tmp_path / "map.toml").write_text(dynid.inspect_log(log, arm(joints)).toml)
    found = dynid.read_recording(log, arm(joints), channel_map=tmp_path / "map.toml").temperature
    assert np.allclose(found.values, written[:, columns])


def test_temperatures_of_some_joints_are_named_and_left_out(tmp_path: Path) -> None:
    log = tmp_path / "run.csv"
    log.write_text("t,q_1,q_2,q_3,temp_1,temp_2\n0,1,2,3,30,31\n0.01,2,3,4,30,31\n0.02,3,4,5,31,30\n")
    proposal = dynid.inspect_log(log)
    assert "[temperature]" not in proposal.toml
    assert "not mapped: temp_1, temp_2: they are neither one column nor one for each joint" in str(proposal)
