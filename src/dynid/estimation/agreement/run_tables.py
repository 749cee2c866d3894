"""Cross products of runs, joint by joint and block by block: all that a comparison of runs needs to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.equations import TIME_BLOCKS, Factors
from dynid.terms.motors import Offset

RESOLUTION = 1e-10
"""Relative eigenvalue of scaled cross products below which a direction is not determined (rounding, squared)."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Cross products of a run for each joint, in all and block by block.

    The columns are those of the unknowns, then one for the drift of each offset, then the torque.
    """

    number: int
    blocks: Floats
    """(blocks, n, m + d + 1, m + d + 1), of ten blocks at most"""
    total: Floats
    samples: Floats
    """(n,) number of valid samples of each joint"""

    @classmethod
    def of(cls, equations: Factors, number: int, segments: Sequence[int]) -> Run:
        information = equations.information
        size = len(information.columns) + 1
        present = set(information.segments)
        blocks, times = [], []
        samples = information.samples[[place for place, s in enumerate(information.segments) if s in set(segments)]]
        for place, segment in enumerate(segments):
            if segment not in present:
                continue
            table = np.zeros((information.dof, size, size))
            for joint, support in enumerate(information.supports):
                R, places = information.factor(joint, segment), [*support, size - 1]
                table[joint][np.ix_(places, places)] = R.T @ R
            blocks.append(table)
            times.append((2 * place + 1) / len(segments) - 1.0)
        stack = np.array(blocks).reshape(len(blocks), information.dof, size, size)
        stack = with_drifts(stack, np.array(times), offset_places(equations))
        return cls(number, stack, stack.sum(axis=0), samples.sum(axis=0).astype(float)).cut_into(TIME_BLOCKS)

    def cut_into(self, most: int) -> Run:
        """The run in longer blocks of time, at most so many.

        Noise that is correlated for longer than a block makes changes from block to block look small.
        """
        long = np.array_split(self.blocks, min(len(self.blocks), most))
        return replace(self, blocks=np.array([part.sum(axis=0) for part in long]))


def offset_places(equations: Factors) -> list[int]:
    """Places of the unknowns that are offsets."""
    robot, columns = equations.robot, equations.base.columns
    first = 10 * robot.dof
    return [
        place
        for place, column in enumerate(columns)
        if column >= first and isinstance(robot.terms[column - first].term, Offset)
    ]


def with_drifts(blocks: Floats, times: Floats, offsets: Sequence[int]) -> Floats:
    """Cross products of blocks with columns of some unknowns that grow with time, before the torque.

    Args:
        blocks: (blocks, n, m + 1, m + 1)
        times: (blocks,) middle of each block in time; the run lasts from -1 to 1.
        offsets: Places of the d unknowns.

    Returns:
        (blocks, n, m + d + 1, m + d + 1)
    """
    m = blocks.shape[-1] - 1
    order = [*range(m), *offsets, m]
    wider = blocks.take(order, axis=-2).take(order, axis=-1)
    wider[..., m:-1, :] *= times[:, None, None, None]
    wider[..., m:-1] *= times[:, None, None, None]
    return wider


def free_offsets(total: Floats, offsets: Iterable[int]) -> Floats:
    """Cross products (n, k, k) of what is left of all columns of a run beside offsets that are its own.

    Args:
        total: (n, k, k) cross products of the run.
        offsets: Places of these offsets.
    """
    left = total.copy()
    for place in offsets:
        column = left[:, place].copy()  # (n, k)
        acts = column[:, place] > RESOLUTION * np.maximum(total[:, place, place], 1e-300)
        left[acts] -= column[acts, :, None] * column[acts, None] / column[acts, place, None, None]
        left[:, place] = 0.0
        left[:, :, place] = 0.0
    return left
