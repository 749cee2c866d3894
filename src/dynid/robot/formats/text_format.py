"""The text format of Izaguirre, Hashimoto, Paul and Hayward 1992 (Appendix A): standard DH, link moments, rotors.

A file looks like this (``%`` starts a comment; angles in degrees, SI units otherwise)::

    number_links 2
    sigma 0 0                   % 0 revolute, 1 prismatic
    alpha 90 0                  % twist
    dpar 0 0                    % d: along z_{j-1}
    apar 0 a2                   % a: along x_j
    mass 0 m2
    xgrav 0 x2                  % first moments (mass times centre of mass): xgrav ygrav zgrav
    cdyna 0 0.1                 % adyna bdyna cdyna ddyna edyna fdyna: I11 I22 I33 I12 I23 I13
    ia1 ia2                     % rotor inertias; this row has no keyword
    variable m2 1.5             % values of the symbols used above
    constant a2 0.4
    stop

Moments are taken about the origin of the link's standard (far) frame. Rows may stand in any order after
``number_links``; the four geometric ones are required, the others are zero when absent. The format has no place for
theta offsets and friction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import DescriptionError, ExportError
from dynid.files import write_atomically
from dynid.files.small_files import open_regular
from dynid.robot.formats.dh import StandardDH, from_dh
from dynid.robot.formats.gravity_note import describe_lost_gravity
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import STANDARD_GRAVITY, Robot
from dynid.robot.parts import check_held
from dynid.spatial import inverse_transform
from dynid.terms.base import Dependence
from dynid.terms.motors import RotorInertia

GEOMETRY = ("sigma", "alpha", "dpar", "apar")
"""Keywords of the rows that every text has."""
INERTIA = ("adyna", "ddyna", "fdyna", "bdyna", "edyna", "cdyna", "xgrav", "ygrav", "zgrav", "mass")
"""In the order XX XY XZ YY YZ ZZ MX MY MZ M."""
ROTORS = "ia"
"""Key of the row of rotor inertias, which has no keyword in the text."""

_MOST_LINKS, _MOST_CHARACTERS, _LARGEST = 100, 1_000_000, 1e30
"""Links, characters and size of a number beyond which a text is refused (convention: far above any robot)."""
_ROUNDING_RAD = 1e-12
"""Angle [rad] that is rounding (convention)."""
_NUMBER = re.compile(r"[+-]?(\d++\.?\d*+|\.\d++)([eE][+-]?\d{1,3})?")
_NAME = re.compile(r"[A-Za-z_]\w{0,31}", re.ASCII)
_ROTOR_NAME = re.compile(r"ia\d+")
_KEYWORDS = ("number_links", *GEOMETRY, *INERTIA, "option", "option.update", "variable", "constant", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDescription:
    """Contents of a text; symbols are kept as symbols."""

    rows: Mapping[str, tuple[float | str, ...]]
    """Keyword (or ``ia``) -> one number or symbol per link."""
    variables: Mapping[str, float] = field(default_factory=dict)
    """Symbols whose values may be identified."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Symbols whose values are fixed."""
    options: tuple[tuple[str, ...], ...] = ()
    """Words of the option lines; kept, not interpreted."""

    def __post_init__(self) -> None:
        """Freeze the mappings."""
        for name in ("rows", "variables", "constants"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def number_links(self) -> int:
        """Number of links n."""
        return len(self.rows["sigma"])

    def values(self, row: str) -> Floats:
        """(n,) values of a row with its symbols resolved; zeros when the row is absent."""
        known = {**self.variables, **self.constants}
        return np.array([known[v] if isinstance(v, str) else v for v in self.rows.get(row, (0.0,) * self.number_links)])

    def to_robot(self, *, gravity: ArrayLike = STANDARD_GRAVITY, name: str = "robot") -> Robot:
        """The robot, see `from_dh` with ``convention="standard"``."""
        geometry = zip(*(self.values(row).tolist() for row in GEOMETRY), strict=True)
        moments = np.column_stack([self.values(row) for row in INERTIA])
        rotors = self.values(ROTORS).tolist() if ROTORS in self.rows else []
        return from_dh(
            [StandardDH(sigma=int(sigma), alpha=alpha, d=d, a=a) for sigma, alpha, d, a in geometry],
            convention="standard",
            degrees=True,
            gravity=gravity,
            name=name,
            inertias=[Inertia.from_vector(theta) for theta in moments],
            terms=[[RotorInertia(value)] for value in rotors] or None,
        )


def read_text(
    path: str | os.PathLike[str],
    *,
    gravity: ArrayLike = STANDARD_GRAVITY,
    hold: Mapping[str, float] | None = None,
    short_rows: bool = False,
) -> Robot:
    """Read a robot from a file in the text format.

    Args:
        path: The file.
        gravity: (3,) acceleration of free fall in frame 0 [m/s^2].
        hold: Joint name -> position [rad or m] at which the joint is held.
        short_rows: See `parse_text`.

    Raises:
        DescriptionError: The file cannot be read, or the text is wrong; the error names the line.

    Example:
        >>> dynid.robot.write_text(dynid.robots.ddarm(), folder / "own.txt")
        >>> dynid.robot.read_text(folder / "own.txt").dof
        3
    """
    if not os.path.isfile(path):
        raise DescriptionError("there is no such file", path=path, remedy="Check the path.")
    try:
        with open_regular(path) as file:
            text = file.read(4 * _MOST_CHARACTERS + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"the file cannot be read as text: {error}", path=path) from error
    try:
        robot = parse_text(text, gravity=gravity, short_rows=short_rows)
    except DescriptionError as error:
        raise DescriptionError(error.reason, path=path, place=error.place, remedy=error.remedy) from None
    held = hold or {}
    check_held(held, [joint.name for joint in robot.joints])
    return replace(robot, joints=tuple(j.held_at(held[j.name]) if j.name in held else j for j in robot.joints))


def parse_text(text: str, *, gravity: ArrayLike = STANDARD_GRAVITY, short_rows: bool = False) -> Robot:
    """Make a robot from a text.

    Args:
        text: The description.
        gravity: (3,) acceleration of free fall in frame 0 [m/s^2].
        short_rows: Take missing values at the end of a row as zero. The listing printed in the paper needs it.

    Raises:
        DescriptionError: The text is wrong; the error names the line.
    """
    return parse_description(text, short_rows=short_rows).to_robot(gravity=gravity)


def parse_description(text: str, *, short_rows: bool = False) -> TextDescription:
    """Read the text without resolving its symbols; arguments and errors as in `parse_text`."""
    if len(text) > _MOST_CHARACTERS:
        raise DescriptionError(f"the text is longer than {_MOST_CHARACTERS} characters", remedy="Is it the right file?")
    reader = _Reader(short_rows)
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("%", 1)[0].split()
        if words:
            reader.take(words, f"line {number}")
        if reader.stopped:
            return reader.description()
    raise DescriptionError("the text ends without 'stop'", remedy="Complete it; it may be cut off.")


class _Reader:
    """Collects the lines of one text."""

    def __init__(self, short_rows: bool) -> None:
        self.short_rows = short_rows
        self.count: int | None = None
        self.rows: dict[str, tuple[float | str, ...]] = {}
        self.places: dict[str, str] = {}
        self.symbols: dict[str, dict[str, float]] = {"variable": {}, "constant": {}}
        self.options: list[tuple[str, ...]] = []
        self.stopped = False

    def take(self, words: list[str], place: str) -> None:
        keyword = words[0]
        if keyword == "stop":
            self.stopped = True
        elif keyword == "number_links":
            self._take_count(words[1:], place)
        elif keyword in GEOMETRY + INERTIA:
            self._take_row(keyword, words[1:], place)
        elif _ROTOR_NAME.fullmatch(keyword):
            self._take_row(ROTORS, words, place)
        elif keyword in self.symbols:
            self._take_symbol(keyword, words[1:], place)
        elif keyword in ("option", "option.update"):
            self.options.append(tuple(words))
        else:
            raise DescriptionError(
                f"keyword {keyword[:40]!r} is not known", place=place, remedy=f"Known: {', '.join(_KEYWORDS)}, ia1."
            )

    def _take_count(self, words: list[str], place: str) -> None:
        valid = len(words) == 1 and words[0].isascii() and words[0].isdigit() and 1 <= int(words[0][:9]) <= _MOST_LINKS
        if self.count is not None or not valid:
            raise DescriptionError("number_links must stand once, with one whole number from 1 to 100", place=place)
        self.count = int(words[0])

    def _take_row(self, key: str, words: list[str], place: str) -> None:
        if self.count is None or key in self.rows:
            problem = "stands before number_links" if self.count is None else "stands twice"
            raise DescriptionError(
                f"row '{key}' {problem}", place=place, remedy="Give number_links, then each row once."
            )
        missing = self.count - len(words)
        if missing < 0 or (missing > 0 and not self.short_rows):
            raise DescriptionError(
                f"row '{key}' has {len(words)} values for {self.count} links",
                place=place,
                remedy="Give one value per link; short_rows=True takes missing values at the end as zero.",
            )
        self.rows[key] = tuple(_value(word, place) for word in words) + (0.0,) * missing
        self.places[key] = place

    def _take_symbol(self, kind: str, words: list[str], place: str) -> None:
        name = words[0] if words else ""
        if len(words) != 2 or not _NAME.fullmatch(name) or not _NUMBER.fullmatch(words[1]):
            raise DescriptionError(f"a {kind} needs a name and a number", place=place, remedy=f"Write '{kind} m6 2.7'.")
        if any(name in known for known in self.symbols.values()):
            raise DescriptionError(f"symbol '{name}' is defined twice", place=place, remedy="Keep one definition.")
        self.symbols[kind][name] = _number(words[1], place)

    def description(self) -> TextDescription:
        missing = [row for row in GEOMETRY if row not in self.rows]
        if missing:
            raise DescriptionError(f"rows are missing: {', '.join(missing)}", remedy="Give the whole geometry.")
        known = {**self.symbols["variable"], **self.symbols["constant"]}
        for key, row in self.rows.items():
            for value in row:
                if isinstance(value, str) and value not in known:
                    raise DescriptionError(
                        f"symbol '{value}' has no value", place=self.places[key], remedy=f"Add 'variable {value} ...'."
                    )
        found = TextDescription(
            rows=self.rows,
            variables=self.symbols["variable"],
            constants=self.symbols["constant"],
            options=tuple(self.options),
        )
        if not np.isin(found.values("sigma"), (0, 1)).all():
            raise DescriptionError(
                "sigma must be 0 (revolute) or 1 (prismatic) for every link", place=self.places["sigma"]
            )
        return found


def _value(word: str, place: str) -> float | str:
    if _NUMBER.fullmatch(word):
        return _number(word, place)
    if _NAME.fullmatch(word):
        return word
    raise DescriptionError(f"{word[:40]!r} is neither a number nor a name", place=place, remedy="Mend or remove it.")


def _number(word: str, place: str) -> float:
    value = float(word)
    if abs(value) > _LARGEST:
        raise DescriptionError(f"number {word[:40]} is too large", place=place, remedy="Use SI units.")
    return value


def write_text(robot: Robot | TextDescription, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a description, or a serial robot, to a file in the text format; see `description_text`.

    Args:
        robot: What to describe.
        path: Destination; its folder must exist.
        force: Overwrite an existing file.

    Raises:
        ExportError: The robot has something that the format cannot say, or the file cannot be written.

    Example:
        >>> dynid.robot.write_text(dynid.robots.ddarm(), folder / "arm.txt")
        >>> (folder / "arm.txt").exists()
        True
    """
    write_atomically(path, description_text(robot), force=force)


def description_text(robot: Robot | TextDescription) -> str:
    """A description, or a serial robot, in the text format; reading it again gives the same.

    A robot's base frame is replaced by its frame 0 (see `modified_dh`), in which gravity must be (0, 0, -9.81) m/s^2.

    Raises:
        ExportError: The robot has something that the format cannot say.
    """
    description = robot if isinstance(robot, TextDescription) else _describe(robot)
    lines = [f"number_links {description.number_links}"]
    for key, row in description.rows.items():
        lines.append(" ".join([*([] if key == ROTORS else [key]), *map(_word, row)]))
    lines += [" ".join(words) for words in description.options]
    lines += [f"variable {name} {_word(value)}" for name, value in description.variables.items()]
    lines += [f"constant {name} {_word(value)}" for name, value in description.constants.items()]
    return "\n".join([*lines, "stop", ""])


def _word(value: float | str) -> str:
    return value if isinstance(value, str) else repr(float(value)).removesuffix(".0")


def _describe(robot: Robot) -> TextDescription:
    table = modified_dh(robot)
    _check_expressible(robot, table.robot, [row.theta for row in table.rows])
    n, following = robot.dof, [*table.rows[1:], None]
    far = [StandardDH(a=row.d, alpha=row.alpha) if row else StandardDH() for row in following]
    d = [row.r for row in table.rows]
    if np.allclose(table.T_base_0[:3, :3], np.eye(3)) and np.allclose(table.T_base_0[:2, 3], 0.0):
        d[0] = float(table.T_base_0[2, 3])  # keep the height of the shoulder
    bodies = zip(table.robot.bodies, far, strict=True)
    moments = np.array([body.inertia.in_frame(inverse_transform(row.T_joint_link)).vector for body, row in bodies])
    rows: dict[str, tuple[float | str, ...]] = {
        "sigma": tuple(float(row.sigma) for row in table.rows),
        "alpha": tuple(float(np.rad2deg(row.alpha)) for row in far),
        "dpar": tuple(d),
        "apar": tuple(row.a for row in far),
        **{key: tuple(column.tolist()) for key, column in zip(INERTIA, moments.T, strict=True)},
    }
    rotors = {f"ia{j}": sum(term.value for term in b.joint.terms) for j, b in enumerate(robot.bodies, start=1)}
    if any(body.joint.terms for body in robot.bodies):
        rows[ROTORS] = tuple(f"ia{j}" for j in range(1, n + 1))
    return TextDescription(rows=rows, variables=rotors if ROTORS in rows else {})


def _check_expressible(robot: Robot, in_dh_frames: Robot, thetas: list[float]) -> None:
    if robot.couplings or any(placed.term.dependence is not Dependence.ACCELERATION for placed in robot.terms):
        raise ExportError("the text format has rotor inertias only", remedy="Take the other terms off.")
    if any(abs(theta) > _ROUNDING_RAD for theta in thetas):
        degrees = ", ".join(f"{np.rad2deg(theta):g}" for theta in thetas)
        raise ExportError(
            f"the text format has no theta offsets, the robot needs ({degrees}) degrees",
            remedy="Shift the joints' zeros.",
        )
    if gravity := describe_lost_gravity(in_dh_frames.gravity):
        raise ExportError(f"frame 0 has {gravity}", remedy="Use `Robot.with_gravity`, or write an MJCF.")
