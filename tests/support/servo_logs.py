"""The logs of servos and legs in the shared data sets, as `CommandedMotion`s, read without the library's readers."""

from __future__ import annotations

import csv
import json
import os
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.servos import CommandedMotion
from support.chains import chain

DATASETS = Path(os.environ.get("DYNID_DATASETS", Path(__file__).parents[3] / "shared" / "datasets"))
ACROSS = np.array([0.0, 1.0, 0.0])
"""Axis of the pendulums."""
XL330_DUTY = 4096 / (2 * np.pi) / (256 * 885)
"""Duty cycle per position error and unit of the register's kp (README of the data sets) [1/rad]."""
SO101 = ("Rotation", "Pitch", "Elbow", "Wrist_Pitch", "Wrist_Roll", "Jaw")


@cache
def xl330_motion(path: Path) -> CommandedMotion:
    """One motion of the servo with its pendulum; 0 hangs down."""
    log = json.loads(path.read_text())
    rows = log["entries"]

    def column(key: str) -> np.ndarray:
        return np.array([[row[key]] for row in rows], dtype=float)

    return CommandedMotion(
        joint_names=("servo",),
        time=column("timestamp")[:, 0],
        command=column("goal_position"),
        position=column("position"),
        enabled=column("torque_enable") > 0.5,
        kp=np.array([float(log["kp"])]),
        voltage=float(log["vin"]),
        name=path.stem,
    )


def xl330_motions() -> list[CommandedMotion]:
    return [xl330_motion(path) for path in sorted((DATASETS / "xl330").glob("*.json"))]


def pendulum(mass: float = 0.49, length: float = 0.1) -> dynid.Robot:
    """A point mass that hangs from a servo."""
    inertia = dynid.Inertia.from_com(mass, [0.0, 0.0, -length], np.zeros((3, 3)))
    return chain("pendulum", (inertia, {"name": "servo", "axis": ACROSS}))


def double_pendulum() -> dynid.Robot:
    """Two rods in one plane."""
    inertia = dynid.Inertia.from_com(1.0, [0.0, 0.0, -0.2], np.diag([0.01, 0.01, 0.001]))
    T = np.eye(4)
    T[2, 3] = -0.4
    weak = dynid.robot.JointLimits(effort=1.0)  # less than any servo that the tests plant
    joints = ({"name": "first", "limits": weak}, {"name": "second", "T_parent_joint": T})
    return chain("double pendulum", *((inertia, {"axis": ACROSS} | joint) for joint in joints))


@cache
def go2_robot() -> dynid.Robot:
    return dynid.read_mjcf(DATASETS / "go2" / "go2.xml", hold={"base_joint1": 0.0})


@cache
def go2_motion() -> CommandedMotion:
    """The quadruped's motion; the tensors of the archive are read as raw numbers."""
    with zipfile.ZipFile(DATASETS / "go2" / "traj_0.pt") as archive:
        raw = {k: np.frombuffer(archive.read(f"traj_0/data/{k}"), dtype="<f4").astype(float) for k in range(3)}
    N = raw[0].size
    return CommandedMotion(
        joint_names=go2_robot().joint_names,
        time=raw[0],
        position=raw[1].reshape(N, 12),
        command=raw[2].reshape(N, 12),
        name="go2",
    )


def so101_robot(signs: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> dynid.Robot:
    """A generic chain for joints 1 to 5: no description of the arm is given, links are about 0.1 kg and 0.11 m long.

    The base turns about the vertical, the next three joints about parallel horizontal axes, the wrist rolls about the
    last link. Zeros are left to the fit; ``signs`` are the directions of the three horizontal axes.
    """
    axes = [[0.0, 0.0, 1.0], *([0.0, s, 0.0] for s in signs), [0.0, 0.0, 1.0]]
    inertia = dynid.Inertia.from_com(0.1, [0.0, 0.0, 0.055], np.diag([1e-4, 1e-4, 2e-5]))
    joints = []
    for k, axis in enumerate(axes):
        T = np.eye(4)
        T[2, 3] = 0.11 if k > 1 else 0.05
        joints.append({"name": SO101[k], "axis": np.array(axis), "T_parent_joint": T})
    return chain("so101", *((inertia, joint) for joint in joints))


@cache
def so101_motion(name: str) -> CommandedMotion:
    """One motion of the arm without its jaw, commands taken at the times of the readings."""
    tables = {}
    for file in ("control", "state_motor"):
        with open(DATASETS / "so101" / name / f"{file}.csv", newline="") as stream:
            rows = list(csv.DictReader(stream))
        tables[file] = (np.array([float(r["timestamp"]) for r in rows]), [json.loads(r["positions"]) for r in rows])
    time, position = tables["state_motor"][0] * 1e-6, np.array(tables["state_motor"][1])
    sent, command = tables["control"][0] * 1e-6, np.array(tables["control"][1])
    rising = np.concatenate([[True], np.diff(time) > 0.0])
    time, position = time[rising], position[rising]
    last = np.clip(np.searchsorted(sent, time, side="right") - 1, 0, None)
    return CommandedMotion(
        joint_names=SO101[:5], time=time, command=command[last, :5], position=position[:, :5], name=name
    )


def so101_names() -> list[str]:
    return sorted(path.name for path in (DATASETS / "so101").iterdir() if path.is_dir())


def write_lerobot(
    folder: Path, names: list[str], fps: int, columns: dict[str, np.ndarray], version: str = "v3.0"
) -> None:
    """Write a LeRobot data set; columns of rows have a number for each motor. Skip the test without pyarrow.

    Version 2.1 has a file for each episode, and calls the names those of motors.
    """
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    feature = {"dtype": "float64", "shape": [len(names)], "names": names if version == "v3.0" else {"motors": names}}
    features = {name: feature for name, values in columns.items() if np.ndim(values) > 1}
    for part in ("meta", "data/chunk-000"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    info = {"codebase_version": version, "fps": fps, "features": features}
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    table = pa.table({name: list(values) for name, values in columns.items()})
    files = {"file-000": table}
    if version == "v2.1":
        episodes = np.unique(columns["episode_index"])
        files = {f"episode_{k:06d}": table.filter(pa.array(columns["episode_index"] == k)) for k in episodes}
    for name, part in files.items():
        pq.write_table(part, folder / "data" / "chunk-000" / f"{name}.parquet")
