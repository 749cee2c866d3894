"""Robots in the memory of other libraries: models of Pinocchio and MuJoCo as dynid robots, and back.

Users call the functions with a model that they have built in one of these libraries. Armature, damping and dry friction
become *terms* of the joints: contributions to the torques with one parameter each. Nothing is written to disk. The
libraries are imported when a function needs them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.checks import require_library
from dynid.errors import ArgumentError
from dynid.robot.formats.mjcf.bodies import connect
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.robot.inertia import Inertia, inertia_about_com
from dynid.robot.model import Robot
from dynid.robot.parts import UNBOUNDED, Joint, JointLimits, Link
from dynid.spatial import rotation_about, rotation_from_quaternion, transform
from dynid.terms.base import StateTerm
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia

_, _, _MUJOCO_SLIDE, _MUJOCO_HINGE = range(4)
"""MuJoCo's numbers of prismatic and revolute joints (mjtJoint)."""
_VECTORS_OF_TERMS: dict[type[StateTerm], tuple[str, ...]] = {
    RotorInertia: ("armature", "dof_armature"),
    Viscous: ("damping", "dof_damping"),
    Coulomb: ("friction", "upperDryFrictionLimit", "dof_frictionloss"),
}
"""Term -> names that the vector of its values, one per degree of freedom, has in the libraries and their versions."""


def _read_terms(model: Any, place: int) -> tuple[StateTerm, ...]:
    """Read the terms with values other than zero of degree of freedom ``place``, from a model of either library."""
    found = {kind: _entry(model, names, place) for kind, names in _VECTORS_OF_TERMS.items()}
    return tuple(kind(value) for kind, value in found.items() if value)


def _make_limits(lower: float, upper: float, velocity: float, effort: float) -> JointLimits:
    """Make limits: large numbers, a range of zero, and zero speed or effort mean that no limit is stated."""
    low, high = (bound if abs(bound) < UNBOUNDED else np.copysign(np.inf, bound) for bound in (lower, upper))
    if not low < high:
        low, high = -np.inf, np.inf
    speed, force = (bound if 0.0 < bound < UNBOUNDED else np.inf for bound in (velocity, effort))
    return JointLimits(lower=float(low), upper=float(high), velocity=speed, effort=force)


def _no_model(given: Any, wanted: str) -> ArgumentError:
    """Make the error for an argument that is no model of the library."""
    remedy = f"Give a {wanted}. A file is read by dynid.robot.read_robot(path), and a dynid Robot is used as it is."
    return ArgumentError(f"model is of the kind {type(given).__name__}", remedy=remedy)


def from_pinocchio(model: Any) -> Robot:
    """The robot of a ``pinocchio.Model`` with a fixed base; joints of one coordinate only.

    Args:
        model: The model; its armature, damping and dry friction become terms.

    Raises:
        ArgumentError: A joint has more than one degree of freedom (a free flyer, for example).

    Example:
        >>> model = dynid.robot.to_pinocchio(robot)  # or pinocchio.buildModelFromUrdf(...)
        >>> dynid.from_pinocchio(model).joint_names
        ('joint1', 'joint2', 'joint3')
    """
    if not hasattr(model, "createData"):
        raise _no_model(model, "pinocchio.Model")
    pin = require_library("pinocchio", "pin")
    data = model.createData()
    pin.computeJointJacobians(model, data, pin.neutral(model))  # fills the motion subspaces S of the joints
    names = list(model.names)
    links = [Link(name="base", inertia=_pinocchio_inertia(model.inertias[0]))]
    joints = []
    for index in range(1, model.njoints):
        if model.nvs[index] != 1:
            raise ArgumentError(
                f"joint '{names[index]}' of the Pinocchio model has {model.nvs[index]} degrees of freedom",
                remedy="Build the model with a fixed base, and hold joints of several degrees of freedom.",
            )
        subspace = np.asarray(data.joints[index].S).reshape(-1)  # linear part, then angular part
        slides = bool(np.linalg.norm(subspace[3:]) == 0.0)
        is_continuous = model.nqs[index] == 2  # its position is stored as cosine and sine
        v = model.idx_vs[index]
        q = model.idx_qs[index]
        lower, upper = (
            (-np.inf, np.inf) if is_continuous else (model.lowerPositionLimit[q], model.upperPositionLimit[q])
        )
        placement = model.jointPlacements[index]
        links.append(Link(name=f"{names[index]}_body", inertia=_pinocchio_inertia(model.inertias[index])))
        joints.append(
            Joint(
                name=names[index],
                kind="prismatic" if slides else "continuous" if is_continuous else "revolute",
                parent=links[model.parents[index]].name,
                child=links[index].name,
                T_parent_joint=transform(np.array(placement.rotation), np.array(placement.translation)),
                axis=subspace[:3] if slides else subspace[3:],
                limits=_make_limits(float(lower), float(upper),
                               _entry(model, ("velocityLimit", "upperVelocityLimit"), v, np.inf),
                               _entry(model, ("effortLimit", "upperEffortLimit"), v, np.inf)),
                terms=_read_terms(model, v),
            )
        )  # fmt: skip
    gravity = np.array(model.gravity.linear)
    return Robot(name=model.name or "robot", links=tuple(links), joints=tuple(joints), gravity=gravity)


def _entry(model: Any, names: tuple[str, ...], place: int, absent: float = 0.0) -> float:
    """Read entry ``place`` of the vector that has one of these names in the model; ``absent`` if there is none."""
    for name in names:
        values = getattr(model, name, None)
        if values is not None and len(values) > place:
            return float(np.ravel(values[place])[0])
    return absent


