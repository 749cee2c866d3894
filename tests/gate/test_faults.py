"""Fault injection, short: one case of every kind; the campaign of 2000 is tests/campaigns/fault_injection.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).parents[1] / "campaigns" / "fault_injection.py"


def _campaign():
    spec = importlib.util.spec_from_file_location("fault_injection", CAMPAIGN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)

    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


campaign = _campaign()


@pytest.mark.parametrize("fault", campaign.FAULTS)
def test_the_fault_is_named_and_nothing_wrong_passes_in_silence(fault):
    named, silent = campaign.run_case(fault, "puma560", 3)
    assert named
    assert not silent
