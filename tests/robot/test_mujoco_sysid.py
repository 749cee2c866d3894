"""Parameters and series of mujoco.sysid, against MuJoCo's compiled model and, where it is complete, the toolbox."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.logs import from_sysid_series, write_sysid_series
from dynid.robot import from_sysid, sysid_model, sysid_values, to_mujoco, to_sysid, write_sysid
from dynid.robot.formats.mjcf.write import mjcf_text
from support.example_names import MAP
from support.small_fit import small_fit


def arm() -> dynid.Robot:
    return dynid.robots.scara().with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.3), dynid.RotorInertia(0.1))


def toolbox():
    """The toolbox; it imports without its own dependencies, but is empty then."""
    sysid = pytest.importorskip("mujoco.sysid")
    if not hasattr(sysid, "ParameterDict"):
        pytest.skip("mujoco[sysid] is not complete")
    return sysid


def test_the_ten_numbers_are_those_of_the_compiled_bodies() -> None:
    """By the definition in the toolbox's docstrings: U of the pseudo-inertia in the frame of MuJoCo's body."""
    mujoco = pytest.importorskip("mujoco")
    model = to_mujoco(arm())
    for body in ("link1", "link2", "link3"):
        place = model.body(body).id
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, model.body_iquat[place])
        about_com = R.reshape(3, 3) @ np.diag(model.body_inertia[place]) @ R.reshape(3, 3).T
        c, m = model.body_ipos[place], model.body_mass[place]
        alpha, d1, d2, d3, s12, s23, s13, *t = sysid_values(arm())[f"{body}_inertia"]
        U = np.exp(alpha) * np.array(
            [[np.exp(d1), s12, s13, t[0]], [0, np.exp(d2), s23, t[1]], [0, 0, np.exp(d3), t[2]], [0, 0, 0, 1]]
        )
        J = U @ U.T
        np.testing.assert_allclose(J[3, 3], m)
        np.testing.assert_allclose(J[:3, 3], m * c, atol=1e-12)
        second = 0.5 * np.trace(about_com) * np.eye(3) - about_com + m * np.outer(c, c)
        np.testing.assert_allclose(J[:3, :3], second, atol=1e-9)


@pytest.mark.parametrize("name", ["panda", "scara"])
def test_values_come_back(name: str) -> None:
    robot = dynid.robots.get(name).with_terms(dynid.Viscous(0.5), dynid.RotorInertia(0.1), dynid.Coulomb(0.0))
    other = robot.with_terms(dynid.Viscous(1.0), dynid.RotorInertia(0.2), dynid.Coulomb(0.3))
    found = from_sysid(other, sysid_values(robot))
    state = np.random.default_rng(0).normal(size=(3, robot.dof))
    np.testing.assert_allclose(
        dynid.inverse_dynamics(found, *state), dynid.inverse_dynamics(robot, *state), rtol=1e-10, atol=1e-10
    )


def test_mass_alone_and_mass_with_its_centre() -> None:
    robot = arm()
    found = from_sysid(robot, {"link2_inertia": [20.0], "link3_inertia": [5.0, 0.1, 0.2, 0.3], "joint2_armature": 0.0})
    assert found.link("link2").inertia.mass == 20.0
    np.testing.assert_allclose(found.link("link2").inertia.com, robot.link("link2").inertia.com)
    np.testing.assert_allclose(found.link("link2").inertia.about_com, robot.link("link2").inertia.about_com)
    np.testing.assert_allclose(found.link("link3").inertia.com, [0.1, 0.2, 0.3])
    assert sysid_values(found)["joint2_armature"].tolist() == [0.0]


@pytest.mark.parametrize("wrong", [{"link9_inertia": [1.0]}, {"link2_inertia": [1.0, 2.0]}, {"joint1_stiffness": 1.0},
                                   {"joint1_damping": [1.0, 2.0]}, {"link2_inertia": [np.nan]},
                                   {"link2_inertia": "heavy"}])  # fmt: skip
def test_what_belongs_to_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(dynid.errors.ArgumentError):
        from_sysid(arm(), wrong)


def test_impossible_bodies_are_refused_by_name() -> None:
    robot = arm()
    theta = robot.parameter_vector.copy()
    theta[9] = -1.0
    with pytest.raises(dynid.errors.ExportError, match="link1"):
        sysid_values(robot.with_parameters(theta))
    with pytest.raises(dynid.errors.ExportError, match="link1"):
        sysid_values(dynid.robots.ddarm())


def test_a_point_mass_gets_ten_micrometres() -> None:
    robot = arm()
    theta = robot.parameter_vector.copy()
    theta[:10] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 2.0]
    values = sysid_values(robot.with_parameters(theta))["link1_inertia"]
    np.testing.assert_allclose(values, [np.log(np.sqrt(2.0)), *3 * [np.log(1e-5)], *6 * [0.0]], atol=1e-6)


def test_the_yaml_file_is_the_one_of_the_toolbox(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    fit, _ = small_fit()
    path = write_sysid(fit.identified, tmp_path / "parameters.yaml", fit.robot)
    content = yaml.safe_load(path.read_text())
    for name, values in sysid_values(fit.identified).items():
        state = content[name]
        assert state["value"] == values.tolist(), name  # every digit, and numbers, not text
        assert np.all(np.array(state["min_value"]) <= values), name
        assert np.all(np.array(state["max_value"]) >= values), name
        assert state["name"] == name
    assert content["joint2_damping"]["nominal"] == [0.5]
    # the published mass properties of this arm's first link are those of no body
    assert content["link1_inertia"]["nominal"] == content["link1_inertia"]["value"]
    again = from_sysid(fit.robot, path)
    np.testing.assert_allclose(again.parameter_vector, fit.identified.parameter_vector, rtol=1e-9, atol=1e-9)
    (tmp_path / "other.yaml").write_text("[1, 2]")
    with pytest.raises(dynid.errors.DataError, match="none of mujoco"):
        from_sysid(fit.robot, tmp_path / "other.yaml")


def test_small_numbers_stay_numbers(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    robot = arm().with_terms(dynid.Viscous(1e-5), dynid.Coulomb(1e22))
    content = yaml.safe_load(write_sysid(robot, tmp_path / "p.yaml").read_text())
    assert content["joint1_damping"]["value"] == [1e-5]
    assert content["joint1_frictionloss"]["value"] == [1e22]


def test_the_toolbox_finds_the_same_numbers_and_applies_them() -> None:
    mujoco, sysid = pytest.importorskip("mujoco"), toolbox()
    robot = arm()
    spec = mujoco.MjSpec.from_string(mjcf_text(robot))
    for link in ("link1", "link2", "link3"):
        theirs = sysid.model_modifier.theta_inertia_from_body(spec, link)
        np.testing.assert_allclose(sysid_values(robot)[f"{link}_inertia"], theirs, atol=1e-9)
    heavier = robot.with_parameters(1.3 * robot.parameter_vector)
    parameters = to_sysid(heavier, robot)
    sysid.apply_param_modifiers_spec(parameters, spec)
    changed = dynid.from_mujoco(spec.compile())
    state = np.random.default_rng(1).normal(size=(3, 4))
    np.testing.assert_allclose(
        dynid.inverse_dynamics(changed, *state), dynid.inverse_dynamics(heavier, *state), rtol=1e-7
    )
    assert parameters["joint2_frictionloss"].nominal.tolist() == [0.3]
    np.testing.assert_allclose(from_sysid(robot, parameters).parameter_vector, heavier.parameter_vector, rtol=1e-9)


def test_the_toolbox_reads_the_files(tmp_path: Path) -> None:
    sysid = toolbox()
    fit, run = small_fit()
    path = write_sysid(fit.identified, tmp_path / "p.yaml", fit.robot)
    theirs = sysid.ParameterDict.load_from_disk(path)
    assert theirs["link3_inertia"].value.tolist() == sysid_values(fit.identified)["link3_inertia"].tolist()
    sensordata, control = (sysid.TimeSeries.load_from_disk(file) for file in write_sysid_series(run, tmp_path))
    assert sensordata.signal_mapping["joint2_qvel"][0] is sysid.SignalType.MjStateQVel
    assert control.signal_mapping["joint3_ctrl"][0] is sysid.SignalType.MjCtrl
    np.testing.assert_array_equal(sensordata.data[:, 4], run.dq[:, 1])
    back = from_sysid_series(sensordata, control)
    np.testing.assert_array_equal(back.q, run.q)
    sensordata.save_to_disk(tmp_path / "theirs.npz")
    np.testing.assert_array_equal(from_sysid_series(tmp_path / "theirs.npz").dq, run.dq)


def test_series_go_out_and_come_back(tmp_path: Path) -> None:
    _, run = small_fit()
    sensordata, control = write_sysid_series(run, tmp_path)
    with np.load(sensordata, allow_pickle=False) as content:
        mapping = json.loads(str(content["signal_mapping"]))
        np.testing.assert_array_equal(content["data"][:, mapping["joint2_qpos"][1][0]], run.q[:, 1])
    assert mapping["joint1_qvel"] == [3, [3]]
    back = from_sysid_series(sensordata, control)
    np.testing.assert_array_equal(back.q, run.q)
    np.testing.assert_array_equal(back.dq, run.dq)
    as_sensors = write_sysid_series(run, tmp_path, sensors=True, force=True)
    np.testing.assert_array_equal(from_sysid_series(*as_sensors).dq, run.dq)
    known = np.isfinite(run.effort).all(axis=1)
    assert back.effort is not None
    np.testing.assert_array_equal(back.effort, run.effort[known])
    (tmp_path / "other.npz").write_bytes(b"nothing")
    with pytest.raises(dynid.errors.DataError, match="no series"):
        from_sysid_series(tmp_path / "other.npz")
    with pytest.raises(dynid.errors.DataError, match="no positions"):
        from_sysid_series(control)
    with pytest.raises(dynid.errors.DataError, match="not those of the joints"):
        from_sysid_series(sensordata, sensordata)


def moved(model, seconds: float) -> dynid.Recording:
    """What MuJoCo's sensors read after every step of 2 ms under slow torques, as the toolbox's own rollouts do."""
    import mujoco

    data, rows = mujoco.MjData(model), []
    while data.time < seconds:
        data.ctrl[:] = [6.0 * np.sin(3.0 * data.time), 4.0 * np.cos(4.0 * data.time), 9.81 * 2.0, 0.3]
        mujoco.mj_step(model, data)
        rows.append((data.time, data.sensordata[:4].copy(), data.sensordata[4:].copy(), data.ctrl.copy()))
    time, q, dq, effort = (np.array(column) for column in zip(*rows, strict=True))
    return dynid.Recording(time=time, q=q, dq=dq, effort=effort, joint_names=arm().joint_names)


def test_the_toolbox_identifies_with_these_files(tmp_path: Path) -> None:
    """Planted damping comes back through its own optimiser, from model, parameters and series as dynid makes them."""
    mujoco, sysid = pytest.importorskip("mujoco"), toolbox()
    truth = from_sysid(arm(), {"joint1_damping": 1.5})
    log = moved(mujoco.MjModel.from_xml_string(sysid_model(truth)), 1.0)
    sensordata, control = (
        sysid.TimeSeries.load_from_disk(file) for file in write_sysid_series(log, tmp_path, sensors=True)
    )
    spec = mujoco.MjSpec.from_string(sysid_model(arm()))
    start = sysid.create_initial_state(spec.compile(), log.q[0], log.dq[0])
    sequences = sysid.ModelSequences("arm", spec, "run", start, control, sensordata)
    parameters = to_sysid(arm())
    for name, parameter in parameters.items():
        parameter.frozen = name != "joint1_damping"
    found, _ = sysid.optimize(parameters, sysid.build_residual_fn(models_sequences=[sequences], n_threads=1))
    damping = from_sysid(arm(), {"joint1_damping": found["joint1_damping"].value})
    assert sysid_values(damping)["joint1_damping"][0] == pytest.approx(1.5, rel=0.02)  # the controls are interpolated


def test_the_model_has_a_motor_and_two_sensors_per_joint() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(sysid_model(arm()))
    assert [model.actuator(k).name for k in range(model.nu)] == list(arm().joint_names)
    names = [model.sensor(k).name for k in range(model.nsensor)]
    assert names == [f"{joint}{end}" for end in ("_qpos", "_qvel") for joint in arm().joint_names]
    np.testing.assert_array_equal(model.actuator_gear[:, 0], 1.0)


def test_without_the_toolbox_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mujoco.sysid", None)
    with pytest.raises(dynid.errors.ArgumentError, match=r"mujoco\[sysid\]"):
        to_sysid(arm())


def test_the_command_writes_model_parameters_and_series(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    fit, run = small_fit()
    dynid.write_result(fit, tmp_path / "result.json")
    header = ",".join(["time", *(f"q{j}" for j in range(3)), *(f"effort{j}" for j in range(3))])
    np.savetxt(tmp_path / "r.csv", np.column_stack([run.time, run.q, run.effort]), delimiter=",", comments="",
               header=header)  # fmt: skip
    (tmp_path / "map.toml").write_text(MAP)
    words = ["export", str(tmp_path / "result.json"), str(tmp_path / "r.csv"), "--map", str(tmp_path / "map.toml")]
    done = CliRunner().invoke(main, [*words, "--to", "sysid", "--out", str(tmp_path / "sysid"), "--json"])
    assert done.exit_code == 0, done.output
    files = [Path(file).name for file in json.loads(done.stdout)["files"]]
    assert files == ["ddarm.xml", "parameters.yaml", "sensordata.npz", "control.npz"]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "sysid" / "ddarm.xml"))
    np.testing.assert_allclose(
        model.dof_damping.reshape(3, -1)[:, 0], fit.identified.parameter_vector[30::2], rtol=1e-9
    )
    series = from_sysid_series(*(tmp_path / "sysid" / "series_1" / name for name in files[2:]))
    assert series.joint_names == run.joint_names
