"""The papers' text format: reading, writing, the printed listing, and text nobody vouches for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import DescriptionError, ExportError
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.formats.text_format import description_text, parse_description, parse_text, read_text
from dynid.robot.model import Robot
from dynid.terms.friction import Viscous
from dynid.terms.motors import RotorInertia

PRINTED = """
number_links 6
mass 0 0 0 0 0 m6 % initial link masses
sigma 0 0 0 0 0 % joint types: all revolute
alpha 90 0 -90 90 -90 0
dpar 0 0 d3 d4 0 0
apar 0 a2 0 0 0 0
adyna 0 0 0 ad4 0 0 % Link inertia
bdyna 0 0 0 0 0
cdyna 0 0 0 cd4 0 0
ygrav 0 0 0 y4 0 0
zgrav 0 0 0 0 0 z6
ia1 ia2 ia3 ia4 ia5 ia6 % Motor inertia
option moment
option.update moment
variable m6 2.768114
variable z6 0.014041
variable y4 -0.382190
variable ad4 0.079781
variable cd4 0.077761
variable ia1 0.091631
variable ia2 0.136312
variable ia3 0.030843
variable ia4 0.001781
variable ia5 0.006759
variable ia6 0.001262
constant a2 0.20320
constant d3 0.12624
constant d4 0.20320
stop
what follows is not read
"""
SMALL = "number_links 2\nsigma 0 1\nalpha 90 0\ndpar 0.1 0\napar 0 0.2\nmass 1 2\nstop\n"


def torque(robot: Robot, seed: int = 0) -> np.ndarray:
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, robot.dof))
    return newton_euler(robot, robot.parameter_vector, q, dq, ddq)


def without_friction(robot: Robot) -> Robot:
    for joint in robot.moving_joints:
        rotors = [model for model in joint.terms if isinstance(model, RotorInertia)]
        robot = robot.with_terms(*rotors, joints=[joint.name])
    return robot


def test_the_printed_listing_is_the_puma_260() -> None:
    with pytest.raises(DescriptionError, match="5 values for 6 links") as caught:
        parse_text(PRINTED)
    assert caught.value.place == "line 4"
    assert "short_rows" in str(caught.value.remedy)
    robot = parse_text(PRINTED, short_rows=True)
    np.testing.assert_allclose(torque(robot), torque(without_friction(zoo.puma260())), rtol=1e-13)


def test_labels_are_the_papers() -> None:
    rows = {"adyna": 1, "bdyna": 2, "cdyna": 3, "ddyna": 4, "edyna": 5, "fdyna": 6, "xgrav": 7, "ygrav": 8, "zgrav": 9}
    text = "number_links 1\nsigma 0\nalpha 0\ndpar 0\napar 0\nmass 10\n"
    text += "".join(f"{key} {value}\n" for key, value in rows.items()) + "stop"
    inertia = parse_text(text).bodies[0].inertia
    assert inertia.about_origin.tolist() == [[1, 4, 6], [4, 2, 5], [6, 5, 3]]
    assert inertia.first_moment.tolist() == [7, 8, 9]
    assert inertia.mass == 10


def test_reading_what_was_written_gives_the_same() -> None:
    description = parse_description(PRINTED, short_rows=True)
    text = description_text(description)
    assert parse_description(text) == description
    assert description_text(parse_description(text)) == text
    assert description.options == (("option", "moment"), ("option.update", "moment"))


@pytest.mark.parametrize("name", ["puma260", "puma560", "panda", "stanford", "cylindrical", "scara", "ur10", "ddarm"])
def test_a_robot_can_be_written(name: str) -> None:
    robot = without_friction(zoo.get(name))
    again = parse_text(description_text(robot))
    np.testing.assert_allclose(torque(again), torque(robot), rtol=1e-11, atol=1e-11)
    assert [b.is_prismatic for b in again.bodies] == [b.is_prismatic for b in robot.bodies]
    third = parse_text(description_text(again))
    np.testing.assert_allclose(third.parameter_vector, again.parameter_vector, atol=1e-13)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "arm.txt"
    path.write_text(SMALL)
    robot = read_text(path, gravity=(0, 1, 0))
    assert (robot.dof, robot.gravity.tolist()) == (2, [0, 1, 0])
    path.write_text(SMALL.replace("90", "ninety!"))
    with pytest.raises(DescriptionError, match=r"arm\.txt: line 3: 'ninety!'"):
        read_text(path)


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / "arm.bin"
    binary.write_bytes(b"\xff\xfe\x00number_links")
    for path in (binary, tmp_path, tmp_path / "absent.txt"):
        with pytest.raises(DescriptionError):
            read_text(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("number_links 2", "number_links two", "number_links"),
        ("number_links 2", "number_links 0", "number_links"),
        ("number_links 2", "number_links 99999999999999", "number_links"),
        ("number_links 2", "number_links 2\nnumber_links 2", "number_links"),
        ("number_links 2\n", "", "before number_links"),
        ("mass 1 2", "mass 1 2 3", "3 values for 2"),
        ("mass 1 2", "mass 1", "1 values for 2"),
        ("mass 1 2", "mass 1 2\nmass 1 2", "twice"),
        ("mass 1 2", "mass 1 m2", "'m2' has no value"),
        ("mass 1 2", "mass 1 nan", "'nan' has no value"),
        ("mass 1 2", "mass 1 __import__('os')", "neither"),
        ("mass 1 2", "mass 1 1e999", "too large"),
        ("mass 1 2", "weight 1 2", "not known"),
        ("sigma 0 1", "sigma 0 2", "sigma"),
        ("alpha 90 0\n", "", "missing: alpha"),
        ("stop", "variable m 1\nconstant m 2\nstop", "defined twice"),
        ("stop", "variable m\nstop", "name and a number"),
        ("stop", "variable 3m 1\nstop", "name and a number"),
        ("stop", "variable m one\nstop", "name and a number"),
        ("stop", "", "without 'stop'"),
    ],
)
def test_bad_text_is_refused(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(DescriptionError, match=message):
        parse_text(SMALL.replace(old, new, 1))


def test_a_long_text_is_refused() -> None:
    with pytest.raises(DescriptionError, match="longer"):
        parse_text("%" * 2_000_000)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_mutated_text_gives_a_robot_or_our_error(data: st.DataObject) -> None:
    text = list(PRINTED)
    for _ in range(data.draw(st.integers(1, 6))):
        position = data.draw(st.integers(0, len(text) - 1))
        text[position : position + data.draw(st.integers(0, 20))] = data.draw(st.text(max_size=4))
        if not text:
            break
    try:
        robot = parse_text("".join(text), short_rows=data.draw(st.booleans()))
    except DescriptionError:
        return
    assert robot.dof >= 1


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (zoo.puma560().with_terms(Viscous()), "rotor inertias only"),
        (zoo.puma560().with_gravity((0, 1, 0)), "gravity"),
        (zoo.puma560().with_gravity((0, 0, -1.62)), "gravity"),
        (from_dh([DH(), DH(alpha=1.0, theta=0.3), DH(d=1.0, alpha=1.0)]), "theta offsets"),
    ],
)
def test_what_the_format_cannot_say_is_refused(robot: Robot, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        description_text(robot)
