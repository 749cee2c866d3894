"""Terms are chosen inside the training motions: what was planted is taken up, what was not is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.actuators import PositionLaw, ServoModel, ServoParameter
from dynid.actuators.term_choice import select_terms
from dynid.errors import ArgumentError
from support.planted_servos import chirp, planted
from support.servo_logs import pendulum

LAW = PositionLaw(kp=20.0, kd=1.0)
KNOWN = ("armature", "viscous", "coulomb")
PLANTED = {"armature": 0.03, "viscous": 0.2, "coulomb": 0.15, "offset": 0.2, "load_drive": 0.15}
TRUTH = ServoModel(pendulum(), LAW, tuple(ServoParameter(kind, start=value) for kind, value in PLANTED.items()))
CANDIDATES = ("zero", "offset", "load_drive")
MODEL = ServoModel(pendulum(), LAW, KNOWN, candidates=CANDIDATES)


def _motions(count: int) -> list:
    return [planted(TRUTH, TRUTH.start, chirp(pendulum(), duration_s=3.0, seed=k), 3e-4, seed=k) for k in range(count)]


@pytest.mark.parametrize("count", [1, 3])
def test_planted_terms_are_taken_up_and_no_others(count: int) -> None:
    choice = select_terms(MODEL, _motions(count))
    assert set(choice.chosen.kinds) == {"offset", "load_drive"}
    assert choice.folds == 3
    assert {entry.kind for entry in choice.model.entries} == set(PLANTED)
    base, best = choice.trials[0], min(choice.trials, key=lambda trial: trial.rms)
    assert best.rms < 0.5 * base.rms
    assert sum(trial.kept for trial in choice.trials) == 3


def test_motions_of_several_gains_are_predicted_gain_by_gain() -> None:
    law = PositionLaw(kd=1.0)
    model = replace(MODEL, law=law, candidates=("offset",))
    motions = []
    for k, kp in enumerate((10.0, 20.0, 20.0, 40.0)):
        sent = replace(chirp(pendulum(), duration_s=3.0, seed=k), kp=np.array([kp]))
        motions.append(planted(replace(TRUTH, law=law), TRUTH.start, sent, 3e-4, seed=k))
    choice = select_terms(model, motions)
    assert choice.folds == 3
    assert choice.chosen.kinds == ("offset",)


def test_wrong_candidates_are_refused() -> None:
    with pytest.raises(ArgumentError, match="is a parameter of the model already"):
        replace(MODEL, candidates=("viscous",))
    with pytest.raises(ArgumentError, match="is no parameter of the law"):
        replace(MODEL, candidates=("kt",))
