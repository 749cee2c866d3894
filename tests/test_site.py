"""The site: every page in the navigation, a search that finds names, pages that open from a file."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.browser import CHROMIUM, Browser
from support.site_hooks import entries_of

ROOT = Path(__file__).parents[1]
MKDOCS = [sys.executable, "-m", "mkdocs"] if importlib.util.find_spec("mkdocs") else [shutil.which("mkdocs") or ""]


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"([\w.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M)
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_the_pictures_of_the_gallery_are_there() -> None:
    for page in ("index.md", "gallery.md"):
        named = re.findall(r"images/[\w-]+\.png", (ROOT / "docs" / page).read_text())
        assert named
        assert all((ROOT / "docs" / name).is_file() for name in named)


def test_the_index_has_sections_and_public_names() -> None:
    html = '<h2 id="dynid">dynid</h2><ul><li><p><code>read_urdf(path, *, gravity)</code>: Read a robot.</p></li></ul>'
    found = {entry["title"]: entry for entry in entries_of("Public names", "api.html", html)}
    assert found["read_urdf"]["text"].endswith("Read a robot.")
    assert found["dynid"]["url"] == "api.html#dynid"
    assert "read_urdf" not in {entry["title"] for entry in entries_of("Terms", "terms.html", html)}


@pytest.mark.skipif(not MKDOCS[0], reason="mkdocs is not installed; make site installs it")
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")
def test_the_site_opens_from_a_file_and_finds_read_urdf(tmp_path: Path) -> None:
    built = subprocess.run(
        [*MKDOCS, "build", "--strict", "--quiet", "--site-dir", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    ask = """new Promise((tell) => {
      const field = document.querySelector(".find input");
      field.value = "read_urdf"; field.dispatchEvent(new Event("input"));
      const links = [...document.querySelectorAll(".find li a")].map((link) => [link.textContent, link.href]);
      tell({ links, wide: document.documentElement.scrollWidth });
    })"""
    for page, width in (("index.html", 1400), ("evidence.html", 400)):
        with Browser(width) as browser:
            browser.open(tmp_path / page)
            seen = browser.ask(ask)
            assert browser.complaints() == []
        assert seen["wide"] <= width
        text, address = seen["links"][0]
        assert text == "Public names: read_urdf"
        assert (tmp_path / Path(address).name).is_file()
