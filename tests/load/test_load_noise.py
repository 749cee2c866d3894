"""Noise correlated in time: every unknown's uncertainty against the exact covariance of the noise that was planted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dynid.load.load_solver import inflate_covariance, spectral_gram, student_factor

RHO = 0.9
COUNT = 3000


def waves() -> np.ndarray:
    """Equations with a slow and a quick column."""
    t = np.arange(COUNT)
    return np.column_stack([np.sin(2 * np.pi * 6 * t / COUNT), np.sin(2 * np.pi * 700 * t / COUNT)])


def remembered(rng: np.random.Generator) -> np.ndarray:
    """Unit noise of which each sample keeps nine tenths of the one before."""
    return lfilter([np.sqrt(1 - RHO**2)], [1.0, -RHO], rng.normal(size=COUNT + 500))[500:]


def test_slow_and_quick_columns_see_different_noise() -> None:
    W = waves()
    white = np.linalg.inv(W.T @ W)
    exact = white @ W.T @ toeplitz(RHO ** np.arange(COUNT)) @ W @ white
    found = []
    for seed in range(10):
        noise = remembered(np.random.default_rng(seed))
        residual = noise - W @ (white @ W.T @ noise)
        grown, growth = inflate_covariance(white, spectral_gram(W[:, None, :], residual[:, None], white))
        assert growth > 1.0
        found.append(np.diag(grown))
    assert exact[0, 0] > 10 * white[0, 0]
    assert exact[1, 1] < 0.2 * white[1, 1]
    np.testing.assert_allclose(np.mean(found, axis=0), np.diag(exact), rtol=0.2)


def test_samples_that_do_not_count_change_nothing() -> None:
    rng = np.random.default_rng(3)
    W, residual = rng.normal(size=(4000, 1, 2)), rng.normal(size=(4000, 1))
    counts = (np.arange(4000) % 4 == 0)[:, None]
    white = np.linalg.inv((W * counts[..., None])[:, 0].T @ (W * counts[..., None])[:, 0])
    gram = spectral_gram(W * counts[..., None], residual * counts, white)
    np.testing.assert_allclose(gram @ white, np.eye(2), atol=0.15)


def test_few_samples_say_nothing_of_correlation_but_widen_intervals() -> None:
    W = np.random.default_rng(1).normal(size=(10, 1, 2))
    np.testing.assert_allclose(spectral_gram(W, np.ones((10, 1)), np.eye(2)), W[:, 0].T @ W[:, 0])
    assert student_factor(5.0) == pytest.approx(
        2.5706 / 1.96, rel=1e-4
    )  # Student's table, 5 degrees of freedom, 97.5 %
    assert student_factor(np.inf) == 1.0
