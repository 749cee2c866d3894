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

from dynid.arrays import Floats
from dynid.logs.channel_map import profile_content, read_profile
from dynid.logs.column_names import JointNames, quantity_in, words_of
from dynid.logs.columns import expand_numbers
from dynid.logs.conversion import fits
from dynid.logs.joint_order import other_joints, shortened
from dynid.logs.lerobot import is_lerobot
from dynid.logs.readers import Table
from dynid.logs.readers.ros import bag_files
from dynid.logs.reading import Progress, folder_contents, matching_profiles, read_tables
from dynid.logs.signal_guess import Found, Survey, has_no_sign
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
    guess = Guess(section="profile", text=name, reason="every column that it requires is there", certain=True)
    lines, guesses = [f'profile = "{name}"'], [guess]
    if read_profile(name).time.column is not None:  # messages of bags declare units and times
        more, doubts = _profile_tables(name, tables, robot)
        return "\n".join(lines + more) + "\n", guesses + doubts
    columns = [column for table in tables.values() for column in table.clocks if "/position/" in column]
    if joints := tuple(dict.fromkeys(column.rsplit("/", 1)[1] for column in columns)):
        names = JointNames(robot.joint_names if robot else ())
        place = {found[0]: joint for joint in joints if (found := names.find(words_of(joint))) is not None}
        is_known = robot is not None and len(place) == robot.dof
        ordered = tuple(place[j] for j in sorted(place)) if is_known else joints
        remark = "" if is_known else "  # check: put them into the order of the robot's joints"
        lines.append(f"joints = [{', '.join(map(_quoted, ordered))}]{remark}")
        reason = "the joints' names" + ("" if ordered == joints[: len(ordered)] else "; the log has another order")
        guesses += [Guess(section="joints", text=", ".join(ordered), reason=reason, certain=True)] * is_known
    return "\n".join(lines) + "\n", guesses


def _profile_tables(name: str, tables: Mapping[str, Table], robot: Robot | None) -> tuple[list[str], list[Guess]]:
    """The tables of a profile that the log has, and a guess wherever columns are missing or values fit no unit."""
    survey, content = Survey(tables, robot), profile_content(name)
    found = survey.find()
    lines: list[str] = []
    guesses: list[Guess] = []
    for section, keys in content.items():
        if not isinstance(keys, dict):
            continue
        key = "column" if section == "time" else "columns"
        names = expand_numbers(keys[key], section)
        missing = [name for name in names if all(table.column(name) is None for table in tables.values())]
        if missing and (section == "time" or len(missing) < len(names)):
            plural = {"velocity": "velocities"}.get(section, f"{section}s")
            verb = "is" if len(missing) == 1 else "are"
            reason = f"{len(names) - len(missing)} of {len(names)} {plural}: {', '.join(missing)} {verb} missing"
            guesses.append(Guess(section=section, text="not mapped", reason=reason, certain=False))
            lines += ["", f"# no [{section}]: {reason}"]
        if missing:
            continue
        units: tuple[str, ...] = (keys["unit"],)
        doubt = ""
        one = found.get(section) if section in ("position", "velocity") else None
        if one is not None and set(one.columns) == set(names):
            doubt = _beyond_limits(survey.values(one), robot) if section == "position" else ""
            if one.units != units:
                doubt = "; ".join(filter(None, (one.reason, doubt, f"the profile has {units[0]}")))
                units = one.units
        if doubt:
            guesses.append(Guess(section=section, text=f"unit {', '.join(units)}", reason=doubt, certain=False))
        check = f"  # check: {doubt}" if doubt else ""
        lines += ["", f"[{section}]", f"{key} = {_quoted(keys[key])}", f"unit = {_listed(units)}{check}"]
        if section == "current" and "effort" not in content:  # no log states torque constants
            places = ", ".join(['"?"'] * len(names))
            lines.append(f"torque_constant = [{places}]  # fill in: torque of the motor per current [N m/A]")
            lines.append("# gear = [...]  # where the constants are those of the motors, not of the joints")
    return lines, guesses


def _beyond_limits(q: Floats, robot: Robot | None) -> str:
    """The first joint whose positions (N, n), taken as SI units, pass the limits of the robot file, in words."""
    if robot is None or robot.dof != q.shape[1]:
        return ""
    for joint, reach in zip(
        robot.moving_joints, np.where(np.isfinite(q), np.abs(q), 0.0).max(axis=0, initial=0.0), strict=True
    ):
        limit = max(abs(joint.limits.lower), abs(joint.limits.upper))
        if joint.kind != "continuous" and reach > limit > 0.0:
            return f"joint {joint.name!r} reaches {reach:.4g}, its limit in the robot file is {limit:.4g}"
    return ""


