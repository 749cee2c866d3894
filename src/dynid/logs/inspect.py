"""A proposed channel map for an unknown log, with the reason for every proposal.

Nothing here is applied by itself. The proposal is text for a person to check, save and pass as `channel_map`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.errors import DataError
from dynid.logs.channel_map import Signal, read_profile
from dynid.logs.column_names import JointNames, quantity_in, words_of
from dynid.logs.columns import pick
from dynid.logs.conversion import fits
from dynid.logs.joint_order import other_joints
from dynid.logs.lerobot import is_lerobot
from dynid.logs.readers import Table
from dynid.logs.readers.ros import bag_files
from dynid.logs.reading import Progress, folder_contents, matching_profiles, read_tables
from dynid.logs.signal_guess import (
    FoundSignal,
    FoundTime,
    find_drive_columns,
    find_signals,
    find_temperatures,
    find_time,
    has_no_sign,
    left_out,
)
from dynid.logs.units import declared_unit
from dynid.robot.model import Robot


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One line of the proposal."""

    section: str
    """The quantity."""
    text: str
    """The guess."""
    reason: str
    """Reason for the guess."""
    certain: bool
    """Whether the log itself declares it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A channel map to check."""

    toml: str
    """The proposed map; loadable once the lines marked "check" are confirmed."""
    guesses: tuple[Guess, ...]
    columns: tuple[str, ...]
    """Every column of the log, with size and range."""
    notes: tuple[str, ...]
    """Remarks of the readers."""

    def __str__(self) -> str:
        """The proposal as text for a terminal."""
        return "\n\n".join([*self._blocks(), "proposed channel map:\n\n" + self.toml])

    @property
    def explanation(self) -> str:
        """The same without the map: columns, reasons and notes."""
        return "\n\n".join(self._blocks())

    def _blocks(self) -> list[str]:
        guesses = [f"  [{g.section}] {g.text}: {g.reason}{'' if g.certain else ' (check)'}" for g in self.guesses]
        parts = {"columns": [f"  {line}" for line in self.columns], "why": guesses, "notes": list(self.notes)}
        return [f"{title}:\n" + "\n".join(lines) for title, lines in parts.items() if lines]


MOST_NAMED = 12
"""Columns that one line about columns outside the map names (convention: a line for a terminal)."""
_WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")
_NUMBERED = re.compile(r"^(.*?)[_\s.]*\[?(\d{1,2})\]?$")


def inspect_log(
    path: str | Path | Sequence[str | Path], robot: Robot | None = None, *, progress: Progress | None = None
) -> Proposal:
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
    files, others = _one_run(given)
    tables = read_tables({file.name: file for file in files}, progress)
    tables, more = _same_kind(tables)
    columns = tuple(_describe(name, values) for table in tables.values() for name, values in table.columns.items())
    notes = _notes(tables)
    if all(len(column) == 1 for table in tables.values() for column in table.columns.values()):
        notes.append("the log has one row: it shows no motion")
    if others + more:
        notes.append(f"one map for {others + more + 1} runs of one kind; {next(iter(tables))} was read for it")
    bags = all(table.clocks for table in tables.values())
    profiles = ("joint_state",) if bags else _profiles(tables, robot)
    if profiles:
        toml, guesses = _from_profile(profiles[0], tables, robot)
    else:
        toml, guesses = _from_names(tables, robot)
    return Proposal(toml=toml, guesses=tuple(guesses), columns=columns, notes=tuple(notes))


def _notes(tables: Mapping[str, Table]) -> list[str]:
    """The remarks of the readers, each once, with the files that it is about where there are several."""
    files: dict[str, list[str]] = {}
    for name, table in tables.items():
        for note in (*table.salvaged, *table.notes):
            files.setdefault(note, []).append(name)
    return [f"{', '.join(names)}: {note}" if len(tables) > 1 else note for note, names in files.items()]


