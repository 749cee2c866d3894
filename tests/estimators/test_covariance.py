"""The covariance of the default estimate is one: correlations within [-1, 1], no negative variance of any sum."""

from __future__ import annotations

import os

import numpy as np
import pytest

import dynid
from dynid.processing.simulation import sum_of_sines


@pytest.mark.parametrize("seed", range(int(os.environ.get("SHORT_LOGS", "3"))))
def test_variances_of_sums_are_not_negative(seed: int) -> None:
    """The correlation matrix of 3 s of a noisy log, by the default recipe, has no negative eigenvalue.

    Three logs; ``SHORT_LOGS=100 pytest tests/estimators/test_covariance.py`` tries a hundred.
    """
    friction = (dynid.RotorInertia(0.3), dynid.Viscous(2.0), dynid.Coulomb(3.0))
    robot, motion = dynid.robots.gautier_khalil_3r().with_terms(*friction), sum_of_sines(3, amplitude=0.6, seed=seed)
    noise = dynid.Noise(position=2e-5, effort=0.5)
    log = dynid.simulate_experiment(robot, motion, rate_hz=200, duration_s=3.0, noise=noise, seed=seed)
    estimate = dynid.identify(robot, dynid.process(log)).estimate
    known = ~estimate.undetermined
    covariance = estimate.covariance[np.ix_(known, known)]
    spread = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(covariance / np.outer(spread, spread))[0] > -1e-9
