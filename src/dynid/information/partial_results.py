"""Partial results of a reduction, combined in a fixed binary tree.

A segment is cut into chunks of a fixed number of samples, counted from its start. A part covers ``2**level`` chunks
that begin at a multiple of ``2**level``; two neighbours that make up the next level are combined at once. So the parts
that remain, and every rounding on the way to them, depend only on which chunks are there, never on who reduced them or
when.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.information.triangular import join_triangles


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The reduced equations of some consecutive chunks of one segment."""

    segment: int
    level: int
    position: int
    """It covers the chunks ``position * 2**level`` to ``(position + 1) * 2**level - 1`` of the segment."""
    matrices: tuple[Floats, ...]
    """For each joint, the (w, w) triangle of its equations: its columns, then the torque."""
    samples: tuple[int, ...]
    """For each joint, the number of equations."""

    def __post_init__(self) -> None:
        """Freeze the matrices."""
        for matrix in self.matrices:
            matrix.setflags(write=False)

    @property
    def chunks(self) -> range:
        """The chunks of the segment it covers."""
        return range(self.position << self.level, (self.position + 1) << self.level)

    def join(self, right: Part) -> Part:
        """The part one level up, of this one and its right neighbour."""
        matrices = tuple(join_triangles(a, b) for a, b in zip(self.matrices, right.matrices, strict=True))
        samples = tuple(a + b for a, b in zip(self.samples, right.samples, strict=True))
        return Part(self.segment, self.level + 1, self.position >> 1, matrices, samples)


class Forest:
    """The parts of any number of segments while they grow."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[tuple[int, int], Part]] = {}

    def add(self, part: Part) -> None:
        """Add a part, and combine what has become complete.

        Raises:
            ArgumentError: if some of its chunks are here already: the same samples would count twice.
        """
        here = self._parts.setdefault(part.segment, {})
        for other in here.values():
            if part.chunks.start < other.chunks.stop and other.chunks.start < part.chunks.stop:
                raise ArgumentError(
                    f"segment {part.segment} would be counted twice",
                    remedy="Give the segments of different logs different numbers (renumber).",
                )
        while (neighbour := here.pop((part.level, part.position ^ 1), None)) is not None:
            left, right = (neighbour, part) if part.position & 1 else (part, neighbour)
            part = left.join(right)
        here[part.level, part.position] = part

    def parts(self) -> tuple[Part, ...]:
        """What there is, by segment and then by position."""
        return tuple(
            part
            for segment in sorted(self._parts)
            for part in sorted(self._parts[segment].values(), key=lambda part: part.chunks.start)
        )