def _pinocchio_inertia(inertia: Any) -> Inertia:
    """Mass properties from a ``pinocchio.Inertia``, whose tensor is about the centre of mass."""
    return inertia_about_com(float(inertia.mass), np.array(inertia.lever), np.array(inertia.inertia))


def to_pinocchio(robot: Robot) -> Any:
    """The robot as a ``pinocchio.Model``: fixed links are part of the bodies they belong to.

    Rotor inertia, viscous and dry friction go to the model's armature, damping and friction; Pinocchio's inverse
    dynamics uses the armature only. Other terms have no place there.

    Example:
        >>> dynid.robot.to_pinocchio(robot).nv
        3
    """
    pin = require_library("pinocchio", "pin")
    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = np.array(robot.gravity)
    ids: list[int] = []
    for body in robot.bodies:
        kind = pin.JointModelPrismaticUnaligned if body.is_prismatic else pin.JointModelRevoluteUnaligned
        placement = pin.SE3(np.array(body.R_parent_joint), np.array(body.p_parent_joint))
        parent = 0 if body.parent < 0 else ids[body.parent]
        index = model.addJoint(parent, kind(np.array(body.axis)), placement, body.joint.name)
        inertia = pin.Inertia(body.inertia.mass, body.inertia.com, body.inertia.about_com)
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
        ids.append(index)
        limits = body.joint.limits
        model.lowerPositionLimit[model.idx_qs[index]] = limits.lower
        model.upperPositionLimit[model.idx_qs[index]] = limits.upper
        for term in body.joint.terms:
            name = next((name for name in _VECTORS_OF_TERMS.get(type(term), ()) if hasattr(model, name)), None)
            if name is not None:
                values = np.array(getattr(model, name))
                values[int(model.idx_vs[index])] = term.value
                setattr(model, name, values)
    return model


def from_mujoco(model: Any) -> Robot:
    """The robot of a ``mujoco.MjModel`` with a fixed base: hinges and slides, several in one body too.

    Armature, damping and friction loss of the joints become terms. Actuators, tendons, contacts and springs do not
    belong to the robot. Positions are MuJoCo's: its reference positions ``qpos0`` are part of the geometry.

    Args:
        model: The model.

    Raises:
        ArgumentError: A body has a free or a ball joint.

    Example:
        >>> model = dynid.robot.to_mujoco(dynid.robots.scara())  # or mujoco.MjModel.from_xml_path(...)
        >>> dynid.from_mujoco(model).joint_names
        ('joint1', 'joint2', 'joint3', 'joint4')
    """
    if not hasattr(model, "opt"):
        raise _no_model(model, "mujoco.MjModel")
    gravity = np.array(model.opt.gravity)
    name_of = {body: model.body(body).name or f"body{body}" for body in range(model.nbody)}
    links = [Link(name=name_of[0])]
    joints = list[Joint]()
    for body in range(1, model.nbody):
        name = name_of[body]
        first = int(model.body_jntadr[body])  # its joints are numbered consecutively
        numbers = range(first, first + int(model.body_jntnum[body]))
        if any(model.jnt_type[joint] not in (_MUJOCO_SLIDE, _MUJOCO_HINGE) for joint in numbers):
            raise ArgumentError(
                f"body '{name}' has a free or a ball joint",
                remedy="Fix the base, and replace ball joints by hinges.",
            )
        of_body = [(_mujoco_joint(model, joint), np.array(model.jnt_pos[joint])) for joint in numbers]
        pose = transform(rotation_from_quaternion(model.body_quat[body]), model.body_pos[body])
        # several joints in one body become a chain with massless links, the frames, between them
        placed, frames = connect(name, name_of[int(model.body_parentid[body])], pose, of_body, str)
        joints += placed
        R = rotation_from_quaternion(model.body_iquat[body])
        tensor = R @ np.diag(model.body_inertia[body]) @ R.T
        inertia = inertia_about_com(float(model.body_mass[body]), np.array(model.body_ipos[body]), tensor)
        links += [*(Link(name=frame) for frame in frames), Link(name=name, inertia=inertia)]
    return Robot(name="robot", links=tuple(links), joints=tuple(joints), gravity=gravity)


def _mujoco_joint(model: Any, joint: int) -> Joint:
    """One hinge or slide without parent and child, which `connect` adds.

    Its placement undoes the reference position qpos0, at which MuJoCo states the poses of bodies.
    """
    slides = model.jnt_type[joint] == _MUJOCO_SLIDE
    axis = np.array(model.jnt_axis[joint])
    start = -float(model.qpos0[model.jnt_qposadr[joint]])
    back = transform(np.eye(3), start * axis) if slides else transform(rotation_about(axis, start), np.zeros(3))
    limited = bool(model.jnt_limited[joint])
    lower, upper = model.jnt_range[joint] if limited else (-np.inf, np.inf)
    return Joint(
        name=model.joint(joint).name or f"joint{joint}",
        kind="prismatic" if slides else "revolute" if limited else "continuous",
        parent="",
        child="",
        T_parent_joint=back,
        axis=axis,
        limits=_make_limits(float(lower), float(upper), np.inf, np.inf),
        terms=_read_terms(model, int(model.jnt_dofadr[joint])),
    )


def to_mujoco(robot: Robot) -> Any:
    """The robot as a ``mujoco.MjModel``, by the text that `dynid.write_mjcf` writes.

    Example:
        >>> dynid.robot.to_mujoco(dynid.robots.scara()).nv
        4
    """
    mujoco = require_library("mujoco", "mujoco")
    return mujoco.MjModel.from_xml_string(mjcf_text(robot))
