"""Faults planted within a log: a wrong gain, a drifting offset, loads that come and go, a link 5 % longer than stated.

    python tests/campaigns/faults_within.py [cases] [first seed]

The robots, motions and noise are those of `fault_injection.py`. A gain is 10 to 30 % off, an offset drifts by 20 to
60 % of the torque's standard deviation, a load of 1 to 4 kg is held in one to three stretches of the log. Clean logs
are accused if any finding of these kinds appears, notes included.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import dynid
from campaigns import fault_injection as planted
from dynid.gate.quality import check_recording
from dynid.logs.recording import Recording
from dynid.robot.model import Robot

Rng = np.random.Generator
KINDS = {
    "nothing": (),
    "wrong gain": ("wrong-gain",),
    "drifting offset": ("drifting-offset",),
    "mixed loads": ("change",),
    "longer link": ("link-length",),
}
"""Kinds of faults with the codes that name them."""
CODES = ("wrong-gain", "drifting-offset", "change", "unexplained", "link-length", "link-angle", "offset",
         "gravity-direction", "joint-spring")  # fmt: skip


def gain(log: Recording, rng: Rng) -> Recording:
    """The torque of one joint 10 to 30 % off."""
    factors = np.ones(log.q.shape[1])
    factors[rng.integers(factors.size)] += rng.choice([-1, 1]) * rng.uniform(0.1, 0.3)
    return replace(log, effort=log.effort * factors)


def drift(log: Recording, rng: Rng) -> Recording:
    """An offset that drifts by 20 to 60 % of the torque's standard deviation."""
    effort, j = np.array(log.effort), rng.integers(log.q.shape[1])
    effort[:, j] += (
        rng.choice([-1, 1]) * rng.uniform(0.2, 0.6) * effort[:, j].std() * np.linspace(0.0, 1.0, len(effort))
    )
    return replace(log, effort=effort)


def loads(name: str, log: Recording, seed: int, rng: Rng) -> Recording:
    """A load of 1 to 4 kg in one to three stretches."""
    arm = planted.planted(name)
    load = dynid.Inertia.from_com(rng.uniform(1.0, 4.0), (0.0, 0.0, 0.1), 0.01 * np.eye(3))
    heavier = arm.with_body("load", parent=arm.moving_joints[-1].child, inertia=load)
    states = [np.ascontiguousarray(x) for x in planted.path_of(name, seed)(np.asarray(log.time))]
    extra = dynid.inverse_dynamics(heavier, *states) - dynid.inverse_dynamics(arm, *states)
    edges = np.sort(rng.choice(np.arange(1, 10), size=2 * rng.integers(1, 4), replace=False)) * len(extra) // 10
    held = np.zeros(len(extra), dtype=bool)
    for start, stop in edges.reshape(-1, 2):
        held[start:stop] = True
    return replace(log, effort=log.effort + held[:, None] * extra)


def shorter_model(name: str, rng: Rng) -> Robot:
    """The user's model with one link 5 % shorter than it is."""
    robot = planted.believed(name)
    reach = [float(np.linalg.norm(joint.T_parent_joint[:3, 3])) for joint in robot.joints]
    chosen = rng.choice([k for k, length in enumerate(reach) if k and length > 0.1])
    joints = list(robot.joints)
    origin = joints[chosen].T_parent_joint.copy()
    origin[:3, 3] /= 1.05
    joints[chosen] = replace(joints[chosen], T_parent_joint=origin)
    return replace(robot, joints=tuple(joints))


def run_case(kind: str, name: str, seed: int) -> tuple[bool, str]:
    """Whether the fault was named (for clean logs: whether nothing was), and what was said."""
    rng = np.random.default_rng((seed, 1))
    log, robot = planted.clean_log(name, seed), planted.believed(name)
    if kind == "wrong gain":
        log = gain(log, rng)
    elif kind == "drifting offset":
        log = drift(log, rng)
    elif kind == "mixed loads":
        log = loads(name, log, seed, rng)
    elif kind == "longer link":
        robot = shorter_model(name, rng)
    found = [f for f in check_recording(log, robot).findings if f.code in CODES]
    # notes of a zero moved by a quarter turn or of another gravity come from an earlier check: gate_evidence.py
    found = [f for f in found if "free residual before" not in f.evidence]
    said = {f.code for f in found}
    named = not said if kind == "nothing" else bool(said & set(KINDS[kind]))
    return named, "; ".join(f"{f.code} {f.joint or ''} {dict(f.evidence)}" for f in found) or "nothing"


def main(cases: int, first: int) -> int:
    """Run the campaign and print a table; the exit code says whether it passed."""
    count, named = Counter[str](), Counter[str]()
    kinds = list(KINDS)
    for case in range(cases):
        kind, name = kinds[case % len(kinds)], planted.ROBOTS[(case // len(kinds)) % len(planted.ROBOTS)]
        hit, said = run_case(kind, name, first + case)
        count[kind] += 1
        named[kind] += hit
        if not hit:
            print(f"    {kind} on {name}, seed {first + case}: {said}", flush=True)
    for kind in kinds:
        print(f"{kind:16s} {count[kind]:5d} cases, {'not accused' if kind == 'nothing' else 'named'} {named[kind]}")
    return int(any(named[kind] < 0.95 * count[kind] for kind in kinds[:-1]))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(numbers or [200]), *([0] if len(numbers) < 2 else [])))
