"""Wrong uses in Python: each gets an error of dynid that names the argument, the reason and the remedy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
import dynid.studies.compare.compare_recipe
from support.example_names import shared_names

HOT = "dynid.kernels"
"""The functions of this module check their arguments themselves; a call of theirs takes less than a microsecond."""
WRONG: dict[str, str] = {
    # arguments of another kind
    'dynid.identify("arm.urdf", log)': "robot is 'arm.urdf'. Give a Robot (such as dynid.read_urdf(\"arm.urdf\")",
    "dynid.identify(log, robot)": "data is a Robot. The robot comes first, then the data",
    "dynid.identify(robot, None)": "data is NoneType. Give a recording, an experiment, the path of a log",
    "dynid.identify(robot, np.zeros((100, 7)))": "data is ndarray. Give a recording, an experiment",
    "dynid.identify(robot, [])": "data is empty",
    "dynid.identify(robot, [run, 3])": "data has an item of the kind int",
    'dynid.identify(robot, "nothing.csv")': "nothing.csv: there is no such file. The current folder is",
    'dynid.identify(robot, log, "wls")': "recipe is 'wls'. Give a Recipe (such as dynid.Recipe(band_hz=20.0)) or None",
    'dynid.identify(robot, run, estimator="lsq")': "there is no 'lsq'. Known names: feasible",
    "dynid.validate(run, fit)": "fit is an Experiment. Give an Identification",
    "dynid.validate(fit, log)": "cannot validate it. Hold out one run",
    'dynid.validate(fit, other, limit="much")': "limit is 'much'. Give a number that is larger than 0",
    "dynid.validate(fit, run)": "cannot validate it. Hold out one run",
    'dynid.process("run1.csv")': "recording is 'run1.csv'. Give a Recording (such as dynid.read_recording(",
    "dynid.process(run)": "recording is an Experiment. Give a Recording",
    "dynid.process(log, dynid.Recipe())": "options is a Recipe. Give a Processing",
    'dynid.process(log, cutoff_hz="high")': "cutoff_hz is 'high'. Give a frequency above zero [Hz]",
    'dynid.process_stream("run1.csv")': "chunks is 'run1.csv'. Give a list, each item a Recording",
    'dynid.check_recording("run1.csv")': "recording is 'run1.csv'. Give a Recording",
    'dynid.check_robot("ddarm")': "robot is 'ddarm'. Give a Robot",
    "dynid.read_urdf(42)": "path is 42. Give a path",
    "dynid.Recipe(hold_out=0.3)": 'hold_out is 0.3. Write it as a text: hold_out="30%", or 40% for the last 40 %',
    "dynid.Recipe(hold_out=30)": 'hold_out is 30. Write it as a text: hold_out="30%"',
    "dynid.robot.JointLimits(lower=1.0, upper=-1.0)": "the lower limit 1 exceeds the upper limit -1. Exchange them",
    "dynid.robot.JointLimits(effort=-3.0)": "the effort limit is -3. Give zero or more",
    "robot.with_terms(dynid.Viscous(-1.0))": "and no joint has less than zero of it. Give zero or more: Viscous(1)",
    "robot.with_terms(dynid.RotorInertia(-0.1))": "-0.1 is the value of RotorInertia",
    "dynid.Inertia(1.0, [0, 0, 0], np.eye(3))": "Inertia was given 3 arguments without a name, which is too many",
    "dynid.Inertia(mass=1.0)": "Inertia needs first_moment, about_origin",
    'dynid.runs.LoadRecipe(gate="no")': "gate is 'no'. Give True or False",
    "dynid.runs.LoadRecipe(sensor=3)": "sensor is 3. Give a text or None",
    'dynid.runs.PlanRecipe(harmonics="many")': "harmonics is 'many'. Give a whole number",
    "dynid.runs.PlanRecipe(meshes=1)": "meshes is 1. Give a text or None",
    'dynid.studies.compare.compare_recipe.CompareRecipe(runs="all")': "runs is 'all'. Give a whole number",
    "dynid.studies.compare.compare_recipe.CompareRecipe(methods=3)": "methods is 3. Give a list, each item a text",
    'dynid.read_recording(folder / "run1.csv", robot="ddarm", channel_map=folder / "map.toml")': "robot is 'ddarm'",
    'dynid.read_recording(folder / "run1.csv", folder / "map.toml")': "Give a Robot",
    "dynid.inspect_log(3)": "path is 3. Give a path or a list of them",
    'dynid.base_parameters("puma560")': "expected a Robot, not str 'puma560'. Read one, dynid.read_urdf(path)",
    'dynid.base_parameters(robot).project("a")': "theta is 'a'. Give an array of numbers",
    "dynid.base_parameters(robot).project(np.zeros(3))": "have the shape (3,). Give 36 numbers",
    'dynid.inverse_dynamics("arm.urdf", q, dq, ddq)': "expected a Robot, not str 'arm.urdf'",
    'dynid.inverse_dynamics(robot, "a", dq, ddq)': "q is an array of texts. Give an array of floats",
    "dynid.inverse_dynamics(robot, q[:2], dq, ddq)": "'q' has shape (2,). Give (3,)",
    'dynid.simulate_experiment(robot, "sine", rate_hz=100)': "the trajectory is no motion",
    "dynid.simulate_experiment(robot, motion, rate_hz=100, noise=0.1)": "noise is 0.1. Give a Noise",
    'dynid.design_excitation(robot, "limits")': "limits are MotionLimits, not 'limits'",
    'dynid.write_urdf("arm", folder / "x.urdf")': "robot is 'arm'. Give a Robot",
    "dynid.write_urdf(robot, None)": "path is None. Give a path",
    'dynid.write_result(robot, folder / "r.json")': "fit is a Robot. Give an Identification",
    'dynid.write_report(fit, folder / "report.pdf")': "cannot be written as '.pdf'. Use the extension .html",
    "dynid.plot(robot)": "plot cannot draw a Robot",
    'dynid.generate_c("arm.urdf")': "code cannot be generated from a str",
    'dynid.generate_c(robot, "fly")': "there is no function 'fly'. Choose from inverse_dynamics",
    "dynid.identify_payload(robot, loaded=log, unloaded=run)": "loaded is a Recording. Give an Experiment",
    'dynid.MotionLimits.from_robot("ur10")': "robot is 'ur10'. Give a Robot",
    'dynid.MotionLimits.from_robot(robot, scale="a")': "scale is 'a'. Give a number",
    'dynid.Inertia.from_com("a", (0, 0, 0), np.eye(3))': "mass is 'a'. Give a number",
    "dynid.Inertia.from_com(1.0, (0, 0), np.eye(3))": "com has the shape (2,). Give 3 numbers",
    "dynid.Inertia.from_com(-1.0, (0, 0, 0), np.eye(3))": "mass is -1 kg, and no body has a negative mass",
    'dynid.Recording(time=np.arange(3.0), q="a")': "q is 'a'. Give an array of numbers",
    'dynid.Noise(effort="a")': "effort is 'a'. Give an array of numbers",
    "dynid.Noise(torque=1.0)": "Noise has no argument 'torque'",
    'dynid.Huber(tuning="a")': "tuning is 'a'. Give a number",
    'dynid.WLS(rounds="many")': "rounds is 'many'. Give a whole number",
    "dynid.WLS().solve(run)": "equations is an Experiment. Give Factors",
    "dynid.FeasibleWLS(prior_weight=-1.0)": "prior_weight is -1.0. Give a number above 0, or None",
    'robot.with_parameters("a")': "theta is 'a'. Give an array of numbers",
    "robot.with_parameters(np.zeros(3))": "have the shape (3,). Give 36 numbers",
    'fit.predict("a", "b", "c")': "q is 'a'. Give an array of numbers",
    'dynid.parameters.count_bound("a")': "robot is 'a'. Give a Robot",
    "dynid.parameters.energy_transport(3)": "row is 3. Give a DH",
    'dynid.parameters.convert_values("a", dynid.base_parameters(robot), dynid.base_parameters(robot))': "is 'a'",
    'dynid.estimation.perturbation_bounds("a", "b")': "W is 'a'. Give an array of numbers",
    "dynid.estimation.fit_scales(robot)": "equations is a Robot. Give Samples",
    "dynid.estimation.standard_candidates(robot, [run], None)": "reference is None. Give a Reference",
    'dynid.control.two_rate_study(robot, "sine")': "trajectory is 'sine'. Give a Trajectory",
    'dynid.links.cross_validate(robot, run, folds="five")': "folds is 'five'. Give a whole number, 2 or larger",
    "dynid.excitation.minimum_jerk(0.0, np.ones(3), duration_s=1.0)": "q_start has the shape ()",
    "dynid.information.reduce_stream(robot, [3])": "a piece is int. Give tuples (q, dq, ddq, tau) or experiments",
    "dynid.from_pinocchio(robot)": "model is a dynid Robot already. Use it as it is",
    'dynid.from_pinocchio("arm.urdf")': "model is 'arm.urdf'. Read the file with dynid.read_urdf(path)",
    "dynid.from_pinocchio(3)": "model is of the kind int. Give a pinocchio.Model: pinocchio.buildModelFromUrdf(path)",
    'dynid.from_mujoco("x.xml")': "or give a mujoco.MjModel: mujoco.MjModel.from_xml_path(path)",
    "dynid.logs.from_sysid_series(1, robot)": "sensordata is of the kind int. Give a mujoco.sysid.TimeSeries",
    'dynid.read_urdf("<robot name=\'a\'>" + 999 * "<link/>" + "</robot>")': "the path is the text of a description",
    # the model at work, fleets, servos, tables
    "dynid.watch(robot, run)": "result is a Robot. Give an identification, or its folder",
    "dynid.watch(fit, [])": "there is no log to watch",
    "dynid.watch(fit, robot)": "logs is a Robot. Give a path or a Recording",
    "dynid.watch(fit, run, per_hour=-1.0)": "per_hour is -1.0. Give a number that is larger than 0",
    "dynid.monitor.calibrate(robot)": "fit is a Robot. Give an Identification",
    "dynid.monitor.observe(fit, log)": "run is a Recording. Give an Experiment",
    "dynid.monitor.LiveWatch(fit, None)": "is None. Give a Calibration",
    "dynid.monitor.LoadTracker(robot)": "LoadTracker needs noise_std, rate_hz",
    'dynid.monitor.find_touched_link(robot, q, "a")': "std is 'a'. Give 3 numbers",
    'dynid.fleet.identify_fleet("arm.urdf", {"a": [log]})': "robot is 'arm.urdf'. Give a Robot",
    'dynid.fleet.identify_fleet(robot, {"a": [log]}, gain_spread=-1)': "gain_spread is -1. Give a share from zero up",
    'dynid.fleet.identify_fleet(robot, {"a": [log]}, window_days=0)': "window_days is 0. Give a time above zero",
    'dynid.fleet.identify_fleet(robot, "run*.csv")': "does not say which part is the arm's name",
    "dynid.actuators.identify_actuators(robot, log)": "identify_actuators needs law. The arguments are",
    "dynid.actuators.commanded_motion(log)": "commanded_motion needs robot",
    'dynid.actuators.read_servo_model(folder / "map.toml", robot)': "this is a channel map, not the law of drives",
    "dynid.actuators.ServoModel(robot)": "ServoModel needs law",
    "dynid.actuators.CommandedMotion(time=np.arange(3.0))": "CommandedMotion needs joint_names, command, position",
    "dynid.export.parameter_table(robot)": "fit is a Robot. Give an Identification",
    "dynid.export.ur_payload_script(fit)": "load is an Identification. Give a Load",
    "dynid.export.with_pinocchio_parameters(robot, np.zeros(5))": "Give ten finite numbers for each of the 3",
    "dynid.runs.compare_runs(fit, [fit])": "results are compared by their files. Save each: dynid.write_result",
    'dynid.runs.compare_runs("nothing", ["x"])': "Give a folder that dynid identify wrote",
    "dynid.load.gains_from_weighed_mass(robot, loaded=run, unloaded=run, mass_kg=2805.0)": "kilograms: 2.805",
    "dynid.load.OnlineLoad(3)": "OnlineLoad was given 1 arguments without a name",
    "dynid.from_dh([dynid.DH(alpha=90)])": "say that all angles are degrees: from_dh(rows, degrees=True)",
    'dynid.Recipe(engine="spark")': "there is no engine 'spark'. Choose one of local",
    "dynid.Recipe(gravity=(0, 0))": "gravity is [0, 0]. Give x,y,z",
    'dynid.identify(robot, run, dynid.Recipe(free=["weather"]))': "Known names: zeros, lengths, tilt, angles",
    # unknown and missing arguments
    "dynid.identify(robot, log, band_hz=20)": "It is a setting of the recipe: dynid.Recipe(band_hz=...)",
    "dynid.process(log, cutoff=10)": "Processing has no argument 'cutoff'. Did you mean cutoff_hz?",
    "dynid.simulate_experiment(robot, motion, rate=100)": "has no argument 'rate'. Did you mean rate_hz?",
    "dynid.design_excitation(robot, limits, period=3)": "has no argument 'period'. Did you mean period_s?",
    "dynid.write_report(check=1)": "write_report needs fit, path. The arguments are write_report(fit, path,",
    "dynid.identify_load(robot, run)": "identify_load needs sensor_frame",
    "dynid.Recipe(bandhz=3)": "Recipe has no argument 'bandhz'. Did you mean band_hz?",
    'dynid.Recipe("wls")': "Recipe was given 1 arguments without a name",
    "dynid.DH(a=0.3)": "DH has no argument 'a'. The arguments are DH(",
    "dynid.FeasibleWLS(weight=1)": "has no argument 'weight'. Did you mean prior_weight?",
    "dynid.Recording(q=np.zeros((2, 3)))": "Recording needs time",
    # settings
    'dynid.Recipe(terms="viscous")': "terms is 'viscous'. Give a list of names, such as [\"viscous\"]",
    'dynid.Recipe(band_hz="20")': "band_hz is '20'. Give the upper end of the band",
    # names
    "dynid.identfy(robot, log)": "did you mean dynid.identify?",
    "dynid.robots.pnada()": "the robots are cartesian",
    'dynid.kernels.link_pose(robot, "hand", q)': "has no link 'hand'. Its links are: base, link1",
}
"""Wrong call -> words of its error."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return shared_names(tmp_path_factory.mktemp("wrong"))


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_call(call: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = AttributeError if call.startswith(("dynid.identfy", "dynid.robots.")) else dynid.DynidError
    with pytest.raises(wanted) as caught:
        eval(call, dict(names))
    assert WRONG[call] in str(caught.value)
    assert not list(tmp_path.iterdir())  # nothing was written on the way


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (np.arange(20) / 100.0, r"the log has 20 samples \(0\.2 s\), and at least \d+ samples \(.* s at 100 Hz\) are "),
        (np.ones(500), "the time stamps never increase"),
    ],
)
def test_a_log_that_nothing_can_use_is_not_offered_to_be_used(time: np.ndarray, words: str) -> None:
    robot = dynid.robots.ddarm()
    wave = np.sin(0.03 * np.arange(time.size)[:, None] + np.arange(3))
    log = dynid.Recording(time=time, q=wave, effort=wave, joint_names=robot.joint_names)
    with pytest.raises(dynid.DynidError, match=words) as caught:
        dynid.identify(robot, log)
    assert "gate" not in str(caught.value)


