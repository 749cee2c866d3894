"""Partial results of the reduction of a log, combined in a fixed binary tree.

The reduction replaces the equations of many samples by one triangular matrix per joint, chunk after chunk (a chunk is a
fixed number of samples, counted from the start of a segment; a segment is a numbered stretch of the log). `Forest`
collects these results as `Part` objects and joins them; `reduction` and `Information.merge` use it.

A part covers ``2**level`` consecutive chunks of a segment, and begins at a multiple of ``2**level``. As soon as both
halves of a larger part are there, they are joined. So the parts that remain, and every rounding error on the way to
them, depend only on which chunks were added, never on their order or on the thread that reduced them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynid.array_types import Floats
from dynid.data_reduction.triangular import join_triangles
from dynid.errors import ArgumentError


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The reduced equations of some consecutive chunks of one segment."""

    segment: int
    """Number of the segment."""
    level: int
    """The part covers ``2**level`` chunks."""
    position: int
    """These are the chunks ``position * 2**level`` to ``(position + 1) * 2**level - 1`` of the segment."""
    matrices: tuple[Floats, ...]
    """(n,) for each joint the triangle R (w, w) of its equations, with ``R.T @ R == W.T @ W`` for the rows W (m, w) of
    all samples: w - 1 columns of the regressor, then the torque."""
    samples: tuple[int, ...]
    """(n,) for each joint, the number of equations."""

    def __post_init__(self) -> None:
        """Make the matrices read-only."""
        for matrix in self.matrices:
            matrix.setflags(write=False)

    @property
    def chunks(self) -> range:
        """Numbers of the chunks that the part covers."""
        return range(self.position << self.level, (self.position + 1) << self.level)

    def join(self, right: Part) -> Part:
        """Join this part with the one that follows it into a part of the next level."""
        matrices = tuple(join_triangles(a, b) for a, b in zip(self.matrices, right.matrices, strict=True))
        samples = tuple(a + b for a, b in zip(self.samples, right.samples, strict=True))
        return Part(self.segment, self.level + 1, self.position >> 1, matrices, samples)


class Forest:
    """Collects the parts of any number of segments, one binary tree per segment."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[tuple[int, int], Part]] = {}  # segment -> (level, position) -> part

    def add(self, part: Part) -> None:
        """Add a part, and join it with the other half of the next larger part if that is there, level after level.

        Raises:
            ArgumentError: if some of its chunks are here already: the same samples would count twice.
        """
        tree = self._parts.setdefault(part.segment, {})
        for other in tree.values():
            if part.chunks.start < other.chunks.stop and other.chunks.start < part.chunks.stop:
                raise ArgumentError(
                    f"segment {part.segment} would be counted twice",
                    remedy="Give the segments of different logs different numbers (renumber).",
                )
        # the two halves of a larger part have positions 2 k and 2 k + 1: they differ in the last bit
        while (neighbour := tree.pop((part.level, part.position ^ 1), None)) is not None:
            left, right = (neighbour, part) if part.position & 1 else (part, neighbour)
            part = left.join(right)
        tree[part.level, part.position] = part

    def parts(self) -> tuple[Part, ...]:
        """All parts, sorted by segment and then by their first chunk."""
        return tuple(
            part
            for segment in sorted(self._parts)
            for part in sorted(self._parts[segment].values(), key=lambda part: part.chunks.start)
        )
