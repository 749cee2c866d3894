"""The table of the papers: complete, true to the source, every name public and every test there."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import click
import pytest

import dynid
from dynid.cli import main
from support.references_page import KINDS, PAGE, PAPERS, PaperTable, Row, expand, page, read

ROOT = Path(dynid.__file__).parent
TESTS = Path(__file__).parent
TABLES = {paper: read(paper) for paper in PAPERS}
ROWS = [(table, row) for table in TABLES.values() for row in table.rows]
INVENTORY = {  # counted in the papers: equations, tables, figures, sections with subsections and appendices
    "atkeson1986": (27 + 7, 5, 9, 25),
    "gautier1990": (20 + 12, 1, 1, 14),
    "gautier1992": (29 + 8, 12, 5, 16),
    "lin1995": (117 + 8, 3, 1, 8),
    "izaguirre1992": (29, 3, 9, 21),
}
TAG = re.compile(r"\[(\w+\d{4})\] eqs?\. ((?:\(?[A-Z]?\d+\)?(?:-| to |, (?:eqs?\. )?| and )?)+)")
"""A paper's key and equation numbers, as they stand at the lines of the source."""


def equations(text: str) -> list[str]:
    """Single equations of a tag: ``(8), (10)-(12)``."""
    plain = re.sub(r" to ", "-", re.sub(r"[()]|eqs?\. ", "", text)).replace(" and ", ", ")
    return expand(plain.rstrip(", -"))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_place_of_the_paper_has_a_row(paper: str) -> None:
    table = TABLES[paper]
    counted = tuple(len(table.places[kind]) for kind in ("equations", "tables", "figures", "sections"))
    assert counted == INVENTORY[paper]
    for kind in KINDS:
        covered = {place for row in table.rows for place in row.covered(kind)}
        assert covered == set(table.places[kind]), kind


def words(pair: tuple[PaperTable, Row]) -> str:
    return f"{pair[0].key} {pair[1].place()}"


@pytest.mark.parametrize("pair", ROWS, ids=words)
def test_a_row_has_names_with_tests_or_a_reason(pair: tuple[PaperTable, Row]) -> None:
    row = pair[1]
    assert row.what
    assert bool(row.names) == bool(row.tests)
    assert row.names or row.not_built


def public_object(name: str) -> object:
    """The object of a public name such as ``dynid.payload.recognise(...)`` or ``dynid.Load.com``."""
    head, *parts = name.partition("(")[0].split(".")
    assert head == "dynid", name
    found: object = dynid
    if parts[0] in dynid.PACKAGES:
        package = getattr(dynid, parts.pop(0))
        assert parts[0] in package.__all__, f"{name} is not public"
        found = package
    else:
        assert parts[0] == "robots" or any(parts[0] in names for names in dynid._HOME.values()), f"{name} is not public"
    for part in parts:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("pair", ROWS, ids=words)
def test_names_are_public_and_tests_exist(pair: tuple[PaperTable, Row]) -> None:
    for name in pair[1].names:
        if name.startswith("papers/"):
            assert (TESTS.parent / name).is_file(), name
        elif name.startswith("dynid "):
            command = main.get_command(click.Context(main), name.split()[1])
            assert command is not None, name
            _, extra, _ = command.make_parser(click.Context(command)).parse_args(name.split()[2:])
            assert not extra, name
        else:
            assert public_object(name) is not None
    for test in pair[1].tests:
        path, _, function = test.partition("::")
        assert re.search(rf"^def {function}\(", (TESTS / path).read_text(), re.MULTILINE), test


def sources() -> list[tuple[Path, str]]:
    return [(path, path.read_text()) for path in sorted(ROOT.rglob("*.py"))]


def test_every_equation_at_a_line_of_the_source_has_a_row_that_is_built() -> None:
    tables = {table.key: table for table in TABLES.values()}
    seen = 0
    for path, text in sources():
        for key, numbers in TAG.findall(text):
            for number in equations(numbers):
                where = f"{path.relative_to(ROOT)}: [{key}] ({number})"
                rows = [row for row in tables[key].rows if number in row.covered("equations")]
                assert rows, f"{where} is no equation of the paper"
                assert any(row.names for row in rows), f"{where} is used in the source and said not to be built"
                seen += 1
    assert seen > 150


@cache
def _public_names() -> dict[str, set[str]]:
    """Public names by the module that defines them."""
    found: dict[str, set[str]] = {}
    for names in dynid._HOME.values():
        for name in names:
            found.setdefault(getattr(getattr(dynid, name), "__module__", ""), set()).add(name)
    for package in dynid.PACKAGES:
        home = getattr(dynid, package)
        for name in home.__all__:
            found.setdefault(getattr(getattr(home, name), "__module__", ""), set()).add(name)
    return found


def test_nothing_public_that_follows_a_paper_is_missing() -> None:
    """A public function or class that names a paper stands in that paper's table, and so does something of a module."""
    listed: dict[str, set[int]] = {}
    for table, row in ROWS:
        for name in (name for name in row.names if name.startswith("dynid.")):
            parts = name.partition("(")[0].split(".")
            for stop in range(2, len(parts) + 1):
                if parts[stop - 1] not in dynid.PACKAGES:
                    listed.setdefault(table.key, set()).add(id(public_object(".".join(parts[:stop]))))
    keys = re.compile(rf"\[({'|'.join(table.key for table in TABLES.values())})\]")
    missing = []
    for path, text in sources():
        module = ".".join(["dynid", *path.relative_to(ROOT).with_suffix("").parts])
        offered = _public_names().get(module, set())
        if not offered:
            continue
        objects = {name: id(getattr(import_module(module), name, None)) for name in offered}
        tree = ast.parse(text)
        for key in set(keys.findall(ast.get_docstring(tree) or "")) - {
            k for k in listed if listed[k] & {*objects.values()}
        }:
            missing.append(f"{key}: something of {module}")
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in offered:
                inside = ast.get_source_segment(text, node) or ""
                missing += [
                    f"{key}: {module}.{node.name}"
                    for key in set(keys.findall(inside))
                    if objects[node.name] not in listed[key]
                ]
    assert not missing, "\n".join(missing)


def test_tags_are_read() -> None:
    text = "# [Lin1995] eqs. (8), (9); s is that of eq. (4)\n# [Atkeson1986] eqs. 25-27).\n# [Lin1995] eq. (12) for"
    found = [(key, equations(numbers)) for key, numbers in TAG.findall(text)]
    assert found == [("Lin1995", ["8", "9"]), ("Atkeson1986", ["25", "26", "27"]), ("Lin1995", ["12"])]
    assert expand("1-3, A2-A3, III-A") == ["1", "2", "3", "A2", "A3", "III-A"]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make pages"
