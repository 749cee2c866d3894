"""Faults planted in simulated logs, clean logs, and real ones: what does the check name, and whom does it accuse?

    python tests/campaigns/diagnosis.py [cases of each fault] [first seed] [fault ...]
    python tests/campaigns/diagnosis.py real
    python tests/campaigns/diagnosis.py delays [cases] [first seed]

Every log has friction that no equation of the check holds: Stribeck, friction that grows with the load, presliding. The
model's masses are off by up to 20 %. A fault is *named* where an error or a warning has its code and joint, *rival*
where the message mentions it beside another, *wrongly named* where only others are accused, *untestable* where the
check is silent and says that this log does not show this suspect, or only larger amounts of it, else *silent*.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.control_loop import Loop, ReferenceMotion, assumed_law, simulate_loop
from dynid.data_reduction.displacements import displace
from dynid.diagnosis import find_delay
from dynid.diagnosis.suspects import KINDS, Suspect, linear_suspects
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.terms import Hysteresis
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

Floats = NDArray[np.float64]
ROBOTS = ("puma560", "panda", "ur10", "iiwa14", "tx40", "scara")
LOOPS = ("ddarm", "scara", "puma560")
RATE_HZ, DURATION_S = 250.0, 20.0
ACCUSING = "delay gain geometry gravity load spring drift unit flipped swapped push unexplained"
"""Codes that accuse a log or a model."""


@dataclass(frozen=True, eq=False)
class Case:
    """A log with what a user believes of its robot, and what was planted."""

    robot: dynid.Robot
    log: dynid.Recording
    joint: str = ""
    amount: float = 0.0
    """What was planted on the joint [SI; a drift per minute]."""
    code: str = ""
    """The code that names it, where that of its fault is not the one."""
    moved: Floats | None = None
    """(6,) error of the placement of the joint, slide [m] then turn [rad]."""


def arm(name: str, seed: int) -> tuple[dynid.Robot, dynid.Robot]:
    """The true robot, and the user's: masses off by up to 20 %, no friction."""
    plain = dynid.robots.get(name).with_terms()
    truth = plain.with_terms(RotorInertia(0.2), Viscous(1.0), Coulomb(2.0), Offset(0.3))
    theta = plain.parameter_vector.copy()
    theta[: 10 * plain.dof] *= np.repeat(np.random.default_rng((seed, 7)).uniform(0.8, 1.2, plain.dof), 10)
    return truth, plain.with_parameters(theta)


def motion(robot: dynid.Robot, seed: int) -> Callable[[Floats], tuple[Floats, Floats, Floats]]:
    """A motion of all joints."""
    reach = [min(abs(j.limits.lower), abs(j.limits.upper), 1.2) for j in robot.moving_joints]
    amplitude = np.array([0.6 * limit if limit > 0.1 else 0.4 for limit in reach])
    amplitude = np.where([j.kind == "prismatic" for j in robot.moving_joints], 0.3 * amplitude, amplitude)
    return sum_of_sines(robot.dof, period_s=DURATION_S / 2.0, harmonics=8, amplitude=amplitude, seed=seed)


def friction(dq: Floats, q: Floats, torque: Floats, rng: np.random.Generator) -> Floats:
    """Friction that no equation of the check holds [N m or N]."""
    stribeck = np.sign(dq) * np.exp(-((dq / rng.uniform(0.05, 0.2)) ** 2))
    by_load = rng.uniform(0.0, 0.08) * np.abs(torque) * np.tanh(dq / 0.02)
    travel = rng.uniform(0.002, 0.02)
    hysteresis = np.column_stack([
        Hysteresis(joint=0, scale=travel).along(q[:, j], dq[:, j], dq[:, j], RATE_HZ) for j in range(q.shape[1])
    ])  # fmt: skip
    return rng.uniform(0.3, 1.0) * stribeck + by_load + rng.uniform(0.0, 1.0) * (hysteresis - np.sign(dq))


def simulate(name: str, seed: int, truth: dynid.Robot | None = None, **options: float) -> Case:
    """A faultless log."""
    own, believed = arm(name, seed)
    robot, rng = truth or own, np.random.default_rng((seed, 3))
    path = motion(robot, seed)
    log = simulate_experiment(
        robot, path, rate_hz=RATE_HZ, duration_s=DURATION_S, noise=Noise(position=2e-5, velocity=2e-3, effort=0.2),
        seed=seed, **options,
    )  # fmt: skip
    q, dq, _ = path(np.asarray(log.time) - options.get("delay_s", 0.0))
    return Case(believed, replace(log, effort=log.effort + friction(dq, q, np.asarray(log.effort), rng)))


Change = Callable[[dict[str, Floats], np.random.Generator], Any]
Plant = Callable[[str, int], Case]


