"""Causes planted in logs of three robots made for this campaign: named with their values, or told to be untestable?

    python tests/campaigns/hypotheses.py [cases] [first seed] [kind ...]
    python tests/campaigns/hypotheses.py freed [cases] [first seed]
    python tests/campaigns/hypotheses.py again FILE

Each case draws a robot, a motion, an amount and noise of 1.5 % of each joint's torque; dry friction falls with speed
and grows with load, which the equations of the gate do not hold. What the log shows is computed beside the gate: the
likelihood ratio (twice its logarithm) of the planted cause in this log, from every sample and the true motion, with all
standard parameters, friction of any shape and a common delay free. A case is *named* when the planted cause is named
for the planted joint, *equal* when another length or zero is named and nothing is left of the planted cause once that
one is corrected by its value (a likelihood ratio below 30), *mentioned* when it stands among those that explain the log
nearly as well, *confused* when another cause is named alone, *untestable* when the gate says that the log may not show
such an error of this link or joint, *silent* when nothing is said at all. Clean logs
are accused when any cause is named, notes included, or anything is warned of. The goals are those for cases whose
likelihood ratio exceeds 30. `again` judges the cases once more that an earlier run printed into a file.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
import dynid
from dynid.findings import Finding
from dynid.gate.quality import check_recording
from dynid.information.displacements import displace
from dynid.kernels import inverse_dynamics, regressor
from dynid.links.common.free_geometry import free_geometry
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.spatial import rotation_from_rpy, transform
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.load_dependent import horizontal_axes
from dynid.terms.motors import Offset, RotorInertia

Floats = NDArray[np.float64]
Rng = np.random.Generator
RATE_HZ, DURATION_S = 200.0, 20.0
NOISE = 0.015
"""Standard deviation of the torque noise as a share of each joint's rms torque."""
SHOWN = 30.0
"""Likelihood ratio (twice the logarithm) from which on the log shows a cause (the goal of issue 25)."""
WORDS = ("named", "equal", "mentioned", "confused", "untestable", "silent")
"""What the gate says of a planted cause."""
CODES = {
    "nothing": "", "length": "link-length", "zero": "offset", "gain": "wrong-gain", "tilt": "gravity-direction",
    "spring": "joint-spring", "drift": "drifting-offset", "late": "late-joint", "angle": "link-angle",
}  # fmt: skip
"""What is planted, and the code that names it."""
TABLES: dict[str, tuple[tuple[str, tuple[float, ...], tuple[float, ...], float], ...]] = {
    "elbow": (  # kind, position [m], roll pitch yaw [rad] of each joint, mass of its link [kg]
        ("revolute", (0.0, 0.0, 0.3), (0.0, 0.0, 0.0), 12.0),
        ("revolute", (0.1, 0.0, 0.15), (-np.pi / 2, 0.0, 0.0), 9.0),
        ("revolute", (0.0, -0.42, 0.0), (0.0, 0.0, 0.0), 6.0),
        ("revolute", (0.05, -0.2, 0.0), (np.pi / 2, 0.0, 0.0), 4.0),
        ("revolute", (0.0, 0.0, 0.22), (-np.pi / 2, 0.0, 0.0), 2.5),
        ("revolute", (0.0, -0.12, 0.0), (np.pi / 2, 0.0, 0.0), 3.0),
    ),
    "snake": (
        ("revolute", (0.0, 0.0, 0.25), (0.0, 0.0, 0.0), 8.0),
        ("revolute", (0.0, 0.05, 0.1), (-np.pi / 2, 0.0, 0.0), 7.0),
        ("revolute", (0.0, -0.35, 0.0), (np.pi / 2, 0.0, 0.0), 5.0),
        ("revolute", (0.08, 0.0, 0.1), (np.pi / 2, 0.0, 0.0), 4.0),
        ("revolute", (-0.08, 0.3, 0.0), (-np.pi / 2, 0.0, 0.0), 3.0),
        ("revolute", (0.0, 0.0, 0.15), (np.pi / 2, 0.0, 0.0), 2.5),
        ("revolute", (0.09, 0.0, 0.0), (np.pi / 2, 0.0, 0.0), 2.0),
    ),
    "rail": (
        ("prismatic", (0.0, 0.0, 0.4), (0.0, np.pi / 2, 0.0), 25.0),
        ("revolute", (-0.1, 0.0, 0.05), (0.0, -np.pi / 2, 0.0), 14.0),
        ("revolute", (0.12, 0.0, 0.2), (-np.pi / 2, 0.0, 0.0), 10.0),
        ("revolute", (0.55, 0.0, 0.0), (0.0, 0.0, 0.0), 7.0),
        ("revolute", (0.5, 0.0, 0.0), (0.0, 0.0, 0.0), 5.0),
    ),
}
"""The robots."""


