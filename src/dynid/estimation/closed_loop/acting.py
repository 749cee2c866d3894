"""Regressors without their zeros: of every joint the columns of those parameters only that act on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.estimation.closed_loop.loop_stability import dry_joints
from dynid.loop.arm import Arm
from dynid.tape import Program, compile_tape
from dynid.tape.record import Recorder, replay


@dataclass(frozen=True, slots=True, eq=False)
class Acting:
    """The K pairs of joint and base parameter that are not zero at all times, joint after joint.

    Rows (N, K) stand for regressors (N, n, b): less than half of them on a long arm.
    """

    columns: tuple[NDArray[np.int64], ...]
    """Parameters that act on each joint"""
    size: int
    """b"""
    of_terms: NDArray[np.bool_]
    """(K,) which pairs are of terms, not of links"""
    dry: NDArray[np.bool_]
    """(n,) joints with dry friction"""
    links: Program
    """(q, dq, ddq) -> rows, those of the terms zero"""
    all: Program
    """(q, dq, ddq) -> rows, friction smoothed"""

    @property
    def parts(self) -> list[slice]:
        """Where each joint's pairs are."""
        edges = np.cumsum([0, *(len(mine) for mine in self.columns)]).tolist()
        return [slice(start, stop) for start, stop in pairwise(edges)]

    def times(self, rows: Floats, values: Floats) -> Floats:
        """(N, n) torques of rows (N, K) with parameters (b,)."""
        pairs = zip(self.parts, self.columns, strict=True)
        return np.stack([rows[:, part] @ values[mine] for part, mine in pairs], axis=1)

    def scale(self, rows: Floats, factors: Floats | NDArray[np.bool_]) -> None:
        """Multiply each joint's pairs of rows (N, K) by factors (N, n), in place."""
        for joint, part in enumerate(self.parts):
            rows[:, part] *= factors[:, joint, None]

    def products(self, left: Floats, right: Floats) -> Floats:
        """(n, b, b) sums over the samples of ``left' right``, joint by joint."""
        sums = np.zeros((len(self.columns), self.size, self.size))
        for joint, (part, mine) in enumerate(zip(self.parts, self.columns, strict=True)):
            sums[joint, mine[:, None], mine] = left[:, part].T @ right[:, part]
        return sums

    def sums(self, rows: Floats, torques: Floats) -> Floats:
        """(n, b) sums over the samples of ``rows' torques``, torques (N, n)."""
        sums = np.zeros((len(self.columns), self.size))
        for joint, (part, mine) in enumerate(zip(self.parts, self.columns, strict=True)):
            sums[joint, mine] = torques[:, joint] @ rows[:, part]
        return sums

    def whole(self, rows: Floats, weights: Floats) -> Floats:
        """(N, n, b) with the zeros, each joint's multiplied by its weight (n,)."""
        result = np.zeros((len(rows), len(self.columns), self.size))
        for joint, (part, mine) in enumerate(zip(self.parts, self.columns, strict=True)):
            result[:, joint, mine] = rows[:, part] * weights[joint]
        return result


@lru_cache(maxsize=32)
def acting(arm: Arm) -> Acting:
    """What acts on an arm's joints; from the cache where an equal arm had it made."""
    tape = arm.motion_columns()
    pairs = tape.sparsity("output")
    elements = tape.output("output").elements[pairs].tolist()
    of_terms = (np.array(arm.columns) >= 10 * arm.robot.dof)[np.nonzero(pairs)[1]]
    recorder = Recorder()
    value = replay(tape, recorder, np.concatenate([recorder.input(x.name, x.shape) for x in tape.inputs]))
    rows: Any = np.full(len(elements), 0.0, dtype=object)
    for k in np.flatnonzero(~of_terms).tolist():
        rows[k] = value(elements[k])
    return Acting(
        tuple(np.flatnonzero(mine) for mine in pairs),
        pairs.shape[1],
        of_terms,
        dry_joints(arm.robot),
        compile_tape(recorder.tape({"output": rows})),
        compile_tape(tape.select({"output": pairs})),
    )
