"""The simulated motion of servos against MuJoCo with small steps, and against itself with half the step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.servos import CommandedMotion, PositionLaw, ServoModel, ServoParameter, simulate_servos
from support.servo_logs import DATASETS, go2_motion, go2_robot

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.skipif(not DATASETS.exists(), reason="the shared data sets are not here")
ARMATURE, VISCOUS, COULOMB, KP, KD = 0.03, 0.3, 0.4, 20.0, 1.5


def _model(step_s: float) -> ServoModel:
    fixed = {"armature": ARMATURE, "viscous": VISCOUS, "coulomb": COULOMB}
    parameters = tuple(ServoParameter(kind, start=value, free=False) for kind, value in fixed.items())
    return ServoModel(go2_robot(), PositionLaw(kp=KP, kd=KD), parameters, step_s=step_s)


def _short() -> CommandedMotion:
    return go2_motion().part(slice(0, 700))


def test_half_the_step_changes_the_motion_by_less_than_the_encoders_resolve() -> None:
    motion = _short()
    default = simulate_servos(_model(ServoModel.step_s), [], motion)
    finest = simulate_servos(_model(ServoModel.step_s / 16), [], motion)
    half = simulate_servos(_model(ServoModel.step_s / 2), [], motion)
    assert np.abs(default - finest).max() < 2e-3
    assert np.sqrt(np.mean((default - finest) ** 2)) < 3e-4
    assert np.sqrt(np.mean((half - finest) ** 2)) < 0.6 * np.sqrt(np.mean((default - finest) ** 2))


def test_mujoco_with_small_steps_moves_the_same_way() -> None:
    motion = _short().part(slice(0, 300))
    h, every = 0.00025, 20
    spec = mujoco.MjSpec.from_string(_without_meshes())
    model = spec.compile()
    model.opt.timestep = h
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.dof_armature[:], model.dof_damping[:], model.dof_frictionloss[:] = ARMATURE, VISCOUS, COULOMB
    model.dof_solref[:] = [0.002, 1.0]  # stiffer than MuJoCo's own, which lets a joint creep within its friction
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(model)
    data.qpos[:] = motion.position[0]
    found = [motion.position[0]]
    for k in range(len(motion.time) - 1):
        for i in range(every):
            command = motion.command[k] + (i + 0.5) / every * (motion.command[k + 1] - motion.command[k])
            data.qfrc_applied[:] = KP * (command - data.qpos) - KD * data.qvel
            mujoco.mj_step(model, data)
        found.append(data.qpos.copy())
    even = replace(motion, time=h * every * np.arange(len(motion.time)), held=False)
    ours = simulate_servos(_model(0.00125), [], even)
    assert np.abs(np.array(found) - ours).max() < 2e-3
    assert np.ptp(ours, axis=0).min() > 0.2


def _without_meshes() -> str:
    """The description without what needs mesh files, and with the base held."""
    import re

    text = (DATASETS / "go2" / "go2.xml").read_text()
    text = re.sub(r"<mesh [^>]*/>|<geom[^>]*mesh=[^>]*/>|<freejoint/>", "", text)
    return re.sub(r"<keyframe>.*?</keyframe>", "", text, flags=re.DOTALL)
