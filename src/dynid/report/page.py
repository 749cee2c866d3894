"""One self-contained HTML file from a list of sections: no network, no library, readable on a phone and in the dark."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Section", "packed", "page", "widget"]

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


class Section(ABC):
    """A part of the report. It only reads the finished result it was made with."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Heading."""

    @abstractmethod
    def body(self) -> str:
        """HTML below the heading."""


def page(title: str, sections: Sequence[Section]) -> str:
    """The whole document."""
    links = "".join(f'<a href="#s{k}">{escape(section.title)}</a>' for k, section in enumerate(sections))
    bodies = "".join(
        f'<section id="s{k}"><h2>{escape(section.title)}</h2>{section.body()}</section>'
        for k, section in enumerate(sections)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_asset('report.css')}</style></head><body>"
        f"<header><h1>{escape(title)}</h1><nav>{links}</nav></header><main>{bodies}</main>"
        f"<script>{_asset('report.js')}</script></body></html>\n"
    )


def widget(kind: str, label: str, data: Mapping[str, Any], height: int = 240) -> str:
    """A canvas that the page's script draws.

    Args:
        kind: ``lines`` or ``robot``.
        label: What a person who cannot see it is told.
        data: JSON data of the widget; arrays by `packed`.
        height: [px]
    """
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class="{kind}"><canvas tabindex="0" role="img" aria-label="{escape(label)}" height="{height}">'
        "</canvas>"
        f'<script type="application/json">{text}</script></figure>'
    )


def packed(values: ArrayLike) -> str:
    """Numbers as base64 of little-endian float32, a quarter of their size as text."""
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()


def _asset(name: str) -> str:
    return files("dynid.report").joinpath(name).read_text(encoding="utf-8")
