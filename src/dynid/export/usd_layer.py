"""Identified masses and joint attributes as a layer over a USD asset, for Isaac Sim and other USD simulators.

The layer has the asset as its sublayer and overrides, in the units of the asset:

Prim of a link
    ``UsdPhysics.MassAPI``: mass; centre of mass and principal axes in the prim's frame; principal moments.
Prim of a joint
    ``PhysxJointAxisAPI:angular`` or ``:linear`` of PhysX: armature; staticFrictionEffort and dynamicFrictionEffort,
    both the Coulomb friction; viscousFrictionCoefficient, per degree where joints turn.

Prims are found by the names of links and joints. The frames of the link prims must be those of the robot's links, which
is checked at the positions of the asset, taken as zero. USD keeps these numbers with single precision.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.checks import require_library
from dynid.decompositions import eigh
from dynid.errors import DataError, ExportError
from dynid.files import write_atomically
from dynid.findings import Finding
from dynid.kernels import link_pose
from dynid.parameters.layout import parameter_layout
from dynid.robot.formats.gravity_note import describe_lost_gravity
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia

SAME_FRAME = 1e-3
"""Largest difference of poses in asset and robot [m, and entries of rotations]; convention: digits of assets."""
_HELD = (Viscous, Coulomb, RotorInertia)
"""Terms that the joint attributes hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsdOverlay:
    """A layer over a USD asset."""

    layer: Any
    """``pxr.Sdf.Layer`` in memory."""
    asset: Path
    """The file that it lies over."""
    links: tuple[str, ...]
    """Links whose mass properties it states."""
    joints: tuple[str, ...]
    """Joints whose attributes it states."""
    findings: tuple[Finding, ...] = ()
    """What the layer has no place for."""

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the layer as text (``.usda``), whole or not at all; it names the asset by its relative path.

        Raises:
            ExportError: The ending is another one, the file exists, or it cannot be written.
        """
        target = Path(path)
        if target.suffix.lower() != ".usda":
            raise ExportError("the layer is written as text", path=path, remedy="End the name in .usda.")
        if target.resolve() == self.asset.resolve():
            raise ExportError("the layer would replace its asset", path=path, remedy="Choose another name.")
        try:
            near = os.path.relpath(self.asset.resolve(), target.resolve().parent)
        except ValueError:  # another drive
            near = str(self.asset.resolve())
        near = near.replace(os.sep, "/")
        self.layer.subLayerPaths = [near if near.startswith((".", "/")) or ":" in near else f"./{near}"]
        return write_atomically(target, self.layer.ExportToString(), force=force)


def usd_overlay(robot: Robot, asset: str | os.PathLike[str], *, check_frames: bool = True) -> UsdOverlay:
    """Make a layer with the robot's masses and joint attributes over a USD asset of the same robot.

    Links that the asset does not have, because an importer merged them, count with the link that carries them.

    Args:
        robot: The robot with the values: ``fit.identified``, for example.
        asset: A USD file (``.usd``, ``.usda``, ``.usdc``) with prims named like the robot's links and joints.
        check_frames: Compare the poses of the link prims with those of the links at position zero.

    Raises:
        ArgumentError: usd-core is not installed.
        DataError: The asset cannot be read, lacks a moving link or a joint, or has other frames.
        ExportError: No body has the mass properties of a link.

    Example:
        >>> layer = dynid.export.usd_overlay(fit.identified, folder / "arm.usda", check_frames=False)
        >>> layer.links, layer.joints
        (('link1', 'link2', 'link3'), ('joint1', 'joint2', 'joint3'))
    """
    usd = require_library("pxr.Usd", "dynid[usd]")
    physics, geometry = (require_library(f"pxr.{name}", "dynid[usd]") for name in ("UsdPhysics", "UsdGeom"))
    stage = _open(usd, asset)
    prims = {prim.GetName(): prim for prim in reversed(list(stage.Traverse()))}  # the outermost prim of a name counts
    length, mass = geometry.GetStageMetersPerUnit(stage), physics.GetStageKilogramsPerUnit(stage)
    bodies = dict(_bodies(robot, prims, asset))
    if check_frames:
        _check_frames(robot, geometry, {name: prims[name] for name in bodies}, length, asset)
    sdf = require_library("pxr.Sdf", "dynid[usd]")
    layer = sdf.Layer.CreateAnonymous(".usda")
    _copy_units(stage, layer)
    for name, inertia in bodies.items():
        _write_mass(layer, prims[name], inertia, (length, mass))
    joints = []
    for body in robot.bodies:
        joint = body.joint
        if joint.name not in prims:
            raise DataError(f"there is no prim '{joint.name}' for this joint", path=asset, remedy="Name joints alike.")
        torque = mass if body.is_prismatic else mass * length**2  # kg, or kg m^2, of the stage
        unit = mass * length if body.is_prismatic else mass * length**2  # N, or N m
        values = {kind: sum(term.value for term in joint.terms if type(term) is kind) for kind in _HELD}
        per_speed = values[Viscous] / mass if body.is_prismatic else np.deg2rad(values[Viscous]) / unit
        _write_joint(layer, prims[joint.name], "linear" if body.is_prismatic else "angular", {
            "armature": values[RotorInertia] / torque, "staticFrictionEffort": values[Coulomb] / unit,
            "dynamicFrictionEffort": values[Coulomb] / unit, "viscousFrictionCoefficient": per_speed,
        })  # fmt: skip
        joints.append(joint.name)
    return UsdOverlay(
        layer=layer, asset=Path(asset), links=tuple(bodies), joints=tuple(joints), findings=tuple(_lost(robot))
    )


def _open(usd: Any, asset: str | os.PathLike[str]) -> Any:
    try:
        return usd.Stage.Open(os.fspath(asset))
    except RuntimeError as error:  # the base of the errors of pxr
        raise DataError(
            "the asset cannot be read as USD", path=asset, remedy="Give a .usd, .usda or .usdc file."
        ) from error


def _copy_units(stage: Any, layer: Any) -> None:
    """Give the layer the units, the upward axis and the default prim of the asset: a stage asks its top layer only."""
    for name in ("metersPerUnit", "kilogramsPerUnit", "upAxis"):
        layer.pseudoRoot.SetInfo(name, stage.GetMetadata(name))
    if stage.HasDefaultPrim():
        layer.defaultPrim = stage.GetDefaultPrim().GetName()


def _bodies(robot: Robot, prims: dict[str, Any], asset: Any) -> Iterator[tuple[str, Inertia]]:
    """Link -> its mass properties in its frame; links without a prim are part of the one that carries them."""
    for index, body in enumerate(robot.bodies):
        main = body.joint.child
        if main not in prims:
            raise DataError(f"there is no prim '{main}' for this link", path=asset, remedy="Name prims like the links.")
        held = [link for link in robot.links if robot.link_body(link.name)[0] == index]
        total = next(link.inertia for link in held if link.name == main)
        for link in held:
            if link.name != main and link.name not in prims:
                total = total + link.inertia.in_frame(robot.link_body(link.name)[1])
        yield main, total
        for link in held:
            if link.name != main and link.name in prims and link.inertia.mass:
                yield link.name, link.inertia


def _check_frames(robot: Robot, geometry: Any, prims: dict[str, Any], length: float, asset: Any) -> None:
    """Refuse an asset whose link frames lie elsewhere than the robot's, relative to the first of them."""
    rest = np.zeros(robot.dof)
    places = {}
    for name, prim in prims.items():
        matrix = np.array(geometry.Xformable(prim).ComputeLocalToWorldTransform(0.0)).T  # USD has row vectors
        R = matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = R, length * matrix[:3, 3]
        places[name] = pose, link_pose(robot, name, rest)
    first = next(iter(places.values()))
    for name, (theirs, ours) in places.items():
        moved = np.linalg.inv(first[0]) @ theirs - np.linalg.inv(first[1]) @ ours
        if np.abs(moved).max() > SAME_FRAME:
            raise DataError(
                "the frame of the prim is not that of the link at position zero", path=asset, place=f"prim '{name}'",
                remedy="Use the asset of this robot's description; check_frames=False, if it is in another pose.",
            )  # fmt: skip


