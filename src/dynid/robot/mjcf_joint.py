"""Hinge and slide joints of MJCF: axis and anchor, zero position, range, friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.robot.joint_models import Coulomb, JointModel, RotorInertia, Viscous
from dynid.robot.mjcf_settings import MjcfSettings
from dynid.robot.parts import Joint, JointKind, JointLimits
from dynid.robot.xml_document import Element
from dynid.spatial import rotation_about, transform

__all__ = ["JOINT_MODELS", "read_joint"]

JOINT_MODELS: dict[str, type[RotorInertia] | type[Viscous] | type[Coulomb]] = {
    "armature": RotorInertia,
    "damping": Viscous,
    "frictionloss": Coulomb,
}
"""Attribute of ``<joint>`` -> the joint model it becomes; the units are the same."""


def read_joint(
    settings: MjcfSettings, element: Element, name: str, kind: str, T_body_frame: NDArray[np.float64], effort: float
) -> tuple[Joint, NDArray[np.float64]]:
    """Read a joint that is not connected yet.

    Args:
        settings: Options of the file.
        element: The joint with its defaults filled in.
        name: Name of the joint.
        kind: Its type in the file; only hinge and slide are supported.
        T_body_frame: (4, 4) pose of the frame element it stands in, in the body.
        effort: What its actuators can give [N m or N].

    Returns:
        The joint, whose placement is only the motion from its zero to the pose drawn in the file, and its anchor (3,)
        in the body.

    Raises:
        DescriptionError: The joint is wrong or not supported.
    """
    document = settings.document
    _check_supported(settings, element, name, kind)
    R = T_body_frame[:3, :3]
    anchor = R @ document.numbers(element, "pos", 3, np.zeros(3)) + T_body_frame[:3, 3]
    axis = R @ document.numbers(element, "axis", 3, [0.0, 0.0, 1.0])
    limits = _limits(settings, element, kind, effort)
    turning: JointKind = "revolute" if np.isfinite([limits.lower, limits.upper]).any() else "continuous"
    with document.at(element):
        joint = Joint(
            name=name,
            kind="prismatic" if kind == "slide" else turning,
            parent="",
            child="",
            axis=axis,
            limits=limits,
            models=_joint_models(settings, element),
        )
    zero = -document.number(element, "ref", 0.0)
    if kind == "slide":  # where a slide is anchored makes no difference
        return replace(joint, T_parent_joint=transform(np.eye(3), zero * joint.axis)), np.zeros(3)
    turned = transform(rotation_about(joint.axis, settings.radians(zero)), np.zeros(3))
    return replace(joint, T_parent_joint=turned), anchor


def _check_supported(settings: MjcfSettings, element: Element, name: str, kind: str) -> None:
    document = settings.document
    if kind in ("ball", "free"):
        remedy = f"Hold the joint: read_mjcf(path, locked={{{name!r}: 0.0}})."
        raise document.error(element, f"{kind} joints are not supported", remedy)
    if kind not in ("hinge", "slide"):
        raise document.error(element, f"the joint type '{kind[:60]}' is not known", "Use hinge or slide.")
    for spring in ("stiffness", "springdamper"):
        if spring in element.attributes and document.number_list(element, spring).any():
            remedy = f"Remove '{spring}' and model it elsewhere."
            raise document.error(element, f"joint springs ('{spring}') are not supported", remedy)


def _joint_models(settings: MjcfSettings, element: Element) -> tuple[JointModel, ...]:
    models = []
    for attribute, model in JOINT_MODELS.items():
        if attribute in element.attributes:
            first, *higher = settings.document.number_list(element, attribute)
            if any(higher):
                raise settings.document.error(
                    element,
                    f"'{attribute}' is a polynomial, which is not supported",
                    "Give its first coefficient only.",
                )
            models += [model(float(first))] if first else []
    return tuple(models)


def _limits(settings: MjcfSettings, element: Element, kind: str, effort: float) -> JointLimits:
    lower, upper = _range(settings, element, "range", "limited") or (-np.inf, np.inf)
    if kind == "hinge":
        lower, upper = settings.radians(lower), settings.radians(upper)
    force = _range(settings, element, "actuatorfrcrange", "actuatorfrclimited")
    with settings.document.at(element):
        return JointLimits(lower=lower, upper=upper, effort=min(map(abs, force)) if force else effort)


def _range(settings: MjcfSettings, element: Element, attribute: str, switch: str) -> tuple[float, float] | None:
    """The range, if the file gives one and it is switched on."""
    if attribute not in element.attributes:
        return None
    lower, upper = settings.document.numbers(element, attribute, 2)
    limited = element.attributes.get(switch, "auto")
    applies = limited == "true" or (limited == "auto" and settings.autolimits)
    return (float(lower), float(upper)) if applies else None
