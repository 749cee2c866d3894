"""Rows in the caller's arrays hold, bit by bit, what the columns of blocks hold; nothing beside them is written."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynid.compiled import kernel
from dynid.tape import Tape, record
from dynid.tape.llvm import backend
from dynid.tape.llvm.backend import STORE_BLOCK, BlockKernel
from dynid.tape.llvm.engine import load_code
from support.random_robots import random_robot, random_states

SAMPLES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 1000, 1003)
LANES = (2, 4, 8)


@pytest.fixture
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compile for registers of so many numbers, whatever this processor has."""
    count: int = request.param
    other = dataclasses.replace(backend.host(), lanes=count)
    monkeypatch.setattr(backend, "host", lambda: other)
    monkeypatch.setattr(backend, "load_code", lambda key, text: load_code(f"{key}|{count} lanes", text))
    return count


def copy_columns(tape: Tape, inputs: list[np.ndarray], samples: int) -> list[np.ndarray]:
    """The outputs (N, size), copied element by element from the blocks of a kernel that writes no rows."""
    blocks = BlockKernel(tape, STORE_BLOCK)
    work, block = blocks.new_work(), blocks.new_block()
    columns = {value: column for column, value in enumerate(blocks.columns)}
    outputs = [np.empty((samples, output.size)) for output in tape.outputs]
    for start in range(0, samples, STORE_BLOCK):
        stop = min(start + STORE_BLOCK, samples)
        blocks.run(inputs, start, stop, work, block)
        for rows, output in zip(outputs, tape.outputs, strict=True):
            for position, value in enumerate(output.elements.ravel().tolist()):
                column = block[columns[value], : stop - start] if value >= 0 else tape.constants[~value]
                rows[start:stop, position] = column
    return outputs


def compare_rows(tape: Tape, inputs: list[np.ndarray], samples: int, shift: int) -> None:
    """Compare rows written by the kernel, some numbers behind a cache line, with copied columns."""
    before = 64 + shift
    areas = [np.full(samples * output.size + 2 * before, np.nan) for output in tape.outputs]
    found = [area[before:-before] for area in areas]
    dense = BlockKernel(tape, STORE_BLOCK, dense=True)
    dense.run([*inputs, *found], 0, samples, dense.new_work(), dense.new_block())
    for area, rows, expected in zip(areas, found, copy_columns(tape, inputs, samples), strict=True):
        np.testing.assert_array_equal(rows.view(np.int64), expected.ravel().view(np.int64))  # signs of zeros, too
        assert np.isnan(area[:before]).all()
        assert np.isnan(area[-before:]).all()


@pytest.mark.parametrize("lanes", LANES, indirect=True)
@pytest.mark.parametrize("joints", [1, 2, 3, 7])
def test_regressors(joints: int, lanes: int) -> None:
    robot = random_robot(joints, joints=joints, fixed=False)
    tape = kernel(robot, "regressor").tape
    for samples in SAMPLES:
        compare_rows(tape, list(random_states(robot, samples)), samples, shift=samples % 8)


@pytest.mark.parametrize("lanes", LANES, indirect=True)
def test_rows_of_every_length(lanes: int) -> None:
    """From empty rows to some registers; several outputs, with zeros of both signs and other constants."""
    sizes = range(36)

    def outputs(x: np.ndarray) -> dict[str, list[object]]:
        drawn = np.random.default_rng(0)
        choices = [x[0] * x[1], x[1], -x[0], 0.0, 0.0, -0.0, 2.5]
        return {f"y{size}": [choices[place] for place in drawn.integers(0, 7, size)] for size in sizes}

    tape = record(outputs, x=(2,))
    for samples in (1, 5, 8, 13, 40):
        x = np.random.default_rng(samples).normal(size=(samples, 2))
        compare_rows(tape, [x], samples, shift=2)


def test_thirty_joints() -> None:
    robot = random_robot(30, joints=30, fixed=False, tree=True)
    tape = kernel(robot, "inertia_matrix").tape
    q = random_states(robot, 1003)[0]
    for samples in (1, 7, 9, 1003):
        compare_rows(tape, [q[:samples].copy()], samples, shift=1)
