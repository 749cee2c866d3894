"""Validation: held-out runs, blocks of time, leave-one-run-out, the prior model, verdict and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.identification.identify import Identification, identify
from dynid.identification.log_errors import name_logs
from dynid.identification.recipe import Recipe
from dynid.identification.validation import validate
from dynid.report.report import identification_page
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from estimators.planted import planted_run

TRUTH = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))
PRIOR = TRUTH.with_parameters(1.3 * TRUTH.parameter_vector)
RUNS = [planted_run(TRUTH, noise=0.05, motion=k, seed=k) for k in range(3)]


@cache
def fit(*runs: int) -> Identification:
    """Identified from some of the runs."""
    return identify(PRIOR, [RUNS[k] for k in runs], Recipe.bare())


def test_held_out_run() -> None:
    check = validate(fit(0, 1), RUNS[2])
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


def test_a_log_of_zeros_proves_nothing_and_fits_nothing() -> None:
    dead = [replace(run, effort=np.zeros_like(run.effort)) for run in RUNS[:2]]
    check = validate(fit(2), dead[0])
    assert not check.passed
    assert check.verdict == "failed: nothing could be compared"
    assert json.loads(json.dumps(check.to_json(), allow_nan=False))["relative_error_percent"] is None
    for estimator in ("wls", "feasible", "huber"):
        with pytest.raises(IdentifiabilityError, match="all torques are zero"):
            identify(PRIOR, dead, Recipe.bare(), estimator=estimator)


def test_training_and_held_out_errors_are_of_the_same_band() -> None:
    loud = [planted_run(TRUTH, noise=2.0, motion=k, seed=k) for k in range(2)]
    found = identify(PRIOR, loud[0], Recipe.bare(band_hz=3.0))
    narrow, wide = validate(found, loud[1]), validate(found, loud[1], band_hz=40.0)
    assert narrow.training_error < 0.6 * wide.training_error
    assert narrow.training_error == pytest.approx(narrow.relative_error, rel=0.5)


def test_samples_of_the_fit_are_known_by_content() -> None:
    """A copy of the arrays is the same data; another part of the same run is not."""
    copied = replace(RUNS[0], q=RUNS[0].q.copy(), effort=RUNS[0].effort.copy())
    for same in (RUNS[0], copied):
        with pytest.raises(ArgumentError, match=r"was used for the identification.*cannot validate"):
            validate(fit(0), same)
    half = (np.arange(RUNS[0].samples) < 700)[:, None]
    first = replace(RUNS[0], valid=RUNS[0].valid & half)
    assert validate(identify(PRIOR, first, Recipe.bare()), replace(copied, valid=copied.valid & ~half)).passed


def test_an_error_like_the_prior_s_is_no_failure() -> None:
    check = replace(validate(fit(0), RUNS[1]), by_kind=())
    alike = replace(check, prior_error=check.relative_error / 1.001)
    assert alike.passed
    assert alike.verdict.startswith("passed")
    worse = replace(check, prior_error=check.relative_error / 1.02)
    assert not worse.passed
    assert "worse than the prior model" in worse.verdict


def test_the_verdict_names_joints_that_were_not_judged() -> None:
    valid = RUNS[1].valid.copy()
    valid[:, 0] = False
    check = validate(fit(0), replace(RUNS[1], valid=valid))
    assert check.passed
    assert check.verdict.endswith(f"there: {check.joint_names[0]}")
    assert "not judged" not in validate(fit(0), RUNS[1]).verdict


def test_the_summary_names_joints_above_the_limit_though_the_whole_passes() -> None:
    check = validate(fit(0, 1), RUNS[2])
    assert "Above the limit" not in check.summary()
    errors = check.per_joint.copy()
    errors[1] = 25.04
    uneven = replace(check, per_joint=errors)
    assert uneven.passed
    verdict, below, *_ = uneven.summary().splitlines()
    assert verdict == check.verdict
    assert below.startswith(f"Above the limit of 15 %: {TRUTH.joint_names[1]} (25 %);")


@pytest.mark.parametrize(
    ("error", "prior", "noise", "fails"),
    [
        (20.0, 19.0, 0.0, True),  # worse than the prior model
        (20.0, 19.9, 0.0, False),  # as good as it
        (29.9, 60.0, 49.9, False),  # below twice the limit
        (30.1, 60.0, 49.9, True),
        (30.1, 60.0, 50.1, False),  # noise is the reason
        (14.9, 1.0, 0.0, False),  # below the limit
    ],
)
def test_single_joints_fail_above_the_limit_because_of_the_model(
    error: float, prior: float, noise: float, fails: bool
) -> None:
    check = validate(fit(0, 1), RUNS[2])
    assert check.by_kind  # the arm has a slide
    errors, name = check.per_joint.copy(), TRUTH.joint_names[1]
    errors[1] = error
    judged = replace(check, per_joint=errors, prior_per_joint=np.full(4, prior), noise_percent=np.full(4, noise))
    assert judged.passed is not fails
    assert judged.to_json()["failed_joints"] == [name] * fails
    assert judged.verdict.startswith("failed" if fails else "passed")
    assert (f"{name} ({error:.3g} %, prior model {prior:.3g} %)" in judged.verdict) is fails


def test_of_several_held_out_logs_the_worst_is_named_with_its_joint() -> None:
    shift = np.array([0.0, 40.0, 0.0, 0.0])
    held_out = [replace(RUNS[1], source="good.csv"), replace(RUNS[2], source="bad.csv", effort=RUNS[2].effort + shift)]
    check = validate(fit(0), held_out)
    alone = [validate(fit(0), run) for run in held_out]
    for log, own in zip(check.by_log, alone, strict=True):
        assert log.error() == pytest.approx(own.relative_error, rel=1e-12)
        np.testing.assert_allclose(log.per_joint, own.per_joint, rtol=1e-12)
    worst, joint = alone[1], TRUTH.joint_names[1]
    strict = replace(check, limit=0.1)
    assert f"of these {joint} is worst in bad.csv ({worst.per_joint[1]:.3g} %)" in strict.verdict
    assert "good.csv" in check.summary()
    assert [entry["log"] for entry in check.to_json()["by_log"]] == ["good.csv", "bad.csv"]
    assert check.to_json()["by_log"][1]["per_joint_percent"][joint] == pytest.approx(worst.per_joint[1])
    assert "Held-out logs" in identification_page(fit(0), check, held_out).to_html()
    assert "worst log" not in replace(alone[1], limit=0.1).verdict
    assert "held-out log" not in alone[1].summary()


def test_held_out_logs_of_one_name_are_told_apart() -> None:
    assert name_logs([replace(RUNS[k], source=source) for k, source in enumerate(("a/run.csv", "b/run.csv"))]) == [
        "run 1 (run.csv)",
        "run 2 (run.csv)",
    ]
