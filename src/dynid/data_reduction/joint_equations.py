"""The equations ``tau = Y theta`` of a robot, one tape output per joint: its columns, then its torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dynid.checks import as_columns
from dynid.compiled import record_quantity
from dynid.errors import ArgumentError
from dynid.lazy import cached_property
from dynid.robot.model import Robot, RobotKey, require_robot
from dynid.tape.record import Recorder, replay
from dynid.tape.tape import Tape


@dataclass(frozen=True, slots=True, eq=False)
class RowShape:
    """Which columns the rows of each joint have."""

    fingerprint: str
    """Identifies the equations: `Robot.fingerprint` where all columns belong to parameters of the robot."""
    columns: tuple[int, ...]
    """(p,) indices of columns of the regressor, then numbers beyond these for columns that do not come from the robot
    (`dynid.data_reduction.extension`)."""
    supports: tuple[tuple[int, ...], ...]
    """For each joint its support: the positions in `columns` that are not structurally zero in its row."""


@dataclass(frozen=True, eq=False)
class Equations(RowShape):
    """Two tapes of the rows (columns, then torque) of every joint, recorded when they are first asked for.

    Both have one output per joint and the inputs q, dq, ddq, tau, all (n,), and ``counts``. Compiled code computes
    samples in blocks, and fills the inputs of a block that is not full with zeros. A constant element would not become
    zero there; it is multiplied by ``counts``, so that rows without a sample are zero.
    """

    regressor: Tape
    """The chosen columns of the torque regressor."""

    @cached_property
    def plain(self) -> Tape:
        """Tape for samples that all count; ``counts`` is (1,), one for every sample."""
        return _record_rows(self.regressor, self.supports, masked=False)

    @cached_property
    def masked(self) -> Tape:
        """Tape for samples with a mask; ``counts`` is (n,), one where a joint's equation counts and zero elsewhere."""
        return _record_rows(self.regressor, self.supports, masked=True)


def equations(robot: Robot, columns: Sequence[int] | None = None) -> Equations:
    """The equations of a robot for some columns of its regressor, all by default; recorded once per robot and columns.

    Raises:
        ArgumentError: A column does not exist or is chosen twice, or the robot has no moving joint.
    """
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


def _record_rows(regressor: Tape, supports: tuple[tuple[int, ...], ...], *, masked: bool) -> Tape:
    """Record the rows of a regressor's tape, each followed by its torque; see `Equations` for the inputs."""
    n = len(supports)
    recorder = Recorder()
    states = [recorder.input(entry.name, entry.shape) for entry in regressor.inputs]
    tau = recorder.input("tau", (n,))
    counts = recorder.input("counts", (n if masked else 1,))
    value = replay(regressor, np.concatenate([np.ravel(state) for state in states]))
    elements = regressor.output("output").elements
    outputs: dict[str, Any] = {}
    for joint, support in enumerate(supports):
        row = [*(value(int(elements[joint, position])) for position in support), tau[joint]]
        count = counts[joint if masked else 0]
        # without a mask only constants need it: what depends on an input is zero where all inputs are
        scaled = [count * entry if masked or isinstance(entry, float) else entry for entry in row]
        outputs[f"joint{joint}"] = np.array(scaled, dtype=object)
    return recorder.tape(outputs)
