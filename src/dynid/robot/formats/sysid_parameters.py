"""Parameters of MuJoCo's own toolbox, ``mujoco.sysid``: a robot's values in its form, and its results as a robot.

A body's inertia is the vector of ten numbers of the toolbox's ``InertiaType.Pseudo``: alpha, d1, d2, d3, s12, s23, s13,
t1, t2, t3. They are the logarithms and ratios of the upper triangular U with ``U U^T`` the pseudo-inertia about the
origin of the body's frame::

    U = exp(alpha) [exp(d1)  s12      s13      t1]
                   [         exp(d2)  s23      t2]
                   [                  exp(d3)  t3]
                   [                            1]

so that the mass is exp(2 alpha), and (t1, t2, t3) is the centre of mass. Names: ``LINK_inertia``, as the toolbox itself
chooses, and ``JOINT_damping``, ``JOINT_frictionloss``, ``JOINT_armature``, as the attributes of MJCF. Bodies and joints
are those of the text that `dynid.write_mjcf` writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import require_library
from dynid.decompositions import eigh, eigvalsh
from dynid.errors import ArgumentError, DataError, ExportError
from dynid.files import write_atomically
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.terms.base import StateTerm
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia

_FIELDS: dict[str, type[StateTerm]] = {"damping": Viscous, "frictionloss": Coulomb, "armature": RotorInertia}
"""Attribute of a joint in MJCF -> the term that it is."""
_INERTIA = "_inertia"
_SPREAD = (0.5 * np.log(10.0), *3 * (0.5 * np.log(2.0),), *3 * (0.5,), *3 * (0.5,))
"""How far the ten numbers may move from their nominal values: a factor of 10 of the mass, of 2 of the squared extents,
0.5 of shears and 0.5 m of the centre of mass. The defaults of the toolbox (`body_inertia_param`)."""
_WIDE = 10.0
"""Factor up to which friction and rotor inertia may grow; convention, as for the mass."""
_LEAST_BOUND = 1.0
"""Upper bound of a joint's value whose nominal value is zero [N m s/rad, N m, kg m^2]; convention."""
_THIN = 1e-5
"""Radius of gyration that a body without any extent gets [m]: its numbers have logarithms of extents. Convention: far
below what any log shows."""
_FROM_GEOMETRY_IF_ABSENT = 2
"""MuJoCo's number for ``inertiafromgeom="auto"``: stated mass properties count."""
_FORMS = {1: "mass", 4: "mass and centre of mass", 10: "pseudo-inertia"}
"""Numbers of a body's parameter in the toolbox -> what they are."""


def sysid_values(robot: Robot) -> dict[str, Floats]:
    """The robot's values as parameters of ``mujoco.sysid``: name -> (10,) for a body, (1,) for a joint's attribute.

    Args:
        robot: The robot; terms other than viscous and Coulomb friction and rotor inertia have no place there.

    Raises:
        ExportError: No body has the mass properties of a link, so that this form cannot hold them.

    Example:
        >>> values = dynid.robot.sysid_values(dynid.robots.scara())
        >>> list(values)[:2], values["link1_inertia"].shape
        (['link1_inertia', 'link2_inertia'], (10,))
    """
    values = {f"{link.name}{_INERTIA}": _theta(link) for link in robot.links if link.inertia.mass != 0.0}
    for joint in robot.joints:
        if joint.moves:
            values |= {f"{joint.name}_{name}": np.array([_value(joint, kind)]) for name, kind in _FIELDS.items()}
    return values


