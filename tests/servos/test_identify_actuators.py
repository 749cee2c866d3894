"""Servos are identified from commands and encoders: planted truth, real logs, alike joints, repeats."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.servos import MotorLaw, PositionLaw, ServoModel, ServoParameter
from dynid.servos.servo_identification import fit_servos
from support.planted_servos import chirp, planted
from support.servo_logs import DATASETS, XL330_DUTY, double_pendulum, pendulum, xl330_motions

LAW = PositionLaw(kp=20.0, kd=1.0)


def _model(**starts: object) -> ServoModel:
    values = {"armature": [0.03, 0.03], "viscous": [0.2, 0.2], "coulomb": [0.15, 0.3]} | starts
    return ServoModel(double_pendulum(), LAW, tuple(ServoParameter(k, start=v) for k, v in values.items()))


def test_planted_parameters_are_found_within_their_intervals() -> None:
    model = _model(zero=[0.05, -0.04], delay=[0.008, 0.008])
    motion = planted(model, model.start, chirp(model.robot), 2e-4, seed=4)
    found = fit_servos(model.with_values(model.start * 1.4), [motion], [motion.part(slice(0, 400), "again")])
    assert found.converged
    assert found.open_directions == ()
    assert np.abs((found.values - model.start) / found.std).max() < 4.0
    assert found.errors[1].rms == pytest.approx(2e-4, rel=0.1)
    assert not found.errors[1].trained


def test_links_are_found_where_the_motion_tells_them() -> None:
    """The first moment of a rod is seen; the mass of the first rod is not."""
    kinds = {"armature": 0.03, "coulomb": 0.15, "link_mz": -0.02}
    model = ServoModel(double_pendulum(), LAW, tuple(ServoParameter(k, start=v) for k, v in kinds.items()))
    motion = planted(model, model.start, chirp(model.robot), 2e-4, seed=3)
    blank = tuple(ServoParameter(k) for k in kinds)
    found = fit_servos(ServoModel(model.robot, LAW, blank), [motion])
    assert np.abs((found.values - model.start) / found.std).max() < 4.0
    free = fit_servos(ServoModel(model.robot, LAW, (*blank, "link_mass")), [motion])
    assert np.isinf(free.std[free.names.index("link_mass first")])


@pytest.mark.skipif(not DATASETS.exists(), reason="the shared data sets are not here")
def test_a_real_servo_is_predicted_at_a_gain_that_was_not_trained() -> None:
    """Trained at kp 100 and 200, predicted at kp 800, on one motion each; 74 mrad is the best published model."""
    law = MotorLaw(duty_per_gain=XL330_DUTY)
    motions = {motion.name: motion for motion in xl330_motions()}
    train = [motions[f"kp{kp}_{name}"] for kp in (100, 200) for name in ("sin_time_square", "up_and_down")]
    parameters = ("armature", "viscous", "coulomb", "load_drive", "load_external", "offset", "kt", "resistance",
                  "gain_scale")  # fmt: skip
    found = dynid.identify_actuators(
        pendulum(), train, law=law, parameters=parameters, held_out=[motions["kp800_sin_sin"]]
    )
    assert found.errors[-1].mean_absolute < 0.055
    assert any({"kt servo", "resistance servo"} <= set(d.names) for d in found.open_directions)
