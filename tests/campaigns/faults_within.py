"""Faults planted in simulated and real logs: a wrong gain, a drifting offset, loads that come and go, a longer link.

    python tests/campaigns/faults_within.py [cases] [first seed] [kind or robot ...]

A case is what a user checks before an identification: two simulated logs of a robot of `fault_injection.py`, or all
logs of a real robot (`real_logs.py`). A gain is 10 to 30 % off and a link 5 % longer than the model says in all of its
logs; in the last log an offset drifts by 20 to 60 % of the torque's standard deviation, or a load of 1 to 4 kg (50
times that on the KR 300) is held in one to three stretches.

The gate judges each log and then all of them together, as an identification does.

What the logs show is computed beside the gate, from all logs together: the likelihood ratio (twice its logarithm) of
the planted cause with all standard parameters, friction of any shape and a common delay free, in units of the scatter
between blocks of time (`hypotheses.likelihood_ratio`). A case is *named* when a finding has the planted cause and
joint, *mentioned* where it stands among those that explain the log nearly as well as the named cause, *hidden* where
the ratio is below 30 and nothing is said, *listed* where the logs are said not to show it with a larger ratio,
*otherwise* where another cause alone is named, and *silent* elsewhere. Of a real log only findings count that it does
not have when it is untouched, or not with such an amount. Clean logs are accused if any finding of these kinds appears,
notes included.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
import dynid
from campaigns import fault_injection as planted
from campaigns import real_logs
from campaigns.hypotheses import SHOWN, free_columns, likelihood_ratio
from dynid.findings import Finding
from dynid.gate.causes import LIKELY
from dynid.gate.quality import check_and_process
from dynid.gate.within_log import check_together
from dynid.information.displacements import displace
from dynid.logs.recording import Recording
from dynid.processing.process import Processing, process
from dynid.robot.model import Body, Robot

Floats = NDArray[np.float64]
Rng = np.random.Generator
KINDS = {
    "nothing": "",
    "wrong gain": "wrong-gain",
    "drifting offset": "drifting-offset",
    "mixed loads": "change",
    "longer link": "link-length",
}
"""Kinds of faults with the code that names them."""
REAL = {data.name: data for data in real_logs.SETS if not data.quasi_static}
"""Data sets of moving robots."""
LONG = 0.1
"""Distance between moving joints from which on it is a link's length [m]."""
CODES = ("wrong-gain", "drifting-offset", "change", "unexplained", "link-length", "link-angle", "offset",
         "gravity-direction", "joint-spring")  # fmt: skip
WORDS = ("named", "mentioned", "hidden", "listed", "otherwise", "silent")
"""What becomes of a planted fault."""
ROWS, BLOCKS = 2500, 20
"""Samples of each log, and blocks of time of all of them, that the likelihood ratio is found from."""
SECOND = 1_000_003
"""Distance of the seeds of two simulated logs."""


@dataclass(frozen=True, eq=False)
class Case:
    """Logs with what was planted in them."""

    robot: Robot
    """What the user believes."""
    logs: list[Recording]
    joint: str | None
    """The joint concerned; that at the end of a longer link."""
    listed: str = ""
    """What a note calls it that says that the log may not show it."""
    amount: float = 0.0


@cache
def real(name: str) -> tuple[Robot, tuple[Recording, ...]]:
    """A real robot and its logs."""
    robot = REAL[name].robot()
    return robot, tuple(REAL[name].recordings(robot))


def clean(name: str, seed: int) -> Case:
    """A robot with untouched logs."""
    if name in REAL:
        robot, logs = real(name)
        return Case(robot, list(logs), None)
    return Case(planted.believed(name), [planted.clean_log(name, seed + k * SECOND) for k in range(2)], None)


def plant(kind: str, name: str, seed: int) -> Case:
    """Plant a fault of a kind."""
    rng, case = np.random.default_rng((seed, 1)), clean(name, seed)
    robot, logs = case.robot, case.logs
    if kind == "mixed loads":
        return _with_loads(case, 50.0 if name == "kuka_kr300" else 1.0, rng)
    if kind == "longer link":
        return _with_shorter_model(case, rng)
    joint, sign = int(rng.integers(robot.dof)), float(rng.choice([-1, 1]))
    concerned = robot.joint_names[joint]
    if kind == "wrong gain":
        factors = np.ones(robot.dof)
        factors[joint] += sign * rng.uniform(0.1, 0.3)
        scaled = [replace(log, effort=log.effort * factors) for log in logs]
        return Case(robot, scaled, concerned, concerned, float(factors[joint]))
    if kind == "drifting offset":
        effort = np.array(logs[-1].effort)
        size = sign * rng.uniform(0.2, 0.6)
        effort[:, joint] += size * np.nanstd(effort[:, joint]) * np.linspace(0.0, 1.0, len(effort))
        return Case(robot, [*logs[:-1], replace(logs[-1], effort=effort)], concerned, "", size)
    return case


