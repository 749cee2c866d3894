"""A fleet of simulated arms from files: planted differences, the store, engines, failures."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import ArgumentError, DataError, EngineError, ExportError
from dynid.fleet import store as store_module
from dynid.fleet.fleet import Fleet, identify_fleet
from dynid.fleet.fleet_logs import find_logs
from dynid.identifiability.base import base_parameters
from dynid.identification.leaves import leaf_tasks, make_leaf
from dynid.parallel import make_engine
from fleet.small_fleet import DAY_S, MAP, RECIPE, ROBOT, START_S, arm, friction_place, record, write_log

ARMS, DAYS, WORN, LOADED, AGEING = 7, 4, 2, 5, 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven arms with four logs each: FC2 of one is 60 % high, one holds 0.5 kg, FV1 of one rises by 12 % a month."""
    where = tmp_path_factory.mktemp("fleet")
    for number in range(ARMS):
        for month in range(DAYS):
            changes = {"FC2": 1.6} if number == WORN else {"FV1": 1.12**month} if number == AGEING else {}
            robot = arm(number, changes, load_kg=0.5 if number == LOADED else 0.0)
            start = START_S + 31 * DAY_S * month
            write_log(robot, where / f"arm{number}" / f"{month}.csv", seed=10 * number + month, start_s=start)
    return where


def fleet_of(logs: Any, **options: Any) -> Fleet:
    return identify_fleet(ROBOT, logs, RECIPE, channel_map=MAP, **options)


@pytest.fixture(scope="module")
def found(folder: Path) -> Fleet:
    return fleet_of(f"{folder}/{{arm}}/*.csv")


def test_planted_differences_are_found_and_no_others(found: Fleet) -> None:
    told = {(d.arm, d.kind, d.what) for one in found.arms for d in one.differences}
    assert (f"arm{WORN}", "own", "FC2") in told
    assert (f"arm{LOADED}", "load", "link3") in told
    assert (f"arm{AGEING}", "change", "FV1") in told
    assert {name for name, _, _ in told} == {f"arm{WORN}", f"arm{LOADED}", f"arm{AGEING}"}
    (load,) = [d for d in found.arms[LOADED].differences if d.kind == "load"]
    assert "as if link3 held +0." in load.sentence
    assert {finding.code for finding in found.findings} == {"arm-differs", "arm-changed"}
    assert found.outliers[0].differences[0].chance <= found.outliers[-1].differences[0].chance
    assert f"arm{WORN}: FC2 is" in found.summary()


def test_the_typical_robot_has_the_planted_inertia_and_every_arm_its_own_friction(found: Fleet) -> None:
    base = base_parameters(ROBOT)
    truth = base.grouping @ ROBOT.parameter_vector
    shared = list(found.pool.shared_places)
    assert np.all(np.abs(found.pool.shared - truth[shared]) < 4.5 * found.pool.std)
    typical = base.grouping @ found.typical.identified.parameter_vector
    scale = np.abs(truth[shared]).max()
    np.testing.assert_allclose(typical[shared], truth[shared], atol=0.03 * scale)
    planted = arm(WORN, {"FC2": 1.6}).parameter_vector[friction_place("FC2")]
    assert found.robot(f"arm{WORN}").parameter_vector[friction_place("FC2")] == pytest.approx(planted, rel=0.05)
    assert repr(found) == "Fleet('ddarm', 7 arms, 3 of them conspicuous)"


def bits(found: Fleet) -> list[bytes]:
    return [found.pool.shared.tobytes(), *(one.own.values.tobytes() for one in found.arms),
            found.typical.standard.tobytes()]  # fmt: skip


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_the_result_does_not_depend_on_the_engine(folder: Path, engine: str) -> None:
    if engine == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed")
    here, there = (fleet_of(f"{folder}/{{arm}}/0.csv", engine=where) for where in ("local", f"{engine}:2"))
    assert bits(there) == bits(here)


