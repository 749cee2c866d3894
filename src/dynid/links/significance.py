"""Significant parameters: those that contribute to the torques ([Izaguirre1992] section 7).

Parameters that contribute less than 1 % of the largest measured torque on every trajectory are dropped, and the rest is
fitted again: the equations become better conditioned, and the estimates of single trajectories agree better (Tables 1
and 2 of the paper).

A pruned robot has zeros in place of the insignificant parameters, which costs accuracy and saves operations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh, singular_values
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.equations import Samples, sample_blocks
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import WLS, refined_weights
from dynid.estimation.noise import check_data
from dynid.kernels import inertia_matrix
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tables import Cell, Table
from dynid.tape import OperationCount
from dynid.terms.base import StateTerm


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PruningCost:
    """Torque error and operations with all parameters and with the significant ones alone."""

    parameters: tuple[int, int]
    """Number of estimated parameters: all, significant."""
    training_error: tuple[float, float]
    """Relative torque error on the training data [%]: all parameters, significant ones."""
    held_out_error: tuple[float, float] | None
    """Relative torque error on held-out data [%]; None where nothing was held out."""
    joint_errors: Mapping[str, tuple[float, float]]
    """Joint -> the same error of this joint; empty where nothing was held out."""
    operations: Mapping[str, tuple[OperationCount, OperationCount]]
    """Function of the C package -> its operations per call."""

    def table(self) -> Table:
        """One row per figure: all parameters, significant ones."""
        rows: list[list[Cell]] = [["parameters", *self.parameters], _errors("training error %", self.training_error)]
        if self.held_out_error is not None:
            rows.append(_errors("held-out error %", self.held_out_error))
        rows += [_errors(f"  {name}", errors) for name, errors in self.joint_errors.items()]
        for name, counts in self.operations.items():
            cells = [f"{count.multiplications} / {count.additions}" for count in counts]
            rows.append([f"{name}: multiplications / additions", *cells])
        return Table.of(["", "all parameters", "significant ones"], rows)

    def __str__(self) -> str:
        return self.table().to_text()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedRobot:
    """A robot with the refitted significant parameters; all other parameters are zero.

    It has the torques of the identified model, but its links need not be possible bodies.
    """

    robot: Robot
    criterion: str
    """The rule that decided, in words."""
    kept: tuple[str, ...]
    """Names of the significant parameters."""
    dropped: tuple[str, ...]
    """Names of the parameters that were dropped."""
    terms_left_out: tuple[str, ...]
    """Significant terms that `robot` cannot carry: terms with memory and terms of other joints."""
    samples: int
    """Number of samples of the identification at which the inertia matrix was examined."""
    indefinite: int
    """Number of those at which it is not positive definite; forward dynamics is not defined there."""
    cost: PruningCost | None = None
    """What dropping costs and saves, where it was measured."""

    def notes(self) -> list[str]:
        """Lines for the reader of generated code."""
        total = len(self.kept) + len(self.dropped)
        rule = self.criterion.replace(" %", " percent")  # comments of the code hold letters and digits only
        lines = [f"Pruned: {len(self.kept)} of {total} identified parameters kept ({rule}), fitted again."]
        if self.cost is not None and self.cost.held_out_error is not None:
            full, pruned = self.cost.held_out_error
            lines.append(f"Torque error on held-out data: {full:.3g} percent with all, {pruned:.3g} percent pruned.")
        elif self.cost is not None:
            full, pruned = self.cost.training_error
            lines.append(
                f"Torque error on the training data: {full:.3g} percent with all, {pruned:.3g} percent pruned."
            )
        lines.append("This holds for the whole torque of inverse dynamics; inertias, gravity, velocity torques and")
        lines.append("friction by themselves may have larger errors, and the potential energy has another zero.")
        if self.terms_left_out:
            missing = ", ".join(self.terms_left_out)
            lines.append(f"This code does not contain terms with memory or terms of other joints: {missing}.")
        return lines


def _errors(name: str, errors: tuple[float, float]) -> list[Cell]:
    return [name, *(f"{error:.3g}" for error in errors)]


def read_share(text: str) -> float:
    """Read a percentage such as ``1%`` as a share between 0 and 1.

    Raises:
        ArgumentError: It is not the text of a percentage from 0 to below 100.
    """
    remedy = "Write a percentage of each joint's largest torque, such as 1%."
    if not isinstance(text, str):
        raise ArgumentError(f"the share {text!r} is not a text", remedy='Write a percentage as a text, such as "1%".')
    found = re.fullmatch(r"(\d{1,15}\.?\d{0,15}|\.\d{1,15}) ?(%?)", text.strip())
    if found and not found[2]:
        raise ArgumentError(f"the percent sign is missing in '{text}'", remedy=remedy)
    share = float(found[1]) / 100.0 if found else -1.0
    if not 0.0 <= share < 1.0:
        raise ArgumentError(f"'{text}' is not a percentage from 0 to below 100", remedy=remedy)
    return share


Mask = NDArray[np.bool_]
SIGNIFICANT_SHARE = 0.01
"""Share of a joint's largest measured torque from which on a parameter is significant ([Izaguirre1992] section 7)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrajectoryStatistics:
    """Estimates of the same parameters from several trajectories, one at a time."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    """(T, b) one row per trajectory; NaN where the trajectory alone does not determine the parameter"""

    @property
    def count(self) -> NDArray[np.int64]:
        """(b,) trajectories that determine the parameter."""
        return np.asarray(np.sum(~np.isnan(self.values), axis=0))

    @property
    def average(self) -> Floats:
        """(b,) mean over the trajectories."""
        return _ratio(np.nansum(self.values, axis=0), self.count)

    @property
    def std(self) -> Floats:
        """(b,) between trajectories; NaN with fewer than two."""
        return np.sqrt(_ratio(np.nansum((self.values - self.average) ** 2, axis=0), self.count - 1))

    @property
    def maximum(self) -> Floats:
        """(b,) largest of the trajectories' values."""
        return np.asarray(np.fmax.reduce(self.values, axis=0))

    @property
    def minimum(self) -> Floats:
        """(b,) smallest of the trajectories' values."""
        return np.asarray(np.fmin.reduce(self.values, axis=0))

    def table(self, marked: Mask | None = None) -> Table:
        """As in [Izaguirre1992] Tables 1 and 2; an asterisk marks significant parameters."""
        marks = np.ones(len(self.names), dtype=bool) if marked is None else marked
        columns = zip(self.names, marks, self.average, self.std, self.maximum, self.minimum, self.units, strict=True)
        rows = [
            (f"{k}{' *' if mark else ''}", name, float(average), float(std), float(high), float(low), unit)
            for k, (name, mark, average, std, high, low, unit) in enumerate(columns, start=1)
        ]
        return Table.of(["", "parameter", "average", "std", "maximum", "minimum", "unit"], rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Significance:
    """The significant parameters, and the fit of those alone."""

    criterion: str
    """The rule that decided, in words."""
    threshold: float
    """Share that the rule compares with: of a joint's largest torque, or the largest relative standard deviation."""
    contribution: Floats
    """(b,) largest torque that the parameter causes, over all joints and trajectories [% of the joint's largest]."""
    significant: Mask
    """(b,) whether the parameter was kept."""
    every: TrajectoryStatistics
    """Statistics of the fits of all parameters (Table 1)."""
    reduced: TrajectoryStatistics
    """Statistics of the fits of the significant parameters (Table 2)."""
    condition: float
    """Ratio of the extreme singular values of all weighted equations, columns as they are."""
    reduced_condition: float
    """The same ratio for the significant parameters."""
    error: float
    """Relative torque error of all parameters on the data used [%]."""
    reduced_error: float
    """Relative torque error of the significant parameters alone on the data used [%]."""
    equations: Samples
    """The equations of the significant parameters, for any other estimator."""
    estimate: Estimate
    """The estimate of the significant parameters, from all trajectories together."""

    @property
    def gain(self) -> float:
        """Factor by which the condition number fell."""
        return self.condition / self.reduced_condition

    @property
    def robot(self) -> Robot:
        """The robot as it was before: geometry, terms, prior parameters."""
        return self.equations.robot

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the significant parameters, as in `every`."""
        return tuple(name for name, keep in zip(self.every.names, self.significant, strict=True) if keep)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the other parameters."""
        return tuple(name for name, keep in zip(self.every.names, self.significant, strict=True) if not keep)

    def torque(self, experiment: Experiment) -> Floats:
        """(N, n) torques of an experiment's motion by the significant parameters [N m or N]."""
        return self.equations.torque(self.estimate.values, experiment)

    @property
    def training_error(self) -> Floats:
        """(n + 1,) relative torque error of each joint and of all together on the data used [%]."""
        information = self.equations.information
        squares = information.per_joint_residual(self.estimate.values).sum(axis=0)
        total = information.per_joint_residual(np.zeros_like(self.estimate.values)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100.0 * np.sqrt(np.append(squares / total, squares.sum() / total.sum())))

    @property
    def pruned(self) -> PrunedRobot:
        """The robot with the refitted significant parameters and zeros elsewhere, for generated code."""
        equations, values = self.equations, self.estimate.values
        found = equations.robot.with_parameters(equations.representative(values))
        placed = list(zip(equations.terms, values[equations.base.rank :].tolist(), strict=True))
        carried = [term.with_value(value) for term, value in placed if isinstance(term, StateTerm)]
        robot = found.with_terms(*carried, keep=True) if carried else found
        smallest = [eigvalsh(inertia_matrix(robot, run.q)).min(axis=1) for run in equations.experiments]
        return PrunedRobot(
            robot=robot,
            criterion=self.criterion,
            kept=self.kept,
            dropped=self.dropped,
            terms_left_out=tuple(term.name for term, _ in placed if not isinstance(term, StateTerm)),
            samples=sum(part.size for part in smallest),
            indefinite=int(sum((part <= 0.0).sum() for part in smallest)),
        )

    @property
    def headline(self) -> str:
        """One line: how many parameters are significant, and by which rule."""
        return f"{len(self.kept)} of {len(self.significant)} parameters are significant ({self.criterion})"

    def summary(self) -> str:
        """Both tables, the condition numbers and the torque errors, as text."""
        return "\n".join(
            [
                self.headline,
                f"condition number {self.condition:.4g} -> {self.reduced_condition:.4g} ({self.gain:.3g} times better)",
                f"torque error {self.error:.3g} % -> {self.reduced_error:.3g} %",
                "",
                f"All parameters, from {len(self.every.values)} trajectories one at a time (* significant):",
                self.every.table(self.significant).to_text(),
                "",
                "Significant parameters alone:",
                self.reduced.table().to_text(),
            ]
        )

    def __str__(self) -> str:
        return self.summary()


def significant_parameters(
    equations: Samples, *, threshold: float = SIGNIFICANT_SHARE, estimator: Estimator | None = None
) -> Significance:
    """Keep the parameters whose torque matters ([Izaguirre1992] section 7), and fit them again.

    Args:
        equations: The equations of several experiments, the trajectories.
        threshold: Part of a joint's largest measured torque that a parameter must reach somewhere.
        estimator: How to fit; weighted least squares, as in the paper, by default.

    Raises:
        ArgumentError: The threshold is not a part.
        EstimationError: No parameter reaches it.

    Example:
        >>> found = dynid.links.significant_parameters(fit.equations, threshold=0.01)
        >>> len(found.kept) <= len(fit.estimate.names)
        True
    """
    if not 0.0 <= threshold < 1.0:
        raise ArgumentError(f"the threshold is {threshold}", remedy="Give a part of the largest torque, such as 0.01.")
    check_data(equations, spare=1)
    method = estimator or WLS()
    share = contributions(equations, method.solve(equations).values)
    rule = (f"at least {100 * threshold:g} % of the largest torque of a joint", threshold)
    return _refit(equations, method, share >= 100.0 * threshold, share, rule)


def contributions(equations: Samples, beta: Floats) -> Floats:
    """(b,) largest torque that each parameter causes, in percent of the largest measured torque of the same joint."""
    n = equations.robot.dof
    caused, measured = np.zeros((n, beta.size)), np.zeros(n)
    for block in sample_blocks(replace(equations, band_hz=None)):
        counted = np.abs(block.matrix) * block.valid[..., None]
        caused = np.maximum(caused, counted.max(axis=0, initial=0.0) * np.abs(beta))
        measured = np.maximum(measured, np.abs(block.effort).max(axis=0, initial=0.0))
    share = np.divide(caused, measured[:, None], out=np.zeros_like(caused), where=measured[:, None] > 0.0)
    return np.asarray(100.0 * share.max(axis=0))


def trajectory_statistics(equations: Samples, estimator: Estimator) -> TrajectoryStatistics:
    """Fit every experiment by itself."""
    values = []
    for run, blocks in zip(equations.experiments, equations.blocks, strict=True):
        part = equations.information.only(*blocks)
        estimate = estimator.solve(replace(equations, excerpts=(run,), information=part, blocks=(blocks,)))
        values.append(np.where(estimate.undetermined, np.nan, estimate.values))
    return TrajectoryStatistics(names=equations.names, units=equations.units, values=np.array(values))


def restrict_equations(equations: Samples, keep: Mask) -> Samples:
    """The equations of some parameters (b,), as if the others were zero; no sample is looked at again."""
    base, rank = equations.base, equations.base.rank
    rows = [k for k in range(rank) if keep[k]]
    part = replace(
        base,
        columns=tuple(base.columns[k] for k in rows),
        grouping=base.grouping[rows].copy(),
        combinations=tuple(base.combinations[k] for k in rows),
    )
    terms = tuple(f for f, kept in zip(equations.terms, keep[rank:], strict=True) if kept)
    information = equations.information.select(_columns(equations, keep))
    return replace(equations, base=part, terms=terms, information=information)


def _ratio(sums: Floats, counts: NDArray[np.int64]) -> Floats:
    """``sums / counts``, NaN where there is nothing to divide by."""
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def _columns(equations: Samples, keep: Mask) -> list[int]:
    return [column for column, kept in zip(equations.information.columns, keep, strict=True) if kept]


def _refit(equations: Samples, method: Estimator, keep: Mask, share: Floats, rule: tuple[str, float]) -> Significance:
    criterion, threshold = rule
    if not keep.any():
        raise EstimationError(f"no parameter is significant ({criterion})", remedy="Lower the threshold.")
    part = restrict_equations(equations, keep)
    weights = refined_weights(equations)
    return Significance(
        criterion=criterion,
        threshold=threshold,
        contribution=share,
        significant=keep,
        every=trajectory_statistics(equations, method),
        reduced=trajectory_statistics(part, method),
        condition=_condition(equations, weights),
        reduced_condition=_condition(part, weights),
        error=_error(equations, weights),
        reduced_error=_error(part, weights),
        equations=part,
        estimate=method.solve(part),
    )


def _condition(equations: Samples, weights: Floats) -> float:
    values = singular_values(equations.information.weight(weights).R)
    return float(values[0] / values[-1]) if values[-1] > 0.0 else float("inf")


def _error(equations: Samples, weights: Floats) -> float:
    """Relative torque error of the weighted fit [%]."""
    information = equations.information
    beta = information.weight(weights).solve(minimum_norm=True)
    left, total = (information.per_joint_residual(x).sum() for x in (beta, np.zeros_like(beta)))
    return float(100.0 * np.sqrt(left / total))
