"""The calls that pass a log on are few: who follows a log through the source must not get lost."""

from __future__ import annotations

import pytest

from support import log_calls
from support.call_count import WAYS, count_calls


@pytest.mark.parametrize("way", WAYS)
def test_few_calls_pass_a_log_on(way: str) -> None:
    assert count_calls(way)[0] <= WAYS[way][-1]


def test_few_calls_lead_from_a_file_to_its_experiment() -> None:
    assert log_calls.count() <= 30
