"""Forty wrong inputs for logs without torque: each is named by a finding of the gate, or refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import DynidError
from dynid.gate.quality import check_recording
from dynid.logs import Commands, Recording, read_recording
from dynid.robot.zoo import ddarm

STEP = 2.0 * np.pi / 4096
RATE = 100.0


def follow(command: np.ndarray[Any, Any], on: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where joints go: a second-order lag of 4 Hz with 0.7 of critical damping, held by friction while off."""
    q, dq, w = command[0].copy(), np.zeros(command.shape[1]), 2.0 * np.pi * 4.0
    out = np.empty_like(command)
    for k, wanted in enumerate(command):
        for _ in range(4):
            ddq = np.where(on[k], w * w * (0.95 * wanted - q) - 1.4 * w * dq, -4.0 * dq)
            dq = dq + ddq / (4 * RATE)
            q = q + dq / (4 * RATE)
        out[k] = q
    return out


def good_log(seconds: float = 16.0) -> Recording:
    """Three joints of a simulated arm: different motions, encoders of 12 bits, drives off for the last two seconds."""
    time = np.arange(round(seconds * RATE)) / RATE
    phases = np.array([[0.3, 1.1, 2.0], [2.9, 0.2, 1.3]])
    waves = [np.sin(2 * np.pi * f * time[:, None] + phase) for f, phase in zip((0.31, 0.83), phases, strict=True)]
    command = np.array([0.2, -0.4, 0.9]) + 0.5 * waves[0] + 0.2 * waves[1]
    on = np.repeat((time < seconds - 2.0)[:, None], 3, axis=1)
    q = STEP * np.round(follow(command, on) / STEP)
    told = Commands(
        time=time,
        position=command,
        enabled=on,
        kp=np.full(command.shape, 20.0),
        kd=np.full(command.shape, 0.5),
        supply=np.full(time.size, 7.4),
    )
    return Recording(time=time, q=q, dq=np.gradient(q, time, axis=0), commands=told)


GOOD = good_log()
TOLD = GOOD.commands
assert TOLD is not None
NAN = np.nan


def told(**changes: Any) -> Recording:
    assert TOLD is not None
    return replace(GOOD, commands=replace(TOLD, **changes))


def order(values: np.ndarray[Any, Any], *columns: int) -> np.ndarray[Any, Any]:
    return values[:, list(columns)]


def scaled(values: np.ndarray[Any, Any], factor: float, joint: int | None = None) -> np.ndarray[Any, Any]:
    out = values.copy()
    out[:, slice(None) if joint is None else joint] *= factor
    return out


def with_column(values: np.ndarray[Any, Any], joint: int, column: Any) -> np.ndarray[Any, Any]:
    out = values.astype(float).copy()
    out[:, joint] = column
    return out


def exchanged() -> Recording:
    return replace(told(position=GOOD.q), q=TOLD.position, dq=None)  # type: ignore[union-attr]


def stale_rows() -> Recording:
    q = GOOD.q.copy()
    for k in range(3, 1400, 7):
        q[k] = q[k - 1]
    return replace(GOOD, q=q, dq=None)


def lost_packets() -> Recording:
    kept = np.ones(GOOD.time.size, dtype=bool)
    for k in range(100, 1400, 130):
        kept[k : k + 30] = False
    return replace(GOOD, time=GOOD.time[kept], q=GOOD.q[kept], dq=None)


def with_time(time: np.ndarray[Any, Any], commands: np.ndarray[Any, Any] | None = None) -> Recording:
    return replace(told(time=time if commands is None else commands), time=time, dq=None)


T = GOOD.time
C = TOLD.position
Q = GOOD.q
FINDINGS: dict[str, tuple[Callable[[], Recording], str]] = {
    "joints of the commands swapped": (lambda: told(position=order(C, 1, 0, 2)), "swapped"),
    "joints of the positions swapped": (lambda: replace(GOOD, q=order(Q, 0, 2, 1), dq=None), "swapped"),
    "command and measurement exchanged": (exchanged, "exchanged"),
    "positions stamped before their commands": (lambda: told(time=T + 0.3), "exchanged"),
    "commands in degrees": (lambda: told(position=np.degrees(C)), "unit"),
    "positions in degrees": (lambda: replace(GOOD, q=np.degrees(Q), dq=None), "unit"),
    "both in degrees": (lambda: replace(told(position=np.degrees(C)), q=np.degrees(Q), dq=None), "unit"),
    "commands in counts of the encoder": (lambda: told(position=C / STEP), "unit"),
    "one joint in degrees": (lambda: told(position=scaled(C, 180.0 / np.pi, 1)), "unit"),
    "positions of the motor before the gear": (lambda: replace(GOOD, q=50.0 * Q, dq=None), "unit"),
    "sign of one joint": (lambda: replace(GOOD, q=scaled(Q, -1.0, 2), dq=None), "flipped"),
    "sign of all commands": (lambda: told(position=-C), "flipped"),
    "milliseconds taken for seconds": (lambda: with_time(1e3 * T), "time-unit"),
    "microseconds taken for seconds": (lambda: with_time(1e6 * T), "time-unit"),
    "seconds taken for milliseconds": (lambda: with_time(1e-3 * T), "time-unit"),
    "commands of another clock": (lambda: told(time=T + 1e4), "command-clock"),
    "commands in milliseconds": (lambda: told(time=1e3 * T), "command-clock"),
    "positions a second late": (lambda: told(time=T - 1.0), "late-motion"),
    "stuck encoder": (lambda: replace(GOOD, q=with_column(Q, 1, Q[0, 1]), dq=None), "frozen"),
    "drives never on": (lambda: told(enabled=np.zeros(C.shape, dtype=bool)), "never-enabled"),
    "one drive never on": (lambda: told(enabled=with_column(TOLD.enabled, 2, 0.0) > 0), "never-enabled"),
    "flag of the drives inverted": (lambda: told(enabled=~TOLD.enabled), "inverted-enable"),
    "dropped packets with gaps in time": (lost_packets, "gap"),
    "dropped packets repeated": (stale_rows, "stale"),
    "commands missing": (lambda: told(position=np.where(T[:, None] < 12.0, NAN, C)), "not-finite"),
    "positions missing": (lambda: replace(GOOD, q=np.where(T[:, None] > 9.0, NAN, Q), dq=None), "not-finite"),
    "measured positions as commands": (lambda: told(position=Q), "copied-command"),
    "constant commands": (lambda: told(position=np.zeros_like(C), enabled=None), "constant-command"),
    "velocities as commands": (lambda: told(position=np.gradient(C, T, axis=0)), "command-kind"),
    "gains of zero": (lambda: told(kp=np.zeros(C.shape)), "drive-setting"),
    "negative gains": (lambda: told(kd=np.full(C.shape, -0.5)), "drive-setting"),
    "supply in millivolts": (lambda: told(supply=np.full(T.size, 7400.0)), "drive-setting"),
    "unsigned currents as torques": (lambda: replace(GOOD, effort=np.abs(np.sin(3.0 * T))[:, None] * [1.0, 0.5, 0.0]),
                                     "unsigned-effort"),
    "time of commands runs back": (lambda: told(time=np.roll(T, 5)), "backward-time"),
    "neither torques nor commands": (lambda: replace(GOOD, commands=None), "missing"),
}  # fmt: skip


