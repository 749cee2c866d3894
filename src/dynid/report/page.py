"""A page made of chapters, written as one self-contained HTML file that needs no network, as Markdown or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from dynid.errors import ArgumentError, DataError
from dynid.report.html_blocks import Block, Drawing, Plot, block_html, block_markdown
from dynid.safe_files import write_atomically
from dynid.safe_files.records import split_failure
from dynid.safe_files.small_files import WRITTEN, read_small_text
from dynid.safe_text import html_text, markdown_text, visible_text

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""Content security policy of the HTML file: it loads nothing, and runs only its own script."""
SCHEMA = 3
"""Version of the JSON form."""


class Chapter(Struct, frozen=True):
    """A part of a page."""

    title: str
    blocks: tuple[Block, ...]
    kind: str = ""
    """Name by which code finds the chapter, such as `dynid.report.provenance.SETTINGS`; empty for most."""


class Page(Struct, frozen=True):
    """A whole document; it is also the form of the JSON file."""

    title: str
    chapters: tuple[Chapter, ...]
    schema: int = SCHEMA

    @classmethod
    def of(cls, title: str, chapters: Sequence[Chapter]) -> Page:
        """Make a page of chapters; those without content are left out."""
        return cls(title, tuple(chapter for chapter in chapters if chapter.blocks))

    def to_html(self) -> str:
        """Return one HTML file with styles, script and data inside."""
        links = "".join(f'<a href="#s{k}">{html_text(chapter.title)}</a>' for k, chapter in enumerate(self.chapters))
        bodies = "".join(
            f'<section id="s{k}"><h2>{html_text(chapter.title)}</h2>{_bodies(chapter.blocks)}</section>'
            for k, chapter in enumerate(self.chapters)
        )
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{html_text(self.title)}</title><style>{_asset('report.css')}</style></head><body>"
            f'<a class="skip" href="#s0">Skip to the content</a><header><h1>{html_text(self.title)}</h1>'
            f'<nav aria-label="sections">{links}</nav></header><main>{bodies}</main>'
            f"<script>{_asset('report.js')}</script></body></html>\n"
        )

    def to_markdown(self) -> str:
        """Return Markdown with text and tables; plots are only named."""
        parts = [f"# {markdown_text(self.title)}"]
        for chapter in self.chapters:
            parts += [f"## {markdown_text(chapter.title)}", *map(block_markdown, chapter.blocks)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_json(self) -> str:
        """Return everything as JSON, to be shown again later; arrays are base64 of little-endian float32."""
        plain = msgspec.to_builtins(self, enc_hook=lambda number: number.item())  # numbers of NumPy
        return msgspec.json.encode(_encodable(plain)).decode() + "\n"

    @classmethod
    def from_json(cls, text: str, path: Any = None) -> Page:
        """Turn the output of `to_json` back into the page.

        Raises:
            DataError: The text is no such output.
        """
        remedy = "Run the command again."
        try:
            page = msgspec.json.decode(text, type=cls)
        except msgspec.ValidationError as failure:
            reason, place = split_failure(failure)
            raise DataError(f"not a report: {reason}", path=path, place=place or None, remedy=remedy) from failure
        except (msgspec.DecodeError, RecursionError) as failure:
            raise DataError(f"not a report: {failure}", path=path, remedy=remedy) from failure
        if page.schema != SCHEMA:
            raise DataError(f"version {page.schema}, this dynid reads {SCHEMA}", path=path, remedy=remedy)
        return page

    @classmethod
    def read(cls, path: Path) -> Page:
        """Read a page that `write` wrote as JSON.

        Raises:
            DataError: The file cannot be read, or is no such page.
        """
        return cls.from_json(read_small_text(path, most=WRITTEN), path)

    def write(self, path: Path, *, force: bool = False) -> Path:
        """Write the page as HTML, Markdown or JSON, depending on the extension of the file name."""
        forms = {".html": self.to_html, ".md": lambda: visible_text(self.to_markdown()), ".json": self.to_json}
        if path.suffix.lower() not in forms:
            raise ArgumentError(
                f"a report cannot be written as '{path.suffix}'",
                path=path,
                remedy="Use the extension .html, .md or .json.",
            )
        return write_atomically(path, forms[path.suffix.lower()](), force=force)


def _encodable(value: Any) -> Any:
    """Escape the bytes of file names that are no text, which JSON cannot hold, in all texts of a nested value."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list | tuple) else value


def _bodies(blocks: Sequence[Block]) -> str:
    """Write blocks as HTML, one after the other; neighbouring drawings and small plots stand side by side in a grid."""
    parts = []
    for is_small, neighbours in groupby(
        blocks, key=lambda block: isinstance(block, Drawing) or (isinstance(block, Plot) and block.small)
    ):
        group = list(neighbours)
        text = "".join(map(block_html, group))
        wide = " wide" if any(isinstance(block, Plot) and len(block.curves) > 1 for block in group) else ""
        parts.append(f'<div class="grid{wide}">{text}</div>' if is_small else text)
    return "".join(parts)


def _asset(name: str) -> str:
    """Read a file that is installed with this package."""
    return files("dynid.report").joinpath(name).read_text(encoding="utf-8")
