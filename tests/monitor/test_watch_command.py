"""``dynid watch`` and ``dynid.watch``: logs, planted pushes, standard input, and the live watch against whole logs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from campaigns.watch_friction import watch_clean
from dynid.cli import main
from dynid.errors import ArgumentError, DataError
from dynid.monitor.bands import RunOffsets
from dynid.monitor.calibration import calibrate
from dynid.monitor.live_lines import read_samples
from dynid.monitor.live_watch import LiveWatch
from dynid.monitor.watched_signals import watched_stretches
from support.exact_runs import exact_run
from support.header_styles import write_columns
from support.small_fit import small_fit
from support.three_joints import HEADER, LIVE_HEADER, MAP, csv_lines, identify_train, rubbing_log


@cache
def calibrated():
    fit, run = small_fit()
    return fit, run, calibrate(fit)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder, its log, a clean log, and one with a push on joint 2."""
    here = tmp_path_factory.mktemp("watch")
    (here / "map.toml").write_text(MAP)
    for seed, name in enumerate(("train", "clean", "pushed")):
        log = rubbing_log(seed, 12)
        effort = np.array(log.effort)
        if name == "pushed":
            effort[600:700, 1] -= 4.0
        write_columns(here / f"{name}.csv", [HEADER], [log.time, log.q, effort])
    identify_train(here)
    return here


def watch(folder: Path, *words: str, stdin: str | None = None):
    arguments = [w if w.startswith("-") or w.replace(".", "").isdigit() else str(folder / w) for w in words]
    return CliRunner().invoke(main, ["watch", *arguments], input=stdin, catch_exceptions=False)


def test_a_push_is_reported_with_time_joint_and_exit_code(folder: Path) -> None:
    words = ("--clean", "clean.csv", "--map", "map.toml", "--json")
    done = watch(folder, "result", "pushed.csv", *words, "--out", "watched")
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)["watches"]
    first = found["alarms"][0]
    assert first["joint"] == "joint2"
    assert abs(first["time_s"] - 6.0) < 0.05
    assert "Torques from outside" in (folder / "watched" / "report.html").read_text()
    assert watch(folder, "result", "train.csv", *words).exit_code == 0


def test_the_logs_of_the_result_calibrate_it_by_default(folder: Path) -> None:
    found = dynid.watch(folder / "result", folder / "clean.csv", clean=[], channel_map=folder / "map.toml")
    assert found.alarms == 0
    assert found.watches[0].calibrated_s > 8.0


def test_the_map_of_a_watched_log_is_not_that_of_the_logs_of_the_result(folder: Path) -> None:
    table = np.loadtxt(folder / "pushed.csv", delimiter=",", skiprows=1)
    table[:, 1:4] = np.degrees(table[:, 1:4])
    write_columns(folder / "degrees.csv", [HEADER.replace("q", "a")], [table])
    in_degrees = MAP.replace("q{1..3}", "a{1..3}").replace('unit = "rad"', 'unit = "deg"')
    (folder / "degrees.toml").write_text(in_degrees)
    one = dynid.watch(folder / "result", folder / "pushed.csv", channel_map=folder / "map.toml")
    other = dynid.watch(folder / "result", folder / "degrees.csv", channel_map=folder / "degrees.toml")
    np.testing.assert_array_equal(one.sight.slow, other.sight.slow)
    assert [alarm.joint for alarm in one.watches[0].alarms] == [alarm.joint for alarm in other.watches[0].alarms]


def test_files_of_a_result_that_have_changed_do_not_calibrate_a_watch(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "result", tmp_path / "result")
    facts = json.loads((folder / "result" / "run.json").read_text())
    (own,) = (entry for entry in facts["inputs"] if entry["path"].endswith("map.toml"))
    own["sha256"] = "0" * 64
    (tmp_path / "result" / "run.json").write_text(json.dumps(facts))
    with pytest.raises(ArgumentError, match=r"map\.toml.* has changed"):
        dynid.watch(tmp_path / "result", folder / "clean.csv", channel_map=folder / "map.toml")