def test_a_good_log_raises_no_objection() -> None:
    assert [finding for finding in check_recording(GOOD).findings if finding.severity != "note"] == []


@pytest.mark.parametrize("name", FINDINGS)
def test_the_gate_names_what_is_wrong(name: str) -> None:
    make, code = FINDINGS[name]
    found = [finding for finding in check_recording(make()).findings if finding.severity != "note"]
    assert code in {finding.code for finding in found}
    assert all(finding.remedy for finding in found)


@pytest.mark.parametrize("gain", [0.3, 0.95])
@pytest.mark.parametrize("share", [0.12, 0.6])
def test_flags_are_judged_by_what_follows_not_by_what_is_near(gain: float, share: float) -> None:
    """A weak drive is farther from its command while on than a joint that hangs at zero while off."""
    off = (T > 5.0) & (share * T[-1] + 5.0 > T)
    q = np.where(off[:, None], 0.02 * np.sin(20.0 * T)[:, None], gain * follow(C - C.mean(axis=0), np.isfinite(C)))
    q = q + 1e-4 * np.random.default_rng(0).normal(size=q.shape)
    flags = np.repeat(~off[:, None], 3, axis=1)
    for enabled, expected in ((flags, False), (~flags, True)):
        log = replace(told(position=C - C.mean(axis=0), enabled=enabled), q=q, dq=None)
        assert ("inverted-enable" in {finding.code for finding in check_recording(log).findings}) == expected


def written(folder: Path, content: object) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(content))
    return path


ENTRIES = [{"t": 0.01 * k, "q": [0.1 * k, 0.2], "c": [0.1, 0.2 * k]} for k in range(20)]
MAP: dict[str, Any] = {
    "time": {"column": "t", "unit": "s"},
    "position": {"columns": "q", "unit": "rad"},
    "reference": {"columns": "c", "unit": "rad"},
}
REFUSED: dict[str, tuple[dict[str, Any], object, str]] = {
    "column of commands not in the log": (
        {"reference": {"columns": "goal", "unit": "rad"}},
        ENTRIES,
        "no column 'goal'",
    ),
    "unit of commands not declared": ({"reference": {"columns": "c"}}, ENTRIES, "unit of reference is not declared"),
    "unit of another kind": ({"reference": {"columns": "c", "unit": "N m"}}, ENTRIES, "is no unit of reference"),
    "commands of fewer joints": ({"reference": {"columns": "c[0]", "unit": "rad"}}, ENTRIES, "reference has 1 columns"),
    "flags without commands": ({"reference": None, "enabled": {"columns": "q"}}, ENTRIES, "no commanded positions"),
    "lists of different lengths": (
        {},
        [*ENTRIES, {"t": 1.0, "q": [1.0], "c": [1.0, 2.0]}],
        "other things than numbers",
    ),
    "a log cut off": ({}, json.dumps(ENTRIES)[:-40], "no series|no whole JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_files_and_maps_are_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    changes, content, reason = REFUSED[name]
    channel_map = {key: value for key, value in {**MAP, **changes}.items() if value is not None}
    path = written(tmp_path, content)
    if isinstance(content, str):
        path.write_text(content)
    with pytest.raises(DynidError, match=reason) as caught:
        read_recording(path, channel_map=channel_map)
    assert caught.value.remedy


def test_a_log_of_another_robot_is_refused() -> None:
    with pytest.raises(DynidError, match="has 2 joints, robot 'ddarm' 3"):
        check_recording(Recording(time=GOOD.time, q=GOOD.q[:, :2]), ddarm())


def test_there_are_forty_wrong_inputs() -> None:
    assert len(FINDINGS) + len(REFUSED) >= 40
