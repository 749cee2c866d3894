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
from dynid.monitor.live_watch import LiveWatch
from dynid.processing.simulation import sum_of_sines
from dynid.workflows.live_calibration import calibrate_live
from support.three_joints import MAP

HEADER = "time,q1,q2,q3,dq1,dq2,dq3,tau1,tau2,tau3"
VELOCITIES = '[velocity]\ncolumns = "dq{1..3}"\nunit = "rad/s"\n'


def table(seed: int, seconds: float = 30.0, rate_hz: float = 100.0) -> np.ndarray:
    """(N, 10) a clean log whose velocities are far noisier than those that smoothing leaves."""
    real = dynid.robots.gautier_khalil_3r().with_terms(
        dynid.Viscous(0.5), dynid.Coulomb(0.3), dynid.RotorInertia(0.2), dynid.Offset(0.1)
    )
    log = dynid.simulate_experiment(
        real, sum_of_sines(3, seed=seed), rate_hz=rate_hz, duration_s=seconds, seed=seed,
        noise=dynid.Noise(position=1e-5, velocity=0.001, effort=0.1),
    )  # fmt: skip
    assert log.dq is not None
    assert log.effort is not None
    return np.column_stack([log.time, log.q, log.dq, log.effort])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder whose log has velocities."""
    here = tmp_path_factory.mktemp("live")
    (here / "map.toml").write_text(MAP.replace('"t"', '"time"') + VELOCITIES)
    np.savetxt(here / "train.csv", table(0, 60.0), delimiter=",", header=HEADER, comments="")
    words = ["--estimator", "wls", "--set", "friction=plain", "--set", "cutoff_hz=10", "--set", "gate=false"]
    where = ["gautier_khalil_3r", str(here / "train.csv"), "--map", str(here / "map.toml")]
    done = CliRunner().invoke(main, ["identify", *where, *words, "--out", str(here / "result")])
    assert done.exit_code == 0
    return here


def lines(rows: np.ndarray) -> str:
    return "\n".join([HEADER, *(",".join(map(repr, row)) for row in rows.tolist())])


def pushed(seed: int = 1) -> np.ndarray:
    rows = table(seed, 8.0)
    rows[500:560, 8] -= 40.0
    return rows


def watch(folder: Path, stdin: str, *words: str) -> Result:
    arguments = ["watch", str(folder / "result"), "--live", *words]
    return CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)


def test_the_stated_rate_holds_for_the_robots_own_velocities(folder: Path) -> None:
    fit = dynid.read_result(folder / "result").identification()
    known = calibrate_live(folder / "result", fit)
    guard = LiveWatch(fit, known, per_hour=360.0)
    found = [alarm for row in table(3, 60.0) for alarm in guard.step(row[0], row[1:4], row[4:7], row[7:])]
    assert len(found) <= 14  # 6 are expected; calibrated from smoothed motion, 85 came
    assert abs(guard.judged_s - 59.7) < 0.1
    clean = folder / "clean.csv"
    np.savetxt(clean, table(2), delimiter=",", header=HEADER, comments="")
    other = calibrate_live(folder / "result", fit, clean=[clean], channel_map=folder / "map.toml")
    np.testing.assert_allclose(other.typical_std, known.typical_std, rtol=0.3)


def test_a_calibration_without_velocities_says_so(folder: Path) -> None:
    fit = dynid.read_result(folder / "result").identification()
    (folder / "bare.toml").write_text(MAP.replace('"t"', '"time"'))
    clean = folder / "clean.csv"
    np.savetxt(clean, table(2), delimiter=",", header=HEADER, comments="")
    said: list[dynid.Finding] = []
    calibrate_live(folder / "result", fit, clean=[clean], channel_map=folder / "bare.toml", notice=said.append)
    assert [finding.code for finding in said] == ["watch-calibration"]


@pytest.mark.parametrize("learn", [(), ("--learn", "5")])
@pytest.mark.parametrize("scale", [1000.0, -1.0])
def test_a_stream_that_cannot_be_judged_is_an_error(folder: Path, learn: tuple[str, ...], scale: float) -> None:
    rows = table(1, 12.0)
    rows[:, 0] *= scale
    done = watch(folder, lines(rows), *learn)
    assert done.exit_code == 3
    shown = " ".join(done.stderr.split())
    assert f"times are {0.01 * scale:.3g} s apart" in shown
    assert "times in seconds that grow" in shown


def test_a_stream_that_ends_while_it_is_learnt_from_is_named(folder: Path) -> None:
    done = watch(folder, lines(table(1, 6.0)), "--learn", "30")
    assert done.exit_code == 3
    assert "ended after 6 s of the 30 s of learning" in " ".join(done.stderr.split())


def test_alarms_are_lines_of_json_with_the_step_of_torque(folder: Path) -> None:
    done = watch(folder, lines(pushed()), "--json")
    assert done.exit_code == 1
    first, *_ = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["joint"] == "joint2"
    assert 18.0 < first["torque"] < 50.0  # the first period holds half of the step; the observer gives a third of it
    assert "false ones are expected at 1 per hour" in done.stderr
    assert "a step of" in watch(folder, lines(pushed())).stdout


class _Ending:
    """Lines that end with an error."""

    def __init__(self, text: str, error: BaseException) -> None:
        self.lines, self.error = text.splitlines(), error

    def __iter__(self) -> Iterator[str]:
        yield from self.lines
        raise self.error


@pytest.mark.parametrize(("rows", "code"), [(pushed(), 1), (pushed()[:400], 0)])
def test_an_interrupt_ends_a_watch_as_usual(
    folder: Path, rows: np.ndarray, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = dynid.read_result(folder / "result").identification()
    known = calibrate_live(folder / "result", fit)
    monkeypatch.setattr(live_stream, "sys", SimpleNamespace(stdin=_Ending(lines(rows), KeyboardInterrupt())))
    assert live_stream.watch_stream(fit, lambda: known, learn=0.0, per_hour=1.0, as_json=False) == code
    shown = capsys.readouterr().err
    assert "are expected at 1 per hour" in shown
    assert "excite" not in shown


def test_a_reader_that_ends_after_an_alarm_leaves_its_exit_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = dynid.read_result(folder / "result").identification()
    known = calibrate_live(folder / "result", fit)

    def break_pipe(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(live_stream, "sys", SimpleNamespace(stdin=lines(pushed()).splitlines(), stdout=sys.stdout))
    monkeypatch.setattr(live_stream, "_print_alarm", break_pipe)
    monkeypatch.setattr(live_stream, "write_no_more", lambda: None)
    assert live_stream.watch_stream(fit, lambda: known, learn=0.0, per_hour=1.0, as_json=False) == 1


@pytest.mark.parametrize(("factor", "code"), [(-1.0, "flipped"), (1000.0, "unit"), (1.0, "")])
def test_torques_of_the_wrong_sign_or_unit_are_doubted(folder: Path, factor: float, code: str) -> None:
    rows = table(1, 12.0)
    rows[:, 7:] *= factor
    done = watch(folder, lines(rows))
    assert (f"[{code}]" in done.stderr) == bool(code)
    assert ("the alarms say nothing about pushes" in " ".join(done.stderr.split())) == bool(code)
