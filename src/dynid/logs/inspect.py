"""A proposed channel map for an unknown log, with the reason for every proposal.

Nothing here is applied by itself. The proposal is text for a person to check, save and pass as `channel_map`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.logs.channel_map import read_profile
from dynid.logs.readers import Options, Table
from dynid.logs.reading import Progress, matching_profiles, read_tables
from dynid.logs.units import declared_unit

__all__ = ["Guess", "Proposal", "inspect_log"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role:
    """Rules that recognise a quantity."""

    words: str
    """Regular expression for the name without its number and unit."""
    units: tuple[tuple[str, str], ...]
    """(ending of a column's name, unit it stands for)."""
    default: str


_ROLES: dict[str, _Role] = {
    "time": _Role(
        words=r"t|time|times|timestamp|time_?stamp|stamp|secs?|clock|time_cont",
        units=(("_ms", "ms"), ("_us", "us"), ("_ns", "ns"), ("_s", "s")),
        default="s",
    ),
    "velocity": _Role(
        words=r"(?:actual_?|act_|meas\w*_|state\.)?(?:d_?q|q_?d|q_?dot|v|vel|velocity|velocities|speed|joint_?vel\w*)",
        units=(("deg_per_s", "deg/s"), ("deg_s", "deg/s"), ("rpm", "rpm"), ("rad_s", "rad/s")),
        default="rad/s",
    ),
    "position": _Role(
        words=r"(?:actual_?|act_|meas\w*_|state\.)?(?:q|pos|position|positions|theta|angle|joint|joint_?pos\w*)",
        units=(("_deg", "deg"), ("_rad", "rad"), ("_mm", "mm")),
        default="rad",
    ),
    "effort": _Role(
        words=r"(?:actual_?|act_|meas\w*_|state\.)?(?:tau|tau_j|torque|torques|effort|efforts|moment|joint_?torque\w*)",
        units=(("_nm", "N m"), ("_mnm", "mN m"), ("_percent", "%")),
        default="N m",
    ),
    "current": _Role(
        words=r"(?:actual_?|act_|meas\w*_)?(?:i|cur|curr|current|currents|motor_?current\w*)",
        units=(("_ma", "mA"), ("_a", "A")),
        default="A",
    ),
}
_WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")
_NUMBERED = re.compile(r"^(.*?)[_\s.]*\[?(\d{1,2})\]?$")


def inspect_log(path: str | Path | Sequence[str | Path], *, progress: Progress | None = None) -> Proposal:
    """Read a log and propose a channel map for it.

    Args:
        path: The file, the folder of a ROS 2 bag, or the files of one run.
        progress: Called with the finished share (0 to 1) and the name of the file.

    Raises:
        LogReadError: If a file cannot be read at all.
    """
    files = [Path(path)] if isinstance(path, str | Path) else [Path(item) for item in path]
    tables = read_tables({file.name: file for file in files}, Options(), progress)
    columns = tuple(_describe(name, values) for table in tables.values() for name, values in table.columns.items())
    notes = tuple(note for table in tables.values() for note in (*table.salvaged, *table.notes))
    profiles = ("joint_state",) if all(table.clocks for table in tables.values()) else matching_profiles(tables)
    if profiles:
        toml, guesses = _from_profile(profiles[0], tables)
    else:
        toml, guesses = _from_names(tables)
    return Proposal(toml=toml, guesses=tuple(guesses), columns=columns, notes=notes)


def _describe(name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """A column in one line."""
    finite = values[np.isfinite(values)]
    extent = f"{finite.min():.6g} to {finite.max():.6g}" if finite.size else "no numbers"
    missing = values.size - finite.size
    shape = " x ".join(str(n) for n in values.shape)
    return f"{name}: {shape}, {extent}" + (f", {missing} missing" if missing else "")


def _from_profile(name: str, tables: Mapping[str, Table]) -> tuple[str, list[Guess]]:
    """The proposal for a log that a ready profile explains."""
    guess = Guess(section="profile", text=name, reason="every column the profile needs is there", certain=True)
    joints = [
        column.rsplit("/", 1)[1] for table in tables.values() for column in table.clocks if "/position/" in column
    ]
    lines = [f'profile = "{name}"']
    if joints and read_profile(name).name == "joint_state":
        listed = ", ".join(_quoted(joint) for joint in dict.fromkeys(joints))
        lines.append(f"joints = [{listed}]  # put them into the robot's order")
    return "\n".join(lines) + "\n", [guess]


def _from_names(tables: Mapping[str, Table]) -> tuple[str, list[Guess]]:
    """The proposal from the columns' names and ranges."""
    sections: list[str] = []
    guesses: list[Guess] = []
    if len(tables) > 1:
        sections.append("[files]\n" + "\n".join(f"file{k + 1} = {_quoted(name)}" for k, name in enumerate(tables)))
    for k, table in enumerate(tables.values()):
        file = f'file = "file{k + 1}"\n' if len(tables) > 1 else ""
        for role, names in _roles(table).items():
            body, why = _section(role, names, table)
            sections.append(f"[{role}]\n{file}{body}")
            guesses += why
    found = {guess.section for guess in guesses}
    first, several = _nameless(tables)
    if "time" not in found:
        sections.insert(
            0,
            "[time]  # no time column was recognised: name it, or give the time between rows\n"
            f'# column = {_quoted(first)}\n# unit = "s"\n# or: sample_time = 1\n# unit = "ms"',
        )
    if "position" not in found:
        sections.append(
            "# no positions were recognised: name the columns of positions, velocities and torques\n"
            f'# [position]\n# columns = {_quoted(several)}\n# unit = "rad"'
        )
    return "\n\n".join(sections) + "\n", guesses


def _nameless(tables: Mapping[str, Table]) -> tuple[str, str]:
    """How the map would name the first column, and six columns after it, of a log whose columns have no telling names.

    Those of a matrix count from 0, those of a text without a header are numbered from 1.
    """
    table = next(iter(tables.values()))
    wide = next((name for name, values in table.columns.items() if values.ndim == 2), None)
    if wide is not None:
        return f"{wide}[0]", f"{wide}[{{1..6}}]"
    first = next(iter(table.names), "c1")
    numbered = re.fullmatch(r"(.*?)(\d+)", first)
    stem, start = (numbered[1], int(numbered[2])) if numbered else (first, 1)
    return first, f"{stem}{{{start + 1}..{start + 6}}}"


def _quoted(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _stem(name: str) -> tuple[str, str | None]:
    """A column's name without its unit in brackets and its joint's number, and that unit."""
    base, unit = declared_unit(name)
    numbered = _NUMBERED.match(base)
    return (numbered[1] if numbered else base).strip().lower(), unit


def _roles(table: Table) -> dict[str, list[str]]:
    """Quantity -> the columns whose names say so; the first family of columns wins."""
    found: dict[str, list[str]] = {}
    stems: dict[str, str] = {}
    for name in table.names:
        stem, _ = _stem(name)
        stem = stem.rsplit(".", 1)[-1] if not stem.startswith("state.") else stem
        for role, rule in _ROLES.items():
            plain = re.sub(f"({'|'.join(ending for ending, _ in rule.units)})$", "", stem)
            if re.fullmatch(rule.words, plain) and stems.setdefault(role, stem) == stem:
                found.setdefault(role, []).append(name)
                break
    wrench = [name for axis in _WRENCH for name in table.names if _stem(name)[0].rsplit(".", 1)[-1] == axis]
    whole = [name for name, values in table.columns.items() if values.ndim == 2 and values.shape[1] == 6]
    whole = [name for name in whole if name.rsplit(".", 1)[-1].lower() in ("f", "ft", "w", "wrench")]
    if len(wrench) == 6 or whole:
        found["wrench"] = wrench if len(wrench) == 6 else whole[:1]
    return found


def _section(role: str, names: list[str], table: Table) -> tuple[str, list[Guess]]:
    """The lines of one section, and their reasons."""
    stem, _ = _stem(names[0])
    declared = table.units.get(names[0])
    values = [table.columns[name] for name in names]
    unit, reason, certain = _unit(role, stem, declared, values)
    guesses = [
        Guess(section=role, text=", ".join(names), reason=f"the name {stem!r}", certain=False),
        Guess(section=role, text=f"unit {unit}", reason=reason, certain=certain),
    ]
    quoted = [_quoted(name) for name in names]
    columns = quoted[0] if len(names) == 1 else f"[{', '.join(quoted)}]"
    key = "column" if role == "time" else "columns"
    remark = "" if certain else f"  # check: {reason}"
    written = '["N", "N", "N", "N m", "N m", "N m"]' if role == "wrench" else f'"{unit}"'
    lines = [f"{key} = {columns}", f"unit = {written}{remark}"]
    if any(array.ndim == 2 and array.shape[0] < array.shape[1] for array in values):
        lines.append("transpose = true")
        guesses.append(Guess(section=role, text="transpose", reason="it is wider than long", certain=False))
    return "\n".join(lines), guesses


def _unit(
    role: str, stem: str, declared: str | None, values: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]
) -> tuple[str, str, bool]:
    """A unit, the reason for it, and whether the log itself declares it."""
    if declared and role != "wrench":
        return declared, "the log declares it", True
    if role == "wrench":
        return "N and N m", "no unit in the names; moments may be N mm", False
    for ending, unit in _ROLES[role].units:
        if stem.endswith(ending):
            return unit, f"the name ends in '{ending}'", False
    finite = np.concatenate([array[np.isfinite(array)].reshape(-1) for array in values])
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    if role == "time" and finite.size > 1:
        step = float(np.median(np.diff(finite)))
        guess = next((u for u, most in (("s", 0.25), ("ms", 100.0), ("us", 1e5)) if step < most), "ns")
        return guess, f"rows are {step:.4g} apart, which fits {guess}", False
    if role == "position" and largest > 3 * math.pi:
        return "deg", f"values reach {largest:.4g}: degrees, or radians of a motor (then add its gear)", False
    return _ROLES[role].default, f"no unit in the names; values reach {largest:.4g}", False
