"""Verdicts: computed from both sides and a tolerance, never stated; one tolerance per table; circular rows apart."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.studies import papers
from dynid.studies.papers import Part, Reproduction, Row, Verdict
from dynid.studies.papers.judgement.earlier_verdicts import build_changes, find_changes
from dynid.studies.papers.judgement.verdicts import (
    ROUNDED,
    UNSTATED,
    ByConstruction,
    Claim,
    Drawn,
    Equal,
    Near,
    Nothing,
    Tolerance,
    compare_claim,
    compare_derived,
    compare_draws,
    compare_exactly,
    compare_lines,
    compare_numbers,
)

FOLDER = Path(papers.__file__).parent
STUDIES = sorted(path for path in FOLDER.rglob("*.py") if path.name[0].isalpha() and path.parent.name != "judgement")
DECIDING = {"compare_claim": ("holds", 3), "compare_derived": ("same", None)}
"""Argument that decides the verdict of a comparison: its name, and its place where it has one."""
COMPARING = {"compare_exactly", "compare_numbers", "compare_draws", "compare_derived", "compare_lines"}
"""Comparisons of a printed value, the second argument, with ours, the third, unless another argument decides."""
HARMLESS = {"bool", "abs", "max", "min", "round", "float", "int", "str", "len", "list", "sorted"}
"""Names that make nothing of a constant but a constant."""


def spoil(row: Row) -> Row:
    """The same row, had our result been another."""
    match row.test:
        case Equal():
            return replace(row, test=Equal(row.test.printed, object()))
        case Near():
            away = 1e3 + abs(row.test.printed) * 1e3 + 10 * row.test.tolerance.absolute
            return replace(row, test=replace(row.test, ours=away))
        case Drawn():
            return replace(row, test=replace(row.test, low=row.test.printed + 1.0, high=row.test.printed + 2.0))
        case Claim():
            return replace(row, test=Claim(holds=False))
        case Nothing():
            return row


def test_every_verdict_would_have_been_bad_with_another_result(everything: Reproduction) -> None:
    bad = {Verdict.DIFFERS, Verdict.SCAN, Verdict.MISPRINT, Verdict.ABSENT}
    for row in everything.rows:
        assert spoil(row).verdict in bad, row.what


def test_a_verdict_cannot_be_stated() -> None:
    with pytest.raises(TypeError):
        Row("a", "1", "1", Equal(1, 1), verdict=Verdict.REPRODUCED)  # type: ignore[call-arg]
    with pytest.raises((AttributeError, TypeError)):
        compare_exactly("a", 1, 2).verdict = Verdict.REPRODUCED  # type: ignore[misc]


def _constant_names(tree: ast.AST) -> set[str]:
    """Names that are only ever bound to a constant."""
    bound: dict[str, list[bool]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in (n.id for n in ast.walk(target) if isinstance(n, ast.Name)):
                    bound.setdefault(name, []).append(isinstance(node.value, ast.Constant))
    return {name for name, kinds in bound.items() if all(kinds)}


def _is_stated(value: ast.expr, constant: set[str]) -> bool:
    """Whether nothing computed takes part in a value."""
    return not {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} - HARMLESS - constant


def _faults(text: str) -> list[str]:
    """Verdicts that a study states instead of computing them."""
    tree = ast.parse(text)
    constant, found = _constant_names(tree), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Verdict":
            found.append(f"line {node.lineno}: Verdict.{node.attr}")
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id in {"Row", "Claim", "Equal", "Near", "Drawn", "Nothing"}:
            found.append(f"line {node.lineno}: {node.func.id}(...)")
        values = []
        if node.func.id in DECIDING:
            name, place = DECIDING[node.func.id]
            values = [word.value for word in node.keywords if word.arg == name]
            values += [node.args[place]] if place is not None and len(node.args) > place else []
            found += [f"line {node.lineno}: {name} is a constant" for value in values if _is_stated(value, constant)]
        if node.func.id in COMPARING and not values and len(node.args) > 2:
            printed, ours = node.args[1:3]
            if _is_stated(ours, constant) or ast.dump(printed) == ast.dump(ours):
                found.append(f"line {node.lineno}: our side is a constant or the printed one")
    return found


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_no_study_states_a_verdict(path: Path) -> None:
    assert not _faults(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "x = Verdict.REPRODUCED",
        "Row('a', 'b', 'c', test)",
        "compare_claim('a', 'b', 'c', True)",
        "compare_claim('a', 'b', 'c', holds=1 < 2)",
        "good = True\ncompare_claim('a', 'b', 'c', good)",
        "compare_derived('a', 1, 2, same=False)",
        "compare_derived('a', '> 1', '>= 1')",
        "compare_exactly('a', data['n'], 36)",
        "compare_exactly('a', data['n'], data['n'])",
        "ours = 2.5\ncompare_numbers('a', data['x'], float(ours), tolerance=band)",
        "compare_lines('a', 15, 15)",
    ],
)
def test_the_scan_finds_stated_verdicts(text: str) -> None:
    assert _faults(text)


def test_the_scan_accepts_computed_ones() -> None:
    assert not _faults("error = f()\ncompare_claim('a', 'b', 'c', error < 1e-9)\ncompare_derived('a', 1, error)")


def test_agreement_by_construction_is_no_reproduction() -> None:
    circular = ByConstruction("the noise was chosen", "noise known from elsewhere")
    row = compare_numbers("a", 2.0, 2.0, tolerance=UNSTATED, assumption=circular)
    assert row.verdict is Verdict.CONSTRUCTED
    assert "Evidence would be noise known from elsewhere" in row.note
    assert compare_exactly("a", 1, 1, assumption=circular).verdict is Verdict.CONSTRUCTED
    assert compare_claim("a", "b", "c", bool(np.ones(1)[0]), assumption=circular).verdict is Verdict.CONSTRUCTED
    assert compare_numbers("a", 2.0, 9.0, tolerance=UNSTATED, assumption=circular).verdict is Verdict.DIFFERS


def test_changed_verdicts_are_listed_with_reasons(everything: Reproduction) -> None:
    changes = find_changes(everything)
    assert all(change.reason and change.before != change.after for change in changes)
    rows = {(part.title.split(":")[0], row.what): row for part in everything.parts for row in part.rows}
    listed = {(change.paper, change.what): change for change in changes}
    assert ("lin1995", "(92): entry 13 of W") in listed
    for key, change in listed.items():
        assert change.after == (str(rows[key].verdict) if key in rows else "no row any more")
    section = build_changes(everything)
    assert "| all rows | 261 |" in section
    assert all(change.what in section for change in changes)


def test_a_wrong_print_is_blamed_on_the_scan_unless_it_cannot_be() -> None:
    assert compare_derived("a", 1.5, 1.6).verdict is Verdict.SCAN
    row = compare_derived("a", 1.5, 1.6, not_scan="the text says it in words too")
    assert row.verdict is Verdict.MISPRINT
    assert "in words" in row.note
    assert compare_derived("a", 1.5, 1.5, not_scan="in words").verdict is Verdict.REPRODUCED


def test_lines_are_right_or_not() -> None:
    assert compare_lines("a", 10, 10).verdict is Verdict.REPRODUCED
    row = compare_lines("a", 10, 9)
    assert row.verdict is Verdict.SCAN
    assert row.note
    assert compare_lines("a", 10, 9, not_scan="terms are absent").verdict is Verdict.MISPRINT


def test_one_tolerance_per_table() -> None:
    other = Tolerance(factor=2.0, basis="another")
    first = compare_numbers("Table 3, fs1", 1.0, 1.0, tolerance=ROUNDED)
    second = compare_numbers("Table 3, fs2", 1.0, 1.5, tolerance=other)
    with pytest.raises(ArgumentError, match="Table 3, fs2"):
        Part(title="a", source="b", rows=(first, second))
    elsewhere = compare_numbers("Table 4, fs2", 1.0, 1.5, tolerance=other)
    assert len(Part(title="a", source="b", rows=(first, elsewhere)).rows) == 2


def test_tolerances() -> None:
    digits = Tolerance(absolute=2e-4, basis="four decimals")
    assert digits.holds(1.0589, 1.0590)
    assert not digits.holds(1.0589, 1.0592)
    assert digits.width == "within 0.0002"
    assert not UNSTATED.holds(175.0, 264.8)
    assert UNSTATED.holds(-2.0, -2.9)
    assert not UNSTATED.holds(2.0, -2.0)
    assert ROUNDED.width == "within 0.05 %"


def test_a_printed_draw_must_lie_among_ours() -> None:
    draws = np.random.default_rng(0).normal(5.0, 1.0, 4000).tolist()
    assert compare_draws("a", 6.5, draws).verdict is Verdict.REPRODUCED
    assert compare_draws("a", 6.5, draws, assumption="limits").verdict is Verdict.ASSUMED
    row = compare_draws("a", 8.0, draws)
    assert row.verdict is Verdict.DIFFERS
    assert "95% of ours" in row.note
