"""Inverse dynamics in base parameters, and what it costs ([Lin1995] section III, [GautierKhalil1990] section VI).

Standard form: the base parameters stand in the kept columns and zeros elsewhere, so the plain recursion recorded on
these values loses every term with a zero: that *is* the customised Newton-Euler algorithm. Minimal form: the recursion
in Lin's minimal linear combinations. Counts are those of the recorded program: sines, cosines and sign changes are not
counted and constants are folded, as in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.chain import place_chain
from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque
from dynid.dynamics.minimal_inertia import minimal_inertia_matrix
from dynid.dynamics.minimal_recursion import minimal_steps, minimal_torque, minimal_values
from dynid.kernels import Form
from dynid.parameters.base import base_parameters
from dynid.parameters.layout import parameter_layout
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.tables import Table
from dynid.tape import OperationCount, count, record
from dynid.tape.count import count_by_output

SYMMETRIC_STANFORD = ("ZZ1", "XX2", "ZZ2", "MY2", "MZ3", "M3", "XX4", "ZZ4", "MY4", "XX5", "ZZ5", "MY5", "XX6", "ZZ6")
"""Base parameters of the Stanford arm that are not zero when its links are symmetric."""


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
    shape = (robot.dof,)
    if form == "standard":
        return count(
            record(lambda q, dq, ddq: rigid_body_torque(plain, theta, q, dq, ddq), q=shape, dq=shape, ddq=shape)
        )
    placed = place_chain(plain)
    values = minimal_values(placed, theta)
    return count(
        record(lambda q, dq, ddq: minimal_torque(placed.chain, values, q, dq, ddq), q=shape, dq=shape, ddq=shape)
    )


def count_inertia_matrix(robot: Robot, *, form: Form = "standard") -> OperationCount:
    """Cost of the inertia matrix of the links; see `count_inverse_dynamics`."""
    plain, theta = _known_values(robot, None, form)
    if form == "standard":
        return count(record(lambda q: composite_inertia_matrix(plain, theta, q), q=(robot.dof,)))
    placed = place_chain(plain)
    values = minimal_values(placed, theta)
    return count(record(lambda q: minimal_inertia_matrix(placed.chain, values, q), q=(robot.dof,)))


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
    placed, n = place_chain(plain), robot.dof
    values = minimal_values(placed, theta)
    keys: list[tuple[int, int]] = []

    def run(q: Any, dq: Any, ddq: Any) -> dict[str, Any]:
        steps = minimal_steps(placed.chain, values, q, dq, ddq)
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


def general_robot(joints: int) -> Robot:
    """A robot of revolute joints with neither right angles nor zero lengths, on an upright base."""
    rows = [DH(alpha=0.3 + 0.1 * j, d=0.2 + 0.03 * j, r=0.3 + 0.05 * j) for j in range(1, joints)]
    return from_dh([DH(), *rows], name=f"{joints} general revolute joints")


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    robot: Robot
    best_known: tuple[int, int]
    printed: str = ""
    kept: tuple[str, ...] | None = None


def _cases() -> list[_Case]:
    general = [
        _Case(f"{n}R, general", general_robot(n), (82 * n - 100, 70 * n - 91), f"Lin {89 * n - 82}/{77 * n - 71}")
        for n in (3, 6, 7)
    ]
    symmetric = "Lin 139/101, Gautier-Khalil 142/99"
    return [
        *general,
        _Case("PUMA 560", zoo.puma560(), (257, 240)),
        _Case("Stanford", zoo.stanford(), (224, 209), "Lin 231/219, Gautier-Khalil 232/218"),
        _Case("Stanford, symmetric links", zoo.stanford(), (136, 99), symmetric, SYMMETRIC_STANFORD),
        _Case("PUMA 260", zoo.puma260(), (252, 235)),
        _Case("3R of Gautier and Khalil", zoo.gautier_khalil_3r(), (91, 82)),
        _Case("direct-drive arm, modified DH", zoo.ddarm(frames="modified-dh"), (92, 84)),
        _Case("direct-drive arm, paper's frames", zoo.ddarm(), (92, 84)),
        _Case("SCARA", zoo.scara(), (41, 30)),
    ]


def counts_table() -> Table:
    """Cost of inverse dynamics in base parameters, beside the best known counts and the papers'."""
    rows = []
    for case in _cases():
        cost = count_inverse_dynamics(case.robot, case.kept)
        minimal = count_inverse_dynamics(case.robot, case.kept, form="minimal")
        best = f"{case.best_known[0]}/{case.best_known[1]}"
        short = f"{minimal.multiplications}/{minimal.additions}"
        rows.append((case.name, cost.multiplications, cost.additions, short, best, case.printed))
    return Table.of(("robot", "multiplications", "additions", "minimal form", "best known", "papers"), rows)
