"""Files of identified servos: MuJoCo simulates the written file as we do; what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.actuators import ActuatorEstimate, CommandedMotion, MotorLaw, PositionLaw, ServoModel, ServoParameter
from dynid.actuators.identify_actuators import fit_servos
from dynid.errors import ExportError
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum, pendulum

KINDS = (
    ServoParameter("armature", start=0.03), ServoParameter("viscous", start=0.2), ServoParameter("coulomb", start=0.15),
)  # fmt: skip


def _found(*more: ServoParameter) -> tuple[ActuatorEstimate, CommandedMotion]:
    robot = double_pendulum()
    model = ServoModel(robot, PositionLaw(kp=20.0, kd=1.0), (*KINDS, *more))
    motion = planted(model, model.start, chirp(robot, duration_s=3.0), 1e-4, seed=0)
    return fit_servos(model, [motion]), motion


def test_mujoco_simulates_the_written_file_as_we_do(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    found, motion = _found(ServoParameter("effort_limit", start=6.0))
    written = dynid.export.write_servo_mjcf(found, tmp_path / "servos.xml")
    assert written.missing == ()
    model = mujoco.MjModel.from_xml_path(str(written.path))
    every = 20
    model.opt.timestep = motion.period_s / every
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.qpos[:] = motion.position[0]
    rows = [data.qpos.copy()]
    for before, after in zip(motion.command[:-1], motion.command[1:], strict=True):
        for i in range(every):
            data.ctrl[:] = before + (i + 0.5) / every * (after - before)
            mujoco.mj_step(model, data)
        rows.append(data.qpos.copy())
    assert np.abs(found.simulate(motion) - np.array(rows)).max() < 3e-3
    assert np.abs(motion.command - motion.position).max() > 0.1


def test_mujoco_reads_the_joint_attributes(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    found, _ = _found()
    model = mujoco.MjModel.from_xml_path(str(dynid.export.write_servo_mjcf(found, tmp_path / "servos.xml").path))
    table = found.model.table(found.values)
    for field, kind in (("dof_armature", "armature"), ("dof_damping", "viscous"), ("dof_frictionloss", "coulomb")):
        np.testing.assert_allclose(getattr(model, field), table[kind], rtol=1e-9)


def test_what_a_format_cannot_hold_is_said(tmp_path: Path) -> None:
    found, _ = _found(ServoParameter("delay", start=0.01, free=False), ServoParameter("zero", start=0.02, free=False))
    missing = dynid.export.write_servo_mjcf(found, tmp_path / "servos.xml").missing
    assert {text.split(":")[0] for text in missing} == {"delay", "zero"}
    urdf = dynid.export.write_servo_urdf(found, tmp_path / "servos.urdf")
    assert {text.split(":")[0] for text in urdf.missing} == {"delay", "zero", "armature"}
    terms = dynid.read_urdf(urdf.path).terms
    np.testing.assert_allclose(terms[0].term.value, found.values[2], rtol=1e-6)


def test_isaac_settings_are_plain_data_with_every_joint() -> None:
    found, _ = _found(ServoParameter("delay", start=0.01, free=False))
    settings = json.loads(json.dumps(dynid.export.isaac_actuators(found)))
    assert settings["class"] == "DelayedPDActuatorCfg"
    assert settings["min_delay"] == settings["max_delay"] == 2
    assert settings["stiffness"] == {"first": 20.0, "second": 20.0}
    np.testing.assert_allclose(list(settings["armature"].values()), found.values[:2])
    assert settings["missing"] == []


def test_the_json_of_a_servo_needs_one_servo() -> None:
    law = MotorLaw(kp=2.0, voltage=7.4)
    parameters = (*KINDS, ServoParameter("kt", start=0.6), ServoParameter("resistance", start=2.0, free=False))
    model = ServoModel(pendulum(), law, (*parameters, ServoParameter("load_drive", start=0.1)))
    found = fit_servos(model, [planted(model, model.start, chirp(pendulum(), duration_s=3.0), 1e-4, seed=1)])
    constants = dynid.export.servo_friction_json(found)
    assert constants["model"] == "m3"
    assert constants["R"] == 2.0
    assert constants["kt"] == pytest.approx(0.6, rel=0.05)
    with pytest.raises(ExportError):
        dynid.export.servo_friction_json(_found()[0])
