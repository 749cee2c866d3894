"""The calls that pass a log on are few: who follows a log through the source must not get lost."""

from __future__ import annotations

import re

import pytest

from support import log_calls
from support.call_count import WAYS, count_calls


@pytest.mark.parametrize("way", WAYS)
def test_few_calls_pass_a_log_on(way: str) -> None:
    assert count_calls(way)[0] <= WAYS[way][-1]


def test_the_forms_of_a_log_have_these_names() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in log_calls.SOURCE.rglob("*.py"))
    for form in log_calls.FORMS:
        assert re.search(rf"^(class )?{form}\b", sources, re.MULTILINE), form


def test_few_calls_lead_from_a_file_to_its_experiment() -> None:
    assert log_calls.count() <= 30
