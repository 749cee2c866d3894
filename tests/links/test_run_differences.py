"""Runs with offsets, friction and trends of their own: they do not spoil the robot, and other runs get the mean."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid import runs
from dynid.diagnosis.runs import diagnose_runs
from dynid.errors import ArgumentError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.kernels import regressor
from dynid.links.common.run_differences import settle_runs
from dynid.links.identify import Identification, identify
from dynid.links.recipe import Recipe
from dynid.links.validation import validate
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from estimation.planted import planted_run

ROBOT = zoo.cylindrical().with_terms(Viscous(0.5), Coulomb(0.3), Offset(0.1))
OFFSETS = np.array([[2.0, 0.0, -1.0], [-0.5, 0.0, 1.5], [-1.5, 0.0, -0.5]])
"""(runs, joints), zero on average over the runs."""


@cache
def _planted(noise: float) -> tuple[Experiment, ...]:
    return tuple(planted_run(ROBOT, noise=noise, motion=motion) for motion in (1, 2, 3))


def _runs(noise: float = 0.0) -> list[Experiment]:
    return list(_planted(noise))


def _shifted(runs: list[Experiment], torques: list[np.ndarray]) -> list[Experiment]:
    return [replace(run, effort=run.effort + torque) for run, torque in zip(runs, torques, strict=True)]


def _values(fit: Identification) -> dict[str, float]:
    return dict(zip(fit.estimate.names, fit.estimate.values.tolist(), strict=True))


@cache
def _truth() -> np.ndarray:
    return identify(ROBOT, _runs(), Recipe.bare(), estimator=WLS()).estimate.values


def test_offsets_of_runs_are_told_apart_from_the_robot() -> None:
    runs = _shifted(_runs(), [row + np.zeros_like(run.effort) for row, run in zip(OFFSETS, _runs(), strict=True)])
    common = identify(ROBOT, runs, Recipe.bare(per_run=()), estimator=WLS())
    own = identify(ROBOT, runs, Recipe.bare(per_run=("offset",)), estimator=WLS())
    np.testing.assert_allclose(own.estimate.values, _truth(), atol=1e-6)
    assert np.abs(common.estimate.values - _truth()).max() > 0.01
    # the mean offset of a future run is as unsure as the mean of three such numbers
    place = own.estimate.names.index("OFF1")
    assert own.estimate.stderr[place] == pytest.approx(np.std(OFFSETS[:, 0], ddof=1) / np.sqrt(3.0), rel=0.01)


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


def test_offsets_that_differ_are_found_and_other_runs_are_predicted_with_the_mean() -> None:
    clean = _runs(0.05)
    runs = _shifted(clean, [np.array([3.0, 0.0, 0.0]) * (k - 1) + np.zeros_like(r.effort) for k, r in enumerate(clean)])
    fit = identify(ROBOT, runs, Recipe.bare(), estimator=WLS())
    codes = [finding.code for finding in fit.estimate.findings]
    assert "per-run" in codes
    assert _values(fit)["OFF1"] == pytest.approx(0.1, abs=0.05)
    other = planted_run(ROBOT, motion=7)
    torque = fit.torque(other)
    np.testing.assert_allclose(torque - other.effort, 0.0, atol=0.2)  # the planted robot, without any run's offset
    moved = replace(other, effort=other.effort + np.array([3.0, 0.0, 0.0]))
    assert validate(fit, moved).rms[0] == pytest.approx(3.0, rel=0.05)  # the verdict contains what is special
    assert fit.equations.excerpts == tuple(runs)  # reports show what was measured


def test_runs_that_agree_are_left_alone() -> None:
    fit = identify(ROBOT, _runs(0.05), Recipe.bare(), estimator=WLS())
    assert not {"per-run", "runs-differ"} & {finding.code for finding in fit.estimate.findings}


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
    done = runs.run(runs.Identify(ROBOT, moved, Recipe.bare(hold_out="40%", estimator="wls")))
    shifts = [np.mean(run.effort - done.fit.torque(run), axis=0, where=run.valid) for run in done.held_out]
    np.testing.assert_allclose(shifts, 2.0 * (OFFSETS - OFFSETS.mean(axis=0)), atol=0.1)


def test_offsets_are_not_taken_off_where_a_run_differs_in_something_else() -> None:
    """They would take up a part of that in all runs, which then accuses the others."""
    cold = zoo.cylindrical().with_terms(Viscous(0.75), Coulomb(0.45), Offset(1.1))
    runs = [*_planted(0.05)[:2], planted_run(cold, noise=0.05, motion=3)]
    equations = build_equations(ROBOT, runs)
    assert "friction" in " ".join(finding.message for finding in diagnose_runs(equations))
    assert settle_runs(equations, ("auto",)) is None