def _with_loads(case: Case, heavier: float, rng: Rng) -> Case:
    """The last log with a load of 1 to 4 kg in one to three stretches."""
    log, mass = case.logs[-1], heavier * float(rng.uniform(1.0, 4.0))
    load = dynid.Inertia.from_com(mass, (0.0, 0.0, 0.1), 0.01 * mass * np.eye(3))
    tip = case.robot.moving_joints[-1].child
    time, *states = _states(log)[:4]
    loaded = case.robot.with_terms().with_body("load", parent=tip, inertia=load)
    extra = dynid.inverse_dynamics(loaded, *states) - dynid.inverse_dynamics(case.robot.with_terms(), *states)
    extra = np.column_stack([np.interp(log.time, time, x) for x in extra.T])
    edges = np.sort(rng.choice(np.arange(1, 10), size=2 * rng.integers(1, 4), replace=False)) * len(extra) // 10
    held = np.zeros(len(extra), dtype=bool)
    for start, stop in edges.reshape(-1, 2):
        held[start:stop] = True
    return Case(case.robot, [*case.logs[:-1], replace(log, effort=log.effort + held[:, None] * extra)], None, "", mass)


def _with_shorter_model(case: Case, rng: Rng) -> Case:
    """The user's model with one link 5 % shorter than it is.

    A link reaches from one moving joint to the next; fixed joints between them belong to it.
    """
    long_ones = [k for k, body in enumerate(case.robot.bodies) if body.parent >= 0 and _reach(body) > LONG]
    chosen = case.robot.bodies[rng.choice(long_ones)]
    shift = np.concatenate([(1.0 / 1.05 - 1.0) * chosen.p_parent_joint, np.zeros(3)])
    carrier = case.robot.bodies[chosen.parent].joint.child
    shorter = displace(case.robot, {chosen.joint.name: shift})
    return Case(shorter, case.logs, chosen.joint.name, carrier, 0.05 * _reach(chosen))


def _reach(body: Body) -> float:
    return float(np.linalg.norm(body.p_parent_joint))


