"""Read models of servos from TOML files: the law of the drives, and which parameters are known or are to be found.

`read_servo_model` gives the `ServoModel` that `dynid actuate` identifies; docs/servos.md has an example of a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from dynid.checks import LARGEST_SIGNAL
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.safe_files.records import as_record
from dynid.safe_files.small_files import read_toml
from dynid.servos.drive_laws import MotorLaw, PositionLaw
from dynid.servos.kinds import kind_of
from dynid.servos.servo_model import ServoModel, ServoParameter

Number = Annotated[float, msgspec.Meta(ge=-LARGEST_SIGNAL, le=LARGEST_SIGNAL)]
"""A number in a file."""
Numbers = Annotated[list[Number], msgspec.Meta(min_length=1)] | Number
"""One number for all joints, or a list with one per joint."""
Group = Annotated[list[str], msgspec.Meta(min_length=2)]
"""Names of joints that are alike."""
LAWS: dict[str, tuple[type[PositionLaw | MotorLaw], tuple[str, ...]]] = {
    "position": (PositionLaw, ("kp", "kd", "ki")),
    "motor": (MotorLaw, ("kp", "voltage", "duty_per_gain")),
}
"""Name of a law in files -> its class, and the keys of the numbers that it takes."""
USUAL = ("armature", "viscous", "coulomb", "load_drive", "load_external", "offset", "delay", "gain_scale")
"""Parameters that are free if a file has no key ``free`` (experiment: xl330 and go2 are predicted better by them than
by terms chosen inside the training logs)."""
OF_ASSEMBLY = ("zero", "offset")
"""Parameters that depend on how a joint was put together, not on its type: alike joints do not share them."""


class LawFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Content of a file: its fields are the keys of the file, which `read_servo_model` describes."""

    kind: Literal["position", "motor"]
    kp: Numbers | None = None
    kd: Numbers | None = None
    ki: Numbers | None = None
    voltage: Numbers | None = None
    duty_per_gain: Number | None = None
    free: list[str] | None = None
    shared: list[str] = []
    alike: bool | list[Group] = False
    start: dict[str, Numbers] = {}
    fixed: dict[str, Numbers] = {}
    lower: dict[str, Number] = {}
    upper: dict[str, Number] = {}


def read_servo_model(path: str | Path, robot: Robot) -> ServoModel:
    r"""Read a model of servos from a TOML file.

    The file has the ``kind`` of law, "position" (kp, kd, ki) or "motor" (kp, voltage, duty_per_gain), the parameters
    that are ``free`` in each joint (without this key all that drives usually have) and those that are ``shared`` by
    all, and tables ``[start]``, ``[fixed]``, ``[lower]`` and ``[upper]`` with numbers for parameters. ``alike`` names
    joints of one type, such as the hips of four legs, as a list of lists; ``alike = true`` stands for joints whose
    names differ in the first word only. They share all parameters but zeros and offsets.

    Args:
        path: The file.
        robot: The robot.

    Raises:
        ArgumentError: The file does not describe a model; the message states what is wrong.

    Example:
        >>> text = "kind = 'position'\nkp = 60.0\nkd = 2.0\nfree = ['viscous']\n[fixed]\narmature = 0.05\n"
        >>> written = (folder / "servo.toml").write_text(text)
        >>> [entry.name for entry in dynid.servos.read_servo_model(folder / "servo.toml", pendulum).entries]
        ['viscous joint1']
    """
    remedy = "See docs/servos.md for an example."
    content = read_toml(path, error=ArgumentError, remedy=remedy)
    if {"position", "effort", "time"} & set(content):
        remedy = f"Give kind, one of {', '.join(LAWS)}; see docs/servos.md."
        raise ArgumentError("this is a channel map, not the law of drives", path=path, remedy=remedy)
    remedy = f"Kinds are {', '.join(LAWS)}. {remedy}"
    file = as_record(content, LawFile, path=path, error=ArgumentError, remedy=remedy)
    make, names = LAWS[file.kind]
    # numbers of the law in the file, by their keys; also those of the other law, to refuse them
    given = {
        name: getattr(file, name) for _, known in LAWS.values() for name in known if getattr(file, name) is not None
    }
    try:
        if foreign := set(given) - set(names):
            raise ArgumentError(f"a {file.kind} law has no {sorted(foreign)[0]}", remedy=f"It has {', '.join(names)}.")
        return ServoModel(robot, make(**given), _parameters(file, _alike(file.alike, robot)))
    except ArgumentError as error:
        raise ArgumentError(error.reason, path=path, remedy=error.remedy) from error


def _alike(given: bool | list[list[str]], robot: Robot) -> tuple[tuple[str, ...], ...]:
    """Return the groups of names of alike joints.

    Args:
        given: The file's key ``alike``: the groups; or True to find them by the names of joints that differ in the
            first word only.
        robot: The robot.
    """
    if not isinstance(given, bool):
        return tuple(tuple(group) for group in given)
    groups: dict[tuple[str, str], list[str]] = {}  # (name without its first word, unit of the joint) -> names
    for name, unit in zip(robot.joint_names, robot.position_units, strict=True):
        # front_left_hip -> left_hip: what follows the first word
        groups.setdefault((name.replace("-", "_").partition("_")[2], unit), []).append(name)
    found = tuple(tuple(group) for (rest, _), group in groups.items() if rest and len(group) > 1)
    if given and not found:
        raise ArgumentError(
            "alike is true, and no joints have names that differ in the first word only",
            remedy='List them: alike = [["left_hip", "right_hip"], ...].',
        )
    return found if given else ()


def _parameters(file: LawFile, alike: tuple[tuple[str, ...], ...]) -> tuple[ServoParameter, ...]:
    """Make the parameters of a file, in its order; joints in the same group of ``alike`` share them."""
    usual = (*USUAL, *(("kt", "resistance") if file.kind == "motor" else ()))
    elsewhere = {*file.shared, *file.fixed}
    free = [kind for kind in usual if kind not in elsewhere] if file.free is None else file.free
    named = [*free, *file.shared]  # all that are to be found
    for name in (*named, *file.fixed):
        kind_of(name)  # refuses unknown names
    for name in (*file.start, *file.lower, *file.upper):
        if name not in named:
            raise ArgumentError(f"'{name}' has numbers but is not free", remedy="Name it under free or shared.")
    found = [
        ServoParameter(
            name,
            start=file.start.get(name),
            share="all" if name in file.shared else () if name in OF_ASSEMBLY else alike,
            lower=file.lower.get(name),
            upper=file.upper.get(name),
        )
        for name in named
    ]
    return (*found, *(ServoParameter(name, start=value, free=False) for name, value in file.fixed.items()))
