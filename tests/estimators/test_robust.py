"""Robust estimators shrug off gross outliers and lose little without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.linear.robust import Huber

from .planted import arm, equations_of, planted_run, truth

NOISE = (1.0, 0.5, 0.2)


def test_five_percent_of_gross_outliers() -> None:
    clean = equations_of(arm(), noise=NOISE)
    run = planted_run(arm(), noise=NOISE, outliers=0.05)
    valid = run.valid & ~((np.arange(1500) // 100 == 3)[:, None] & [False, True, False])
    spoiled = build_equations(arm(), replace(run, valid=valid, effort=np.where(valid, run.effort, np.nan)))
    reference = WLS().solve(clean)
    error = np.abs(WLS().solve(spoiled).values - truth(spoiled)) / reference.stderr
    robust = Huber().solve(spoiled)
    better = np.abs(robust.values - truth(spoiled)) / reference.stderr
    assert np.sqrt(np.mean(better**2)) < 0.1 * np.sqrt(np.mean(error**2))
    assert np.sqrt(np.mean(better**2)) < 2.5
    assert robust.noise_std == pytest.approx(NOISE, rel=0.25)
    u = np.abs(spoiled.residual(robust.values, spoiled.experiments[0]))
    assert robust.noise_std == pytest.approx(np.nanmedian(u, axis=0) / 0.67449, rel=1e-4)
    far = np.count_nonzero(u > 2.0 * 1.345 * robust.noise_std) / valid.sum()
    assert robust.extras["share_of_outliers"] == pytest.approx(far)
    assert 0.03 < far < 0.12


def test_exact_torques_have_a_least_noise() -> None:
    equations = equations_of(arm())
    torque = np.sqrt(np.mean(equations.experiments[0].effort ** 2, axis=0))
    assert Huber().solve(equations).noise_std == pytest.approx(1e-8 * torque)


def test_wrong_settings_and_low_passed_data_are_refused() -> None:
    with pytest.raises(ArgumentError):
        Huber(tuning=0.0)
    with pytest.raises(ArgumentError, match="low-passed"):
        Huber().solve(build_equations(arm(), planted_run(arm()), band_hz=10.0))
