"""Gains of drives from planted equations: every step of the calibration against its closed form."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from dynid.errors import ArgumentError, DataError
from dynid.payload.drive_gains import (
    _fit_inverse_gains,
    _fit_one_arm,
    _joint_equations,
    _start_loads,
    _to_gains,
    identify_drive_gains,
)
from dynid.payload.load_solver import BlockEquations
from dynid.robot.inertia import Inertia
from payload.test_weighed_gains import GAINS, LOAD, arm, heavy, run_of

Floats = NDArray[np.float64]
ONE = np.eye(10)


def planted(gains: Floats, noise: float) -> tuple[BlockEquations, Floats]:
    """Currents of joints under a load (10) and an arm (4), thirty blocks of twenty samples, and the unknowns."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=14)
    blocks = []
    for _ in range(30):
        columns = rng.normal(size=(len(gains), 20, 14))
        errors = noise * rng.normal(size=(len(gains), 20))
        blocks.append([np.column_stack([W, W @ x / g + e]) for W, g, e in zip(columns, gains, errors, strict=True)])
    return BlockEquations(blocks, np.full(len(gains), 600.0), np.arange(len(gains))), x


def test_the_arm_is_eliminated_and_the_noise_is_that_of_the_scores() -> None:
    equations, x = planted(np.array([2.0]), 0.3)
    rows = np.concatenate([joint for (joint,) in equations.blocks])
    own, y = rows[:, :10], rows[:, -1]
    free = own - rows[:, 10:14] @ np.linalg.lstsq(rows[:, 10:14], own)[0]  # what the arm cannot make
    S = free.T @ free
    for shared in (None, 0.6 * x):
        fit = np.linalg.lstsq(rows[:, :-1], y)[0] if shared is None else shared
        scores = (free * (y - rows[:, :-1] @ fit)[:, None]).reshape(30, 20, 10).sum(axis=1)
        variance = np.einsum("bi,ij,bj", scores, np.linalg.inv(S), scores) / 10.0
        A, b = _joint_equations(equations, 0, shared)
        np.testing.assert_allclose(A.T @ A * variance, S, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(A.T @ b * variance, free.T @ y, rtol=1e-6, atol=1e-6)


def test_one_arm_fits_all_joints_over_their_gains() -> None:
    gains = np.array([2.0, 5.0, -0.5])
    equations, x = planted(gains, 0.0)
    np.testing.assert_allclose(_fit_one_arm(equations, 1.0 / gains), x / gains[:, None], rtol=1e-9)


@pytest.mark.parametrize(("sizes", "started"), [((0.9, 5.1), 1), ((1.1, 5.1), 2), ((0.9, 4.9), 1)])
def test_a_start_needs_a_joint_that_shows_the_mass(sizes: tuple[float, float], started: int) -> None:
    """Joints with a mass of so many standard deviations."""
    loads = [np.arange(1.0, 11.0) * scale for scale in (2.0, 3.0)]
    joints = [(ONE / (load[9] / size), load / (load[9] / size)) for load, size in zip(loads, sizes, strict=True)]
    if sizes[1] < 5.0:
        with pytest.raises(DataError, match="no joint shows"):
            _start_loads(joints, 4.0, needs_mass=True)
    point, *others = _start_loads(joints, 4.0, needs_mass=sizes[1] > 5.0)
    np.testing.assert_array_equal(point, 4.0 * ONE[9])
    np.testing.assert_allclose(others, [0.4 * np.arange(1.0, 11.0)] * started)


def test_gains_and_moments_weigh_joints_and_prior_knowledge() -> None:
    """A mass of 2 kg over the gain and a stated gain; and a moment of inertia near that of a point 0.2 m away."""
    by_mass, stated, before = (ONE[[9]] / 0.01, np.array([0.5]) / 0.01), np.array([4.4]), np.array([0.03])
    weights = np.array([2.0 / 0.01, 4.4 / 0.03]) ** 2  # of 0.25 and of 1 / 4.4
    mean = weights @ [0.25, 1.0 / 4.4] / weights.sum()
    cost = 0.5 * (0.25 - 1.0 / 4.4) ** 2 / np.sum(1.0 / weights)
    inverse, std, left = _fit_inverse_gains([by_mass], 2.0 * ONE[9], stated, before, 9)
    np.testing.assert_allclose([*inverse, *std, left], [mean, weights.sum() ** -0.5, cost])
    by_moment = (ONE[[0]] / 1e-3, np.array([0.04]) / 1e-3)
    load = Inertia.from_com(2.0, [0.0, 0.2, 0.0], np.zeros((3, 3))).vector  # XX is 0.08, with a standard deviation
    inverse, std, left = _fit_inverse_gains([by_moment], load, np.ones(1), np.array([np.inf]), 6)
    np.testing.assert_allclose([*inverse, *std], [0.5, np.hypot(1e-3 / 0.08, 0.5)], rtol=1e-6)
    assert left < 1e-12


@pytest.mark.parametrize(
    ("std", "before", "away", "said"),
    [
        (0.09, np.inf, 0.0, []),
        (0.11, np.inf, 0.0, ["the load does not determine the gains of one to 10 %"]),
        (0.19, np.inf, 0.0, ["the load does not determine the gains of one to 10 %"]),
        (0.21, np.inf, 0.0, ["the load does not determine the gains of one to 10 %"]),  # and there is no gain at all
        (0.03, 0.1, 4.9, []),
        (0.03, 0.1, -5.1, ["the load contradicts the stated gain by 5.1 standard deviations"]),
        (0.079, 0.1, 0.0, []),
        (0.081, 0.1, 0.0, ["the load hardly tells more than the stated gains of one"]),
    ],
)
def test_gains_are_judged_at_their_limits(std: float, before: float, away: float, said: list[str]) -> None:
    """A stated gain of 5; the difference of it to the estimate has the variance before less the variance after."""
    ratio = 1.0 + (away * np.sqrt(before**2 - std**2) if away else 0.0)
    numbers = (np.array([x]) for x in (ratio / 5.0, std / 5.0, 5.0, before))
    found = _to_gains(("one",), *numbers, "More.")
    assert [finding.message for finding in found.findings] == said
    upper = 5.0 / (ratio - norm.ppf(0.975) * std)  # the further end of the interval
    stderr = min((upper - 5.0 / ratio) / norm.ppf(0.975), before * 5.0 / ratio)
    expected = [np.nan, np.inf] if std > 0.2 else [5.0 / ratio, stderr]
    np.testing.assert_allclose([*found.gain, *found.stderr], expected, rtol=1e-4)


@pytest.mark.parametrize("com", [None, LOAD.com])
def test_gains_are_exact_without_noise(com: Floats | None) -> None:
    loaded, unloaded = (run_of(robot, seed, noise=1e-5) for seed, robot in enumerate((heavy(), arm())))
    found = identify_drive_gains(arm(), loaded=loaded, unloaded=unloaded, mass_kg=2.0, com=com)
    np.testing.assert_allclose(found.gain, GAINS, rtol=1e-4)
    assert not found.findings
    for mass, remedy in ((0.0, "kilograms."), (1500.0, "kilograms: 1.5.")):
        with pytest.raises(ArgumentError) as refused:
            identify_drive_gains(arm(), loaded=loaded, unloaded=unloaded, mass_kg=mass)
        assert (refused.value.remedy or "").endswith(remedy)
    with pytest.raises(ArgumentError, match="without the load"):
        identify_drive_gains(arm(), loaded=loaded, unloaded=[], mass_kg=2.0)
