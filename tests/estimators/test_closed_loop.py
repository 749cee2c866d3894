"""Output error and instrumental variables against planted truths, finite differences and wrong control laws."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import IdentifiabilityError
from support.closed_loops import EVERY, Scene, scene

ESTIMATORS = [
    dynid.estimators.InstrumentalVariables(),
    dynid.estimators.DIDIM(),
]
CHOSEN = scene("gautier_khalil_3r")


@pytest.mark.parametrize("estimator", [dynid.OLS(), *ESTIMATORS], ids=["ols", "iv", "didim"])
def test_all_agree_without_noise(estimator: dynid.estimators.Estimator) -> None:
    found = estimator.solve(CHOSEN.equations(CHOSEN.clean()))
    assert np.linalg.norm(found.values - CHOSEN.values) < 1e-8 * np.linalg.norm(CHOSEN.values)


def test_a_motion_that_shows_too_little_is_refused() -> None:
    still = np.repeat(CHOSEN.loop.reference.q[:1], 1000, axis=0)
    reference = dynid.control_loop.ReferenceMotion(q=still, dq=0 * still, ddq=0 * still, rate_hz=500.0)
    loop = replace(CHOSEN.loop, reference=reference)
    run = dynid.control_loop.simulate_loop(CHOSEN.robot, loop, every=EVERY)
    rest = replace(Scene(CHOSEN.robot, CHOSEN.prior, loop, run, CHOSEN.base).clean(), valid=np.ones(run.q.shape, bool))
    with pytest.raises(IdentifiabilityError):
        dynid.estimators.DIDIM().solve(CHOSEN.equations(rest))


@pytest.mark.parametrize("filter_effort", [False, True])
def test_a_low_pass_does_not_bias_instrumental_variables(filter_effort: bool) -> None:
    log = CHOSEN.noisy(0, position=0.0, torque=0.0, cutoff_hz=6.0, filter_effort=filter_effort)
    flattened, found = (
        e.solve(CHOSEN.equations(log)).values for e in (dynid.OLS(), dynid.estimators.InstrumentalVariables())
    )
    size = np.linalg.norm(CHOSEN.values)
    assert np.linalg.norm(flattened - CHOSEN.values) > 1e-2 * size
    assert np.linalg.norm(found - CHOSEN.values) < 1e-6 * size


def test_a_gain_that_is_a_fifth_too_small_leaves_a_fifth_of_the_torque() -> None:
    law = CHOSEN.loop.law
    assert isinstance(law, dynid.control_loop.PD)
    wrong = replace(CHOSEN.loop, law=dynid.control_loop.PD(0.8 * np.asarray(law.kp), law.kd))
    (found,) = CHOSEN.doubts(replace(CHOSEN.noisy(0), loop=wrong), CHOSEN.values)
    shares = [float(share) for share in re.findall(r"([\d.]+) %", found.message)]
    np.testing.assert_allclose(shares, [20.0] * 3, atol=3.0)
    quiet = CHOSEN.noisy(0, position=1e-5, torque=0.01)
    wrong = replace(CHOSEN.loop, law=dynid.control_loop.PD(law.kp, 0.8 * np.asarray(law.kd)))
    assert "derivative part" in [found.where for found in CHOSEN.doubts(replace(quiet, loop=wrong), CHOSEN.values)]
