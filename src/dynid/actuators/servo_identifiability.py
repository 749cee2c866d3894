"""What a set of motions can tell about the parameters of servos, and which of them it tells only together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from dynid.actuators.motion import CommandedMotion
from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_model import Entry, ServoModel
from dynid.decompositions import eigh
from dynid.public_calls import public

__all__ = ["OpenDirection", "entry_sizes", "find_open_directions", "judge_servo_motions"]

Floats = NDArray[np.float64]
NO_SIGNAL = 1e-12
"""Eigenvalue of the scaled equations, relative to the largest, that counts as zero: derivatives are exact to about
1e-9 of their size, and eigenvalues are squares. Experiment: tests/actuators/test_servo_identifiability.py."""
PARTNER = 0.1
"""Share of a direction's largest component from which on a parameter is named. Convention."""


@dataclass(frozen=True, slots=True)
class OpenDirection:
    """A change of parameters that the motions do not show, or show less than noise would."""

    names: tuple[str, ...]
    """The parameters that change, largest relative change first."""
    changes: tuple[float, ...]
    """Their changes, each in units of its own size."""

    def __str__(self) -> str:
        if len(self.names) == 1:
            return f"{self.names[0]} has no effect on these motions that stands above their noise"
        shown = ", ".join(self.names[:-1]) + f" and {self.names[-1]}"
        return f"{shown} are only known together"


def entry_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """(P,) the size of every entry: its value, or the unit of its kind where that is larger."""
    return np.asarray(np.maximum(np.abs(values), np.array([entry.scale for entry in entries])))


def find_open_directions(
    entries: Sequence[Entry], values: Floats, information: Floats, variance: float = 0.0
) -> tuple[OpenDirection, ...]:
    """Changes of the parameters about which the equations say nothing.

    Args:
        entries: The entries of the model.
        values: (P,) their values.
        information: (P, P) ``J' J``.
        variance: Variance of a residual, raised by its correlation; a direction whose standard deviation is larger than
            the parameters themselves is then open too.
    """
    if not len(entries):
        return ()
    size = entry_sizes(entries, values)
    scaled = information * np.outer(size, size)
    eigenvalues, vectors = eigh(scaled)
    floor = max(NO_SIGNAL * float(eigenvalues[-1]), variance)
    basis = vectors[:, eigenvalues <= floor]
    return tuple(_named(entries, row) for row in _sparse_rows(basis.T))


def _sparse_rows(basis: Floats) -> Floats:
    """The same space by rows with as many zeros as elimination gives: one pivot each, zero in all other rows."""
    if not len(basis):
        return basis
    _, R, order = qr(basis, mode="economic", pivoting=True)
    k = len(basis)
    reduced = np.linalg.solve(R[:, :k], R)
    rows = np.empty_like(reduced)
    rows[:, order] = reduced
    return rows


def _named(entries: Sequence[Entry], row: Floats) -> OpenDirection:
    share = np.abs(row) / np.abs(row).max()
    chosen = [int(k) for k in np.argsort(-share, kind="stable") if share[k] >= PARTNER]
    return OpenDirection(tuple(entries[k].name for k in chosen), tuple(float(row[k]) for k in chosen))


@public
def judge_servo_motions(model: ServoModel, motions: Sequence[CommandedMotion]) -> tuple[OpenDirection, ...]:
    """What these motions cannot tell, before any fit: from the derivatives at the model's first guess.

    Args:
        model: The robot and its servos.
        motions: The motions; of their readings only the first are used.

    Example:
        >>> dynid.actuators.judge_servo_motions(servo, [sensed])
        ()
    """
    equations = ServoEquations(model, tuple(motions))
    return find_open_directions(model.entries, model.start, equations.normal(model.start).information)