def change_log(folder: Path, name: str, change: Callable[..., tuple[np.ndarray, np.ndarray]]) -> dynid.Recording:
    """A log of the folder with other positions and torques."""
    log = dynid.read_recording(folder / name, dynid.robots.gautier_khalil_3r(), channel_map=folder / "map.toml")
    q, effort = change(log.q, log.effort)
    return replace(log, q=q, effort=effort)


def watch_log(folder: Path, log: dynid.Recording | Path, clean: str | dynid.Recording = "clean.csv", **options):
    """Watch a log by the result of the folder."""
    given = folder / clean if isinstance(clean, str) else clean
    return dynid.watch(folder / "result", log, clean=[given], channel_map=folder / "map.toml", **options)


SWAP = slice(None, None, -1)
FAULTS = {
    "degrees": (lambda q, tau: (np.degrees(q), tau), "unit", None),
    "one in degrees": (lambda q, tau: (q * [1.0, 180.0 / np.pi, 1.0], tau), "unit", "joint2"),
    "reversed": (lambda q, tau: (q[:, SWAP], tau[:, SWAP]), "swapped", "joint1"),
    "signs": (lambda q, tau: (q, -tau), "flipped", None),
    "one sign": (lambda q, tau: (q, tau * [1.0, -1.0, 1.0]), "flipped", "joint2"),
    "frozen": (lambda q, tau: (q, 0.0 * tau), "frozen", None),
    "thousandfold": (lambda q, tau: (q, 1000.0 * tau), "unit", None),
}
"""What is done to a log -> code and joint of its finding."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_log_with_wrong_signs_units_or_order_is_told_before_its_alarms(folder, fault) -> None:
    change, code, joint = FAULTS[fault]
    told: list[dynid.Finding] = []
    found = watch_log(folder, change_log(folder, "pushed.csv", change), notice=told.append)
    assert [(finding.code, finding.joint) for finding in told] == [(code, joint)]
    assert found.findings == tuple(told)
    assert found.to_json()["findings"][0]["code"] == code


def test_pushes_loads_and_offsets_are_no_faults_of_a_log(folder: Path) -> None:
    loaded = change_log(folder, "pushed.csv", lambda q, tau: (q, tau * [1.0, 1.5, 1.5] + [0.0, 0.0, 20.0]))
    for log in (loaded, folder / "pushed.csv"):
        found = watch_log(folder, log)
        assert found.alarms
        assert not found.findings


def test_logs_that_were_fitted_are_told(folder: Path) -> None:
    words = ("--map", "map.toml")
    assert "[watch-seen]" in watch(folder, "result", "train.csv", *words).stderr
    done = watch(folder, "result", "clean.csv", "--clean", "train.csv", *words)
    assert "[watch-seen]" in done.stderr
    assert "[watch-" not in watch(folder, "result", "clean.csv", *words).stderr


def test_pushes_in_clean_logs_are_told(folder: Path) -> None:
    def push(q: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return q, tau + 20.0 * (np.arange(100, 100 + len(tau)) % 200 < 60)[:, None]

    log = change_log(folder, "clean.csv", push)
    found = watch_log(folder, folder / "pushed.csv", log)
    assert [finding.code for finding in found.findings] == ["watch-calibration"]


def test_a_watch_says_which_pushes_it_sees(folder: Path) -> None:
    words = ("--clean", "clean.csv", "--map", "map.toml")
    assert "sees pushes of at least" in watch(folder, "result", "train.csv", *words).stdout
    sees = json.loads(watch(folder, "result", "train.csv", *words, "--json").stdout)["sees"]
    assert all(0.0 < sees[kind]["joint2"] < 4.0 for kind in ("sudden", "slow"))  # the push of the other tests


def test_live_lines_raise_the_same_alarm(folder: Path) -> None:
    run = dynid.process(change_log(folder, "pushed.csv", lambda *same: same), cutoff_hz=10)
    lines = [json.dumps({"time": t, "q": q.tolist(), "dq": dq.tolist(), "tau": tau.tolist()})
             for t, q, dq, tau in zip(run.time, run.q, run.dq, run.effort, strict=True)]  # fmt: skip
    words = ("--live", "--clean", "clean.csv", "--map", "map.toml")
    done = watch(folder, "result", *words, stdin="\n".join(lines))
    assert done.exit_code == 1
    assert "joint2" in done.stdout.splitlines()[0]
    assert watch(folder, "result", "clean.csv", *words).exit_code == 2


@pytest.mark.parametrize(("stands", "differ"), [(False, False), (True, False), (False, True)])
def test_a_live_watch_has_the_statistics_of_the_whole_log(stands: bool, differ: bool) -> None:
    """In motion without open friction, where every speed counts as rest, and where it learns the offset of the run."""
    fit, run, known = calibrated()
    if differ:
        run = replace(run, effort=run.effort + np.array([3.0, 0.0, -1.0]))
        known = replace(known, offsets=RunOffsets(np.array([9.0, 0.0, 2.0]), np.array([0.01, 1.0, 0.02])))
    (stretch,) = watched_stretches(fit, run, known.rate_hz)
    constant = np.broadcast_to(known.typical_spread, stretch.spread.shape)
    changed = {"high_speed": np.full(3, 1e3), "dry_friction": np.full(3, 0.05)} if stands else {
        "dry_friction": np.zeros(3)
    }  # fmt: skip
    still = replace(known, band=replace(known.band, **changed))
    wanted = still.statistics(replace(stretch, spread=constant, spread_without_offsets=constant))
    assert (np.abs(wanted.external[-50:].mean(axis=0)) < 0.2).all()
    assert still.band.stands_still(stretch)[-1].all() == stands
    guard = LiveWatch(fit, still)
    found = []
    for k in range(run.samples):
        guard.step(float(run.time[k]), run.q[k], run.dq[k], run.effort[k])
        if guard.found is not None:
            found.append([getattr(guard.found, name)[-1] for name in ("external", "jump", "level")])
    for name, part in zip(("external", "jump", "level"), zip(*found, strict=True), strict=True):
        np.testing.assert_allclose(part, getattr(wanted, name)[-len(part) :], rtol=0.03, atol=0.03)


def test_lines_are_read_as_csv_and_json_and_refused_by_number() -> None:
    csv = ["\ufefftime,q1,dq1,tau1", "0.0,1,2,3", "", "0.1,4,5,6"]
    sample = '{"time": 1, "q": [1], "dq": [2], "tau": [3]}'
    refused: list[DataError] = []
    assert [found.torque[0] for found in read_samples([*csv, sample], ["a"], refused.append)] == [3.0, 6.0, 3.0]
    assert not refused
    broken = (
        ("0,1,2", "line 4 .* 3 cells"), ("nan,1,2,3", "time"), ("{", "JSON"), ('{"time": 1}', "missing .* `q`"),
        (sample.replace("3", '"x"'), "float"), (sample.replace("3", "NaN"), "JSON"),
        (sample.replace("3", "1e300"), "tau"), (sample.replace("1,", "1e300,"), "time"),
        (sample.replace("[1]", "[1, 2]"), "joints"),
    )  # fmt: skip
    for line, word in broken:
        refused.clear()
        assert len(list(read_samples([*csv[:3], line, csv[3]], ["a"], refused.append))) == 2
        assert re.search(word, str(refused.pop()))
    assert list(read_samples(["0.0,1,2,3"], ["a"], refused.append)) == []
    assert "no header" in str(refused)
    with pytest.raises(DataError, match="header has no dq1, tau1"):
        list(read_samples(["time,q1", "0,1"], ["a"], refused.append))


def test_a_live_watch_survives_broken_lines_pauses_and_rest(folder: Path) -> None:
    """A robot that stands still for a minute, a pause, broken lines and repeated times: no alarm, and no end."""
    words = ("--live", "--clean", "clean.csv", "--map", "map.toml", "--per-hour", "1")
    fit = dynid.read_result(folder / "result").identification()
    rng = np.random.default_rng(0)
    q, rest = np.array([0.3, -0.2, 0.4]), np.zeros((4, 3))
    standing = exact_run(0.01 * np.arange(4), (rest + q, rest, rest), joint_names=fit.robot.joint_names)
    weight = fit.torque(standing)[0]
    lines = [LIVE_HEADER, "what", "0,0,0"]
    for k in range(600):
        stamp = 0.01 * k + (50.0 if k > 300 else 0.0)
        row = [stamp, *q, *(0.0, 0.0, 0.0), *(weight + 0.05 * rng.normal(size=3))]
        lines.append(",".join(f"{value:.6f}" for value in row))
        if k == 100:
            lines += [lines[-1], lines[-1].replace(lines[-1].split(",")[-1], "nan")]
    done = watch(folder, "result", *words, stdin="\n".join(lines))
    assert done.exit_code == 0
    assert "left out: line 2" in done.stderr
    assert "does not follow" in done.stderr


def live_lines(run: dynid.Experiment, push: slice) -> list[str]:
    """CSV of a run with a push on joint 2."""
    torque = run.effort.copy()
    torque[push, 1] -= 4.0
    rows = np.column_stack([run.time, run.q, run.dq, torque])
    return csv_lines(rows)


@pytest.mark.parametrize(("stamp", "ways"), [(1e9, ("ahead", "back")), (-1e9, ("back", "ahead"))])
def test_a_wrong_stamp_does_not_deafen_a_live_watch(folder: Path, stamp: float, ways: tuple[str, str]) -> None:
    log = change_log(folder, "clean.csv", lambda *same: same)
    lines = live_lines(dynid.process(log, cutoff_hz=10), slice(700, 760))
    lines[301] = ",".join([repr(stamp), *lines[301].split(",")[1:]])
    for words in (("--clean", "train.csv", "--map", "map.toml"), ("--learn", "5.5")):
        done = watch(folder, "result", "--live", *words, stdin="\n".join(lines))
        assert done.exit_code == 1
        assert "joint2" in done.stdout.splitlines()[0]
        assert [f"jumps {way}" in done.stderr for way in ways] == [True, True]
        assert "begins anew" in done.stderr
        assert ("learning from 5.5 s" in done.stderr) == ("--learn" in words)
        assert "does not follow" not in done.stderr


def test_a_clock_that_is_set_back_begins_a_watch_anew() -> None:
    """Also after an alarm: what was touched by the clock before says nothing about the clock after."""
    fit, run, known = calibrated()
    guard, found = LiveWatch(fit, known, per_hour=60.0), []
    for start in (1000.0, 0.0):
        for k in range(500):
            push = np.array([0.0, -20.0 if 300 <= k < 360 else 0.0, 0.0])
            found += guard.step(start + k / run.rate_hz, run.q[k], run.dq[k], run.effort[k] + push)
    assert {alarm.time_s > 1000.0 for alarm in found if alarm.joint == "joint2"} == {True, False}
    with pytest.raises(DataError, match="does not follow"):
        guard.step(499 / run.rate_hz, run.q[0], run.dq[0], run.effort[0])


def test_motions_unlike_the_calibration_have_no_stated_rate_and_clean_logs_hardly_an_alarm(tmp_path: Path) -> None:
    """Friction that the model lacks; `make watch-hours` counts twenty logs of five minutes. Smoothed logs gave 50."""
    alike, faster = watch_clean(0, tmp_path, ("alike", "faster"), 60.0)
    assert (len(alike.alarms), alike.unlike) == (0, "")
    assert "0.017 false ones are expected at 1 per hour" in alike.verdict
    assert len(faster.alarms) <= 6  # 4 came, and 1 and 0 with other seeds
    assert "no rate of false alarms can be stated: joint3 moves 2.3 times as fast" in faster.verdict
    assert faster.to_json()["false_alarms_per_hour"] is None
