"""Generated C in Lin's minimal linear combinations: same torques, and the operations of his algorithm."""

from __future__ import annotations

import pytest

from dynid.compiled import kernel
from dynid.errors import ArgumentError
from dynid.export.c.c_package import generate_c
from dynid.identifiability.base import base_parameters
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.random_robots import random_robot

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "regressor")


def test_the_operations_are_those_of_the_recursion():
    robot = zoo.stanford()
    base = base_parameters(robot, "minimal-combinations")
    package = generate_c(robot, FUNCTIONS, base=base, two_rate=False)
    assert max(package.check(samples=50).values()) < 1e-9
    cost = kernel(robot, "minimal_inverse_dynamics").count
    assert package.counts["inverse_dynamics"].multiplications == cost.multiplications
    assert package.counts["inverse_dynamics"].additions == cost.additions


def test_any_frames_turning_and_sliding_joints():
    """Compiled by a C compiler and compared with the plain recursion."""
    robot = random_robot(3, joints=5, terms=True)
    base = base_parameters(robot, "minimal-combinations")
    errors = generate_c(robot, ("inverse_dynamics", "regressor"), base=base, two_rate=False).check(samples=50)
    assert max(errors.values()) < 1e-12


def test_members_are_values_at_run_time():
    """The compiled code reads the members of the set S; the check varies them, and hangs loads on the last link."""
    robot = zoo.puma560()
    base = base_parameters(robot, "minimal-combinations")
    package = generate_c(robot, base=base, parameters="struct", load="struct")
    assert max(package.check(samples=50).values()) < 1e-9
    header = next(text for name, text in package.files.items() if name.endswith(".h"))
    assert f"_KY2 = {base.names.index('KY2')}, /* [kg m] */" in header
    assert "U11_U22_4" in header


def test_folded_values_with_a_load_ask_for_columns_of_the_regressor():
    base = base_parameters(zoo.stanford(), "minimal-combinations")
    with pytest.raises(ArgumentError, match="not columns of the regressor"):
        generate_c(zoo.stanford(), base=base, load="struct")


def test_a_member_that_mixes_weight_with_an_offset_is_refused():
    """On a joint that slides along gravity a rotor equals a mass minus an offset, so the offset joins two members."""
    robot = zoo.scara().with_terms(RotorInertia(0.1), Viscous(1.0), Coulomb(1.0), Offset(0.1))
    base = base_parameters(robot, "minimal-combinations")
    with pytest.raises(ArgumentError, match="mixes friction with gravity"):
        generate_c(robot, ("inverse_dynamics",), base=base, parameters="struct")
    assert max(generate_c(robot, ("inverse_dynamics",), base=base).check(samples=20).values()) < 1e-12
