"""From logs to short code: significant parameters, fitted again, as C ([Izaguirre1992] section 7 and Appendix A)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.compiled import inverse_dynamics, regressor
from dynid.errors import ArgumentError, DataError
from dynid.export.c.c_package import generate_c
from dynid.export.c.c_pruning import count_code, pruning_cost
from dynid.export.result_file import read_result, write_result
from dynid.identification import significant_parameters
from dynid.identification.identify import Identification, identify
from dynid.identification.recipe import Recipe
from dynid.identification.significance import Significance, read_share
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia

NOISE = Noise(effort=0.02)
PAPER = (98, 70)  # multiplications and additions of the printed program, inertias and gravity


@cache
def run(seed: int) -> Experiment:
    motion = sum_of_sines(6, period_s=7.0, amplitude=1.0, seed=seed)
    return process(simulate_experiment(zoo.puma260(), motion, rate_hz=100, duration_s=14.0, noise=NOISE, seed=seed))


@cache
def fit() -> Identification:
    return identify(zoo.puma260(), [run(0), run(1), run(2)], Recipe.bare(estimator="wls")).with_significant("1%")


def found() -> Significance:
    significance = fit().significance
    assert significance is not None
    return significance


def test_the_pruned_robot_has_the_torques_of_the_kept_columns_alone() -> None:
    q, dq, ddq = np.random.default_rng(3).uniform(-1, 1, (3, 50, 6))
    kept = [column for column, keep in zip(fit().base.columns, found().significant, strict=True) if keep]
    expected = regressor(zoo.puma260(), q, dq, ddq)[:, :, kept] @ found().estimate.values
    np.testing.assert_allclose(inverse_dynamics(found().pruned.robot, q, dq, ddq), expected, rtol=0, atol=1e-12)
    assert len(kept) < 30 < len(fit().base.columns) == 52


@pytest.mark.usefixtures("compiler")
def test_c_from_significant_parameters_agrees_with_python_and_is_shorter_than_the_papers() -> None:
    code = generate_c(significant_parameters(fit().equations), ["inverse_dynamics"])  # type: ignore[arg-type]
    assert max(code.check(100).values()) < 1e-12
    background = code.counts["background_inertia"]
    assert background.multiplications <= PAPER[0]
    assert background.additions <= PAPER[1]
    full = count_code(fit())["background_inertia"]
    assert background.multiplications < 0.6 * full.multiplications
    assert background.additions < 0.6 * full.additions
    header = code.files[f"{code.name}.h"]
    assert f"{len(found().kept)} of 52 parameters kept" in header


def test_pruning_hardly_costs_accuracy_on_another_motion() -> None:
    full, pruned = dynid.validate(fit(), run(7)), dynid.validate(found(), run(7))
    assert pruned.relative_error < full.relative_error + 0.2
    assert pruned.prior_error == full.prior_error
    used = fit().equations.excerpts
    squares = sum(np.sum((one.effort - found().torque(one)) ** 2, where=one.valid) for one in used)
    total = sum(np.sum(one.effort**2, where=one.valid) for one in used)
    assert found().training_error[-1] == pytest.approx(100 * np.sqrt(squares / total), rel=1e-6)


def test_an_arm_that_has_all_parameters_pays_with_accuracy() -> None:
    robot = zoo.puma560().with_terms(RotorInertia(0.2), Viscous(2.0), Coulomb(3.0))
    motions = [sum_of_sines(6, period_s=7.0, amplitude=1.0, seed=seed) for seed in range(3)]
    runs = [
        process(simulate_experiment(robot, motion, rate_hz=100, duration_s=7.0, noise=Noise(effort=0.2), seed=seed))
        for seed, motion in enumerate(motions)
    ]
    whole = identify(robot, runs[:2], Recipe.bare(estimator="wls")).with_significant("3%")
    assert whole.significance is not None
    full, short = dynid.validate(whole, runs[2]), dynid.validate(whole.significance, runs[2])
    cost = pruning_cost(whole, full, short)
    assert cost.held_out_error == (full.relative_error, short.relative_error)
    assert full.relative_error < short.relative_error < 10.0
    assert f"{short.relative_error:.3g}" in str(cost)
    before, after = cost.operations["inverse_dynamics"]
    assert after.flops < 0.5 * before.flops


def test_a_result_file_holds_the_pruned_robot(tmp_path: Path) -> None:
    saved = read_result(write_result(fit(), tmp_path / "result.json"))
    assert saved.content["significant"]["threshold"] == "1%"
    again = generate_c(saved.pruned(), ["inverse_dynamics"])
    assert dict(again.files) == dict(generate_c(found(), ["inverse_dynamics"]).files)
    plain = identify(zoo.puma260(), run(0), Recipe.bare(estimator="wls"))
    with pytest.raises(DataError, match="--significant"):
        read_result(write_result(plain, tmp_path / "plain.json")).pruned()


@pytest.mark.parametrize("text", ["1", "-1%", "100%", "one %", 0.01])
def test_a_share_is_a_percentage(text: str) -> None:
    with pytest.raises(ArgumentError, match="percent"):
        read_share(text)
    assert read_share("0.5 %") == 0.005
