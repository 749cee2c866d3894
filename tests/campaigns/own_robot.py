"""The way of a newcomer with an own robot, by commands of the docs alone; ``make own-robot``.

Writes the URDF of a five-joint arm, designs two motions, simulates the arm in MuJoCo under PD control with other
masses, rotors and friction than the URDF says, records noisy positions in degrees and torques, and runs inspect, check,
identify, validate, codegen and report. Where identify advises to compare with a fit without slow samples, this fit is
made as well, and the result that counts. Prints the planted friction beside the identified one, the held-out errors,
and the time that everything took.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from dynid.export.result_file import read_result
from dynid.links.rich.joint_friction import joint_friction

Floats = NDArray[np.float64]
LINKS = {  # mass [kg], centre of mass [m], moments of inertia [kg m^2]
    "shoulder": (4.0, "0 0 0.05", (0.03, 0.03, 0.02)),
    "upper_arm": (3.5, "0.15 0 0", (0.01, 0.05, 0.05)),
    "forearm": (2.2, "0.12 0 0.01", (0.006, 0.025, 0.025)),
    "wrist": (1.0, "0.03 0 0", (0.002, 0.003, 0.003)),
    "hand": (0.8, "0.04 0 0.01", (0.001, 0.0018, 0.0018)),
}
JOINTS = (  # name, parent, child, origin, turn, range, speed, effort
    ("waist", "base", "shoulder", "0 0 0.2", "0 0 0", (-2.8, 2.8), 2.5, 60),
    ("lift", "shoulder", "upper_arm", "0 0 0.12", "1.5708 0 0", (-0.5, 2.4), 2.5, 80),
    ("elbow", "upper_arm", "forearm", "0.35 0 0", "0 0 0", (-2.4, 2.4), 3.0, 40),
    ("roll", "forearm", "wrist", "0.28 0 0", "0 1.5708 0", (-3.0, 3.0), 4.0, 15),
    ("bend", "wrist", "hand", "0 0 0.08", "-1.5708 0 0", (-1.8, 1.8), 4.0, 12),
)
FACTORS = (1.15, 0.85, 1.2, 1.1, 0.9)
"""Planted masses and moments of inertia, as multiples of those of the URDF."""
VISCOUS, DRY, ROTORS = (1.5, 1.2, 0.8, 0.3, 0.2), (2.0, 1.8, 1.0, 0.5, 0.4), (0.10, 0.10, 0.05, 0.02, 0.02)
"""Planted friction [N m s/rad, N m] and rotor inertias [kg m^2]."""
KP, KD = np.array([400.0, 400, 200, 60, 40]), np.array([40.0, 40, 20, 4, 3])
STEP_S, RATE_HZ = 0.0005, 250
ADVICE = "--set dead_band=0.2"
"""What a note of identify advises where joints stick at reversals; it is followed, as a newcomer would."""


def urdf() -> str:
    """The robot as its data sheet has it."""
    parts = ['<robot name="bench_arm"><link name="base"/>']
    for name, (mass, com, (ixx, iyy, izz)) in LINKS.items():
        inertia = f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/>'
        body = f'<origin xyz="{com}" rpy="0 0 0"/><mass value="{mass}"/>{inertia}'
        parts.append(f'<link name="{name}"><inertial>{body}</inertial></link>')
    for name, parent, child, xyz, rpy, (low, high), speed, effort in JOINTS:
        limit = f'<limit lower="{low}" upper="{high}" velocity="{speed}" effort="{effort}"/>'
        place = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/>'
        parts.append(f'<joint name="{name}" type="revolute">{place}<axis xyz="0 0 1"/>{limit}</joint>')
    return "\n".join([*parts, "</robot>"])


def planted(path: Path = Path("arm.urdf")) -> mujoco.MjModel:
    """The arm as it is: other masses, rotors, friction."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = STEP_S
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for body, factor in zip(range(model.nbody - len(FACTORS), model.nbody), FACTORS, strict=True):
        model.body_mass[body] *= factor
        model.body_inertia[body] *= factor
    model.dof_damping[:], model.dof_frictionloss[:], model.dof_armature[:] = VISCOUS, DRY, ROTORS
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def record(model: mujoco.MjModel, plan: Path, log: Path, seed: int) -> None:
    """Follow a plan under PD control with compensated gravity, and write a noisy log."""
    table = np.genfromtxt(plan, delimiter=",", names=True)
    names = [joint[0] for joint in JOINTS]
    clock = np.arange(0.0, table["time"][-1], 2 * STEP_S)
    q, dq = (np.column_stack([np.interp(clock, table["time"], table[f"{kind}_{name}"]) for name in names])
             for kind in ("q", "dq"))  # fmt: skip
    found = follow(model, clock, q, dq, seed)
    found[:, 1:6] = np.degrees(found[:, 1:6])
    head = ["time [s]", *(f"{name} position [deg]" for name in names), *(f"{name} torque [Nm]" for name in names)]
    np.savetxt(log, found, delimiter=",", header=",".join(head), comments="", fmt="%.8g")


