"""Printed formulas of base parameters hold for other lengths, too: symbols are derived, not recognised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dynid.identifiability.base import Method, base_parameters
from dynid.identifiability.expression import dh_symbols
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.formats.modified_dh import dh_rows
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.spatial import rotation_from_rpy, transform
from dynid.terms.friction import Viscous
from dynid.terms.motors import RotorInertia
from support.chains import chain

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


def random_dh(seed: int) -> Robot:
    """A chain in DH frames with round lengths and right angles."""
    rng = np.random.default_rng(seed)
    slides = rng.random(int(rng.integers(3, 8))) < 0.12
    lengths = rng.choice(ROUND, (len(slides), 2))
    return from_dh(
        [
            DH(alpha=rng.choice(QUARTERS), d=d, r=0.0 if sliding else r, sigma=int(sliding))
            for sliding, (d, r) in zip(slides, lengths, strict=True)
        ]
    )


def lengths_of(robot: Robot) -> dict[str, float]:
    """Values of the symbols in which formulas of this arm are written."""
    rows = dh_rows(robot)
    if rows is not None:
        return dh_symbols(rows)[1]
    return {
        f"P{axis}{j}": float(p)
        for j, body in enumerate(robot.bodies, start=1)
        for axis, p in zip("XYZ", body.p_parent_joint, strict=True)
    }


def count_wrong_formulas(robot: Robot, method: Method | None, seed: int) -> tuple[int, int]:
    """Combinations that do not hold for other lengths, and all that are written in symbols alone."""
    base, other = base_parameters(robot, method), stretched(robot, seed)
    names, lengths = base.layout.names, lengths_of(other)
    again = base_parameters(other, order=[names[column] for column in base.columns])
    if again.columns != base.columns:  # the round lengths made something vanish that acts in general
        return 0, 0
    wrong = total = 0
    for combination, column, row in zip(base.combinations, base.columns, again.grouping, strict=True):
        unit = base.layout[column].unit
        parts = {base.layout.index(term.parameter): term.coefficient for term in combination.terms}
        if any(not p.symbols and base.layout[c].unit != unit for c, p in parts.items()):
            continue  # a length within a number: only the numerical set is known
        total += any(p.symbols for p in parts.values())
        printed = np.zeros(len(row))
        printed[list(parts)] = [p.value(lengths) for p in parts.values()]
        wrong += not np.allclose(printed, row, rtol=1e-7, atol=1e-7)
    return wrong, total


@pytest.mark.parametrize(
    ("make", "method", "seeds", "least"),
    [(random_arm, None, 40, 100), (random_dh, "structural", 30, 80), (random_dh, "closed-form", 15, 40)],
)
def test_whole_formulas_hold_for_other_lengths(
    make: Callable[[int], Robot], method: Method | None, seeds: int, least: int
) -> None:
    """Also where round lengths make a coefficient vanish: its formula is printed all the same."""
    counts = [count_wrong_formulas(make(seed), method, seed + 1) for seed in range(seeds)]
    assert sum(total for _, total in counts) > least
    assert [seed for seed, (wrong, _) in enumerate(counts) if wrong] == []


def test_a_length_that_cannot_matter_is_not_named() -> None:
    """Joint 2 turns about the vertical: how high joint 2 sits above joint 1 changes no torque."""
    T = [transform(np.eye(3), np.array(p)) for p in ([0, 0, 0.2], [0.1, 0.2, 0.2], [0.2, 0.1, 0.1])]
    turned = transform(rotation_from_rpy([np.pi / 2, 0, 0]), np.zeros(3))
    robot = chain("arm", *((Inertia.zero(), {"name": f"j{k}", "T_parent_joint": T[k] @ (turned if k else np.eye(4))})
                           for k in range(3)))  # fmt: skip
    (text,) = [text for text in base_parameters(robot, "structural").expressions if text.startswith("ZZR1 ")]
    assert "PZ2" not in text
    assert "PX2^2 + PY2^2" in text
