"""The objects that the examples of docstrings share; docs/api.md shows this text."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from support.api_reference import SHARED

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


def shared_names(folder: Path) -> dict[str, Any]:
    """Make the objects by name, and the files in a folder."""
    import numpy as np

    from dynid.payload.load import NAMES
    from support.header_styles import write_columns
    from support.servo_logs import write_lerobot

    names: dict[str, Any] = {}
    exec(SHARED, names)
    for name, log in (("held", names["log3"]), ("run1", names["log2"])):
        header = ["time,q0,q1,q2,effort0,effort1,effort2"]
        write_columns(folder / f"{name}.csv", header, [log.time, log.q, log.effort])
    (folder / "map.toml").write_text(MAP)
    (folder / "arm.usda").write_text(ASSET)
    (folder / "box.urdf").write_text(URDF)
    load = names["load"]
    file = {"parameters": dict(zip(NAMES, load.vector.tolist(), strict=True)), "frame": load.frame,
            "covariance": load.covariance.tolist(), "method": load.method}  # fmt: skip
    (folder / "load.json").write_text(json.dumps(file))
    if find_spec("pyarrow"):
        columns = {"observation.state": log.q, "observation.effort": log.effort}
        columns |= {"timestamp": log.time, "episode_index": np.zeros(len(log.time), dtype=int)}
        write_lerobot(folder / "lerobot", list(log.joint_names), 100, columns)
    return {**names, "folder": folder}