def test_a_saved_result_is_restored_before_it_is_validated(names: dict[str, Any], tmp_path: Path) -> None:
    saved = dynid.read_result(dynid.write_result(names["fit"], tmp_path / "result.json"))
    with pytest.raises(
        dynid.DynidError, match=r"fit is a SavedResult, .* dynid\.validate\(saved\.identification\(\), "
    ):
        dynid.validate(saved, names["other"])  # type: ignore[arg-type]
    assert dynid.validate(saved.identification(), names["other"]).relative_error > 0.0


def public_functions() -> Iterator[tuple[str, Any]]:
    for place in ("dynid", *(f"dynid.{package}" for package in dynid.PACKAGES)):
        module = import_module(place)
        for name in module.__all__:
            thing = getattr(module, name, None)
            if inspect.isfunction(thing) and thing.__module__ != HOT:
                yield f"{place}.{name}", thing


def test_every_public_function_explains_wrong_kinds() -> None:
    missing = [name for name, function in public_functions() if not hasattr(function, "__wrapped__")]
    assert not missing, "mark them with @public (dynid/public_calls.py)"


def test_faults_of_dynid_stay_what_they_are() -> None:
    from dynid.public_calls import public

    @public
    def broken(count: int) -> int:
        return 1 + count + {}["one"]  # type: ignore[index]

    with pytest.raises(KeyError, match="one"):
        broken(3)
    with pytest.raises(dynid.DynidError, match=r"count is 'three'\. Give a whole number"):
        broken("three")


@pytest.mark.parametrize(
    ("name", "said"), [("arm.urdf", "a robot description"), ("run.csv", "a log"), ("m.json", "JSON")]
)
def test_other_files_are_no_channel_maps(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text("{}", encoding="utf-8")
    with pytest.raises(dynid.errors.DataError, match=f"this is {said}, not a channel map"):
        dynid.logs.read_channel_map(tmp_path / name)
    with pytest.raises(dynid.errors.DescriptionError, match="this is no robot description"):
        dynid.read_urdf(tmp_path / name)


def test_cutoffs_that_no_log_can_have() -> None:
    robot = dynid.robots.gautier_khalil_3r()
    time = np.arange(400) / 100
    table = {"time": time, "q": np.sin(time[:, None] * [1.0, 2.0, 3.0]), "effort": np.ones((400, 3))}
    with pytest.raises(dynid.errors.DataError, match=r"a low-pass at 0\.01 Hz needs .* higher cutoff_hz"):
        dynid.process(dynid.logs.as_recording(table, robot), cutoff_hz=0.01)
    with pytest.raises(dynid.errors.ArgumentError, match="half the sampling rate of 100 Hz"):
        dynid.identify(robot, table, dynid.Recipe(cutoff_hz=500.0))
