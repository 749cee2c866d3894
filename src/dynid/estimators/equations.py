"""Equations ``torque = columns @ unknowns`` of all samples and joints, which an estimator solves.

The columns are those of the base parameters (the combinations of parameters that torques determine), then those of
further terms, such as a friction that the robot has no parameter for. The N equations ``W x = y`` of a joint in a block
of time (a stretch of a log) are reduced by the QR decomposition of ``[W y]`` to its triangle, which has the same
normal equations and the same squared residuals for every x. All triangles together are the `Information`.

    Factors            equations reduced to triangles: enough for estimators that are linear in the torques
      Samples          with whole experiments in memory: estimators can read single samples again (`sample_blocks`)

`build_equations` reduces processed experiments in memory, `dynid.identification` logs piece by piece. The result goes
to `Estimator.solve`.

Shapes: n joints, p standard parameters, b base parameters, k further terms, N samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.compiled import regressor
from dynid.data_reduction import Information, reduce_samples
from dynid.data_reduction.chunks import PORTION
from dynid.data_reduction.partial_results import Part
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimators.rows import reduce_rows, stretches, term_columns, torque_along, torque_of_terms
from dynid.identifiability.base import choose_base
from dynid.identifiability.base_set import BaseParameters, require_kept_columns
from dynid.identifiability.layout import term_unit
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.terms.base import Term

TIME_BLOCKS = 10
"""Number of blocks of time that an experiment is cut into (convention: ten folds of cross-validation)."""
LARGEST_RUN_COUNT = 8
"""Number of experiments up to which each is cut into `TIME_BLOCKS` blocks; each of more is cut into half as many
(convention: folds of cross-validation and sums for intervals then go from run to run, and only drifts are looked for
within one; memory and time grow with the number of all blocks)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Factors:
    """Reduced equations: one triangle per joint and block of time, whatever the length of the log."""

    robot: Robot
    """Geometry, terms, and prior parameter values."""
    base: BaseParameters
    """The combinations of parameters that torques can determine."""
    information: Information
    """Triangle of each joint and segment, for the base columns, then the terms. A segment is a block of time; segments
    are numbered through all experiments."""
    blocks: tuple[tuple[int, ...], ...]
    """For each experiment the segments of `information` that it was cut into."""
    excerpts: tuple[Experiment, ...]
    """For each log what is kept of its samples, for reports to draw: none, the beginning, or, in `Samples`, all."""
    terms: tuple[Term, ...] = ()
    """Terms besides the robot's own; each has one parameter, after the base parameters."""
    band_hz: float | None = None
    """Upper end of the band to which both sides of the equations were low-passed [Hz]; None for no such filter."""

    def __repr__(self) -> str:
        """Robot, number of unknowns and of logs in one line."""
        return f"{type(self).__name__}('{self.robot.name}', {len(self.names)} parameters, {len(self.blocks)} logs)"

    @property
    def names(self) -> tuple[str, ...]:
        """(b + k,) names of the unknowns: base parameters, then terms."""
        return (*self.base.names, *(term.name for term in self.terms))

    @property
    def units(self) -> tuple[str, ...]:
        """(b + k,) SI units of the unknowns."""
        names = self.robot.joint_names
        return (*self.base.units, *(term_unit(self.robot, term, term.acts_on(names)) for term in self.terms))

    @property
    def grouping(self) -> Floats:
        """(b + k, p + k) matrix from standard parameters and terms to the unknowns."""
        b, p = self.base.grouping.shape
        k = len(self.terms)
        return np.block([[self.base.grouping, np.zeros((b, k))], [np.zeros((k, p)), np.eye(k)]])

    def keep(self, terms: Sequence[Term]) -> Self:
        """Equations with only some of the terms, in the given order."""
        places = [self.base.rank + place for place in self.term_places(terms)]
        columns = [*self.base.columns, *(self.information.columns[place] for place in places)]
        information = self.information.select(columns)
        return replace(self, information=information, terms=tuple(terms))

    def term_places(self, terms: Sequence[Term]) -> list[int]:
        """Indices of some terms among those of the equations.

        Terms are found by identity first: comparing all their arrays by value is slow.
        """
        known = {id(term): place for place, term in enumerate(self.terms)}
        return [known[id(term)] if id(term) in known else self.terms.index(term) for term in terms]

    @property
    def counts(self) -> NDArray[np.int64]:
        """(n,) number of valid samples of each joint."""
        return np.asarray(self.information.samples.sum(axis=0))

    def relative_errors(self, values: Floats) -> Floats:
        """(n + 1,) rms torque error over rms torque of each joint and of all together, with parameters (b + k,) [%]."""
        squares = self.information.per_joint_residual(values).sum(axis=0)
        total = self.information.per_joint_residual(np.zeros_like(values)).sum(axis=0)  # of the torques themselves
        return relative_errors(squares, total)

    def torque(self, beta: ArrayLike, experiment: Experiment) -> Floats:
        """(N, n) torque of an experiment's motion with parameters (b + k,), in its order of joints [N m or N]."""
        matched = experiment.matched(self.robot)
        values = np.asarray(beta, dtype=float)
        torque = torque_along(self.robot, self.representative(values), matched)
        if self.terms:
            torque = torque + torque_of_terms(self.robot, self.terms, values[self.base.rank :], matched)
        return experiment.as_recorded(torque, self.robot)

    def representative(self, beta: ArrayLike) -> Floats:
        """(p,) standard parameters with the torques of base parameters: zero except at the base columns.

        Args:
            beta: (b,) or (b + k,) parameters; those of the k terms, which come last, are left out.
        """
        theta = np.zeros(len(self.base.layout))
        theta[list(self.base.columns)] = np.asarray(beta, dtype=float)[: self.base.rank]
        return theta

    def residual(self, beta: ArrayLike, experiment: Experiment) -> Floats:
        """(N, n) measured minus predicted torque [N m or N]; NaN where the sample does not count."""
        return np.where(experiment.valid, experiment.effort - self.torque(beta, experiment), np.nan)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Samples(Factors):
    """Equations that keep all samples of each log, so that estimators can read single ones again."""

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """The `excerpts`, which are whole experiments here."""
        return self.excerpts


