"""The first screen of a run: short, and in the order that docs/screens.md shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import screens_page
from support.screens_page import MOST_LINES, QUICK, SCREENS, screen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("screens")
    screens_page.write_files(here)
    return here


def test_screens_are_short_and_in_order(folder: Path) -> None:
    shown = {title: screen(folder, title) for title in QUICK}
    assert {title: code for title, (code, _) in shown.items()} == {
        "identify, passed": 0, "watch, quiet": 0, "watch, alarm": 1, "excite, refused": 2,
    }  # fmt: skip
    assert all(len(text.splitlines()) <= MOST_LINES for _, text in shown.values())
    text = shown["identify, passed"][1]
    order = ("passed: ", "(plain model", "joint1  N m", "URDF: torque error", "written: ", "next: dynid")
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_page_shows_every_screen() -> None:
    page = (Path(__file__).parents[2] / "docs" / "screens.md").read_text(encoding="utf-8")
    screens = re.findall(r"```text\n\$ (.*?)\n(.*?)\n```", page, re.DOTALL)
    assert [command for command, _ in screens] == list(SCREENS.values())
    assert all(len(text.splitlines()) <= MOST_LINES for _, text in screens)