def test_a_new_day_costs_only_its_own_reading(found: Fleet, folder: Path, tmp_path: Path) -> None:
    pattern, store = f"{folder}/{{arm}}/*.csv", tmp_path / "factors"
    days = [f"{folder}/{{arm}}/{day}.csv" for day in range(DAYS - 1)]
    before = fleet_of(days, store=store)
    assert before.read == (DAYS - 1) * ARMS
    after = fleet_of(pattern, store=store)
    assert after.read == ARMS
    assert bits(after) == bits(found)
    assert fleet_of(pattern, store=store).read == 0
    damaged = sorted(store.glob("*.information"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-7])  # as if the disk had been full
    again = fleet_of(pattern, store=store)
    assert (again.read, bits(again)) == (1, bits(found))
    log = folder / "arm0" / "0.csv"
    os.utime(log, ns=(1, 1))  # a changed file is read again
    assert fleet_of(pattern, store=store).read == 1


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    log = write_log(arm(0), tmp_path / "a.csv", seed=0)
    (task,) = leaf_tasks(ROBOT, [log], RECIPE, MAP, base_parameters(ROBOT))
    outcome = next(iter(make_engine("local").run(make_leaf, [replace(task, version="0.0.1")])))
    assert isinstance(outcome.error, EngineError)
    assert "this run needs 0.0.1" in str(outcome.error)


def test_urls_and_dates_in_names(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    import fsspec

    path = write_log(arm(0), tmp_path / "2026-03-01.csv", seed=0)
    memory = fsspec.filesystem("memory")
    memory.pipe("/fleet/a1/2026-03-01.csv", path.read_bytes())
    (log,) = find_logs("memory://fleet/{arm}/{date}.csv")
    assert (log.arm, log.start_s) == ("a1", 1772323200.0)
    there = fleet_of("memory://fleet/{arm}/{date}.csv")
    here = fleet_of({"a1": [path]})
    assert bits(there) == bits(here)
    assert there.arms[0].history.windows[0].time_s == 1772323200.0
    with pytest.raises(DataError, match="no file fits the pattern"):
        find_logs("memory://fleet/{arm}/{date}.parquet")
    memory.pipe("/odd/a1/yesterday.csv", b"")
    with pytest.raises(DataError, match="'yesterday' is no date"):
        find_logs("memory://odd/{arm}/{date}.csv")


@pytest.mark.parametrize(
    ("pattern", "what"), [("logs/*.csv", "which part is the arm's name"), ("{arm}/{day}.csv", "{day} is not known")]
)
def test_patterns_that_cannot_be_meant(pattern: str, what: str) -> None:
    with pytest.raises(ArgumentError, match=what):
        find_logs(pattern)


def test_a_full_disk_costs_the_store_and_not_the_run(
    found: Fleet, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern, kept = f"{folder}/{{arm}}/*.csv", 0
    write = store_module.write_atomically

    def full(path: Path, content: str, *, force: bool) -> Path:
        nonlocal kept
        kept += 1
        if kept > 3:
            raise ExportError("the file cannot be written: No space left on device", path=path)
        return write(path, content, force=force)

    monkeypatch.setattr(store_module, "write_atomically", full)
    run = fleet_of(pattern, store=tmp_path / "factors")
    assert bits(run) == bits(found)
    (lost,) = [finding for finding in run.findings if finding.code == "store-not-written"]
    assert "No space left" in lost.message
    assert "Not kept:" in run.summary()
    monkeypatch.undo()
    again = fleet_of(pattern, store=tmp_path / "factors")
    assert (again.read, bits(again)) == (DAYS * ARMS - 3, bits(found))


def test_doubled_dry_friction_of_one_arm_among_five_is_found_and_no_other_arm_is_accused() -> None:
    """Friction scatters by 10 % from arm to arm and joint to joint."""
    for seed, factor in ((0, 1.0), (1, 2.0), (2, 2.0)):
        rng, logs = np.random.default_rng(seed), {}
        for number in range(5):
            theta = ROBOT.parameter_vector.copy()
            theta[10 * ROBOT.dof :] *= 1.0 + 0.1 * rng.standard_normal(theta.size - 10 * ROBOT.dof)
            theta[friction_place("FC2")] *= factor if number == 2 else 1.0
            logs[f"a{number}"] = [record(ROBOT.with_parameters(theta), 10 * seed + number)]
        odd = identify_fleet(ROBOT, logs, RECIPE).outliers
        assert [(arm.name, [d.what for d in arm.differences]) for arm in odd] == [("a2", ["FC2"])] * (factor > 1.0)
