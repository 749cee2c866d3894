"""Inverse dynamics in base parameters, and what it costs ([Lin1995] section III, [GautierKhalil1990] section VI).

The base parameters stand in the kept columns and zeros elsewhere, so the plain recursion recorded on these values loses
every term with a zero: that *is* the customised Newton-Euler algorithm. Counts are those of the recorded program:
sines, cosines and sign changes are not counted and constants are folded, as in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.dynamics.inverse_dynamics import rigid_body_torque
from dynid.parameters.base import base_parameters
from dynid.parameters.layout import parameter_layout
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.tables import Table
from dynid.tape import OperationCount, count, record

__all__ = ["SYMMETRIC_STANFORD", "count_inverse_dynamics", "counts_table", "general_robot"]

SYMMETRIC_STANFORD = ("ZZ1", "XX2", "ZZ2", "MY2", "MZ3", "M3", "XX4", "ZZ4", "MY4", "XX5", "ZZ5", "MY5", "XX6", "ZZ6")
"""Base parameters of the Stanford arm that are not zero when its links are symmetric."""


def count_inverse_dynamics(robot: Robot, kept: Sequence[str] | None = None) -> OperationCount:
    """Cost of the torques of the links for one state, the parameter values known.

    Args:
        robot: The robot; its terms are left out.
        kept: Names of the parameters that are not zero; the base parameters by default.
    """
    plain = replace(robot.with_terms(), couplings=())
    layout = parameter_layout(plain)
    columns = base_parameters(plain).columns if kept is None else [layout.index(name) for name in kept]
    theta = np.zeros(len(layout))
    theta[list(columns)] = np.sqrt(np.arange(2.0, 2.0 + len(columns)))  # all different, so that none cancel
    n = robot.dof
    return count(record(lambda q, dq, ddq: rigid_body_torque(plain, theta, q, dq, ddq), q=(n,), dq=(n,), ddq=(n,)))


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
        best = f"{case.best_known[0]}/{case.best_known[1]}"
        rows.append((case.name, cost.multiplications, cost.additions, best, case.printed))
    return Table.of(("robot", "multiplications", "additions", "best known", "papers"), rows)
