"""Pruned robots: insignificant parameters are zero, which costs accuracy and saves operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.tables import Cell, Table
from dynid.tape import OperationCount


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
