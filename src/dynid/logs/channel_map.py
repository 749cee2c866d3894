"""The channel map: a small TOML file that says which column of a log is which quantity, in which unit, of which joint.

Example::

    joints = ["shoulder", "elbow"]           # the log's names, in the robot's order; optional

    [time]
    column = "timestamp"                     # or: sample_time = 1 for a log without time
    unit = "ms"

    [position]
    columns = "q_{0..1}"                     # q_0, q_1; a list works too; "{joint}" stands for each joint's name
    unit = "deg"
    sign = [1, -1]
    offset = [0, -90]                        # added last, in offset_unit (or unit): q_model = q + offset
    offset_unit = "deg"

    [effort]
    columns = ["tau_0", "tau_1"]
    unit = "N m"
    gear = [100, "221/3"]                    # motor torque to joint torque; a list, or a full matrix

    [current]                                # in place of effort: joint torque = gain * current
    columns = "i_{0..1}"
    unit = "A"
    gain = ["13.3 +- 0.7", "11.1 +- 5 %"]    # [N m/A] with its standard deviation; a plain number counts as exact

    [reference]                              # commanded positions: for estimators that simulate the control loop, and
    columns = "q_wanted_{0..1}"              # for logs without torques
    unit = "deg"

Beside [reference] a log of servos may have ``[reference_velocity]``, ``[enabled]`` (above zero: the drive is on),
``[kp]`` and ``[kd]`` (gains in the drive's unit) and ``[supply]`` (a voltage); one column may stand for all joints.
A drive keeps each commanded position until the next one; with ``held = false`` straight lines join them.

A log may hold temperatures of its joints: ``[temperature]`` with unit degC, K or degF, one column, or one per joint.
`dynid fleet` and `dynid compare-runs` follow friction over them; nothing else uses them.

Motor-side signals name their gear: positions and velocities of motors are ``gear @ joint``, joint torques are
``gear @ motor torque``. The two matrices are separate, for a coupled wrist has a different one each way. A signal is
computed in this order: unit, sign, gear, offset.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import matrix_rank
from dynid.errors import DataError
from dynid.files.small_files import read_toml
from dynid.logs.readers.base import Options
from dynid.logs.units import parse_unit

QUANTITIES = ("position", "velocity", "effort", "current", "wrench")
"""The signals a recording may hold, beside time."""
DRIVE_QUANTITIES = ("reference_velocity", "enabled", "kp", "kd", "supply")
"""What a log may say of its drives beside the commanded positions."""
LONGEST_TEXT = 1000
"""Most letters of a name or pattern (convention)."""
LARGEST_NUMBER = 1e30
"""Largest factor or offset of a channel map (convention: no unit of a robot is further from another)."""
_NUMBER_TEXT = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?(?:/\d{1,40})?", re.ASCII)
"""A number or a fraction as text, bounded in length: the value of 1e99999999999 has a hundred billion digits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    """The source of the time stamps."""

    column: str | None = None
    file: str | None = None
    unit: str | None = None
    fraction: str | None = None
    """Column with the part of time below the unit of `column`, as nanoseconds beside whole seconds."""
    fraction_unit: str = "ns"
    sample_time: float | None = None
    """Time between rows, in `unit`, for logs without a time column."""
    isolated: bool = False
    """Whether rows are picked samples with gaps between them, so that nothing may be differentiated."""


