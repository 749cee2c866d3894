"""Variances by leaving out one motion at a time, beside fits of linear models that are made here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from dynid.actuators.judgement.servo_covariance import TimeBlocks, left_out_variances, raised

LENGTHS = (40, 60, 200, 30, 90, 50)
"""Equations of six motions of unequal weight."""


def _motions(seed: int, spread: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Six linear models whose three values differ from 1 by some spread each, with unit noise."""
    rng = np.random.default_rng(seed)
    slopes = [rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] for n in LENGTHS]
    return slopes, [J @ (1.0 + spread * rng.normal(size=3)) + rng.normal(size=len(J)) for J in slopes]


def _blocks(slopes: list[np.ndarray], readings: list[np.ndarray]) -> tuple[TimeBlocks, np.ndarray]:
    J, y = np.vstack(slopes), np.concatenate(readings)
    solution = np.linalg.lstsq(J, y, rcond=None)[0]
    breads = np.array([[j.T @ j] for j in slopes])
    scores = np.array([j.T @ (r - j @ solution) for j, r in zip(slopes, readings, strict=True)])
    runs, counts = np.arange(len(slopes)), np.array([float(len(j)) for j in slopes])
    return TimeBlocks(
        breads.sum(axis=(0, 1)), np.zeros(3), breads, scores, counts, runs, False, np.ones(1), (0.0, 0)
    ), solution


def test_it_is_the_spread_of_fits_without_each_motion() -> None:
    slopes, readings = _motions(0, 0.3)
    blocks, _ = _blocks(slopes, readings)
    M = len(slopes)
    without = np.array([
        np.linalg.lstsq(
            np.vstack(slopes[:m] + slopes[m + 1 :]), np.concatenate(readings[:m] + readings[m + 1 :]), rcond=None
        )[0]
        for m in range(M)
    ])  # fmt: skip
    expected = (M - 1) / M * np.sum((without - without.mean(axis=0)) ** 2, axis=0)
    expected *= (student.ppf(0.975, M - 1) / 1.959964) ** 2
    assert left_out_variances(blocks, [0, 1, 2]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_intervals_cover_values_that_differ_from_motion_to_motion(spread: float) -> None:
    """200 planted cases: 95 % or somewhat more, with and without differences between motions."""
    inside = []
    for seed in range(200):
        blocks, solution = _blocks(*_motions(seed, spread))
        inside.append(np.abs(solution - 1.0) <= 1.96 * np.sqrt(left_out_variances(blocks, [0, 1, 2])))
    assert 0.93 <= np.mean(inside) <= 0.99


def test_variances_are_raised_and_never_lowered() -> None:
    """Correlations stay; what has hardly any variance of its own does not overflow."""
    covariance = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1e-320]])
    found = raised(covariance, np.array([16.0, 0.5, 1.0]))
    assert np.diagonal(found)[:2].tolist() == [16.0, 1.0]
    assert found[0, 1] / np.sqrt(found[0, 0] * found[1, 1]) == pytest.approx(0.5)
    assert np.isfinite(found).all()
