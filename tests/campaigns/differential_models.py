"""Reads random robot descriptions with dynid and with the program that defines their meaning, and compares.

URDF is read by Pinocchio, MJCF by MuJoCo: where both read a file, the torques of random states must agree.

Run from the root of the repository: ``python -m tests.campaigns.differential_models --count 10000``; status 1 on any
difference.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dynid
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import DynidError
from dynid.robot.model import Robot

AGREEMENT = 1e-7
"""Largest difference of torques, relative to the largest torque and one newton metre."""
LARGEST = 1e6
"""Files with torques beyond this are compared by their rounding alone, and left out."""


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


def _read_urdf(path: Path) -> Robot:
    return dynid.read_urdf(path, snap=False)


FORMATS: dict[str, tuple[str, Callable[..., str], Callable[[Path], Robot], Callable[[str, Robot], Any]]] = {
    "urdf": (".urdf", random_urdf, _read_urdf, urdf_torques),
    "mjcf": (".xml", random_mjcf, dynid.read_mjcf, mjcf_torques),
}


def compare(name: str, count: int, seed: int) -> tuple[int, list[str]]:
    """Compare ``count`` files of a format: how many both programs read, and the differences."""
    suffix, make, read, torques = FORMATS[name]
    compared, findings, rng = 0, [], random.Random(f"{name}-{seed}")
    with tempfile.TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():  # MuJoCo writes a log
        warnings.simplefilter("ignore")
        path = Path(folder) / f"arm{suffix}"
        for number in range(count):
            path.write_text(xml := make(rng))
            try:
                robot = read(path)
                if robot.dof:
                    ours, theirs = torques(xml, robot)
                    size = np.abs(theirs).max(initial=1.0)
                    compared += bool(theirs.size) and size < LARGEST
                    if size < LARGEST and not np.abs(ours - theirs).max(initial=0.0) <= AGREEMENT * size:
                        findings.append(f"file {number}: {ours.tolist()} against {theirs.tolist()}: {xml[:3000]}")
            except (AssertionError, DynidError, ValueError, RuntimeError) as error:
                findings.append(f"file {number}: {error}: {xml[:3000]}")
    return compared, findings


def main() -> int:
    """The campaign's command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = 0
    for name in FORMATS:
        compared, findings = compare(name, options.count, options.seed)
        found += len(findings)
        sys.stdout.writelines([f"{name}: {compared} compared, {len(findings)} differences\n",
                               *(f"    {line}\n" for line in findings[:10])])  # fmt: skip
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