@dataclass(frozen=True, slots=True, eq=False)
class StatedGain:
    """Gains as a channel map states them."""

    value: Floats
    """One gain, or (n,) one per joint."""
    std: Floats
    """Standard deviations, shaped as `value`; zero where none is stated."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """The source of one quantity, and its conversion into SI units on the joint side."""

    columns: tuple[str, ...]
    """Names or patterns: ``{0..5}`` counts, ``{joint}`` runs over the joints, ``*`` stands for anything unique."""
    file: str | None = None
    """Key under ``[files]``."""
    unit: tuple[str, ...] = ()
    """One unit, or one per column; empty where the format declares it."""
    sign: Floats | None = None
    """(k,) or scalar array of +1 and -1."""
    gear: Floats | None = None
    """(n,) ratios or (n, n) matrix."""
    offset: Floats | None = None
    """(n,) added on the joint side, in `offset_unit`."""
    offset_unit: str | None = None
    time: str | None = None
    """Column with the time of this quantity, where it has a clock of its own."""
    width: int | None = None
    """Numbers per sample of a log with one number per line; 0 for the number of the robot's joints."""
    transpose: bool = False
    """Whether samples run along the second axis."""
    rated: Floats | None = None
    """(k,) value of 100 %, in SI units."""
    torque_constant: Floats | None = None
    """Current only: (n,) motor torque per current [N m/A]; the effort is computed from it."""
    gain: StatedGain | None = None
    """Current: joint torque per current [N m/A or N/A], from which the effort is computed. Effort: a factor."""
    optional: bool = False
    """Whether the log may lack this quantity."""
    held: bool = True
    """Commanded positions only: whether a drive keeps each one until the next; otherwise straight lines join them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelMap:
    """A whole channel map."""

    name: str = ""
    source: str = "the channel map"
    """Name of the map in errors: its file or its profile."""
    joints: tuple[str, ...] = ()
    """The log's names of the joints, in the robot's order."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Key -> file name pattern, for a run in several files."""
    options: Options = field(default_factory=Options)
    clock: Clock = field(default_factory=Clock)
    signals: Mapping[str, Signal] = field(default_factory=dict)
    """Quantity -> signal."""
    reference: Signal | None = None
    """The commanded positions, where the log has them."""
    drive: Mapping[str, Signal] = field(default_factory=dict)
    """Quantity of `DRIVE_QUANTITIES` -> signal."""
    temperature: Signal | None = None
    """Temperatures of the joints, or one for all, where the log has them."""

    @property
    def commands(self) -> Mapping[str, Signal]:
        """Everything that the drives were told: quantity -> signal; empty without commanded positions."""
        return {} if self.reference is None else {"reference": self.reference, **self.drive}

    @property
    def commanded(self) -> ChannelMap | None:
        """The map that reads the commanded positions as if they were the measured ones; None where there are none."""
        if self.reference is None:
            return None
        return replace(self, signals={"position": self.reference}, reference=None, drive={}, temperature=None)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChannelMap:
        """Build a channel map from parsed TOML.

        Raises:
            DataError: For unknown keys, wrong types or unknown units, with the place in the map.
        """
        known = {
            "name",
            "description",
            "profile",
            "joints",
            "files",
            "reader",
            "time",
            "reference",
            "temperature",
            *QUANTITIES,
            *DRIVE_QUANTITIES,
        }
        _known_keys("the channel map", data, known)
        base = read_profile(str(data["profile"])) if "profile" in data else cls()
        drive = {**base.drive, **{key: _signal(key, data[key]) for key in DRIVE_QUANTITIES if key in data}}
        if drive and "reference" not in data and base.reference is None:
            raise DataError(
                f"it has [{next(iter(drive))}] but no commanded positions",
                remedy="Name their columns under [reference], or take the section out.",
            )
        return cls(
            name=str(data.get("name", base.name)),
            joints=tuple(_strings("joints", data.get("joints", base.joints))),
            files=_file_patterns(data["files"]) if "files" in data else base.files,
            options=_section("reader", Options, data["reader"], _READER) if "reader" in data else base.options,
            clock=_clock(data["time"]) if "time" in data else base.clock,
            signals={**base.signals, **{key: _signal(key, data[key]) for key in QUANTITIES if key in data}},
            reference=_signal("reference", data["reference"]) if "reference" in data else base.reference,
            drive=drive,
            temperature=_signal("temperature", data["temperature"]) if "temperature" in data else base.temperature,
        )


