"""Inverse dynamics in base parameters, and what it costs ([Lin1995] section III, [GautierKhalil1990] section VI).

Standard form: the base parameters stand in the kept columns and zeros elsewhere, so the plain recursion recorded on
these values loses every term with a zero: that *is* the customised Newton-Euler algorithm. Minimal form: the recursion
in Lin's minimal linear combinations. Counts are those of the recorded program: sines, cosines and sign changes are not
counted and constants are folded, as in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.chain import find_chain
from dynid.dynamics.inverse_dynamics import rigid_body_torque
from dynid.dynamics.minimal_recursion import minimal_steps, minimal_torque, minimal_values
from dynid.kernels import Form
from dynid.parameters.base import base_parameters
from dynid.parameters.layout import parameter_layout
from dynid.robot.model import Robot
from dynid.tables import Table
from dynid.tape import OperationCount, count, record
from dynid.tape.count import count_by_output


def count_inverse_dynamics(
    robot: Robot, kept: Sequence[str] | None = None, *, form: Form = "standard"
) -> OperationCount:
    """Cost of the torques of the links for one state, the parameter values known.

    Args:
        robot: The robot; its terms are left out.
        kept: Names of the parameters that are not zero; all of them by default.
        form: ``"standard"`` counts the recursion in base parameters, ``"minimal"`` that in Lin's set.
    """
    plain, theta = _known_values(robot, kept, form)
    shape, torque = (robot.dof,), partial(rigid_body_torque, plain, theta)
    if form == "minimal":
        chain = find_chain(plain)
        torque = partial(minimal_torque, chain, minimal_values(chain, theta))
    return count(record(lambda q, dq, ddq: torque(q, dq, ddq), q=shape, dq=shape, ddq=shape))


def _known_values(robot: Robot, kept: Sequence[str] | None, form: str) -> tuple[Robot, Floats]:
    """The robot without terms, and parameter values that are all different, so that none cancel."""
    plain = replace(robot.with_terms(), couplings=())
    layout = parameter_layout(plain)
    columns: Sequence[int] = range(len(layout)) if form == "minimal" else base_parameters(plain).columns
    columns = columns if kept is None else [layout.index(name) for name in kept]
    theta = np.zeros(len(layout))
    theta[list(columns)] = np.sqrt(np.arange(2.0, 2.0 + len(columns)))
    return plain, theta


def count_steps(robot: Robot) -> dict[tuple[int, int], tuple[int, int]]:
    """Cost of every variable of the recursion in minimal linear combinations; together they are the whole cost.

    Returns:
        (joint from 0, number of the equation in [Lin1995]) -> multiplications and additions beyond those of the
        variables before; equation 91 stands for the part of D that varies with slides.
    """
    plain, theta = _known_values(robot, None, "minimal")
    chain, n = find_chain(plain), robot.dof
    values = minimal_values(chain, theta)
    keys: list[tuple[int, int]] = []

    def run(q: Any, dq: Any, ddq: Any) -> dict[str, Any]:
        steps = minimal_steps(chain, values, q, dq, ddq)
        keys[:] = list(steps)
        outputs = {f"step{k}": np.array(value, dtype=object).ravel() for k, value in enumerate(steps.values())}
        return outputs | {"torque": np.array([steps[j, 68] for j in range(n)])}

    costs = count_by_output(record(run, q=(n,), dq=(n,), ddq=(n,)), "torque")
    found = (costs[f"step{k}"] for k in range(len(keys)))
    return {key: (cost.multiplications, cost.additions) for key, cost in zip(keys, found, strict=True)}


def steps_table(robot: Robot) -> Table:
    """Cost of every variable of the recursion in minimal linear combinations, joint by joint ([Lin1995] Table II)."""
    costs = count_steps(robot)
    equations = list(dict.fromkeys(equation for _, equation in costs))
    rows = [
        (f"({equation})", *(f"{m}M {a}A" if m or a else "-" for m, a in (costs[j, equation] for j in range(robot.dof))))
        for equation in equations
    ]
    return Table.of(("equation", *robot.joint_names), rows)
