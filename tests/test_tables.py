from __future__ import annotations

from html.parser import HTMLParser

import pytest

from dynid.tables import Table

TABLE = Table.of(["name", "value", "note"], [["a", 1.23456789, None], ["b|c", 100.0, "<i>\n"]])


def test_text_aligns_numbers_right() -> None:
    plain = Table.of(["name", "value"], [["a", 1.23456789], ["long name", 100.0]])
    assert plain.to_text().splitlines() == [
        "name       value",
        "---------  -----",
        "a          1.235",
        "long name    100",
    ]


def test_markdown_escapes_bars_and_line_ends() -> None:
    lines = TABLE.to_markdown().splitlines()
    assert lines[1] == "| --- | ---: | --- |"
    assert lines[3] == "| b\\|c | 100 | &lt;i&gt; |"


def test_a_cell_stays_in_its_line() -> None:
    assert str(Table.of(["joint"], [("j1\nnext: rm",)])).splitlines()[2:] == ["j1\\nnext: rm"]


def test_html_lets_no_markup_through() -> None:
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(TABLE.to_html())
    assert "i" not in tags
    assert tags.count("td") == 6


def test_ragged_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="as many cells"):
        Table.of(["a"], [["b", "c"]])


def test_pandas_gets_unrounded_numbers() -> None:
    frame = Table.of(["name", "value"], [("M1", 2.0 / 3.0)]).to_pandas()
    assert frame["value"].iloc[0] == 2.0 / 3.0
