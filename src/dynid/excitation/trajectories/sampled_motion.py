"""A sampled motion, and the formats in which robots take it."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError, ExportError
from dynid.files import write_atomically


def _csv_line(words: list[str]) -> str:
    """Words as one CSV row, quoted where a name has a comma, a quote or a line break."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(words)
    return stream.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """A motion at uniform times, from rest to rest where the trajectory is."""

    time: Floats
    """(N,) times [s], starting at zero."""
    q: Floats
    """(N, n) joint positions [rad or m]."""
    dq: Floats
    """(N, n) joint velocities [rad/s or m/s]."""
    ddq: Floats
    """(N, n) joint accelerations [rad/s^2 or m/s^2]."""
    joint_names: tuple[str, ...]
    """n names, in the order of the columns."""

    def __post_init__(self) -> None:
        """Check the shapes and freeze the arrays."""
        shape = (len(self.time), len(self.joint_names))
        for name in ("time", "q", "dq", "ddq"):
            array = np.array(getattr(self, name), dtype=float)
            if array.shape != (shape if name != "time" else shape[:1]):
                raise ArgumentError(f"{name} has shape {array.shape}, expected {shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return (len(self) - 1) / float(self.time[-1]) if len(self) > 1 else 0.0

    def to_csv(self, path: str | os.PathLike[str], *, force: bool = True) -> None:
        """Write time, positions, velocities and accelerations, one row per sample, with a header of names."""
        header = ["time", *(f"{kind}_{name}" for kind in ("q", "dq", "ddq") for name in self.joint_names)]
        rows = np.column_stack([self.time, self.q, self.dq, self.ddq])
        lines = [_csv_line(header), *(",".join(map(repr, row)) for row in rows.tolist())]
        write_atomically(path, "\n".join(lines) + "\n", force=force)

    def ros_message(self) -> dict[str, Any]:
        """A ``trajectory_msgs/JointTrajectory`` as plain dictionaries and lists."""
        nanoseconds = np.rint(self.time * 1e9).astype(np.int64).tolist()
        points = [
            {
                "positions": q,
                "velocities": dq,
                "accelerations": ddq,
                "time_from_start": {"sec": ns // 10**9, "nanosec": ns % 10**9},
            }
            for q, dq, ddq, ns in zip(self.q.tolist(), self.dq.tolist(), self.ddq.tolist(), nanoseconds, strict=True)
        ]
        return {"joint_names": list(self.joint_names), "points": points}

    def ros_yaml(self) -> str:
        """The same message as YAML text, as ``ros2 topic pub`` takes it."""
        lines = [f"joint_names: {json.dumps(list(self.joint_names))}", "points:"]
        for point in self.ros_message()["points"]:
            stamp = point["time_from_start"]
            lines.append(f"- positions: {json.dumps(point['positions'])}")
            lines.append(f"  velocities: {json.dumps(point['velocities'])}")
            lines.append(f"  accelerations: {json.dumps(point['accelerations'])}")
            lines.append(f"  time_from_start: {{sec: {stamp['sec']}, nanosec: {stamp['nanosec']}}}")
        return "\n".join(lines) + "\n"

    def urscript(self, *, name: str = "excitation", lookahead_s: float = 0.1, gain: int = 300) -> str:
        """A URScript program that moves to the first position and then streams the positions by ``servoj``.

        Args:
            name: Name of the program.
            lookahead_s: Smoothing horizon of ``servoj``, 0.03 to 0.2 s.
            gain: Proportional gain of ``servoj``, 100 to 2000.
        """
        if self.q.shape[1] != 6:
            raise ExportError(
                f"URScript moves six joints, not {self.q.shape[1]}", remedy="Write CSV, JSON or ROS instead."
            )
        if not name.isidentifier():
            raise ArgumentError(f"'{name}' is not a name URScript can use", remedy="Use letters, digits and _.")
        step = f"t={1.0 / self.rate_hz:.9g}, lookahead_time={lookahead_s:g}, gain={gain}"
        targets = ["[" + ", ".join(f"{value:.9g}" for value in row) + "]" for row in self.q.tolist()]
        moves = [f"  servoj({target}, {step})" for target in targets]
        return "\n".join([f"def {name}():", f"  movej({targets[0]})", *moves, "  stopj(2.0)", "end", f"{name}()", ""])
