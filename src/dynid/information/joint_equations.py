"""A robot's equations as a reduction wants them: joint after joint only the columns that act on it, then its torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dynid.checks import as_columns
from dynid.errors import ArgumentError
from dynid.kernels import record_quantity
from dynid.lazy import cached_property
from dynid.robot.model import Robot, RobotKey, require_robot
from dynid.tape.record import Recorder, replay
from dynid.tape.tape import Tape


@dataclass(frozen=True, slots=True, eq=False)
class RowShape:
    """Which columns the rows of each joint have."""

    fingerprint: str
    """Identifies the equations; `Robot.fingerprint` for those of a robot alone."""
    columns: tuple[int, ...]
    """(p,) columns of the regressor; further ones have numbers beyond those of the robot's parameters."""
    supports: tuple[tuple[int, ...], ...]
    """For each joint, the positions in `columns` that are not structurally zero in its row."""

    @property
    def widths(self) -> tuple[int, ...]:
        """For each joint the number of its columns, the torque among them."""
        return tuple(len(support) + 1 for support in self.supports)


@dataclass(frozen=True, eq=False)
class Equations(RowShape):
    """The rows of the torque regressor and of the torques, recorded when they are first asked for.

    Both tapes have one output per joint: its columns, then its torque. Their inputs are q, dq, ddq, tau, all (n,), and
    a last one that is zero where there is no sample, so that a block's empty lanes are zero even in constant columns.
    """

    regressor: Tape
    """The chosen columns of the torque regressor."""

    @cached_property
    def plain(self) -> Tape:
        """Last input: (1,) one for a sample."""
        return _recorded(self.regressor, self.supports, masked=False)

    @cached_property
    def masked(self) -> Tape:
        """Last input: (n,) one where a joint's equation counts, zero where it does not."""
        return _recorded(self.regressor, self.supports, masked=True)


def equations(robot: Robot, columns: Sequence[int] | None = None) -> Equations:
    """The equations of a robot for some columns of its regressor, all by default; from the cache where possible."""
    require_robot(robot)
    count = robot.parameter_vector.size
    chosen = tuple(range(count)) if columns is None else as_columns(columns, count)
    if len(set(chosen)) != len(chosen):
        raise ArgumentError("a column is chosen twice", remedy="Give different indices into the parameter vector.")
    if robot.dof == 0:
        raise ArgumentError(f"robot '{robot.name}' has no moving joint", remedy="Give it a joint that is not fixed.")
    return _cached(RobotKey(robot, chosen))


@lru_cache(maxsize=64)
def _cached(key: RobotKey[tuple[int, ...]]) -> Equations:
    fingerprint, columns = key.robot.fingerprint, key.fields
    tape = record_quantity(key.robot, "regressor").select({"output": np.s_[:, list(columns)]})
    rows = tape.sparsity("output")
    supports = tuple(tuple(int(position) for position in np.flatnonzero(row)) for row in rows)
    return Equations(fingerprint, columns, supports, tape)


def _recorded(tape: Tape, supports: tuple[tuple[int, ...], ...], *, masked: bool) -> Tape:
    """The rows of a regressor's tape beside the torques, masked or not."""
    n = len(supports)
    recorder = Recorder()
    states = [recorder.input(entry.name, entry.shape) for entry in tape.inputs]
    tau = recorder.input("tau", (n,))
    counts = recorder.input("counts", (n if masked else 1,))
    value = replay(tape, np.concatenate([np.ravel(state) for state in states]))
    elements = tape.output("output").elements
    outputs: dict[str, Any] = {}
    for joint, support in enumerate(supports):
        row = [*(value(int(elements[joint, position])) for position in support), tau[joint]]
        count = counts[joint if masked else 0]
        scaled = [count * entry if masked or isinstance(entry, float) else entry for entry in row]
        outputs[f"joint{joint}"] = np.array(scaled, dtype=object)
    return recorder.tape(outputs)
