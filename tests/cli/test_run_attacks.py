"""Attacks of ``make campaign`` on run folders, a few of each; `test_transaction` has the deaths at every step."""

from __future__ import annotations

import pytest

from campaigns.run_attacks import attack


@pytest.mark.parametrize(("name", "count"), [("pairs", 2), ("full", 3), ("mixed", 10)])
def test_nothing_gets_through(name: str, count: int) -> None:
    assert attack(name, count, seed=1) == []
