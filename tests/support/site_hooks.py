"""Hooks of mkdocs: write the index of the search as a script, which a browser also loads from a file."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

LONGEST = 1500
"""Characters of a part that are searched."""
_entries: list[dict[str, str]] = []


class Parts(HTMLParser):
    """Splits a page at its headings, and a list of names at its items."""

    def __init__(self, page: str, url: str) -> None:
        super().__init__()
        self.page, self.url = page, url
        self.parts: list[dict[str, str]] = [{"page": page, "title": page, "url": url, "text": ""}]
        self._heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a part at a heading."""
        self._heading = tag in ("h1", "h2", "h3")
        if self._heading:
            place = dict(attrs).get("id")
            self.parts.append(
                {"page": self.page, "title": "", "url": f"{self.url}#{place}" if place else self.url, "text": ""}
            )

    def handle_endtag(self, tag: str) -> None:
        """End a heading."""
        self._heading = self._heading and tag not in ("h1", "h2", "h3")

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.parts[-1]["title" if self._heading else "text"] += data


def entries_of(page: str, url: str, html: str) -> list[dict[str, str]]:
    """Searchable parts of a page: its sections, and on the page of public names every name."""
    parser = Parts(page, url)
    parser.feed(html)
    found = [part for part in parser.parts if part["title"] or part["text"].strip()]
    if url.startswith("api."):
        for name, rest in re.findall(r"<li>\s*(?:<p>)?<code>(\w+)(.*?)</li>", html, flags=re.S):
            text = " ".join(unescape(re.sub(r"<[^>]+>", "", name + rest)).split())
            found.append({"page": page, "title": name, "url": url, "text": text})
    return [{**part, "text": " ".join(part["text"].split())[:LONGEST]} for part in found]


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Add a page to the index."""
    _entries.extend(entries_of(page.title, page.url, html))
    return html


def on_post_build(config: Any, **_: Any) -> None:
    """Write the index beside the script that searches it."""
    target = Path(config["site_dir"]) / "site" / "search_index.js"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"window.SEARCH_INDEX = {json.dumps(_entries)};\n", encoding="utf-8")
    _entries.clear()
