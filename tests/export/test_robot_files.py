"""Robot files: refitted to what the format holds, read back from disk, and judged beside the whole model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.estimation.physical.restriction import restrict_parameters
from dynid.export import robot_files
from dynid.export.restricted_model import restrict_models
from dynid.export.result_file import read_result, write_result
from dynid.export.robot_files import FORMATS, PRESLIDING, RobotFile, describe_files, write_robot_files
from dynid.kernels import inverse_dynamics
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.links.validation import robot_error, validate
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.report.identification_sections import WrittenFiles
from dynid.report.report import identification_page
from dynid.robot.formats.mjcf.gears import takes_gears
from dynid.robot.formats.mjcf.read import parse_mjcf, read_mjcf
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.robot.formats.urdf import read_urdf, write_urdf
from dynid.robot.zoo import cylindrical, ddarm, scara
from dynid.terms.base import Reference
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Coulomb, CubicViscous, QuadraticViscous, SaturatingViscous, SmoothSign, Viscous
from dynid.terms.load_dependent import BaseTilt, DriveGain
from dynid.terms.memory import Hysteresis, LaggedSign
from dynid.terms.motors import RotorInertia

DRY = 4.0
WIDTH = 0.01


@pytest.fixture(scope="module")
def truth():
    """Dry friction that is smooth through zero speed, as a robot file cannot hold it."""
    robot = cylindrical()
    terms = [SmoothSign(DRY, scale=WIDTH, joint=joint) for joint in range(3)]
    return robot.with_terms(RotorInertia(0.3), Viscous(2.0), *terms)


@pytest.fixture(scope="module")
def runs(truth):
    motions = [sum_of_sines(3, seed=seed) for seed in (1, 2)]
    return [process(simulate_experiment(truth, motion, rate_hz=200, duration_s=10.0)) for motion in motions]


@pytest.fixture(scope="module")
def fit(truth, runs):
    robot = truth.with_terms(RotorInertia(), Viscous(), Coulomb())
    further = [SmoothSign(scale=WIDTH, joint=joint) for joint in range(3)]
    return identify(robot, runs[0], Recipe.bare(), terms=further)


def test_the_whole_dry_friction_reaches_the_files(fit, runs, tmp_path):
    write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1]))
    for kind in FORMATS:
        robot = kind.read(tmp_path / f"{fit.robot.name}_identified{kind.suffix}", fit.robot).robot
        speeds = 0.5 * np.abs(runs[1].dq).max(axis=0)
        rest = np.zeros(3)
        moving = inverse_dynamics(robot.with_gravity(rest), rest, speeds, rest)
        still = inverse_dynamics(robot.with_gravity(rest).with_terms(), rest, speeds, rest)
        np.testing.assert_allclose(moving - still, DRY + 2.0 * speeds, rtol=0.05)


def test_a_file_is_judged_from_disk(fit, runs, tmp_path):
    check = validate(fit, runs[1])
    files = write_robot_files(fit, tmp_path, runs[1], check=check)
    for file, kind in zip(files, FORMATS, strict=True):
        assert file.error == pytest.approx(robot_error(kind.read(file.path, fit.robot).robot, runs[1]).whole)
        assert file.judged == check.relative_error
    # a file that somebody changes is judged as it is
    text = files[0].path.read_text().replace('friction="', 'friction="1')
    files[0].path.write_text(text)
    assert robot_error(read_urdf(files[0].path), runs[1]).whole > 1.5 * files[0].error


def test_what_the_writer_changed_is_judged(fit, runs, tmp_path, monkeypatch):
    """The error is that of the file, not of the robot that was handed to the writer."""

    def write(model, path, **options):
        write_urdf(model.robot.with_parameters(2.0 * model.robot.parameter_vector), path, **options)

    monkeypatch.setattr(robot_files, "FORMATS", (replace(FORMATS[0], write=write),))
    (file,) = write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1]))
    assert file.error > 80.0  # twice the torque


def test_powers_of_the_speed_take_over_and_never_feed_power_in(truth, tmp_path):
    terms = [SaturatingViscous(3.0, joint=joint) for joint in range(3)]
    curved = truth.with_terms(RotorInertia(0.3), Viscous(2.0), *terms)
    motions = [sum_of_sines(3, seed=seed) for seed in (1, 2)]
    runs = [process(simulate_experiment(curved, motion, rate_hz=200, duration_s=10.0)) for motion in motions]
    robot = truth.with_terms(RotorInertia(), Viscous(), Coulomb())
    fit = identify(robot, runs[0], Recipe.bare(), terms=[SaturatingViscous(joint=joint) for joint in range(3)])
    urdf, mjcf = write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1]))
    assert mjcf.error < 0.5 * urdf.error
    model = FORMATS[1].read(tmp_path / f"{fit.robot.name}_identified.xml", fit.robot)
    for joint in model.robot.moving_joints:
        values = {type(term): term.value for term in joint.terms}
        dry, *powers = (values.get(kind, 0.0) for kind in (Coulomb, Viscous, QuadraticViscous, CubicViscous))
        assert min(dry, powers[0], powers[2]) >= 0.0
        speed = np.geomspace(1e-3, 1e3, 500)
        assert np.all(dry + sum(p * speed ** (k + 1) for k, p in enumerate(powers)) >= 0.0)


def test_memory_goes_into_a_file_of_its_own(truth, runs, tmp_path):
    robot = truth.with_terms(RotorInertia(), Viscous(), Coulomb())
    further = [Hysteresis(joint=0, scale=0.1), LaggedSign(joint=0, scale=0.02)]
    fit = identify(robot, runs[0], Recipe.bare(), terms=further)
    files = write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1]))
    assert [file.path.name for file in files[1:]] == [
        "cylindrical_identified.xml",
        "cylindrical_identified_mujoco4.xml",
    ]
    assert files[2].lacks == ("FL1(0.02)",)
    assert set(files[1].lacks) == {"FH1(0.1)", "FL1(0.02)"}
    model = PRESLIDING.read(files[2].path, fit.robot)
    assert files[2].error == pytest.approx(robot_error(model.robot, runs[1], terms=model.yielding).whole)
    assert all(term.value > 0.0 for term in model.yielding)


def test_formats_that_share_their_equations_are_refitted_as_each_alone(truth, runs):
    robot = truth.with_terms(RotorInertia(), Viscous(), Coulomb())
    further = [SaturatingViscous(joint=1), LaggedSign(joint=0, scale=0.02)]
    fit = identify(robot, runs[0], Recipe.bare(), terms=further)
    kinds = [kind.capacity for kind in (*FORMATS, PRESLIDING)]
    for kind, model in zip(kinds, restrict_models(fit, kinds), strict=True):
        (alone,) = restrict_models(fit, [kind])
        expected, found = alone.robot.parameter_vector, model.robot.parameter_vector
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
        assert [term.name for term in model.yielding] == [term.name for term in alone.yielding]


def test_forces_of_slides_and_torques_are_compared_apart(tmp_path):
    """A file that lacks the rotor inertia of a light turning joint is not near, however large the forces are."""
    arm = scara().with_terms(RotorInertia(0.3), Viscous(2.0))
    heavy = arm.with_gravity([0.0, 0.0, -98.1])  # the slide's force of gravity hides all torques
    motion = [sum_of_sines(arm.dof, seed=seed) for seed in (1, 2)]
    logs = [process(simulate_experiment(heavy, m, rate_hz=200, duration_s=8.0)) for m in motion]
    fit = identify(heavy, logs[0], Recipe.bare())
    check = validate(fit, logs[1])
    lacking = fit.robot.with_terms(Viscous(2.0))
    found = robot_error(lacking, logs[1])
    squares, total = {}, {}
    predicted = inverse_dynamics(lacking, logs[1].q, logs[1].dq, logs[1].ddq)
    for name, slides in (("torques [N m]", False), ("forces [N]", True)):
        of = [body.is_prismatic == slides for body in arm.bodies]
        used = logs[1].valid[:, of]
        squares[name] = np.sum(np.where(used, (logs[1].effort - predicted)[:, of], 0.0) ** 2)
        total[name] = np.sum(np.where(used, logs[1].effort[:, of], 0.0) ** 2)
        assert found.by_kind[name] == pytest.approx(100.0 * np.sqrt(squares[name] / total[name]))
    assert found.whole == pytest.approx(100.0 * np.sqrt(sum(squares.values()) / sum(total.values())))
    urdf, mjcf = write_robot_files(fit, tmp_path, logs[1], check=check)
    assert set(urdf.by_kind) == set(mjcf.by_kind) == {"torques [N m]", "forces [N]"}
    assert "forces [N]" in urdf.sentence
    near = RobotFile(format="URDF", path=urdf.path, error=1.0, judged=1.0, lacks=(), kinds=())
    assert near.is_near
    assert not replace(near, by_kind={"torques [N m]": (9.0, 1.0), "forces [N]": (1.0, 1.0)}).is_near


def test_a_tilted_base_and_coupled_motors_reach_the_mjcf(truth, runs, tmp_path):
    arm = scara().with_terms(RotorInertia(0.3), Viscous(2.0))
    a, b = arm.joint_names[:2]
    arm = arm.with_couplings(Coupling({a: 1.0, b: 1.0}, 0.2, 0.5, 1.0))
    tilted = arm.with_gravity([0.3, -0.2, -9.8])
    motion = [sum_of_sines(arm.dof, seed=seed) for seed in (1, 2)]
    logs = [process(simulate_experiment(tilted, m, rate_hz=200, duration_s=8.0)) for m in motion]
    tilts = [BaseTilt(axis=axis, reference=Reference(arm.parameter_vector)) for axis in (0, 1)]
    fit = identify(arm, logs[0], Recipe.bare(), terms=tilts)
    urdf, mjcf = write_robot_files(fit, tmp_path, logs[1], check=validate(fit, logs[1]))
    assert mjcf.lacks == ()
    assert mjcf.error < 1.1 * max(mjcf.judged, 0.5) < urdf.error
    found = FORMATS[1].read(mjcf.path, fit.robot).robot
    np.testing.assert_allclose(found.gravity[:2], [0.3, -0.2], atol=0.1)


def test_the_file_with_more_of_the_terms_is_the_better_one(fit, runs, tmp_path):
    urdf, mjcf = write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1]))
    assert mjcf.error < urdf.error  # only MJCF holds rotor inertias
    assert set(urdf.lacks) - set(mjcf.lacks) == {"IA1", "IA2", "IA3"}
    assert not urdf.is_near
    text = describe_files((urdf, mjcf), "run")
    assert "rotor inertia" in text
    assert "smooth sign" in text


def test_the_refit_is_no_worse_than_leaving_terms_out(fit, runs):
    refitted = fit.restrict_terms(lambda term: True)
    left_out = fit.robot.with_parameters(fit.standard)
    assert robot_error(refitted, runs[1]).whole < robot_error(left_out, runs[1]).whole
    assert all(placed.term.value >= 0.0 for placed in refitted.terms)


def test_a_saved_result_keeps_the_refitted_robot(fit, tmp_path):
    saved = read_result(write_result(fit, tmp_path / "result.json")).identification()
    np.testing.assert_allclose(saved.identified.parameter_vector, fit.identified.parameter_vector, rtol=1e-12)
    with pytest.raises(ArgumentError, match="no equations"):
        saved.restrict_terms(lambda term: False)


def test_mujoco_moves_as_the_written_file_says(fit, runs, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    _, mjcf = write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1]))
    model = mujoco.MjModel.from_xml_path(str(mjcf.path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    run, wrong, total = runs[1], 0.0, 0.0
    for row in range(0, run.samples, 20):
        data.qpos[:], data.qvel[:], data.qacc[:] = run.q[row], run.dq[row], run.ddq[row]
        mujoco.mj_inverse(model, data)
        torque = data.qfrc_inverse + model.dof_frictionloss * np.sign(run.dq[row])
        wrong += np.sum((run.effort[row] - torque) ** 2)
        total += np.sum(run.effort[row] ** 2)
    assert 100.0 * np.sqrt(wrong / total) == pytest.approx(mjcf.error, rel=0.15)


@pytest.fixture(scope="module")
def scaled():
    """A fit of an arm whose log states the torques of two joints with wrong gains, and a held-out run."""
    arm = ddarm().with_terms(RotorInertia(0.3), Viscous(2.0))
    motions = [sum_of_sines(3, seed=seed) for seed in (1, 2)]
    logs = [process(simulate_experiment(arm, motion, rate_hz=200, duration_s=8.0)) for motion in motions]
    logs = [replace(log, effort=log.effort * GAINS) for log in logs]
    terms = [DriveGain(joint=joint, reference=Reference(arm.parameter_vector)) for joint in (0, 2)]
    return identify(arm, logs[0], Recipe.bare(), terms=terms), logs[1]


GAINS = np.array([1.15, 1.0, 0.8])


def test_gains_of_drives_are_gears_of_motors(scaled, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    fit, run = scaled
    urdf, mjcf = write_robot_files(fit, tmp_path, run, check=validate(fit, run))
    assert mjcf.lacks == ()
    assert mjcf.error < 1.1 * max(mjcf.judged, 0.2) < urdf.error
    model = mujoco.MjModel.from_xml_path(str(mjcf.path))
    np.testing.assert_allclose(model.actuator_gear[:, 0], 1.0 / GAINS, rtol=0.01)
    # the torques of the log, as control inputs, accelerate MuJoCo's robot as they accelerated the real one
    data, wrong = mujoco.MjData(model), []
    rows = np.flatnonzero(run.valid.all(axis=1))[::25]
    for row in rows:
        data.qpos[:], data.qvel[:], data.qacc[:] = run.q[row], run.dq[row], run.ddq[row]
        data.ctrl[:] = run.effort[row]
        mujoco.mj_inverse(model, data)
        mujoco.mj_fwdActuation(model, data)
        wrong.append(data.qfrc_actuator - data.qfrc_inverse)
    assert np.linalg.norm(wrong) < 0.02 * np.linalg.norm(run.effort[rows])


def test_gains_are_refitted_with_the_robot(scaled):
    """A gain stays what the data say, however far the identified one is off; it does not cross one."""
    fit, _ = scaled
    for identified, expected in (([1.9, 1.0, 0.6], GAINS), ([1.05, 1.0, 1.3], [1.05, 1.0, 1.0])):
        kept = restrict_parameters(fit.equations, fit.estimate, fit.with_signs, (), gains=np.array(identified))
        np.testing.assert_allclose(kept.gains, expected, rtol=0.02)


def test_written_gears_are_read_back_and_replaced(scaled, tmp_path):
    fit, run = scaled
    _, mjcf = write_robot_files(fit, tmp_path, run, check=validate(fit, run))
    model = FORMATS[1].read(mjcf.path, fit.robot)
    np.testing.assert_allclose(model.gain_vector, GAINS, rtol=0.01)
    assert mjcf.error == pytest.approx(robot_error(model.robot, run, gains=model.gain_vector).whole)
    again = read_mjcf(mjcf.path)
    assert takes_gears(again)
    assert mjcf_text(again) == mjcf.path.read_text()
    changed = mjcf_text(again, gears={again.joint_names[0]: 2.0})
    assert [float(part.split('"')[0]) for part in changed.split('gear="')[1:]] == [2.0, 1.0, 1.0]


def test_a_file_with_actuators_keeps_them(scaled, tmp_path):
    fit, run = scaled
    motor = f'<actuator><motor joint="{fit.robot.joint_names[0]}" gear="50"/></actuator></mujoco>'
    owned = parse_mjcf(mjcf_text(fit.robot).replace("</mujoco>", motor))
    assert not takes_gears(owned)
    own = replace(fit, equations=replace(fit.equations, robot=owned))
    _, mjcf = write_robot_files(own, tmp_path, run, check=validate(fit, run))
    assert set(mjcf.lacks) == {"KG1", "KG3"}
    assert mjcf.path.read_text().count("<motor") == 1


def test_the_note_on_a_urdf_says_where_the_rotor_inertias_went() -> None:
    kinds = (RotorInertia(0.1).kind,)
    for error in (2.33, 5.36):
        sentence = RobotFile(
            format="URDF", path=Path("a.urdf"), error=error, judged=2.32, lacks=("IA1",), kinds=kinds
        ).sentence
        assert sentence.startswith(f"URDF: torque error {error} % on held-out data, against 2.32 % of the whole model")
        assert sentence.endswith("its masses and inertias absorb the rotor inertias")


def test_gravity_that_a_urdf_cannot_hold_stands_beside_its_error(tmp_path):
    """Judged with the robot's gravity, as the words say: with the usual one the file from disk is far off."""
    ceiling = ddarm().with_gravity([0.0, 0.0, 9.81]).with_terms(Viscous(2.0))
    motions = [sum_of_sines(3, seed=seed) for seed in (1, 2)]
    logs = [process(simulate_experiment(ceiling, motion, rate_hz=200, duration_s=8.0)) for motion in motions]
    fit = identify(ceiling, logs[0], Recipe.bare())
    check = validate(fit, logs[1])
    urdf, mjcf = write_robot_files(fit, tmp_path, logs[1], check=check)
    words = "gravity (0, 0, 9.81) m/s^2, which the format does not hold: set it where the file is loaded"
    assert robot_error(read_urdf(urdf.path), logs[1]).whole > 10.0 * urdf.error
    assert robot_error(read_urdf(urdf.path, gravity=urdf.gravity), logs[1]).whole == pytest.approx(urdf.error)
    assert f", with {words}" in urdf.sentence
    assert words in urdf.path.read_text()
    assert urdf.to_json()["lacks_gravity"] == [0.0, 0.0, 9.81]
    assert robot_error(read_mjcf(mjcf.path), logs[1]).whole == pytest.approx(mjcf.error)
    assert "gravity (" not in mjcf.sentence
    assert mjcf.to_json()["lacks_gravity"] is None
    page = identification_page(fit, check, logs[1:], [WrittenFiles((urdf, mjcf))]).to_markdown()
    assert page.count(words) >= 2
    unjudged, _ = write_robot_files(fit, tmp_path, force=True)
    assert words in unjudged.sentence


def test_nothing_is_said_of_the_usual_gravity(fit, runs, tmp_path):
    for file in write_robot_files(fit, tmp_path, runs[1], check=validate(fit, runs[1])):
        assert "gravity" not in file.sentence
        assert file.to_json()["lacks_gravity"] is None


def test_files_that_predict_better_without_terms_say_so() -> None:
    def file(error: float) -> RobotFile:
        return RobotFile(format="MJCF", path=Path("robot.xml"), error=error, judged=28.5, lacks=("FT1",), kinds=("x",))

    assert "selection=false" in describe_files([file(10.9)], "run")
    assert "selection=false" not in describe_files([file(27.0)], "run")