def edit(change: Change) -> Plant:
    """A fault that edits the arrays of a clean log; it returns the joint concerned, and the amount, or two joints."""

    def plant(name: str, seed: int) -> Case:
        case = simulate(name, seed)
        arrays = {key: np.array(getattr(case.log, key)) for key in ("q", "dq", "effort")}
        told = change(arrays, np.random.default_rng((seed, 1)))
        joint, amount = told if isinstance(told, tuple) else (told, 0.0)
        log = replace(case.log, **arrays)
        names = [] if joint is None else [case.robot.joint_names[j] for j in np.atleast_1d(joint)]
        return replace(case, log=log, joint=" and ".join(names), amount=amount)

    return plant


def _scale(keys: tuple[str, ...], *factors: float, one: bool = False) -> Plant:
    def change(log: dict[str, Floats], rng: np.random.Generator) -> Any:
        joint = int(rng.integers(log["q"].shape[1])) if one else None
        factor = float(rng.choice(factors))
        for key in keys:
            log[key][:, slice(None) if joint is None else joint] *= factor
        return joint

    return edit(change)


def _swap(*keys: str) -> Plant:
    def change(log: dict[str, Floats], rng: np.random.Generator) -> Any:
        pair = rng.choice(log["q"].shape[1], size=2, replace=False)
        for key in keys:
            log[key][:, pair] = log[key][:, pair[::-1]]
        return sorted(pair.tolist())

    return edit(change)


def _add(choose: Callable[..., tuple[float, Floats]]) -> Plant:
    """Torque on a joint, by `choose` from chance, position and torque: an amount, and the torque of one."""

    def change(log: dict[str, Floats], rng: np.random.Generator) -> Any:
        joint = int(rng.integers(log["q"].shape[1]))
        amount, shape = choose(rng, log["q"][:, joint], log["effort"][:, joint])
        log["effort"][:, joint] += amount * shape
        return joint, amount

    return edit(change)


def _gain(low: float, high: float) -> Plant:
    return _add(lambda rng, q, effort: (rng.choice([-1, 1]) * rng.uniform(low, high), effort))


_drift = _add(lambda rng, q, effort: (60.0 / DURATION_S * rng.choice([-1, 1]) * rng.uniform(0.2, 0.6) * effort.std(),
                                      np.linspace(0.0, DURATION_S / 60.0, len(q))))  # fmt: skip
_spring = _add(lambda rng, q, effort: (rng.uniform(0.2, 0.5) * effort.std() / q.std(), q - q.mean()))


def _late(name: str, seed: int) -> Case:
    rng = np.random.default_rng((seed, 1))
    return simulate(name, seed, delay_s=float(rng.choice([-1, 1]) * rng.uniform(0.005, 0.02)))


def _placed(kind: str) -> Plant:
    """A model whose geometry differs from the robot's."""

    def plant(name: str, seed: int) -> Case:
        case, rng = simulate(name, seed), np.random.default_rng((seed, 1))
        bodies = case.robot.bodies
        inner = [k for k, b in enumerate(bodies) if b.parent >= 0 and not b.is_prismatic]
        long = [k for k in inner if np.linalg.norm(bodies[k].p_parent_joint) > 0.1]
        k = int(rng.choice(long if kind == "length" else inner[:-1] or inner))
        body, sign = bodies[k], float(rng.choice([-1, 1]))
        axis = body.R_parent_joint @ body.axis
        if kind == "length":
            shift = np.append(sign * 0.05 * body.p_parent_joint, np.zeros(3))
        elif kind == "zero":
            shift = np.append(np.zeros(3), sign * np.deg2rad(rng.uniform(1.0, 4.0)) * axis)
        else:
            across = np.cross(axis, rng.normal(size=3))
            shift = np.append(np.zeros(3), np.deg2rad(rng.uniform(2.0, 4.0)) * across / np.linalg.norm(across))
        return replace(case, robot=displace(case.robot, {body.joint.name: shift}), joint=body.joint.name, moved=shift)

    return plant


def _gravity(kind: str) -> Plant:
    def plant(name: str, seed: int) -> Case:
        truth, believed = arm(name, seed)
        rng = np.random.default_rng((seed, 1))
        if kind == "tilt":
            angle, turn = np.deg2rad(rng.uniform(1.0, 3.0)), rng.uniform(0.0, 2.0 * np.pi)
            g = 9.81 * np.array([np.sin(angle) * np.cos(turn), np.sin(angle) * np.sin(turn), -np.cos(angle)])
        else:
            g = 9.81 * rng.choice([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]]) if kind == "wall" else 0.0
        case = simulate(name, seed, truth.with_gravity(np.zeros(3) + g))
        return replace(case, robot=believed)

    return plant


