"""Plans on disk and on the command line: complete, read back, interrupted and gone on with."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import ArgumentError, ExportError
from dynid.excitation.constraints import build_constraints
from dynid.excitation.design import design_excitation
from dynid.excitation.excitation import PLAN_FILES, Excitation
from dynid.excitation.feasibility import is_feasible
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import SearchSettings, Step
from dynid.robot.model import Robot
from dynid.robot.zoo import ur10

QUICK = SearchSettings(starts=1, iterations=5, outer=3)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return ur10()


@pytest.fixture(scope="module")
def plan(robot: Robot) -> Excitation:
    return design_excitation(robot, MotionLimits.from_robot(robot, acceleration=7.5), settings=QUICK)


def test_every_format_holds_the_same_motion(plan: Excitation, tmp_path: Path) -> None:
    files = plan.write(tmp_path, rate_hz=20)
    assert [file.name for file in files] == list(PLAN_FILES)
    with (tmp_path / "trajectory.csv").open() as stream:
        rows = np.array([[float(x) for x in row] for row in list(csv.reader(stream))[1:]])
    expected = plan.trajectory.evaluate(rows[:, 0])
    assert rows[:, 1:] == pytest.approx(np.hstack(expected), abs=1e-12)
    assert (tmp_path / "trajectory.script").read_text().count("servoj(") == len(rows)
    yaml = pytest.importorskip("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the plain one takes seconds
    points = yaml.load((tmp_path / "trajectory.yaml").read_text(), loader)["points"]
    assert [point["positions"] for point in points] == pytest.approx(rows[:, 1:7], abs=1e-12)
    assert points[51]["time_from_start"] == {"sec": 2, "nanosec": 550_000_000}
    contents = json.loads((tmp_path / "plan.json").read_text())
    assert contents == json.loads(json.dumps(plan.contents()))
    assert list(contents["predicted_deviation"]) == list(plan.parameter_names)
    assert np.array_equal(contents["coefficients"], plan.trajectory.coefficients)


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


def test_rates_that_are_not_the_motion_are_refused(plan: Excitation, tmp_path: Path) -> None:
    for rate_hz in (0.01, 1e9, 0.0, np.nan):
        with pytest.raises(ArgumentError, match=r"Use 2\.2 to "):
            plan.write(tmp_path, rate_hz=rate_hz)
    (tmp_path / "plan.json").touch()
    with pytest.raises(ExportError, match="exists already"):
        plan.write(tmp_path, rate_hz=20)
    assert len(list(tmp_path.iterdir())) == 1


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
