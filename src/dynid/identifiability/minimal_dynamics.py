"""Count the operations of inverse dynamics in base parameters ([Lin1995] section III, [GautierKhalil1990] section VI).

Standard form: all parameters but the base parameters are zero. The plain recursion, recorded with these values, loses
every product with a zero: that *is* the customised Newton-Euler algorithm. Minimal form: the recursion in Lin's minimal
linear combinations. Counted is the recorded program, in which constants are folded. As in the papers, sines, cosines
and sign changes do not count.
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
    """Cost of the torques of the links for one state, where parameter values are known numbers.

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
    """The robot without terms, and a parameter vector (p,) of which the kept values are different irrational numbers.

    So no values cancel or coincide by chance. The arguments are those of `count_inverse_dynamics`.
    """
    plain = replace(robot.with_terms(), couplings=())
    layout = parameter_layout(plain)
    columns: Sequence[int] = range(len(layout)) if form == "minimal" else base_parameters(plain).columns
    columns = columns if kept is None else [layout.index(name) for name in kept]
    theta = np.zeros(len(layout))
    theta[list(columns)] = np.sqrt(np.arange(2.0, 2.0 + len(columns)))
    return plain, theta
