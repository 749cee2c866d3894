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
    offset = [0, -90]                        # added last, in the same unit: q_model = q + offset

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

With [reference] a log of servos may also have ``[reference_velocity]``, ``[enabled]`` (above zero: the drive is on),
``[kp]`` and ``[kd]`` (gains in the drive's unit) and ``[supply]`` (a voltage); one column may stand for all joints.
A drive keeps each commanded position until the next one; with ``held = false`` straight lines join them.

A log may hold temperatures of its joints: ``[temperature]`` with unit degC, K or degF, one column, or one per joint.
`dynid fleet` and `dynid compare-runs` follow friction over them; nothing else uses them.

Motor-side signals name their gear: positions and velocities of motors are ``gear @ joint``, joint torques are
``gear @ motor torque``. The two matrices are separate, for a coupled wrist has a different one each way. A signal is
computed in this order: unit, sign, gear, offset.

`read_channel_map` makes a `ChannelMap` of such a file and refuses wrong content; its fields are the sections, and those
of `TimeSection` and `Signal` the keys of the sections. conversion.py applies the map to a log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct, structs

from dynid.array_types import Floats
from dynid.checks import LARGEST
from dynid.decompositions import matrix_rank
from dynid.errors import DataError
from dynid.logs.drives import CurrentGains
from dynid.logs.units import parse_unit
from dynid.safe_files.records import as_record
from dynid.safe_files.small_files import read_toml

QUANTITIES = ("position", "velocity", "effort", "current", "wrench")
"""The signals that a recording may hold in addition to time."""
DRIVE_QUANTITIES = ("reference_velocity", "enabled", "kp", "kd", "supply")
"""The signals of drives that a log may hold in addition to the commanded positions (`ChannelMap.reference`)."""
_NUMBER_TEXT = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?(?:/\d{1,40})?", re.ASCII)
"""A number or a fraction as text, bounded in length: the value of 1e99999999999 has a hundred billion digits."""
Text = Annotated[str, Meta(max_length=1000, pattern=r"\A[^\0]*\Z")]
"""A text of bounded length without zero bytes."""
Texts = tuple[Text, ...]
"""Several of these."""


class TimeSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """The section [time]: the source of the time stamps."""

    column: Text | None = None
    """Name of the column; None for a log whose format or `sample_time` gives the times."""
    file: Text | None = None
    """Key under ``[files]`` of the file with the column; None for the file of each quantity."""
    unit: Text | None = None
    """Unit of `column` or `sample_time`; None where the format declares it."""
    fraction: Text | None = None
    """Column with the part of time below the unit of `column`, such as nanoseconds where that has whole seconds."""
    fraction_unit: Text = "ns"
    """Unit of `fraction`."""
    sample_time: Annotated[float, Meta(gt=0.0, le=LARGEST)] | None = None
    """Time between rows, in `unit`, for logs without a time column."""
    isolated: bool = False
    """Whether rows are single samples with gaps between them, so that nothing may be differentiated."""

    def __post_init__(self) -> None:
        """Refuse two sources of time, and a fraction of nothing."""
        if self.sample_time is not None and self.column is not None:
            raise ValueError("it names a column and a sample time; keep the one that tells the truth")
        if self.fraction is not None and self.column is None:
            raise ValueError("it names a fraction but no column with the whole seconds")


class _ValueOfKeyError(ValueError):
    """The error of a value that `Signal` refuses; `_as_map` names its key to the user."""

    def __init__(self, key: str, reason: str) -> None:
        """Keep the key."""
        super().__init__(reason)
        self.key = key


_FACTOR_RULES: dict[str, tuple[str, Callable[[Floats], Any]]] = {
    "sign": ("+1 or -1", lambda x: np.abs(x) == 1),
    "rated": ("above zero", lambda x: x > 0.0),
    "torque_constant": ("other than zero", lambda x: x != 0.0),
}
"""Key of `Signal` -> what its numbers should be (text for the error), and the test for it."""


class Signal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """The section of one quantity: its columns, and their conversion into SI units on the joint side.

    k is the number of columns, n that of joints. Numbers of the file become arrays.
    """

    columns: Text | Annotated[Texts, Meta(min_length=1)]
    """Names or patterns: ``{0..5}`` counts, ``{joint}`` runs over the joints, ``*`` stands for any text."""
    file: Text | None = None
    """Key under ``[files]`` of the file with the columns; None for any file that has them."""
    unit: Text | Texts = ()
    """One unit, or one per column; empty where the format declares it."""
    sign: Any = None
    """() or (k,) array of +1 and -1."""
    gear: Any = None
    """() or (n,) ratios, or (n, n) matrix, for signals of the motors."""
    offset: Any = None
    """() or (n,) numbers that are added on the joint side, in the unit of the signal."""
    time: Text | None = None
    """Column with the time of this quantity, if it is sampled at other times than the positions."""
    width: Annotated[int, Meta(ge=0, lt=1000)] | Literal["joints"] | None = None
    """For a file with one number per line: numbers per sample; "joints" for the number of the robot's joints."""
    transpose: bool = False
    """Whether samples run along the second axis."""
    rated: Any = None
    """() or (k,) value of 100 % in SI units, for signals in per cent."""
    torque_constant: Any = None
    """Current only: () or (n,) motor torque per current [N m/A]; the effort (joint torque) is computed from it."""
    gain: Any = None
    """`CurrentGains`, with their standard deviations. Current: joint torque per current [N m/A or N/A], from which the
    effort is computed. Effort: a factor of the logged one."""
    optional: bool = False
    """Whether the log may lack this quantity."""
    held: bool = True
    """Commanded positions only: whether a drive keeps each one until the next; otherwise straight lines join them."""

    def __post_init__(self) -> None:
        """Turn texts and lists into tuples and arrays, and refuse factors by which the signal is lost, such as zero."""
        for key in ("columns", "unit"):
            value = getattr(self, key)
            structs.force_setattr(self, key, (value,) if isinstance(value, str) else value)
        constants = self.torque_constant
        # a proposed map has "?" for each constant that the user has to fill in
        if isinstance(constants, str | list) and (unfilled := constants.count("?")):
            joints = "joint" if unfilled == 1 else f"{unfilled} joints"
            raise _ValueOfKeyError("torque_constant", f"fill in torque_constant (N m/A) of the {joints}")
        for key in ("sign", "gear", "offset", "rated", "torque_constant"):
            if (value := getattr(self, key)) is not None and not isinstance(value, np.ndarray):
                structs.force_setattr(self, key, _numbers(key, value))
        if self.gain is not None:
            structs.force_setattr(self, "gain", self.gain if isinstance(self.gain, CurrentGains) else _gains(self.gain))
            _require(bool(np.all(self.gain.gain)), "gain", "other than zero", self.gain.gain)
        for key, (wanted, holds) in _FACTOR_RULES.items():
            if (value := getattr(self, key)) is not None:
                _require(bool(np.all(holds(value))), key, wanted, value)
        if self.gear is not None:
            matrix = self.gear if self.gear.ndim == 2 else np.diag(np.atleast_1d(self.gear))
            is_square = matrix.shape[0] == matrix.shape[1]
            if not is_square or matrix_rank(matrix, tol=1e-9 * float(np.abs(matrix).max())) < len(matrix):
                raise _ValueOfKeyError(
                    "gear", "it is zero or singular, so that motions or torques of some joint are lost"
                )


class Reader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section [reader]: the layout of a text file, needed only where the text can be read in two ways."""

    delimiter: Literal[",", ";", "\t", "|", " "] | None = None
    """The character between fields; None to find it out."""
    decimal: Literal[".", ","] | None = None
    """The decimal sign; None to find it out."""


class ChannelMap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False, omit_defaults=True):
    """A whole channel map; its fields are the keys and tables of the file."""

    name: Text = ""
    """Name of the map."""
    source: Text = "the channel map"
    """Name of the map in errors: its file or its profile."""
    description: Text = ""
    """Remarks for people."""
    profile: Text = ""
    """Name of the built-in map whose sections this one replaces or completes; empty without."""
    joints: Texts = ()
    """The log's names of the joints, in the robot's order."""
    files: dict[str, Annotated[str, Meta(pattern=r"\A[^/\\\0]{1,1000}\Z")]] = {}
    """Key -> file name pattern, without folders, for a run in several files."""
    reader: Reader = Reader()
    time: TimeSection = TimeSection()
    position: Signal | None = None
    velocity: Signal | None = None
    effort: Signal | None = None
    current: Signal | None = None
    wrench: Signal | None = None
    reference: Signal | None = None
    """The commanded positions, where the log has them."""
    reference_velocity: Signal | None = None
    enabled: Signal | None = None
    kp: Signal | None = None
    kd: Signal | None = None
    supply: Signal | None = None
    temperature: Signal | None = None
    """Temperatures of the joints, or one for all, where the log has them."""

    @property
    def signals(self) -> dict[str, Signal]:
        """Quantity of `QUANTITIES` -> signal."""
        return self._pick_signals(QUANTITIES)

    @property
    def commands(self) -> dict[str, Signal]:
        """Commands to the drives, gains and supply: quantity -> signal; empty without commanded positions."""
        return {} if self.reference is None else self._pick_signals(("reference", *DRIVE_QUANTITIES))

    def _pick_signals(self, quantities: Sequence[str]) -> dict[str, Signal]:
        """Pick from a list the quantities that the map has: quantity -> signal."""
        return {name: signal for name in quantities if (signal := getattr(self, name)) is not None}

    @property
    def commanded(self) -> ChannelMap | None:
        """The map that reads the commanded positions as if they were measured; None if this map has no commands."""
        if self.reference is None:
            return None
        kept = {name: getattr(self, name) for name in ("name", "source", "joints", "files", "reader", "time")}
        return ChannelMap(**kept, position=self.reference)


ChannelMapSource = ChannelMap | Mapping[str, Any] | str | Path
"""A channel map, its content, its file, or the name of a built-in one."""


def read_channel_map(source: ChannelMapSource) -> ChannelMap:
    """Read a channel map from its file, its parsed content, or the name of a built-in one; return a map unchanged.

    Example:
        >>> from dynid.logs.channel_map import read_channel_map
        >>> sorted(read_channel_map(folder / "map.toml").signals)
        ['effort', 'position']
    """
    if isinstance(source, ChannelMap):
        return source
    if isinstance(source, Mapping):
        return _as_map(dict(source))
    built_in = None if os.path.exists(source) else built_in_maps().get(str(source))  # a file of that name comes first
    return _as_map(read_toml(built_in or source, remedy=_REMEDY), f"profile {source}" if built_in else str(source))


def built_in_maps() -> dict[str, Path]:
    """List the maps that come with dynid: name -> file."""
    here = Path(__file__)
    # an installed package has the folder beside this file, a checkout of the sources at its root
    folder = next((f for f in (here.parent, here.parents[3]) if (f / "channel_maps").is_dir()), here)
    return {path.stem: path for path in sorted((folder / "channel_maps").glob("*.toml"))}


_REMEDY = (
    "It is not a channel map: that is a TOML file; dynid inspect run1.csv --robot arm.urdf > map.toml proposes one."
)
_TYPES_OF_SECTIONS = {"": ChannelMap, "time": TimeSection}
"""Section -> its type, whose fields are the known keys; all others are `Signal`."""
_REMEDIES_OF_SECTIONS = {
    "joints": 'It is a list of texts, as joints = ["shoulder", "elbow"]',
    "files": "It names files without folders",
    "reader": "delimiter is one of , ; tab | and blank, decimal is . or a comma; leave the line out: it is found out",
}
"""Section -> what it may hold, for errors; for other sections the error lists the known keys."""


def _as_map(content: Mapping[str, Any], source: str | None = None) -> ChannelMap:
    """Make a map of parsed content and of the profile that it names.

    Args:
        content: The parsed TOML.
        source: Name of the map for errors; None for content without a file.

    Raises:
        DataError: The content is wrong; the error names section and key.
    """
    path = source or "channel map"
    try:
        base = {}
        profile = content.get("profile")
        if profile is not None:
            if str(profile) not in (known := built_in_maps()):
                raise DataError(f"there is no profile '{profile}'", remedy=f"The profiles are: {', '.join(known)}.")
            base = read_toml(known[str(profile)])
        # each section of the file replaces, or completes, that of the profile
        merged = {**base, **{key: _override(base.get(key), own) for key, own in content.items()}}
        found = as_record(merged, ChannelMap)
        for quantity, signal in {**found.signals, **found._pick_signals((*DRIVE_QUANTITIES, "reference"))}.items():
            _check_signal(quantity, signal)
        if found.reference is None and (drive := found._pick_signals(DRIVE_QUANTITIES)):
            remedy = "Name their columns under [reference], or take the section out."
            raise DataError(f"it has [{next(iter(drive))}] but no commanded positions", remedy=remedy)
        parse_unit(found.time.fraction_unit, "time")
    except DataError as error:
        section, _, key = (error.place or "").partition(".")
        # as_record raises from msgspec's error, which msgspec raises from the one of `Signal.__post_init__`
        origin = error.__cause__ and error.__cause__.__cause__
        key = origin.key if isinstance(origin, _ValueOfKeyError) else key
        place = f"[{section}] {key}".strip() if section in ChannelMap.__struct_fields__ else error.place
        keys = f"Known keys: {', '.join(sorted(_TYPES_OF_SECTIONS.get(section, Signal).__struct_fields__))}"
        wanted = _REMEDIES_OF_SECTIONS.get(section.partition("[")[0], "" if key else keys)
        remedy = f"Mend this {'line' if key else 'part'} of the channel map. {wanted}.".removesuffix(" .")
        raise DataError(error.reason, path=path, place=place, remedy=error.remedy or remedy) from error
    return found if source is None else structs.replace(found, source=source)


def _override(base: Any, own: Any) -> Any:
    """Merge a section of a map with that of its profile.

    If only the section of the profile names columns or a time, the keys of the map's section are added to it, and the
    quantity is required even if it is optional in the profile. Otherwise the map's section replaces it.

    Args:
        base: The section of the profile; None without.
        own: The section of the map.
    """
    sources = {"columns", "column", "sample_time"}
    if isinstance(base, Mapping) and isinstance(own, Mapping) and sources & base.keys() and not sources & own.keys():
        return {**{key: value for key, value in base.items() if key != "optional"}, **own}
    return own


def _require(holds: bool, key: str, wanted: str, value: object) -> None:
    """Refuse the value of a key unless a condition holds; ``wanted`` describes a right value."""
    if not holds:
        shown = value.tolist() if isinstance(value, np.ndarray) else value
        raise _ValueOfKeyError(key, f"it should be {wanted}, not {repr(shown)[:200]}")


def _number(key: str, value: object) -> float:
    """Read a number, or a fraction as text: gear ratios are often known as 1798/7."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    known = known or (isinstance(value, str) and _NUMBER_TEXT.fullmatch(value.strip()) is not None)
    _require(known, key, 'a number or a fraction such as "1798/7"', value)
    try:
        number = float(Fraction(value) if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (ZeroDivisionError, OverflowError):
        number = np.nan
    _require(abs(number) <= LARGEST, key, f"a number up to {LARGEST:g}", value)
    return number


def _numbers(key: str, value: object) -> Floats:
    """Read a number, a list or a matrix of numbers: array of shape (), (k,) or (k, l)."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return np.array(_number(key, value))
    rows = [_numbers(key, item) for item in value]
    alike = bool(rows) and all(row.shape == rows[0].shape for row in rows) and rows[0].ndim <= 1
    _require(alike, key, "a list, or a matrix with rows of equal length", value)
    return np.array(rows)


def _gains(value: Any) -> CurrentGains:
    """Read a gain or a list of gains, each a number or a text with its standard deviation: ``"13.3 +- 5 %"``."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        _require(bool(value), "gain", "a gain or a list of gains", value)
        parts = [_gains(item) for item in value]
        return CurrentGains(np.concatenate([x.gain for x in parts]), np.concatenate([x.stderr for x in parts]))
    # the gain, and what follows +-, +/- or the plus-minus sign (u00b1)
    first, *rest = re.split(r"\+-|\+/-|\u00b1", value) if isinstance(value, str) else [value]
    _require(len(rest) < 2, "gain", 'a gain such as "13.3 +- 0.7"', value)
    gain = _number("gain", first)
    spread = rest[0].strip() if rest else "0"
    std = _number("gain", spread.removesuffix("%")) * (abs(gain) / 100.0 if spread.endswith("%") else 1.0)
    _require(std >= 0.0, "gain", "one with a standard deviation from 0 up", value)
    return CurrentGains(np.array(gain), np.array(std))


def _check_signal(quantity: str, signal: Signal) -> None:
    """Refuse units of other quantities, and keys that have no effect together with the others."""
    dimensions = {parse_unit(unit, quantity).dimension for unit in signal.unit}
    gives_torque = quantity in ("current", "effort")
    has_constant = signal.torque_constant is not None
    no_share = bool(signal.unit) and "share" not in dimensions  # a share: per cent of a rated value
    # key, whether it has no effect, the reason
    useless = (
        ("held", not signal.held and quantity != "reference", "only commanded positions are held or joined"),
        ("gain", signal.gain is not None and not gives_torque, "only torques and currents have one"),
        ("rated", signal.rated is not None and no_share, "the unit is no share of anything"),
        ("torque_constant", has_constant and (quantity != "current" or signal.gain is not None),
         "only currents have one, and a gain stands for it and the gear"),
        ("gear", quantity == "current" and signal.gear is not None and not has_constant,
         "a current passes no gear unless a torque_constant makes a torque of it"),
    )  # fmt: skip
    for key, wrong, why in useless:
        if wrong:
            remedy = f"Take {key} out, or add what it needs."
            raise DataError(f"'{key}' has no effect: {why}", place=quantity, remedy=remedy)
