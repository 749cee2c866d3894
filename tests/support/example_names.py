"""The objects that the examples of docstrings share; docs/api.md shows this text."""

from __future__ import annotations

import json
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

    from dynid.payload.load import NAMES

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
