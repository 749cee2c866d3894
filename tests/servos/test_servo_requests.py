"""Requests that cannot be fitted are refused in one sentence; fits that failed say so and give no intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.servos import MotorLaw, PositionLaw, ServoModel, ServoParameter, simulate_servos
from dynid.servos.servo_equations import Normal, search_servos
from dynid.servos.servo_identification import fit_servos
from support.planted_servos import chirp, planted
from support.servo_logs import pendulum

LAW = PositionLaw(kp=20.0, kd=1.0)
MODEL = ServoModel(pendulum(), LAW, ("armature", "viscous", "coulomb"))
TRUTH = [0.03, 0.2, 0.15]
MOTION = planted(MODEL, TRUTH, chirp(MODEL.robot, duration_s=3.0), 2e-4, seed=1)


def test_a_search_that_never_moves_has_not_converged() -> None:
    """The equations promise nine tenths of the sum, but no step lowers it."""
    bounds = (np.array([-10.0]), np.array([10.0]))
    normal = Normal(cost=1.0, information=np.eye(1), score=np.array([0.95]))
    stuck = search_servos(lambda _: normal, lambda _: 2.0, np.zeros(1), bounds)
    assert not stuck.converged
    flat = replace(normal, score=np.array([1e-9]))
    assert search_servos(lambda _: flat, lambda _: 2.0, np.zeros(1), bounds).converged


def test_a_fit_that_has_not_converged_gives_no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    good = fit_servos(MODEL, [MOTION])
    assert good.converged
    assert good.findings == ()
    assert good.errors[0].noise == pytest.approx(2e-4, rel=0.2)

    def stopped(*args: Any, **options: Any) -> Any:
        return replace(search_servos(*args, **options), converged=False)

    monkeypatch.setattr("dynid.servos.servo_identification.search_servos", stopped)
    found = fit_servos(MODEL, [MOTION])
    assert np.isinf(found.std).all()
    assert [finding.code for finding in found.findings] == ["not-converged"]


def test_a_law_that_does_not_fit_is_named() -> None:
    late = ServoModel(pendulum(), LAW, ("viscous", ServoParameter("delay", start=2.0, free=False)))
    found = [(f.code, f.severity) for f in fit_servos(late, [MOTION]).findings]
    assert found == [("law-misfit", "error"), ("at-bound", "warning")]
    rigid = ServoModel(pendulum(), replace(LAW, kp=24.0), ("armature",))
    assert [(f.code, f.severity) for f in fit_servos(rigid, [MOTION]).findings] == [("law-misfit", "error")]
    smooth = ServoModel(pendulum(), LAW, ("armature", "viscous"))
    assert [(f.code, f.severity) for f in fit_servos(smooth, [MOTION]).findings] == [("law-misfit", "warning")]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"held_out": [replace(MOTION)]}, "is given twice"),
        ({"motions": [MOTION, replace(MOTION, name="copy")]}, "'copy' is given twice"),
        ({"model": ServoModel(pendulum(), LAW, ())}, "nothing of the model is free"),
        ({"model": ServoModel(pendulum(), PositionLaw(kd=1.0))}, "states kp"),
        ({"model": ServoModel(pendulum(), MotorLaw(kp=1.0, voltage=-5.0))}, "a gain of voltage is negative"),
    ],
)
def test_wrong_requests_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        fit_servos(**({"model": MODEL, "motions": [MOTION]} | options))


def test_wrong_models_and_values_are_refused() -> None:
    with pytest.raises(ArgumentError, match="the bounds of 'delay'"):
        ServoModel(pendulum(), LAW, (ServoParameter("delay", lower=0.1, upper=0.01),))
    with pytest.raises(ArgumentError, match="step_s"):
        replace(MODEL, step_s=0.0)
    with pytest.raises(ArgumentError, match="the values are"):
        simulate_servos(MODEL, [0.03], MOTION)


def test_intervals_of_what_cannot_be_negative_end_at_zero() -> None:
    """A servo whose viscous friction is small beside its uncertainty."""
    model = ServoModel(pendulum(), PositionLaw(kp=6.0, kd=0.3), ("viscous", "coulomb", "offset"))
    found = fit_servos(model, [planted(model, [2e-3, 0.1, 0.0], chirp(pendulum(), duration_s=3.0), 1e-2, seed=2)])
    std, low = found.std, found.interval[:, 0]
    assert (found.values - 1.96 * std)[0] < 0.0
    assert low[0] == 0.0
    assert low[2] == pytest.approx((found.values - 1.96 * std)[2], rel=1e-4)