def _write_mass(layer: Any, prim: Any, inertia: Inertia, units: tuple[float, float]) -> None:
    """State mass, centre of mass and principal moments, in units of the stage [m, kg]."""
    length, mass = units
    if not inertia.is_physical or inertia.mass <= 0.0:
        raise ExportError(
            "no body has these mass properties", place=f"link '{prim.GetName()}'",
            remedy="Identify with a physically consistent estimator.",
        )  # fmt: skip
    graphics, sdf = require_library("pxr.Gf", "dynid[usd]"), require_library("pxr.Sdf", "dynid[usd]")
    moments, axes = eigh(inertia.about_com)
    turn = _quaternion(axes * np.sign(np.linalg.det(axes)))
    spec = _over(layer, prim, "PhysicsMassAPI")
    kinds = sdf.ValueTypeNames
    _set(spec, "physics:mass", kinds.Float, inertia.mass / mass)
    _set(spec, "physics:centerOfMass", kinds.Point3f, graphics.Vec3f(*(inertia.com / length).tolist()))
    scaled = np.maximum(moments, 0.0) / (mass * length**2)
    _set(spec, "physics:diagonalInertia", kinds.Float3, graphics.Vec3f(*scaled.tolist()))
    _set(spec, "physics:principalAxes", kinds.Quatf, graphics.Quatf(*turn.tolist()))


