"""Operation counts of generated code against the paper's and against the targets; the paper's own listing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dynid.export.c.c_package import generate_c
from dynid.identifiability.base import base_parameters
from dynid.robot import zoo
from dynid.robot.model import Robot


def cost(package, function):
    count = package.counts[function]
    return count.multiplications, count.additions


def within(found: tuple[int, int], most: tuple[int, int]) -> bool:
    return found[0] <= most[0] and found[1] <= most[1]


def dense(robot: Robot) -> Robot:
    """The robot with random values of all its base parameters: nothing vanishes by luck."""
    base = base_parameters(robot)
    values = np.zeros(len(base.layout))
    values[list(base.columns)] = np.random.default_rng(0).uniform(0.5, 1.5, base.rank)
    return robot.with_parameters(values)


def operators(text: str) -> tuple[int, int, int, int]:
    """Products, sums, quotients and changes of sign that a reader of the C text counts."""
    text = re.sub(r"\[\d+\]", "", text)
    text = re.sub(r"\(-[\d.e+-]+f?\)|(?<!\w)\d[\d.]*(e[+-]?\d+)?f?", "K", text)  # literals with their signs
    sums = re.findall(r"(?<=[\w)]) [+-] ", text)
    return text.count(" * "), len(sums), text.count(" / "), len(re.findall(r"(?<![\w)] )-\w", text))


@pytest.mark.parametrize(
    ("name", "options"), [("panda", {}), ("puma260", {"load": "struct"}), ("scara", {"precision": "float"})]
)
def test_the_counts_are_those_of_the_text(name, options):
    functions = ["inverse_dynamics", "inertia_matrix", "velocity_torque", "forward_dynamics", "regressor"]
    package = generate_c(zoo.get(name), functions, name="arm", **options)
    text = package.files["arm.c"] + package.files["arm_two_rate.c"]
    for function in [*functions, "background_inertia", "background_velocity", "synchronous"]:
        bodies = re.findall(rf"^(?:static )?void arm_{function}(?:_values)?\([^\n]*\)\n{{\n(.*?)^}}", text, re.S | re.M)
        lines = [line.partition("=")[2] for line in max(bodies, key=len).splitlines() if "&" not in line]
        count = package.counts[function]
        wanted = (count.multiplications, count.additions, count.divisions, count.negations)
        assert operators("\n".join(lines)) == wanted, function


def test_puma260_costs_less_than_in_the_paper():
    links = zoo.puma260().with_terms()  # velocity torques are those of the links
    package = generate_c(zoo.puma260(), ["velocity_torque"])
    assert within(cost(package, "background_inertia"), (93, 56))  # the paper: 98/70
    assert within(cost(generate_c(links, ["velocity_torque"]), "velocity_torque"), (115, 69))  # the paper: 140/110
    assert package.counts["velocity_torque"].divisions == 0


def test_puma260_with_a_load_costs_less_than_in_the_paper():
    package = generate_c(zoo.puma260(), ["velocity_torque"], load="struct")
    assert within(cost(package, "background_inertia"), (166, 120))  # the paper: 190/150
    assert within(cost(package, "velocity_torque"), (180, 129))  # the paper: 200/170


COSTS = """
background_inertia puma560 177 146
background_inertia stanford 114 99
inverse_dynamics puma560 257 240
inverse_dynamics stanford 224 209
inverse_dynamics scara 41 30
"""
"""Function, robot, most products and most sums; the background holds the inertias and gravity."""


@pytest.mark.parametrize("case", COSTS.strip().splitlines())
def test_inverse_dynamics_of_all_base_parameters(case):
    function, name, *most = case.split()
    alone = function == "inverse_dynamics"
    package = generate_c(dense(zoo.get(name)), [function if alone else "gravity"], two_rate=not alone)
    assert within(cost(package, function), tuple(map(int, most)))


def test_synchronous_task_costs_n_multiplications_and_n_plus_one_additions_per_joint():
    assert cost(generate_c(zoo.puma260(), ["gravity"]), "synchronous") == (36, 42)
