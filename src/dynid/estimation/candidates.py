"""The terms that forward selection tries by default, sized by the motion itself.

A term enters on all joints at once: what all joints show is worth more than what one joint shows by chance. Each class
in `dynid.terms.TERMS` says which of its terms to try, see `Term.candidates`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.estimation.selection import Candidate
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms import TERMS
from dynid.terms.base import Reference, TermSizes

__all__ = ["standard_candidates"]

HIGH_SPEED_PERCENTILE = 95.0
"""Percentile of a joint's speeds that counts as its high speed (convention)."""
SMALLEST_SIZE = 1e-9
"""Added to speeds and travels, so that a joint at rest has a scale too [rad, rad/s, m or m/s]."""


def standard_candidates(
    robot: Robot, experiments: Sequence[Experiment], reference: Reference, *, memory: bool = True
) -> tuple[Candidate, ...]:
    """List the groups of terms that selection tries: those of every class in `dynid.terms.TERMS`.

    Args:
        robot: The robot; friction of its couplings' motors is included.
        experiments: The motion that sets velocities and travels.
        reference: Parameters that give about the right torques, for example of an earlier fit.
        memory: Whether the samples follow one another in time, so that friction with memory makes sense.
    """
    speed = np.percentile(np.abs(np.concatenate([run.dq for run in experiments])), HIGH_SPEED_PERCENTILE, axis=0)
    sizes = TermSizes(
        speed=speed + SMALLEST_SIZE,
        travel=np.ptp(np.concatenate([run.q for run in experiments]), axis=0) + SMALLEST_SIZE,
        gravity=robot.gravity,
        motors=tuple(tuple((robot.joint_names.index(n), r) for n, r in c.ratios.items()) for c in robot.couplings),
        most_loaded=_most_loaded_joint(experiments),
        reference=reference,
    )
    groups = [Candidate(name, tuple(terms)) for term in TERMS for name, terms in term.candidates(sizes).items()]
    return tuple(group for group in groups if group.terms and (memory or not group.has_memory))


def _most_loaded_joint(experiments: Sequence[Experiment]) -> int:
    """Index of the joint with the largest torques: its drive sets the scale against which other gains are measured."""
    squares = sum(np.where(run.valid, run.effort, 0.0).T ** 2 @ np.ones(run.samples) for run in experiments)
    return int(np.argmax(squares))
