"""`identify` takes data frames, dictionaries and estimators by name; `predict` takes terms without memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.logs import as_recording, read_lerobot
from dynid.processing.simulation import sum_of_sines
from dynid.terms.friction import Coulomb, Viscous
from support.servo_logs import write_lerobot

ROBOT = dynid.robots.gautier_khalil_3r().with_terms(Viscous(), Coulomb())
LOG = dynid.simulate_experiment(
    ROBOT, sum_of_sines(3, seed=2), rate_hz=100, noise=dynid.Noise(effort=0.2), duration_s=6, seed=1
)
BARE = dynid.Recipe.bare()
MAP = {
    "time": {"column": "stamp", "unit": "ms"},
    "position": {"columns": "q{1..3}_deg", "unit": "deg"},
    "effort": {"columns": "tau{1..3}", "unit": "N m"},
}


def columns() -> dict[str, np.ndarray]:
    named = {f"q{j + 1}_deg": np.rad2deg(LOG.q[:, j]) for j in range(3)}
    return {"stamp": 1e3 * LOG.time, **named, **{f"tau{j + 1}": LOG.effort[:, j] for j in range(3)}}


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    return dynid.identify(ROBOT, dynid.process(LOG), BARE, estimator=dynid.WLS()).estimate.values


def test_dictionaries_and_estimators_by_name(wanted: np.ndarray) -> None:
    table = {"time": LOG.time, "q": LOG.q, "effort": LOG.effort}
    run = dynid.process(as_recording(table, ROBOT))
    np.testing.assert_allclose(dynid.identify(ROBOT, run, BARE, estimator="wls").estimate.values, wanted)
    by_table = dynid.identify(ROBOT, table, BARE, estimator="wls").estimate.values
    by_recording = dynid.identify(ROBOT, LOG, BARE, estimator="wls").estimate.values
    np.testing.assert_array_equal(by_table, by_recording)
    with pytest.raises(dynid.errors.ArgumentError, match="there is no 'wsl'"):
        dynid.identify(ROBOT, run, BARE, estimator="wsl")


@pytest.mark.parametrize("library", ["dict", "pandas", "polars"])
def test_data_frames_by_a_channel_map(library: str) -> None:
    frame = columns() if library == "dict" else pytest.importorskip(library).DataFrame(columns())
    recording = as_recording(frame, ROBOT, channel_map=MAP)
    np.testing.assert_allclose(recording.q, LOG.q, atol=1e-12)
    np.testing.assert_allclose(recording.time, LOG.time)
    with pytest.raises(dynid.DynidError, match="do not say"):
        as_recording(frame, ROBOT)


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_lerobot_episodes_are_runs(version: str, tmp_path: Path) -> None:
    order, halves = [2, 0, 1], (slice(0, 300), slice(300, 600))
    names = [f"{ROBOT.joint_names[j]}.pos" for j in order]
    columns = {
        "observation.state": np.rad2deg(LOG.q[:600, order]),
        "observation.effort": LOG.effort[:600, order],
        "timestamp": np.tile(np.arange(300) / 100, 2),
        "episode_index": np.repeat([0, 1], 300),
    }
    write_lerobot(tmp_path, names, 100, columns, version)
    runs = read_lerobot(tmp_path, ROBOT, unit="deg")
    assert len(runs) == 2
    for run, rows in zip(runs, halves, strict=True):
        np.testing.assert_allclose(run.q, LOG.q[rows], atol=1e-12)
        np.testing.assert_allclose(run.effort, LOG.effort[rows])
    assert len(read_lerobot(tmp_path, ROBOT, unit="deg", episodes=(1,))) == 1
    (renamed, _) = read_lerobot(tmp_path, ROBOT, unit="deg", joints=ROBOT.joint_names)
    np.testing.assert_allclose(renamed.q, LOG.q[halves[0]][:, order], atol=1e-12)
    with pytest.raises(dynid.DynidError, match=r"info\.json"):
        read_lerobot(tmp_path / "data", unit="deg")


@pytest.mark.parametrize("style", ["q{k}", "q_{k}", "q_{name}", "{name}.q", "levels"])
def test_columns_of_single_joints(style: str) -> None:
    pandas = pytest.importorskip("pandas")
    shuffled = [2, 0, 1]  # columns stand in another order than the robot's joints
    assert LOG.effort is not None
    named: dict[object, np.ndarray] = {("time", "") if style == "levels" else "time": LOG.time}
    for field, values in (("q", LOG.q), ("effort", LOG.effort)):
        for j in shuffled:
            name = ROBOT.joint_names[j]
            text = style.replace("q", field).format(k=j + 1, name=name)
            named[(field, name) if style == "levels" else text] = values[:, j]
    recording = as_recording(pandas.DataFrame(named), ROBOT)
    np.testing.assert_array_equal(recording.q, LOG.q)
    np.testing.assert_array_equal(recording.effort, LOG.effort)
    assert recording.joint_names == ROBOT.joint_names


def test_instants_and_wrong_columns() -> None:
    stamps = (LOG.time * 1e9).round().astype("datetime64[ns]")
    table = {"time": stamps, "q": LOG.q, "effort": LOG.effort}
    np.testing.assert_allclose(as_recording(table, ROBOT).time, LOG.time - LOG.time[0], atol=1e-9)
    for wrong in (LOG.q + 1j, np.array([[1.0], [1.0, 2.0]], dtype=object)):
        with pytest.raises(dynid.errors.DataError, match="else than numbers"):
            as_recording({"time": LOG.time, "q": wrong})
    with pytest.raises(dynid.errors.DataError, match="different joints"):
        as_recording({"time": LOG.time, "q1": LOG.q[:, 0], "effort2": LOG.q[:, 0]})


def test_validate_takes_what_identify_takes() -> None:
    fit = dynid.identify(ROBOT, LOG, BARE, estimator="wls")
    other = dynid.simulate_experiment(
        ROBOT, sum_of_sines(3, seed=3), rate_hz=100, noise=dynid.Noise(effort=0.2), duration_s=6, seed=2
    )
    by_table = dynid.validate(fit, {"time": other.time, "q": other.q, "effort": other.effort})
    np.testing.assert_array_equal(by_table.relative_error, dynid.validate(fit, other).relative_error)
    assert by_table.relative_error < 2.0  # noise of 0.2 N m