def _one_run(given: list[Path]) -> tuple[list[Path], int]:
    """The files of the first run, and the number of further runs, among files and folders."""
    if len(given) > 1 and all(path.is_dir() for path in given):
        files, more = _one_run(given[:1])
        return files, more + len(given) - 1
    folder = given[0]
    if len(given) > 1 or not folder.is_dir() or bag_files(folder):
        return given, 0
    if is_lerobot(folder) and (episodes := sorted((folder / "data").rglob("*.parquet"))):
        return episodes[:1], len(episodes) - 1
    logs, runs = folder_contents(folder)
    if logs or not runs:
        return logs or given, 0
    files, more = _one_run(runs[:1])
    return files, more + len(runs) - 1


def _same_kind(tables: dict[str, Table]) -> tuple[dict[str, Table], int]:
    """The first table, and how many others have the same columns; all tables where they differ.

    Files of one run may have the same columns, too: then their names say different quantities.
    """
    quantities = {quantity_in(words_of(Path(name).stem)) for name in tables}
    alike = len({table.names for table in tables.values()}) == 1
    first_names = next(iter(tables.values())).names
    whole = {"time", "position"} <= {quantity_in(words_of(name)) for name in first_names}  # each is a run by itself
    if len(tables) == 1 or not alike or (len(quantities) > 1 and not whole):
        return tables, 0
    first = next(iter(tables))
    return {first: tables[first]}, len(tables) - 1


def _profiles(tables: Mapping[str, Table], robot: Robot | None) -> tuple[str, ...]:
    """The ready profiles that fit the tables, and the number of the robot's joints."""
    fitting = matching_profiles(tables)
    if robot is None:
        return fitting
    return tuple(name for name in fitting if fits(read_profile(name), tables, robot))


