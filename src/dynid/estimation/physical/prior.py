"""The prior as a metric: standard parameters and terms in units in which the prior is one.

Unknowns y are, for every body, `svec` of its pseudo-inertia whitened by the prior's, then the terms' parameters
over their prior values, then the terms over the size that the noise gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.physical.pseudo_inertia import WhitenedBody, svec
from dynid.findings import Finding
from dynid.robot.model import Robot

__all__ = ["PriorCoordinates", "term_signs"]

Floats = NDArray[np.float64]
IDENTITY = svec(np.eye(4))
FEATURE_SIZE = 1000.0
"""Torque of a term, all samples together and in units of the noise, at which the prior begins to hold it back."""


@dataclass(frozen=True, slots=True, eq=False)
class PriorCoordinates:
    """Scaled unknowns y (p + k,) around a robot."""

    from_scaled: Floats
    """(p, p) standard parameters = from_scaled @ y"""
    centre: Floats
    """(p,) the prior's y"""
    pull: Floats
    """(p,) how strongly each y is drawn to the centre, relative to the weight"""
    nonnegative: tuple[int, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, robot: Robot, lengths: Floats) -> PriorCoordinates:
        """Around a robot; terms are scaled by the lengths (k,) of their weighted columns."""
        bodies = [WhitenedBody.around(body.inertia, body.joint.child) for body in robot.bodies]
        models = np.concatenate([robot.parameter_vector[10 * robot.dof :], np.zeros(lengths.size)])
        count = 10 * len(bodies) + models.size
        from_scaled = np.zeros((count, count))
        for j, body in enumerate(bodies):
            from_scaled[10 * j : 10 * j + 10, 10 * j : 10 * j + 10] = body.from_whitened
        size = np.where(models != 0.0, np.abs(models), 1.0)
        size[size.size - lengths.size :] = FEATURE_SIZE / np.where(np.isfinite(lengths), lengths, 1.0)
        from_scaled[range(10 * len(bodies), count), range(10 * len(bodies), count)] = size
        # unknown friction is left to the data; a trace of pull keeps the program strictly convex. Terms compete with
        # one another, so what the data cannot tell apart stays small
        pull = np.concatenate([np.ones(10 * len(bodies)), np.where(models != 0.0, 1e-2, 1e-6)])
        pull[pull.size - lengths.size :] = 1.0
        return cls(
            from_scaled,
            np.concatenate([np.tile(IDENTITY, len(bodies)), models / size]),
            pull,
            tuple(10 * len(bodies) + k for k, sign in enumerate(term_signs(robot)) if sign),
            tuple(finding for body in bodies for finding in body.findings),
        )


def term_signs(robot: Robot) -> list[bool]:
    """Whether the parameter of each term must not be negative."""
    return [placed.term.is_non_negative for placed in robot.terms]