@cache
def believed(name: str) -> Robot:
    """The user's model: the geometry and guessed masses."""
    links, joints = [Link(name="stand")], []
    for number, (kind, place, angles, mass) in enumerate(TABLES[name], 1):
        middle = np.array(TABLES[name][number][1] if number < len(TABLES[name]) else (0.0, 0.0, 0.1)) / 2.0
        size = 0.1 + 2.0 * np.abs(middle)
        tensor = mass / 12.0 * np.diag(size @ size - size**2)
        links.append(Link(name=f"link{number}", inertia=dynid.Inertia.from_com(mass, middle, tensor)))
        T = transform(rotation_from_rpy(angles), np.array(place))
        joints.append(Joint(name=f"joint{number}", kind=kind, parent=links[-2].name, child=links[-1].name,
                            T_parent_joint=T))  # type: ignore[arg-type]  # fmt: skip
    return Robot(name=name, links=tuple(links), joints=tuple(joints))


def true_robot(name: str, rng: Rng) -> Robot:
    """The robot itself: other masses, offset centres of mass, friction, a load in its hand."""
    arm = believed(name).with_terms(RotorInertia(0.15), Viscous(0.8), Coulomb(1.5), Offset(0.2))
    theta = arm.parameter_vector.copy()
    theta[: 10 * arm.dof] *= np.repeat(rng.uniform(0.8, 1.25, arm.dof), 10)
    heavy = arm.with_parameters(theta)
    load = dynid.Inertia.from_com(3.0, (0.03, 0.04, 0.12), 0.01 * np.eye(3))
    return heavy.with_body("load", parent=f"link{arm.dof}", inertia=load)


@dataclass(frozen=True, eq=False)
class Case:
    """One log with what was planted in it."""

    robot: Robot
    """What the user believes."""
    log: Recording
    joint: str | None
    amount: float
    """In the unit of the finding's evidence."""
    ratio: float
    """Likelihood ratio of the planted cause."""
    states: tuple[Floats, Floats, Floats]
    """Positions as read, true velocities and accelerations, (N, n) each."""
    planted: Floats
    """(N, n) torques with the planted cause, without noise and unmodelled friction [N m or N]"""
    noise: Floats
    """(n,) standard deviations of the torques [N m or N]"""

    def left_after(self, finding: Finding) -> float:
        """Likelihood ratio of what is left of the planted cause once a named one is corrected by its value."""
        if finding.joint is None or finding.code not in ("offset", "link-length"):
            return np.inf
        j, value = self.robot.joint_names.index(finding.joint), next(iter(finding.evidence.values()))
        robot, q = self.robot, self.states[0].copy()
        if finding.code == "link-length":
            along = robot.bodies[j].p_parent_joint / np.linalg.norm(robot.bodies[j].p_parent_joint)
            robot = displace(robot, {finding.joint: np.concatenate([1e-3 * value * along, np.zeros(3)])})
        else:
            q[:, j] += 1e-3 * value if robot.bodies[j].is_prismatic else np.deg2rad(value)
        effort = np.asarray(self.log.effort)
        return likelihood_ratio(robot, [q, *self.states[1:]], self.planted, effort, self.noise)


