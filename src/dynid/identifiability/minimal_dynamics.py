"""Count the operations of inverse dynamics in base parameters ([Lin1995] section III, [GautierKhalil1990] section VI).

`count_inverse_dynamics` serves the command ``dynid base --counts`` and the comparison with the papers' tables. It
records the Newton-Euler recursion as a program of scalar operations, with the parameter values as constants, and counts
what remains after products with zero are removed and constants are combined. As in the papers, sines, cosines and sign
changes do not count.

Standard form: all standard parameters but those kept as base parameters are zero; the recorded recursion then is the
customised Newton-Euler algorithm. Minimal form: Lin's recursion in the minimal linear combinations of [Lin1995].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dynid.array_types import Floats
from dynid.compiled import Form
from dynid.dynamics.chain import find_chain
from dynid.dynamics.inverse_dynamics import rigid_body_torque
from dynid.dynamics.minimal_recursion import minimal_torque, minimal_values
from dynid.identifiability.base import base_parameters
from dynid.identifiability.layout import parameter_layout
from dynid.robot.model import Robot
from dynid.tape import OperationCount, count, record


def count_inverse_dynamics(
    robot: Robot, kept: Sequence[str] | None = None, *, form: Form = "standard"
) -> OperationCount:
    """Additions and multiplications for the torques of the links in one state, if parameter values are known numbers.

    Args:
        robot: The robot; its terms are left out.
        kept: Names of the parameters that are not zero; by default the base parameters in the standard form, and all
            parameters in the minimal form.
        form: ``"standard"`` counts the recursion in base parameters, ``"minimal"`` that in Lin's set.
    """
    plain, theta = known_values(robot, kept, form)
    shape = (robot.dof,)
    torque = partial(rigid_body_torque, plain, theta)
    if form == "minimal":
        chain = find_chain(plain)
        torque = partial(minimal_torque, chain, minimal_values(chain, theta))
    return count(record(lambda q, dq, ddq: torque(q, dq, ddq), q=shape, dq=shape, ddq=shape))


def known_values(robot: Robot, kept: Sequence[str] | None, form: str) -> tuple[Robot, Floats]:
    """The robot without terms, and its parameter vector (p,) with square roots of 2, 3, 4 ... at the kept parameters.

    The kept values are different numbers, so that none cancel by chance; the others are zero. The arguments are those
    of `count_inverse_dynamics`.
    """
    plain = replace(robot.with_terms(), couplings=())
    layout = parameter_layout(plain)
    columns: Sequence[int] = range(len(layout)) if form == "minimal" else base_parameters(plain).columns
    columns = columns if kept is None else [layout.index(name) for name in kept]
    theta = np.zeros(len(layout))
    theta[list(columns)] = np.sqrt(np.arange(2.0, 2.0 + len(columns)))
    return plain, theta
