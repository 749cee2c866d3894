"""Writes docs/api.md: the public names, package by package, from whose docstrings mkdocstrings makes the reference.

Run: ``python tests/support/api_reference.py``
"""

from __future__ import annotations

import inspect
from pathlib import Path

import dynid

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
wrench = dynid.compiled.wrench_regressor(robot, "link3", run.q, run.dq, run.ddq) @ load.vector
wrist = replace(run, wrench=wrench + 0.01 * np.random.default_rng(0).normal(size=wrench.shape))
law = dynid.control_loop.assumed_law(robot, 6.0)  # PD with a bandwidth of 6 Hz
reference = dynid.control_loop.ReferenceMotion.of(motion, rate_hz=500.0, duration_s=2.0)
loop = dynid.control_loop.Loop(law=law, reference=reference)
servo = dynid.servos.ServoModel(pendulum, dynid.servos.PositionLaw(kp=60.0, kd=2.0))
ticks = np.arange(0.0, 3.0, 0.01)
sent = np.sin(3.0 * ticks**1.2)[:, None]  # commands of a servo, and what its encoder reads
sensed = dynid.servos.CommandedMotion(joint_names=pendulum.joint_names, time=ticks, command=sent, position=sent)
sensed = replace(sensed, position=dynid.servos.simulate_servos(servo, [0.05, 0.4, 0.3], sensed))
servos = dynid.identify_actuators(pendulum, [sensed], law=servo.law)
"""
"""Besides, ``folder`` has the logs ``run1.csv`` and ``held.csv`` with their channel map ``map.toml``, the data set
``lerobot``, the load ``load.json``, the robot ``box.urdf`` and the USD asset ``arm.usda``."""
PAGE = Path(__file__).parents[2] / "docs" / "api.md"
OPENING = """---
search:
  boost: 0.1
---

# Public names

`help(dynid.NAME)` prints the same text. Robots that are built in: `dynid.robots`, listed by `dynid robots`. The
examples share these objects, and a `folder` with the log `run1.csv` and its channel map `map.toml`:

```python
{shared}
```
"""


def reference() -> str:
    """The page."""
    front = {name: module for module, names in dynid._HOME.items() for name in names}
    parts = [OPENING.format(shared=SHARED.rstrip()), section("dynid", "What most programs need.", front)]
    for package in dynid.PACKAGES:
        module = getattr(dynid, package)
        homes = {
            name: f"dynid.{package}.{home}" for home, names in getattr(module, "NAMES", {}).items() for name in names
        }
        homes = homes or {name: f"dynid.{package}" for name in module.__all__}
        others = {name: home for name, home in homes.items() if name not in front}
        if others:
            parts.append(section(f"dynid.{package}", (inspect.getdoc(module) or "").partition("\n")[0], others))
    return "\n".join(parts)


def section(title: str, first: str, homes: dict[str, str]) -> str:
    """A package with its names."""
    names = "\n".join(f"::: {homes[name]}.{name}" for name in sorted(homes, key=str.lower))
    return f"## {title}\n\n{first}\n\n{names}\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
