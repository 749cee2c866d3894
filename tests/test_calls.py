"""The calls that pass a log on are few: who follows a log through the source must not get lost."""

from __future__ import annotations

import pytest

from support.call_count import WAYS, count_calls


@pytest.mark.parametrize("way", WAYS)
def test_few_calls_pass_a_log_on(way: str) -> None:
    assert count_calls(way)[0] <= WAYS[way][-1]
