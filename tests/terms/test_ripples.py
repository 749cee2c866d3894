"""The order of a ripple is read from residuals; what is no ripple is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.estimation.selection import ForwardSelection, standard_candidates
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.processing.simulation import sum_of_sines
from dynid.robot import zoo
from dynid.terms.base import Reference
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from dynid.terms.ripples import _explained, ripple_order
from dynid.terms.springs import AngleHarmonic
from estimation.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))


def angles(samples: int = 4000, amplitude: float = 1.0) -> NDArray[np.float64]:
    path = sum_of_sines(1, period_s=40.0, harmonics=20, amplitude=amplitude, seed=3)
    return np.asarray(path(np.arange(samples) / 100.0)[0][:, 0])


@pytest.mark.parametrize("order", [15, 20, 200])
def test_the_order_of_a_ripple_is_found_below_the_noise(order: int) -> None:
    q = angles()
    residual = 0.3 * np.cos(order * q + 0.7) + 0.4 * np.random.default_rng(order).normal(size=q.size)
    assert ripple_order(q, residual) == order


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_no_ripple(seed: int) -> None:
    q, rng = angles(), np.random.default_rng(seed)
    assert ripple_order(q, rng.normal(size=q.size)) is None
    slow = np.convolve(rng.normal(size=q.size + 19), np.ones(20), mode="valid")
    assert ripple_order(q, slow) is None


def test_a_spring_and_a_motion_that_is_too_short_show_none() -> None:
    q = angles()
    assert ripple_order(q, np.cos(q)) is None
    short = angles(amplitude=0.01)
    assert ripple_order(short, np.cos(20 * short)) is None
    assert ripple_order(q, np.zeros_like(q)) is None
    assert ripple_order(q[:10], np.cos(20 * q[:10])) is None


def test_a_ripple_that_one_half_of_the_data_shows_is_none() -> None:
    q, rng = angles(), np.random.default_rng(1)
    shown = np.arange(q.size) * 16 // q.size % 2 == 0
    residual = np.where(shown, np.cos(30 * q), np.cos(90 * q)) + 0.1 * rng.normal(size=q.size)
    assert ripple_order(q, residual) is None


def test_a_torque_that_differs_forth_and_back_is_no_ripple() -> None:
    q, rng = angles(), np.random.default_rng(4)
    residual = np.sign(np.gradient(q)) * np.cos(30 * q) + 0.1 * rng.normal(size=q.size)
    late = np.where(np.gradient(q) > 0.0, np.cos(30 * q), np.cos(45 * q)) + 0.1 * rng.normal(size=q.size)
    assert ripple_order(q, late) is None
    assert ripple_order(q, residual) is None


def test_explained_squares_are_those_of_least_squares() -> None:
    q = angles()
    residual = np.cos(12 * q) + np.random.default_rng(2).normal(size=q.size)
    explained = _explained(q, residual)
    for order in (7, 12, 40):
        columns = np.column_stack([np.ones_like(q), np.cos(order * q), np.sin(order * q)])
        left = residual - columns @ np.linalg.lstsq(columns, residual)[0]
        squares = np.sum((residual - residual.mean()) ** 2) - left @ left
        assert explained[order] == pytest.approx(squares, rel=0.02, abs=0.5)


def test_a_planted_ripple_is_kept_and_the_friction_is_right() -> None:
    run = planted_run(ROBOT, samples=4000, noise=0.05)
    turning = [j for j, body in enumerate(ROBOT.bodies) if not body.is_prismatic]
    effort = run.effort.copy()
    effort[:, turning] += 0.3 * np.cos(40 * run.q[:, turning] + 0.4)
    run = replace(run, effort=effort)
    groups = {group.name: group for group in standard_candidates(ROBOT, [run], Reference(ROBOT.parameter_vector))}
    both = [AngleHarmonic(joint=j, order=40, sine=sine) for j in turning for sine in (False, True)]
    assert list(groups["ripple"].terms) == both
    fit = identify(ROBOT, run, Recipe.bare(selection=ForwardSelection(average=False)))
    assert list(fit.terms) == both
    cosine, sine = (fit.estimate.values[fit.estimate.names.index(f"H{part}40_1")] for part in "CS")
    assert (cosine, sine) == pytest.approx((0.3 * np.cos(0.4), -0.3 * np.sin(0.4)), abs=0.02)


def test_logs_without_ripple_have_no_such_candidate() -> None:
    run = planted_run(ROBOT, samples=2000, noise=0.05)
    groups = standard_candidates(ROBOT, [run], Reference(ROBOT.parameter_vector))
    assert "ripple" not in [group.name for group in groups]
