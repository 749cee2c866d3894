"""The numbered examples run."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from dynid.export.c_check import find_compiler

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "code" in path.stem and find_compiler() is None:
        pytest.skip("no C compiler here")
    names = runpy.run_path(str(path))
    assert capsys.readouterr().out
    if "check" in names:
        assert names["check"].passed
    if "load" in names:
        assert names["load"].mass == pytest.approx(2.0, rel=0.05)