def build_equations(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    base: BaseParameters | None = None,
    terms: Sequence[Term] = (),
    band_hz: float | None = None,
    blocks: int | None = None,
) -> Samples:
    """Reduce experiments to equations.

    Args:
        robot: Geometry and terms; its parameter values serve as the prior.
        experiments: One or several.
        base: The base parameters; of every motion by default.
        terms: Terms besides the robot's own.
        band_hz: Low-pass both sides of the equations to this band [Hz]; None leaves them as they are.
        blocks: Number of blocks of time that each experiment is cut into, for cross-validation and correlation; 10 by
            default, 5 of more than eight experiments.

    Raises:
        ArgumentError: The experiments have other joints than the robot.
        IdentifiabilityError: No valid sample is left.

    Example:
        >>> dynid.estimators.build_equations(robot, [run])
        Samples('ddarm', 21 parameters, 1 logs)
    """
    runs = matched_runs(robot, experiments)
    if not runs or any(run.q.shape[1] != robot.dof for run in runs):
        widths = sorted({run.q.shape[1] for run in runs})
        raise ArgumentError(
            f"robot '{robot.name}' has {robot.dof} moving joints, the experiments have {widths or 'none'}",
            remedy="Hold joints that are not in the log (--hold JOINT, in Python read_urdf(..., hold=...)), or read "
            "more of its columns.",
        )
    chosen = require_kept_columns(choose_base(robot, base))
    if blocks is None:
        blocks = TIME_BLOCKS if len(runs) <= LARGEST_RUN_COUNT else TIME_BLOCKS // 2
    parts: list[Information] = []
    for run in runs:
        numbers = cut_blocks(run, blocks)
        if terms or band_hz is not None:  # what only whole rows give: terms with memory, and a low-pass
            part = reduce_rows(robot, chosen, terms, run, numbers, band_hz)
        else:
            part = reduce_samples(
                robot, run.q, run.dq, run.ddq, run.effort, columns=chosen.columns, segments=numbers, valid=run.valid
            )
        parts.append(part.renumber(next_segment(parts)))
    return Samples(
        robot=robot,
        base=chosen,
        excerpts=runs,
        information=merge_information(parts),
        blocks=tuple(part.segments for part in parts),
        terms=tuple(terms),
        band_hz=band_hz,
    )


