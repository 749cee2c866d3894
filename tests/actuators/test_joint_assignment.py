"""Joints that are exchanged or reversed in commands and positions alike are named, or listed where no motion tells."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.actuators import PositionLaw, ServoModel, ServoParameter
from dynid.actuators.joint_assignment import Change, _changed, _possible_changes, check_assignments
from dynid.actuators.servo_identification import fit_servos
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum, pendulum

START = {"armature": 0.03, "viscous": 0.2, "coulomb": 0.1}
MODEL = ServoModel(
    double_pendulum(), PositionLaw(kp=20.0, kd=1.0),
    tuple(ServoParameter(kind, start=start) for kind, start in START.items()),
)  # fmt: skip
GOOD = planted(MODEL, MODEL.start, chirp(MODEL.robot, duration_s=4.0), 2e-4, seed=0)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ((0, 1), "swapped", "first and second exchanged"),
        # of two hanging links, one reversed is the mirror image of the other reversed
        ((1, 1), "flipped", "first reversed or with second reversed"),
        ((0, 0), "flipped", "first reversed or with second reversed"),
    ],
)
def test_what_both_signals_share_is_named_by_the_robot(change: Change, code: str, words: str) -> None:
    wrong = _changed(GOOD, change)
    (finding,) = check_assignments(fit_servos(MODEL, [wrong]), [wrong])
    assert (finding.code, finding.severity) == (code, "warning")
    assert f"far better with {words} in commands and positions" in finding.message


def test_a_right_log_is_not_accused_and_what_it_cannot_tell_is_listed() -> None:
    assert check_assignments(fit_servos(MODEL, [GOOD]), [GOOD]) == ()
    alone = ServoModel(pendulum(), PositionLaw(kp=6.0, kd=0.3))
    motion = planted(alone, alone.start, chirp(pendulum(), duration_s=3.0), 2e-4, seed=1)
    (finding,) = check_assignments(fit_servos(alone, [motion]), [motion])  # a pendulum swings alike to both sides
    assert (finding.code, finding.severity) == ("untestable", "note")
    assert "servo reversed" in finding.message


def test_a_change_made_twice_is_none() -> None:
    for change in _possible_changes(MODEL):
        again = _changed(_changed(GOOD, change), change)
        np.testing.assert_array_equal(again.position, GOOD.position)
        np.testing.assert_array_equal(again.command, GOOD.command)
    assert len(_possible_changes(MODEL)) == 3