def read_channel_map(source: ChannelMap | Mapping[str, Any] | str | Path) -> ChannelMap:
    """A channel map from its file, by the name of a built-in one, from a parsed dictionary, or as it is.

    Example:
        >>> sorted(dynid.logs.read_channel_map(folder / "map.toml").signals)
        ['effort', 'position']
    """
    if isinstance(source, ChannelMap):
        return source
    if isinstance(source, Mapping):
        try:
            return ChannelMap.from_dict(source)
        except DataError as error:
            raise DataError(error.reason, path="channel map", place=error.place, remedy=error.remedy) from error
    path = Path(source)
    if not os.path.exists(path) and str(source) in profile_names():
        return read_profile(str(source))
    if not os.path.exists(path) and str(source) in map_names():
        path = _map_folder() / f"{source}.toml"
    _refuse_other_files(path)
    content = read_toml(path)
    try:
        return replace(ChannelMap.from_dict(content), source=str(path))
    except DataError as error:
        raise DataError(error.reason, path=path, place=error.place, remedy=error.remedy) from error


_OTHER_FILES = {
    "a robot description": frozenset({".urdf", ".xacro", ".xml", ".mjcf", ".sdf"}),
    "JSON": frozenset({".json"}),
    "a log": frozenset({".csv", ".tsv", ".npy", ".npz", ".mat", ".parquet", ".h5", ".hdf5", ".mcap", ".bag", ".db3"}),
}
"""What a file is that is no channel map, by its ending."""


def _refuse_other_files(path: Path) -> None:
    """Refuse a file whose ending says that it is something else than a channel map."""
    for what, endings in _OTHER_FILES.items():
        if path.suffix.lower() in endings and path.is_file():
            raise DataError(
                f"this is {what}, not a channel map",
                path=path,
                remedy="A channel map is a TOML file; dynid inspect run1.csv --robot arm.urdf > map.toml proposes one.",
            )


def profile_names() -> tuple[str, ...]:
    """The ready profiles."""
    folder = resources.files("dynid.logs") / "profiles"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def _map_folder() -> Path:
    """The folder with the maps of published logs: in the package as it is installed, or at the root of a checkout."""
    installed = Path(__file__).parent / "channel_maps"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "channel_maps"


def map_names() -> tuple[str, ...]:
    """The channel maps of published logs that come with dynid."""
    return tuple(sorted(path.stem for path in _map_folder().glob("*.toml")))


