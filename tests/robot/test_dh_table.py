"""Robots from TOML tables of DH rows: the papers' conventions, and tables nobody vouches for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import ArgumentError, DescriptionError
from dynid.robot.formats import read_robot
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.model import Robot
from support.random_robots import assert_same_torque

ROWS = [(-90.0, 0.1, 20.0, 0.3, 0), (35.0, -0.2, 90.0, 0.15, 1), (90.0, 0.25, -60.0, 0.05, 0)]
"""alpha, a, theta [degrees, m], d and sigma of three joints."""
SMALL = """convention = "modified"
angles = "degrees"
[[joint]]
name = "turn"
d = 0.1
lower = -90
upper = 90
mass = 2
com = [0.1, 0, 0]
inertia = [0.01, 0.001, 0.002, 0.02, 0.003, 0.025]
[[joint]]
name = "slide"
type = "prismatic"
alpha = 90
a = 0.2
upper = 0.5
lower = 0
viscous = 3
"""


def table(head: str, rows: list[dict[str, object]]) -> str:
    blocks = ("\n".join(["[[joint]]", *(f"{key} = {value}" for key, value in row.items())]) for row in rows)
    return "\n".join([head, *blocks])


def read(folder: Path, text: str, name: str = "arm.toml", **options: object) -> Robot:
    (folder / name).write_text(text)
    return read_robot(folder / name, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("convention", ["standard", "modified", "khalil"])
@pytest.mark.parametrize("angles", ["degrees", "radians"])
def test_the_conventions_are_those_of_from_dh(tmp_path: Path, convention: str, angles: str) -> None:
    degrees = angles == "degrees"
    unit = 1.0 if degrees else np.pi / 180.0
    letters = ("alpha", "d", "theta", "r") if convention == "khalil" else ("alpha", "a", "theta", "d")
    body = [0.3, 0.01, 0.02, 0.4, 0.03, 0.5, 0.1, 0.2, 0.3, 2.0]
    rows: list[dict[str, object]] = [
        dict(zip(letters, (row[0] * unit, row[1], row[2] * unit, row[3]), strict=True))
        | {"type": '"prismatic"' if row[4] else '"revolute"', "parameters": body}
        for row in ROWS
    ]
    robot = read(tmp_path, table(f'convention = "{convention}"\nangles = "{angles}"\ngravity = [0, -9.8, 0]', rows))
    if convention == "standard":
        own = [StandardDH(alpha=alpha, a=a, theta=theta, d=d, sigma=s) for alpha, a, theta, d, s in ROWS]
    else:
        own = [DH(alpha=alpha, d=a, theta=theta, r=d, sigma=s) for alpha, a, theta, d, s in ROWS]  # type: ignore[misc]
    inertia = robot.link("link1").inertia
    expected = from_dh(own, degrees=True, gravity=(0, -9.8, 0), inertias=[inertia] * 3)
    np.testing.assert_allclose(inertia.vector, body)
    assert_same_torque(robot, expected, tolerance=1e-12)


def test_limits_links_and_drives_are_read(tmp_path: Path) -> None:
    robot = read(tmp_path, SMALL)
    turn, slide = robot.moving_joints
    assert (robot.name, robot.joint_names) == ("arm", ("turn", "slide"))
    np.testing.assert_allclose((turn.limits.lower, turn.limits.upper), (-np.pi / 2, np.pi / 2))
    assert (slide.limits.upper, slide.limits.effort, slide.terms[0].value) == (0.5, np.inf, 3.0)
    inertia = robot.link("link1").inertia
    np.testing.assert_allclose(
        inertia.about_com, [[0.01, 0.001, 0.002], [0.001, 0.02, 0.003], [0.002, 0.003, 0.025]], atol=1e-15
    )
    assert (inertia.mass, inertia.com.tolist()) == (2.0, [0.1, 0.0, 0.0])
    held = read(tmp_path, SMALL, hold={"slide": 0.2})
    assert held.joint_names == ("turn",)
    with pytest.raises(ArgumentError, match="does not have"):
        read(tmp_path, SMALL, hold={"elbow": 0.2})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('convention = "modified"\n', "", "missing required field `convention`"),
        ('"modified"', '"craig"', "craig.*standard or modified or khalil"),
        ("alpha = 90", "alpha = 1.5708", "row 2: alpha is 1.5708 degrees, which is a right angle in radians"),
        ('angles = "degrees"', 'angles = "radians"', "row 2: alpha is 90 rad.*in a file angles"),
        ("a = 0.2", 'a = "long"', r"joint\[1\]\.a: expected `float`, got `str`"),
        ("a = 0.2", "a = inf", r"joint\[1\]\.a: expected `float` <="),
        ("a = 0.2", "r = 0.2", "joint 2: the convention 'modified' has no 'r'.*khalil"),
        ("a = 0.2", "length = 0.2", r"joint\[1\]: object contains unknown field `length`.*A joint has name, type, a"),
        ("upper = 0.5", "upper = -0.5", "joint 2: the lower limit 0 exceeds the upper limit -0.5"),
        ("[0.1, 0, 0]", "[0.1, 0]", r"joint\[0\]\.com: expected `array` of length 3"),
        ("angles", "angles = = ", "line 2"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        read(tmp_path, SMALL.replace(old, new, 1))
    assert re.search(expected, str(caught.value), re.DOTALL), str(caught.value)
    assert "arm.toml" in str(caught.value)
    assert caught.value.remedy
