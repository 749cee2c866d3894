"""Three hundred broken copies of the planted log per format: no crash, no hang, no blow-up, only our errors."""

from __future__ import annotations

import random

import pytest

from campaigns.fuzz_readers import fuzz_in_child, mutate
from campaigns.log_writers import CASES

MUTANTS = 300


@pytest.mark.parametrize("target", CASES)
def test_broken_files_only_raise_our_errors(target: str) -> None:
    needs = CASES[target].needs
    if needs:
        pytest.importorskip(needs)
    tally = fuzz_in_child(target, MUTANTS, seed=1, timeout_s=600)
    assert tally.findings == []
    assert tally.mutants == MUTANTS
    assert tally.refused > 0


def test_mutants_differ_from_the_original_and_repeat_with_the_seed() -> None:
    data = bytes(range(256)) * 4
    mutants = [mutate(random.Random(seed), data) for seed in range(50)]
    assert mutants == [mutate(random.Random(seed), data) for seed in range(50)]
    assert sum(mutant != data for mutant in mutants) > 45
