"""Programs that form the rows of the equations ``tau = Y theta``, joint by joint, from the motion and the torques.

The row of joint j at a sample is (columns of the regressor that can act on joint j, torque of joint j). `equations`
records the programs for a robot as *tapes*, lists of scalar operations that NumPy interprets or LLVM compiles; each
tape has one output per joint. `reduction` runs them over all samples of a log.
"""

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
    """Says which columns of the equations the rows of each joint contain."""

    fingerprint: str
    """Hash that identifies the equations: `Robot.fingerprint` if all columns belong to parameters of the robot."""
    columns: tuple[int, ...]
    """(p,) chosen columns, as indices into `Robot.parameter_vector`; larger numbers belong to further columns that do
    not come from the robot's regressor (`extension`)."""
    supports: tuple[tuple[int, ...], ...]
    """(n,) for each joint its support: the positions in `columns` of those that are not zero in its row at all states.
    A row of joint j has ``len(supports[j]) + 1`` elements."""


@dataclass(frozen=True, eq=False)
class Equations(RowShape):
    """Two tapes of the rows of every joint, `plain` and `masked`, each recorded at its first use.

    Their inputs are q, dq, ddq, tau, all (n,), and ``counts``, by which elements are multiplied to make rows zero that
    do not count. The plain tape needs this too: compiled code computes samples in blocks, and fills the inputs of a
    block that is not full with zeros. All elements become zero there but constant ones, such as the column of a torque
    offset.
    """

    regressor: Tape
    """Tape of the chosen columns of the torque regressor: q, dq, ddq -> ``output`` (n, p)."""

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
    return _make_equations(RobotKey(robot, chosen))


@lru_cache(maxsize=64)
def _make_equations(key: RobotKey[tuple[int, ...]]) -> Equations:
    """The equations of a robot and columns (both in the key), kept for robots with the same fingerprint."""
    fingerprint, columns = key.robot.fingerprint, key.fields
    tape = record_quantity(key.robot, "regressor").select({"output": np.s_[:, list(columns)]})
    rows = tape.sparsity("output")
    supports = tuple(tuple(int(position) for position in np.flatnonzero(row)) for row in rows)
    return Equations(fingerprint, columns, supports, tape)


def _record_rows(regressor: Tape, supports: tuple[tuple[int, ...], ...], *, masked: bool) -> Tape:
    """Record a tape with outputs ``joint0``, ``joint1`` ...: the row of each joint (w + 1,); inputs see `Equations`."""
    n = len(supports)
    recorder = Recorder()
    states = [recorder.input(entry.name, entry.shape) for entry in regressor.inputs]
    tau = recorder.input("tau", (n,))
    counts = recorder.input("counts", (n if masked else 1,))
    # value(k) is result k of the regressor's operations, recorded again on the new tape; elements (n, p) holds each k
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