def make_case(kind: str, name: str, seed: int) -> Case:
    """Plant a cause of a kind in a log."""
    rng = np.random.default_rng((seed, 25))
    robot, count = believed(name), len(TABLES[name])
    truth = true_robot(name, rng)
    slides = np.array([row[0] == "prismatic" for row in TABLES[name]])
    path = sum_of_sines(count, period_s=10.0, harmonics=6, amplitude=np.where(slides, 0.5, 0.9), seed=seed)
    time = np.arange(int(RATE_HZ * DURATION_S)) / RATE_HZ
    joint = int(rng.choice(np.arange(2, count) if kind in ("length", "angle") else np.flatnonzero(~slides)))
    amount = float(rng.choice([-1.0, 1.0]))
    q_read = np.array(path(time)[0])
    if kind in ("length", "angle", "tilt"):
        shift, amount, joint = _displacement(robot, kind, joint, amount, rng)
        truth = displace(truth, {robot.joint_names[joint]: shift})
    states = [np.ascontiguousarray(x) for x in path(time)]
    torque = inverse_dynamics(truth, *states)
    rms, j = np.sqrt(np.mean(torque**2, axis=0)), joint
    planted = torque.copy()
    if kind == "zero":
        amount *= rng.uniform(1.0, 6.0)
        q_read[:, j] -= np.deg2rad(amount)
    elif kind == "gain":
        amount *= rng.uniform(5.0, 30.0)
        planted[:, j] *= 1.0 + amount / 100.0
    elif kind == "spring":
        amount *= rng.uniform(0.1, 0.4) * rms[j] / states[0][:, j].std()
        planted[:, j] += amount * states[0][:, j]
    elif kind == "drift":
        amount *= rng.uniform(0.1, 0.4) * torque[:, j].std()
        planted[:, j] += amount * time / time[-1]
        amount *= 60.0 / time[-1]
    elif kind == "late":
        amount *= rng.uniform(3.0, 15.0)
        shifted = [np.ascontiguousarray(x) for x in path(time - 1e-3 * amount)]
        planted[:, j] = inverse_dynamics(truth, *shifted)[:, j]
    noise = NOISE * rms
    effort = planted + unmodelled_friction(states[1], torque) + noise * rng.normal(size=planted.shape)
    ratio = likelihood_ratio(robot, [q_read, *states[1:]], planted, effort, noise)
    read = q_read + 1e-5 * rng.normal(size=q_read.shape)
    names = robot.joint_names
    log = Recording(time=time, q=read, effort=effort, joint_names=names)
    concerned = None if kind in ("tilt", "nothing") else names[joint]
    return Case(robot, log, concerned, amount, ratio, (q_read, states[1], states[2]), planted, noise)


def _displacement(robot: Robot, kind: str, joint: int, sign: float, rng: Rng) -> tuple[Floats, float, int]:
    """Displacement (6,) of a joint, the amount as findings print it, and the joint."""
    body = robot.bodies[joint]
    shift = np.zeros(6)
    if kind == "length":
        length = float(np.linalg.norm(body.p_parent_joint))
        change = sign * 0.05 * length
        shift[:3] = change * body.p_parent_joint / length
        return shift, 1000.0 * change, joint
    angle = sign * float(np.deg2rad(rng.uniform(1.0, 6.0)))
    joint = 0 if kind == "tilt" else joint
    axis = robot.gravity if kind == "tilt" else body.R_parent_joint @ body.axis
    shift[3:] = angle * horizontal_axes(axis)[rng.integers(2)]
    return shift, float(np.rad2deg(angle)), joint


def unmodelled_friction(speed: Floats, torque: Floats) -> Floats:
    """(N, n) friction that the usual terms do not hold [N m or N]."""
    return 0.3 * np.sign(speed) * np.exp(-((speed / 0.05) ** 2)) + 0.02 * np.abs(torque) * np.tanh(speed / 0.02)


def likelihood_ratio(
    robot: Robot, states: list[Floats], planted: Floats, effort: Floats, noise: Floats, blocks: int = 0
) -> float:
    """Twice the logarithm of the likelihood ratio of a planted cause, as the torques (N, n) of the log show it.

    What a free fit leaves of the planted torques without noise is the cause's trace. The log shows the part of its own
    residual along this trace, in units of the residual beside it.

    Args:
        robot: What the user believes.
        states: Positions, velocities and accelerations, (N, n) each.
        planted: (N, n) torques with the cause, without noise and unmodelled friction.
        effort: (N, n) torques of the log.
        noise: (n,) standard deviation of the torques' noise.
        blocks: Number of blocks of time whose scatter counts, where residuals are correlated in time. Then the amount
            counts that was planted or that the log shows, whichever is smaller: a real log has causes of its own.
    """
    rows = free_columns(robot, states, planted, noise)
    sizes, vectors = np.linalg.eigh(rows.T @ rows)
    good = sizes > 1e-12 * sizes[-1]
    Q = rows @ (vectors[:, good] / np.sqrt(sizes[good]))
    trace, left = (x - Q @ (Q.T @ x) for x in ((planted / noise).reshape(-1), (effort / noise).reshape(-1)))
    size = max(float(trace @ trace), 1e-300)
    along = float(trace @ left) ** 2 / size
    variance = (float(left @ left) - along) / (len(left) - Q.shape[1] - 1)
    if blocks:
        edges = noise.size * np.linspace(0, len(planted), blocks + 1).astype(int)
        scores = np.add.reduceat(trace * (left - trace * float(trace @ left) / size), edges[:-1])
        return min(size, along) / max(variance, float(scores @ scores) * blocks / (blocks - 1) / size)
    return along / variance