def follow(model: mujoco.MjModel, clock: Floats, q: Floats, dq: Floats, seed: int) -> Floats:
    """(N, 11) noisy log of a motion: time [s], positions [rad], torques [N m].

    Args:
        model: The arm.
        clock: (M,) control instants [s].
        q: (M, 5) wanted positions [rad] ...
        dq: ... and speeds [rad/s].
        seed: Seed of the noise.
    """
    data, rows = mujoco.MjData(model), []
    data.qpos[:] = q[0]
    for k, now in enumerate(clock):
        mujoco.mj_forward(model, data)
        torque = KP * (q[k] - data.qpos) + KD * (dq[k] - data.qvel) + data.qfrc_bias
        data.qfrc_applied[:] = torque
        if k % round(0.5 / STEP_S / RATE_HZ) == 0:
            rows.append([now, *data.qpos, *torque])
        mujoco.mj_step(model, data, 2)
    found, rng = np.array(rows), np.random.default_rng(seed)
    found[:, 1:6] += 2e-5 * rng.normal(size=(len(found), 5))
    found[:, 6:] += 0.1 * rng.normal(size=(len(found), 5))
    return found


def dynid(*words: str, into: str | None = None) -> str:
    """Run a command as printed in the docs; stops where it fails."""
    print(f"$ dynid {' '.join(words)}{f' > {into}' if into else ''}", flush=True)
    done = subprocess.run([sys.executable, "-m", "dynid", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"ended with {done.returncode}: {done.stderr[-800:]}{done.stdout[-800:]}")
    if into:
        Path(into).write_text(done.stdout, encoding="utf-8")
    return done.stdout


def main() -> int:
    """Walk the way; the exit code is 1 if a command fails, or more than two of ten frictions lie outside at its end."""
    begun = time.perf_counter()
    os.chdir(tempfile.mkdtemp())
    Path("arm.urdf").write_text(urdf(), encoding="utf-8")
    dynid("check", "arm.urdf")
    dynid("base", "arm.urdf")
    for number in (1, 2):
        plan = ("--acceleration", "10", "--time-limit", "15", "--set", "speed_coverage=0.5", "--set", f"seed={number}")
        dynid("excite", "arm.urdf", *plan, "--out", f"plan{number}")
        record(planted(), Path(f"plan{number}", "trajectory.csv"), Path(f"run{number}.csv"), number)
    dynid("inspect", "run1.csv", "--robot", "arm.urdf", into="map.toml")
    dynid("check", "run1.csv", "--map", "map.toml", "--robot", "arm.urdf")
    identify = ("identify", "arm.urdf", "run1.csv", "--map", "map.toml", "--validate", "run2.csv")
    said = dynid(*identify, "--out", "first")
    print(said)
    outside, run = print_friction("first"), "first"
    if ADVICE in " ".join(said.split()):
        print(dynid(*identify, *ADVICE.split(), "--out", "second"))
        outside, run = print_friction("second"), "second"
    dynid("validate", run, "run2.csv", "--map", "map.toml")
    dynid("codegen", run, "--out", "code")
    dynid("report", run)
    print(f"all commands and simulations took {time.perf_counter() - begun:.0f} s")
    return int(outside > 2)


def print_friction(run: str) -> int:
    """Print planted and found friction of a run; how many of ten figures lie outside their intervals."""
    saved, outside = read_result(run), 0
    errors = saved.content["validation"]["per_joint_percent"]
    print("joint    planted dry, viscous    found                           held-out error [%]")
    for friction, dry, viscous in zip(joint_friction(saved.identification()), DRY, VISCOUS, strict=True):
        found = f"{friction.dry.text}, {friction.viscous.text}"
        print(f"{friction.name:8s} {dry:g}, {viscous:g}".ljust(33) + found.ljust(32) + f"{errors[friction.name]:.3g}")
        for band, truth in ((friction.dry, dry), (friction.viscous, viscous)):
            outside += abs(band.value - truth) > 1.96 * band.stderr
    print(f"{outside} of {2 * len(DRY)} planted frictions lie outside their 95 % intervals")
    return outside


if __name__ == "__main__":
    sys.exit(main())
