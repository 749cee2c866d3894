"""A cascade law with limit and drive gain, simulated and identified; EMPS, a real slide whose law is published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from campaigns.emps import DATA, REFERENCE, distance_um, law_rest, read_cascade, read_slide, slide_robot
from dynid.control_loop.laws import Cascade, Tracked
from dynid.errors import ArgumentError

ROOT = Path(__file__).parents[2]
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the data of EMPS are not at {DATA}")


def tracked(q: float, dq: float, wanted: float) -> Tracked:
    return Tracked(*(np.array([x]) for x in (q, dq, wanted, 0.0, 0.0)))


def test_the_law_is_the_published_formula() -> None:
    law, none = Cascade(kp=160.0, kv=240.0, gain=35.0, limit=10.0), np.zeros(0)
    assert law.torque(tracked(0.1, 0.02, 0.1002), none, 1e-3)[0] == pytest.approx(35.0 * 240.0 * (160.0 * 2e-4 - 0.02))
    assert law.torque(tracked(0.0, 0.0, 1.0), none, 1e-3)[0] == pytest.approx(350.0)
    assert law.torque(tracked(0.0, 0.0, -1.0), none, 1e-3)[0] == pytest.approx(-350.0)


def test_a_late_velocity_is_remembered() -> None:
    law, memory = Cascade(kp=0.0, kv=2.0, velocity_late=2), np.zeros(2)
    seen = []
    for dq in (1.0, 2.0, 3.0, 4.0):
        torque, memory = law.torque(tracked(0.0, dq, 0.0), memory, 1e-3)
        seen.append(float(torque[0]))
    assert seen == [0.0, 0.0, -2.0, -4.0]


def test_a_saturated_slide_is_identified_in_its_loop(tmp_path: Path) -> None:
    """Planted values come back, although the command is at its limit for a part of the time."""
    law = Cascade(kp=15.0, kv=100.0, gain=35.0, limit=5.0, velocity_late=1)
    planted = {"MR1": 80.0, "FV1": 150.0, "FC1": 15.0, "OFF1": -2.0}
    time = np.arange(4000) / 1000.0
    q = 0.05 * (np.sin(4.0 * time) + 0.3 * np.sin(9.0 * time))[:, None]
    dq = np.gradient(q, 1e-3, axis=0)
    reference = dynid.control_loop.ReferenceMotion(q=q, dq=dq, ddq=np.gradient(dq, 1e-3, axis=0), rate_hz=1000.0)
    loop = dynid.control_loop.Loop(law=law, reference=reference, q0=q[0], dq0=np.zeros(1))
    run = dynid.control_loop.simulate_loop(slide_robot(planted), loop)
    assert (np.abs(run.torque) > 174.99).mean() > 0.01
    log = dynid.Recording(time=run.time, q=run.q, effort=run.torque)
    experiment = dynid.process(log, cutoff_hz=None, rest=None)
    robot = slide_robot({"MR1": 60.0, "FV1": 120.0, "FC1": 12.0, "OFF1": -1.0})
    equations = dynid.estimators.build_equations(robot, replace(experiment, loop=loop))
    found = dynid.estimators.DIDIM().solve(equations)
    np.testing.assert_allclose(found.values, list(planted.values()), rtol=2e-3)


@needs_data
def test_the_published_values_follow_both_runs_of_emps() -> None:
    law = read_cascade()
    assert distance_um(REFERENCE, read_slide("DATA_EMPS"), law) < 3.0
    assert distance_um(REFERENCE, read_slide("DATA_EMPS_PULSES"), law) < 90.0


@needs_data
def test_the_log_shows_that_the_velocity_is_late_and_the_pulses_are_volts() -> None:
    late, prompt = law_rest(read_slide("DATA_EMPS"))
    assert late < 0.1 * prompt
    assert law_rest(read_slide("DATA_EMPS_PULSES"))[0] < 0.05  # without the pulses the command obeys the law


@needs_data
@pytest.mark.parametrize("method", ["iv", "didim"])
def test_emps_in_its_loop(method: str) -> None:
    recipe = dynid.Recipe(
        estimator=method,
        friction="plain",
        law=str(ROOT / "robots" / "emps_law.toml"),
        cutoff_hz=55.0,
        gate=False,
    )
    robot = dynid.read_urdf(ROOT / "robots" / "emps.urdf")
    fit = dynid.identify(robot, [DATA / "DATA_EMPS.mat"], recipe=recipe, channel_map="emps").estimate
    assert "controller" not in fit.codes
    wanted = np.array(list(REFERENCE.values()))
    assert (np.abs(fit.values - wanted) < 2.0 * fit.stderr).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kp = 160\nkv = 240\nlimit = 0", "limit"),
        ("kp = 160", "kv is missing"),
        ("kp = 160\nkv = 240\nkd = 3", "has no kd"),
        ("kp = 160\nkv = -1", "negative"),
        ("kp = 160\nkv = 240\nvelocity_late = 0.5", "velocity_late"),
    ],
)
def test_wrong_law_files_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "law.toml").write_text(f'kind = "cascade"\n{text}\n')
    with pytest.raises(ArgumentError, match=reason):
        dynid.control_loop.read_law(tmp_path / "law.toml")
