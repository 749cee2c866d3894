"""Random serial robots and trees with the special geometry on which regrouping rules fail."""

from __future__ import annotations

import numpy as np

from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.spatial import rotation_from_rpy, transform
from dynid.terms.base import StateTerm

QUARTERS = (0.0, np.pi / 2, -np.pi / 2, np.pi)


def _length(random: np.random.Generator, zero: float) -> float:
    return 0.0 if random.random() < zero else round(float(random.uniform(-0.6, 0.6)), 3)


def _twist(random: np.random.Generator, style: str) -> float:
    if style == "parallel" or (style == "coincident" and random.random() < 0.8):
        return float(random.choice([0.0, np.pi], p=[0.8, 0.2]))
    if style == "oblique" and random.random() < 0.6:
        return round(float(random.uniform(-np.pi, np.pi)), 2)
    return float(random.choice(QUARTERS))


def _row(random: np.random.Generator, style: str, sigma: int) -> DH:
    zero = 0.7 if style == "coincident" else 0.35
    theta = float(random.choice(QUARTERS)) if random.random() < 0.6 else round(float(random.uniform(-3, 3)), 2)
    return DH(alpha=_twist(random, style), d=_length(random, zero), theta=theta, r=_length(random, zero), sigma=sigma)


def _between(random: np.random.Generator) -> list[DH]:
    """Revolute, sliding joints at any angle, then a revolute parallel to the first."""
    tilt = round(float(random.uniform(0.2, 1.4)), 2)
    slide = DH(
        alpha=tilt,
        d=_length(random, 0.5),
        theta=round(float(random.uniform(-3, 3)), 2) * (random.random() < 0.5),
        sigma=1,
    )
    if slide.theta:
        return [DH(), slide, _row(random, "oblique", int(random.random() < 0.5))]
    return [DH(), slide, DH(alpha=-tilt, d=_length(random, 0.5))]


def gravity_for(random: np.random.Generator, first: DH) -> np.ndarray:
    kind = random.integers(4)
    if kind == 0:
        return np.zeros(3)
    if kind == 1:
        return np.array([0.0, 0.0, -9.81])
    if kind == 2:
        return -9.81 * first.T_previous_joint[:3, 2]
    return np.round(random.normal(size=3), 2) * 5.0


def random_serial(seed: int, joints: int, models: tuple[StateTerm, ...] = ()) -> Robot:
    """A serial robot of ``joints`` joints; all its randomness comes from the seed."""
    random = np.random.default_rng(seed)
    style = str(random.choice(["perpendicular", "parallel", "oblique", "coincident", "between"]))
    sliding = float(random.choice([0.0, 0.3, 0.6]))
    rows = [_row(random, style, int(random.random() < sliding)) for _ in range(joints)]
    if style == "between" and joints >= 3:
        lead = int(random.integers(0, 2)) if joints > 3 else 0
        rows[lead : lead + 3] = _between(random)
    return from_dh(rows, gravity=gravity_for(random, rows[0]), name=f"random{seed}", terms=[models] * joints)


def random_tree(seed: int, joints: int, models: tuple[StateTerm, ...] = (), *, chain: bool = False) -> Robot:
    """A tree, or a chain, with frames and axes of any kind."""
    random = np.random.default_rng(seed)
    links, connections = [Link(name="base")], []
    for j in range(joints):
        parent = links[int(random.integers(max(0, len(links) - (1 if chain else 3)), len(links)))].name
        angles = (
            random.choice([0.0, np.pi / 2, -np.pi / 2], size=3) if random.random() < 0.6 else random.uniform(-3, 3, 3)
        )
        T = transform(rotation_from_rpy(angles), np.array([_length(random, 0.4) for _ in range(3)]))
        axis = np.eye(3)[random.integers(3)] if random.random() < 0.7 else random.normal(size=3)
        kind = random.choice(["revolute", "prismatic", "fixed"], p=[0.65, 0.25, 0.1]) if j else "revolute"
        links.append(Link(name=f"link{j}"))
        connections.append(
            Joint(
                name=f"joint{j}",
                kind=str(kind),  # type: ignore[arg-type]
                parent=parent,
                child=f"link{j}",
                T_parent_joint=T,
                axis=axis,
                terms=models if kind != "fixed" else (),
            )
        )
    gravity = gravity_for(random, DH())
    return Robot(name=f"tree{seed}", links=tuple(links), joints=tuple(connections), gravity=gravity)
