"""Reads random and mutated robot descriptions with dynid and with the program that defines their meaning, and compares.

URDF is read by Pinocchio, MJCF by MuJoCo. Where both read a file, the torques of random states must agree; where one
refuses, the reason must be in the list of known ones. Mutants are those of `tests.attacks.own_files.break_xml`.

Run from the root of the repository: ``python -m tests.campaigns.differential_models --count 10000``; status 1 on any
difference without an explanation.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import dynid
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import DynidError
from dynid.robot.check import impossible_inertias
from dynid.robot.model import Robot
from tests.attacks.own_files import break_xml

AGREEMENT = 1e-7
"""Largest difference of torques, relative to the largest torque and one newton metre."""
LARGEST = 1e6
"""Files with torques beyond this are compared by their rounding alone, and left out."""


@dataclass
class Tally:
    """What became of the files of one format."""

    compared: int = 0
    both_refuse: int = 0
    left_out: int = 0
    impossible: int = 0
    """Files with other torques whose inertias no body can have, so that every command refuses the robot."""
    ours_refuses: Counter[str] = field(default_factory=Counter)
    """Reason of dynid -> files that the other program reads."""
    theirs_refuses: Counter[str] = field(default_factory=Counter)
    """Reason of the other program -> files that dynid reads."""
    findings: list[str] = field(default_factory=list)


# --- random descriptions ----------------------------------------------------------------------------------------------


def _numbers(rng: random.Random, count: int, scale: float = 1.0) -> str:
    return " ".join(f"{rng.uniform(-scale, scale):.6g}" for _ in range(count))


def _moments(rng: random.Random) -> tuple[float, float, float]:
    a, b, c = (rng.uniform(0.01, 0.3) for _ in range(3))
    return a + b, a + c, b + c


def random_urdf(rng: random.Random) -> str:
    """A tree of two to six links with random joints, frames and inertias; some things are left to their defaults."""
    parts = ['<robot name="r"><link name="l0"/>']
    for k in range(1, rng.randrange(2, 7)):
        xx, yy, zz = _moments(rng)
        turned = f' rpy="{_numbers(rng, 3, 3.0)}"' if rng.random() < 0.5 else ""
        inertial = (
            f'<inertial><origin xyz="{_numbers(rng, 3, 0.3)}"{turned}/><mass value="{rng.uniform(0.1, 9):.5g}"/>'
            f'<inertia ixx="{xx:.6g}" ixy="0" ixz="0" iyy="{yy:.6g}" iyz="0" izz="{zz:.6g}"/></inertial>'
        )
        parts.append(f'<link name="l{k}">{inertial if rng.random() < 0.85 else ""}</link>')
        kind = rng.choice(("revolute", "continuous", "prismatic", "fixed", "revolute"))
        origin = f'<origin xyz="{_numbers(rng, 3)}" rpy="{_numbers(rng, 3, 3.0)}"/>' if rng.random() < 0.8 else ""
        axis = f'<axis xyz="{_numbers(rng, 3)}"/>' if kind != "fixed" and rng.random() < 0.8 else ""
        limit = '<limit lower="-2" upper="2" effort="9" velocity="3"/>' if kind in ("revolute", "prismatic") else ""
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{rng.randrange(k)}"/><child link="l{k}"/>'
            f"{origin}{axis}{limit}</joint>"
        )
    return "\n".join(parts) + "</robot>"


def _orientation(rng: random.Random) -> str:
    return rng.choice(
        ("", f' quat="{_numbers(rng, 4)}"', f' euler="{_numbers(rng, 3, 3.0)}"', f' axisangle="{_numbers(rng, 4)}"',
         f' zaxis="{_numbers(rng, 3)}"', f' xyaxes="{_numbers(rng, 6)}"')
    )  # fmt: skip


def _geom(rng: random.Random) -> str:
    kind, sizes = rng.choice((("sphere", 1), ("capsule", 2), ("cylinder", 2), ("ellipsoid", 3), ("box", 3)))
    size = " ".join(f"{rng.uniform(0.02, 0.3):.4g}" for _ in range(sizes))
    mass = rng.choice(("", f' mass="{rng.uniform(0.1, 5):.4g}"', f' density="{rng.uniform(100, 3000):.5g}"'))
    return f'<geom type="{kind}" size="{size}" pos="{_numbers(rng, 3, 0.3)}"{_orientation(rng)}{mass}/>'


def _joint(rng: random.Random, name: str) -> str:
    kind = rng.choice(("hinge", "hinge", "slide"))
    more = rng.choice(("", ' armature="0.3"', ' class="big"')) + rng.choice(("", f' pos="{_numbers(rng, 3, 0.2)}"'))
    return f'<joint name="{name}" type="{kind}" axis="{_numbers(rng, 3)}"{more}/>'


def _body(rng: random.Random, number: list[int], depth: int) -> str:
    number[0] += 1
    k = number[0]
    joints = "".join(_joint(rng, f"j{k}_{i}") for i in range(rng.choice((0, 1, 1, 1, 2))))
    xx, yy, zz = _moments(rng)
    turned = f' quat="{_numbers(rng, 4)}"' if rng.random() < 0.5 else ""
    inertial = f'<inertial pos="{_numbers(rng, 3, 0.3)}" mass="{rng.uniform(0.2, 8):.4g}" '
    inertial += f'diaginertia="{xx:.5g} {yy:.5g} {zz:.5g}"{turned}/>'
    inside = rng.choice((inertial, _geom(rng), inertial + _geom(rng), _geom(rng) + _geom(rng)))
    below = "".join(_body(rng, number, depth + 1) for _ in range(rng.choice((0, 1, 1, 2)) if depth < 3 else 0))
    return f'<body name="b{k}" pos="{_numbers(rng, 3)}"{_orientation(rng)}>{joints}{inside}{below}</body>'


def random_mjcf(rng: random.Random) -> str:
    """A tree of bodies with random joints, inertias and geoms, defaults and settings of the compiler."""
    compiler = f'angle="{rng.choice(("radian", "degree"))}" inertiafromgeom="{rng.choice(("auto", "true", "auto"))}"'
    default = '<default><default class="big"><joint armature="0.2" damping="0.4"/></default></default>'
    return (
        f'<mujoco model="r"><compiler {compiler}/><option gravity="{_numbers(rng, 3, 9.81)}"/>\n{default}'
        f"<worldbody>{_body(rng, [0], 0)}</worldbody></mujoco>"
    )


# --- the two readings -------------------------------------------------------------------------------------------------


def _states(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (3, count))


def _torques(robot: Robot, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Torques by the recursion in plain NumPy, which need not be compiled for each robot."""
    return np.asarray(newton_euler(robot, robot.parameter_vector, q, dq, ddq), dtype=float)


