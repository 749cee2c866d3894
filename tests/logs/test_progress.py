"""Progress of reading and checking, and interrupts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from campaigns.log_writers import CASES, planted
from dynid.cli import main
from dynid.logs.inspect import inspect_log

LOG = planted(1500)
CSV = next(case for case in CASES.values() if case.suffix == ".csv")


@pytest.mark.parametrize("module", ["click", "dynid.cli.verbs.model_verbs"])
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
    from dynid.cli.verbs import model_verbs

    shown: list[float] = []

    @contextlib.contextmanager
    def bar(task: str):
        yield lambda share, note: shown.append(share)

    monkeypatch.setattr(model_verbs, "progress", bar)
    CSV.write(tmp_path / "log.csv", LOG)
    (tmp_path / "map.toml").write_text(inspect_log(tmp_path / "log.csv").toml)
    CliRunner().invoke(main, ["check", str(tmp_path / "log.csv"), "--map", str(tmp_path / "map.toml")])
    assert len(shown) >= 3
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
