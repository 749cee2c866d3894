"""Every numbered equation, table and figure of each paper has a row, or a reason why it has none."""

from __future__ import annotations

import pytest

from dynid.studies.papers import REPRODUCTIONS, Part, Reproduction, Verdict
from dynid.studies.papers.data import read_printed
from dynid.studies.papers.judgement.places import (
    NO_REASON,
    build_not_compared,
    compared_places,
    expand,
    find_places,
    list_places,
)
from dynid.studies.papers.judgement.verdicts import compare_exactly
from support.references_page import read


@pytest.mark.parametrize("paper", REPRODUCTIONS)
def test_every_place_has_a_row(everything: Reproduction, paper: str) -> None:
    parts = [part for part in everything.parts if part.title.startswith(paper)]
    assert compared_places(parts) == set(list_places(paper))
    assert all(row.note != NO_REASON for part in parts for row in part.rows)


@pytest.mark.parametrize("paper", REPRODUCTIONS)
def test_the_places_are_those_of_the_references(paper: str) -> None:
    about, table = read_printed("places")[paper], read(paper)
    for kind in ("equations", "tables", "figures"):
        assert expand(about[kind]) == table.places[kind]


def test_places_are_read_from_words() -> None:
    assert find_places("Tables 3, 4, 5 and 8, 9: noise") == {f"Table {k}" for k in (3, 4, 5, 8, 9)}
    assert find_places("Figs. 6, 7: error") == {"Fig. 6", "Fig. 7"}
    assert find_places("Figures 3 to 5") == {"Fig. 3", "Fig. 4", "Fig. 5"}
    assert find_places("(25) to (27), (A3)-(A5): agree") == {"(25)", "(26)", "(27)", "(A3)", "(A4)", "(A5)"}
    assert find_places("Table II: sum for i >= s (r = 1)") == {"Table II"}


def test_places_without_a_row_are_listed() -> None:
    named = Part(title="all", source="a", rows=(compare_exactly("(1)-(20): equal", 1, 1),))
    left = build_not_compared("gautier1990", [named])
    assert {row.verdict for row in left.rows} == {Verdict.ABSENT}
    assert compared_places([left]) == set(list_places("gautier1990")) - {f"({k})" for k in range(1, 21)}
