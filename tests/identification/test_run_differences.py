"""Runs with offsets, friction and trends of their own: they do not spoil the robot, and other runs get the mean."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid import workflows
from dynid.compiled import regressor
from dynid.errors import ArgumentError
from dynid.estimators.linear.least_squares import WLS
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from estimators.planted import planted_run

ROBOT = zoo.cylindrical().with_terms(Viscous(0.5), Coulomb(0.3), Offset(0.1))
OFFSETS = np.array([[2.0, 0.0, -1.0], [-0.5, 0.0, 1.5], [-1.5, 0.0, -0.5]])
"""(runs, joints), zero on average over the runs."""


@cache
def _runs(noise: float = 0.0) -> list[Experiment]:
    return [planted_run(ROBOT, noise=noise, motion=motion) for motion in (1, 2, 3)]


def _shifted(runs: list[Experiment], torques: list[np.ndarray]) -> list[Experiment]:
    return [replace(run, effort=run.effort + torque) for run, torque in zip(runs, torques, strict=True)]


@cache
def _truth() -> np.ndarray:
    return identify(ROBOT, _runs(), Recipe.bare(), estimator=WLS()).estimate.values


def test_the_fit_is_the_joint_least_squares_fit() -> None:
    runs = _shifted(_runs(0.05), [row + np.zeros_like(run.effort) for row, run in zip(OFFSETS, _runs(), strict=True)])
    fit = identify(ROBOT, runs, Recipe.bare(per_run=("offset",)), estimator=WLS())
    rows, sides = [], []
    weight = 1.0 / fit.estimate.noise_std
    for number, run in enumerate(runs):
        Y = regressor(ROBOT, run.q, run.dq, run.ddq, columns=fit.base.columns)
        own = np.zeros((run.samples, 3, 2, 3))  # two contrasts for each joint, the last run against the others
        for joint in range(3):
            own[:, joint, :, joint] = -1.0 if number == 2 else np.eye(2)[number]
        table = np.concatenate([Y, own.reshape(run.samples, 3, 6)], axis=2) * weight[:, None]
        rows.append(table.reshape(-1, table.shape[2]))
        sides.append((run.effort * weight).ravel())
    expected = np.linalg.lstsq(np.concatenate(rows), np.concatenate(sides), rcond=None)[0]
    np.testing.assert_allclose(fit.estimate.values, expected[: fit.base.rank], rtol=1e-3, atol=1e-3)


def test_friction_and_trends_on_request() -> None:
    runs = _runs()
    friction = [scale * (0.4 * run.dq + 0.7 * np.sign(run.dq)) for scale, run in zip((1, -1, 0), runs, strict=True)]
    fit = identify(ROBOT, _shifted(runs, friction), Recipe.bare(per_run=("friction",)), estimator=WLS())
    np.testing.assert_allclose(fit.estimate.values, _truth(), atol=1e-6)
    drift = [(run.time - run.time.mean())[:, None] * np.array([0.3, 0.1, -0.2]) for run in runs]
    for name, change in (("trend", drift), ("warming", [d * np.sign(r.dq) for d, r in zip(drift, runs, strict=True)])):
        fit = identify(ROBOT, _shifted(runs, change), Recipe.bare(per_run=(name,)), estimator=WLS())
        np.testing.assert_allclose(fit.estimate.values, _truth(), atol=1e-6, err_msg=name)
        one = identify(ROBOT, _shifted(runs, change)[:1], Recipe.bare(per_run=(name,)), estimator=WLS())
        assert [f.code for f in one.estimate.findings].count("per-run") == 1


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ArgumentError, match="per_run: there is no 'humidity'"):
        Recipe(per_run=("humidity",))


def test_held_out_parts_are_judged_by_what_is_handed_over() -> None:
    """A written robot has the mean of the offsets; so has the prediction of parts whose runs have others."""
    noise = Noise(position=1e-5, effort=0.02)
    logs = [
        simulate_experiment(ROBOT, sum_of_sines(3, seed=seed), rate_hz=100, duration_s=20.0, noise=noise, seed=seed)
        for seed in (1, 2, 3)
    ]
    moved = [replace(log, effort=np.asarray(log.effort) + row) for log, row in zip(logs, 2.0 * OFFSETS, strict=True)]
    done = workflows.run(workflows.Identify(ROBOT, moved, Recipe.bare(hold_out="40%", estimator="wls")))
    shifts = [np.mean(run.effort - done.fit.torque(run), axis=0, where=run.valid) for run in done.held_out]
    np.testing.assert_allclose(shifts, 2.0 * (OFFSETS - OFFSETS.mean(axis=0)), atol=0.1)
