"""A result file: everything comes back to the last bit, new logs are judged as by the live result, damage is named."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import DataError
from dynid.estimators.linear.least_squares import WLS
from dynid.export.result_file import read_result, write_result
from dynid.identification.identify import Identification, identify
from dynid.identification.recipe import Recipe
from dynid.identification.validation import validate
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.model import Robot
from dynid.robot.zoo import stanford
from dynid.terms.base import Reference
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Coulomb, SmoothSign, Viscous
from dynid.terms.load_dependent import LoadFriction


def robot() -> Robot:
    plain = stanford().with_terms(Viscous(0.5), Coulomb(0.3))
    return plain.with_couplings(Coupling({plain.joint_names[4]: 1.0, plain.joint_names[5]: -1.0}))


def run(seed: int) -> Experiment:
    motion = sum_of_sines(6, seed=seed)
    return process(
        simulate_experiment(robot(), motion, rate_hz=100, duration_s=10, noise=Noise(effort=0.05), seed=seed),
        cutoff_hz=10,
    )


@pytest.fixture(scope="module")
def fit() -> Identification:
    reference = Reference(robot().parameter_vector)
    terms = [
        SmoothSign(joint=0, scale=0.05),
        LoadFriction(friction=SmoothSign(joint=1, scale=0.1), reference=reference),
    ]
    return identify(robot(), run(0), Recipe.bare(), estimator=WLS(), terms=terms)


def test_a_saved_result_judges_new_logs_as_the_live_one(fit: Identification, tmp_path: Path) -> None:
    write_result(fit, tmp_path / "result.json")
    saved = read_result(tmp_path)
    again = saved.identification()
    assert max(len(repr(saved)), len(repr(again))) < 150
    assert str(again).splitlines()[:2] == str(fit).splitlines()[:2]
    assert np.array_equal(again.standard, fit.standard)
    assert np.array_equal(again.estimate.covariance, fit.estimate.covariance)
    assert again.robot.fingerprint == fit.robot.fingerprint
    assert np.array_equal(again.robot.parameter_vector, fit.robot.parameter_vector)
    other = run(1)
    assert np.array_equal(again.torque(other), fit.torque(other))
    assert validate(again, other).to_json() == validate(fit, other).to_json()


def test_whole_files_without_sense_are_bad_data(fit: Identification, tmp_path: Path) -> None:
    path = write_result(fit, tmp_path / "result.json")
    content = json.loads(path.read_text())
    del content["sha256"]
    for odd in (
        {"standard_parameters": 3},
        {"model": {"type": "Robot"}},
        {"estimate": {"type": "os"}},
        {"terms": 1},
        {"joint_names": content["joint_names"][::-1]},
        {"plain": {**content["plain"], "parameters": content["plain"]["parameters"][1:]}},
        {"estimate": {**content["estimate"], "covariance": content["estimate"]["values"]}},
    ):
        forged = {**content, **odd}
        forged["sha256"] = hashlib.sha256(json.dumps(forged, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps(forged))
        with pytest.raises(DataError):
            read_result(path).identification()


def test_damaged_changed_and_newer_files_are_refused(fit: Identification, tmp_path: Path) -> None:
    path = write_result(fit, tmp_path / "result.json")
    text = path.read_text()
    content = json.loads(text)
    for wrong, words in [
        (text[: len(text) // 2], "no JSON"),
        (text.replace('"value": ', '"value": 1', 1), "checksum"),
        (json.dumps({**content, "schema": 99}), "newer dynid"),
        (json.dumps([1]), "version None"),
    ]:
        path.write_text(wrong)
        with pytest.raises(DataError, match=words):
            read_result(path)
    with pytest.raises(DataError, match="dynid identify wrote"):
        read_result(tmp_path / "nothing")
