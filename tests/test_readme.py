"""The README and the docs keep their promises: snippets run, links resolve, commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dynid.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_snippets_run_in_order() -> None:
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for number, block in enumerate(blocks):
        exec(compile(block, f"README block {number}", "exec"), namespace)
    check = namespace["check"]
    assert check.passed  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_commands_exist() -> None:
    text = (ROOT / "README.md").read_text()
    verbs = set(re.findall(r"^dynid (\w+)", text, re.MULTILINE))
    assert verbs <= set(main.commands)
    for verb in verbs:
        assert CliRunner().invoke(main, [verb, "--help"]).exit_code == 0
