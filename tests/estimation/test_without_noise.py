"""Without noise all estimators of noisy positions find the same robot, in the same loop."""

from __future__ import annotations

from functools import cache

import pytest

import dynid
from support.closed_loops import Scene, scene


@cache
def setting() -> Scene:
    return scene("gautier_khalil_3r", 2.0)


@pytest.mark.parametrize(
    "estimator",
    [
        dynid.OLS(),
        dynid.WLS(),
    ],
    ids=str,
)
def test_without_noise_all_agree(estimator: dynid.estimation.Estimator) -> None:
    found = estimator.solve(setting().equations(setting().clean())).values
    assert found == pytest.approx(setting().values, rel=1e-6, abs=1e-6)