def free_columns(robot: Robot, states: list[Floats], torque: Floats, noise: Floats) -> Floats:
    """(N n, c) weighted columns of all standard parameters, friction of any shape and a common delay, of length one."""
    model = robot.with_terms(RotorInertia(), Viscous(), Coulomb(), Offset())
    Y = regressor(model, *[np.ascontiguousarray(x) for x in states])
    Y = np.concatenate([Y, any_friction(states[1], torque), np.gradient(torque, axis=0)[:, :, None]], axis=2)
    rows = (Y / noise[:, None]).reshape(-1, Y.shape[2])
    scale = np.linalg.norm(rows, axis=0)
    return np.asarray(rows[:, scale > 0.0] / scale[scale > 0.0])


def any_friction(speed: Floats, torque: Floats) -> Floats:
    """(N, n, 6 n) friction of each joint that no usual term holds: it falls or grows with speed, and with load."""
    count = speed.shape[1]
    columns = np.zeros((*speed.shape, 6 * count))
    for j in range(count):
        v = speed[:, j]
        shapes = [np.tanh(v / (share * np.abs(v).max())) for share in (0.01, 0.03, 0.1, 0.3)]
        columns[:, j, 6 * j : 6 * j + 6] = np.stack([*shapes, v * np.abs(v), np.sign(v) * np.abs(torque[:, j])], axis=1)
    return columns


def judge(kind: str, case: Case) -> tuple[str, float, str]:
    """How the gate speaks of a case, how many standard errors its value is off, and what it says."""
    wanted = CODES[kind]
    findings = check_recording(case.log, case.robot).findings
    found = [f for f in findings if f.code in (*CODES.values(), "change") or f.severity != "note"]
    text = "; ".join(f"{f.code} {f.joint or ''} {dict(f.evidence)}" for f in found)
    if kind == "nothing":
        return "accused" if found else "named", np.nan, text
    for finding in found:
        if finding.code == wanted and finding.joint == case.joint and kind != "angle":
            value, error = list(finding.evidence.values())[:2]
            return "named", (value - case.amount) / error, text
        if finding.code == wanted and finding.joint == case.joint:
            return "named", np.nan, text
    if any(case.left_after(finding) < SHOWN for finding in found):
        return "equal", np.nan, text
    if any(f"{wanted} of {case.joint or 'joint1'}" in finding.remedy for finding in found):
        return "mentioned", np.nan, text
    if found:
        return "confused", np.nan, text
    return "untestable" if is_called_untestable(kind, case, findings) else "silent", np.nan, text


def is_called_untestable(kind: str, case: Case, findings: Sequence[Finding]) -> bool:
    """Whether the gate says that the log cannot show an error of the planted kind and joint."""
    phrases = {"length": "length of ", "zero": "zero of ", "gain": "gain of ", "late": "torque of one joint: "}
    if kind not in phrases:
        return False
    named = next(joint.parent for joint in case.robot.joints if joint.name == case.joint) if kind == "length" else None
    for note in (finding.message for finding in findings if finding.code == "untestable"):
        for part in note.split("; "):
            _, _, names = part.partition(phrases[kind])
            if (named or case.joint) in names.split(", "):
                return True
    return False


