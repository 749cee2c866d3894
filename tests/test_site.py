"""The site: every page in the navigation, a search that finds what users look for, on a desk and on a phone."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from support.browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[1]
MKDOCS = [sys.executable, "-m", "mkdocs"] if importlib.util.find_spec("mkdocs") else [shutil.which("mkdocs") or ""]


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"([\w.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M)
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


@pytest.mark.skipif(not MKDOCS[0], reason="mkdocs is not installed; make site installs it")
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")
def test_the_site_finds_the_torque_constant(tmp_path: Path) -> None:
    built = subprocess.run(
        [*MKDOCS, "build", "--strict", "--quiet", "--site-dir", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    ask = """new Promise((tell) => {
      const field = document.querySelector("input[name=query]");
      field.focus(); field.value = "torque constant"; field.dispatchEvent(new Event("input", { bubbles: true }));
      field.dispatchEvent(new Event("keyup", { bubbles: true }));
      let tries = 100;
      const look = () => {
        const found = [...document.querySelectorAll(".md-search-result__item h1, .md-search-result__item h2")];
        if (!found.length && tries-- > 0) return setTimeout(look, 100);
        tell({ found: found.map((each) => each.textContent), wide: document.documentElement.scrollWidth });
      };
      look();
    })"""
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    handler.log_message = lambda *_: None
    with ThreadingHTTPServer(("localhost", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for page, width, dark in (("index.html", 1280, False), ("evidence.html", 390, True)):
            with Browser(width, dark=dark) as browser:
                browser.open(f"http://localhost:{server.server_port}/{page}")
                seen = browser.ask(ask)
                assert browser.complaints() == []
            assert seen["wide"] <= width
            assert "torque constant" in " ".join(seen["found"][:2]).lower()
        server.shutdown()
