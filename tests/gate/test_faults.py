"""Fault injection, short: one case of every kind; the campaign of 2000 is tests/campaigns/fault_injection.py."""

from __future__ import annotations

import pytest

from campaigns import fault_injection as campaign


@pytest.mark.parametrize("fault", campaign.FAULTS)
def test_the_fault_is_named_and_nothing_wrong_passes_in_silence(fault):
    named, silent = campaign.run_case(fault, "puma560", 3)
    assert named
    assert not silent
