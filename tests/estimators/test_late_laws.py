"""The test of the control law where the law acts through its memory alone, as one that is late does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from support.closed_loops import EVERY, scene

CHOSEN = scene("gautier_khalil_3r")


def late(proportional: float, derivative: float) -> dynid.control_loop.UserLaw:
    """The law of the robot one control period late, its gains by factors too large."""
    law = CHOSEN.loop.law
    assert isinstance(law, dynid.control_loop.PD)
    kp, kd = proportional * np.asarray(law.kp), derivative * np.asarray(law.kd)
    return dynid.control_loop.UserLaw(
        lambda q, dq, qr, dqr, ddqr, held, period: (held, kp * (qr - q) + kd * (dqr - dq)), memory=CHOSEN.robot.dof
    )


@pytest.mark.parametrize(
    ("factors", "part"),
    [((1.0, 1.0), None), ((1.1, 1.1), "proportional"), ((1.0, 0.6), "")],
)
def test_wrong_gains_of_a_late_law_are_said(factors: tuple[float, float], part: str | None) -> None:
    truth = dynid.control_loop.simulate_loop(CHOSEN.robot, replace(CHOSEN.loop, law=late(1.0, 1.0)), every=EVERY)
    log = replace(CHOSEN, truth=truth).noisy(1, cutoff_hz=20.0)
    told = replace(log, loop=replace(CHOSEN.loop, law=late(*factors)))
    messages = [finding.message for finding in CHOSEN.doubts(told, CHOSEN.values)]
    assert bool(messages) == (part is not None)
    assert any(part in message for message in messages) if part else True
