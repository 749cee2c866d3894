"""Robot files of an identification: each is written, read back from disk and judged on the held-out data by itself.

The verdict judges the whole identified model. A URDF or MJCF holds a part of its terms only, so that the robot in the
file is refitted with the terms that the format holds (`dynid.export.restricted_model`), and its own error stands beside
the judged one. Friction with memory needs MuJoCo 4.0, so it goes into an MJCF of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from dynid.export.restricted_model import Capacity, RestrictedModel, restrict_models
from dynid.files import safe_name
from dynid.links.identify import Identification
from dynid.links.validation import Validation, robot_error
from dynid.processing.experiment import Experiment
from dynid.robot.formats.gravity_note import describe_lost_gravity
from dynid.robot.formats.mjcf.gears import read_gears
from dynid.robot.formats.mjcf.read import read_mjcf_with_memory
from dynid.robot.formats.mjcf.tendons import holds_as_tendon
from dynid.robot.formats.mjcf.write import write_mjcf
from dynid.robot.formats.urdf import read_urdf, write_urdf
from dynid.robot.model import Robot
from dynid.terms.base import Term

NEAR = 1.1
"""Ratio of a file's error to the judged one up to which they count as equal (convention: 10 %)."""


class _Write(Protocol):
    def __call__(self, model: RestrictedModel, path: Path, *, force: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class RobotFormat:
    """A file format of robots: what it holds, and how it is written and read."""

    name: str
    suffix: str
    """End of the file's name behind that of the robot."""
    capacity: Capacity
    write: _Write
    read: Callable[[Path, Robot], RestrictedModel]
    """Reads a file back, given the robot that it describes."""

    def missing(self, fit: Identification) -> dict[str, Term]:
        """The identified terms that the format cannot hold, by the name of their parameter."""
        first = 10 * fit.robot.dof
        own = zip(fit.base.layout.names[first:], fit.robot.terms, fit.standard[first:].tolist(), strict=True)
        lost = {name: placed.term for name, placed, value in own if value and not self.capacity.holds(placed.term)}
        return lost | {term.name: term for term in fit.terms if not self.capacity.carries(fit.robot, term)}

    def lost_gravity(self, robot: Robot) -> tuple[float, ...]:
        """Gravity (3,) of a robot that has to be set where a file is loaded [m/s^2]; empty where it need not."""
        is_lost = not self.capacity.tilt and describe_lost_gravity(robot.gravity)
        return tuple(robot.gravity.tolist()) if is_lost else ()


def _write_urdf(model: RestrictedModel, path: Path, *, force: bool) -> None:
    write_urdf(model.robot, path, force=force, allow_unphysical=True)  # an estimate may be unphysical


def _write_mjcf(model: RestrictedModel, path: Path, *, force: bool) -> None:
    # motors of all joints or of none, so that the control inputs are the log's torques in the order of the joints
    gears = dict(zip(model.robot.joint_names, (1.0 / model.gain_vector).tolist(), strict=True)) if model.gains else {}
    write_mjcf(model.robot, path, yielding=model.yielding, gears=gears, force=force)


def _read_urdf(path: Path, robot: Robot) -> RestrictedModel:
    held = {joint.name: 0.0 for joint in robot.joints if not joint.moves}
    return RestrictedModel(_on_geometry(robot, read_urdf(path, gravity=robot.gravity, hold=held)))


def _read_mjcf(path: Path, robot: Robot) -> RestrictedModel:
    # only a file that keeps the text of its source has joints that are held
    is_update = robot.source is not None and robot.source.format == "mjcf"
    held = {joint.name: 0.0 for joint in robot.joints if not joint.moves} if is_update else {}
    found, yielding = read_mjcf_with_memory(path, hold=held)
    gains = {joint: 1.0 / gear for joint, gear in read_gears(path).items()}
    return RestrictedModel(_on_geometry(robot, found), yielding, gains)


def _on_geometry(robot: Robot, found: Robot) -> Robot:
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


def _mjcf_holds(term: Term) -> bool:
    return term.mjcf_attribute is not None or holds_as_tendon(term)


FORMATS = (
    RobotFormat("URDF", ".urdf", Capacity(holds=lambda term: term.urdf_attribute is not None), _write_urdf, _read_urdf),
    RobotFormat(
        "MJCF", ".xml", Capacity(holds=_mjcf_holds, tilt=True, polynomial=True, gains=True), _write_mjcf, _read_mjcf
    ),
)
"""The formats that every identification is written in."""
PRESLIDING = RobotFormat(
    "MJCF of MuJoCo 4",
    "_mujoco4.xml",
    Capacity(holds=_mjcf_holds, tilt=True, polynomial=True, yielding=True, gains=True),
    _write_mjcf,
    _read_mjcf,
)
"""A further file for friction with memory; older versions of MuJoCo refuse it."""


ROTOR = "rotor inertia"
"""What `RobotFile.kinds` calls `RotorInertia`."""


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
    """Names of the identified parameters whose terms the format cannot hold."""
    kinds: tuple[str, ...]
    """The kinds of these terms, in words."""
    by_kind: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Name of a `KindError` -> error of the file and of the whole model [%], where slides stand beside turning joints:
    newtons and newton metres cannot be added."""
    gravity: tuple[float, ...] = ()
    """Gravity (3,) that the file was judged with, but does not hold, in the root link's frame [m/s^2]; empty where the
    file holds it or it is the usual one."""

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
            figures = f"{self.format}: not judged, because no data were held out"
            figures += f"; it needs {self.lost_gravity}" if self.gravity else ""
        else:
            figures = f"{self.format}: torque error {self.error:.2f} % on held-out data, against {self.judged:.2f} % "
            figures += "of the whole model"
            apart = [f"{name} {error:.2f} against {judged:.2f} %" for name, (error, judged) in self.by_kind.items()]
            figures += f" ({', '.join(apart)})" if apart else ""
            figures += f", with {self.lost_gravity}" if self.gravity else ""
            if self.is_near:
                return figures + self._absorbed
        return f"{figures}; the format cannot hold {', '.join(self.kinds)}{self._absorbed}" if self.kinds else figures

    @property
    def lost_gravity(self) -> str:
        """What to say of gravity that is not in the file; empty where there is nothing to say."""
        return describe_lost_gravity(self.gravity) if self.gravity else ""

    @property
    def _absorbed(self) -> str:
        """What the masses of the file stand for where it cannot hold rotor inertias."""
        return "; its masses and inertias absorb the rotor inertias" if ROTOR in self.kinds else ""

    def to_json(self) -> dict[str, object]:
        """The judgement as values that JSON can hold."""
        return {
            "format": self.format,
            "file": self.path.name,
            "relative_error_percent": self.error,
            "judged_error_percent": self.judged,
            "by_kind_percent": {name: list(errors) for name, errors in self.by_kind.items()},
            "lacks": list(self.lacks),
            "lacks_gravity": list(self.gravity) or None,
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

    Example:
        >>> [file.format for file in dynid.export.write_robot_files(fit, folder)]
        ['URDF', 'MJCF']
    """
    remembers = any(term.has_memory for term in fit.terms)
    files = []
    kinds = (*FORMATS, PRESLIDING) if remembers else FORMATS
    models = restrict_models(fit, [kind.capacity for kind in kinds])
    for kind, model in zip(kinds, models, strict=True):
        path = Path(folder) / f"{safe_name(fit.robot.name)}_identified{kind.suffix}"
        kind.write(model, path, force=force)
        error, by_kind = None, dict[str, tuple[float, float]]()
        if check is not None:
            found = kind.read(path, fit.robot)
            error, apart = robot_error(
                found.robot,
                held_out,
                terms=found.yielding,
                gains=found.gain_vector,
                band_hz=check.band_hz,
                trim_s=check.trim_s,
            )
            by_kind = {part.name: (apart[part.name], part.error) for part in check.by_kind}
        judged = None if check is None else check.relative_error
        lost = kind.missing(fit)
        words = tuple(dict.fromkeys(term.kind for term in lost.values()))
        files.append(RobotFile(format=kind.name, path=path, error=error, judged=judged, lacks=tuple(lost), kinds=words,
                               by_kind=by_kind, gravity=kind.lost_gravity(fit.robot)))  # fmt: skip
    return tuple(files)


def describe_files(files: Sequence[RobotFile], folder: object) -> str:
    """One line for each file, and where the whole model is."""
    lines = [file.sentence + "." for file in files]
    if any(file.lacks for file in files):
        lines.append(f"The file {folder}/result.json holds every term.")
    judged = [file for file in files if file.lacks and file.error is not None and file.judged is not None]
    better = [file.format for file in judged if NEAR * (file.error or 0.0) < (file.judged or 0.0)]
    if better:
        lines.append(
            f"On held-out data the whole model is worse than {', '.join(better)} without some of its terms: these "
            "do not hold there. Compare with --set selection=false."
        )
    return "\n".join(lines)
