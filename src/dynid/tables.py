"""`Table`: rows of cells as plain text, Markdown, HTML or a data frame, for screens, reports and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from dynid.safe_text import html_text, markdown_text, one_line

Cell = str | int | float | None


class Table(Struct, frozen=True, tag="Rows"):
    """A table with a header; columns of numbers are aligned right, and None is an empty cell.

    It is a msgspec.Struct, so that reports can hold it as JSON, where the tag names its type.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: str = ""
    """Title under which a report hides the table until the reader opens it; the table is shown at once if empty."""
    digits: int = 4
    """Significant digits of floats."""

    @classmethod
    def of(cls, header: Sequence[str], rows: Sequence[Sequence[Cell]], digits: int = 4) -> Table:
        """Build a table from any sequences; every row must be as long as the header."""
        return cls(tuple(header), tuple(tuple(row) for row in rows), digits=digits)

    def __post_init__(self) -> None:
        """Refuse ragged rows."""
        if any(len(row) != len(self.header) for row in self.rows):
            raise ValueError("every row needs as many cells as the header")

    def _text(self, cell: Cell) -> str:
        """Write a cell."""
        if cell is None:
            return ""
        return f"{cell:.{self.digits}g}" if isinstance(cell, float) else str(cell)

    def _cells(self) -> list[list[str]]:
        """Write all cells, the header in the first row."""
        return [list(self.header), *([self._text(cell) for cell in row] for row in self.rows)]

    def _are_numeric(self) -> list[bool]:
        """Whether each column holds numbers alone, or nothing."""
        columns = range(len(self.header))
        return [all(isinstance(row[c], int | float | None) for row in self.rows) for c in columns]

    def to_columns(self) -> dict[str, list[Cell]]:
        """Return column -> its cells, unrounded: what ``pandas.DataFrame`` and ``polars.DataFrame`` take.

        Example:
            >>> Table.of(["name", "value"], [("M1", 2.5)]).to_columns()
            {'name': ['M1'], 'value': [2.5]}
        """
        return {name: [row[c] for row in self.rows] for c, name in enumerate(self.header)}

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``, unrounded."""
        import pandas

        return pandas.DataFrame(self.to_columns())

    def to_text(self) -> str:
        """Plain text: columns padded with spaces, a rule below the header."""
        cells = [[one_line(text) for text in row] for row in self._cells()]
        numeric = self._are_numeric()
        widths = [max(len(row[c]) for row in cells) for c in range(len(self.header))]
        lines = [
            "  ".join(
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])

    def to_markdown(self) -> str:
        """A GitHub-flavoured Markdown table."""
        rows = [[markdown_text(cell) for cell in row] for row in self._cells()]
        rule = ["---:" if right else "---" for right in self._are_numeric()]
        return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], rule, *rows[1:]])

    def to_html(self) -> str:
        """A plain ``<table>``, escaped."""
        classes = [' class="number"' if right else "" for right in self._are_numeric()]

        def line(tag: str, row: list[str]) -> str:
            cells = [f"<{tag}{name}>{html_text(text)}</{tag}>" for text, name in zip(row, classes, strict=True)]
            return f"<tr>{''.join(cells)}</tr>"

        header, *rows = self._cells()
        body = "".join([line("td", row) for row in rows])
        return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


def html_card(title: str, lines: Sequence[str] = (), table: Table | None = None) -> str:
    """A title, lines of text and a table as HTML, for notebooks.

    Args:
        title: One line.
        lines: Further lines below it.
        table: A table at the end.

    Example:
        >>> html_card("two joints", ["1 s"])
        '<div><p><b>two joints</b></p><p>1 s</p></div>'
    """
    texts = "".join(f"<p>{html_text(line)}</p>" for line in lines)
    shown = "" if table is None else table.to_html()
    return f"<div><p><b>{html_text(title)}</b></p>{texts}{shown}</div>"


def plain_number(value: float) -> str:
    """Write a number with three significant digits, without an exponent below a million: 1998 is written 2000."""
    return f"{float(f'{value:.3g}'):g}"


def count_words(number: int, what: str) -> str:
    """Write a count with its noun: "no alarm", "1 alarm", "2 alarms"."""
    return f"{number or 'no'} {what}{'s' * (number > 1)}"
