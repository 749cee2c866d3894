"""Read LeRobot data sets, versions 2.1 and 3: every episode becomes a recording.

A feature is a named vector per sample. The feature "action" is what was commanded, "observation.state" what was
measured. ``meta/info.json`` describes the features; the numbers are in Parquet files: one per episode (2.1), or several
episodes in one file, with their number in the column ``episode_index`` (3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.errors import DataError, LogReadError
from dynid.findings import Finding
from dynid.logs.channel_map import read_channel_map
from dynid.logs.conversion import convert
from dynid.logs.joint_order import match_joints, paired_by_order
from dynid.logs.readers import read_table
from dynid.logs.readers.base import ColumnTable
from dynid.logs.recording import Recording
from dynid.robot.model import Robot
from dynid.safe_files.small_files import read_json

FEATURES = {
    "position": "observation.state",
    "velocity": "observation.velocity",
    "effort": "observation.effort",
    "reference": "action",
}
"""Quantity -> the usual feature that holds it; what was commanded is called the reference."""
GRIPPER = "the gripper is a percentage of its opening in LeRobot data sets, not an angle, and is left out"
"""Message about a gripper's column."""


def is_lerobot(path: str | Path) -> bool:
    """Whether a path is the folder of a LeRobot data set."""
    return (Path(path) / "meta" / "info.json").exists()


def read_lerobot(
    folder: str | Path,
    robot: Robot | None = None,
    *,
    unit: str,
    episodes: tuple[int, ...] | None = None,
    joints: Sequence[str] = (),
) -> list[Recording]:
    """Read the episodes of a LeRobot data set; an action of other numbers than the state is left out.

    Args:
        folder: The data set, with its folders meta and data.
        robot: Joints are matched by its names where the data set names them, and counted against it.
        unit: Unit of the positions, "rad" or "deg": data sets do not declare it.
        episodes: Numbers of the episodes to read; all by default.
        joints: Names of the joints in the order of the columns; those of the data set by default.

    Raises:
        LogReadError: The folder is no such data set, or holds no numbers of the positions.
        DataError: It has the positions of more or fewer joints than the robot; grippers do not count, see `GRIPPER`.

    Example:
        >>> runs = dynid.logs.read_lerobot(folder / "lerobot", robot, unit="rad")
        >>> len(runs), runs[0].q.shape
        (1, (601, 3))
    """
    root = Path(folder)
    info = read_info(root)
    present = {quantity: name for quantity, name in FEATURES.items() if name in info["features"]}
    if "position" not in present:
        listed = ", ".join(info["features"])
        raise LogReadError(
            f"it has no feature '{FEATURES['position']}'", path=root,
            remedy=f"Rename the one with the joint positions; it has: {listed}.",
        )  # fmt: skip
    if "reference" in present and not _same_numbers(info["features"], present["position"], present["reference"]):
        del present["reference"]
    units = {"position": unit, "reference": unit, "velocity": f"{unit}/s", "effort": "N m"}
    without_gripper = columns_of_joints(info["features"])
    signals = {
        quantity: {"columns": without_gripper.get(name, name), "unit": units[quantity]}
        for quantity, name in present.items()
    }
    channel_map = read_channel_map({"time": {"column": "timestamp", "unit": "s"}, **signals})
    all_names = _names(info["features"][present["position"]])
    names = tuple(joints) or tuple(name for name in all_names if not _is_gripper(name))
    if robot is not None and len(names) < robot.dof == len(all_names):
        raise DataError(GRIPPER, path=root, remedy="Hold the robot's gripper joint (--hold JOINT).")
    found = []
    for number, table in _episodes(root, episodes):
        fields = convert(channel_map, {"episode": table}, robot)
        recording = Recording(**{**fields, "source": f"{root} episode {number}"})
        if without_gripper:
            recording = replace(recording, findings=(*recording.findings, Finding(
                code="unit", severity="warning", where="q", message=GRIPPER,
                remedy="If the robot has a joint for it, hold that joint (--hold JOINT).",
            )))  # fmt: skip
        if len(names) == recording.q.shape[1]:
            findings = (*recording.findings, *paired_by_order(names, robot))
            recording = match_joints(replace(recording, joint_names=names, findings=findings), robot)
        found.append(recording)
    if not found:
        raise LogReadError("it holds no episode that was asked for", path=root, remedy="Check the numbers of episodes.")
    return found


def columns_of_joints(features: Mapping[str, Any]) -> dict[str, list[str]]:
    """Table: name of a feature with a gripper -> the other columns of it, as a channel map names them."""
    found = {}
    for name, feature in features.items():
        joints = _names(feature) if isinstance(feature, Mapping) else ()
        if any(map(_is_gripper, joints)):
            found[name] = [f"{name}[{k}]" for k, joint in enumerate(joints) if not _is_gripper(joint)]
    return found


def root_of(path: Path) -> Path | None:
    """The folder of the LeRobot data set that a path is, or lies in up to four folders deep; None for others."""
    return next((folder for folder in (path, *path.absolute().parents[:4]) if is_lerobot(folder)), None)


def _is_gripper(name: str) -> bool:
    return "gripper" in name.lower()


def read_info(root: Path) -> dict[str, Any]:
    """The content of ``meta/info.json``, with its table of features."""
    try:
        info: dict[str, Any] = read_json(root / "meta" / "info.json")
    except DataError as error:
        raise LogReadError(
            f"meta/info.json cannot be read ({error.reason})",
            path=root,
            remedy="Give the folder of a LeRobot data set.",
        ) from error
    if not isinstance(info, dict) or not isinstance(info.get("features"), dict):
        raise LogReadError("meta/info.json names no features", path=root, remedy="Give a data set of version 2.1 or 3.")
    return info


def _same_numbers(features: Mapping[str, Any], state: str, action: str) -> bool:
    """Whether state and action have the same size, and the same names where both have names."""
    names = (_names(features[state]), _names(features[action]))
    shapes = (features[state].get("shape"), features[action].get("shape"))
    return shapes[0] == shapes[1] and (not all(names) or names[0] == names[1])


def _names(feature: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a feature's numbers: a list, or a dictionary with one list."""
    names = feature.get("names") or ()
    if isinstance(names, Mapping):
        names = next(iter(names.values()), ())
    return tuple(str(name).removesuffix(".pos") for name in names)


def _episodes(root: Path, wanted: tuple[int, ...] | None) -> Iterator[tuple[int, ColumnTable]]:
    """Number and table of every wanted episode (None: all), in order."""
    files = sorted((root / "data").rglob("*.parquet"))
    if not files:
        raise LogReadError(
            "it has no Parquet file under data", path=root, remedy="Download the data set with its data."
        )
    for file in files:
        table = read_table(file)
        # a file without the column holds one episode
        index = table.columns.get("episode_index", np.zeros(len(next(iter(table.columns.values())))))
        for number in np.unique(index).astype(int).tolist():
            if wanted is None or number in wanted:
                rows: Floats = index == number
                yield number, replace(table, columns={name: column[rows] for name, column in table.columns.items()})
