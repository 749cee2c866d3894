"""Servos are identified from commands and encoders: planted truth, real logs, alike joints, repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.actuators import MotorLaw, PositionLaw, ServoModel, ServoParameter, compare_joints, compare_repeats
from dynid.actuators.error_filter import loop_lags
from dynid.actuators.servo_identifiability import OpenDirection
from dynid.actuators.servo_identification import fit_servos
from dynid.errors import ArgumentError
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


def test_alike_and_different_joints_are_told_apart() -> None:
    model = _model()
    motion = planted(model, model.start, chirp(model.robot), 2e-4, seed=5)
    found = fit_servos(model, [motion])
    verdicts = {test.kind: test.alike for test in compare_joints(found, [motion], [("first", "second")])}
    assert verdicts == {"armature": True, "viscous": True, "coulomb": False}
    badly = OpenDirection(("coulomb second",), (1.0,), "hardly shown by these motions")
    untold = OpenDirection(("coulomb second",), (1.0,))
    for direction, kinds in ((badly, {"armature", "viscous", "coulomb"}), (untold, {"armature", "viscous"})):
        doubted = replace(
            found, open_directions=(direction,)
        )  # what is told badly is compared, what is not told is not
        assert {test.kind for test in compare_joints(doubted, [motion], [("first", "second")])} == kinds
    again = fit_servos(model, [planted(model, model.start, chirp(model.robot, seed=9), 2e-4, seed=6)])
    assert sum(test.alike for test in compare_repeats([found, again])) >= 5


def test_lag_of_a_loop_is_the_mean_time_after_which_it_has_undone_a_torque() -> None:
    """An impulse on a motor with rotor and friction, integrated here: the centre of its position over time."""
    law = MotorLaw(kp=0.9, voltage=7.0)
    kinds = {"armature": 0.01, "viscous": 0.05, "kt": 0.6, "resistance": 3.0}
    robot = pendulum(1e-9)
    model = ServoModel(robot, law, tuple(ServoParameter(kind, start=value) for kind, value in kinds.items()))
    x, v, step, area, moment = 0.0, 1.0, 1e-5, 0.0, 0.0
    for k in range(200_000):
        volts = -0.9 * 7.0 * x
        v += step * (0.6 * (volts - 0.6 * v) / 3.0 - 0.05 * v) / 0.01
        x += step * v
        area, moment = area + x, moment + k * step * x
    assert loop_lags(model, model.start, chirp(robot)) == pytest.approx([moment / area], rel=1e-3)


def test_errors_that_last_as_the_loop_does_are_filtered_and_white_noise_is_not() -> None:
    model = _model()
    clean = planted(model, model.start, chirp(model.robot), 0.0, seed=0)
    rng, noise, fade = np.random.default_rng(7), np.zeros_like(clean.position), np.exp(-0.005 * 20.0 / 1.2)
    for k in range(1, len(noise)):
        noise[k] = fade * noise[k - 1] + 2e-4 * rng.normal(size=2)
    shaken = fit_servos(model, [replace(clean, position=clean.position + noise)])
    assert shaken.error_filter.correlations(clean) == pytest.approx([fade, fade], abs=0.01)
    assert np.abs((shaken.values - model.start) / shaken.std).max() < 4.0
    white = planted(model, model.start, clean, 2e-4, seed=5)
    found = fit_servos(model, [white])
    assert (found.error_filter.correlations(white) == 0.0).all()
    assert found.values == pytest.approx(fit_servos(model, [white], correlation=0.0).values, rel=1e-3, abs=1e-5)


def test_links_are_found_and_a_prior_decides_what_the_motion_does_not_tell() -> None:
    """The first moment of a rod is seen; the mass of the first rod is not, and its prior alone says what it is."""
    kinds = {"armature": 0.03, "coulomb": 0.15, "link_mz": -0.02}
    model = ServoModel(double_pendulum(), LAW, tuple(ServoParameter(k, start=v) for k, v in kinds.items()))
    motion = planted(model, model.start, chirp(model.robot), 2e-4, seed=3)
    blank = tuple(ServoParameter(k) for k in kinds)
    found = fit_servos(ServoModel(model.robot, LAW, blank), [motion])
    assert np.abs((found.values - model.start) / found.std).max() < 4.0
    known = ServoParameter("link_mass", prior=(0.05, 0.01))
    prior = fit_servos(ServoModel(model.robot, LAW, (*blank, known)), [motion])
    place = prior.names.index("link_mass first")
    assert prior.values[place] == pytest.approx(0.05, abs=1e-4)
    assert prior.std[place] == pytest.approx(0.01, rel=0.05)
    free = fit_servos(ServoModel(model.robot, LAW, (*blank, "link_mass")), [motion])
    assert np.isinf(free.std[free.names.index("link_mass first")])


def test_several_starts_find_the_better_minimum() -> None:
    model = _model()
    motion = planted(model, model.start, chirp(model.robot, duration_s=3.0), 1e-4, seed=2)
    far = model.with_values(model.start * np.array([8.0, 8.0, 5.0, 5.0, 8.0, 8.0]))
    one, several = (fit_servos(far, [motion], starts=count) for count in (1, 3))
    assert several.errors[0].rms <= one.errors[0].rms * 1.001
    assert several.errors[0].rms < 2e-4


def test_wrong_models_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no parameter 'kt'"):
        ServoModel(pendulum(), LAW, ("kt",))
    with pytest.raises(ArgumentError, match="twice"):
        ServoModel(pendulum(), LAW, ("viscous", "viscous"))
    with pytest.raises(ArgumentError, match="has the joints"):
        fit_servos(ServoModel(pendulum(), LAW), [chirp(double_pendulum())])
    with pytest.raises(ArgumentError, match="no motion"):
        fit_servos(_model(), [])


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
