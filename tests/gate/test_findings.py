"""Codes of findings: the page that lists them is current, and the list is the one that the code uses."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import dynid
from dynid.findings import CODES, Finding
from support.findings_page import PAGE, groups, page

SOURCE = Path(dynid.__file__).parent


def test_the_page_of_findings_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make pages"
    assert sorted(code for _, _, codes in groups() for code in codes) == sorted(CODES)


def test_every_code_is_used_and_every_used_code_is_listed() -> None:
    words: set[str] = set()
    given: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if path.name == "findings.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                given |= {k.value.value for k in node.keywords if k.arg == "code" and isinstance(k.value, ast.Constant)}
    assert given <= set(CODES)
    assert set(CODES) <= words, "codes that nothing reports"


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(KeyError, match="no-such-code"):
        Finding(code="no-such-code", severity="note", where="model", message="it is unknown")


def test_a_finding_travels_to_another_process() -> None:
    finding = Finding(code="noise", severity="note", where="q", message="m", evidence={"share [%]": 3.0})
    assert pickle.loads(pickle.dumps(finding)) == finding