def _write_joint(layer: Any, prim: Any, axis: str, values: dict[str, float]) -> None:
    spec = _over(layer, prim, f"PhysxJointAxisAPI:{axis}")
    kind = require_library("pxr.Sdf", "dynid[usd]").ValueTypeNames.Float
    for name, value in values.items():
        _set(spec, f"physxJointAxis:{axis}:{name}", kind, float(value))


def _over(layer: Any, prim: Any, schema: str) -> Any:
    """An override of a prim with one more applied schema."""
    sdf = require_library("pxr.Sdf", "dynid[usd]")
    spec = sdf.CreatePrimInLayer(layer, prim.GetPath())
    applied = sdf.TokenListOp()
    applied.prependedItems = [schema]
    spec.SetInfo("apiSchemas", applied)
    return spec


def _set(spec: Any, name: str, kind: Any, value: Any) -> None:
    sdf = require_library("pxr.Sdf", "dynid[usd]")
    sdf.AttributeSpec(spec, name, kind).default = value


def _quaternion(R: Floats) -> Floats:
    """(4,) w, x, y, z of a rotation, w not negative."""
    from scipy.spatial.transform import Rotation

    quaternion: Floats = np.roll(Rotation.from_matrix(R).as_quat(), 1)
    return quaternion if quaternion[0] >= 0.0 else -quaternion


def _lost(robot: Robot) -> Iterator[Finding]:
    """The findings about terms that the joint attributes cannot hold, and about gravity, which is the scene's."""
    own = zip(parameter_layout(robot).names[10 * robot.dof :], robot.terms, strict=True)
    names = [name for name, placed in own if placed.term.value and type(placed.term) not in _HELD]
    if names:
        yield Finding(
            code="not-in-format", severity="warning", where="model",
            message=f"USD has no place for {', '.join(names)}",
            remedy="Use generated code where these terms matter.",
        )  # fmt: skip
    if gravity := describe_lost_gravity(robot.gravity):
        yield Finding(code="not-in-format", severity="warning", where="model", message=f"the robot has {gravity}")
