"""Models of servos from TOML files: the law of the drives, and which parameters are known or to be found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynid.actuators.alike import joint_groups
from dynid.actuators.drive_laws import DriveLaw, MotorLaw, PositionLaw
from dynid.actuators.kinds import KINDS
from dynid.actuators.servo_model import ServoModel, ServoParameter
from dynid.errors import ArgumentError
from dynid.files.schema import check_content, either, flag, list_of, mapping_of, number, one_of, table, text
from dynid.files.small_files import read_toml
from dynid.robot.model import Robot

LARGEST = 1e12
"""Largest number of a file (convention: far beyond those of real drives)."""
_NUMBERS = either(list_of(number(-LARGEST, LARGEST), least=1), number(-LARGEST, LARGEST))
_BOUNDS = mapping_of(number(-LARGEST, LARGEST))
_LAWS: dict[str, tuple[type[PositionLaw] | type[MotorLaw], tuple[str, ...]]] = {
    "position": (PositionLaw, ("kp", "kd", "ki")),
    "motor": (MotorLaw, ("kp", "voltage", "duty_per_gain")),
}
"""Kinds of laws: the class, and the numbers that it takes."""
_REMEDY = "See docs/servos.md for an example."


def read_servo_model(path: str | Path, robot: Robot) -> ServoModel:
    r"""Read a model of servos from a TOML file.

    The file has the ``kind`` of law, "position" (kp, kd, ki) or "motor" (kp, voltage, duty_per_gain), the parameters
    that are ``free`` in each joint and those that are ``shared`` by all, and tables ``[start]``, ``[fixed]``,
    ``[lower]``, ``[upper]`` and ``[prior]`` (value and standard deviation) with numbers for parameters. ``candidates``
    are parameters that are taken up where they predict motions better (`dynid.actuators.select_terms`). ``alike`` names
    joints of one type, such as the hips of four legs, as a list of lists; ``alike = true`` stands for joints whose
    names differ in the first word only. Tests then decide which parameters they share.

    Args:
        path: The file.
        robot: The robot.

    Raises:
        ArgumentError: The file does not describe a model; the message states what is wrong.

    Example:
        >>> text = "kind = 'position'\nkp = 60.0\nkd = 2.0\nfree = ['viscous']\n[fixed]\narmature = 0.05\n"
        >>> written = (folder / "servo.toml").write_text(text)
        >>> [entry.name for entry in dynid.actuators.read_servo_model(folder / "servo.toml", pendulum).entries]
        ['viscous joint1']
    """
    if not Path(path).exists():
        raise ArgumentError("there is no such file", path=path, remedy="Give the file of a model of servos.")
    content = read_toml(path, error=ArgumentError, remedy=_REMEDY)
    kind = content.get("kind")
    if kind not in _LAWS:
        what = "the file says no kind of law" if kind is None else f"kind is {kind!r}"
        if {"position", "effort", "time"} & set(content):
            what = "this is a channel map, not the law of drives"
        raise ArgumentError(what, path=path, remedy=f"Give kind, one of {', '.join(_LAWS)}; see docs/servos.md.")
    make, names = _LAWS[kind]
    alike = either(flag, list_of(list_of(text(), least=2)))
    lists = {"free": list_of(text()), "shared": list_of(text()), "candidates": list_of(text()), "alike": alike}
    numbers = {"start": mapping_of(_NUMBERS), "fixed": mapping_of(_NUMBERS), "lower": _BOUNDS, "upper": _BOUNDS,
               "prior": mapping_of(list_of(number(-LARGEST, LARGEST), least=2, most=2))}  # fmt: skip
    fields = {name: _NUMBERS for name in names} | lists | numbers
    check_content(content, table({"kind": one_of(kind)}, fields), path=path, remedy=_REMEDY, error=ArgumentError)
    law: DriveLaw = make(**{name: content[name] for name in names if name in content})
    try:
        alike_joints, candidates = _alike(content.get("alike", False), robot), tuple(content.get("candidates", ()))
        return ServoModel(robot, law, tuple(_parameters(content)), alike=alike_joints, candidates=candidates)
    except ArgumentError as error:
        raise ArgumentError(error.reason, path=path, remedy=error.remedy) from error


def _alike(given: bool | list[list[str]], robot: Robot) -> tuple[tuple[str, ...], ...]:
    """Groups of alike joints as a file states them."""
    if not isinstance(given, bool):
        return tuple(tuple(group) for group in given)
    units = dict(zip(robot.joint_names, robot.position_units, strict=True))
    named = joint_groups(robot.joint_names) if given else []
    kinds = [tuple(name for name in group if units[name] == unit) for group in named for unit in ("rad", "m")]
    found = tuple(group for group in kinds if len(group) > 1)
    if given and not found:
        raise ArgumentError(
            "alike is true, and no joints have names that differ in the first word only",
            remedy='List them: alike = [["left_hip", "right_hip"], ...].',
        )
    return found


def _parameters(content: dict[str, Any]) -> list[ServoParameter]:
    """The parameters of a file, in its order."""
    start, fixed = content.get("start", {}), content.get("fixed", {})
    bounds = {side: content.get(side, {}) for side in ("lower", "upper")}
    shared = list(content.get("shared", ()))
    named = [*content.get("free", ()), *shared]
    prior = content.get("prior", {})
    for name in (*start, *prior, *bounds["lower"], *bounds["upper"]):
        if name not in named:
            raise ArgumentError(f"'{name}' has numbers but is not free", remedy="Name it under free or shared.")
    found = [
        ServoParameter(
            name,
            start=start.get(name),
            share="all" if name in shared else "each",
            lower=bounds["lower"].get(name),
            upper=bounds["upper"].get(name),
            prior=(prior[name][0], prior[name][1]) if name in prior else None,
        )
        for name in named
    ]
    unknown = [name for name in (*named, *fixed) if name not in KINDS]
    if unknown:
        remedy = f"Choose among {', '.join(KINDS)}."
        raise ArgumentError(f"there is no parameter '{unknown[0]}' of a servo", remedy=remedy)
    return found + [ServoParameter(name, start=value, free=False) for name, value in fixed.items()]
