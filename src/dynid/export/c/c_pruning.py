"""Robots without insignificant parameters ([Izaguirre1992] section 7), and what leaving them out costs.

`prune` drops base parameters (combinations of inertial and friction parameters that act on the torques) that hardly
matter on planned motions, with an error bound, for shorter code by `generate_c`. Parameters that were identified from
logs are chosen by `dynid.identification.significant_parameters` and fitted again; `pruning_cost` compares their code
with the full one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.compiled import regressor
from dynid.errors import ArgumentError
from dynid.export.c.c_model import regroup
from dynid.export.c.c_package import Source, generate_c
from dynid.identification.identify import Identification
from dynid.identification.significance import PrunedRobot, PruningCost
from dynid.identification.validation import Validation
from dynid.robot.model import Robot
from dynid.tape import OperationCount

Motions = Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]
"""Trajectories, each (q, dq, ddq) of shape (N, n)."""


def prune(robot: Robot, trajectories: Motions, *, threshold: float = 0.01) -> PrunedRobot:
    """Drop base parameters that hardly contribute to the torques ([Izaguirre1992] section 7).

    A parameter stays if, on any joint at any sample, its contribution reaches ``threshold`` times that joint's largest
    torque. The error bound of each joint adds the sizes of the dropped contributions, and holds at all samples.

    Args:
        robot: The robot with its parameter values.
        trajectories: The motions it will perform: (q, dq, ddq), each (N, n).
        threshold: Share of each joint's largest torque; the paper took 1 percent.

    Returns:
        The robot with zeros for the dropped parameters, their names and the error bound (n,) [N m or N].

    Raises:
        ArgumentError: There are no trajectories, or their arrays do not fit the robot.

    Example:
        >>> type(dynid.export.prune(robot, [(run.q, run.dq, run.ddq)])).__name__
        'PrunedRobot'
    """
    if not 0.0 <= threshold < 1.0:
        raise ArgumentError(f"threshold is {threshold}", remedy="Give a share between 0 and 1, such as 0.01.")
    base = regroup(robot)  # b combinations of the standard parameters that do not mix friction with inertia
    theta = robot.parameter_vector  # (p,)
    states = _samples(trajectories, robot.dof)
    terms = regressor(robot, *states, columns=base.columns) * base.combine(theta)  # (N, n, b) contributions
    contribution = np.abs(terms).max(axis=0)  # (n, b)
    largest_torque = np.abs(terms.sum(axis=2)).max(axis=0)  # (n,)
    reaches = (contribution >= threshold * largest_torque[:, None]) & (contribution > 0.0)
    kept = reaches.any(axis=0)
    return PrunedRobot.of(
        # standard parameters with the torques of the kept combinations
        robot.with_parameters(base.select(np.flatnonzero(kept)).standard(theta)),
        states[:1],  # positions alone
        criterion=f"at least {100 * threshold:g} % of the largest torque of a joint",
        kept=tuple(compress(base.names, kept)),
        dropped=tuple(compress(base.names, ~kept)),
        error_bound=np.abs(terms[:, :, ~kept]).sum(axis=2).max(axis=0),
        largest_torque=largest_torque,
    )


def _samples(trajectories: Motions, joints: int) -> list[Floats]:
    """Join all trajectories, one after another: positions, velocities, accelerations, each (N, n)."""
    remedy = f"Give one or more motions (q, dq, ddq), each (N, {joints}) with the same N."
    try:
        states = np.hstack([np.asarray(motion, dtype=float) for motion in trajectories])
    except (TypeError, ValueError) as error:
        raise ArgumentError("trajectories are no motions", remedy=remedy) from error
    if states.shape[0] != 3 or states.shape[2:] != (joints,) or not states.size or not np.isfinite(states).all():
        raise ArgumentError(f"trajectories of shape {states.shape} do not fit, or are not finite", remedy=remedy)
    return list(states)


def count_code(source: Source) -> Mapping[str, OperationCount]:
    """Count the operations of one call of the generated inverse dynamics and of the tasks of the two-rate structure.

    Args:
        source: As for `generate_c`.
    """
    return generate_c(source, ["inverse_dynamics"], two_rate=True).counts


def pruning_cost(fit: Identification, full: Validation | None = None, pruned: Validation | None = None) -> PruningCost:
    """Compare errors and code of an identification with those of its significant parameters alone.

    Args:
        fit: An identification by `Identification.with_significant`.
        full: Its validation on held-out data.
        pruned: The validation of ``fit.significance`` on the same data.

    Raises:
        ArgumentError: The identification has no significant parameters.

    Example:
        >>> from dataclasses import replace
        >>> short = replace(fit, significance=dynid.identification.significant_parameters(fit.equations))
        >>> type(dynid.export.pruning_cost(short)).__name__
        'PruningCost'
    """
    found = fit.significance
    if found is None:
        remedy = "Call fit.with_significant('1%')."
        raise ArgumentError("the identification has no significant parameters", remedy=remedy)
    before, after = count_code(fit), count_code(found)
    joints: dict[str, tuple[float, float]] = {}
    if full is not None and pruned is not None:
        pairs = zip(full.per_joint.tolist(), pruned.per_joint.tolist(), strict=True)
        joints = dict(zip(full.joint_names, pairs, strict=True))
    return PruningCost(
        parameters=(len(fit.estimate.names), len(found.kept)),
        training_error=(float(fit.training_error[-1]), float(found.training_error[-1])),
        held_out_error=None if full is None or pruned is None else (full.relative_error, pruned.relative_error),
        joint_errors=joints,
        operations={name: (cost, after[name]) for name, cost in before.items()},
    )
