"""The whole identified model in C: every term, memory included, gives the torques that were judged."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimators.rows import RobotTorques, stretches
from dynid.export.c.c_check import CheckProgram
from dynid.export.c.c_package import generate_c
from dynid.export.result_file import read_result, write_result
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.identification.rich.mechanisms import make_menu
from dynid.identification.rich.models import PresentState
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot.zoo import cylindrical, scara
from dynid.terms import Coupling
from dynid.terms.base import Motion, Reference
from dynid.terms.friction import Coulomb, SmoothSign, Viscous
from dynid.terms.load_dependent import LoadFriction
from dynid.terms.memory import Hysteresis, LaggedSign
from dynid.terms.motors import RotorInertia


@pytest.fixture(scope="module")
def truth():
    return cylindrical().with_terms(RotorInertia(0.3), Viscous(2.0), Coulomb(3.0))


@pytest.fixture(scope="module")
def run(truth):
    return process(simulate_experiment(truth, sum_of_sines(3), rate_hz=200, duration_s=10.0))


@pytest.fixture(scope="module")
def fit(truth, run):
    reference = Reference(truth.parameter_vector)
    further = [
        Hysteresis(scale=0.05, joint=0),
        LaggedSign(scale=0.1, joint=1),
        SmoothSign(scale=0.2, joint=2),
        LoadFriction(friction=Hysteresis(scale=0.02, joint=0), reference=reference),
    ]
    return identify(truth, run, Recipe.bare(), terms=further)


def test_the_header_and_the_readme_name_the_file_of_the_whole_model(fit):
    files = generate_c(fit, ["inverse_dynamics"], name="My arm").files
    (name,) = [file for file in files if file.endswith("_model.h")]
    for text in (files["my_arm.h"], files["README.md"]):
        assert f"Only {name} has the rich friction" in " ".join(text.replace("*", " ").split())


def test_every_candidate_advances_as_its_column_says(run):
    """Sample after sample `advance` gives the column that the estimators fit, for every registered term."""
    robot = scara().with_terms(RotorInertia(0.1), Viscous(1.0), Coulomb(1.0))
    robot = robot.with_couplings(Coupling({"joint1": 1.0, "joint2": -0.5}, 0.1, 0.2, 0.3))
    experiment = process(simulate_experiment(robot, sum_of_sines(4), rate_hz=100, duration_s=4.0))
    menu = make_menu(robot, [experiment], Reference(robot.parameter_vector))
    (_, motion), *_ = stretches(experiment)
    part = Motion(motion.q[:60], motion.dq[:60], motion.ddq[:60], motion.rate_hz)
    kinds = set()
    for term in (term for mechanism in menu for term in mechanism.terms):
        wanted = term.column(RobotTorques(robot), part)
        states = [
            PresentState(robot, *sample, 1.0 / part.rate_hz) for sample in zip(part.q, part.dq, part.ddq, strict=True)
        ]
        memory = term.begin(states[0])
        assert len(memory) == term.memory_size
        for row, state in enumerate(states):
            found, memory = term.advance(state, memory)
            for joint, column in wanted.items():
                assert found[joint] == pytest.approx(column[row], rel=1e-9, abs=1e-9), (term.name, row)
        kinds.add(type(term))
    assert len(kinds) >= 8


def test_c_gives_the_torques_that_were_judged(fit, run, sanitized):
    package = generate_c(fit, ["inverse_dynamics"], name="arm")
    begins = np.diff(run.segment, prepend=-1) != 0
    rows = np.column_stack([begins, run.q, run.dq, run.ddq])
    driver = CheckProgram(
        header="arm_model.h",
        declarations=["static arm_model model;"],
        loop=["if (in[0] > 0.0) { arm_model_begin(&model, &in[1], &in[4]); }",
              f"arm_model_torque(&model, &in[1], &in[4], &in[7], {1.0 / run.rate_hz!r}, out);"],
        inputs=10,
        outputs=3,
    )  # fmt: skip
    found, wanted = driver.answer(package.files, rows, sanitized), fit.torque(run)
    assert np.abs(found - wanted).max() < 1e-12 * np.abs(wanted).max()
    assert "model_step" in package.counts


@pytest.mark.usefixtures("compiler")
def test_code_of_a_saved_result_has_the_same_model(fit, tmp_path):
    saved = read_result(write_result(fit, tmp_path / "result.json"))
    assert dict(generate_c(saved, ["inverse_dynamics"]).files) == dict(generate_c(fit, ["inverse_dynamics"]).files)
