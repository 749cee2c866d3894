"""Further columns and filters: the one reduction against NumPy's QR of the stacked equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.data_reduction.extension import Extension
from dynid.data_reduction.reduction import reduce_extended, reduce_samples
from dynid.errors import DataError

ROBOT = dynid.robots.gautier_khalil_3r()
COLUMNS = dynid.base_parameters(ROBOT).columns
P = ROBOT.parameter_vector.size


@dataclass(frozen=True, eq=False)
class Run:
    q: Any
    dq: Any
    ddq: Any
    effort: Any
    valid: Any
    segment: Any


def make_run(samples: int = 900) -> Run:
    rng = np.random.default_rng(3)
    q, dq, ddq, effort = rng.normal(size=(4, samples, ROBOT.dof))
    stretch = np.repeat([0, 1, 2], [samples // 3, samples // 2, samples - samples // 3 - samples // 2])
    return Run(q, dq, ddq, effort, rng.random((samples, ROBOT.dof)) > 0.1, stretch)


def smooth(table: Any) -> Any:
    return np.apply_along_axis(np.convolve, 0, table, [0.25, 0.5, 0.25], mode="same")


def further(run: Run) -> tuple[dict[int, Any], ...]:
    return ({0: np.tanh(run.dq[:, 0]), 1: run.q[:, 0]}, {1: np.abs(run.dq[:, 1])})


def stacked(run: Run, joint: int, extension: Extension, keep: Any) -> Any:
    """The joint's equations as a person would write them."""
    Y = dynid.regressor(ROBOT, run.q, run.dq, run.ddq, columns=COLUMNS)[:, joint]
    rigid = [Y[:, k] for k in np.flatnonzero(np.any(Y, axis=0))]
    table = np.column_stack([*rigid, *(c[joint] for c in extension.further if joint in c), run.effort[:, joint]])
    rows = []
    for number in np.unique(run.segment):
        here = run.segment == number
        part = table[here] * run.valid[here, joint][:, None]
        part = part if extension.low_pass is None else extension.low_pass(part)
        rows.append(part[:: extension.step][(run.valid[here, joint] & keep[here])[:: extension.step]])
    return np.vstack(rows)


@pytest.mark.parametrize("filtered", [False, True])
def test_the_reduction_agrees_with_numpy(filtered: bool) -> None:
    run = make_run()
    extension = Extension(
        key="test", further=further(run), low_pass=smooth if filtered else None, step=3 if filtered else 1
    )
    blocks = np.arange(len(run.q)) // 250
    made = reduce_extended(ROBOT, run, extension, columns=COLUMNS, segments=blocks)
    assert made.columns == (*COLUMNS, P, P + 1)
    assert made.segments == (0, 1, 2, 3)
    for joint in range(ROBOT.dof):
        for block in made.segments:
            W = stacked(run, joint, extension, blocks == block)
            R = np.linalg.qr(W, mode="r")
            factor = made.factor(joint, block)
            np.testing.assert_allclose(factor.T @ factor, R.T @ R, atol=1e-11 * np.sum(W**2))
            assert made.samples[block, joint] == len(W)


def test_without_an_extension_it_is_the_other_reduction() -> None:
    run = make_run()
    plain = reduce_samples(
        ROBOT, run.q, run.dq, run.ddq, run.effort, columns=COLUMNS, segments=run.segment, valid=run.valid
    )
    made = reduce_extended(ROBOT, run, Extension(key=""), columns=COLUMNS)
    assert (made.columns, made.supports, made.segments) == (plain.columns, plain.supports, plain.segments)
    np.testing.assert_allclose(made.weight().solve(), plain.weight().solve(), rtol=1e-12)


def test_different_extensions_do_not_merge() -> None:
    run = make_run()
    one, other = (reduce_extended(ROBOT, run, Extension(key=key), columns=COLUMNS) for key in ("one", "other"))
    with pytest.raises(dynid.errors.ArgumentError, match="fingerprint"):
        one.merge(other.renumber(3))


def test_a_strange_number_in_a_further_column_is_named() -> None:
    run = make_run()
    column = np.tanh(run.dq[:, 1])
    column[40] = np.inf
    run.valid[40, 1] = True
    with pytest.raises(DataError, match="joint 2 is not finite at sample 40"):
        reduce_extended(ROBOT, run, Extension(key="", further=({1: column},)), columns=COLUMNS)
    run.valid[40, 1] = False
    reduce_extended(ROBOT, run, Extension(key="", further=({1: column},)), columns=COLUMNS)
