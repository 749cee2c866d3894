"""Textbook structures: the Stanford arm, SCARA, Cartesian and cylindrical robots."""

from __future__ import annotations

from typing import Literal

from dynid.errors import ArgumentError
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo.dh_tables import body, joint_limits

__all__ = ["cartesian", "cylindrical", "scara", "stanford"]


def stanford() -> Robot:
    """Stanford arm: two revolute joints, one prismatic, a spherical wrist.

    Geometry: standard DH of Paul 1981 with ``d1 = 0.412, d2 = 0.154`` m; the hand's offset is left out. Mass
    properties: the table that goes back to Bejczy 1974 and Paul 1981, in the standard frames, with the tensors read as
    taken about the frames' origins and y and z of link 5's centre of mass exchanged: only so are these possible bodies
    of that length. Limits are left open.
    """
    rows = [
        StandardDH(alpha=-90, d=0.412),
        StandardDH(alpha=90, d=0.154),
        StandardDH(sigma=1),
        StandardDH(alpha=-90),
        StandardDH(alpha=90),
        StandardDH(),
    ]
    bodies = [  # mass, centre of mass, xx yy zz about the frame's origin
        (9.29, (0, 0.0175, -0.1105), (0.276, 0.255, 0.071)),
        (5.01, (0, -0.1054, 0), (0.108, 0.018, 0.100)),
        (4.25, (0, 0, -0.6447), (2.51, 2.51, 0.006)),
        (1.08, (0, 0.0092, -0.0054), (0.002, 0.001, 0.001)),
        (0.63, (0, 0.0003, 0.0566), (0.003, 0.003, 0.0004)),
        (0.51, (0, 0, 0.1554), (0.013, 0.013, 0.0003)),
    ]
    return from_dh(
        rows,
        degrees=True,
        name="stanford",
        inertias=[
            Inertia.from_vector([xx, 0, 0, yy, 0, zz, m * x, m * y, m * z, m]) for m, (x, y, z), (xx, yy, zz) in bodies
        ],
    )


def scara(*, joints: Literal["RRRP", "RRPR"] = "RRPR") -> Robot:
    """A SCARA robot with arms of 0.325 m and 0.275 m and four parallel axes.

    Geometry: that of the Adept Cobra 600. Mass properties and limits are illustrative.

    Args:
        joints: Whether the tool turns before (RRRP) or after (RRPR) it slides.
    """
    if joints not in ("RRRP", "RRPR"):
        raise ArgumentError(f"a SCARA robot with joints {joints!r} is not known", remedy="Use 'RRRP' or 'RRPR'.")
    slides = [0, 0, 0, 1] if joints == "RRRP" else [0, 0, 1, 0]
    lengths = [0.0, 0.325, 0.275, 0.0]
    quill = body(1.0, (0, 0, -0.10), (0.0045, 0.0045, 0.0006))
    hand = body(0.6, (0.01, 0, -0.20), (0.0012, 0.0012, 0.0004))
    arms = [
        body(11.0, (0.16, 0, 0.05), (0.05, 0.13, 0.13)),
        body(7.0, (0.13, 0.01, 0.08), (0.03, 0.07, 0.07)),
    ]
    return from_dh(
        [DH(d=d, r=0.387 if j == 0 else 0.0, sigma=s) for j, (d, s) in enumerate(zip(lengths, slides, strict=True))],
        name=f"scara_{joints.lower()}",
        inertias=[*arms, quill, hand],
        limits=joint_limits(
            [1.8, 2.5, *((3.1, (-0.21, 0.0)) if joints == "RRRP" else ((-0.21, 0.0), 3.1))],
            [6.7, 12.5, *((20.0, 1.1) if joints == "RRRP" else (1.1, 20.0))],
            [120.0, 60.0, *((6.0, 150.0) if joints == "RRRP" else (150.0, 6.0))],
        ),
    )


def cartesian() -> Robot:
    """A gantry: three prismatic joints along y, x and, upwards, z of the base. All numbers are illustrative."""
    return from_dh(
        [DH(alpha=-90, theta=-90, sigma=1) for _ in range(3)],
        degrees=True,
        name="cartesian",
        inertias=[
            body(60.0, (0, 0.2, 0), (4.0, 5.0, 2.0)),
            body(25.0, (0.1, 0, 0), (0.8, 0.9, 0.5)),
            body(8.0, (0, 0, 0.3), (0.4, 0.4, 0.05)),
        ],
        limits=joint_limits([1.0, 0.6, (-0.5, 0.0)], [1.5, 1.5, 1.0], [1500.0, 800.0, 400.0]),
    )


def cylindrical() -> Robot:
    """A column that turns, a lift along it and an arm that reaches out: R P P. All numbers are illustrative."""
    return from_dh(
        [DH(), DH(sigma=1), DH(alpha=-90, sigma=1)],
        degrees=True,
        name="cylindrical",
        inertias=[
            body(40.0, (0, 0, 0.5), (3.0, 3.0, 0.4)),
            body(18.0, (0.05, 0, 0.1), (0.3, 0.3, 0.2)),
            body(10.0, (0, 0.02, 0.25), (0.5, 0.5, 0.04)),
        ],
        limits=joint_limits([2.6, (0.0, 0.8), (0.0, 0.6)], [2.0, 0.8, 1.0], [200.0, 900.0, 400.0]),
    )
