"""The torque of one joint in a wrong unit, on three robots without effort limits: is the joint named with the factor?

    python tests/campaigns/joint_units.py [seeds] [first seed]
    python tests/campaigns/joint_units.py real

The second form plants 1000, 10, 0.1 and 0.001 in every joint of four real logs, their robots without effort limits.

The robots, their friction, loads and noise are those of hypotheses.py. Every joint gets every factor, once with a model
that has guessed masses and once with a model whose masses are placeholders, so that the equations alone must show it. A
case is *named* when the finding `unit` stands at the joint and its message holds a factor within 15 % of the planted
one, *doubted* when it stands there without it, *warned* when something else is a warning or an error, *silent* when
nothing is. Clean logs must not be accused.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import dynid
from campaigns import hypotheses
from dynid.findings import Finding
from dynid.gate.quality import check_recording
from dynid.logs.recording import Recording
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits

FACTORS = (1000.0, 100.0, 10.0, 0.1, 0.01, 0.001)
NEAR = 0.15
"""Relative error of the named factor up to which a case is named."""


def placeholders(robot: Robot) -> Robot:
    """The robot with balls of 1 kg for all links, as files without known masses have them."""
    ball = Inertia.from_com(1.0, (0.0, 0.0, 0.0), np.eye(3))
    links = tuple(replace(link, inertia=ball) if link.inertia.mass else link for link in robot.links)
    return replace(robot, links=links)


def scaled(log: Recording, joint: int | slice, factor: float) -> Recording:
    """The log with one joint's torque multiplied."""
    assert log.effort is not None
    effort = np.array(log.effort)
    effort[:, joint] *= factor
    return replace(log, effort=effort)


def moved(log: Recording, joint: int, factor: float) -> Recording:
    """The log with one joint's position and velocity multiplied."""
    scale = np.where(np.arange(log.q.shape[1]) == joint, factor, 1.0)
    return replace(log, q=log.q * scale, dq=None if log.dq is None else log.dq * scale)


def judge(robot: Robot, log: Recording, joint: str, factor: float) -> tuple[str, list[Finding]]:
    """How the gate speaks of a case, and its findings that are no notes."""
    found = [f for f in check_recording(log, robot).findings if f.severity != "note"]
    for finding in found:
        value = finding.evidence.get("factor", np.nan)
        if finding.code == "unit" and finding.joint == joint and abs(value / factor - 1.0) < NEAR:
            return "named", found
    if any(finding.code == "unit" and finding.joint == joint for finding in found):
        return "doubted", found
    return "warned" if any(finding.code != "gap" for finding in found) else "silent", found


def main(seeds: int = 1, first: int = 0) -> int:
    """Run the campaign and print a table; the exit code says whether clean logs were accused."""
    table: dict[tuple[str, str, float], Counter[str]] = defaultdict(Counter)
    accused = clean = 0
    for seed in range(first, first + seeds):
        for name in hypotheses.TABLES:
            case = hypotheses.make_case("nothing", name, seed)
            for kind, robot in (("masses", case.robot), ("placeholders", placeholders(case.robot))):
                clean += 1
                for finding in check_recording(case.log, robot).findings:
                    if finding.code == "unit":
                        accused += 1
                        print("    accused:", name, seed, kind, finding.sentence, flush=True)
                for joint, title in enumerate(robot.joint_names):
                    for factor in FACTORS:
                        word, found = judge(robot, scaled(case.log, joint, factor), title, factor)
                        table[name, kind, factor][word] += 1
                        if word != "named":
                            codes = "; ".join(f"{f.code} {f.joint or ''}: {f.message}" for f in found)
                            print(f"    {name} {kind} {title} x{factor:g}: {word}: {codes}", flush=True)
    for (name, kind, factor), counts in table.items():
        print(f"{name:8s} {kind:13s} x{factor:<8g} {dict(counts)}")
    total = sum(table.values(), Counter())
    print(f"all: {dict(total)}; clean logs accused of a unit: {accused} of {clean}")
    return int(accused > 0)


FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
REAL: dict[str, tuple[str, dict[str, float]]] = {
    "panda_gaz": ("panda.urdf", FINGERS),
    "panda_unisa": ("panda.urdf", FINGERS),
    "ur10_unisa": ("ur10_robot.urdf", {}),
    "tx40": ("tx40_mdh_modified.urdf", {}),
}
"""Data set -> its robot file, and the joints to hold."""


def real() -> int:
    """Plant factors in real logs; the exit code says whether the logs as they are were accused."""
    accused = 0
    root = Path(__file__).parents[2]
    total: Counter[str] = Counter()
    for name, (file, hold) in REAL.items():
        folder = root.parent / "shared" / "datasets" / name
        robot = dynid.read_urdf(folder / file, hold=hold)
        free = tuple(replace(joint, limits=JointLimits()) for joint in robot.joints)
        robot = replace(robot, joints=free)
        log = dynid.read_recording(folder, channel_map=root / "channel_maps" / f"{name}.toml")
        units = check_recording(log, robot).about("unit")
        accused += bool(units)
        print(f"{name} as it is: {[finding.sentence for finding in units]}", flush=True)
        counts: Counter[str] = Counter()
        for joint, title in enumerate(robot.joint_names):
            for factor in (1000.0, 10.0, 0.1, 0.001):
                word, found = judge(robot, scaled(log, joint, factor), title, factor)
                counts[word] += 1
                if word != "named":
                    codes = "; ".join(f"{f.code} {f.joint or ''}: {f.message}" for f in found)
                    print(f"    {title} x{factor:g}: {word}: {codes}", flush=True)
        print(f"{name}: {dict(counts)}", flush=True)
        total += counts
    print(f"all: {dict(total)}; real logs accused: {accused} of {len(REAL)}")
    return int(accused > 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["real"]:
        raise SystemExit(real())
    raise SystemExit(main(*(int(word) for word in sys.argv[1:3])))
