"""Every paper in reduced mode: every row judged, every file written, statistical results within their bands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dynid.errors import ArgumentError
from dynid.studies.papers import REPRODUCTIONS, Reproduction, Row, Verdict, build_page, reproduce
from dynid.studies.papers.judgement.verdicts import Tolerance, compare_derived, compare_exactly, compare_numbers

BANDS = {  # statistical results: how far ours may be from the paper's
    ("atkeson1986", "smallest eigenvalue of K^T K that is not zero"): 1.2,
    ("gautier1992", "random sequences, r = 15: mean condition number"): 4.0,
    ("gautier1992", "random sequences, r = 30: mean condition number"): 2.0,
    ("gautier1992", "random sequences, r = 500: mean condition number"): 1.15,
    ("gautier1992", "Table 3: random sequence, r = 30, noise on energy, k = 0.01"): 4.0,
    ("gautier1992", "Table 8: optimum sequence, r = 15, noise on energy, k = 0.01"): 4.0,
    ("izaguirre1992", "Table 3, fs2"): 1.1,
    ("izaguirre1992", "Table 3, ds1"): 1.1,
}


def number(text: str) -> float:
    return float(text.split()[0])


def test_every_paper_is_there(everything: Reproduction, steps: list[tuple[int, int, str]]) -> None:
    expected = [key for key, paper in REPRODUCTIONS.items() for _ in (*paper.makers, "without a comparison")]
    assert [part.title.split(":")[0] for part in everything.parts] == expected
    assert set(expected) == {"atkeson1986", "gautier1990", "gautier1992", "lin1995", "izaguirre1992"}
    made = len(expected) - len(REPRODUCTIONS)
    assert [step[0] for step in steps] == list(range(made))
    assert {step[1] for step in steps} == {made}


def test_every_row_is_judged_and_explained(everything: Reproduction) -> None:
    for part in everything.parts:
        assert part.rows or part.title.endswith("Without a comparison"), part.title
        assert part.source
        assert len({row.what for row in part.rows}) == len(part.rows), part.title
        for row in part.rows:
            assert isinstance(row.verdict, Verdict)
            assert row.what
            assert row.paper
            assert row.ours
            if row.verdict is not Verdict.REPRODUCED:
                assert row.note, row
    assert sum(everything.counts.values()) == len(everything.rows) > 200


@pytest.mark.parametrize("key", BANDS, ids=lambda key: " ".join(key))
def test_statistical_results_lie_in_their_bands(rows: dict[tuple[str, str], Row], key: tuple[str, str]) -> None:
    paper, ours = number(rows[key].paper), number(rows[key].ours)
    assert 1.0 / BANDS[key] < ours / paper < BANDS[key]


def test_operation_counts_are_not_above_the_papers(rows: dict[tuple[str, str], Row]) -> None:
    counts = [row for row in rows.values() if row.what.endswith("multiplications / additions") and "n" not in row.paper]
    assert len(counts) == 7
    for row in counts:
        ours, paper = ([int(x) for x in text.split(" / ")] for text in (row.ours, row.paper))
        assert ours[0] <= paper[0]
        assert ours[1] <= paper[1] + 1


def test_open_loop_moves_stay_under_the_papers_ten_percent(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["izaguirre1992", "Figs. 6, 7: error of fast moves"].verdict is Verdict.CONSTRUCTED


def test_files(everything: Reproduction, folder: Path) -> None:
    data = json.loads((folder / "verdicts.json").read_text())
    assert len(data["rows"]) == len(everything.rows)
    assert sum(data["counts"].values()) == len(everything.rows)
    assert {row["verdict"] for row in data["rows"]} <= {str(verdict) for verdict in Verdict}
    text, markdown = (folder / "tables.txt").read_text(), (folder / "tables.md").read_text()
    for part in everything.parts:
        assert part.title in text
        assert part.title in markdown
        for figure in part.figures:
            ElementTree.parse(folder / "figures" / f"{figure.name}.svg")
            assert f"figures/{figure.name}.svg" in markdown
    names = [figure.name for part in everything.parts for figure in part.figures]
    assert len(set(names)) == len(names) > 15


def test_the_page_needs_nothing_from_elsewhere(everything: Reproduction, folder: Path) -> None:
    page = (folder / "index.html").read_text()
    assert not re.search(r"https?://|//[a-z]|@import|src=|url\(", re.sub(r"<pre.*?</pre>", "", page, flags=re.S))
    assert page.count("<svg") == sum(len(part.figures) for part in everything.parts)
    assert all(str(verdict) in page for verdict in everything.counts if everything.counts[verdict])


def test_one_paper_alone_is_the_same(everything: Reproduction) -> None:
    alone = reproduce("izaguirre1992", None, quick=True)
    again = [part for part in everything.parts if part.title.startswith("izaguirre1992")]
    assert [part.rows for part in alone.parts] == [part.rows for part in again]
    assert alone.title.startswith("Izaguirre")


def test_unknown_papers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="newton1687"):
        reproduce("newton1687", None)


def test_documentation(everything: Reproduction) -> None:
    text = build_page(everything)
    assert text.startswith("# The five papers, reproduced")
    assert "do not edit" in text
    assert all(part.title in text for part in everything.parts)
    page = Path(__file__).parents[3] / "docs" / "papers.md"
    assert all(f"## {part.title}" in page.read_text() for part in everything.parts)


def test_comparisons() -> None:
    band = Tolerance(factor=1.3, basis="b")
    assert compare_exactly("a", 3, 3).verdict is Verdict.REPRODUCED
    assert compare_exactly("a", 3, 3, assumption="b").verdict is Verdict.ASSUMED
    assert compare_exactly("a", [3], [4]).verdict is Verdict.DIFFERS
    assert compare_numbers("a", 2.0, 2.5, tolerance=band).verdict is Verdict.REPRODUCED
    assert compare_numbers("a", 2.0, -2.0, tolerance=band).verdict is Verdict.DIFFERS
    assert compare_numbers("a", 0.0, 0.0, tolerance=band).verdict is Verdict.REPRODUCED
    assert compare_numbers("a", 2.0, 2.5, tolerance=band).note == "agreement: within 30 %"
    assert (
        compare_numbers("a", 2.0, 9.0, tolerance=Tolerance(factor=3, basis="b")).note
        == "needed for agreement: within a factor 3"
    )
    row = compare_derived("a", 1.5, 1.6)
    assert row.verdict is Verdict.SCAN
    assert "right: 1.6" in row.note
