"""Friction that is otherwise at reversals biases dry and viscous friction; the intervals count what residuals show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.estimation.linear.least_squares import WLS
from dynid.links.recipe import Recipe
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import Noise, sum_of_sines

ARM = dynid.robots.scara().with_terms().with_terms(dynid.Viscous(2.0), dynid.Coulomb(3.0), dynid.RotorInertia(0.1))
AMPLITUDE = np.where([joint.kind == "prismatic" for joint in ARM.moving_joints], 0.1, 0.5)


def recorded(stuck: float, seed: int = 1) -> Experiment:
    """A log in which dry friction is missing at speeds below a share of each joint's fastest one."""
    motion = sum_of_sines(ARM.dof, amplitude=AMPLITUDE, seed=seed, period_s=4.0, harmonics=5)
    run = dynid.simulate_experiment(ARM, motion, rate_hz=200, duration_s=8.0, noise=Noise(effort=0.1), seed=seed)
    slow = np.abs(run.dq) < stuck * np.abs(run.dq).max(axis=0)
    return replace(run, effort=run.effort - 3.0 * np.sign(run.dq) * slow)


def friction(run: Experiment) -> tuple[dynid.Identification, np.ndarray, np.ndarray]:
    """The fit, and its dry and viscous friction with their standard deviations, (2 n,) each."""
    fit = dynid.identify(ARM, run, recipe=Recipe.bare(), estimator=WLS())
    places = [k for k, name in enumerate(fit.estimate.names) if name.startswith(("FC", "FV"))]
    return fit, fit.estimate.values[places], fit.estimate.stderr[places]


def test_friction_that_is_otherwise_at_reversals_is_within_its_intervals():
    fit, values, errors = friction(recorded(0.03))
    truth = np.tile([2.0, 3.0], ARM.dof)
    off = np.abs(values - truth)
    (note,) = (f for f in fit.estimate.findings if f.code == "friction-misfit")
    assert note.severity == "note"
    assert off.max() > 0.1  # the fit is biased ...
    assert (off < 1.96 * errors).all()  # ... and says so
    assert np.median(off / errors) > 0.5  # the intervals are not wider than that


@pytest.mark.parametrize("seed", [1, 2])
def test_friction_of_the_model_is_not_doubted(seed):
    fit, values, errors = friction(recorded(0.0, seed))
    assert "friction-misfit" not in fit.estimate.codes
    assert errors.max() < 0.1
    assert np.mean(np.abs(values - np.tile([2.0, 3.0], ARM.dof)) < 1.96 * errors) > 0.7
