"""Significant parameters: those that contribute to the torques ([Izaguirre1992] section 7).

Parameters that contribute less than 1 % of the largest measured torque on every trajectory are dropped, and the rest is
fitted again: the equations become better conditioned, and the estimates of single trajectories agree better (Tables 1
and 2 of the paper).

A `PrunedRobot` has zeros in place of the insignificant parameters: generated code needs fewer operations for it and is
less accurate, as `PruningCost` tells. `significant_parameters` is the main function. Shapes: b parameters, n joints,
T trajectories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.compiled import inertia_matrix
from dynid.decompositions import condition_number, eigvalsh
from dynid.errors import ArgumentError, EstimationError
from dynid.estimators.equations import Samples, sample_blocks
from dynid.estimators.estimate import Estimate
from dynid.estimators.linear.least_squares import WLS, refined_weights
from dynid.estimators.noise import check_data
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
        """One row for each of these numbers, with a column for all parameters and one for the significant ones."""
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
    """A robot without its insignificant parameters, which are zero.

    It has nearly the torques of the whole robot, but its links need not be possible bodies.
    """

    robot: Robot
    criterion: str
    """The rule that decided which parameters are significant, as text."""
    kept: tuple[str, ...]
    """Names of the significant parameters."""
    dropped: tuple[str, ...]
    """Names of the parameters that were dropped."""
    samples: int
    """Number of samples at which parameters were chosen and the inertia matrix was examined."""
    indefinite: int
    """Number of samples at which the inertia matrix is not positive definite: no forward dynamics exists there."""
    terms_left_out: tuple[str, ...] = ()
    """Significant terms that `robot` cannot carry: terms with memory and terms of other joints."""
    error_bound: Floats | None = None
    """(n,) bound of the torque error on planned motions [N m or N]: sum of the absolute dropped contributions."""
    largest_torque: Floats | None = None
    """(n,) largest torque on planned motions [N m or N]."""
    cost: PruningCost | None = None
    """What dropping costs and saves on logs, where it was measured."""

    @classmethod
    def of(cls, robot: Robot, positions: Sequence[Floats], **facts: Any) -> PrunedRobot:
        """Make a pruned robot, and count the positions at which its inertia matrix is not positive definite.

        Args:
            robot: The robot with zeros in place of the insignificant parameters.
            positions: (N, n) positions of each of several motions [rad or m].
            **facts: The other fields.
        """
        smallest = np.concatenate([eigvalsh(inertia_matrix(robot, q)).min(axis=1) for q in positions])
        return cls(robot=robot, samples=smallest.size, indefinite=int((smallest <= 0.0).sum()), **facts)

    def notes(self) -> list[str]:
        """Lines about pruning and its errors, for comments in generated code."""
        total = len(self.kept) + len(self.dropped)
        rule = self.criterion.replace(" %", " percent")  # comments of the code hold letters and digits only
        lines = [f"Pruned: {len(self.kept)} of {total} parameters kept ({rule}), judged on {self.samples} samples."]
        if self.cost is not None:
            where = "the training data" if self.cost.held_out_error is None else "held-out data"
            full, pruned = self.cost.held_out_error or self.cost.training_error  # errors [%]
            lines.append(f"Torque error on {where}: {full:.3g} percent with all, {pruned:.3g} percent pruned.")
        if self.error_bound is not None and self.largest_torque is not None:
            lines.append("Bound of the error of the torques of inverse dynamics on these samples:")
            for j, (bound, torque) in enumerate(zip(self.error_bound, self.largest_torque, strict=True), start=1):
                share = 100 * bound / torque if torque else 0.0
                lines.append(f"  joint {j}: {bound:.6e} N m or N ({share:.3g} percent of {torque:.6g})")
        lines.append("This holds for the whole torque of inverse dynamics; inertias, gravity, velocity torques and")
        lines.append("friction by themselves may have larger errors, and the potential energy has another zero.")
        if self.terms_left_out:
            missing = ", ".join(self.terms_left_out)
            lines.append(f"This code does not contain terms with memory or terms of other joints: {missing}.")
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.notes(), f"kept {' '.join(self.kept)}", f"dropped {' '.join(self.dropped)}"])


def _errors(name: str, errors: tuple[float, float]) -> list[Cell]:
    """A row of the table of costs."""
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrajectoryStatistics:
    """Estimates of the same parameters, made from each of several trajectories separately."""

    names: tuple[str, ...]
    """(b,) names of the parameters."""
    units: tuple[str, ...]
    """(b,) their SI units."""
    values: Floats
    """(T, b) one row per trajectory; NaN where the trajectory alone does not determine the parameter."""

    @property
    def average(self) -> Floats:
        """(b,) mean over the trajectories."""
        return np.asarray(np.ma.masked_invalid(self.values).mean(axis=0).filled(np.nan))

    @property
    def std(self) -> Floats:
        """(b,) standard deviation between trajectories; NaN with fewer than two."""
        return np.asarray(np.ma.masked_invalid(self.values).std(axis=0, ddof=1).filled(np.nan))

    @property
    def maximum(self) -> Floats:
        """(b,) largest of the trajectories' values."""
        return np.asarray(np.fmax.reduce(self.values, axis=0))

    @property
    def minimum(self) -> Floats:
        """(b,) smallest of the trajectories' values."""
        return np.asarray(np.fmin.reduce(self.values, axis=0))

    def table(self, marked: Mask | None = None) -> Table:
        """The table of [Izaguirre1992] Tables 1 and 2.

        Args:
            marked: (b,) significant parameters, which get an asterisk; all by default.
        """
        marks = np.ones(len(self.names), dtype=bool) if marked is None else marked
        columns = zip(self.names, marks, self.average, self.std, self.maximum, self.minimum, self.units, strict=True)
        rows = [
            (f"{k}{' *' if mark else ''}", name, float(average), float(std), float(high), float(low), unit)
            for k, (name, mark, average, std, high, low, unit) in enumerate(columns, start=1)
        ]
        return Table.of(["", "parameter", "average", "std", "maximum", "minimum", "unit"], rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Significance:
    """Which parameters are significant, and the fit of the significant ones alone."""

    threshold: float
    """Share of a joint's largest torque that a parameter must reach somewhere."""
    contribution: Floats
    """(b,) largest torque that the parameter causes, over all joints and trajectories [% of the joint's largest]."""
    significant: Mask
    """(b,) whether the parameter was kept."""
    every: TrajectoryStatistics
    """Statistics of the fits of all parameters (Table 1)."""
    reduced: TrajectoryStatistics
    """Statistics of the fits of the significant parameters (Table 2)."""
    condition: float
    """Condition number of the weighted regressor of all parameters, its columns not scaled."""
    reduced_condition: float
    """Condition number of the weighted regressor of the significant parameters."""
    error: float
    """Relative torque error of all parameters on the data used [%]."""
    equations: Samples
    """The equations of the significant parameters, for any other estimator."""
    estimate: Estimate
    """The estimate of the significant parameters, from all trajectories together."""

    @property
    def criterion(self) -> str:
        """The rule that decided which parameters are significant, as text."""
        return f"at least {100 * self.threshold:g} % of the largest torque of a joint"

    @property
    def gain(self) -> float:
        """Condition number of all parameters over that of the significant ones."""
        return self.condition / self.reduced_condition

    @property
    def robot(self) -> Robot:
        """The robot before identification: geometry, terms, prior parameters."""
        return self.equations.robot

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the significant parameters, in the order of `every`."""
        return tuple(compress(self.every.names, self.significant))

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the other parameters."""
        return tuple(compress(self.every.names, ~self.significant))

    def torque(self, experiment: Experiment) -> Floats:
        """(N, n) torques of an experiment's motion by the significant parameters [N m or N]."""
        return self.equations.torque(self.estimate.values, experiment)

    @property
    def training_error(self) -> Floats:
        """(n + 1,) relative torque error of each joint and of all together on the data used [%]."""
        return self.equations.relative_errors(self.estimate.values)

    @property
    def pruned(self) -> PrunedRobot:
        """The robot with the refitted significant parameters and zeros elsewhere, for generated code."""
        equations = self.equations
        values = self.estimate.values
        robot = equations.robot.with_parameters(equations.representative(values))
        term_values = list(zip(equations.terms, values[equations.base.rank :].tolist(), strict=True))
        # a robot can carry terms that depend on the present state of one joint only
        carried = [term.with_value(value) for term, value in term_values if isinstance(term, StateTerm)]
        return PrunedRobot.of(
            robot.with_terms(*carried, keep=True) if carried else robot,
            [run.q for run in equations.experiments],
            criterion=self.criterion,
            kept=self.kept,
            dropped=self.dropped,
            terms_left_out=tuple(term.name for term, _ in term_values if not isinstance(term, StateTerm)),
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
                f"torque error {self.error:.3g} % -> {self.training_error[-1]:.3g} %",
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


def significant_parameters(equations: Samples, *, threshold: float = 0.01) -> Significance:
    """Keep the parameters whose torque matters ([Izaguirre1992] section 7), and fit them again.

    Args:
        equations: The equations of several experiments, the trajectories.
        threshold: Share of a joint's largest measured torque that a parameter must reach somewhere; 1 % in the paper.

    Raises:
        ArgumentError: The threshold is not a share from 0 to below 1.
        EstimationError: No parameter reaches it.

    Example:
        >>> found = dynid.identification.significant_parameters(fit.equations, threshold=0.01)
        >>> len(found.kept) <= len(fit.estimate.names)
        True
    """
    if not 0.0 <= threshold < 1.0:
        raise ArgumentError(f"the threshold is {threshold}", remedy="Give a part of the largest torque, such as 0.01.")
    check_data(equations, spare=1)
    whole = WLS().solve(equations)
    percent = contributions(equations, whole.values)
    keep = percent >= 100.0 * threshold
    if not keep.any():
        reason = f"no parameter causes {100 * threshold:g} % of the largest torque of a joint"
        raise EstimationError(reason, remedy="Lower the threshold.")
    part = restrict_equations(equations, keep)
    weights = refined_weights(equations)
    return Significance(
        threshold=threshold,
        contribution=percent,
        significant=keep,
        every=trajectory_statistics(equations),
        reduced=trajectory_statistics(part),
        condition=_condition(equations, weights),
        reduced_condition=_condition(part, weights),
        error=float(equations.relative_errors(whole.values)[-1]),
        equations=part,
        estimate=WLS().solve(part),
    )


def contributions(equations: Samples, beta: Floats) -> Floats:
    """(b,) largest torque that each parameter causes, in percent of the largest measured torque of the same joint.

    Args:
        equations: The equations.
        beta: (b,) values of the parameters.
    """
    n = equations.robot.dof
    caused = np.zeros((n, beta.size))  # largest torque of each parameter on each joint
    measured = np.zeros(n)
    for block in sample_blocks(replace(equations, band_hz=None)):
        counted = np.abs(block.matrix) * block.valid[..., None]
        caused = np.maximum(caused, counted.max(axis=0, initial=0.0) * np.abs(beta))
        measured = np.maximum(measured, np.abs(block.effort).max(axis=0, initial=0.0))
    share = np.divide(caused, measured[:, None], out=np.zeros_like(caused), where=measured[:, None] > 0.0)
    return np.asarray(100.0 * share.max(axis=0))


def trajectory_statistics(equations: Samples) -> TrajectoryStatistics:
    """Fit every experiment separately by weighted least squares."""
    values = []
    for run, blocks in zip(equations.experiments, equations.blocks, strict=True):
        part = equations.information.only(*blocks)
        estimate = WLS().solve(replace(equations, excerpts=(run,), information=part, blocks=(blocks,)))
        values.append(np.where(estimate.undetermined, np.nan, estimate.values))
    return TrajectoryStatistics(names=equations.names, units=equations.units, values=np.array(values))


def restrict_equations(equations: Samples, keep: Mask) -> Samples:
    """The equations of the parameters to keep, with the others zero; made from the reduced equations, not from samples.

    Args:
        equations: The equations of b parameters.
        keep: (b,) which parameters stay.
    """
    base, rank = equations.base, equations.base.rank
    rows = [k for k in range(rank) if keep[k]]
    part = replace(
        base,
        columns=tuple(base.columns[k] for k in rows),
        grouping=base.grouping[rows].copy(),
        combinations=tuple(base.combinations[k] for k in rows),
    )
    terms = tuple(compress(equations.terms, keep[rank:]))
    information = equations.information.select(list(compress(equations.information.columns, keep)))
    return replace(equations, base=part, terms=terms, information=information)


def _condition(equations: Samples, weights: Floats) -> float:
    """Condition number of the regressor with weights (n,) of the joints."""
    return float(condition_number(equations.information.weight(weights).R))
