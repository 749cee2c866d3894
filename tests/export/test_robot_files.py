"""Robot files: the plain model, read back from disk and judged beside the whole one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.export.robot_files import FORMATS, RobotFile, describe_files, write_robot_files
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.identification.validation import robot_error, validate
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.mjcf.tendons import FAR
from dynid.robot.formats.urdf import read_urdf, write_urdf
from dynid.robot.zoo import cylindrical, scara
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Coulomb, SmoothSign, Viscous
from dynid.terms.motors import Offset, RotorInertia
from dynid.terms.springs import AngleHarmonic

RANDOM = np.random.default_rng(4).normal(0.0, 3.0, 2)


def logs_of(robot):
    motions = [sum_of_sines(robot.dof, seed=seed) for seed in (1, 2)]
    return [process(simulate_experiment(robot, motion, rate_hz=200, duration_s=8.0)) for motion in motions]


@pytest.fixture(scope="module")
def runs():
    """A spring about the first joint, of random size and direction, and dry friction that no robot file holds."""
    springs = [AngleHarmonic(value, joint=0, sine=sine) for sine, value in zip((False, True), RANDOM, strict=True)]
    smooth = [SmoothSign(4.0, scale=0.01, joint=joint) for joint in range(3)]
    return logs_of(cylindrical().with_terms(RotorInertia(0.3), Viscous(2.0), Offset(0.5), *springs, *smooth))


@pytest.fixture(scope="module")
def fit(runs):
    robot = cylindrical().with_terms(RotorInertia(), Viscous(), Coulomb(), Offset())
    return identify(robot, runs[0], Recipe.bare(springs=(robot.joint_names[0],)))


def test_the_files_hold_the_plain_model(fit, runs, tmp_path):
    check = validate(fit, runs[1])
    urdf, mjcf = write_robot_files(fit, tmp_path, runs[1], check=check)
    plain = fit.identified
    found = read_mjcf(mjcf.path)
    np.testing.assert_allclose(found.inertial_vector, plain.inertial_vector, rtol=1e-9, atol=1e-9)
    assert mjcf.error == pytest.approx(robot_error(plain, runs[1])[0], rel=1e-6)
    assert (mjcf.lacks, urdf.lacks) == ((), ("offset", "angle harmonic"))
    assert mjcf.error == pytest.approx(check.plain_error, rel=0.01)
    # the links of the URDF are the true ones: rotors stand beside them
    found = read_urdf(urdf.path)
    np.testing.assert_allclose(found.inertial_vector, plain.inertial_vector, rtol=1e-9, atol=1e-9)
    for own, joint in zip(plain.moving_joints, found.moving_joints, strict=True):
        expected = {
            type(term): term.value for term in own.terms if not isinstance(term, Offset | AngleHarmonic) and term.value
        }
        assert {type(term): term.value for term in joint.terms} == pytest.approx(expected)
    assert urdf.error == pytest.approx(robot_error(found, runs[1])[0])
    assert urdf.judged == mjcf.judged == check.relative_error
    assert "has no place for offset" in describe_files((urdf, mjcf), "run")


def test_what_the_writer_changed_is_judged(fit, runs, tmp_path, monkeypatch):
    """The error is that of the file, not of the robot that was handed to the writer."""

    def write(robot, path, **options):
        write_urdf(robot.with_parameters(2.0 * robot.parameter_vector), path, **options)

    monkeypatch.setitem(FORMATS, "URDF", replace(FORMATS["URDF"], write=write))
    file, _ = write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1]))
    assert file.error > 80.0  # twice the torque


def test_forces_of_slides_and_torques_are_compared_apart(fit, runs, tmp_path):
    for file in write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1])):
        assert set(file.by_kind) == {"torques [N m]", "forces [N]"}
        assert "forces [N]" in file.sentence
    near = RobotFile(format="URDF", path=tmp_path, error=4.39, judged=4.0, lacks=())
    assert near.is_near
    assert not replace(near, error=4.41).is_near
    assert not replace(near, by_kind={"torques [N m]": (9.0, 1.0), "forces [N]": (1.0, 1.0)}).is_near


def test_mujoco_moves_as_the_plain_model_says(fit, runs, tmp_path):
    """Every sample of MuJoCo's inverse, with the friction loss added, is the plain model's torque."""
    mujoco = pytest.importorskip("mujoco")
    _, mjcf = write_robot_files(fit, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(mjcf.path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, run = mujoco.MjData(model), runs[1]
    # the soft spring of an offset ends at FAR, so that its torque changes a little
    offsets = np.array([abs(p.term.value) for p in fit.identified.terms if isinstance(p.term, Offset)])
    torque = fit.plain.torque(run) + offsets / FAR * run.q
    for row in range(0, run.samples, 7):
        data.qpos[:], data.qvel[:], data.qacc[:] = run.q[row], run.dq[row], run.ddq[row]
        mujoco.mj_inverse(model, data)
        found = data.qfrc_inverse + model.dof_frictionloss * np.sign(run.dq[row])
        np.testing.assert_allclose(found, torque[row], rtol=0.0, atol=1e-9 * np.abs(torque).max())


def test_a_term_without_a_place_is_named_and_left_out(fit, tmp_path):
    second = AngleHarmonic(1.0, joint=0, order=2)
    more = replace(fit, plain=replace(fit.plain, terms=(*fit.plain.terms, second)))
    for file in write_robot_files(more, tmp_path):
        assert "angle harmonic" in file.lacks
    springs = [p.term for p in read_mjcf(file.path).terms if isinstance(p.term, AngleHarmonic)]
    assert [term.order for term in springs] == [1, 1]


def test_couplings_and_gravity_reach_the_mjcf_and_are_named_beside_the_urdf(tmp_path):
    arm = scara().with_terms(RotorInertia(0.3), Viscous(2.0)).with_gravity([0.3, -0.2, 9.8])
    a, b = arm.joint_names[:2]
    arm = arm.with_couplings(Coupling({a: 1.0, b: 1.0}, 0.2, 0.5, 1.0))
    logs = logs_of(arm)
    fit = identify(arm, logs[0], Recipe.bare())
    urdf, mjcf = write_robot_files(fit, tmp_path, logs[1], check=validate(fit, logs[1]))
    assert mjcf.lacks == ()
    assert mjcf.error < 1.1 * max(mjcf.judged, 0.5) < urdf.error
    found = read_mjcf(mjcf.path)
    np.testing.assert_allclose(found.gravity, arm.gravity, atol=1e-12)
    assert robot_error(found, logs[1])[0] == pytest.approx(mjcf.error)
    words = "gravity (0.3, -0.2, 9.8) m/s^2, which the format does not hold: set it where the file is loaded"
    assert words in urdf.lacks
    assert words in urdf.path.read_text()
    unjudged, _ = write_robot_files(fit, tmp_path, force=True)
    assert unjudged.error is None
    assert words in unjudged.sentence
