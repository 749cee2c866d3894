"""Line charts as SVG text without any library: the same bytes every time, for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.report.html_blocks import subtract_start

PALETTE = ("#2f6fb0", "#d1603d", "#4a9c6d", "#8a63b8", "#b58a1b")
"""Colours of the curves, in order."""
MARGIN = (58, 14, 30, 38)
"""Margins left, right, above and below the plotting area [px]."""
SECOND_LINE = 20
"""Additional margin above the plotting area if title, label and legend need two lines [px]."""
LETTER = 7
"""Largest width of a letter in the 12 px font [px]."""
MOST_POINTS = 800
"""Points of a line that are drawn, about one per pixel; longer lines are thinned to the extremes of each part."""
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#666}.t{font-weight:600;fill:#555}.g{stroke:#8884;stroke-width:1}"
    ".a{stroke:#888;fill:none}.l{fill:none;stroke-width:1.5;stroke-linejoin:round}"
)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One curve."""

    label: str
    x: Floats
    y: Floats
    dashed: bool = False

    @classmethod
    def of(cls, label: str, x: ArrayLike, y: ArrayLike, *, dashed: bool = False) -> Line:
        """Build from any arrays of equal length."""
        return cls(label, np.asarray(x, dtype=float), np.asarray(y, dtype=float), dashed)

    def thin(self) -> tuple[Floats, Floats]:
        """Select about `MOST_POINTS` points, so that every visible peak stays."""
        if self.x.size <= MOST_POINTS:
            return self.x, self.y
        kept: list[int] = []
        for part in np.array_split(np.arange(self.x.size), MOST_POINTS // 2):
            kept += sorted({int(part[np.argmin(self.y[part])]), int(part[np.argmax(self.y[part])])})
        return self.x[kept], self.y[kept]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Curves over common axes."""

    title: str
    lines: tuple[Line, ...]
    x_label: str = ""
    y_label: str = ""
    width: int = 640
    height: int = 240

    def to_svg(self) -> str:
        """A complete SVG document."""
        return _document(self.width, self.height, self.body())

    def body(self) -> str:
        """The drawing without the surrounding document."""
        start = min((float(line.x[0]) for line in self.lines if line.x.size), default=0.0)
        end = max((float(line.x[-1]) for line in self.lines if line.x.size), default=0.0)
        _, x_label = subtract_start([start, end], self.x_label)
        if x_label != self.x_label:
            moved = tuple(replace(line, x=line.x - start) for line in self.lines)
            return replace(self, lines=moved, x_label=x_label).body()
        left, right, top, bottom = MARGIN
        needed = left + LETTER * len(self.title) + _legend_width(self.lines)
        below = SECOND_LINE if needed > self.width - right or 6 + LETTER * len(self.y_label) > left else 0
        top += below
        box = (left, top, self.width - left - right, self.height - top - bottom)
        x_range = _span([line.x for line in self.lines], pad=0.0)
        y_range = _span([line.y for line in self.lines], pad=0.06)
        parts = [
            f'<text class="t" x="{left}" y="18">{escape(self.title)}</text>',
            *_axis(box, x_range, horizontal=True),
            *_axis(box, y_range, horizontal=False),
            f'<rect class="a" x="{box[0]}" y="{box[1]}" width="{box[2]}" height="{box[3]}"/>',
            f'<text x="{left + box[2] // 2}" y="{self.height - 6}" text-anchor="middle">{escape(self.x_label)}</text>',
            f'<text x="6" y="{top - 8}">{escape(self.y_label)}</text>',
        ]
        for number, line in enumerate(self.lines):
            parts.append(_curve(line, PALETTE[number % len(PALETTE)], box, x_range, y_range))
        parts += _legend(self.lines, left + box[2], 18 + below)
        return "\n".join(parts)


def arrange_charts(charts: Sequence[Chart], columns: int = 2) -> str:
    """Arrange several charts in one SVG document, row by row."""
    if not charts:
        return _document(1, 1, "")
    width, height = charts[0].width, charts[0].height
    cells = [
        f'<g transform="translate({(k % columns) * width},{(k // columns) * height})">{chart.body()}</g>'
        for k, chart in enumerate(charts)
    ]
    rows = -(-len(charts) // columns)
    return _document(width * min(columns, len(charts)), height * rows, "\n".join(cells))


def _document(width: int, height: int, body: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return f"{head}\n<style>{STYLE}</style>\n{body}\n</svg>\n"


def _span(arrays: Sequence[Floats], pad: float) -> tuple[float, float]:
    values = np.concatenate([a[np.isfinite(a)] for a in arrays] or [np.zeros(1)])
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    extra = pad * (high - low) if high > low else max(abs(high), 1.0) * 0.5
    return low - extra, high + extra


def _ticks(low: float, high: float, count: int) -> list[float]:
    """About `count` round numbers within a range."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _axis(box: tuple[int, int, int, int], span: tuple[float, float], *, horizontal: bool) -> list[str]:
    x, y, width, height = box
    parts = []
    for tick in _ticks(*span, 6 if horizontal else 4):
        share = (tick - span[0]) / (span[1] - span[0])
        text = f"{tick:.6g}"
        if horizontal:
            at = x + share * width
            parts.append(f'<line class="g" x1="{at:.1f}" x2="{at:.1f}" y1="{y}" y2="{y + height}"/>')
            parts.append(f'<text x="{at:.1f}" y="{y + height + 15}" text-anchor="middle">{text}</text>')
        else:
            at = y + (1.0 - share) * height
            parts.append(f'<line class="g" x1="{x}" x2="{x + width}" y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(f'<text x="{x - 5}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
    return parts


def _curve(
    line: Line, colour: str, box: tuple[int, int, int, int], x_range: tuple[float, float], y_range: tuple[float, float]
) -> str:
    x, y = line.thin()
    good = np.isfinite(x) & np.isfinite(y)
    horizontal = box[0] + (x[good] - x_range[0]) / (x_range[1] - x_range[0]) * box[2]
    vertical = box[1] + (1.0 - (y[good] - y_range[0]) / (y_range[1] - y_range[0])) * box[3]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(horizontal, vertical, strict=True))
    dash = ' stroke-dasharray="5 3"' if line.dashed else ""
    return f'<polyline class="l" stroke="{colour}"{dash} points="{points}"/>'


def _legend_width(lines: Sequence[Line]) -> int:
    return sum(16 + LETTER * len(line.label) for line in lines)


def _legend(lines: Sequence[Line], right: int, height: int) -> list[str]:
    parts, at = [], right
    for number, line in reversed(list(enumerate(lines))):
        at -= _legend_width([line])
        colour = PALETTE[number % len(PALETTE)]
        parts.append(f'<text x="{at}" y="{height}" style="fill:{colour}">{escape(line.label)}</text>')
    return parts
