"""A delay counts from the time of a command, held until the next one or joined to it by a straight line."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.logs.recording import Commands, Recording
from dynid.servos import CommandedMotion, PositionLaw, ServoModel, ServoParameter, commanded_motion
from dynid.servos.servo_identification import fit_servos
from support.servo_logs import pendulum

KP, KD, ARMATURE, FINE_S = 8.0, 0.6, 0.02, 1e-4
LAW = PositionLaw(kp=KP, kd=KD)
FREE = ("armature", ServoParameter("delay", start=0.03))


def _swing(sent_at: np.ndarray, sent: np.ndarray, delay: float, read_at: np.ndarray, held: bool) -> np.ndarray:
    """Angles of a pendulum (0.49 kg at 0.1 m) on a drive, by many small steps of Euler's method: nothing of dynid."""
    steps = round(read_at[-1] / FINE_S)
    t = FINE_S * np.arange(steps + 1) - delay
    last = sent[np.clip(np.searchsorted(sent_at, t, side="right") - 1, 0, None)]
    target = last if held else np.interp(t, sent_at, sent)
    q, v, angles = 0.0, 0.0, np.empty(steps + 1)
    for k in range(steps + 1):
        angles[k] = q
        torque = KP * (target[k] - q) - KD * v - 0.49 * 9.81 * 0.1 * np.sin(q)
        v += FINE_S * torque / (0.49 * 0.1**2 + ARMATURE)
        q += FINE_S * v
    return angles[np.rint(read_at / FINE_S).astype(int)]


def _wave(t: np.ndarray) -> np.ndarray:
    return 0.7 * np.sin(2 * np.pi * (0.4 * t + 0.2 * t**2))


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("delay", [0.0, 0.007, 0.024])
def test_a_planted_delay_is_found_whatever_happens_between_commands(held: bool, delay: float) -> None:
    t = 0.02 * np.arange(200)
    position = _swing(t, _wave(t), delay, t, held)
    motion = CommandedMotion(
        joint_names=("servo",), time=t, command=_wave(t)[:, None], position=position[:, None], held=held
    )
    found = fit_servos(ServoModel(pendulum(), LAW, FREE), [motion])
    assert found.values[0] == pytest.approx(ARMATURE, rel=0.02)
    assert found.values[1] == pytest.approx(delay, abs=3e-4)


@pytest.mark.parametrize("held", [True, False])
def test_commands_on_a_clock_of_their_own_keep_the_delay(held: bool) -> None:
    """Commands every 17 ms, readings every 10 ms: what is between is averaged or interpolated."""
    sent_at, read_at = 0.017 * np.arange(240), 0.01 * np.arange(400)
    position = _swing(sent_at, _wave(sent_at), 0.012, read_at, held)
    commands = Commands(time=sent_at, position=_wave(sent_at)[:, None], held=held)
    recording = Recording(time=read_at, q=position[:, None], commands=commands)
    found = fit_servos(ServoModel(pendulum(), LAW, FREE), [commanded_motion(recording, pendulum())])
    assert found.values[1] == pytest.approx(0.012, abs=5e-4)


def test_a_start_outside_the_bounds_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"the start of 'delay' is 0\.5, outside its bounds"):
        ServoModel(pendulum(), LAW, (ServoParameter("delay", start=0.5),))
    ServoModel(pendulum(), LAW, (ServoParameter("delay", start=0.5, free=False),))  # known values need no bounds
