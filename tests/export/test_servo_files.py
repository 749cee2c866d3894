"""Files of identified servos: MuJoCo simulates the written file as we do; what is missing is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import dynid
from dynid.export.mjcf_actuators import put_actuators, servo_attributes
from dynid.export.servo_config import _torque_speed_line
from dynid.export.servo_robot import (
    drive_gains,
    limits_of,
    write_servo_mjcf,
    write_servo_urdf,
)
from dynid.robot.parts import JointLimits
from dynid.servos import CommandedMotion, MotorLaw, PositionLaw, ServoModel, ServoParameter
from dynid.servos.drive_laws import Seen
from dynid.servos.servo_identification import ActuatorEstimate, fit_servos
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum

KINDS = (
    ServoParameter("armature", start=0.03), ServoParameter("viscous", start=0.2), ServoParameter("coulomb", start=0.15),
)  # fmt: skip


def _fitted(model: ServoModel) -> tuple[ActuatorEstimate, CommandedMotion]:
    motion = planted(model, model.start, chirp(model.robot, duration_s=3.0), 1e-4, seed=0)
    return fit_servos(model, [motion]), motion


def _found(*more: ServoParameter) -> tuple[ActuatorEstimate, CommandedMotion]:
    return _fitted(ServoModel(double_pendulum(), PositionLaw(kp=20.0, kd=1.0), (*KINDS, *more)))


def _in_mujoco(path: Path, motion: CommandedMotion, every: int = 20) -> np.ndarray:
    """(N, n) positions that MuJoCo gives with the written file, each command held until the next one."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = motion.period_s / every
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.qpos[:] = motion.position[0]
    rows = [data.qpos.copy()]
    for command in motion.command[:-1]:
        data.ctrl[:] = command
        for _ in range(every):
            mujoco.mj_step(model, data)
        rows.append(data.qpos.copy())
    return np.array(rows)


def test_mujoco_simulates_the_written_file_as_we_do(tmp_path: Path) -> None:
    found, motion = _found(ServoParameter("effort_limit", start=6.0), ServoParameter("offset", start=0.3))
    written = write_servo_mjcf(found, tmp_path / "servos.xml")
    # the limit of the second joint is never reached: it is no estimate
    assert [text.split(":")[0] for text in written.missing] == ["effort_limit second"]
    assert np.abs(found.simulate(motion) - _in_mujoco(written.path, motion)).max() < 3e-3
    assert np.abs(motion.command - motion.position).max() > 0.1


def test_mujoco_simulates_a_motor_with_its_back_emf_and_changed_links(tmp_path: Path) -> None:
    """At full duty cycle the back-EMF still brakes."""
    parameters = (
        *KINDS, ServoParameter("kt", start=0.9, free=False), ServoParameter("resistance", start=4.0, free=False),
        ServoParameter("link_mz", start=-0.02),
    )  # fmt: skip
    found, motion = _fitted(ServoModel(double_pendulum(), MotorLaw(kp=6.0, voltage=24.0), parameters, step_s=0.0005))
    assert np.abs(6.0 * (motion.command - motion.position)).max() > 1.0  # the duty cycle is limited
    written = write_servo_mjcf(found, tmp_path / "servos.xml")
    assert np.abs(found.simulate(motion) - _in_mujoco(written.path, motion)).max() < 3e-3


@pytest.mark.parametrize("tag", ["position", "motor"])
def test_every_joint_has_one_servo_and_other_actuators_stay(tag: str) -> None:
    root = ElementTree.fromstring(
        f'<mujoco><actuator><{tag} joint="b" kp="3"/><motor name="w" joint="wheel"/><motor name="rope" tendon="t"/>'
        '<general name="b_servo" site="s"/></actuator><sensor><actuatorpos name="e" actuator="w"/></sensor>'
        '<keyframe><key name="home" ctrl="1 2 3 4"/></keyframe></mujoco>'
    )
    told = put_actuators(root, {"b": servo_attributes(20.0, 1.5, None)})
    assert [(one.tag, one.get("name")) for one in root[0]] == [
        ("general", "b_servo_"), ("motor", "w"), ("motor", "rope"), ("general", "b_servo"),
    ]  # fmt: skip
    assert root[0][0].attrib["biasprm"] == "0 -20.0 -1.5"
    assert len(root[1]) == 1
    assert ("ctrl" in root[2][0].attrib, len(told)) == ((True, 0) if tag == "position" else (False, 1))
    assert len(put_actuators(root, {"c": servo_attributes(1.0, 0.0, 2.0)})) == (tag == "position")
    assert root[0][-1].attrib["forcerange"] == "-2.0 2.0"


def test_a_motor_is_a_position_servo_with_a_back_emf() -> None:
    """Torque kt (V g kp e - kt dq) / R, at most what the full voltage or the largest current gives."""
    law = MotorLaw(kp=5.0, voltage=12.0)
    table = {"kt": np.array([0.5, 0.2]), "resistance": np.array([4.0, 8.0]), "gain_scale": np.array([1.1, 1.0])}
    found: Any = SimpleNamespace(table=table, model=SimpleNamespace(law=law, dof=2))
    kp, kd = drive_gains(found)
    unsaturated = law.torque({k: v[0] for k, v in table.items()}, Seen(0.01, 0.0, 0.2, 0.0, 5.0, 0.0, 0.0, 12.0))[0]
    assert kp[0] * 0.01 - kd[0] * 0.2 == pytest.approx(unsaturated)
    np.testing.assert_allclose(limits_of(found), [1.5, 0.3])
    np.testing.assert_allclose([*_torque_speed_line(found).values()], [[1.5, 0.3], [24.0, 60.0], [3.0, 0.6]])
    table["current_limit"] = np.array([2.0, 2.0])
    np.testing.assert_allclose(limits_of(found), [1.0, 0.3])
    np.testing.assert_allclose(_torque_speed_line(found)["effort_limit"], [1.0, 0.4])


