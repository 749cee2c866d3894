"""The power model recovers the parameters."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import IdentifiabilityError
from dynid.estimation.linear.energy_balance import Power, power_balances
from dynid.robot import zoo
from dynid.robot.model import Robot

from .planted import arm, coverage, equations_of, silent, still, truth


@pytest.mark.parametrize("robot", [zoo.ddarm(), arm(), zoo.scara()], ids=lambda r: r.name)
def test_the_truth_without_noise(robot: Robot) -> None:
    equations = equations_of(robot)
    estimate = Power().solve(equations)
    assert not estimate.undetermined.any()
    assert estimate.values == pytest.approx(truth(equations), abs=1e-8)


def test_intervals_hold_with_noise() -> None:
    covered = []
    for seed in range(8):
        equations = equations_of(arm(), noise=(1.0, 0.5, 0.2), seed=seed, motion=seed)
        estimate = Power().solve(equations)
        covered.append(coverage(equations, estimate))
    assert 0.9 < np.mean(covered) < 0.995
    assert estimate.noise_std == pytest.approx([1.0, 0.5, 0.2], rel=0.3)


def test_one_equation_per_sample() -> None:
    equations = equations_of(arm())
    assert sum(len(balance.target) for balance in power_balances(equations)) == 1500
    assert Power().solve(equations).extras["equations"] == 1500


def test_open_and_unsupported_data() -> None:
    estimate = Power().solve(still(arm(), [0], noise=0.1))
    assert estimate.undetermined.any()
    with pytest.raises(IdentifiabilityError, match="does not move"):
        Power().solve(still(arm(), [0, 1, 2]))
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        Power().solve(silent(arm()))
