"""Gaps and missing readings of a log of commands do not ruin a fit, and are named with number and place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.logs.recording import Commands, Recording
from dynid.servos import PositionLaw, ServoModel, commanded_motion
from dynid.servos.recorded_motion import lost_samples
from dynid.servos.servo_identification import fit_servos
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum

MODEL = ServoModel(double_pendulum(), PositionLaw(kp=20.0, kd=1.0), ("armature", "viscous", "coulomb", "delay"))
TRUTH = np.array([0.03, 0.02, 0.2, 0.1, 0.15, 0.3, 0.0065, 0.0065])
MOTION = planted(MODEL, TRUTH, chirp(MODEL.robot, duration_s=5.0), 2e-4, seed=3)


def _recording(
    q: NDArray[np.float64] = MOTION.position, sent: NDArray[np.float64] = MOTION.command, rows: object = np.s_[:]
) -> Recording:
    """Some rows of the log, commands and readings in one table."""
    time = MOTION.time[rows]
    commands = Commands(time=time, position=sent[rows])
    return Recording(time=time, q=q[rows], commands=commands, joint_names=("x", "y"))


def _fit(recording: Recording) -> tuple[list[float], list[str]]:
    """Errors over what is planted, and the sentences on what is lost."""
    motion = commanded_motion(recording, MODEL.robot, "log")
    found = fit_servos(MODEL, [motion])
    assert max(error.rms for error in found.errors) < 3e-3
    return (found.values / TRUTH - 1.0).tolist(), [f"{f.joint} {f.message}" for f in lost_samples(motion)]


def test_a_gap_cuts_the_motion() -> None:
    errors, told = _fit(_recording(rows=(MOTION.time < 1.5) | (MOTION.time > 3.2)))
    assert told == ["None there are no rows, or no commands, from 1.495 to 3.205 s"]
    assert np.abs(errors).max() < 0.1


def test_a_missing_reading_counts_for_nothing_and_its_command_stays() -> None:
    q = MOTION.position.copy()
    q[200:300, 0] = np.nan
    errors, told = _fit(_recording(q))
    assert told == [f"{MODEL.robot.joint_names[0]} 100 readings are missing, between 1 and 1.495 s"]
    assert np.abs(errors).max() < 0.05


def test_rows_without_commands_cut_the_motion() -> None:
    """One joint's commands are missing for half a second: what the drives did then is not simulated."""
    sent = MOTION.command.copy()
    sent[200:300, 1] = np.nan
    errors, told = _fit(_recording(sent=sent))
    assert told == ["None there are no rows, or no commands, from 0.995 to 1.5 s"]
    assert np.abs(errors).max() < 0.05


def test_a_command_that_is_missing_is_the_one_before_it() -> None:
    sent = MOTION.command.copy()
    sent[100:104, 1] = np.nan
    motion = commanded_motion(_recording(sent=sent), MODEL.robot)
    np.testing.assert_array_equal(motion.command[100:104, 1], np.full(4, sent[99, 1]))
    np.testing.assert_array_equal(motion.command[:, 0], sent[:, 0])
    assert motion.counted.all()
