"""The go2 motion simulated with its derivatives by 49 parameters, beside MuJoCo with one-sided differences, in one run.

Both take the same time step over the first 70 % of the log, MuJoCo without contacts and limits. Times are processor
times of one core, the least of some repeats; MuJoCo's is that of one simulation times 50.

Run ``python tests/campaigns/actuator_speed.py``.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core for both
sys.path.insert(0, str(Path(__file__).parents[1]))

import mujoco
import numpy as np
from mujoco import rollout

from dynid.actuators import PositionLaw, ServoModel, ServoParameter
from dynid.actuators.servo_simulator import differentiate_chains
from support.servo_logs import DATASETS, go2_motion, go2_robot

STEP_S = 0.0025
REPEATS = 7


def ours() -> tuple[float, int]:
    """Seconds of one simulation with its derivatives, and the number of parameters."""
    parameters = ("armature", "viscous", "coulomb", "zero", ServoParameter("delay", share="all"))
    model = ServoModel(go2_robot(), PositionLaw(kp=20.0, kd=1.5), parameters, step_s=STEP_S)
    motion = go2_motion().part(slice(0, int(0.7 * len(go2_motion().time))))
    times = []
    for _ in range(REPEATS + 1):
        began = time.process_time()
        differentiate_chains(model, model.start, motion)
        times.append(time.process_time() - began)
    return min(times), len(model.entries)


def theirs() -> float:
    """Seconds of one simulation by MuJoCo with position actuators, the loop over time in MuJoCo's own code."""
    text = (DATASETS / "go2" / "go2.xml").read_text()
    text = re.sub(r"<mesh [^>]*/>|<geom[^>]*mesh=[^>]*/>|<freejoint/>", "", text)
    spec = mujoco.MjSpec.from_string(re.sub(r"<keyframe>.*?</keyframe>", "", text, flags=re.DOTALL))
    for actuator in spec.actuators:
        actuator.gainprm[0], actuator.biastype = 20.0, mujoco.mjtBias.mjBIAS_AFFINE
        actuator.biasprm[1], actuator.biasprm[2] = -20.0, -1.5
    model = spec.compile()
    model.opt.timestep = STEP_S
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    motion, data = go2_motion(), mujoco.MjData(model)
    data.qpos[:] = motion.position[0]
    start = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    steps = 2 * (int(0.7 * len(motion.time)) - 1)
    command = np.repeat(motion.command, 2, axis=0)[:steps]
    times = []
    for _ in range(3):
        began = time.process_time()
        rollout.rollout(model, data, start, command[None])
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    mine, count = ours()
    one = theirs()
    print(f"simulation with derivatives by {count} parameters: {1e3 * mine:.1f} ms")
    print(f"MuJoCo, one simulation: {1e3 * one:.1f} ms; {count + 1} of them: {1e3 * one * (count + 1):.0f} ms")
    print(f"ratio: {one * (count + 1) / mine:.0f}")


if __name__ == "__main__":
    main()