def test_a_position_servo_has_scaled_gains_and_a_line_of_torque_and_speed() -> None:
    law = PositionLaw(kp=20.0, kd=2.0)
    table = {kind: np.array([value]) for kind, value in (
        ("gain_scale", 3.0), ("kp_scale", 1.5), ("kd_scale", 0.25), ("stall_torque", 4.0), ("no_load_speed", 9.0))
    }  # fmt: skip
    found: Any = SimpleNamespace(table=table, model=SimpleNamespace(law=law, dof=1))
    assert np.ravel(drive_gains(found)).tolist() == [90.0, 1.5]
    assert np.ravel([*_torque_speed_line(found).values()]).tolist() == [4.0, 9.0, 8.0]
    table["effort_limit"] = np.array([3.0])
    assert (_torque_speed_line(found)["effort_limit"], limits_of(found)) == (3.0, 3.0)


@pytest.mark.parametrize("source", ["none", "degrees"])
def test_limits_hold_the_motion_where_zeros_move_it_beyond_them(source: str, tmp_path: Path) -> None:
    """The encoder reads 0.3 rad less than it should: the joint goes beyond its limit, by the description's zero."""
    robot = double_pendulum()
    robot = robot.with_limits({"first": JointLimits(lower=-0.9, upper=0.9)})
    if source == "degrees":  # a file of its own, whose angles are degrees
        dynid.write_mjcf(robot, tmp_path / "arm.xml")
        text = (tmp_path / "arm.xml").read_text().replace('angle="radian" ', "")
        (tmp_path / "arm.xml").write_text(re.sub(r'range="-0\.9\d* 0\.9\d*"', 'range="-51.566 51.566"', text))
        robot = dynid.read_mjcf(tmp_path / "arm.xml")
    zero = ServoParameter("zero", start=[-0.3, 0.0], free=False)
    found, motion = _fitted(ServoModel(robot, PositionLaw(kp=20.0, kd=1.0), (*KINDS, zero)))
    highest = float(motion.position[:, 0].max()) + 0.3
    assert highest > 0.95
    assert found.beyond_limits == ("first",)
    assert "beyond-limits" in {finding.code for finding in found.findings}
    written = write_servo_mjcf(found, tmp_path / "servos.xml")
    assert any(text.startswith("first: the readings less their zero") for text in written.missing)
    shift = np.array([0.3, 0.0])
    shifted = replace(motion, position=motion.position + shift, command=motion.command + shift)
    simulated = found.simulate(motion) + shift
    assert np.abs(simulated - _in_mujoco(written.path, shifted)).max() < 3e-3
    urdf = dynid.read_urdf(write_servo_urdf(found, tmp_path / "servos.urdf").path)
    low, high = found.reach[0]
    assert high == pytest.approx(highest)
    for limits in (arm.moving_joints[0].limits for arm in (urdf, dynid.read_mjcf(written.path))):
        assert limits.upper == pytest.approx(high + 0.1 * (high - low))
        assert limits.lower == pytest.approx(-0.9 if low > -0.9 else low - 0.1 * (high - low), rel=1e-5)


def test_what_a_format_cannot_hold_is_said(tmp_path: Path) -> None:
    found, _ = _found(ServoParameter("delay", start=0.01, free=False), ServoParameter("zero", start=0.02, free=False))
    missing = write_servo_mjcf(found, tmp_path / "servos.xml").missing
    assert {text.split(":")[0] for text in missing} == {"delay", "zero"}
    urdf = write_servo_urdf(found, tmp_path / "servos.urdf")
    assert {text.split(":")[0] for text in urdf.missing} == {"delay", "zero", "armature", "the law of the drives"}
    terms = dynid.read_urdf(urdf.path).terms
    np.testing.assert_allclose(terms[0].term.value, found.values[2], rtol=1e-6)
    hanging = replace(found, model=replace(found.model, robot=found.model.robot.with_gravity((0.0, 0.0, 9.81))))
    urdf = write_servo_urdf(hanging, tmp_path / "hanging.urdf")
    assert any(text.startswith("gravity (0, 0, 9.81) m/s^2") for text in urdf.missing)
    mjcf = write_servo_mjcf(hanging, tmp_path / "hanging.xml")
    assert dynid.read_mjcf(mjcf.path).gravity.tolist() == [0.0, 0.0, 9.81]


def test_isaac_settings_are_plain_data_with_every_joint() -> None:
    found, _ = _found(ServoParameter("delay", start=0.01, free=False))
    settings = json.loads(json.dumps(dynid.export.isaac_actuators(found)))
    assert settings["class"] == "DelayedPDActuatorCfg"
    assert settings["min_delay"] == settings["max_delay"] == 2
    assert settings["stiffness"] == {"first": 20.0, "second": 20.0}
    np.testing.assert_allclose(list(settings["armature"].values()), found.values[:2])
    assert settings["missing"] == []
