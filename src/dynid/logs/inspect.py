"""A proposed channel map for an unknown log, with the reason for every proposal (`dynid inspect`).

A channel map is a TOML file that says which column of a log holds which quantity, in which unit. `inspect_log` reads a
log into tables (name of a column -> its numbers), and writes the map as text. For bags of ROS messages, which declare
their contents, it only has to list the joints; for other files signal_guess.py guesses from names and values of the
columns. Nothing is applied by itself: a person checks the text, saves it and passes it as `channel_map`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.array_types import Floats
from dynid.logs.column_names import quantity_in, words_of
from dynid.logs.joint_order import named_joints, other_joints, shorten_names
from dynid.logs.lerobot import GRIPPER, columns_of_joints, is_lerobot, read_info, root_of
from dynid.logs.readers import ColumnTable
from dynid.logs.readers.ros import bag_files
from dynid.logs.reading import Progress, folder_contents, read_tables
from dynid.logs.signal_guess import Found, Survey, has_no_sign
from dynid.robot.model import Robot


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One proposal and its reason."""

    section: str
    """The section of the map, mostly a quantity such as position."""
    text: str
    """The proposal: columns, or a unit; or the columns that the map leaves out."""
    reason: str
    """Reason for the guess."""
    certain: bool
    """Whether the log itself declares it, or names the joints; if not, a person has to check it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapProposal:
    """A proposed channel map, for a person to check."""

    toml: str
    """The proposed map as text; it can be used once a person has confirmed the lines marked "check"."""
    guesses: tuple[Guess, ...]
    """Reason for each line of the map, and for columns that it leaves out."""
    columns: tuple[str, ...]
    """Every column of the log, with size and range."""
    notes: tuple[str, ...]
    """Remarks of the readers."""

    def __str__(self) -> str:
        """The whole proposal as text for a terminal: columns, reasons, notes and map."""
        return f"{self.explanation}\n\nproposed channel map:\n\n{self.toml}"

    @property
    def explanation(self) -> str:
        """The proposal without the map as text: columns, reasons and notes."""
        guesses = [f"  [{g.section}] {g.text}: {g.reason}{'' if g.certain else ' (check)'}" for g in self.guesses]
        parts = {"columns": [f"  {line}" for line in self.columns], "why": guesses, "notes": list(self.notes)}
        return "\n\n".join(f"{title}:\n" + "\n".join(lines) for title, lines in parts.items() if lines)


def inspect_log(
    path: str | Path | Sequence[str | Path], robot: Robot | None = None, *, progress: Progress | None = None
) -> MapProposal:
    r"""Read a log and propose a channel map for it.

    Args:
        path: The file, the folder of a ROS 2 bag, the files of one run or their folder, or several runs of one kind
            (files with the same columns, or a folder of runs): the map then is that of all of them.
        robot: Joints are matched by its names and counted against it.
        progress: Called with the finished share (0 to 1) and the name of the file.

    Raises:
        LogReadError: If a file cannot be read at all.

    Example:
        >>> import dynid, numpy as np, tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "run.csv"
        >>> _ = log.write_text("time,J1_angle_deg,J2_angle_deg\n0,1,2\n0.01,2,3\n0.02,3,4\n")
        >>> print(dynid.inspect_log(log).toml.splitlines()[-2])
        columns = ["J1_angle_deg", "J2_angle_deg"]
    """
    given = [Path(path)] if isinstance(path, str | Path) else [Path(item) for item in path]
    files, others = _one_run(given)  # the files of the first run, and the number of further runs
    tables = read_tables({file.name: file for file in files}, progress)
    tables, repeated = _same_kind(tables)
    others += repeated
    # in a LeRobot data set a column may hold all joints and a gripper, which is left out
    root = root_of(files[0])
    joints = {} if root is None else columns_of_joints(read_info(root)["features"])
    tables = {name: _split_features(table, joints) for name, table in tables.items()}
    columns = tuple(_describe(name, values) for table in tables.values() for name, values in table.columns.items())
    notes = _notes(tables)
    if all(len(column) == 1 for table in tables.values() for column in table.columns.values()):
        notes.append("the log has one row: it shows no motion")
    if others:
        notes.append(f"one map for {others + 1} runs of one kind; {next(iter(tables))} was read for it")
    is_bag = all(table.clocks for table in tables.values())  # only bags of messages state the time of each column
    propose = _propose_for_messages if is_bag else _propose_by_names
    toml, guesses = propose(tables, robot)
    return MapProposal(toml=toml, guesses=tuple(guesses), columns=columns, notes=tuple(notes))


def _split_features(table: ColumnTable, joints: Mapping[str, Sequence[str]]) -> ColumnTable:
    """Replace each feature (column of vectors) of a LeRobot data set that also holds a gripper by a column per joint.

    Args:
        table: The table; without such features it is returned as it is.
        joints: Feature with a gripper -> names of its columns of joints.
    """
    if not joints.keys() & table.columns.keys():
        return table
    columns = {
        column: values
        for name in table.columns
        for column in joints.get(name, [name])
        if (values := table.column(column)) is not None
    }
    return replace(table, columns=columns, notes=(*table.notes, GRIPPER))


def _notes(tables: Mapping[str, ColumnTable]) -> list[str]:
    """Collect the remarks of the readers, each one once, preceded by the names of its files if the run has several."""
    files: dict[str, list[str]] = {}
    for name, table in tables.items():
        for note in (*table.salvaged, *table.notes):
            files.setdefault(note, []).append(name)
    return [f"{', '.join(names)}: {note}" if len(tables) > 1 else note for note, names in files.items()]


def _one_run(given: list[Path]) -> tuple[list[Path], int]:
    """Find the files of the first run among files and folders; return them, and the number of further runs."""
    if len(given) > 1 and all(path.is_dir() for path in given):  # several folders: each is a run
        files, further = _one_run(given[:1])
        return files, further + len(given) - 1
    folder = given[0]
    if len(given) > 1 or not folder.is_dir() or bag_files(folder):
        return given, 0
    if is_lerobot(folder) and (episodes := sorted((folder / "data").rglob("*.parquet"))):
        return episodes[:1], len(episodes) - 1
    logs, runs = folder_contents(folder)
    if logs or not runs:
        return logs or given, 0
    files, further = _one_run(runs[:1])
    return files, further + len(runs) - 1


def _same_kind(tables: dict[str, ColumnTable]) -> tuple[dict[str, ColumnTable], int]:
    """Decide whether files with the same columns are several runs, or the parts of one.

    They are several runs if all have the same columns, and if either these hold both time and positions, or the names
    of the files do not say different quantities (positions.csv and torques.csv are one run).

    Returns:
        Several runs: the first table, and the number of the others. One run: all tables, and 0.
    """
    quantities = {quantity_in(words_of(Path(name).stem)) for name in tables}
    alike = len({table.names for table in tables.values()}) == 1
    first_names = next(iter(tables.values())).names
    are_complete = {"time", "position"} <= {quantity_in(words_of(name)) for name in first_names}
    if len(tables) == 1 or not alike or (len(quantities) > 1 and not are_complete):
        return tables, 0
    first = next(iter(tables))
    return {first: tables[first]}, len(tables) - 1


def _describe(name: str, values: Floats) -> str:
    """Write a line about a column (N,) or (N, k): name, shape, range, number of missing values."""
    finite = values[np.isfinite(values)]
    extent = f"{finite.min():.6g} to {finite.max():.6g}" if finite.size else "no numbers"
    missing = values.size - finite.size
    shape = " x ".join(str(n) for n in values.shape)
    return f"{name}: {shape}, {extent}" + (f", {missing} missing" if missing else "")


def _propose_for_messages(tables: Mapping[str, ColumnTable], robot: Robot | None) -> tuple[str, list[Guess]]:
    """Propose the map for bags of ROS messages, which state quantities, units and times: only joints are missing.

    Returns:
        The map as text, and the reasons.
    """
    columns = [column for table in tables.values() for column in table.clocks if "/position/" in column]
    # columns are named TOPIC/position/JOINT
    joints = tuple(dict.fromkeys(column.rsplit("/", 1)[1] for column in columns))
    # index of each of the robot's joints that the log names -> its name in the log
    name_of = dict(zip(named_joints(joints, robot), joints, strict=True)) if robot is not None else {}
    is_known = robot is not None and name_of.keys() >= set(range(robot.dof))
    ordered = tuple(name_of[j] for j in range(robot.dof)) if robot is not None and is_known else joints
    remark = "" if is_known else "  # check: put them into the order of the robot's joints"
    lines = ['profile = "joint_state"', *([f"joints = {_array(ordered)}{remark}"] if joints else [])]
    reason = "the joints' names" + ("" if ordered == joints[: len(ordered)] else "; the log has another order")
    guesses = [Guess(section="profile", text="joint_state", reason="messages declare themselves", certain=True)]
    if joints:
        guesses.append(Guess(section="joints", text=", ".join(ordered), reason=reason, certain=is_known))
    return "\n".join(lines) + "\n", guesses


def _propose_by_names(tables: Mapping[str, ColumnTable], robot: Robot | None) -> tuple[str, list[Guess]]:
    """Propose the map by names and values of the columns.

    Returns:
        The map as text, and the reasons.
    """
    survey = Survey(tables, robot)
    found = survey.find()  # quantity -> its columns, units and reasons
    # name of a file -> its key in the section [files]; none for a single file
    keys = {name: f"file{k + 1}" for k, name in enumerate(tables)} if len(tables) > 1 else {}
    sections = ["[files]\n" + "\n".join(f"{key} = {_quote(name)}" for name, key in keys.items())] if keys else []
    taken = {name for one in found.values() for name in one.columns} | set(survey.time.columns if survey.time else ())
    singles = [name for table in tables.values() for name in _single(table)]
    others = [name for name in singles if name not in taken] or ["..."]  # examples for sections to be filled in
    if survey.time is None:
        others = [name for name in others if name != singles[0]]
        sections.append(
            "[time]  # no time column was recognised: name it, or give the time between rows\n"
            f'# column = {_quote(singles[0])}\n# unit = "s"\n# or: sample_time = 1\n# unit = "ms"'
        )
    else:
        sections.append(_time_section(survey.time, tables, keys))
    sections += [_section(quantity, found, survey, keys) for quantity in found]
    if "position" not in found:
        sections.append(
            "# no positions were recognised: name the columns of positions, velocities and torques\n"
            f'# [position]\n# columns = {_array(others[:6])}\n# unit = "rad"'
        )
    shown = {**({} if survey.time is None else {"time": survey.time}), **found}
    guesses = [guess for quantity, one in shown.items() for guess in _guesses(quantity, one)]
    return "\n\n".join(sections) + "\n", guesses + _left_out(survey, found)


def _time_section(time: Found, tables: Mapping[str, ColumnTable], keys: Mapping[str, str]) -> str:
    """Write the section [time] of the map.

    It names no file if several files have a time column of this name: each is then read with its own. That does not
    hold for c1, c2, ..., which number the columns of files without a header.

    Args:
        time: The time column.
        tables: Name of a file -> its table.
        keys: Name of a file -> its key in the section [files]; empty for a single file.
    """
    column = time.columns[0]
    shared = sum(column in table.columns for table in tables.values()) > 1 and not re.fullmatch(r"c\d+", column)
    lines = [f"file = {_quote(keys[time.file])}"] if keys and not shared else []
    lines += [f"column = {_quote(column)}", f"unit = {_write_texts(time.units)}{_check(time)}"]
    if time.fraction is not None:
        lines += [f"fraction = {_quote(time.fraction)}", 'fraction_unit = "ns"']
    return "\n".join(["[time]", *lines])


def _section(quantity: str, found: Mapping[str, Found], survey: Survey, keys: Mapping[str, str]) -> str:
    """Write the section of one quantity, with remarks on what a person has to check.

    Args:
        quantity: The quantity.
        found: All quantities that were found -> their columns.
        survey: The tables of the run.
        keys: Name of a file -> its key in the section [files]; empty for a single file.
    """
    one = found[quantity]
    order = ""
    if one.foreign:
        order = "  # check: none is a joint of the robot by its name; put them into the robot's order"
    if any(other.reordered for other in found.values()) and not one.by_name and len(one.columns) == len(
        found["position"].columns
    ) > 1:  # fmt: skip
        order = "  # check: other columns name the joints, in another order; put these into the robot's order"
    lines = [f"file = {_quote(keys[one.file])}"] if keys else []
    lines.append(f"columns = {_write_texts(one.columns)}{order}")
    if one.units:
        lines.append(f"unit = {_write_texts(one.units)}{_check(one)}")
    if one.file in survey.folded:
        lines.append('width = "joints"')
    # an array with more columns than rows has its samples along the second axis
    arrays = [x for x in map(survey.tables[one.file].column, one.columns) if x is not None]
    if any(x.ndim == 2 and len(x) < x.shape[1] for x in arrays):
        lines.append("transpose = true")
    if quantity == "current" and "effort" not in found:  # no log states torque constants
        places = ", ".join(['"?"'] * survey.values(one).shape[1])
        lines.append(f"torque_constant = [{places}]  # fill in: torque of the motor per current [N m/A]")
        lines.append("# gear = [...]  # where the constants are those of the motors, not of the joints")
    return "\n".join([f"[{quantity}]", *lines])


def _check(one: Found) -> str:
    """Write the remark behind a unit that has to be checked; empty for one that the log declares."""
    return "" if one.certain else f"  # check: {one.reason}"


def _guesses(quantity: str, one: Found) -> list[Guess]:
    """Make the reasons for the columns of a quantity and for their unit."""
    columns = Guess(section=quantity, text=", ".join(one.columns), reason=one.why, certain=one.by_name)
    unit = Guess(section=quantity, text=f"unit {', '.join(one.units)}", reason=one.reason, certain=one.certain)
    return [columns, unit] if one.units else [columns]


def _left_out(survey: Survey, found: Mapping[str, Found]) -> list[Guess]:
    """List for each quantity the columns that look like it and that the map does not name, with the reason."""
    robot = survey.robot
    guesses = []
    for kind, names in survey.left_out(found).items():
        values = [x for table in survey.tables.values() for name, x in table.columns.items() if name in names]
        reason = "they do not make one column for each joint"
        if robot is not None:
            reason += f"; robot '{robot.name}' has {robot.dof} joints; {other_joints(names, robot)}".rstrip("; ")
        if kind.startswith("commanded"):
            reason = "they are commanded, not measured"
        elif kind == "temperature":
            reason = "they are neither one column nor one for each joint"
        elif kind.startswith("unknown"):
            reason = "their words and units say no quantity of a joint"
        elif kind in found:
            reason = "other columns fit better"
        elif kind == "effort" and all(map(has_no_sign, values)):
            reason = "they are never negative: amounts, no torques; commands and positions suffice for dynid actuate"
        text = f"not mapped: {shorten_names(names)}"
        guesses.append(Guess(section=kind, text=text, reason=reason, certain=False))
    return guesses


def _single(table: ColumnTable) -> list[str]:
    """List every column of numbers as a map names it: by the name of the column, or ``name[k]`` within an array."""
    return [
        single
        for name, values in table.columns.items()
        for single in ([name] if values.ndim == 1 else [f"{name}[{k}]" for k in range(values.shape[1])])
    ]


def _quote(text: str) -> str:
    """Write a text as TOML does."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_texts(texts: Sequence[str]) -> str:
    """Write one text, or a list of texts, as TOML does."""
    return _quote(texts[0]) if len(texts) == 1 else _array(texts)


def _array(texts: Sequence[str]) -> str:
    """Write a list of texts as TOML does."""
    return f"[{', '.join(map(_quote, texts))}]"
