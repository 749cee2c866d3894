"""From logs to short code: significant parameters, fitted again, as C ([Izaguirre1992] section 7 and Appendix A)."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.errors import ArgumentError, DataError
from dynid.export.c.c_package import generate_c
from dynid.export.c.c_pruning import count_code, pruning_cost
from dynid.export.result_file import read_result, write_result
from dynid.kernels import inverse_dynamics, regressor
from dynid.links import Significance, significant_parameters
from dynid.links.identify import Identification, identify
from dynid.links.recipe import Recipe
from dynid.links.significance import read_share
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.inertia import Inertia
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia

NOISE = Noise(effort=0.02)
PAPER = (98, 70)  # multiplications and additions of the printed program, inertias and gravity
MAP = """[time]
column = "t"
unit = "s"
[position]
columns = "q{1..6}"
unit = "rad"
[effort]
columns = "tau{1..6}"
unit = "N m"
"""


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


def test_selected_terms_are_carried_by_the_pruned_robot() -> None:
    robot = zoo.scara().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3))
    motion = sum_of_sines(robot.dof, seed=1)
    plain = process(simulate_experiment(robot, motion, rate_hz=100, duration_s=12.0, noise=NOISE))
    spring = 3.0 * np.sin(plain.q[:, :1]) * (np.arange(robot.dof) == 0)
    one = replace(plain, effort=plain.effort + spring)
    recipe = Recipe.bare(estimator="wls", springs=(robot.joint_names[0],))
    sprung = identify(robot, one, recipe).with_significant("1%")
    assert sprung.significance is not None
    pruned = sprung.significance.pruned
    assert "HS1_1" in pruned.kept
    assert pruned.terms_left_out == ()
    torque = inverse_dynamics(pruned.robot, one.q, one.dq, one.ddq)
    np.testing.assert_allclose(torque, sprung.significance.torque(one), rtol=0, atol=1e-11)


def test_a_result_file_holds_the_pruned_robot(tmp_path: Path) -> None:
    saved = read_result(write_result(fit(), tmp_path / "result.json"))
    assert saved.significant == "1%"
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


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("puma")
    (folder / "map.toml").write_text(MAP)
    robot = zoo.puma260().with_terms()
    blank = replace(robot, links=tuple(replace(link, inertia=Inertia.zero()) for link in robot.links))
    balls = np.tile([0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 1.0], 6)  # a file that knows the geometry only
    write_urdf(blank.with_parameters(balls), folder / "puma260.urdf")
    names = ["t", *(f"q{j}" for j in range(1, 7)), *(f"tau{j}" for j in range(1, 7))]
    for seed in (0, 1, 2, 7):
        motion = sum_of_sines(6, period_s=7.0, amplitude=1.0, seed=seed)
        log = simulate_experiment(zoo.puma260(), motion, rate_hz=100, duration_s=14.0, noise=NOISE, seed=seed)
        rows = np.column_stack([log.time, log.q, log.effort])  # type: ignore[arg-type]
        np.savetxt(folder / f"run{seed}.csv", rows, delimiter=",", header=",".join(names), comments="")
    return folder


def invoke(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr


def identify_words(folder: Path, out: str) -> list[object]:
    words: list[object] = ["identify", folder / "puma260.urdf", *(folder / f"run{k}.csv" for k in range(3))]
    words += ["--map", folder / "map.toml"]
    words += ["--validate", folder / "run7.csv", "--estimator", "wls", "--no-check", "--out", folder / out]
    return [*words, "--set", "terms=rotor-inertia,viscous,coulomb", "--set", "friction=plain"]


@pytest.mark.usefixtures("compiler")
def test_two_commands_from_logs_to_pruned_code(logs: Path) -> None:
    code, text, _ = invoke(*identify_words(logs, "run"), "--significant", "1%")
    assert code == 0, text
    text = (logs / "run" / "summary.txt").read_text()
    assert "held-out error %" in text
    assert "background_inertia: multiplications / additions" in text
    content = json.loads((logs / "run" / "result.json").read_text())
    full, pruned = content["significant"]["held_out_error_percent"]
    assert pruned < full + 0.2
    report = (logs / "run" / "report.md").read_text()
    assert "## Significant parameters" in report
    assert "inverse_dynamics: multiplications / additions" in report
    code, text, notes = invoke("codegen", logs / "run", "--prune", "--out", logs / "code")
    assert code == 0, text
    assert "held-out error %" in text
    assert "compiled and compared with the model" in text
    pruned_run = read_result(logs / "run").pruned()
    much = f"not positive definite on {pruned_run.indefinite} of {pruned_run.samples} samples"
    assert (much in notes) == (pruned_run.indefinite > 0) == ("WARNING" in text)
    assert (logs / "code" / "puma260_two_rate.c").exists() == (pruned_run.indefinite == 0)
    assert (logs / "code" / "puma260.c").read_text() == generate_c(
        read_result(logs / "run").pruned(),
        ["inverse_dynamics", "inertia_matrix", "gravity", "velocity_torque", "friction"],
    ).files["puma260.c"]


def test_a_robot_without_data_is_not_pruned_by_the_command(logs: Path) -> None:
    code, _, text = invoke("codegen", "puma560", "--prune", "--out", logs / "none")
    assert code == 2
    assert "dynid.export.prune" in text
    code, _, text = invoke(*identify_words(logs, "wrong"), "--significant", "one")
    assert code == 2
    assert "such as 1%" in text