def _load(name: str, seed: int) -> Case:
    case, rng = simulate(name, seed), np.random.default_rng((seed, 1))
    truth, _ = arm(name, seed)
    mass = float(rng.uniform(1.0, 4.0))
    body = dynid.Inertia.from_com(mass, (0.0, 0.0, 0.1), 0.01 * mass * np.eye(3))
    heavy = truth.with_body("load", parent=truth.moving_joints[-1].child, inertia=body)
    states = [np.ascontiguousarray(x) for x in motion(truth, seed)(np.asarray(case.log.time))]
    extra = dynid.inverse_dynamics(heavy, *states) - dynid.inverse_dynamics(truth, *states)
    edges = np.sort(rng.choice(np.arange(1, 10), size=2, replace=False)) * len(extra) // 10
    extra[: edges[0]] = extra[edges[1] :] = 0.0
    return replace(case, log=replace(case.log, effort=case.log.effort + extra))


FAULTS: dict[str, tuple[str, Plant]] = {
    "degrees": ("unit", _scale(("q", "dq"), 180.0 / np.pi)),
    "degrees of one joint": ("unit", _scale(("q", "dq"), 180.0 / np.pi, one=True)),
    "turns, or radians taken for degrees": ("unit", _scale(("q", "dq"), 0.5 / np.pi, np.pi / 180.0)),
    "torque unit": ("unit", _scale(("effort",), 1e3, 1e-3, 1e2, 1e-2)),
    "torque unit of one joint": ("unit", _scale(("effort",), 1e3, 1e-3, 1e2, one=True)),
    "torque flipped": ("flipped", _scale(("effort",), -1.0, one=True)),
    "all torques flipped": ("flipped", _scale(("effort",), -1.0)),
    "motion flipped": ("flipped", _scale(("q", "dq"), -1.0, one=True)),
    "torques swapped": ("swapped", _swap("effort")),
    "joints swapped": ("swapped", _swap("q", "dq", "effort")),
    "wall": ("gravity", _gravity("wall")),
    "gravity compensated": ("gravity", _gravity("none")),
    "load": ("load", _load),
    "drift": ("drift", _drift),
    "delay": ("delay", _late),
    "spring": ("spring", _spring),
    "gain 10 to 30 %": ("gain", _gain(0.1, 0.3)),
    "gain 5 to 10 %": ("gain", _gain(0.05, 0.1)),
    "length 5 %": ("geometry", _placed("length")),
    "zero 1 to 4 deg": ("geometry", _placed("zero")),
    "angle 2 to 4 deg": ("geometry", _placed("angle")),
    "tilt 1 to 3 deg": ("gravity", _gravity("tilt")),
}


def accusations(case: Case) -> list[dynid.Finding]:
    """What the check accuses the log or the model of."""
    found = dynid.check_recording(case.log, case.robot).findings
    return [f for f in found if f.severity != "note" and f.code in ACCUSING]


def told_amounts(case: Case) -> tuple[str, dict[Suspect, float]]:
    """What the check says that it cannot tell, and from which amount [SI] on it tells each suspect of one joint."""
    robot, notes = case.robot, [f for f in dynid.check_recording(case.log, case.robot).findings if f.severity == "note"]
    told = {name: x for f in notes for name, x in f.evidence.items()}
    linear = [s for s in linear_suspects(robot) if s.joint is not None]
    suspects = [*linear, *(Suspect("gain", j) for j in range(robot.dof))]
    least = {s: told.get(f"{s.label(robot)} [{s.unit(robot)}]", np.inf) / KINDS[s.kind].factor for s in suspects}
    return "; ".join(f.message for f in notes), least


def twice(name: str, seed: int) -> Case:
    """Twice the amount from which the check says that it tells a suspect, chosen by chance."""
    case, rng = simulate(name, seed), np.random.default_rng((seed, 1))
    told = told_amounts(case)[1]
    known = [(s, 2.0 * told[s]) for s in told if s.kind not in ("late", "tilt") and 2.2 * told[s] < KINDS[s.kind].most]
    suspect, size = known[rng.integers(len(known))]
    j, amount, kind = suspect.joint or 0, float(rng.choice([-size, size])), suspect.kind
    joint, effort, time = case.robot.joint_names[j], np.array(case.log.effort), np.asarray(case.log.time)
    case = replace(case, joint=joint, code=KINDS[kind].code)
    if suspect.direction is not None:
        return replace(case, robot=displace(case.robot, {joint: -amount * suspect.direction}))
    effort[:, j] += amount * {"gain": effort[:, j], "spring": case.log.q[:, j], "drift": time / 60.0}[kind]
    return replace(case, log=replace(case.log, effort=effort))


FAULTS |= {"twice": ("", twice), "clean": ("", simulate)}


