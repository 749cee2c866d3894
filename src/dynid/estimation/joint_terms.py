"""Selected terms as joint models, so that simulation, kernels and generated code carry them like any other friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.features import Feature, PresentFeature
from dynid.robot.model import Robot
from dynid.terms.joint_models import JointModel

__all__ = ["JointTerm", "with_joint_terms"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JointTerm(JointModel):
    """A friction term of any shape that depends on its joint's present state."""

    feature: PresentFeature
    """Its shape; the joint in it does not matter."""
    value: float = 0.0
    """Its parameter, in the feature's unit."""
    physical: ClassVar[tuple[bool, ...]] = (False,)

    def __post_init__(self) -> None:
        """Refuse shapes with memory."""
        if not isinstance(self.feature, PresentFeature):
            raise ArgumentError(
                f"{self.feature} needs more than its joint's present state, so no joint model can be made of it",
                remedy="Use Identification.torque, which runs terms with memory.",
            )

    @property
    def symbols(self) -> tuple[str, ...]:  # type: ignore[override]
        """One, made from the shape and its scale."""
        return (self.feature.prefix,)

    @property
    def units(self) -> tuple[str, ...]:  # type: ignore[override]
        """The feature's."""
        return (self.feature.unit,)

    @property
    def values(self) -> tuple[float, ...]:
        return (self.value,)

    def with_values(self, values: Sequence[float]) -> Self:
        return replace(self, value=float(values[0]))

    def columns(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, ...]:
        return (self.feature.formula(q, dq),)


def with_joint_terms(
    robot: Robot, features: Sequence[Feature], values: Sequence[float]
) -> tuple[Robot, tuple[str, ...]]:
    """The robot with features as joint models, and the names of those that cannot be: with memory, or of other joints.

    Args:
        robot: The robot, with its joint models.
        features: What acts on the torques besides.
        values: Parameter of each feature.
    """
    left, terms = [], dict[int, list[JointTerm]]()
    for feature, value in zip(features, values, strict=True):
        if isinstance(feature, PresentFeature):
            terms.setdefault(feature.joint, []).append(JointTerm(replace(feature, joint=0), float(value)))
        else:
            left.append(feature.name)
    for joint, models in terms.items():
        name = robot.joint_names[joint]
        robot = robot.with_joint_models(*robot.moving_joints[joint].models, *models, joints=name)
    return robot, tuple(left)