def _from_names(tables: Mapping[str, Table], robot: Robot | None) -> tuple[str, list[Guess]]:
    """The proposal from the columns' names and ranges."""
    survey = Survey(tables, robot)
    found = survey.find()
    keys = {name: f"file{k + 1}" for k, name in enumerate(tables)} if len(tables) > 1 else {}
    first, several = _nameless(next(iter(tables.values())), survey.time, found)
    sections = ["[files]\n" + "\n".join(f"{key} = {_quoted(name)}" for name, key in keys.items())] if keys else []
    if survey.time is None:
        sections.append(
            "[time]  # no time column was recognised: name it, or give the time between rows\n"
            f'# column = {_quoted(first)}\n# unit = "s"\n# or: sample_time = 1\n# unit = "ms"'
        )
    else:
        sections.append(_time_section(survey.time, tables, keys))
    sections += [_section(quantity, found, survey, keys) for quantity in found]
    if "position" not in found:
        sections.append(
            f"# no positions were recognised{_other_count(tables, robot)}: name the columns of positions, velocities "
            f'and torques\n# [position]\n# columns = {_listed(several)}\n# unit = "rad"'
        )
    shown = {**({} if survey.time is None else {"time": survey.time}), **found}
    guesses = [guess for quantity, one in shown.items() for guess in _guesses(quantity, one)]
    return "\n\n".join(sections) + "\n", guesses + _left_out(survey, found)


def _time_section(time: Found, tables: Mapping[str, Table], keys: Mapping[str, str]) -> str:
    """The lines of the clock; files with a time column of that name have each their own."""
    column = time.columns[0]
    shared = sum(column in table.columns for table in tables.values()) > 1 and not column.startswith("c")
    lines = [f"file = {_quoted(keys[time.file])}"] if keys and not shared else []
    lines += [f"column = {_quoted(column)}", f"unit = {_listed(time.units)}{_check(time)}"]
    if time.fraction is not None:
        lines += [f"fraction = {_quoted(time.fraction)}", 'fraction_unit = "ns"']
    return "\n".join(["[time]", *lines])


def _section(quantity: str, found: Mapping[str, Found], survey: Survey, keys: Mapping[str, str]) -> str:
    """The lines of one quantity."""
    one, order = found[quantity], ""
    if one.foreign:
        order = "  # check: none is a joint of the robot by its name; put them into the robot's order"
    if any(other.reordered for other in found.values()) and not one.by_name and len(one.columns) == len(
        found["position"].columns
    ) > 1:  # fmt: skip
        order = "  # check: other columns name the joints, in another order; put these into the robot's order"
    lines = [f"file = {_quoted(keys[one.file])}"] if keys else []
    lines.append(f"columns = {_listed(one.columns)}{order}")
    if one.units:
        lines.append(f"unit = {_listed(one.units)}{_check(one)}")
    if one.file in survey.folded:
        lines.append('width = "joints"')
    if any(
        x.ndim == 2 and len(x) < x.shape[1] for x in map(survey.tables[one.file].column, one.columns) if x is not None
    ):
        lines.append("transpose = true")
    return "\n".join([f"[{quantity}]", *lines])


def _check(one: Found) -> str:
    return "" if one.certain else f"  # check: {one.reason}"


def _guesses(quantity: str, one: Found) -> list[Guess]:
    """Why these columns, and why this unit."""
    columns = Guess(section=quantity, text=", ".join(one.columns), reason=one.why, certain=one.by_name)
    unit = Guess(section=quantity, text=f"unit {', '.join(one.units)}", reason=one.reason, certain=one.certain)
    return [columns, unit] if one.units else [columns]


def _left_out(survey: Survey, found: Mapping[str, Found]) -> list[Guess]:
    """A line for each quantity with columns that look like it and that the map does not name."""
    robot, guesses = survey.robot, []
    for kind, names in survey.left_out(found).items():
        values = [x for table in survey.tables.values() for name, x in table.columns.items() if name in names]
        reason = "they do not make one column for each joint"
        reason += f"; robot '{robot.name}' has {robot.dof} joints" if robot is not None else ""
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
        text = f"not mapped: {shortened(names)}"
        guesses.append(Guess(section=kind, text=text, reason=reason, certain=False))
    return guesses


def _other_count(tables: Mapping[str, Table], robot: Robot | None) -> str:
    """Say which joints are missing where the columns that look like positions are not as many as the joints."""
    found = None if robot is None else Survey(tables, None).find().get("position")
    if robot is None or found is None or len(found.columns) == robot.dof:
        return ""
    return (
        f" ({len(found.columns)} columns look like positions, and robot '{robot.name}' has {robot.dof} joints; "
        f"{other_joints(found.columns, robot)})"
    )


def _nameless(table: Table, time: Found | None, found: Mapping[str, Found]) -> tuple[str, list[str]]:
    """How the map would name the first column, and six columns after it, of a log whose columns have no telling names.

    Those of a matrix count from 0, those of a text without a header are numbered from 1. Others are listed,
    except those that the map names already.
    """
    wide = next((name for name, values in table.columns.items() if values.ndim == 2), None)
    if wide is not None:
        return f"{wide}[0]", [f"{wide}[{{1..6}}]"]
    first = next(iter(table.names), "c1")
    numbered = re.fullmatch(r"(.*?)(\d+)", first)
    if numbered and f"{numbered[1]}{int(numbered[2]) + 1}" in table.names:
        start = int(numbered[2])
        return first, [f"{numbered[1]}{{{start + 1}..{start + 6}}}"]
    taken = {name for one in found.values() for name in one.columns} | {first if time is None else time.columns[0]}
    return first, [name for name in table.names if name not in taken][:6] or ["..."]


def _quoted(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(texts: str | Sequence[str]) -> str:
    """One text, or a list of texts, as TOML writes it."""
    return _quoted(texts[0]) if len(texts) == 1 else f"[{', '.join(map(_quoted, texts))}]"
