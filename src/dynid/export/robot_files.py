"""Robot files of an identification: written, read back from disk, and judged on the held-out data.

The MJCF and the URDF hold the plain model, `Identification.identified`: links, rotor inertias, viscous and dry friction
and what else the format has a place for. What it has none for is named, and the file's own error stated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from dynid.identification.identify import Identification
from dynid.identification.validation import Validation, robot_error
from dynid.processing.experiment import Experiment
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.mjcf.tendons import holds_as_tendon
from dynid.robot.formats.mjcf.write import write_mjcf
from dynid.robot.formats.urdf import describe_lost_gravity, read_urdf, write_urdf
from dynid.robot.model import Robot
from dynid.robot.parts import PlacedTerm
from dynid.safe_text import safe_name
from dynid.terms.base import StateTerm
from dynid.terms.motors import RotorInertia

NEAR = 1.1
"""Ratio of a file's error to the judged one up to which they count as equal (convention: 10 %)."""


def _held(robot: Robot) -> dict[str, float]:
    return {joint.name: 0.0 for joint in robot.joints if not joint.moves}


def _read_mjcf(path: Path, robot: Robot) -> Robot:
    # only a file that keeps the text of its source has joints that are held
    return read_mjcf(path, hold=_held(robot) if robot.source is not None and robot.source.format == "mjcf" else {})


@dataclass(frozen=True, slots=True)
class _Format:
    suffix: str
    holds: Callable[[Robot, PlacedTerm], bool]
    holds_gravity: bool
    write: Callable[..., None]
    read: Callable[[Path, Robot], Robot]
    """Reads a file back, given the robot that it describes."""


FORMATS: Mapping[str, _Format] = {
    "URDF": _Format(
        ".urdf",
        lambda _, placed: placed.term.urdf_attribute is not None or isinstance(placed.term, RotorInertia),
        False,
        partial(write_urdf, allow_unphysical=True),  # an estimate may be unphysical
        lambda path, robot: read_urdf(path, gravity=robot.gravity, hold=_held(robot)),
    ),
    "MJCF": _Format(
        ".xml",
        lambda robot, placed: placed.term.mjcf_attribute is not None or holds_as_tendon(robot, placed),
        True,
        write_mjcf,
        _read_mjcf,
    ),
}
"""Name -> how files of the format are written and read, and what they hold."""


def _put_on_geometry(robot: Robot, found: Robot) -> Robot:
    """A file's inertias and terms on the robot's own geometry: the position of held joints is not in the file."""
    places = {joint.name: joint.T_parent_joint for joint in found.joints}
    held = [joint for joint in robot.joints if not joint.moves and joint.name in places]
    if all(np.array_equal(joint.T_parent_joint, places[joint.name]) for joint in held):
        return found
    terms = {joint.name: joint.terms for joint in found.joints}
    return replace(
        robot,
        links=tuple(replace(link, inertia=found.link(link.name).inertia) for link in robot.links),
        joints=tuple(replace(joint, terms=terms.get(joint.name, ())) for joint in robot.joints),
        couplings=found.couplings,
        gravity=found.gravity,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotFile:
    """A written robot file, judged by itself."""

    format: str
    path: Path
    error: float | None
    """Relative torque error of the robot in the file on the held-out data [%]; None where nothing was held out."""
    judged: float | None
    """Relative torque error of the whole identified model on the same data [%]."""
    lacks: tuple[str, ...]
    """Terms of the plain model that the format has no place for, in words."""
    by_kind: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Name of a `KindError` -> error of the file and of the whole model [%], where slides stand beside turning joints:
    newtons and newton metres cannot be added."""

    @property
    def is_near(self) -> bool:
        """Whether the file predicts about as well as the model that was judged, turning joints and slides apart."""
        if self.error is None or self.judged is None:
            return True
        return all(error <= NEAR * judged for error, judged in self.by_kind.values() or [(self.error, self.judged)])

    @property
    def sentence(self) -> str:
        """What a person should know about the file."""
        if self.error is None or self.judged is None:
            text = f"{self.format}: not judged, because no data were held out"
        else:
            text = f"{self.format}: torque error {self.error:.2f} % on held-out data, against {self.judged:.2f} % "
            text += "of the whole model"
            apart = [f"{name} {error:.2f} against {judged:.2f} %" for name, (error, judged) in self.by_kind.items()]
            text += f" ({', '.join(apart)})" if apart else ""
        return f"{text}; the format has no place for {', '.join(self.lacks)}" if self.lacks else text

    def to_json(self) -> dict[str, object]:
        """The judgement as values that JSON can hold."""
        return {
            "format": self.format,
            "file": self.path.name,
            "relative_error_percent": self.error,
            "judged_error_percent": self.judged,
            "by_kind_percent": {name: list(errors) for name, errors in self.by_kind.items()},
            "lacks": list(self.lacks),
        }


def write_robot_files(
    fit: Identification,
    folder: str | os.PathLike[str],
    held_out: Experiment | Sequence[Experiment] = (),
    *,
    check: Validation | None = None,
    force: bool = False,
) -> tuple[RobotFile, ...]:
    """Write an identified robot in every format, read each file back from disk, and judge it on held-out data.

    Args:
        fit: The identification.
        folder: Folder for the files, which are named after the robot.
        held_out: The experiments of the validation.
        check: The validation of the whole model on them.
        force: Whether existing files may be replaced.

    Raises:
        ExportError: A file exists or cannot be written.
    """
    robot, files = fit.identified, []
    for name, kind in FORMATS.items():
        path = Path(folder) / f"{safe_name(robot.name)}_identified{kind.suffix}"
        lost = [placed for placed in robot.terms if placed.term.value and not kind.holds(robot, placed)]
        gone = [(placed.owner, placed.term) for placed in lost]
        joints = (j.with_terms(tuple(t for t in j.terms if (j.name, t) not in gone)) for j in robot.joints)
        kind.write(replace(robot, joints=tuple(joints)), path, force=force)
        gravity = "" if kind.holds_gravity else describe_lost_gravity(robot.gravity)
        error, by_kind = None, dict[str, tuple[float, float]]()
        if check is not None:
            found = _put_on_geometry(robot, kind.read(path, robot))
            error, apart = robot_error(found, held_out, band_hz=check.band_hz, trim_s=check.trim_s)
            by_kind = {part.name: (apart[part.name], part.error) for part in check.by_kind}
        judged = None if check is None else check.relative_error
        nowhere = [term for term in fit.plain.terms if not isinstance(term, StateTerm)]  # no robot carries them
        named = [term.kind for term in (*(placed.term for placed in lost), *nowhere)]
        lacks = tuple(dict.fromkeys(filter(None, [*named, gravity])))
        files.append(RobotFile(format=name, path=path, error=error, judged=judged, lacks=lacks, by_kind=by_kind))
    return tuple(files)


def describe_files(files: Sequence[RobotFile], folder: object) -> str:
    """One line for each file, and where the whole model is."""
    return "\n".join([*(f"{file.sentence}." for file in files), f"{folder}/result.json holds the whole model."])
