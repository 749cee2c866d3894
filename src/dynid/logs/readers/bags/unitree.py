"""Messages of Unitree's quadrupeds: unitree_go/LowState (what motors did) and unitree_go/LowCmd (what they were told).

Both have a fixed layout: 20 motors, of which a quadruped uses the first 12, in the order FR, FL, RR, RL with hip, thigh
and calf each. They carry no time stamp, so the time at which they were received counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError

MOTOR_KINDS = {"unitree_go/LowState": "low_state", "unitree_go/LowCmd": "low_cmd"}
"""Type of a message -> its kind."""
MOTOR_NAMES = tuple(f"motor{k}" for k in range(20))
"""Names of the motors, in the order of the messages."""
HEADER = 4
"""Bytes of the encapsulation before a CDR message."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Places of a message's numbers, counted behind its header [bytes]; alignment of CDR, field by field."""

    length: int
    """Of the whole message."""
    stride: int
    """From motor to motor."""
    floats: Mapping[str, int]
    """Quantity -> place of the first motor's number (32 bits)."""
    mode: int
    """Place of the first motor's mode (8 bits); that of the others is the byte four before their first number."""


_LAYOUTS = {
    "low_state": _Layout(1176, 48, {"position": 80, "velocity": 84, "effort": 92}, 77),
    "low_cmd": _Layout(808, 36, {"command": 24, "command_velocity": 28, "command_effort": 32, "kp": 36, "kd": 40}, 22),
}


def decode_motors(payloads: Sequence[bytes], kind: str) -> Iterator[tuple[int, dict[str, Floats]]]:
    """Decode messages, as many at a time as have the same order of bytes.

    Yields:
        Number of the first message, and quantity -> (m, 20); "mode" of a state is called "motor_mode".

    Raises:
        LogReadError: If a message has another length or encoding.
    """
    layout = _LAYOUTS[kind]
    for payload in payloads:
        if not HEADER + layout.length <= len(payload) < HEADER + layout.length + 4:
            raise LogReadError(
                f"a message has {len(payload)} bytes where {HEADER + layout.length} are expected",
                remedy="Only messages of unitree_go (Go2, B2) are read; export others as CSV.",
            )
        if payload[:2] not in (b"\0\0", b"\0\1"):
            raise LogReadError(f"message encoding {payload[:2].hex()} is not plain CDR")
    first = 0
    while first < len(payloads):
        order = payloads[first][1]
        last = next((k for k in range(first, len(payloads)) if payloads[k][1] != order), len(payloads))
        block = b"".join(payload[HEADER : HEADER + layout.length] for payload in payloads[first:last])
        rows = np.frombuffer(block, dtype=np.uint8).reshape(last - first, layout.length)
        yield first, _numbers(rows, layout, "<" if order else ">", "mode" if kind == "low_cmd" else "motor_mode")
        first = last


def _numbers(
    rows: np.ndarray[tuple[int, int], np.dtype[np.uint8]], layout: _Layout, order: str, mode: str
) -> dict[str, Floats]:
    """Quantity -> (m, 20)."""
    found = {}
    motors = np.arange(len(MOTOR_NAMES))
    for quantity, place in layout.floats.items():
        where = (place + layout.stride * motors)[:, None] + np.arange(4)
        raw = np.ascontiguousarray(rows[:, where]).view(f"{order}f4")
        found[quantity] = raw[:, :, 0].astype(np.float64)
    start = min(layout.floats.values()) - 4
    places = np.where(motors == 0, layout.mode, start + layout.stride * motors)
    found[mode] = rows[:, places].astype(np.float64)
    return found
