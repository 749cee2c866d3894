"""From a saved identification to C: nothing that was identified is lost on the way."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.export.c.c_package import generate_c
from dynid.export.result_file import read_result, write_result
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot.zoo import gautier_khalil_3r
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia


@pytest.fixture(scope="module")
def fit():
    robot = gautier_khalil_3r().with_terms(RotorInertia(0.3), Viscous(2.0), Coulomb(3.0), Offset(0.2))
    return identify(
        robot, process(simulate_experiment(robot, sum_of_sines(3), rate_hz=200, duration_s=10.0)), Recipe.bare()
    )


def test_code_of_a_saved_result_is_code_of_the_identification(fit, tmp_path):
    saved = read_result(write_result(fit, tmp_path / "result.json"))
    assert dict(generate_c(saved, ["inverse_dynamics"]).files) == dict(generate_c(fit, ["inverse_dynamics"]).files)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("place", ["", "result.json"])
def test_codegen_takes_a_run_folder_and_a_result_file(fit, tmp_path, place):
    (tmp_path / "run").mkdir()
    write_result(fit, tmp_path / "run" / "result.json")
    words = ["codegen", str(tmp_path / "run" / place), "--functions", "inverse_dynamics", "--out"]
    done = CliRunner().invoke(main, [*words, str(tmp_path / "code")])
    assert done.exit_code == 0, done.output
    whole = generate_c(fit, ["inverse_dynamics"])
    assert (tmp_path / "code" / f"{whole.name}.c").read_text() == whole.files[f"{whole.name}.c"]
    held = CliRunner().invoke(main, [*words, str(tmp_path / "other"), "--hold", "joint_1"])
    assert held.exit_code == 2
    assert "dynid identify" in held.output
