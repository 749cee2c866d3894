"""Printed formulas of base parameters hold for other lengths, too: symbols are derived, not recognised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.parameters.base import base_parameters
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.spatial import rotation_from_rpy, transform
from dynid.terms.friction import Viscous
from dynid.terms.motors import RotorInertia

ROUND = (0.0, 0.0, 0.05, 0.1, 0.1, 0.2, 0.3, 0.4, 0.5, -0.1, -0.2)
QUARTERS = (0.0, np.pi / 2, -np.pi / 2, np.pi)


def random_arm(seed: int) -> Robot:
    """A chain or tree with round lengths, right angles, joints about x, y or z of their own frames."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    joints = []
    for j in range(n):
        parent = int(rng.integers(max(0, j - 1), j + 1)) if rng.random() < 0.25 else j
        T = transform(rotation_from_rpy(rng.choice(QUARTERS, 3)), rng.choice(ROUND, 3))
        axis = rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)]
        kind = "prismatic" if rng.random() < 0.12 else "revolute"
        joints.append(
            Joint(name=f"j{j}", kind=kind, parent=f"l{parent}", child=f"l{j + 1}", T_parent_joint=T, axis=axis)
        )
    robot = Robot(name="arm", links=tuple(Link(name=f"l{j}") for j in range(n + 1)), joints=tuple(joints))
    return robot.with_terms(RotorInertia(), Viscous()) if rng.random() < 0.5 else robot


def stretched(robot: Robot, seed: int) -> Robot:
    """The same arm with other lengths; those that are zero stay zero."""
    rng = np.random.default_rng(seed)
    joints = []
    for joint in robot.joints:
        T = joint.T_parent_joint.copy()
        T[:3, 3] *= rng.uniform(0.5, 2.0, 3)
        joints.append(replace(joint, T_parent_joint=T))
    return replace(robot, joints=tuple(joints))


def wrong_symbols(robot: Robot, seed: int) -> tuple[int, int]:
    """Formulas that do not hold for other lengths, and all formulas with a length in them."""
    base, other = base_parameters(robot), stretched(robot, seed)
    lengths = {
        f"P{axis}{j}": float(p)
        for j, body in enumerate(other.bodies, start=1)
        for axis, p in zip("XYZ", body.p_parent_joint, strict=True)
    }
    names = [base.layout.names[column] for column in base.columns]
    again = base_parameters(other, order=names)
    wrong = total = 0
    for combination, kept in zip(base.combinations, base.columns, strict=True):
        for term in combination.terms:
            symbols = {name for monomial, _ in term.coefficient.terms for name, _ in monomial}
            if not symbols:
                continue
            total += 1
            wrong += not _holds(again, kept, base.layout.index(term.parameter), term.coefficient.value(lengths))
    return wrong, total


def _holds(base: BaseParameters, kept: int, column: int, value: float) -> bool:
    """Whether a coefficient is that of the other arm, where it keeps the same parameters."""
    if kept not in base.columns:
        return False
    found = base.grouping[base.columns.index(kept), column]
    return bool(abs(found - value) <= 1e-7 * max(1.0, abs(found)))


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_formulas_hold_for_other_lengths(start: int) -> None:
    counts = [wrong_symbols(random_arm(seed), seed + 1) for seed in range(start, start + 25)]
    assert sum(total for _, total in counts) > 300
    assert [seed for seed, (wrong, _) in enumerate(counts, start=start) if wrong] == []


def test_a_length_that_cannot_matter_is_not_named() -> None:
    """Joint 2 turns about the vertical: how high joint 2 sits above joint 1 changes no torque."""
    T = [transform(np.eye(3), np.array(p)) for p in ([0, 0, 0.2], [0.1, 0.2, 0.2], [0.2, 0.1, 0.1])]
    turned = transform(rotation_from_rpy([np.pi / 2, 0, 0]), np.zeros(3))
    joints = tuple(
        Joint(
            name=f"j{k}",
            kind="revolute",
            parent=f"l{k}",
            child=f"l{k + 1}",
            T_parent_joint=T[k] @ turned if k else T[k],
        )
        for k in range(3)
    )
    robot = Robot(name="arm", links=tuple(Link(name=f"l{k}") for k in range(4)), joints=joints)
    (text,) = [text for text in base_parameters(robot, "structural").expressions if text.startswith("ZZR1 ")]
    assert "PZ2" not in text
    assert "PX2^2 + PY2^2" in text
