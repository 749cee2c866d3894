"""Validation: held-out runs, blocks of time, leave-one-run-out, the prior model, verdict and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.estimation.least_squares import WLS
from dynid.identification.links import identify
from dynid.identification.validation import cross_validate, validate
from dynid.robot import zoo
from dynid.robot.joint_models import Coulomb, Offset, Viscous
from estimation.planted import planted_run

TRUTH = zoo.scara().with_joint_models(Viscous(0.5), Coulomb(0.4), Offset(0.1))
PRIOR = TRUTH.with_parameters(1.3 * TRUTH.parameter_vector)
RUNS = [planted_run(TRUTH, noise=0.05, motion=k, seed=k) for k in range(3)]


def test_held_out_run() -> None:
    fit = identify(PRIOR, RUNS[:2])
    check = validate(fit, RUNS[2])
    assert check.passed
    assert check.verdict.startswith("passed")
    assert check.relative_error < 2.0 < check.prior_error
    assert np.abs(check.whiteness).max() < 0.2
    np.testing.assert_allclose(check.rms, 0.05, rtol=0.15)
    verdict = json.loads(json.dumps(check.to_json(), allow_nan=False))
    assert verdict["passed"] is True
    assert verdict["per_joint_percent"].keys() == verdict["prior_per_joint_percent"].keys() == set(TRUTH.joint_names)
    assert np.all(check.per_joint < check.prior_per_joint)
    assert "joint" in str(check)


def test_a_bad_model_fails() -> None:
    fit = identify(PRIOR, RUNS[0])
    assert not validate(fit, RUNS[1], limit=0.01).passed


def test_the_data_of_the_fit_cannot_validate_it() -> None:
    with pytest.raises(ArgumentError, match="cannot validate"):
        validate(identify(PRIOR, RUNS[0]), RUNS[0])


def test_leave_one_run_out_and_blocks() -> None:
    by_run = cross_validate(PRIOR, RUNS, estimator=WLS())
    by_block = cross_validate(PRIOR, RUNS[0], folds=4, estimator=WLS())
    assert (len(by_run), len(by_block)) == (3, 4)
    assert all(check.relative_error < 3.0 for check in (*by_run, *by_block))
    with pytest.raises(ArgumentError, match="folds"):
        cross_validate(PRIOR, RUNS[0], folds=1)


def test_training_and_held_out_errors_are_of_the_same_band() -> None:
    loud = [planted_run(TRUTH, noise=2.0, motion=k, seed=k) for k in range(2)]
    fit = identify(PRIOR, loud[0], band_hz=3.0)
    narrow, wide = validate(fit, loud[1]), validate(fit, loud[1], band_hz=40.0)
    assert narrow.training_error < 0.6 * wide.training_error
    assert narrow.training_error == pytest.approx(narrow.relative_error, rel=0.5)
