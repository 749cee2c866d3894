"""Control laws from TOML files: ``kind = "pd"`` and its gains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError
from dynid.files.schema import check_content, either, list_of, number
from dynid.files.small_files import read_toml
from dynid.loop.cascade import Cascade
from dynid.loop.laws import PD, PID, ComputedTorqueLaw, ControlLaw
from dynid.robot.model import Robot

_KINDS: dict[str, tuple[Callable[..., ControlLaw], tuple[str, ...], tuple[str, ...]]] = {
    "pd": (PD, ("kp", "kd"), ()),
    "pid": (PID, ("kp", "ki", "kd"), ()),
    "cascade": (Cascade, ("kp", "kv"), ("gain", "limit", "velocity_late")),
    "computed_torque": (ComputedTorqueLaw, ("kp", "kd"), ()),
}
"""Kinds of laws that a file can hold: the class, the names of its gains, and those of numbers that may be left out."""
LARGEST_GAIN = 1e12
"""Largest gain of a law (convention: far beyond those of real drives, and its square is a number)."""
_GAINS = either(number(-LARGEST_GAIN, LARGEST_GAIN), list_of(number(-LARGEST_GAIN, LARGEST_GAIN), least=1))


def read_law(path: str | Path, model: Robot | None = None) -> ControlLaw:
    r"""Read a law from a TOML file with its ``kind`` and its gains, ``kp = [...]`` etc.

    The kinds are "pd", "pid", "cascade" and "computed_torque".

    Args:
        path: The file.
        model: The controller's own model of the robot, for computed torque.

    Raises:
        ArgumentError: The file does not describe a law; the message states what is missing.

    Example:
        >>> written = (folder / "law.toml").write_text("kind = 'pd'\nkp = [900, 900, 200]\nkd = [60, 60, 10]\n")
        >>> type(dynid.loop.read_law(folder / "law.toml")).__name__
        'PD'
    """
    table = _read_table(path)
    kind = _pop_kind(table, path)
    make, *_ = _KINDS[kind]
    _check_names(table, kind, path)
    if make is ComputedTorqueLaw:
        if model is None:
            raise ArgumentError(
                "computed torque needs the controller's model", path=path, remedy="Call read_law(path, model=robot)."
            )
        table["model"] = model
    try:
        return make(**table)
    except ArgumentError as error:
        raise ArgumentError(error.reason, path=path, remedy=error.remedy) from error


def _read_table(path: str | Path) -> dict[str, Any]:
    if not Path(path).exists():
        raise ArgumentError("there is no such file", path=path, remedy="Give the file of a control law.")
    remedy = "Write kp = [300.0, 60.0]: closed brackets, and a digit on both sides of every decimal point."
    return read_toml(path, error=ArgumentError, remedy=remedy)


def _pop_kind(table: dict[str, Any], path: str | Path) -> str:
    """The kind of law, taken out of the table."""
    kind = table.pop("kind", None)
    headings = [name for name, value in table.items() if isinstance(value, dict)]
    if kind is None and headings:
        raise ArgumentError(
            f"the law stands under a heading, [{headings[0]}]",
            path=path,
            remedy="Leave the heading out: kind and gains stand at the top.",
        )
    if not isinstance(kind, str) or kind not in _KINDS:
        reason = "it has no kind" if kind is None else f"kind is {kind!r}"
        raise ArgumentError(reason, path=path, remedy=f"Give kind, one of {', '.join(_KINDS)}.")
    return kind


def _check_names(table: dict[str, Any], kind: str, path: str | Path) -> None:
    """Refuse unknown and missing gains, and gains that are no numbers."""
    _, names, more = _KINDS[kind]
    unknown = [name for name in table if name not in (*names, *more)]
    if unknown:
        raise ArgumentError(
            f"a law of kind {kind!r} has no {', '.join(unknown)}",
            path=path,
            remedy=f"Give {', '.join((*names, *more))}; other terms, such as feed-forward, need a UserLaw in Python.",
        )
    if not set(names) <= set(table):
        missing = [name for name in names if name not in table]
        raise ArgumentError(f"{', '.join(missing)} is missing", path=path, remedy=f"Give {', '.join(names)}.")
    for name, value in table.items():
        remedy = "Give a number, or one per joint."
        check_content(value, _GAINS, path=path, place=name, error=ArgumentError, remedy=remedy)
