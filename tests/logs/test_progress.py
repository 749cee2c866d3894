"""Progress inside one large file, in every format that is read piece by piece, and on to the command line."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from campaigns.log_writers import CASES, planted, write_mcap
from dynid.cli import main
from dynid.logs.inspect import inspect_log
from dynid.logs.readers import Options, read_table
from dynid.logs.readers import numpy_files as npy
from dynid.logs.readers import text as decimals
from dynid.logs.reading import read_recording

LOG = planted(1500)
CSV = next(case for case in CASES.values() if case.suffix == ".csv")


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".h5", ".parquet", ".mcap", ".bag", ".db3"])
def test_every_format_tells_how_far_it_is_inside_a_file(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in CASES.values() if case.suffix == suffix)
    if case.needs:
        pytest.importorskip(case.needs)
    monkeypatch.setattr(decimals, "BLOCK_BYTES", 2**16)
    monkeypatch.setattr(npy, "BLOCK_BYTES", 2**15)
    path = tmp_path / f"log{suffix}"
    case.write(path, LOG)
    if suffix == ".parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pq.read_table(path), path, row_group_size=200)
    told: list[float] = []
    watched = read_table(path, Options(progress=told.append))
    assert len(set(told)) >= 3, told
    assert told == sorted(told)
    assert 0.5 < told[-1] <= 1.0
    plain = read_table(path)
    assert plain.names == watched.names
    for name in plain.names:
        np.testing.assert_array_equal(watched.columns[name], plain.columns[name])


def test_files_of_one_run_share_the_progress_by_their_size(tmp_path: Path) -> None:
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text("t,q\n" + "".join(f"{0.001 * k:.3f},{k}\n" for k in range(100)))
    large.write_text("tau\n" + "".join(f"{k}.123456789012345\n" for k in range(100)))
    channel_map = {
        "files": {"a": "small.csv", "b": "large.csv"},
        "time": {"file": "a", "column": "t", "unit": "s"},
        "position": {"file": "a", "columns": "q", "unit": "rad"},
        "effort": {"file": "b", "columns": "tau", "unit": "N m"},
    }
    told: list[tuple[float, str]] = []
    read_recording(tmp_path, channel_map=channel_map, progress=lambda share, note: told.append((share, note)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    weight = small.stat().st_size / (small.stat().st_size + large.stat().st_size)
    second = next(share for share, note in told if note == "large.csv")
    assert second == pytest.approx(0.8 * weight)


def test_a_callback_that_raises_ends_the_reading(tmp_path: Path) -> None:
    """As an interrupt does."""
    pytest.importorskip("mcap")
    write_mcap(tmp_path / "log.mcap", LOG)

    def stop(share: float, note: str) -> None:
        if share > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inspect_log(tmp_path / "log.mcap", progress=stop)


def test_the_command_line_shows_how_far_a_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynid.cli.verbs import inspect_command

    shown: list[float] = []

    class Bar:
        def __init__(self, task: str) -> None:
            self.task = task

        def __enter__(self):
            return lambda share, note: shown.append(share)

        def __exit__(self, *error: object) -> None:
            return None

    monkeypatch.setattr(inspect_command, "progress", Bar)
    monkeypatch.setattr(decimals, "BLOCK_BYTES", 2**16)
    CSV.write(tmp_path / "log.csv", LOG)
    result = CliRunner().invoke(main, ["inspect", str(tmp_path / "log.csv")])
    assert result.exit_code == 0, result.output
    assert len(set(shown)) >= 3
    assert shown == sorted(shown)


@pytest.mark.parametrize("module", ["click", "dynid.cli.verbs.base_command"])
def test_an_interrupt_while_the_command_line_loads_is_one_line(module: str) -> None:
    program = f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv = ["dynid", "robots"]
import runpy
runpy.run_module("dynid", run_name="__main__")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 130
    assert result.stderr.splitlines() == ["dynid: interrupted. Nothing was started."]


def test_check_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynid.cli.verbs import check_command

    shown: list[float] = []

    @contextlib.contextmanager
    def bar(task: str):
        yield lambda share, note: shown.append(share)

    monkeypatch.setattr(check_command, "progress", bar)
    monkeypatch.setattr(decimals, "BLOCK_BYTES", 2**16)
    CSV.write(tmp_path / "log.csv", LOG)
    (tmp_path / "map.toml").write_text(inspect_log(tmp_path / "log.csv").toml)
    CliRunner().invoke(main, ["check", str(tmp_path / "log.csv"), "--map", str(tmp_path / "map.toml")])
    assert len([share for share in shown if share < 0.5]) >= 5
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