def freed(cases: int, first: int) -> int:
    """Free lengths, zeros or the tilt of every log, and count planted amounts within 2 and 3 standard errors."""
    names, kinds = list(TABLES), {"length": "lengths", "zero": "zeros", "tilt": "tilt"}
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for number in range(cases):
        kind, name = list(kinds)[number % 3], names[(number // 3) % 3]
        case = make_case(kind, name, first + number)
        factor = 1000.0 if kind == "length" else np.rad2deg(1.0)
        found = free_geometry(case.robot, [process(case.log)], [kinds[kind]])
        own = [q for q in found.quantities if q.joint == case.joint or kind == "tilt"]
        error = max(quantity.error for quantity in own)
        value = float(np.hypot(*[q.value for q in own])) if kind == "tilt" else own[0].value
        planted = abs(case.amount) if kind == "tilt" else case.amount
        off = abs(factor * value - planted) / (factor * error)
        word = "held" if not np.isfinite(error) else "within 2" if off < 2.0 else "within 3" if off < 3.0 else "beyond"
        table[kind][word] += 1
        if word == "beyond":
            print(f"    {kind} {planted:+.4g} of {case.joint} on {name}, seed {first + number}: {factor * value:.4g} "
                  f"+- {factor * error:.2g}, ratio {case.ratio:.0f}", flush=True)  # fmt: skip
    for kind, counts in table.items():
        print(kind, dict(counts))
    return int(any(counts["beyond"] for counts in table.values()))


PRINTED = re.compile(r"\s+(?:\w+: )?(\w+) \S+ of \S+ on (\w+), seed (\d+), ratio")
"""A case as `main` prints it."""


def again(printed: Path) -> int:
    """Judge printed cases once more, and say what is left of the planted cause beside the named one."""
    counts = Counter[tuple[str, str]]()
    for kind, name, seed in (found.groups() for found in map(PRINTED.match, printed.open()) if found):
        case = make_case(kind, name, int(seed))
        word, _, _ = judge(kind, case)
        counts[kind, word] += 1
        named = [f for f in check_recording(case.log, case.robot).findings if f.code in CODES.values()]
        left = ", ".join(f"{f.code} of {f.joint} leaves {case.left_after(f):.1f}" for f in named)
        print(f"    {word}: {kind} of {case.joint} on {name}, seed {seed}, ratio {case.ratio:.0f}: {left}", flush=True)
    print("; ".join(f"{kind} {word} {count}" for (kind, word), count in sorted(counts.items())))
    return int(any(word == "silent" for _, word in counts))


def main(cases: int, first: int, kinds: list[str]) -> int:
    """Run the campaign and print a table; the exit code says whether the goals were met."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    near: dict[str, list[bool]] = defaultdict(list)
    names = list(TABLES)
    for number in range(cases):
        kind, name = kinds[number % len(kinds)], names[(number // len(kinds)) % len(names)]
        case = make_case(kind, name, first + number)
        word, off, text = judge(kind, case)
        shown = case.ratio > SHOWN or kind == "nothing"
        table[kind][word if shown else f"hidden {word}"] += 1
        if np.isfinite(off):
            near[kind].append(abs(off) <= 2.0)
        if shown and word != "named":
            print(f"    {word}: {kind} {case.amount:+.3g} of {case.joint} on {name}, seed {first + number}, "
                  f"ratio {case.ratio:.0f}: {text or 'nothing'}", flush=True)  # fmt: skip
    words = [*WORDS, "accused", *(f"hidden {word}" for word in WORDS)]
    print(f"{'':10s}" + "".join(f"{word:>18s}" for word in words) + "   within 2 sigma")
    for kind in kinds:
        hits = near[kind]
        share = f"{sum(hits)} of {len(hits)}" if hits else "-"
        print(f"{kind:10s}" + "".join(f"{table[kind][word]:18d}" for word in words) + f"   {share}")
    silent = sum(table[kind]["silent"] for kind in kinds)
    return int(silent > 0 or table["nothing"]["accused"] > 0.01 * max(sum(table["nothing"].values()), 1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["freed"]:
        raise SystemExit(freed(*(int(word) for word in (*sys.argv[2:4], *("90", "0")[len(sys.argv) - 2 :]))))
    if sys.argv[1:2] == ["again"]:
        raise SystemExit(again(Path(sys.argv[2])))
    numbers = [int(word) for word in sys.argv[1:3]]
    chosen = sys.argv[3:] or list(CODES)
    raise SystemExit(main(*(numbers or [360]), *([0] if len(numbers) < 2 else []), chosen))