def _bare(robot: Robot) -> Robot:
    """The robot without friction, which Pinocchio does not count."""
    return replace(robot, joints=tuple(replace(joint, terms=()) for joint in robot.joints))


def urdf_torques(xml: str, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Torques of one state by dynid and by Pinocchio."""
    import pinocchio as pin

    model = pin.buildModelFromXML(xml)
    q, dq, ddq = _states(1, robot.dof)
    ours = _torques(_bare(robot), q, dq, ddq)
    place, speed, change = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    order = [model.getJointId(name) for name in robot.joint_names]
    if model.nv != robot.dof or any(index >= model.njoints for index in order):
        raise AssertionError(f"{model.nv} coordinates, dynid has {robot.dof}")
    for k, index in enumerate(order):
        joint = model.joints[index]
        place[joint.idx_q : joint.idx_q + joint.nq] = q[k] if joint.nq == 1 else (np.cos(q[k]), np.sin(q[k]))
        speed[joint.idx_v], change[joint.idx_v] = dq[k], ddq[k]
    theirs = pin.rnea(model, model.createData(), place, speed, change)
    return ours, np.array([theirs[model.joints[index].idx_v] for index in order])


def mjcf_torques(xml: str, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Torques of one state by dynid and by MuJoCo."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(xml)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_FRICTIONLOSS | off.mjDSBL_CONSTRAINT
    if model.nv != robot.dof or model.nq != robot.dof:
        raise AssertionError(f"{model.nv} coordinates, dynid has {robot.dof}")
    q, dq, ddq = _states(1, robot.dof)
    data = mujoco.MjData(model)
    index = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in robot.joint_names]
    if min(index, default=0) < 0:  # MuJoCo gives no names, dynid invents them
        return np.zeros(0), np.zeros(0)
    data.qpos[index], data.qvel[index], data.qacc[index] = q, dq, ddq
    mujoco.mj_inverse(model, data)
    return _torques(robot, q, dq, ddq), data.qfrc_inverse[index]


def urdf_coordinates(xml: str) -> int:
    """Number of coordinates of a text by Pinocchio."""
    import pinocchio as pin

    return int(pin.buildModelFromXML(xml).nv)


def mjcf_coordinates(xml: str) -> int:
    """Number of coordinates of a text by MuJoCo."""
    import mujoco

    return int(mujoco.MjModel.from_xml_string(xml).nv)


COORDINATES = {urdf_torques: urdf_coordinates, mjcf_torques: mjcf_coordinates}


def _read_urdf(path: Path) -> Robot:
    return dynid.read_urdf(path, snap=False)


FORMATS: dict[str, tuple[str, Callable[..., str], Callable[[Path], Robot], Callable[[str, Robot], Any]]] = {
    "urdf": (".urdf", random_urdf, _read_urdf, urdf_torques),
    "mjcf": (".xml", random_mjcf, dynid.read_mjcf, mjcf_torques),
}

EXPLAINED: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "urdf": {
        "ours": (
            (r"_ holds _, which is not a finite number below _", "Pinocchio takes them, or 0"),
            (r"_ holds _ values, not (one number|_ numbers)", "Pinocchio takes the first of them, or 0"),
            (r"the attribute _ is missing|<(inertia|mass)> is missing", "Pinocchio leaves the link's mass out"),
            (r"a second <\w+> in the same <\w+>", "Pinocchio takes the first; which one is meant is not known"),
            (r"the text is not well-formed XML: .*, after the end", "Pinocchio ignores what follows the root element"),
            (r"the text is not well-formed XML: .*, before the root", "Pinocchio takes the first element named robot"),
            (r"the axis has no direction", "Pinocchio divides by its length of 0"),
        ),
        "theirs": (),
    },
    "mjcf": {
        "ours": (
            (r"_ holds _, which is not a finite number below _", "MuJoCo takes large numbers, and 0"),
            (r"_ holds _ values, not (one number|_ numbers)", "MuJoCo takes the first ones of an <option>"),
            (r"the attribute _ is missing", "MuJoCo invents an inertia at its own place"),
            (r"two orientations: \w+ and \w+", "MuJoCo takes one of them; which one is meant is not known"),
            (r"the text is not well-formed XML: .*, after the end", "MuJoCo ignores what follows the root element"),
            (r"the text is not well-formed XML: .*, after an empty root", "MuJoCo knows models without a moving body"),
            (r"the geom has a volume of _ m\^_, so small .*", "MuJoCo leaves the mass out"),
        ),
        "theirs": (
            (r"Error: mass and inertia of moving bodies must be larger than mjMINVAL .*", "dynid knows massless links"),
        ),
    },
}  # fmt: skip
"""Format -> who refuses -> (the whole reason, without names and numbers, as a pattern; explanation).

What the other program alone refuses needs no explanation where the broken part has no effect: dynid's torques are then
those of the whole file by the other program. Where they are not, the reason starts with `ACTS`, and must stand here.
"""
ACTS = "acts: "
AFTER_END, BEFORE_ROOT, AFTER_EMPTY = ", after the end", ", before the root", ", after an empty root"
"""Beside a reason of dynid: the fault stands behind the root element, and both read all before it alike; it stands
before the root, and both read the root alike; it stands behind the root, in which no program finds a moving body."""


def compare(name: str, count: int, seed: int, share: float = 0.5, only: Sequence[int] = ()) -> Tally:
    """Compare ``count`` files of a format, a share of them mutated; or only those of some numbers."""
    suffix, make, read, torques = FORMATS[name]
    tally, rng = Tally(), random.Random(f"{name}-{seed}")
    with tempfile.TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():  # MuJoCo writes a log
        warnings.simplefilter("ignore")
        path = Path(folder) / f"arm{suffix}"
        for number in range(count):
            whole = make(rng)
            xml = break_xml(rng, whole.encode()).decode() if rng.random() < share else whole
            if only and number not in only:
                continue
            _compare_one(tally, f"file {number}", (xml, whole), lambda text: read(_written(path, text)), torques)
    return tally


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _compare_one(tally: Tally, name: str, texts: tuple[str, str], read: Callable[[str], Robot], torques: Any) -> None:
    """Compare the two readings of a text, given with the one that it was broken from."""
    xml, whole = texts
    ours: Robot | None = None
    reason = ""
    try:
        ours = read(xml)
    except DynidError as error:
        reason = error.reason + place_outside(xml, read, torques)
    if ours is not None and not ours.dof:
        tally.left_out += 1
        return
    try:
        with _quiet():
            result = torques(xml, ours if ours is not None else dynid.robots.ddarm())
    except AssertionError as error:
        if ours is None:
            tally.ours_refuses[_kind(reason)] += 1
        else:
            tally.findings.append(f"{name}: {error}: {xml[:3000]}")
        return
    except DynidError as error:
        tally.findings.append(f"{name}: {error}: {xml[:3000]}")
        return
    except (ValueError, RuntimeError) as error:
        if ours is None:
            tally.both_refuse += 1
        else:
            acts = "" if any(_is_same(text, ours, torques) for text in (whole, _with_limits(xml))) else ACTS
            tally.theirs_refuses[acts + _kind(str(error))] += 1
        return
    if ours is None:
        tally.ours_refuses[_kind(reason)] += 1
        return
    first, second = result
    if not first.size or not np.abs(second).max(initial=0.0) < LARGEST:
        tally.left_out += 1
        return
    tally.compared += 1
    if _agree(first, second):
        return
    if any(impossible_inertias(ours)):
        tally.impossible += 1
    else:
        tally.findings.append(f"{name}: {first.tolist()} against {second.tolist()}: {xml[:3000]}")


_ROOT = re.compile(r"<(robot|mujoco)\b.*?</\1\s*>", re.DOTALL)
EMPTY = "the model has no body"
"""What dynid says of an MJCF root without a body."""


def place_outside(xml: str, read: Callable[[str], Robot], torques: Any) -> str:
    """Where a fault stands that the other program does not see, because it reads the root element alone.

    It is outside of the root, if the other program gets from the whole text what dynid gets from the root by itself.
    """
    root = _ROOT.search(xml)
    if root is None or (not (before := xml[: root.start()].strip()) and not xml[root.end() :].strip()):
        return ""
    try:
        robot = read(root[0])
    except DynidError as error:
        is_empty = error.reason == EMPTY and not any(_coordinates(text, torques) for text in (xml, root[0]))
        return AFTER_EMPTY if is_empty and not before else ""
    is_alike = _is_same(xml, robot, torques) if robot.dof else _coordinates(xml, torques) == 0
    return (BEFORE_ROOT if before else AFTER_END) if is_alike else ""


def _coordinates(xml: str, torques: Any) -> int:
    """Number of coordinates of a text by the other program; -1 where it refuses the text."""
    try:
        with _quiet():
            return COORDINATES[torques](xml)
    except (ValueError, RuntimeError):
        return -1


def _agree(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two sets of torques are the same but for rounding."""
    largest = max(float(np.abs(second).max(initial=0.0)), 1.0)
    return first.shape == second.shape and bool(np.abs(first - second).max(initial=0.0) <= AGREEMENT * largest)


def _is_same(whole: str, robot: Robot, torques: Any) -> bool:
    """Whether dynid's robot of a broken text has the torques that the other program gets from the whole text."""
    try:
        with _quiet():
            return _agree(*torques(whole, robot))
    except (AssertionError, DynidError, ValueError, RuntimeError):
        return False


_JOINT_START = re.compile(r'(<joint name="[^"]*" type="(?:revolute|prismatic)">)(?!.*<limit.*?</joint>)')


def _with_limits(urdf: str) -> str:
    """A URDF with limits at joints that need some, for they do not act on torques."""
    return _JOINT_START.sub(r'\1<limit lower="-2" upper="2" effort="9" velocity="3"/>', urdf)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the messages that the other programs write past Python."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _kind(reason: str) -> str:
    """A reason without the names and numbers of one file."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|-?\d[\d.e+-]*", "_", " ".join(reason.split()))[:100]


def unexplained(name: str, tally: Tally) -> list[str]:
    """Reasons of refusals that the list does not explain."""
    found = []
    for who, reasons in (("ours", tally.ours_refuses), ("theirs", tally.theirs_refuses)):
        for reason, count in reasons.items():
            has_effect = who == "ours" or reason.startswith(ACTS)
            known = (re.fullmatch(pattern, reason.removeprefix(ACTS)) for pattern, _ in EXPLAINED[name][who])
            if has_effect and not any(known):
                found.append(f"{who} refuses {count} files: {reason}")
    return found


def main() -> int:
    """The campaign's command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", choices=sorted(FORMATS))
    parser.add_argument("--only", type=int, nargs="*", default=(), metavar="NUMBER", help="files by their numbers")
    options = parser.parse_args()
    found = 0
    for name in [options.format] if options.format else FORMATS:
        tally = compare(name, options.count, options.seed, only=options.only)
        missing = unexplained(name, tally)
        found += len(tally.findings) + len(missing)
        alone = [sum(reasons.values()) for reasons in (tally.ours_refuses, tally.theirs_refuses)]
        sys.stdout.write(
            f"{name}: {tally.compared} compared, {tally.both_refuse} refused by both, "
            f"{alone[0]} by dynid alone, {alone[1]} by the other alone, "
            f"{tally.left_out} left out, {tally.impossible} with impossible inertias, {len(tally.findings)} findings, "
            f"{len(missing)} reasons without explanation\n"
        )
        sys.stdout.writelines(f"    {line}\n" for line in (*missing, *tally.findings[:10]))
        for who, reasons in (("dynid", tally.ours_refuses), ("the other", tally.theirs_refuses)):
            sys.stdout.writelines(f"    {who} alone, {n} times: {reason}\n" for reason, n in reasons.most_common())
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
