"""What is to be estimated, from which data: the equations of all experiments, reduced to small factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.features import Feature
from dynid.estimation.rows import feature_torque, reduce_rows
from dynid.information import Information, Method, reduce_samples
from dynid.kernels import kernel
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["BLOCKS", "Problem", "build_problem"]

Floats = NDArray[np.float64]
BLOCK = 8192
"""Samples predicted at a time, so that long logs need little memory."""
BLOCKS = 10
"""Blocks of time that an experiment is cut into."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """The data of an estimation, whatever the estimator."""

    robot: Robot
    """Geometry, joint models, and prior parameter values."""
    base: BaseParameters
    """The combinations that the motion can reveal at all."""
    experiments: tuple[Experiment, ...]
    information: Information
    """Of the base columns, then the features; its segments are blocks of time, numbered through all experiments."""
    blocks: tuple[tuple[int, ...], ...]
    """For each experiment the segments of `information` that it was cut into."""
    features: tuple[Feature, ...] = ()
    """What acts on the torques besides links and joint models; one parameter each, after the base parameters."""
    band_hz: float | None = None
    """Upper end of the band to which both sides of the equations were low-passed [Hz]; None for no such filter."""
    streamed: bool = False
    """Whether `experiments` hold only the beginnings of logs that were reduced piece by piece."""
    logs: tuple[Callable[[], Iterable[Experiment]], ...] = ()
    """Of a streamed problem: starts the stream of each log anew, where that can be done."""

    @property
    def names(self) -> tuple[str, ...]:
        """(b + k,) names of what is estimated: base parameters, then features."""
        return (*self.base.names, *(feature.name for feature in self.features))

    @property
    def units(self) -> tuple[str, ...]:
        """(b + k,) SI units."""
        return (*self.base.units, *(feature.unit for feature in self.features))

    @property
    def grouping(self) -> Floats:
        """(b + k, p + k) from standard parameters and features to what is estimated."""
        b, p = self.base.grouping.shape
        k = len(self.features)
        return np.block([[self.base.grouping, np.zeros((b, k))], [np.zeros((k, p)), np.eye(k)]])

    def keep(self, features: Sequence[Feature]) -> Problem:
        """The same problem with some of its features only, in the order given."""
        places = [self.features.index(feature) for feature in features]
        columns = [*self.base.columns, *(len(self.base.layout) + place for place in places)]
        information = self.information.select(columns)
        return replace(self, information=information, features=tuple(features))

    @property
    def equations(self) -> NDArray[np.int64]:
        """(n,) number of valid samples of each joint."""
        return np.asarray(self.information.samples.sum(axis=0))

    def torque(self, beta: ArrayLike, experiment: Experiment) -> Floats:
        """(N, n) torque of an experiment's motion with parameters (b + k,) [N m or N]."""
        values = np.asarray(beta, dtype=float)
        theta = self.representative(values)
        evaluate = kernel(self.robot, "inverse_dynamics", symbolic_parameters=True)
        parts = [
            evaluate(experiment.q[s : s + BLOCK], experiment.dq[s : s + BLOCK], experiment.ddq[s : s + BLOCK], theta)
            for s in range(0, experiment.samples, BLOCK)
        ]
        torque = np.concatenate(parts) if parts else np.zeros_like(experiment.q)
        if self.features:
            torque = torque + feature_torque(self.robot, self.features, values[self.base.rank :], experiment)
        return torque

    def representative(self, beta: ArrayLike) -> Floats:
        """(p,) standard parameters with the same torques as base parameters (b,): the kept ones, zero elsewhere."""
        theta = np.zeros(len(self.base.layout))
        theta[list(self.base.columns)] = np.asarray(beta, dtype=float)[: self.base.rank]
        return theta

    def residual(self, beta: ArrayLike, experiment: Experiment) -> Floats:
        """(N, n) measured minus predicted torque; NaN where the sample does not count."""
        return np.where(experiment.valid, experiment.effort - self.torque(beta, experiment), np.nan)


def build_problem(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    base: BaseParameters | None = None,
    features: Sequence[Feature] = (),
    band_hz: float | None = None,
    method: Method = "preconditioned",
    blocks: int = BLOCKS,
    threads: int = 1,
) -> Problem:
    """Reduce experiments to a problem.

    Args:
        robot: Geometry and joint models; its parameter values serve as the prior.
        experiments: One or several.
        base: The base parameters; of every motion by default.
        features: What acts on the torques besides links and joint models.
        band_hz: Low-pass both sides of the equations to this band [Hz]; None leaves them as they are.
        method: How samples are reduced without features and band; see `dynid.information`.
        blocks: Into how many blocks of time each experiment is cut, for cross-validation and robust weights.
        threads: How many threads reduce.

    Raises:
        ArgumentError: The experiments have other joints than the robot.
        IdentifiabilityError: No valid sample is left.
    """
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    if not runs or any(run.q.shape[1] != robot.dof for run in runs):
        widths = sorted({run.q.shape[1] for run in runs})
        raise ArgumentError(
            f"robot '{robot.name}' has {robot.dof} moving joints, the experiments have {widths or 'none'}",
            remedy="Lock joints that are not in the log (read_urdf(..., locked=...)), or read more of its columns.",
        )
    chosen = base or base_parameters(robot)
    total: Information | None = None
    numbers = []
    for run in runs:
        first = 0 if total is None else max(total.segments) + 1
        if features or band_hz is not None:
            part = reduce_rows(robot, chosen, features, run, cut_blocks(run, blocks), band_hz).renumbered(first)
        else:
            part = _reduced(robot, run, chosen, method, blocks, threads).renumbered(first)
        numbers.append(part.segments)
        total = part if total is None else total.merge(part)
    assert total is not None
    if not total.samples.sum():
        raise IdentifiabilityError("no valid sample is left in the experiments", remedy="See Experiment.dropped.")
    return Problem(
        robot=robot,
        base=chosen,
        experiments=runs,
        information=total,
        blocks=tuple(numbers),
        features=tuple(features),
        band_hz=band_hz,
    )


def _reduced(
    robot: Robot, run: Experiment, base: BaseParameters, method: Method, blocks: int, threads: int
) -> Information:
    return reduce_samples(
        robot,
        run.q,
        run.dq,
        run.ddq,
        run.effort,
        columns=base.columns,
        segments=cut_blocks(run, blocks),
        valid=run.valid,
        method=method,
        threads=threads,
    )


def cut_blocks(run: Experiment, blocks: int) -> NDArray[np.int64]:
    """(N,) number of the block of time of each sample; it spans gaps only where there are more of them than blocks."""
    length = max(1, -(-run.samples // max(1, blocks)))
    coarse = np.arange(run.samples) // length
    if np.count_nonzero(np.diff(run.segment)) > blocks:  # isolated samples, say
        return coarse
    change = np.ones(run.samples, dtype=bool)
    change[1:] = (np.diff(coarse) != 0) | (np.diff(run.segment) != 0)
    return np.cumsum(change) - 1