def _describe(name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """A column in one line."""
    finite = values[np.isfinite(values)]
    extent = f"{finite.min():.6g} to {finite.max():.6g}" if finite.size else "no numbers"
    missing = values.size - finite.size
    shape = " x ".join(str(n) for n in values.shape)
    return f"{name}: {shape}, {extent}" + (f", {missing} missing" if missing else "")


def _from_profile(name: str, tables: Mapping[str, Table], robot: Robot | None) -> tuple[str, list[Guess]]:
    """The proposal for a log that a ready profile explains."""
    guess = Guess(section="profile", text=name, reason="every column the profile needs is there", certain=True)
    lines, guesses = [f'profile = "{name}"'], [guess]
    profile = read_profile(name)
    if profile.effort is None and profile.current is not None:
        lines += ["", *_constants_to_fill_in(profile.current, tables, robot)]
    if name == "joint_state":
        columns = [column for table in tables.values() for column in table.clocks if "/position/" in column]
        joints = tuple(dict.fromkeys(column.rsplit("/", 1)[1] for column in columns))
        ordered, remark = _in_robot_order(joints, robot)
        listed = ", ".join(_quoted(joint) for joint in ordered)
        if joints:
            lines.append(f"joints = [{listed}]{remark}")
        if robot is not None and not remark:
            reason = "the joints' names" + ("" if ordered == joints[: len(ordered)] else "; the log has another order")
            guesses.append(Guess(section="joints", text=", ".join(ordered), reason=reason, certain=True))
    return "\n".join(lines) + "\n", guesses


def _constants_to_fill_in(signal: Signal, tables: Mapping[str, Table], robot: Robot | None) -> list[str]:
    """The section of currents with a place for every torque constant, which no log states."""
    try:
        names = pick(signal, "current", tables, robot.joint_names if robot else ()).names
    except DataError:  # the log has none
        return []
    places = ", ".join(['"?"'] * len(names))
    return [
        "[current]",
        f"columns = {_listed(signal.columns)}",
        f"unit = {_listed(signal.unit)}",
        f"torque_constant = [{places}]  # fill in: torque of the motor per current [N m/A]",
        "# gear = [...]  # where the constants are those of the motors, not of the joints",
    ]


def _in_robot_order(joints: tuple[str, ...], robot: Robot | None) -> tuple[tuple[str, ...], str]:
    """The log's joint names in the robot's order, and a remark for the map where their order is unknown."""
    if robot is None:
        return joints, "  # put them into the robot's order"
    names = JointNames(robot.joint_names)
    place = {found[0]: name for name in joints if (found := names.find(words_of(name))) is not None}
    if len(place) == robot.dof:
        return tuple(place[j] for j in range(robot.dof)), ""
    return joints, f"  # check: not all are names of {robot.name}'s joints; put them into its order"


def _from_names(tables: Mapping[str, Table], robot: Robot | None) -> tuple[str, list[Guess]]:
    """The proposal from the columns' names and ranges."""
    time = find_time(tables)
    signals = find_signals(tables, robot, time)
    keys = {name: key for name, key in zip(tables, _file_keys(tables), strict=True)}
    sections, guesses = [], []
    if len(tables) > 1:
        sections.append("[files]\n" + "\n".join(f"{keys[name]} = {_quoted(name)}" for name in tables))
    if time is not None:
        body, why = _time_section(time, tables, keys)
        sections.append(body)
        guesses += why
    if "position" in signals:
        columns = [tables[signals["position"].file].columns[name] for name in signals["position"].family.columns]
        joints = sum(1 if column.ndim == 1 else min(column.shape) for column in columns)
        temperatures = find_temperatures(tables, robot, joints)
        signals |= {} if temperatures is None else {"temperature": temperatures}
    shuffled = any(signal.family.by_name and signal.family.reordered for signal in signals.values())
    for quantity, signal in signals.items():
        unsure = shuffled and not signal.family.by_name and len(signal.family.columns) > 1
        body, why = _section(quantity, signal, tables, keys, unsure)
        sections.append(body)
        guesses += why
    if "reference" in signals:
        drives, why = _drive_sections(tables, keys)
        sections += drives
        guesses += why
    sections += _unsigned_note(tables)
    for name, table in tables.items():
        if wrench := _wrench_columns(table):
            body, why = _wrench_section(wrench, f"file = {_quoted(keys[name])}\n" if len(tables) > 1 else "")
            sections.append(body)
            guesses += why
            break
    guesses += _left_out(tables, robot, time, signals)
    first, several = _nameless(tables, {name for signal in signals.values() for name in signal.family.columns}, time)
    if time is None:
        sections.insert(
            0,
            "[time]  # no time column was recognised: name it, or give the time between rows\n"
            f'# column = {_quoted(first)}\n# unit = "s"\n# or: sample_time = 1\n# unit = "ms"',
        )
    if "position" not in signals:
        sections.append(
            f"# no positions were recognised{_other_count(tables, robot, time)}: name the columns of positions, "
            "velocities and torques\n"
            f'# [position]\n# columns = {_listed(several)}\n# unit = "rad"'
        )
    return "\n\n".join(sections) + "\n", guesses


def _left_out(
    tables: Mapping[str, Table], robot: Robot | None, time: FoundTime | None, signals: Mapping[str, FoundSignal]
) -> list[Guess]:
    """A line for each quantity with columns that look like it and that the map does not name."""
    used = {(signal.file, name) for signal in signals.values() for name in signal.family.columns}
    used |= {(file, name) for file, table in tables.items() for name in _wrench_columns(table)}
    used |= {(file, name) for file, names in find_drive_columns(tables).values() for name in names}
    if time is not None:
        used |= {(file, name) for file in tables for name in (time.column, time.fraction or "")}
    guesses = []
    for kind, names in left_out(tables, robot, used).items():
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        reason = _why_left_out(kind, names, tables, robot, kind in signals)
        text = f"not mapped: {', '.join(names[:MOST_NAMED])}{more}"
        guesses.append(Guess(section=kind, text=text, reason=reason, certain=False))
    return guesses


def _why_left_out(kind: str, names: list[str], tables: Mapping[str, Table], robot: Robot | None, found: bool) -> str:
    """Why columns that look like a quantity stay outside the map; `found` says that the map has others of it."""
    if kind.startswith("commanded"):
        return "they are commanded, not measured"
    if kind == "temperature":
        return "they are neither one column nor one for each joint"
    if kind.startswith("unknown"):
        return "their words and units say no quantity of a joint"
    if found:
        return "other columns fit better"
    values = [values for table in tables.values() for name, values in table.columns.items() if name in names]
    if kind == "effort" and all(has_no_sign(column) for column in values):
        return "they are never negative: amounts, no torques"
    count = f"; robot '{robot.name}' has {robot.dof} joints" if robot is not None else ""
    return f"they do not make one column for each joint{count}"


def _other_count(tables: Mapping[str, Table], robot: Robot | None, time: FoundTime | None) -> str:
    """Say which joints are missing where the columns that look like positions are not as many as the joints."""
    found = None if robot is None else find_signals(tables, None, time).get("position")
    if robot is None or found is None or len(found.family.columns) == robot.dof:
        return ""
    columns = found.family.columns
    return (
        f" ({len(columns)} column{'s look' if len(columns) > 1 else ' looks'} like positions, and robot '{robot.name}' "
        f"has {robot.dof} joints; {other_joints(columns, robot)})"
    )


def _file_keys(tables: Mapping[str, Table]) -> list[str]:
    """A key for each file of a run."""
    return [f"file{k + 1}" for k in range(len(tables))]


def _time_section(time: FoundTime, tables: Mapping[str, Table], keys: Mapping[str, str]) -> tuple[str, list[Guess]]:
    """The lines of the clock, and their reasons; files with a time column of that name have each their own."""
    shared = sum(time.column in table.columns for table in tables.values()) > 1
    lines = [f"column = {_quoted(time.column)}", f'unit = "{time.unit}"{"" if time.certain else "  # check: "}']
    lines[1] += "" if time.certain else time.reason
    if len(tables) > 1 and (not shared or time.column.startswith("c")):
        lines.insert(0, f"file = {_quoted(keys[time.file])}")
    if time.fraction is not None:
        lines += [f"fraction = {_quoted(time.fraction)}", 'fraction_unit = "ns"']
    guesses = [
        Guess(section="time", text=time.column, reason="its name and its rising values", certain=False),
        Guess(section="time", text=f"unit {time.unit}", reason=time.reason, certain=time.certain),
    ]
    return "[time]\n" + "\n".join(lines), guesses


def _section(
    quantity: str, signal: FoundSignal, tables: Mapping[str, Table], keys: Mapping[str, str], unsure: bool
) -> tuple[str, list[Guess]]:
    """The lines of one quantity, and their reasons.

    `unsure` says that the columns do not name their joints, while others do in another order than the robot's.
    """
    names, units = signal.family.columns, signal.units
    guesses = [
        Guess(section=quantity, text=", ".join(names), reason=signal.why, certain=signal.family.by_name),
        Guess(section=quantity, text=f"unit {', '.join(units)}", reason=signal.reason, certain=signal.certain),
    ]
    remark = "" if signal.certain else f"  # check: {signal.reason}"
    order = "  # check: none is a joint of the robot by its name; put them into the robot's order"
    if unsure:
        order = "  # check: other columns name the joints, in another order; put these into the robot's order"
    lines = [
        f"columns = {_listed(names)}{order if signal.other_names or unsure else ''}",
        f"unit = {_listed(units)}{remark}",
    ]
    if len(tables) > 1:
        lines.insert(0, f"file = {_quoted(keys[signal.file])}")
    if signal.folded:
        lines.append('width = "joints"')
        reason = "it has one number per line, one for each joint at each time"
        guesses.append(Guess(section=quantity, text="width", reason=reason, certain=False))
    values = [tables[signal.file].columns[name] for name in names]
    if any(array.ndim == 2 and array.shape[0] < array.shape[1] for array in values):
        lines.append("transpose = true")
        guesses.append(Guess(section=quantity, text="transpose", reason="it is wider than long", certain=False))
    return f"[{quantity}]\n" + "\n".join(lines), guesses


def _drive_sections(tables: Mapping[str, Table], keys: Mapping[str, str]) -> tuple[list[str], list[Guess]]:
    """What the log says of its drives: switched on or off, gains, supply."""
    sections, guesses = [], []
    for quantity, (file, names) in find_drive_columns(tables).items():
        lines = [f"file = {_quoted(keys[file])}"] if len(tables) > 1 else []
        lines.append(f"columns = {_listed(names)}")
        if quantity == "supply":
            lines.append('unit = "V"  # check: no unit in the names')
        reason = f"the name {names[0]!r}" + ("" if names[0] in tables[file].columns else ", a constant of the file")
        sections.append(f"[{quantity}]\n" + "\n".join(lines))
        guesses.append(Guess(section=quantity, text=", ".join(names), reason=reason, certain=False))
    return sections, guesses


def _unsigned_note(tables: Mapping[str, Table]) -> list[str]:
    """A remark about columns that are called torques but have no sign."""
    for table in tables.values():
        for name, values in table.columns.items():
            if quantity_in(words_of(name)) == "effort" and values.ndim == 2 and has_no_sign(values):
                return [
                    f"# {_quoted(name)} is never negative: amounts of currents, no torques. It is left out;\n"
                    "# commands and positions suffice for dynid actuate."
                ]
    return []


def _wrench_columns(table: Table) -> list[str]:
    """The six columns of a wrench, or the one array that holds it; empty where there is none."""
    wrench = [name for axis in _WRENCH for name in table.names if _stem(name).rsplit(".", 1)[-1] == axis]
    whole = [name for name, values in table.columns.items() if values.ndim == 2 and values.shape[1] == 6]
    whole = [name for name in whole if name.rsplit(".", 1)[-1].lower() in ("f", "ft", "w", "wrench")]
    return wrench if len(wrench) == 6 else whole[:1]


def _wrench_section(names: list[str], file: str) -> tuple[str, list[Guess]]:
    reason = "no unit in the names; moments may be N mm"
    guesses = [
        Guess(section="wrench", text=", ".join(names), reason=f"the name {_stem(names[0])!r}", certain=False),
        Guess(section="wrench", text="unit N and N m", reason=reason, certain=False),
    ]
    unit = '["N", "N", "N", "N m", "N m", "N m"]'
    return f"[wrench]\n{file}columns = {_listed(names)}\nunit = {unit}  # check: {reason}", guesses


def _nameless(tables: Mapping[str, Table], taken: set[str], time: FoundTime | None) -> tuple[str, list[str]]:
    """How the map would name the first column, and six columns after it, of a log whose columns have no telling names.

    Those of a matrix count from 0, those of a text without a header are numbered from 1. Others are listed,
    except those that the map has `taken` for another quantity.
    """
    table = next(iter(tables.values()))
    wide = next((name for name, values in table.columns.items() if values.ndim == 2), None)
    if wide is not None:
        return f"{wide}[0]", [f"{wide}[{{1..6}}]"]
    first = next(iter(table.names), "c1")
    numbered = re.fullmatch(r"(.*?)(\d+)", first)
    if numbered and f"{numbered[1]}{int(numbered[2]) + 1}" in table.names:
        start = int(numbered[2])
        return first, [f"{numbered[1]}{{{start + 1}..{start + 6}}}"]
    taken = taken | {first if time is None else time.column}
    return first, [name for name in table.names if name not in taken][:6] or ["..."]


def _quoted(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(texts: Sequence[str]) -> str:
    """One text, or a list of texts, as TOML writes it."""
    return _quoted(texts[0]) if len(texts) == 1 else f"[{', '.join(_quoted(text) for text in texts)}]"


def _stem(name: str) -> str:
    """A column's name without its unit in brackets and its joint's number."""
    base, _ = declared_unit(name)
    numbered = _NUMBERED.match(base)
    return (numbered[1] if numbered else base).strip().lower()
