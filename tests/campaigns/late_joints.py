"""Torques of single joints that are late, in logs of a simulated PD loop with dry friction; ``make late-joints``.

    python tests/campaigns/late_joints.py [logs] [first seed]

The five-joint arm of own_robot.py follows sums of sines in MuJoCo, its first joint carries no weight and is dominated
by dry friction. Every log is judged as it is, and with the torque of one of its joints moved by 4 to 15 ms, early or
late. A clean log gets nothing, a note or a warning of any cause. A planted delay is named when the finding names joint
and kind; it is covered when it lies within two standard errors.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import own_robot as arm

import dynid
from dynid.findings import Finding
from dynid.gate.causes import KINDS
from dynid.gate.quality import check_recording
from dynid.logs.recording import Recording
from dynid.processing.simulation import sum_of_sines
from dynid.robot.model import Robot

DURATION_S = 15.0
AMPLITUDES = (0.9, 0.5, 0.9, 0.9, 0.7)
"""Amplitude of each joint [rad]."""
MIDDLE = (0.0, 0.9, 0.0, 0.0, 0.0)
"""Middle of each joint's motion [rad]."""
EDGE = 25
"""Samples at either end that are not used, because the moved torques are not known there."""


def user_robot() -> Robot:
    """The arm as its data sheet has it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arm.urdf")
        path.write_text(arm.urdf(), encoding="utf-8")
        return dynid.read_urdf(path)


def table_of(seed: int) -> arm.Floats:
    """(N, 11) log of the simulated arm."""
    clock = np.arange(0.0, DURATION_S, 2 * arm.STEP_S)
    q, dq, _ = sum_of_sines(5, period_s=7.5, harmonics=5, amplitude=np.array(AMPLITUDES), seed=seed)(clock)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arm.urdf")
        path.write_text(arm.urdf(), encoding="utf-8")
        return arm.follow(arm.planted(path), clock, q + np.array(MIDDLE), dq, seed)


def recording(table: arm.Floats, joint: int = 0, late_s: float = 0.0) -> Recording:
    """The log with the torque of one joint moved."""
    effort = table[:, 6:].copy()
    effort[:, joint] = np.interp(table[:, 0] - late_s, table[:, 0], table[:, 6 + joint])
    kept = slice(EDGE, -EDGE)
    names = tuple(name for name, *_ in arm.JOINTS)
    return Recording(time=table[kept, 0], q=table[kept, 1:6], effort=effort[kept], joint_names=names)


def causes(robot: Robot, log: Recording) -> list[Finding]:
    """What the gate says of causes within the log; a delay of all torques is true, as a torque is held for 1 ms."""
    codes = {*(kind.code for kind in KINDS.values()), "change"}
    return [finding for finding in check_recording(log, robot).findings if finding.code in codes]


def main(logs: int, first: int) -> int:
    """Run the campaign and print a table; the exit code is 1 if a clean log gets a warning or is called late."""
    robot, words, covered = user_robot(), Counter[str](), []
    for seed in range(first, first + logs):
        table, rng = table_of(seed), np.random.default_rng((seed, 23))
        joint, late = int(rng.integers(5)), float(rng.choice([-1.0, 1.0]) * rng.uniform(0.004, 0.015))
        clean, found = causes(robot, recording(table)), causes(robot, recording(table, joint, late))
        worst = {f.severity for f in clean}
        words["clean, warning" if worst - {"note"} else "clean, note" if clean else "clean, nothing"] += 1
        words["clean, called late"] += any(f.code == "late-joint" for f in clean)
        own = [f for f in found if f.code == "late-joint" and f.joint == robot.joint_names[joint]]
        words["planted, named" if own else "planted, nothing" if not found else "planted, other name"] += 1
        off = np.nan
        if own:
            value, error = list(own[0].evidence.values())[:2]
            off = (value - 1e3 * late) / error
            covered.append(abs(off) <= 2.0)
        said = "; ".join(f"{f.severity} {f.code} {f.joint or ''}" for f in (*clean, *found)) or "nothing"
        print(f"seed {seed}: {1e3 * late:+6.2f} ms at {robot.joint_names[joint]:6s} off by {off:5.1f} errors; {said}",
              flush=True)  # fmt: skip
    print(dict(words))
    print(f"planted delays within two standard errors: {sum(covered)} of {len(covered)}")
    return int(words["clean, warning"] > 0 or words["clean, called late"] > 0)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(numbers or [20]), *([1000] if len(numbers) < 2 else [])))