def read_profile(name: str) -> ChannelMap:
    """The ready profile of that name."""
    if name not in profile_names():
        raise DataError(f"there is no profile '{name}'", remedy=f"The profiles are: {', '.join(profile_names())}.")
    import tomllib

    text = (resources.files("dynid.logs") / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
    return replace(ChannelMap.from_dict(tomllib.loads(text)), source=f"profile {name}")


# --- from TOML values -----------------------------------------------------------------------------------------------


def _known_keys(where: str, data: Mapping[str, Any], known: set[str]) -> None:
    """Refuse unknown keys: a mistyped `sgin` must not pass silently."""
    unknown = [key for key in data if key not in known]
    if unknown:
        raise DataError(f"unknown key '{unknown[0]}'", place=where, remedy=f"Known keys: {', '.join(sorted(known))}.")


def _wrong(where: str, wanted: str, value: object) -> DataError:
    """The error for a value of the wrong kind."""
    reason = f"it should be {wanted}, not {repr(value)[:200]}"
    return DataError(reason, place=where, remedy="Mend this line of the channel map.")


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or "\0" in value:
        raise _wrong(where, f"a text of at most {LONGEST_TEXT} letters", value)
    return value


def _one_of(known: Sequence[str], where: str, value: object) -> str:
    if value not in known:
        listed = ", ".join(json.dumps(word) for word in known)
        raise DataError(
            f"it should be one of {listed}, not {value!r}"[:300],
            place=where,
            remedy="Choose one of them, or leave the line out: it is found out where only one fits.",
        )
    return str(value)


def _flag(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return value


def _strings(where: str, value: object) -> tuple[str, ...]:
    """One text or a list of texts."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
        raise _wrong(where, "a text or a list of texts", value)
    return tuple(_text(where, item) for item in items)


def _fraction(text: str) -> float:
    from fractions import Fraction  # with Python's decimal numbers, which few maps need

    return float(Fraction(text))


def _number(where: str, value: object) -> float:
    """A number, or a fraction as text: gear ratios are often known as 1798/7."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        if isinstance(value, str) and not _NUMBER_TEXT.fullmatch(value.strip()):
            raise ValueError
        number = _fraction(value) if isinstance(value, str) else float(value)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise _wrong(where, 'a number or a fraction such as "1798/7"', value) from error
    if not abs(number) <= LARGEST_NUMBER:
        raise _wrong(where, f"a number up to {LARGEST_NUMBER:g}", value)
    return number


def _numbers(where: str, value: object) -> Floats:
    """A number, a list or a matrix of numbers."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return np.array(_number(where, value))
    rows = [_numbers(where, item) for item in value]
    if not rows or any(row.shape != rows[0].shape for row in rows) or rows[0].ndim > 1:
        raise _wrong(where, "a list, or a matrix with rows of equal length", value)
    return np.array(rows)


def _gains(where: str, value: object) -> StatedGain:
    """A gain or a list of gains, each a number or a text with its standard deviation."""
    many = isinstance(value, Sequence) and not isinstance(value, str)
    pairs = [_gain(where, item) for item in (value if isinstance(value, Sequence) and many else [value])]
    if not pairs:
        raise _wrong(where, "a gain or a list of gains", value)
    numbers = np.array(pairs)
    return StatedGain(numbers[:, 0], numbers[:, 1]) if many else StatedGain(numbers[0, 0], numbers[0, 1])


def _gain(where: str, value: object) -> tuple[float, float]:
    """A gain and its standard deviation: ``13.3``, ``"13.3 +- 0.7"`` or ``"13.3 +- 5 %"``."""
    if not isinstance(value, str):
        return _number(where, value), 0.0
    parts = [part.strip() for part in re.split(r"\+-|\+/-|\u00b1", value)]
    if len(parts) > 2:
        raise _wrong(where, 'a gain such as "13.3 +- 0.7"', value)
    gain = _number(where, parts[0])
    if len(parts) == 1:
        return gain, 0.0
    share = parts[1].removesuffix("%").strip()
    std = _number(where, share) * (abs(gain) / 100.0 if parts[1].endswith("%") else 1.0)
    if std < 0.0:
        raise _wrong(where, "a standard deviation from 0 up", value)
    return gain, std


def _width(where: str, value: object) -> int:
    if value == "joints":
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1000:
        raise _wrong(where, 'the numbers per sample, or "joints" for one per joint of the robot', value)
    return value


T = TypeVar("T")
Parser = Callable[[str, object], object]
_READER: dict[str, Parser] = {
    "delimiter": partial(_one_of, (",", ";", "\t", "|", " ")),
    "decimal": partial(_one_of, (".", ",")),
}
_CLOCK: dict[str, Parser] = {
    "column": _text,
    "file": _text,
    "unit": _text,
    "fraction": _text,
    "fraction_unit": _text,
    "sample_time": _number,
    "isolated": _flag,
}
_SIGNAL: dict[str, Parser] = {
    "columns": _strings,
    "file": _text,
    "unit": _strings,
    "sign": _numbers,
    "gear": _numbers,
    "offset": _numbers,
    "offset_unit": _text,
    "time": _text,
    "width": _width,
    "transpose": _flag,
    "rated": _numbers,
    "torque_constant": _numbers,
    "gain": _gains,
    "optional": _flag,
    "held": _flag,
}


def _section(name: str, kind: Callable[..., T], data: object, parsers: Mapping[str, Parser]) -> T:
    """One TOML table as one of our types."""
    if not isinstance(data, Mapping):
        raise _wrong(f"[{name}]", "a table", data)
    _known_keys(f"[{name}]", data, set(parsers))
    return kind(**{key: parsers[key](f"[{name}] {key}", value) for key, value in data.items()})


def _clock(data: object) -> Clock:
    """The table of time: a column, or a sample time."""
    clock = _section("time", Clock, data, _CLOCK)
    if clock.sample_time is not None and clock.sample_time <= 0.0:
        raise _wrong("[time] sample_time", "a time above zero", clock.sample_time)
    if clock.sample_time is not None and clock.column is not None:
        raise DataError(
            "it names a column and a sample time", place="[time]", remedy="Keep the one that tells the truth."
        )
    if clock.fraction is not None and clock.column is None:
        raise DataError(
            "it names a fraction but no column", place="[time]", remedy='Add column = "..." with the whole seconds.'
        )
    parse_unit(clock.fraction_unit, "time")
    return clock


def _signal(quantity: str, data: object) -> Signal:
    """One quantity's table, with its units checked at once."""
    if not isinstance(data, Mapping) or "columns" not in data:
        raise DataError("it names no columns", place=f"[{quantity}]", remedy='Add columns = "..." or a list.')
    signal = _section(quantity, Signal, data, _SIGNAL)
    if not signal.columns:
        raise DataError("it names no columns", place=f"[{quantity}]", remedy='Add columns = "..." or a list.')
    for unit in signal.unit:
        parse_unit(unit, quantity)
    if signal.sign is not None and not np.all(np.abs(signal.sign) == 1):
        raise _wrong(f"[{quantity}] sign", "+1 or -1", data["sign"])
    _check_factors(quantity, signal)
    return signal


def _check_factors(quantity: str, signal: Signal) -> None:
    """Refuse factors that lose the signal, and keys that have no effect beside the others."""
    where = f"[{quantity}]"
    for key in ("rated", "torque_constant"):
        value = getattr(signal, key)
        if value is not None and not np.all(value > 0.0 if key == "rated" else value != 0.0):
            raise _wrong(f"{where} {key}", "above zero" if key == "rated" else "other than zero", value.tolist())
    if signal.gear is not None:
        matrix = signal.gear if signal.gear.ndim == 2 else np.diag(np.atleast_1d(signal.gear))
        square = matrix.shape[0] == matrix.shape[1]
        if not square or matrix_rank(matrix, tol=1e-9 * float(np.abs(matrix).max())) < len(matrix):
            raise DataError(
                "the gear is zero or singular: motions or torques of some joint are lost",
                place=f"{where} gear",
                remedy="Give the ratio of every joint, or a square matrix that can be inverted.",
            )
    if signal.gain is not None and not np.all(signal.gain.value):
        raise _wrong(f"{where} gain", "other than zero", signal.gain.value.tolist())
    useless = {
        "held": (not signal.held and quantity != "reference", "only commanded positions are held or joined"),
        "gain": (
            signal.gain is not None and quantity not in ("current", "effort"),
            "only torques and currents have one",
        ),
        "offset_unit": (signal.offset_unit is not None and signal.offset is None, "there is no offset"),
        "rated": (
            signal.rated is not None and bool(signal.unit) and "share" not in _dimensions(signal.unit, quantity),
            "the unit is no share of anything",
        ),
        "torque_constant": (
            signal.torque_constant is not None and (quantity != "current" or signal.gain is not None),
            "only currents have one, and a gain stands for it and the gear",
        ),
        "gear": (
            quantity == "current" and signal.gear is not None and signal.torque_constant is None,
            "a current passes no gear unless a torque_constant makes a torque of it",
        ),
    }
    for key, (wrong, why) in useless.items():
        if wrong:
            raise DataError(
                f"'{key}' has no effect: {why}", place=where, remedy=f"Take {key} out, or add what it needs."
            )


def _dimensions(units: Sequence[str], quantity: str) -> set[str]:
    return {parse_unit(unit, quantity).dimension for unit in units}


def _file_patterns(data: object) -> dict[str, str]:
    """The file name patterns; a pattern names files, never folders."""
    if not isinstance(data, Mapping):
        raise _wrong("[files]", "a table", data)
    patterns = {str(key): _text(f"[files] {key}", value) for key, value in data.items()}
    for key, pattern in patterns.items():
        if set(pattern) & set("/\\"):
            raise _wrong(f"[files] {key}", "a file name without folders", pattern)
    return patterns
