"""The numbered examples run."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from dynid.export.c.c_check import find_compiler

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


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebook_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cell for cell in cells if cell["cell_type"] == "code"):
        exec(compile("".join(cell["source"]), f"{path.name} cell {number}", "exec"), names)
    assert capsys.readouterr().out
    assert names["check"].passed  # type: ignore[attr-defined]
    assert names["inside"] > 0.8  # type: ignore[operator]
