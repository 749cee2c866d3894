"""Control laws from TOML files: ``kind = "pd"`` and its gains."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError
from dynid.files.small_files import read_toml
from dynid.loop.laws import PD, PID, Cascade, ComputedTorqueLaw, ControlLaw
from dynid.robot.model import Robot

_KINDS: dict[str, Any] = {"pd": PD, "pid": PID, "cascade": Cascade, "computed_torque": ComputedTorqueLaw}

FASTEST_HZ = 1e5
"""Highest rate of a control law [Hz] (convention: a drive's inner loop)."""


def read_law(path: str | Path, model: Robot | None = None) -> ControlLaw:
    r"""Read a law from a TOML file with its ``kind`` and its gains, ``kp = [...]`` etc.

    The kinds are "pd", "pid", "cascade" and "computed_torque". The file may state the rate of the law,
    too: ``rate_hz``, see `read_law_rate`.

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
    if not Path(path).exists():
        raise ArgumentError("there is no such file", path=path, remedy="Give the file of a control law.")
    remedy = "Write kp = [300.0, 60.0]: closed brackets, and a digit on both sides of every decimal point."
    table = read_toml(path, error=ArgumentError, remedy=remedy)
    kind, _ = table.pop("kind", None), table.pop("rate_hz", None)
    headings = [name for name, value in table.items() if isinstance(value, dict)]
    if headings:
        remedy = "Leave the heading out: kind and gains stand at the top."
        raise ArgumentError(f"the law stands under a heading, [{headings[0]}]", path=path, remedy=remedy)
    if not isinstance(kind, str) or kind not in _KINDS:
        reason = "it has no kind" if kind is None else f"kind is {kind!r}"
        raise ArgumentError(reason, path=path, remedy=f"Give kind, one of {', '.join(_KINDS)}.")
    known = {field.name: field for field in fields(_KINDS[kind]) if field.name != "model"}
    needed = [name for name, field in known.items() if field.default is MISSING or kind == "computed_torque"]
    for name in table:
        if name not in known:
            remedy = f"Give {', '.join(known)}; other terms, such as feed-forward, need a UserLaw in Python."
            raise ArgumentError(f"a law of kind {kind!r} has no {name}", path=path, remedy=remedy)
    missing = [name for name in needed if name not in table]
    if missing:
        raise ArgumentError(f"{', '.join(missing)} is missing", path=path, remedy=f"Give {', '.join(needed)}.")
    if kind == "computed_torque":
        if model is None:
            remedy = "Call read_law(path, model=robot)."
            raise ArgumentError("computed torque needs the controller's model", path=path, remedy=remedy)
        table["model"] = model
    try:
        law: ControlLaw = _KINDS[kind](**table)
    except ArgumentError as error:
        raise ArgumentError(error.reason, path=path, remedy=error.remedy) from error
    return law


def read_law_rate(path: str | Path) -> float | None:
    """The rate of a law that its file states, ``rate_hz = 1000`` [Hz]; None where it states none.

    Raises:
        ArgumentError: It is no rate up to 100 kHz.
    """
    rate = read_toml(path, error=ArgumentError).get("rate_hz")
    if rate is not None and not (
        isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate <= FASTEST_HZ
    ):
        raise ArgumentError(f"rate_hz is {rate!r}", path=path, remedy="Give the rate of the law [Hz], at most 1e5.")
    return None if rate is None else float(rate)
