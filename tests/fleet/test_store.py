"""What a store remembers and what it must not, and what a fleet says about logs and arms that it could not use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import pytest

from campaigns.fleet_kills import go_on, kill, prepare
from dynid.errors import DataError
from dynid.fleet.fleet import Fleet, identify_fleet
from dynid.fleet.store import LeafStore
from dynid.report.sections.fleet_sections import fleet_page
from fleet.small_fleet import MAP, RECIPE, ROBOT, arm, write_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms with a log each, a third whose only log is damaged, and a log with a date that there is not."""
    where = tmp_path_factory.mktemp("fleet")
    for number in range(2):
        write_log(arm(number), where / f"a{number}" / "2026-02-01.csv", seed=number, duration_s=6.0)
    (where / "a1" / "2026-13-45.csv").write_text("t,q0\n0,1\n")
    (where / "a2").mkdir()
    (where / "a2" / "2026-02-01.csv").write_bytes(b"no log")
    return where


def fleet_of(folder: Path, store: Path | None = None) -> Fleet:
    return identify_fleet(ROBOT, f"{folder}/{{arm}}/{{date}}.csv", RECIPE, channel_map=MAP, store=store)


def test_bad_dates_and_lost_arms_are_listed_and_the_rest_is_done(folder: Path) -> None:
    found = fleet_of(folder)
    assert [one.name for one in found.arms] == ["a0", "a1"]
    assert {Path(log.name).name: log.problem for log in found.failed}["2026-13-45.csv"] == "'2026-13-45' is no date"
    assert found.read == 3  # the log without a date is not opened
    assert found.arms_without_logs == ("a2",)
    lines = found.summary().splitlines()
    assert lines[0].startswith("Fleet of 2 arms of ddarm: 4 logs, 2 of them left out, ")
    assert lines[0].endswith(" samples, 3 logs read now.")
    assert lines[1] == "1 of 3 arms has no log that can be used: a2."
    assert lines[2] == "Cutoff: 15 Hz, as set."
    page = fleet_page(found).to_markdown()
    assert page.index("1 of 3 arms has no log that can be used: a2") < page.index("Every arm")
    assert "15 Hz, as set" in page
    assert "number in the plots" in page
    assert found.to_json()["arms_without_logs"] == ["a2"]
    assert "log-left-out" in {finding.code for finding in found.findings}
    damaged = folder / "a2" / "2026-02-01.csv"
    assert f"Left out: {damaged} (a2): " in found.summary()
    with pytest.raises(DataError, match="no log of the fleet can be used"):
        identify_fleet(ROBOT, {"a2": [damaged]}, RECIPE, channel_map=MAP)


def test_only_refused_logs_are_read_again(folder: Path, tmp_path: Path) -> None:
    before, again = (fleet_of(folder, tmp_path / "factors") for _ in range(2))
    assert (before.read, again.read) == (3, 1)
    assert again.failed == before.failed


def test_the_cutoff_of_the_first_run_holds_and_is_told(folder: Path, tmp_path: Path) -> None:
    found = []
    for name in ("a0", "a1"):  # an arm a day
        copyfile(folder / name / "2026-02-01.csv", tmp_path / f"{name}.csv")
        recipe = replace(RECIPE, cutoff_hz="auto")
        pattern = f"{tmp_path}/{{arm}}.csv"
        found.append(identify_fleet(ROBOT, pattern, recipe, channel_map=MAP, store=tmp_path / "factors"))
    assert found[0].cutoff_hz == found[1].cutoff_hz
    assert "chosen from up to 5 of the logs." in found[0].summary()
    assert "chosen by the first run with this store." in found[1].summary()
    assert found[1].read == 1


def test_logs_that_cannot_be_used_do_not_choose_the_cutoff(folder: Path) -> None:
    recipe = replace(RECIPE, cutoff_hz="auto")
    good = identify_fleet(ROBOT, {"a0": [folder / "a0" / "2026-02-01.csv"]}, recipe, channel_map=MAP)
    logs = {"a0": [folder / "a0" / "2026-02-01.csv"], "a2": [folder / "a2" / "2026-02-01.csv"]}
    mixed = identify_fleet(ROBOT, logs, recipe, channel_map=MAP)
    assert mixed.cutoff_hz == good.cutoff_hz
    assert mixed.cutoff_origin == "chosen from up to 5 of the logs"


def test_after_kills_the_same_command_goes_on_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Three kills; `make fleet-kills` does sixty."""
    command, store = prepare(tmp_path, arms=2, duration_s=10.0), tmp_path / "store"
    for number in range(3):
        kill(command, 0.5 + 0.7 * number)
        store.mkdir(exist_ok=True)
        (store / f".{number:064}.json.abcd_123.part").touch()
    told, parts = go_on(command, store)
    assert "Left out" not in told
    assert parts == []


def test_files_of_a_process_at_work_stay(tmp_path: Path) -> None:
    first = LeafStore(tmp_path)
    half, others = tmp_path / f".cutoff-{'a' * 32}.json.abcd_123.part", tmp_path / ".thesis.odt.part"
    half.touch()
    others.touch()
    second = LeafStore(tmp_path)
    assert half.exists()
    del first, second
    LeafStore(tmp_path)
    assert (half.exists(), others.exists()) == (False, True)
