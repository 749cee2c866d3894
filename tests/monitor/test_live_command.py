"""``dynid watch --live``: its stated rate, streams that it cannot judge, and how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result

import dynid
from dynid.cli import live_stream, main
from dynid.monitor.calibration import Calibration
from dynid.monitor.live_watch import LiveWatch
from dynid.workflows.live_calibration import calibrate_live
from support.header_styles import write_columns
from support.three_joints import LIVE_HEADER, MAP, csv_lines, identify_train, rubbing_log

VELOCITIES = '[velocity]\ncolumns = "dq{1..3}"\nunit = "rad/s"\n'


def table(seed: int, seconds: float = 30.0) -> np.ndarray:
    """(N, 10) a clean log whose velocities are far noisier than those that smoothing leaves."""
    log = rubbing_log(seed, seconds, position=1e-5, velocity=0.001)
    return np.column_stack([log.time, log.q, log.dq, log.effort])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder whose log has velocities."""
    here = tmp_path_factory.mktemp("live")
    (here / "map.toml").write_text(MAP.replace('"t"', '"time"') + VELOCITIES)
    write_columns(here / "train.csv", [LIVE_HEADER], [table(0, 60.0)])
    write_columns(here / "clean.csv", [LIVE_HEADER], [table(2)])
    identify_train(here)
    return here


@pytest.fixture(scope="module")
def known(folder: Path) -> tuple[dynid.Identification, Calibration]:
    """The result, and what its own log tells of noise."""
    fit = dynid.read_result(folder / "result").identification()
    return fit, calibrate_live(folder / "result", fit)


def pushed(seed: int = 1) -> np.ndarray:
    rows = table(seed, 8.0)
    rows[500:560, 8] -= 40.0
    return rows


def watch(folder: Path, rows: np.ndarray, *words: str) -> Result:
    arguments = ["watch", str(folder / "result"), "--live", *words]
    return CliRunner().invoke(main, arguments, input="\n".join(csv_lines(rows)), catch_exceptions=False)


def test_the_stated_rate_holds_for_the_robots_own_velocities(folder: Path, known) -> None:
    fit, own = known
    guard = LiveWatch(fit, own, per_hour=360.0)
    found = [alarm for row in table(3, 60.0) for alarm in guard.step(row[0], row[1:4], row[4:7], row[7:])]
    assert len(found) <= 14  # 6 are expected; calibrated from smoothed motion, 85 came
    assert abs(guard.judged_s - 59.7) < 0.1
    other = calibrate_live(folder / "result", fit, clean=[folder / "clean.csv"], channel_map=folder / "map.toml")
    np.testing.assert_allclose(other.typical_std, own.typical_std, rtol=0.3)


def test_a_calibration_without_velocities_says_so(folder: Path, known) -> None:
    bare, clean = folder / "bare.toml", [folder / "clean.csv"]
    bare.write_text(MAP.replace('"t"', '"time"'))
    said: list[dynid.Finding] = []
    calibrate_live(folder / "result", known[0], clean=clean, channel_map=bare, notice=said.append)
    assert [finding.code for finding in said] == ["watch-calibration"]


@pytest.mark.parametrize("learn", [(), ("--learn", "5")])
@pytest.mark.parametrize("scale", [1000.0, -1.0])
def test_a_stream_that_cannot_be_judged_is_an_error(folder: Path, learn: tuple[str, ...], scale: float) -> None:
    rows = table(1, 12.0)
    rows[:, 0] *= scale
    done = watch(folder, rows, *learn)
    assert done.exit_code == 3
    shown = " ".join(done.stderr.split())
    assert f"times are {0.01 * scale:.3g} s apart" in shown
    assert "times in seconds that grow" in shown


def test_a_stream_that_ends_while_it_is_learnt_from_is_named(folder: Path) -> None:
    done = watch(folder, table(1, 6.0), "--learn", "30")
    assert done.exit_code == 3
    assert "ended after 6 s of the 30 s of learning" in " ".join(done.stderr.split())


def test_alarms_are_lines_of_json_with_the_step_of_torque(folder: Path) -> None:
    done = watch(folder, pushed(), "--json")
    assert done.exit_code == 1
    first, *_ = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["joint"] == "joint2"
    assert 18.0 < first["torque"] < 50.0  # the first period holds half of the step; the observer gives a third of it
    assert "false ones are expected at 1 per hour" in done.stderr
    assert "a step of" in watch(folder, pushed()).stdout


def watch_stream(known: tuple[dynid.Identification, Calibration]) -> int:
    return live_stream.watch_stream(known[0], lambda: known[1], learn=0.0, per_hour=1.0, as_json=False)


def interrupted(rows: np.ndarray) -> Iterator[str]:
    yield from csv_lines(rows)
    raise KeyboardInterrupt


@pytest.mark.parametrize(("rows", "code"), [(pushed(), 1), (pushed()[:400], 0)])
def test_an_interrupt_ends_a_watch_as_usual(
    known, rows: np.ndarray, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live_stream, "sys", SimpleNamespace(stdin=interrupted(rows)))
    assert watch_stream(known) == code
    shown = capsys.readouterr().err
    assert "are expected at 1 per hour" in shown
    assert "excite" not in shown


def test_a_reader_that_ends_after_an_alarm_leaves_its_exit_code(known, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_pipe(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(live_stream, "sys", SimpleNamespace(stdin=csv_lines(pushed()), stdout=sys.stdout))
    monkeypatch.setattr(live_stream, "_print_alarm", break_pipe)
    monkeypatch.setattr(live_stream, "write_no_more", lambda: None)
    assert watch_stream(known) == 1


@pytest.mark.parametrize(("factor", "code"), [(-1.0, "flipped"), (1000.0, "unit"), (1.0, "")])
def test_torques_of_the_wrong_sign_or_unit_are_doubted(folder: Path, factor: float, code: str) -> None:
    rows = table(1, 12.0)
    rows[:, 7:] *= factor
    done = watch(folder, rows)
    assert (f"[{code}]" in done.stderr) == bool(code)
    assert ("the alarms say nothing about pushes" in " ".join(done.stderr.split())) == bool(code)
