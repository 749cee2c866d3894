"""Engines: the same results in this process, in processes and on a real Dask cluster, also when workers are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dynid.errors import ArgumentError, DataError, EngineError
from dynid.parallel import Engine, make_engine
from dynid.parallel.engine_names import read_engine

NUMBERS = list(range(12))


def square(number: int) -> int:
    return number * number


def square_of_even(number: int) -> int:
    if number % 2:
        raise DataError(f"{number} is odd", path="log.csv", remedy="Give an even one.")
    return number * number


def die_once(marker: Path) -> str:
    """Kill the own process the first time."""
    if not marker.exists():
        marker.write_text("killed")
        os.kill(os.getpid(), signal.SIGKILL)
    return marker.name


def always_die(number: int) -> int:
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return number


def divide(number: int) -> float:
    return 1 / number


@pytest.fixture(scope="module", params=["local", "processes", "dask"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed")
    with make_engine(request.param if request.param == "local" else f"{request.param}:2") as made:
        yield made


def test_results_come_in_the_order_of_the_tasks(engine: Engine) -> None:
    assert engine.map(square, NUMBERS) == [n * n for n in NUMBERS]
    assert engine.map(square, []) == []
    assert engine.workers == (1 if type(engine).__name__ == "Local" else 2)


def test_an_error_of_dynid_is_the_outcome_of_its_task_and_the_others_go_on(engine: Engine) -> None:
    outcomes = {outcome.number: outcome for outcome in engine.run(square_of_even, NUMBERS)}
    assert sorted(outcomes) == NUMBERS
    assert [outcomes[n].value for n in NUMBERS if n % 2 == 0] == [n * n for n in NUMBERS if n % 2 == 0]
    error = outcomes[3].error
    assert isinstance(error, DataError)
    assert (error.reason, error.path, error.remedy) == ("3 is odd", "log.csv", "Give an even one.")
    with pytest.raises(DataError, match="1 is odd"):
        engine.map(square_of_even, NUMBERS)


def test_any_other_error_ends_the_run(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError):
        engine.map(divide, [1, 0])


def test_a_task_whose_worker_is_killed_runs_again(engine: Engine, tmp_path: Path) -> None:
    if type(engine).__name__ == "Local":
        pytest.skip("the engine has no workers")
    markers = [tmp_path / f"{type(engine).__name__}{k}" for k in range(3)]
    assert engine.map(die_once, markers) == [marker.name for marker in markers]
    assert engine.map(square, NUMBERS) == [n * n for n in NUMBERS]


def test_a_task_that_always_kills_its_worker_fails_alone() -> None:
    with make_engine("processes:2") as engine:
        outcomes = {outcome.number: outcome for outcome in engine.run(always_die, list(range(4)))}
    assert isinstance(outcomes[0].error, EngineError)
    assert [outcomes[n].value for n in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    ["spark", "processes:0", "dask:", "proceses:4", "local:2", "", "tcp://10.0.0.5", "dask:tcp://10.0.0.5:1"],
)
def test_settings_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(ArgumentError, match=f"there is no engine '{re.escape(text)}'"):
        make_engine(text)


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr("dynid.parallel.dask_cluster.CONNECT_S", 0.5)
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        make_engine("tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.5:8786", "localhost:8786", "tls://[::1]:8786", "inproc://10.0.0.5/1/2"]
)
def test_addresses_of_schedulers(address: str) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    assert read_engine(address) == ("dask", None, address)


def test_a_missing_dask_is_told_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from dynid.fleet import identify_fleet  # here, as every process that is started imports this file
    from dynid.identification.recipe import Recipe
    from dynid.robot.zoo import ddarm

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ArgumentError, match="distributed is not installed"):
        identify_fleet(ddarm(), "no/such/{arm}.csv", Recipe.bare(), engine="dask")


ORPHANS = """
import os, sys, time
from pathlib import Path
from dynid.parallel import make_engine

def note_and_sleep(folder):
    (Path(folder) / f"{os.getpid()}.pid").touch()
    time.sleep(3600.0)

if __name__ == "__main__":
    with make_engine("processes:2") as engine:
        engine.map(note_and_sleep, [sys.argv[1]] * 2)
"""
"""A script whose workers would sleep for an hour."""


def wait_for(what: Callable[[], bool]) -> None:
    """Wait until something is so."""
    while not what():
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody waits for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(ORPHANS)
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path)], stderr=subprocess.DEVNULL)
    wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    workers = [int(path.stem) for path in tmp_path.glob("*.pid")]
    assert all(map(is_alive, workers))
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(map(is_alive, workers)))


def finish_after_others(path: Path) -> str:
    """The task called 0 ends when three others have ended, however long they take, as if its worker were slow."""
    while path.name == "0" and len(list(path.parent.iterdir())) < 3:
        time.sleep(0.02)
    path.write_text("done")
    return path.name


def test_a_slow_worker_does_not_hold_up_the_others(engine: Engine, tmp_path: Path) -> None:
    if type(engine).__name__ == "Local":
        pytest.skip("the engine has no workers")
    assert engine.map(finish_after_others, [tmp_path / str(number) for number in NUMBERS]) == list(map(str, NUMBERS))


@pytest.mark.parametrize(
    ("text", "most", "what"),
    [
        ("{work}", 30, "would run the whole script again"),
        ("print(__name__)\n{work}", 80, "no process could be started"),
        (None, 30, "a script that is no file"),
    ],
)
def test_a_script_without_the_usual_guard_gets_a_sentence(
    tmp_path: Path, text: str | None, most: int, what: str
) -> None:
    work = "from dynid.parallel import make_engine\nmake_engine('processes:1').map(abs, [-1])\n"
    (tmp_path / "script.py").write_text((text or "").format(work=work))
    words = [sys.executable, "-" if text is None else str(tmp_path / "script.py")]
    done = subprocess.run(words, input=work, capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()
    assert what in last[-1]
    assert "__main__" in last[-1] or "as a file" in last[-1]
    assert len(last) < most  # no storm
