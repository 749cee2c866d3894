"""A page made of sections, written as one self-contained HTML file that needs no network, as Markdown or as JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError, DataError
from dynid.files import write_atomically
from dynid.files.small_files import WRITTEN, read_small_text
from dynid.plain_data import build_dataclass
from dynid.report.html_blocks import Block, Plot
from dynid.safe_text import markdown_text, visible_text

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
SCHEMA = 2
"""Version of the JSON form."""


class Section(ABC):
    """A part of the report. It only reads the finished result that it is given."""

    listed: bool = True
    """Whether the links at the top name it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Heading; a section that has the same one everywhere states it as a ``ClassVar``."""

    @abstractmethod
    def blocks(self) -> Sequence[Block]:
        """The blocks below the heading."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """The content of a section: heading and blocks, without the result they were made from."""

    title: str
    blocks: tuple[Block, ...]
    kind: str
    """Name of the section's class, by which programs find a chapter."""
    listed: bool = True
    """Whether the links at the top name it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole document."""

    title: str
    chapters: tuple[Chapter, ...]

    @classmethod
    def of(cls, title: str, sections: Sequence[Section]) -> Page:
        """Make the chapters of all sections; sections without content are left out."""
        made = [
            Chapter(section.title, tuple(section.blocks()), type(section).__name__, section.listed)
            for section in sections
        ]
        return cls(title, tuple(chapter for chapter in made if chapter.blocks))

    def to_html(self) -> str:
        """Return one HTML file with styles, script and data inside."""
        named = [(k, chapter.title) for k, chapter in enumerate(self.chapters) if chapter.listed]
        links = "".join(f'<a href="#s{k}">{escape(title)}</a>' for k, title in named)
        bodies = "".join(
            f'<section id="s{k}"><h2>{escape(chapter.title)}</h2>{_bodies(chapter.blocks)}</section>'
            for k, chapter in enumerate(self.chapters)
        )
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{_asset('report.css')}</style></head><body>"
            f'<a class="skip" href="#s0">Skip to the verdict</a><header><h1>{escape(self.title)}</h1>'
            f'<nav aria-label="sections">{links}</nav></header><main>{bodies}</main>'
            f"<script>{_asset('report.js')}</script></body></html>\n"
        )

    def to_markdown(self) -> str:
        """Return Markdown with text and tables; plots are only named."""
        parts = [f"# {markdown_text(self.title)}"]
        for chapter in self.chapters:
            parts += [f"## {markdown_text(chapter.title)}", *(block.to_markdown() for block in chapter.blocks)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_json(self) -> str:
        """Return everything as JSON, to be shown again later; arrays are base64 of little-endian float32."""
        chapters = [
            {"title": c.title, "kind": c.kind, "listed": c.listed, "blocks": [block.to_json() for block in c.blocks]}
            for c in self.chapters
        ]
        content = {"schema": SCHEMA, "title": self.title, "chapters": chapters}
        return json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, path: object = None) -> Page:
        """Turn the output of `to_json` back into the page.

        Raises:
            DataError: The text is no such output.
        """
        try:
            content: dict[str, Any] = json.loads(text)
            if content["schema"] != SCHEMA:
                raise ValueError(f"version {content['schema']}, this dynid reads {SCHEMA}")
            chapters = [
                build_dataclass(Chapter, {**chapter, "blocks": tuple(map(Block.from_json, chapter["blocks"]))})
                for chapter in content["chapters"]
            ]
            page = cls(str(content["title"]), tuple(chapters))
            page.to_html(), page.to_markdown()  # so that content of a wrong type is noticed here and not later
            return page
        except DataError as error:
            raise DataError(error.reason, path=path, place=error.place, remedy="Run the command again.") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise DataError(f"not a report: {error}", path=path, remedy="Run the command again.") from error

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


def _bodies(blocks: Sequence[Block]) -> str:
    """HTML of blocks one after the other, with small plots side by side."""
    parts = []
    for small, run in groupby(blocks, key=lambda block: isinstance(block, Plot) and block.small):
        group = list(run)
        text = "".join(block.to_html() for block in group)
        wide = " wide" if any(isinstance(block, Plot) and len(block.curves) > 1 for block in group) else ""
        parts.append(f'<div class="grid{wide}">{text}</div>' if small else text)
    return "".join(parts)


def _asset(name: str) -> str:
    return files("dynid.report").joinpath(name).read_text(encoding="utf-8")
