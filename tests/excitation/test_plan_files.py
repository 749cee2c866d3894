"""Plans on disk and on the command line: complete, read back, interrupted and gone on with."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.errors import ArgumentError
from dynid.excitation.constraints import build_constraints
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import SearchSettings
from dynid.excitation.excitation import Excitation
from dynid.excitation.feasibility import is_feasible
from dynid.excitation.limits import MotionLimits
from dynid.excitation.plan_files import PLAN_FILES, plan_contents, read_coefficients, write_coefficients, write_plan
from dynid.excitation.search import Step
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.report.report import plan_page
from dynid.robot.model import Robot
from dynid.robot.zoo import cylindrical, ur10

QUICK = SearchSettings(starts=1, iterations=5, outer=3)
ARGUMENTS = ["excite", "gautier_khalil_3r", "--period", "5", "--set", "rate_hz=50",
             "--time-limit", "1", "--set", "velocity=2"]  # fmt: skip


@pytest.fixture(scope="module")
def robot() -> Robot:
    return ur10()


@pytest.fixture(scope="module")
def plan(robot: Robot) -> Excitation:
    return design_excitation(robot, MotionLimits.from_robot(robot, acceleration=7.5), settings=QUICK)


def test_every_format_holds_the_same_motion(plan: Excitation, tmp_path: Path) -> None:
    files = write_plan(plan, tmp_path, rate_hz=20)
    assert [file.name for file in files] == list(PLAN_FILES)
    with (tmp_path / "trajectory.csv").open() as stream:
        rows = np.array([[float(x) for x in row] for row in list(csv.reader(stream))[1:]])
    expected = plan.trajectory.evaluate(rows[:, 0])
    assert rows[:, 1:] == pytest.approx(np.hstack(expected), abs=1e-12)
    assert json.loads((tmp_path / "trajectory.json").read_text())["q"] == rows[:, 1:7].tolist()
    assert (tmp_path / "trajectory.script").read_text().count("servoj(") == len(rows)
    assert (tmp_path / "trajectory.yaml").read_text().count("positions:") == len(rows)
    contents = json.loads((tmp_path / "plan.json").read_text())
    assert contents == json.loads(json.dumps(plan_contents(plan)))
    assert list(contents["predicted_deviation"]) == list(plan.parameter_names)
    again = read_coefficients(tmp_path / "plan.json", plan.trajectory)
    assert again is not None
    assert np.array_equal(again.coefficients, plan.trajectory.coefficients)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"coefficients": "x"}', '{"coefficients": [[NaN]]}'])
def test_what_does_not_fit_is_no_trajectory(text: str, tmp_path: Path) -> None:
    family = FourierTrajectory.still(1, period_s=1.0, harmonics=0, lead_s=0.1)
    assert read_coefficients(tmp_path / "none.json", family) is None
    (tmp_path / "bad.json").write_text(text)
    assert read_coefficients(tmp_path / "bad.json", family) is None
    write_coefficients(family, tmp_path / "good.json")
    assert read_coefficients(tmp_path / "good.json", family) is not None


def test_an_interrupt_keeps_the_best_so_far(robot: Robot) -> None:
    steps: list[Step] = []

    def stop(step: Step) -> None:
        steps.append(step)
        if len(steps) == 3:
            raise KeyboardInterrupt

    limits = MotionLimits.from_robot(robot, acceleration=7.5)
    plan = design_excitation(robot, limits, progress=stop, settings=replace(QUICK, starts=5))
    assert plan.interrupted
    assert plan.history == tuple(steps)
    assert plan.value < 1.05 * min(step.value for step in steps)
    times, _ = plan.trajectory.grid(500)
    assert is_feasible(build_constraints(robot, limits), plan.trajectory.motion(times))


def test_an_interrupt_before_the_first_step_is_one(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynid.excitation.search.rest_positions", stop)
    with pytest.raises(KeyboardInterrupt):
        design_excitation(robot, settings=QUICK)


def test_page_shows_curves_limits_search_and_motion(plan: Excitation, robot: Robot) -> None:
    page = plan_page(plan, robot=robot)
    assert [chapter.title for chapter in page.chapters[:3]] == ["Motion to record", "Motion", "Search"]
    html = page.to_html()
    assert html.count('class="robot"') == 1
    for what in ("position of joint1", "torque of all joints", "criterion over time", '"label":"upper limit"'):
        assert what in html


def test_page_says_what_was_checked_in_the_joints_own_units(plan: Excitation, robot: Robot) -> None:
    page = plan_page(plan, robot=robot)
    text = page.to_markdown()
    assert "Not checked: jerk; floor and walls; tool speed; self-collision" in text
    assert "torque noise of 1 N m" in text
    assert "rad or m" not in page.to_html()
    assert "joint1 [rad]" in page.to_html()
    assert f"margin to the nearest limit ({plan.tightest.limit}, " in text  # type: ignore[union-attr]
    assert "log10 of the criterion" in page.to_html()
    rails = design_excitation(cylindrical(), MotionLimits.from_robot(cylindrical()), harmonics=2, settings=QUICK)
    assert {m.unit for m in rails.margins if m.limit in ("position", "velocity")} == {"rad", "m", "rad/s", "m/s"}


def test_speeds_without_limit_are_no_shares(robot: Robot) -> None:
    free = replace(MotionLimits.from_robot(robot, acceleration=7.5), velocity=np.full(6, np.inf))
    plan = design_excitation(robot, free, settings=QUICK)
    assert "% of the limit" not in plan.summary()
    least = np.abs(plan.trajectory.evaluate(np.linspace(0, plan.trajectory.duration, 2001))[1]).max(axis=0).min()
    assert f"speed reached: {least:.3g} rad/s" in plan.summary()
    half = replace(free, velocity=np.where(np.arange(6) < 3, 1.0, np.inf))
    assert "or more of the joints that have one" in design_excitation(robot, half, settings=QUICK).summary()
    assert "peak speed of the least-used joint" not in plan_page(plan, robot=robot).to_markdown()


def test_rates_that_are_not_the_motion_are_refused(plan: Excitation, tmp_path: Path) -> None:
    for rate_hz in (0.01, 1e9, 0.0, np.nan):
        with pytest.raises(ArgumentError, match=r"Use 2\.2 to "):
            write_plan(plan, tmp_path, rate_hz=rate_hz)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "plan"

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dynid.runs.plan_run.write_plan", stop)
        assert CliRunner().invoke(main, [*ARGUMENTS, "--out", str(out)]).exit_code == 130
    before = json.loads((tmp_path / ".plan.dynid" / "cache" / "best.json").read_text())["coefficients"]
    result = CliRunner().invoke(main, [*ARGUMENTS, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "continues" in result.output
    contents = json.loads((out / "plan.json").read_text())
    starts = {row[0] for row in contents["history"]["rows"]}
    assert len(starts) == 3  # two random ones and the motion found before
    assert np.shape(contents["coefficients"]) == np.shape(before)
    assert not (out / "cache").exists()
    assert not (out / "trajectory.script").exists()  # three joints
    assert ">Motion<" in (out / "report.html").read_text()


def test_a_robot_without_limits_gets_no_motion_of_any_speed(tmp_path: Path) -> None:
    bare = CliRunner().invoke(main, ["excite", "gautier_khalil_3r", "--time-limit", "1", "--out", str(tmp_path / "p")])
    assert bare.exit_code == 2
    assert "no velocity limit" in bare.output
    assert "velocity=" in bare.output
    assert not (tmp_path / "p").exists()


def test_parameters_that_no_motion_tells_apart_are_named(plan: Excitation) -> None:
    """An information that hardly knows one inertial parameter: a warning names it, where a sound plan has none."""
    assert "absurd-deviation" not in {caution.code for caution in plan.cautions}
    place = plan.parameter_units.index("kg m^2")
    scale = np.ones(len(plan.parameter_names))
    scale[place] = 1e-6
    hidden = replace(plan, information=plan.information * np.outer(scale, scale))
    (found,) = (caution for caution in hidden.cautions if caution.code == "absurd-deviation")
    assert found.severity == "warning"
    assert plan.parameter_names[place] in found.message
    assert found.evidence["largest predicted deviation"] == pytest.approx(1e6 * plan.predicted_deviation[place])
    assert found.message in hidden.summary()


def test_a_joint_that_stays_slow_is_named(plan: Excitation) -> None:
    fast = np.full_like(plan.coverage, 0.6)
    assert "slow-joint" not in {caution.code for caution in replace(plan, coverage=fast).cautions}
    slow = fast.copy()
    slow[1, 0] = 0.1  # one direction is enough
    (found,) = (caution for caution in replace(plan, coverage=slow).cautions if caution.code == "slow-joint")
    assert plan.limits.joint_names[1] in found.message
    assert "(10 %)" in found.message
