"""Logs reduced to small triangular matrices, one per joint and segment, from which least squares are solved.

`reduce_samples` makes an `Information` from a log. For the rows W (m, w + 1) of a joint's equations ``tau = Y theta``
at m samples (w columns of Y, then the torque), it keeps an upper triangular R (w + 1, w + 1) with ``R.T @ R == W.T @
W`` ("triangle"). Residuals for any theta, and all least-squares problems, follow from R: ``|W x| == |R x|``.
`Information.weight` puts the joints together to a `Factor`, which the estimators solve.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.checks import as_columns
from dynid.data_reduction import storage
from dynid.data_reduction.factor import Factor
from dynid.data_reduction.partial_results import Forest, Part
from dynid.data_reduction.triangular import append_many_rows, join_triangles, nonzero_rows, triangle_of
from dynid.errors import ArgumentError
from dynid.lazy import cached_property


@dataclass(frozen=True, kw_only=True, eq=False)
class Information:
    """Everything that linear least squares needs of a log, without the log.

    Make one with `reduce_samples`. A segment is a numbered stretch of a log. Weights of joints, subsets of columns and
    of segments can be chosen afterwards, any number of times.
    """

    robot: str
    """Name of the robot."""
    fingerprint: str
    """Hash that identifies the equations that were reduced."""
    columns: tuple[int, ...]
    """(p,) columns of the robot's regressor, as indices into `Robot.parameter_vector`; larger numbers belong to further
    columns that do not come from the robot."""
    supports: tuple[tuple[int, ...], ...]
    """(n,) for each joint its support: the positions in `columns` that can act on its torque, w of them."""
    parts: tuple[Part, ...] = field(repr=False)
    """The triangles of all joints, for some consecutive samples of one segment each."""

    # --- sizes -----------------------------------------------------------------------------------------------------

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.supports)

    @cached_property
    def segments(self) -> tuple[int, ...]:
        """(S,) numbers of the S segments, ascending."""
        return tuple(sorted(self._by_segment))

    @cached_property
    def _by_segment(self) -> dict[int, list[Part]]:
        """The parts of each segment, in the order of their samples."""
        found: dict[int, list[Part]] = {}
        for part in self.parts:
            found.setdefault(part.segment, []).append(part)
        return found

    @cached_property
    def samples(self) -> NDArray[np.int64]:
        """(S, n) number of equations of each segment and joint."""
        counts = [np.sum([part.samples for part in self._by_segment[s]], axis=0) for s in self.segments]
        return np.array(counts, dtype=np.int64).reshape(len(counts), self.dof)

    def factor(self, joint: int, segment: int | None = None) -> Floats:
        """Triangular matrix (w + 1, w + 1) of one joint: the columns in its support, then its torque.

        Args:
            joint: Index of the joint.
            segment: Number of the segment; all of them together by default.
        """
        if segment is not None and segment not in self._by_segment:
            self._check_segments((segment,))
        if not 0 <= joint < self.dof:
            raise ArgumentError(f"there is no joint of index {joint}", remedy=f"Give 0 to {self.dof - 1}.")
        matrix = self._joint_totals[joint] if segment is None else self._segment_totals[segment][joint]
        return _frozen(matrix)

    def rows(self, joint: int, segment: int) -> Floats:
        """`factor` of one joint and segment without its zero rows: (m, w + 1), where m <= w + 1.

        Args:
            joint: Index of the joint.
            segment: Number of the segment.
        """
        return self._segment_rows[segment][joint]

    @cached_property
    def _segment_rows(self) -> dict[int, tuple[Floats, ...]]:
        """Segment -> for each joint the nonzero rows of its triangle."""
        counts = zip(self._segment_totals.items(), self.samples.tolist(), strict=True)
        return {segment: tuple(map(nonzero_rows, matrices, samples)) for (segment, matrices), samples in counts}

    @cached_property
    def _joint_totals(self) -> tuple[Floats, ...]:
        """For each joint the triangle of all segments together."""
        if not self.parts:
            return tuple(_frozen(np.zeros((len(support) + 1,) * 2)) for support in self.supports)
        first, *others = self.segments
        return tuple(
            append_many_rows(start, np.concatenate([self._segment_rows[segment][joint] for segment in others]))
            if others
            else start
            for joint, start in enumerate(self._segment_totals[first])
        )

    @cached_property
    def _segment_totals(self) -> dict[int, tuple[Floats, ...]]:
        """Segment -> for each joint the triangle of all its parts."""
        return {
            segment: tuple(
                reduce(join_triangles, matrices) for matrices in zip(*(p.matrices for p in parts), strict=True)
            )
            for segment, parts in sorted(self._by_segment.items())
        }

    # --- other information made from this one ------------------------------------------------------------------------

    def merge(self, other: Information) -> Information:
        """Merge with the information of other samples.

        In any order and grouping of merges the result is the same to the last bit, as long as the chunks themselves
        were reduced in the same way (back end, preconditioner).

        Raises:
            ArgumentError: if the two are of different equations, or have samples in common.
        """
        for name in ("fingerprint", "columns", "supports"):
            if getattr(self, name) != getattr(other, name):
                raise ArgumentError(
                    f"information of different {name} cannot be merged",
                    remedy="Reduce both for the same robot and columns.",
                )
        forest = Forest()
        for part in (*self.parts, *other.parts):
            forest.add(part)
        return replace(self, parts=forest.parts())

    def renumber(self, first: int) -> Information:
        """Number the segments from ``first`` on, so that the information can be merged with that of another log."""
        if isinstance(first, bool) or not isinstance(first, int | np.integer):
            raise ArgumentError(f"segments cannot be numbered from {first!r}", remedy="Give an integer.")
        numbers = {segment: int(first) + place for place, segment in enumerate(self.segments)}
        return replace(self, parts=tuple(replace(part, segment=numbers[part.segment]) for part in self.parts))

    def as_one(self) -> Information:
        """Join all segments to one, number 0; the result cannot be merged with further samples of this log."""
        counts = tuple(int(count) for count in self.samples.sum(axis=0))
        return replace(self, parts=(Part(0, 0, 0, self._joint_totals, counts),))

    def only(self, *segments: int) -> Information:
        """Keep some segments only. Nothing is subtracted from totals: they are formed anew from these segments."""
        self._check_segments(segments)
        return replace(self, parts=tuple(part for part in self.parts if part.segment in segments))

    def _check_segments(self, segments: Iterable[int]) -> None:
        """Refuse numbers of segments that do not exist."""
        unknown = sorted(set(segments).difference(self.segments))
        if unknown:
            raise ArgumentError(f"there is no segment {unknown[0]}", remedy=f"The segments are {self.segments}.")

    def select(self, columns: Sequence[int]) -> Information:
        """Keep some of the columns, in the given order, as if the parameters of the others were zero.

        Args:
            columns: Regressor columns, each one of `columns`.
        """
        columns = as_columns(columns, max(self.columns, default=-1) + 1)
        missing = sorted(set(columns).difference(self.columns))
        if missing or len(set(columns)) != len(columns):
            raise ArgumentError(
                f"column {missing[0]} is not here" if missing else "a column is selected twice",
                remedy=f"The columns are {self.columns}.",
            )
        new_position = {self.columns.index(column): number for number, column in enumerate(columns)}
        supports = []
        picks = []  # for each joint, the columns of its triangle that are kept, and the torque
        for support in self.supports:
            kept = sorted(  # new position of a column, and its place in the triangle
                (new_position[position], where) for where, position in enumerate(support) if position in new_position
            )
            supports.append(tuple(number for number, _ in kept))
            picks.append([where for _, where in kept] + [len(support)])
        parts = tuple(replace(part, matrices=tuple(map(_pick_columns, part.matrices, picks))) for part in self.parts)
        chosen = replace(self, columns=columns, supports=tuple(supports), parts=parts)
        if "_joint_totals" in self.__dict__:  # if they are computed already, pick columns of them too: it is cheaper
            totals = zip(self._joint_totals, picks, strict=True)
            chosen.__dict__["_joint_totals"] = tuple(_frozen(_pick_columns(R, pick)) for R, pick in totals)
        return chosen

    def with_moved_torques(self, beta: ArrayLike, gains: ArrayLike | None = None) -> Information:
        """Replace the measured torques tau by ``tau / gains - Y beta``, without the samples.

        Args:
            beta: (p,) values of the parameters of `columns`, whose torques are subtracted.
            gains: (n,) divisors of the joints' torques; one by default.
        """
        values = np.asarray(beta, dtype=float)
        divisors = np.ones(self.dof) if gains is None else np.asarray(gains, dtype=float)

        def move_triangle(matrix: Floats, support: tuple[int, ...], gain: float) -> Floats:
            """The triangle (w + 1, w + 1) of one joint for the new torque."""
            change = np.eye(len(matrix))  # its last column combines the columns to the new torque
            change[:-1, -1] = -values[list(support)]
            change[-1, -1] = 1.0 / gain
            return triangle_of(matrix @ change)

        return replace(
            self,
            parts=tuple(
                replace(part, matrices=tuple(map(move_triangle, part.matrices, self.supports, divisors)))
                for part in self.parts
            ),
        )

    # --- least squares ---------------------------------------------------------------------------------------------

    def weight(self, joints: ArrayLike | None = None) -> Factor:
        """Put the equations of all joints into one least-squares problem.

        Args:
            joints: (n,) weight of each joint's squared residuals, for example the inverse of its torque variance; 1 by
                default. A weight of zero leaves the joint out.
        """
        weights = np.ones(self.dof) if joints is None else np.asarray(joints, dtype=float)
        if weights.shape != (self.dof,) or not np.all(np.isfinite(weights)) or np.any(weights < 0.0):
            raise ArgumentError(f"expected {self.dof} finite, non-negative weights of joints, got {weights}")
        p = len(self.columns)
        rows = [np.zeros((0, p + 1))]
        for weight, matrix, support in zip(weights, self._joint_totals, self.supports, strict=True):
            if weight > 0.0:  # rows of this joint, with zeros in the columns that do not act on it
                rows.append(np.zeros((len(matrix), p + 1)))
                rows[-1][:, [*support, p]] = np.sqrt(weight) * matrix
        R = append_many_rows(np.zeros((p + 1, p + 1)), np.concatenate(rows))
        return Factor.of(self.columns, R, int(np.sum(self.samples[:, weights > 0.0])))

    def per_joint_residual(self, beta: ArrayLike) -> Floats:
        """Sums of squared residuals (S, n) of each segment and joint for given parameters.

        Args:
            beta: (p,) values of the parameters of `columns`.
        """
        values = np.asarray(beta, dtype=float)
        if values.shape != (len(self.columns),):
            raise ArgumentError(f"expected {len(self.columns)} parameters, got shape {values.shape}")
        found = np.zeros((len(self.segments), self.dof))
        for joint, support in enumerate(self.supports):
            vector = np.append(values[list(support)], -1.0)  # columns times parameters, minus the torque
            for row, segment in enumerate(self.segments):
                residual = self.factor(joint, segment) @ vector
                found[row, joint] = residual @ residual
        return found

    # --- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write to a file, atomically.

        Args:
            path: Destination; its folder must exist.
            force: Overwrite an existing file.

        Raises:
            ExportError: if the file exists and ``force`` is False, or the system refuses.
        """
        storage.write(path, self, force=force)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Information:
        """Read what `save` wrote.

        Raises:
            DataError: if the file cannot be read, is not an information file, is cut short or damaged.
        """
        return storage.read(path, cls)


def _frozen(matrix: Floats) -> Floats:
    """The same array, made read-only."""
    matrix.setflags(write=False)
    return matrix


def _pick_columns(triangle: Floats, pick: list[int]) -> Floats:
    """The triangle of some columns of a triangle, in the order of ``pick``."""
    # while columns stay in place, the matrix stays a triangle and their rows stay; only the others are reflected anew
    same = next((row for row, place in enumerate(pick) if place != row), len(pick))
    result = np.zeros((len(pick),) * 2)
    result[:same] = triangle[:same, pick]
    rest = triangle[same:, pick[same:]]
    result[same:, same:] = triangle_of(rest[rest.any(axis=1)])
    return result
