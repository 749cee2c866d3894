"""The test of the law where law and gains are right, and the commanded motion is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dynid
from support.closed_loops import scene

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
