"""Output error and instrumental variables against planted truths, finite differences and wrong control laws."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid
from dynid.errors import IdentifiabilityError
from support.closed_loops import EVERY, Scene, scene

ESTIMATORS = [
    dynid.estimators.InstrumentalVariables(),
    dynid.estimators.DIDIM(),
]
NAMES = ["iv", "didim"]
made = cache(scene)


def three() -> Scene:
    return made("gautier_khalil_3r")


@pytest.mark.parametrize("estimator", [dynid.OLS(), *ESTIMATORS], ids=["ols", *NAMES])
def test_all_agree_without_noise(estimator: dynid.estimators.Estimator) -> None:
    chosen = three()
    found = estimator.solve(chosen.equations(chosen.clean()))
    assert np.linalg.norm(found.values - chosen.values) < 1e-8 * np.linalg.norm(chosen.values)


def test_noise_biases_least_squares() -> None:
    chosen = three()
    found = dynid.OLS().solve(chosen.equations(chosen.noisy(0, cutoff_hz=None)))
    assert np.abs((found.values - chosen.values) / found.stderr).max() > 10.0


def test_a_motion_that_shows_too_little_is_refused() -> None:
    chosen = three()
    still = np.repeat(chosen.loop.reference.q[:1], 1000, axis=0)
    reference = dynid.control_loop.ReferenceMotion(q=still, dq=0 * still, ddq=0 * still, rate_hz=500.0)
    loop = replace(chosen.loop, reference=reference)
    run = dynid.control_loop.simulate_loop(chosen.robot, loop, every=EVERY)
    rest = replace(Scene(chosen.robot, chosen.prior, loop, run, chosen.base).clean(), valid=np.ones(run.q.shape, bool))
    with pytest.raises(IdentifiabilityError):
        dynid.estimators.DIDIM().solve(chosen.equations(rest))


@pytest.mark.parametrize("filter_effort", [False, True])
def test_a_low_pass_does_not_bias_instrumental_variables(filter_effort: bool) -> None:
    chosen = three()
    log = chosen.noisy(0, position=0.0, torque=0.0, cutoff_hz=6.0, filter_effort=filter_effort)
    flattened, found = (
        e.solve(chosen.equations(log)).values for e in (dynid.OLS(), dynid.estimators.InstrumentalVariables())
    )
    size = np.linalg.norm(chosen.values)
    assert np.linalg.norm(flattened - chosen.values) > 1e-2 * size
    assert np.linalg.norm(found - chosen.values) < 1e-6 * size


def test_a_gain_that_is_a_fifth_too_small_leaves_a_fifth_of_the_torque() -> None:
    chosen = three()
    law = chosen.loop.law
    assert isinstance(law, dynid.control_loop.PD)
    wrong = replace(chosen.loop, law=dynid.control_loop.PD(0.8 * np.asarray(law.kp), law.kd))
    (found,) = chosen.doubts(replace(chosen.noisy(0), loop=wrong), chosen.values)
    shares = [float(share) for share in re.findall(r"([\d.]+) %", found.message)]
    np.testing.assert_allclose(shares, [20.0] * 3, atol=3.0)
    quiet = chosen.noisy(0, position=1e-5, torque=0.01)
    wrong = replace(chosen.loop, law=dynid.control_loop.PD(law.kp, 0.8 * np.asarray(law.kd)))
    assert "derivative part" in [found.where for found in chosen.doubts(replace(quiet, loop=wrong), chosen.values)]
