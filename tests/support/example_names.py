"""The objects that the examples of docstrings share; docs/api.md shows this text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SHARED = """import numpy as np
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
move = dynid.excitation.minimum_jerk(np.zeros(3), np.full(3, 0.5), duration_s=1.0)
"""
"""Besides, ``folder`` has the log ``run1.csv``, its channel map ``map.toml`` and a USD asset ``arm.usda``."""
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


def shared_names(folder: Path) -> dict[str, Any]:
    """Make the objects by name, and the files in a folder."""
    import numpy as np

    names: dict[str, Any] = {}
    exec(SHARED, names)
    log = names["log2"]
    table = np.column_stack([log.time, log.q, log.effort])
    header = "time,q0,q1,q2,effort0,effort1,effort2"
    np.savetxt(folder / "run1.csv", table, delimiter=",", comments="", header=header)
    (folder / "map.toml").write_text(MAP)
    (folder / "arm.usda").write_text(ASSET)
    return {**names, "folder": folder}