def is_untestable(fault: str, case: Case) -> bool:
    """Whether the check says that it cannot tell what was planted: this suspect and joint, or this amount of it."""
    says, told = told_amounts(case)
    if "unit" in fault or fault == "joints swapped":
        return case.joint in says and ("order of" if "swap" in fault else "unit of the torque") in says
    joint, code, moved = case.joint, FAULTS[fault][0], case.moved
    own = [s for s in told if case.robot.joint_names[s.joint or 0] == joint and KINDS[s.kind].code == code]
    planted = [case.amount if s.direction is None or moved is None else moved @ s.direction for s in own]
    return bool(own) and all(abs(amount) <= told[s] for s, amount in zip(own, planted, strict=True))


def judge(fault: str, case: Case) -> tuple[str, list[dynid.Finding]]:
    """What became of a fault, and what was said."""
    code, found = case.code or FAULTS[fault][0], accusations(case)
    if any(f.code == code and (f.joint or "") in (case.joint or str(f.joint)) for f in found):
        return "named", found
    other = any((f.joint or "-") in case.joint and "of another joint" in f.message for f in found)
    if other or any(f.code == code or (case.joint or f"or {code}") in f.message for f in found):
        return "rival", found
    if found:
        return "wrongly named", found
    return "untestable" if not case.code and is_untestable(fault, case) else "silent", found


def run_faults(cases: int, first: int, faults: list[str]) -> None:
    """Print what becomes of every fault; of clean logs those that are not silent are accused."""
    for place, fault in enumerate(faults):
        words: Counter[str] = Counter()
        for number in range(cases):
            name, seed = ROBOTS[number % len(ROBOTS)], first + 1000 * place + number
            word, found = judge(fault, FAULTS[fault][1](name, seed))
            words[word] += 1
            if word != "named":
                print(f"    {fault} on {name}, seed {seed}: {word}: {[str(f)[:150] for f in found]}")
        print(f"{fault}: {dict(words)}")


def late_loop(case: int, first: int) -> tuple[dynid.Robot, dynid.Recording, float]:
    """A robot, its log in a PD loop with dry friction, and the delay of its torques [s]."""
    rng = np.random.default_rng((first, case))
    arm = dynid.robots.get(LOOPS[case % len(LOOPS)]).with_terms()
    amplitude = np.where([joint.kind == "prismatic" for joint in arm.moving_joints], 0.15, 0.7)
    path = sum_of_sines(arm.dof, amplitude=amplitude, seed=first + case)
    reference = ReferenceMotion.of(path, rate_hz=1000.0, duration_s=12.0)
    q, dq, ddq = (np.ascontiguousarray(x) for x in path(np.arange(0.0, 12.0, 0.02)))
    size = dynid.inverse_dynamics(arm, q, dq, ddq).std(axis=0)
    truth = arm
    for joint, torque in zip(arm.joint_names, size, strict=True):
        friction = (
            dynid.RotorInertia(0.1),
            dynid.Viscous(0.1 * torque),
            dynid.Coulomb(rng.uniform(0.02, 0.4) * torque),
        )
        truth = truth.with_terms(*friction, joints=[joint])
    loop = Loop(law=assumed_law(truth, rng.uniform(4.0, 12.0)), reference=reference)
    run = simulate_loop(truth, loop)
    late = rng.uniform(0.0, 0.02)
    rows = slice(200, -200, int(rng.choice([2, 4, 10])))
    time = run.time[rows]
    torque = np.column_stack([np.interp(time - late, run.time, column) for column in run.torque.T])
    noise = rng.normal(size=(2, *torque.shape))
    log = dynid.Recording(time=time, q=run.q[rows] + 2e-5 * noise[0], effort=torque + 0.01 * size * noise[1])
    return arm, log, late - 0.5 / 1000.0


def run_delays(cases: int, first: int) -> None:
    """Print how many intervals hold the planted delay."""
    held = 0
    for case in range(cases):
        robot, log, late = late_loop(case, first)
        found = find_delay(robot, [dynid.process(log)])
        held += (is_held := abs(found.seconds - late) <= found.half_width_s)
        if not is_held:
            text = f"{1e3 * found.seconds:.2f} +- {1e3 * found.half_width_s:.2f} ms for {1e3 * late:.2f} ms"
            print(f"    {robot.name}, case {case}: {text}", flush=True)
    print(f"delays within their intervals: {held} of {cases}")


def run_real() -> None:
    """Print every warning on a real log."""
    from real_logs import SETS

    for data in SETS:
        robot = data.robot()
        for log in data.recordings(robot):
            report = dynid.check_recording(log, robot)
            print(f"{data.name}: {Path(log.source).name}")
            for finding in report.findings:
                if finding.severity != "note":
                    print(f"    {finding}", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    numbers = [int(word) for word in words if word.isdigit()]
    cases, first = (*numbers, *[12, 0][len(numbers) :])
    if "real" in words:
        run_real()
    elif "delays" in words:
        run_delays(cases, first)
    else:
        run_faults(cases, first, [word for word in words if word in FAULTS] or list(FAULTS))
