"""The objects that the examples of docstrings share; docs/api.md shows this text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SHARED = """from dataclasses import replace
import numpy as np
import dynid
from dynid.processing.simulation import sum_of_sines

robot = dynid.robots.ddarm().with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.3))
q, dq, ddq = np.array([0.1, 0.2, 0.3]), np.ones(3), np.zeros(3)
motion, second = sum_of_sines(3, seed=0), sum_of_sines(3, seed=1)
noise = dynid.Noise(effort=0.1)
log = dynid.simulate_experiment(robot, motion, rate_hz=100, duration_s=6, noise=noise)
log2 = dynid.simulate_experiment(robot, second, rate_hz=100, duration_s=6, noise=noise)
run, other = dynid.process(log, cutoff_hz=10), dynid.process(log2, cutoff_hz=10)
fit = dynid.identify(robot, run, dynid.Recipe.bare(), estimator=dynid.WLS())
load = dynid.Load.of(dynid.Inertia.from_com(2.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3)), "link3")
limits = dynid.MotionLimits.from_robot(robot, acceleration=5.0)
bounds = dynid.robot.JointLimits(lower=-1.0, upper=1.0, velocity=2.0, effort=50.0)
bar = dynid.Inertia.from_com(1.0, (0.5, 0.0, 0.0), np.diag([1e-3, 0.08, 0.08]))
pendulum = dynid.from_dh([dynid.DH(alpha=np.pi / 2)], inertias=[bar], limits=[bounds], name="pendulum")
swing = dynid.MotionLimits.from_robot(pendulum, acceleration=5.0)
move = dynid.excitation.minimum_jerk(np.zeros(3), np.full(3, 0.5), duration_s=1.0)
carrying = robot.with_body("load", parent="link3", inertia=load.inertia)
log3 = dynid.simulate_experiment(carrying, motion, rate_hz=100, duration_s=6, noise=noise)
loaded = dynid.process(log3, cutoff_hz=10)  # the motion of run, with the load
wrench = dynid.kernels.wrench_regressor(robot, "link3", run.q, run.dq, run.ddq) @ load.vector
wrist = replace(run, wrench=wrench + 0.01 * np.random.default_rng(0).normal(size=wrench.shape))
law = dynid.loop.assumed_law(robot, 6.0)  # PD with a bandwidth of 6 Hz
reference = dynid.loop.ReferenceMotion.of(motion, rate_hz=500.0, duration_s=2.0)
loop = dynid.loop.Loop(law=law, reference=reference)
servo = dynid.actuators.ServoModel(pendulum, dynid.actuators.PositionLaw(kp=60.0, kd=2.0))
ticks = np.arange(0.0, 3.0, 0.01)
sent = np.sin(3.0 * ticks**1.2)[:, None]  # commands of a servo, and what its encoder reads
sensed = dynid.actuators.CommandedMotion(joint_names=pendulum.joint_names, time=ticks, command=sent, position=sent)
sensed = replace(sensed, position=dynid.actuators.simulate_servos(servo, [0.05, 0.4, 0.3], sensed))
servos = dynid.identify_actuators(pendulum, [sensed], law=servo.law)
"""
"""Besides, ``folder`` has the logs ``run1.csv`` and ``held.csv`` with their channel map ``map.toml``, the data set
``lerobot``, the load ``load.json``, the robot ``box.urdf`` and the USD asset ``arm.usda``."""
_LINK = """    def Xform "link{0}"
    {{
        def PhysicsRevoluteJoint "joint{0}"
        {{
        }}
    }}
"""
ASSET = '#usda 1.0\ndef Xform "arm"\n{\n' + "".join(_LINK.format(number) for number in (1, 2, 3)) + "}\n"
"""A USD asset with prims for the links and joints of the robot."""
MAP = """[time]
column = "time"
unit = "s"
[position]
columns = "q{0..2}"
unit = "rad"
[effort]
columns = "effort{0..2}"
unit = "N m"
"""


URDF = """<robot name="box">
  <link name="base"/>
  <link name="bar">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.5 0.1 0.1"/></geometry></collision>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="base"/><child link="bar"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="1" effort="10"/>
  </joint>
</robot>
"""
"""A robot with a shape."""


def write_lerobot(folder: Path, log: Any) -> None:
    """Write a log as a LeRobot data set of one episode, where pyarrow is installed."""
    import numpy as np

    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return
    names = list(log.joint_names)
    lists = {"observation.state": log.q, "observation.effort": log.effort}
    info = {"codebase_version": "v3.0", "fps": 100, "features": {name: {"names": names} for name in lists}}
    for part in ("meta", "data/chunk-000"):
        (folder / part).mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    columns = {name: pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 3) for name, x in lists.items()}
    rest = {"timestamp": log.time, "episode_index": np.zeros(len(log.time), dtype=int)}
    pq.write_table(pa.table({**columns, **rest}), folder / "data" / "chunk-000" / "file-000.parquet")


def shared_names(folder: Path) -> dict[str, Any]:
    """Make the objects by name, and the files in a folder."""
    import numpy as np

    from dynid.load.load import NAMES

    names: dict[str, Any] = {}
    exec(SHARED, names)
    log = names["log2"]
    table = np.column_stack([log.time, log.q, log.effort])
    header = "time,q0,q1,q2,effort0,effort1,effort2"
    np.savetxt(folder / "run1.csv", table, delimiter=",", comments="", header=header)
    held = names["log3"]
    table = np.column_stack([held.time, held.q, held.effort])
    np.savetxt(folder / "held.csv", table, delimiter=",", comments="", header=header)
    (folder / "map.toml").write_text(MAP)
    (folder / "arm.usda").write_text(ASSET)
    (folder / "box.urdf").write_text(URDF)
    load = names["load"]
    file = {"parameters": dict(zip(NAMES, load.vector.tolist(), strict=True)), "frame": load.frame,
            "covariance": load.covariance.tolist(), "method": load.method}  # fmt: skip
    (folder / "load.json").write_text(json.dumps(file))
    write_lerobot(folder / "lerobot", log)
    return {**names, "folder": folder}