def _states(log: Recording) -> tuple[Floats, ...]:
    """Time, positions, velocities, accelerations and low-passed torques of a log, of rows that count for all joints."""
    run = process(log, filter_effort=True)
    rows = np.flatnonzero(run.valid.all(axis=1))
    rows = rows[:: max(1, len(rows) // ROWS)]
    return tuple(np.ascontiguousarray(x[rows]) for x in (run.time, run.q, run.dq, run.ddq, run.effort))


def evidence(untouched: Case, case: Case) -> float:
    """The likelihood ratio of the planted cause, given all logs."""
    before, after = (
        [np.concatenate(parts) for parts in zip(*map(_states, each.logs), strict=True)] for each in (untouched, case)
    )
    effort, noise = before[4], np.std(before[4], axis=0)
    torque = effort
    for _ in range(2):  # the torques of the true model; the second fit weighs the joints by their residuals
        columns = free_columns(untouched.robot, before[1:4], torque, noise)
        values, vectors = np.linalg.eigh(columns.T @ columns)
        Q = columns @ (vectors[:, values > 1e-12 * values[-1]] / np.sqrt(values[values > 1e-12 * values[-1]]))
        torque = (Q @ (Q.T @ (effort / noise).reshape(-1))).reshape(effort.shape) * noise
        noise = np.std(effort - torque, axis=0)
    change = after[4] - effort  # no noise but that of the log itself
    if not np.any(change):
        return likelihood_ratio(case.robot, before[1:4], torque, effort, noise, BLOCKS)
    factor = np.where(np.abs(effort) > 0.0, after[4] / np.where(effort == 0.0, 1.0, effort), 1.0)
    gains = np.median(factor, axis=0)
    smooth = (gains - 1.0) * torque if np.allclose(after[4], gains * effort) else change
    return likelihood_ratio(case.robot, before[1:4], torque + smooth, after[4], noise * np.maximum(gains, 0.1), BLOCKS)


def findings(case: Case) -> list[list[Finding]]:
    """What the gate says of each log; what it says of all of them together stands with the last one."""
    reports, chains = zip(*(check_and_process(log, Processing(), case.robot) for log in case.logs), strict=True)
    told = [list(report.findings) for report in reports]
    runs = [None if chain is None else chain.experiment(filter_effort=False) for chain in chains]
    for place, finding in check_together(case.robot, runs, told):
        told[-1 if place is None else place].append(finding)
    return told


@cache
def known(name: str) -> dict[tuple[int, str, str | None], Finding]:
    """What is named in the untouched logs of a real robot, by the place of the log, the code and the joint."""
    told = findings(clean(name, 0)) if name in REAL else []
    return {(k, f.code, f.joint): f for k, found in enumerate(told) for f in found if f.code in CODES}


def is_new(place: int, finding: Finding, name: str) -> bool:
    """Whether an untouched log does not have a finding, or has it with an amount that is surely another one."""
    before = known(name).get((place, finding.code, finding.joint))
    if before is None or not next(iter(finding.evidence)).startswith("amount"):
        return before is None
    (amount, error), (old, _) = (list(f.evidence.values())[:2] for f in (finding, before))
    return abs(amount - old) > LIKELY * error


def run_case(kind: str, name: str, seed: int) -> tuple[str, str]:
    """What became of the fault (for clean logs: named if nothing was said), and what was said."""
    case = plant(kind, name, seed)
    told = findings(case)
    # notes of a zero moved by a quarter turn or of another gravity come from an earlier check: gate_evidence.py
    placed = [(k, f) for k, log in enumerate(told) for f in log if "free residual before" not in f.evidence]
    found = [f for k, f in placed if f.code in CODES and is_new(k, f, name)]
    text = "; ".join(f"{f.code} {f.joint or ''} {dict(f.evidence)}" for f in found) or "nothing"
    if kind == "nothing":
        return "silent" if found else "named", text
    if any(f.code == KINDS[kind] and case.joint in (f.joint, None) for f in found):
        return "named", text
    if any(f"{KINDS[kind]} of {case.joint}" in f.remedy for _, f in placed if f.code in CODES):
        return "mentioned", text
    ratio = evidence(clean(name, seed), case)
    text = f"{case.amount:+.3g} of {case.joint}, ratio {ratio:.0f}: {text}"
    if found:
        return "otherwise", text
    phrase = {"wrong gain": "gain of ", "longer link": "length of "}.get(kind)
    if ratio < SHOWN:
        return "hidden", text
    return "listed" if phrase and all(_lists(log, phrase, case.listed) for log in told) else "silent", text


def _lists(found: Sequence[Finding], phrase: str, name: str) -> bool:
    """Whether a note says that the log may not show an error of something."""
    notes = "; ".join(f.message for f in found if f.code == "untestable").split("; ")
    return any(name in note.partition(phrase)[2].split(", ") for note in notes)


def main(cases: int, first: int, kinds: Sequence[str], robots: Sequence[str]) -> int:
    """Run the campaign and print a table; the exit code says whether it passed."""
    count: dict[str, Counter[str]] = defaultdict(Counter)
    for number in range(cases):
        kind, name = kinds[number % len(kinds)], robots[(number // len(kinds)) % len(robots)]
        word, said = run_case(kind, name, first + number)
        count[kind][word] += 1
        if word != "named":
            print(f"    {word}: {kind} on {name}, seed {first + number}, {said}", flush=True)
    print(f"{'':16s}{'cases':>7s}" + "".join(f"{word:>11s}" for word in WORDS))
    for kind, words in count.items():
        print(f"{kind:16s}{words.total():7d}" + "".join(f"{words[word]:11d}" for word in WORDS))
    shown = {kind: words.total() - words["hidden"] for kind, words in count.items()}
    return int(any(count[kind]["named"] < 0.95 * shown[kind] for kind in count))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    every = [*planted.ROBOTS, *(REAL if real_logs.DATA.is_dir() else ())]
    chosen = [[word for word in words if word in sys.argv[1:]] or list(words) for words in (KINDS, every)]
    raise SystemExit(main(*(numbers or [200]), *([0] if len(numbers) < 2 else []), *chosen))
