"""The test of the law where law and gains are right, and the commanded motion, or what else it adds, is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from support.closed_loops import EVERY, scene

CHOSEN = scene("gautier_khalil_3r")


def changed(name: str) -> dynid.control_loop.ReferenceMotion:
    """The reference, that of joint 2 wrong."""
    given = CHOSEN.loop.reference
    arrays = {key: getattr(given, key).copy() for key in ("q", "dq", "ddq")}
    for x in arrays.values():
        if name == "3 % too large":
            x[:, 1] *= 1.03
        elif name == "10 ms late":
            x[5:, 1] = x[:-5, 1].copy()
    return replace(given, **arrays)


@pytest.mark.parametrize("cutoff_hz", [4.0, None])
@pytest.mark.parametrize("name", ["right", "3 % too large", "10 ms late"])
def test_a_reference_that_is_not_the_commanded_one_is_said(name: str, cutoff_hz: float | None) -> None:
    log = CHOSEN.noisy(2, cutoff_hz=cutoff_hz)
    told = replace(log, loop=replace(CHOSEN.loop, reference=changed(name)))
    wrong = CHOSEN.base.project(CHOSEN.prior.parameter_vector)  # up to 20 % off: the law is judged whatever they are
    findings = CHOSEN.doubts(told, wrong)
    accused = {joint for joint in CHOSEN.robot.joint_names if any(joint in found.message for found in findings)}
    assert accused == (set() if name == "right" else {CHOSEN.robot.joint_names[1]})


def test_what_the_law_adds_to_its_gains_is_said_by_the_estimate() -> None:
    """Accelerations are fed forward on joint 3, which the stated law does not tell."""
    law = CHOSEN.loop.law
    assert isinstance(law, dynid.control_loop.PD)
    kp, kd, ahead = np.asarray(law.kp), np.asarray(law.kd), np.array([0.0, 0.0, 3.0])
    real = dynid.control_loop.UserLaw(
        lambda q, dq, qr, dqr, ddqr, memory, period: kp * (qr - q) + kd * (dqr - dq) + ahead * ddqr
    )
    truth = dynid.control_loop.simulate_loop(CHOSEN.robot, replace(CHOSEN.loop, law=real), every=EVERY)
    found = dynid.estimators.DIDIM().solve(CHOSEN.equations(replace(CHOSEN, truth=truth).noisy(0)))
    assert any(f.code == "controller" and CHOSEN.robot.joint_names[2] in f.message for f in found.findings)