def _theta(link: Link) -> Floats:
    """The ten numbers of a link; a flat or thin body, on the border of what is possible, gets the least extent."""
    J = np.array(link.inertia.pseudo)
    if not link.inertia.is_physical or link.inertia.mass <= 0.0:
        raise ExportError(
            "no body has these mass properties, and mujoco.sysid holds bodies only",
            place=f"link '{link.name}'",
            remedy="Identify with a physically consistent estimator.",
        )
    if eigvalsh(J)[0] <= _THIN**2 * link.inertia.mass:
        J[:3, :3] += _THIN**2 * link.inertia.mass * np.eye(3)
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]  # upper triangular: the factor of the reversed matrix, reversed
    ratio = U / U[3, 3]
    stretch = np.log(np.diag(ratio)[:3])
    return np.array([np.log(U[3, 3]), *stretch, ratio[0, 1], ratio[1, 2], ratio[0, 2], *ratio[:3, 3]])


def _inertia(theta: Floats) -> Inertia:
    """The body of ten numbers."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    U = np.exp(alpha) * np.array(
        [[np.exp(d1), s12, s13, t1], [0.0, np.exp(d2), s23, t2], [0.0, 0.0, np.exp(d3), t3], [0.0, 0.0, 0.0, 1.0]]
    )
    J = U @ U.T
    tensor = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return Inertia(mass=float(J[3, 3]), first_moment=J[:3, 3], about_origin=tensor)


def _value(joint: Joint, kind: type[StateTerm]) -> float:
    return float(sum(term.value for term in joint.terms if type(term) is kind))


def _entries(robot: Robot, nominal: Robot | None) -> Iterator[tuple[str, Floats, Floats, Floats, Floats]]:
    """Name, value, nominal value and bounds of every parameter; bounds hold the value in any case."""
    before = {} if nominal is None else sysid_values(_possible(nominal))
    for name, value in sysid_values(robot).items():
        start = before.get(name, value)
        if value.size > 1:
            low, high = start - _SPREAD, start + np.array(_SPREAD)
        else:
            low, high = np.zeros(1), np.where(start > 0.0, _WIDE * start, _LEAST_BOUND)
        yield name, value, start, np.minimum(low, value), np.maximum(high, value)


def _possible(robot: Robot) -> Robot:
    """The robot without the mass of links that no body has: their identified values are the nominal ones, too."""
    fit = [link.inertia.is_physical and link.inertia.mass > 0.0 for link in robot.links]
    links = [
        link if good else replace(link, inertia=Inertia.zero()) for link, good in zip(robot.links, fit, strict=True)
    ]
    return replace(robot, links=tuple(links))


def to_sysid(robot: Robot, nominal: Robot | None = None) -> Any:
    """The robot's values as a ``mujoco.sysid.ParameterDict``, each with the function that puts it into an ``MjSpec``.

    Args:
        robot: The robot with the values.
        nominal: The robot before its identification; its values become the nominal ones, where bodies have them.

    Raises:
        ArgumentError: MuJoCo's toolbox is not installed.
        ExportError: See `sysid_values`.

    Example:
        >>> parameters = dynid.robot.to_sysid(dynid.robots.scara().with_terms(dynid.Viscous(0.5)))
        >>> parameters["joint1_damping"].value.tolist()
        [0.5]
    """
    sysid = require_library("mujoco.sysid", "mujoco[sysid]")
    if not hasattr(sysid, "ParameterDict"):  # it imports without its own dependencies, but has nothing then
        raise ArgumentError("mujoco.sysid is not complete", remedy="Install it: pip install 'mujoco[sysid]'.")
    found = sysid.ParameterDict()
    for name, value, start, low, high in _entries(robot, nominal):
        parameter = sysid.Parameter(name, start, low, high, modifier=_modifier(name))
        parameter.update_from_vector(value)
        if name.endswith(_INERTIA):
            parameter.inertia_type = sysid.InertiaType.Pseudo
        found.add(parameter)
    return found


def _modifier(name: str) -> Any:
    """The function that puts a parameter into a specification.

    The toolbox's own function for bodies is not used: MuJoCo 4.0 refuses what it leaves in the specification.
    """
    owner, _, attribute = name.rpartition("_")

    def change_body(spec: Any, parameter: Any) -> None:
        inertia = _inertia(np.ravel(parameter.value))
        moments, axes = eigh(inertia.about_com)
        quaternion = np.zeros(4)
        mat2quat = require_library("mujoco", "mujoco[sysid]").mju_mat2Quat
        mat2quat(quaternion, np.ascontiguousarray(axes * np.sign(np.linalg.det(axes))).ravel())
        spec.compiler.inertiafromgeom = _FROM_GEOMETRY_IF_ABSENT
        body = spec.body(owner)
        body.explicitinertial = True
        body.mass, body.ipos = inertia.mass, inertia.com
        body.fullinertia, body.inertia, body.iquat = np.full(6, np.nan), moments, quaternion

    def change_joint(spec: Any, parameter: Any) -> None:
        joint = spec.joint(owner)
        number = float(np.ravel(parameter.value)[0])
        if np.ndim(getattr(joint, attribute)):  # from MuJoCo 3.7 on damping is a polynomial of the speed
            getattr(joint, attribute)[0] = number
        else:
            setattr(joint, attribute, number)

    return change_body if name.endswith(_INERTIA) else change_joint


def write_sysid(
    robot: Robot, path: str | os.PathLike[str], nominal: Robot | None = None, *, force: bool = False
) -> Path:
    """Write the robot's values as the YAML file that ``mujoco.sysid.ParameterDict.load_from_disk`` reads.

    Args:
        robot: The robot with the values.
        path: The file.
        nominal: The robot before its identification; its values become the nominal ones.
        force: Whether an existing file may be replaced.

    Example:
        >>> dynid.robot.write_sysid(dynid.robots.scara(), folder / "parameters.yaml").name
        'parameters.yaml'
    """
    lines = []
    for name, value, start, low, high in _entries(robot, nominal):
        fields = {"max_value": high, "min_value": low, "nominal": start, "value": value}
        lines += [f"{yaml_text(name)}:", "  frozen: false", f"  name: {yaml_text(name)}"]
        lines += [f"  {key}: [{', '.join(map(yaml_number, numbers.tolist()))}]" for key, numbers in fields.items()]
    return write_atomically(path, "\n".join(lines) + "\n", force=force)


def yaml_number(value: float) -> str:
    """A number with all its digits; YAML 1.1 takes ``1e-05`` for text, and wants ``1.0e-05``."""
    text = repr(float(value))
    return text if "." in text or "n" in text else text.replace("e", ".0e")


def yaml_text(name: str) -> str:
    """A text in single quotes."""
    return "'" + name.replace("'", "''") + "'"


def sysid_model(robot: Robot) -> str:
    """The robot as MJCF text with what ``mujoco.sysid`` compares: a motor of gear 1 and two sensors for every joint.

    Motors are named like their joints; the sensors are ``JOINT_qpos`` and ``JOINT_qvel``, positions first.

    Example:
        >>> dynid.robot.sysid_model(dynid.robots.scara()).count("<motor")
        4
    """
    names = [quoteattr(joint.name) for joint in robot.moving_joints]
    motors = [f"    <motor name={name} joint={name}/>" for name in names]
    sensors = [
        f"    <joint{kind} name={quoteattr(joint.name + suffix)} joint={name}/>"
        for kind, suffix in (("pos", "_qpos"), ("vel", "_qvel"))
        for joint, name in zip(robot.moving_joints, names, strict=True)
    ]
    text, end, rest = mjcf_text(replace(robot, source=None)).rpartition("</mujoco>")
    parts = ["  <actuator>", *motors, "  </actuator>", "  <sensor>", *sensors, "  </sensor>"]
    return text + "\n".join(parts) + "\n" + end + rest


def from_sysid(robot: Robot, parameters: Any) -> Robot:
    """The robot with the values that ``mujoco.sysid`` found.

    Args:
        robot: The robot; its links and joints are found by name. What no parameter names stays as it is.
        parameters: A ``ParameterDict``, its YAML file (which needs PyYAML), or a mapping of names to values. A body may
            have ten numbers (pseudo-inertia), four (mass [kg], centre of mass [m]; the tensor about the centre of mass
            stays), or one (mass; the tensor stays).

    Raises:
        ArgumentError: A name belongs to no link or joint of the robot, or a value has another size.
        DataError: The file cannot be read.

    Example:
        >>> found = dynid.robot.from_sysid(robot, {"link2_inertia": [20.0], "joint1_damping": [0.7]})
        >>> found.link("link2").inertia.mass
        20.0
    """
    links, joints = list(robot.links), list(robot.joints)
    places = {link.name: k for k, link in enumerate(links)}, {joint.name: k for k, joint in enumerate(joints)}
    if not isinstance(parameters, str | os.PathLike | Mapping) and not hasattr(parameters, "items"):
        remedy = "Give a dictionary, the file parameters.yaml, or a mujoco.sysid.ParameterDict."
        raise ArgumentError(f"parameters is a {type(parameters).__name__}", remedy=remedy)
    for name, values in _read_values(parameters).items():
        owner, _, attribute = name.rpartition("_")
        if name.endswith(_INERTIA) and owner in places[0]:
            place = places[0][owner]
            links[place] = replace(links[place], inertia=_changed(links[place].inertia, name, values))
        elif attribute in _FIELDS and owner in places[1] and values.size == 1:
            place = places[1][owner]
            joints[place] = _with_value(joints[place], _FIELDS[attribute], float(values[0]))
        else:
            raise ArgumentError(
                f"parameter '{name}' with {values.size} numbers belongs to nothing in robot '{robot.name}'",
                remedy="Give LINK_inertia, JOINT_damping, JOINT_frictionloss and JOINT_armature only.",
            )
    return replace(robot, links=tuple(links), joints=tuple(joints))


def _read_values(parameters: Any) -> dict[str, Floats]:
    """Name -> numbers, from a file, a ``ParameterDict`` or a mapping."""
    if isinstance(parameters, str | os.PathLike):
        yaml = require_library("yaml", "pyyaml")
        try:
            states = yaml.safe_load(Path(parameters).read_text(encoding="utf-8"))
            parameters = {name: state["value"] for name, state in states.items()}
        except FileNotFoundError as error:
            raise DataError(
                "there is no such file", path=parameters, remedy="Give the file that ParameterDict.save_to_disk wrote."
            ) from error
        except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
            raise DataError(
                f"the file is none of mujoco.sysid: {error}", path=parameters, remedy="Give the file of save_to_disk."
            ) from error
    found: Mapping[str, Any] = {name: getattr(entry, "value", entry) for name, entry in parameters.items()}
    return {name: _finite(name, values) for name, values in found.items()}


def _finite(name: str, values: ArrayLike) -> Floats:
    try:
        numbers = np.atleast_1d(np.array(values, dtype=float)).ravel()
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"parameter '{name}' is {values!r}", remedy="Give numbers.") from error
    if not np.isfinite(numbers).all():
        raise ArgumentError(f"parameter '{name}' is not finite", remedy="Give finite numbers.")
    return numbers


def _changed(inertia: Inertia, name: str, values: Floats) -> Inertia:
    if values.size == 10:
        return _inertia(values)
    if values.size not in _FORMS:
        raise ArgumentError(
            f"parameter '{name}' has {values.size} numbers",
            remedy=f"Give {', '.join(f'{size} ({what})' for size, what in _FORMS.items())}.",
        )
    com = inertia.com if values.size == 1 else values[1:]
    return Inertia.from_com(float(values[0]), com, inertia.about_com)


def _with_value(joint: Joint, kind: type[StateTerm], value: float) -> Joint:
    """The joint with one term of this kind and this value in place of those it has."""
    same = [term for term in joint.terms if type(term) is kind]
    if sum(term.value for term in same) == value:
        return joint
    others = tuple(term for term in joint.terms if type(term) is not kind)
    return replace(joint, terms=(*others, kind(value)) if value or same else others)
