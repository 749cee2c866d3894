"""The mass of the house stays below the ceilings of ``[tool.dynid.ceilings]`` in pyproject.toml, which only ever fall.

Mass is counted in tokens of code without comments, docstrings and layout; long strings count by their length.
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from pathlib import Path

import pytest

import dynid
from dynid.findings import CODES

ROOT = Path(__file__).parents[1]
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
STARTS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def mass(folder: Path) -> int:
    """Tokens of all Python files below a folder."""
    return sum(tokens(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))


def tokens(text: str) -> int:
    """Tokens of a text."""
    count, before = 0, tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in LAYOUT:
            before = tokenize.NEWLINE if token.type in STARTS else before
            continue
        if token.type != tokenize.STRING:
            count += 1
        elif before != tokenize.NEWLINE:  # no docstring
            count += max(1, len(token.string) // 40)
        before = token.type
    return count


def numeric_constants() -> int:
    """Names in capitals that modules bind to numbers, one by one, several in a row or with a type."""
    found = 0
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                found += sum(map(_is_numeric, *_bindings(node)))
    return found


def _bindings(node: ast.Assign | ast.AnnAssign) -> tuple[list[ast.expr], list[ast.expr | None]]:
    """Names and the values that they are bound to."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        return target.elts, [*node.value.elts]
    return [target], [node.value]


def _is_numeric(name: ast.expr, value: ast.expr | None) -> bool:
    if not (isinstance(name, ast.Name) and name.id.isupper() and value):
        return False
    parts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
    return bool(parts) and all(isinstance(part, int | float) for part in parts)


def public_names() -> int:
    """Names of all packages, each counted once."""
    packages = [getattr(dynid, name) for name in dynid.PACKAGES]
    return len({*dynid.__all__, *(name for package in packages for name in package.__all__)})


MEASURES = {
    "source_tokens": lambda: mass(ROOT / "src"),
    "laboratory_tokens": lambda: mass(ROOT / "papers") + mass(ROOT / "benchmarks"),
    "test_tokens": lambda: mass(ROOT / "tests"),
    "source_files": lambda: len(list((ROOT / "src").rglob("*.py"))),
    "docs_words": lambda: sum(len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").glob("*.md")),
    "numeric_constants": numeric_constants,
    "public_names": public_names,
    "finding_codes": lambda: len(CODES),
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_house_stays_below_its_ceilings(name: str) -> None:
    ceilings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["dynid"]["ceilings"]
    assert MEASURES[name]() <= ceilings[name], "take something away; ceilings only fall"
