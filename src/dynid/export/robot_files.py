"""Robot files of an identification: written, read back from disk, and judged on the held-out data.

An identification has a plain model, `Identification.identified`, that simulators can hold, and a rich one with further
friction, called the whole model here. The MJCF and the URDF hold the plain one: links, rotor inertias, viscous and dry
friction, and other terms (contributions to the joint torques) as far as the format has a place for them.

``dynid identify`` calls `write_robot_files`. For each file it learns which terms are missing, and two torque errors on
held-out data: that of the robot that the file describes and that of the whole model.
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

NEAR_ERROR_RATIO = 1.1
"""Largest ratio of the error of a file to the error of the whole model at which they count as equal (convention)."""


def _fixed_positions(robot: Robot) -> dict[str, float]:
    """Joint -> position zero, for the joints that do not move: some of them move in the robot's own file."""
    return {joint.name: 0.0 for joint in robot.joints if not joint.moves}


def _read_mjcf(path: Path, robot: Robot) -> Robot:
    """Read an MJCF file back, given the robot that it describes."""
    # a new file has no joint for those that do not move; a file that keeps the text of its source may have them
    keeps_text = robot.source is not None and robot.source.format == "mjcf"
    return read_mjcf(path, hold=_fixed_positions(robot) if keeps_text else {})


@dataclass(frozen=True, slots=True)
class _Format:
    """How robot files of one format are written and read."""

    suffix: str
    """Ending of the files."""
    holds: Callable[[Robot, PlacedTerm], bool]
    """Whether the format has a place for a term of a robot."""
    holds_gravity: bool
    """Whether the format has a place for gravity."""
    write: Callable[..., None]
    """Writes a robot: ``write(robot, path, force=...)``."""
    read: Callable[[Path, Robot], Robot]
    """Reads a file back, given the robot that it describes."""


FORMATS: Mapping[str, _Format] = {
    "URDF": _Format(
        suffix=".urdf",
        holds=lambda _, placed: placed.term.urdf_attribute is not None or isinstance(placed.term, RotorInertia),
        holds_gravity=False,
        write=partial(write_urdf, allow_unphysical=True),  # an estimate may be unphysical
        read=lambda path, robot: read_urdf(path, gravity=robot.gravity, hold=_fixed_positions(robot)),
    ),
    "MJCF": _Format(
        suffix=".xml",
        holds=lambda robot, placed: placed.term.mjcf_attribute is not None or holds_as_tendon(robot, placed),
        holds_gravity=True,
        write=write_mjcf,
        read=_read_mjcf,
    ),
}
"""Name of a format -> how its files are written and read."""


def _put_on_geometry(robot: Robot, found: Robot) -> Robot:
    """Put the inertias and terms of the robot read from a file on the geometry of the robot that was written.

    A joint that can move in the file but is fixed in the robot was read at position zero. If it is fixed elsewhere in
    the robot, the geometry of the two differs. Otherwise the robot from the file is returned unchanged.
    """
    poses = {joint.name: joint.T_parent_joint for joint in found.joints}
    fixed = [joint for joint in robot.joints if not joint.moves and joint.name in poses]
    if all(np.array_equal(joint.T_parent_joint, poses[joint.name]) for joint in fixed):
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
    """A written robot file, and the torque error of the robot that it describes."""

    format: str
    """A key of `FORMATS`."""
    path: Path
    """The file."""
    error: float | None
    """Relative torque error of the robot in the file on the held-out data [%]; None where nothing was held out."""
    judged: float | None
    """Relative torque error of the whole identified model on the same data [%]."""
    lacks: tuple[str, ...]
    """Kinds of terms that the format has no place for, and gravity, as texts for people."""
    by_kind: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Name of a `KindError` -> error of the file and of the whole model [%], for robots with both sliding and turning
    joints: newtons and newton metres cannot be added. Empty for other robots."""

    @property
    def is_near(self) -> bool:
        """Whether the file predicts about as well as the whole model, for turning and for sliding joints."""
        if self.error is None or self.judged is None:
            return True
        pairs = self.by_kind.values() or [(self.error, self.judged)]
        return all(error <= NEAR_ERROR_RATIO * judged for error, judged in pairs)

    @property
    def sentence(self) -> str:
        """What a person should know about the file."""
        if self.error is None or self.judged is None:
            text = f"{self.format}: not judged, because no data were held out"
        else:
            text = f"{self.format}: torque error {self.error:.2f} % on held-out data, against {self.judged:.2f} % "
            text += "of the whole model"
            kinds = [f"{name} {error:.2f} against {judged:.2f} %" for name, (error, judged) in self.by_kind.items()]
            text += f" ({', '.join(kinds)})" if kinds else ""
        return f"{text}; the format has no place for {', '.join(self.lacks)}" if self.lacks else text

    def to_json(self) -> dict[str, object]:
        """Name, errors and missing terms of the file as values that JSON can hold."""
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
        check: The validation of the whole model on them; None where nothing was held out.
        force: Whether existing files may be replaced.

    Raises:
        ExportError: A file exists or cannot be written.
    """
    robot = fit.identified
    files = []
    for name, file_format in FORMATS.items():
        path = Path(folder) / f"{safe_name(robot.name)}_identified{file_format.suffix}"
        lost = [placed for placed in robot.terms if placed.term.value and not file_format.holds(robot, placed)]
        file_format.write(_without_terms(robot, lost), path, force=force)
        # a sentence, empty for the usual gravity
        gravity = "" if file_format.holds_gravity else describe_lost_gravity(robot.gravity)
        error = None
        by_kind: dict[str, tuple[float, float]] = {}
        if check is not None:
            found = _put_on_geometry(robot, file_format.read(path, robot))
            # total error, and the errors of turning and of sliding joints by name [%]
            error, error_of_kind = robot_error(found, held_out, band_hz=check.band_hz, trim_s=check.trim_s)
            by_kind = {part.name: (error_of_kind[part.name], part.error) for part in check.by_kind}
        judged = None if check is None else check.relative_error
        # a term of more than q, dq and ddq (with memory, say) cannot even be in a `Robot`
        in_no_robot = [term for term in fit.plain.terms if not isinstance(term, StateTerm)]
        kinds = [term.kind for term in (*(placed.term for placed in lost), *in_no_robot)]
        lacks = tuple(dict.fromkeys(filter(None, [*kinds, gravity])))  # each once
        files.append(RobotFile(format=name, path=path, error=error, judged=judged, lacks=lacks, by_kind=by_kind))
    return tuple(files)


def _without_terms(robot: Robot, lost: Sequence[PlacedTerm]) -> Robot:
    """Make a copy of the robot whose joints lack these terms."""
    lost_at = [(placed.owner, placed.term) for placed in lost]  # name of the joint, term
    joints = (j.with_terms(tuple(t for t in j.terms if (j.name, t) not in lost_at)) for j in robot.joints)
    return replace(robot, joints=tuple(joints))


def describe_files(files: Sequence[RobotFile], folder: object) -> str:
    """Write one line for each file, and a last one that says where the whole model is."""
    return "\n".join([*(f"{file.sentence}." for file in files), f"{folder}/result.json holds the whole model."])