def factors_of(
    robot: Robot,
    base: BaseParameters,
    triangles: Sequence[Sequence[Floats]],
    counts: NDArray[np.int64],
    *,
    supports: Sequence[Sequence[int]] | None = None,
    terms: Sequence[Term] = (),
) -> Factors:
    """Make the equations of one log from triangles (QR factors) of rows ``[W, y]``: columns and measured value.

    Args:
        robot: Geometry and terms.
        base: The base parameters.
        triangles: For each block of time the triangle (w, w) of each group of rows, such as the rows of one joint.
        counts: (blocks, groups) number of rows behind each triangle.
        supports: For each group the columns that are not zero; by default one group with all columns.
        terms: Terms besides the robot's own.
    """
    columns = (*base.columns, *(len(base.layout) + k for k in range(len(terms))))
    information = Information(
        robot=robot.name,
        fingerprint=robot.fingerprint,
        columns=columns,
        supports=(tuple(range(len(columns))),) if supports is None else tuple(map(tuple, supports)),
        parts=tuple(Part(k, 0, 0, tuple(own), tuple(counts[k].tolist())) for k, own in enumerate(triangles)),
    )
    blocks = (information.segments,)
    return Factors(robot=robot, base=base, information=information, blocks=blocks, excerpts=(), terms=tuple(terms))


def relative_errors(squares: Floats, total: Floats) -> Floats:
    """(n + 1,) rms error over rms torque, of each joint and of all together [%]; NaN without torques.

    Args:
        squares: (n,) sums of squares of the residuals.
        total: (n,) sums of squares of the measured torques.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(100.0 * np.sqrt(np.append(squares, squares.sum()) / np.append(total, total.sum())))


def next_segment(parts: Sequence[Information]) -> int:
    """The first free number of a segment after those of all parts; 0 if there are none."""
    return 1 + max((segment for part in parts for segment in part.segments), default=-1)


def merge_information(parts: Sequence[Information]) -> Information:
    """Merge the information of several experiments.

    Raises:
        IdentifiabilityError: No valid sample is left.
    """
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    if not total.samples.sum():
        raise IdentifiabilityError(
            "no valid sample is left",
            remedy="Record the robot while its joints move (see dynid excite); see Experiment.dropped.",
        )
    return total


def cut_blocks(run: Experiment, blocks: int) -> NDArray[np.int64]:
    """Cut a run into about so many blocks of time.

    Returns:
        (N,) number of each sample's block, from 0. A block ends at a gap, unless there are more gaps than blocks.
    """
    length = max(1, -(-run.samples // max(1, blocks)))  # -(-a // b) rounds up
    coarse = np.arange(run.samples) // length
    if np.count_nonzero(np.diff(run.segment)) > blocks:  # for example isolated samples
        return coarse
    change = np.ones(run.samples, dtype=bool)
    change[1:] = (np.diff(coarse) != 0) | (np.diff(run.segment) != 0)
    return np.cumsum(change) - 1


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlock:
    """The equations of m consecutive samples: ``effort = matrix @ parameters``."""

    run: Experiment
    """The experiment."""
    rows: slice
    """Where these samples are in the experiment."""
    matrix: Floats
    """(m, n, b + k) torque per unit of each base parameter and term."""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """(m, n) whether the equation counts."""
        return self.run.valid[self.rows]

    @property
    def effort(self) -> Floats:
        """(m, n) measured torque, zero where the equation does not count [N m or N]."""
        return np.where(self.valid, self.run.effort[self.rows], 0.0)


def sample_blocks(equations: Samples) -> Iterator[SampleBlock]:
    """Iterate over the equations of all experiments in blocks of samples; no block spans a gap.

    Raises:
        ArgumentError: The equations are low-passed, so that they are no longer those of single samples.
    """
    if equations.band_hz is not None:
        raise ArgumentError(
            "single samples are needed, and both sides of these equations are low-passed",
            remedy="Build the equations without band_hz.",
        )
    for run in equations.experiments:
        for rows, motion in stretches(run):
            extra = term_columns(equations.robot, equations.terms, motion)
            for start in range(0, len(motion.q), PORTION):
                here = slice(start, start + PORTION)
                states = (motion.q[here], motion.dq[here], motion.ddq[here])
                matrix = regressor(equations.robot, *states, columns=equations.base.columns)
                if extra:
                    matrix = np.concatenate([matrix, _dense(extra, here, matrix.shape[:2])], axis=2)
                yield SampleBlock(run, slice(rows.start + start, rows.start + start + len(matrix)), matrix)


def _dense(columns: list[dict[int, Floats]], here: slice, shape: tuple[int, ...]) -> Floats:
    """(m, n, k) columns of k terms for all joints, zero where a term does not act.

    Args:
        columns: For each term, joint -> its column on the samples of a stretch.
        here: The m samples of the stretch.
        shape: (m, n).
    """
    dense = np.zeros((*shape, len(columns)))
    for k, column in enumerate(columns):
        for joint, values in column.items():
            dense[:, joint, k] = values[here]
    return dense
