"""The compiled cross products for other processors' registers, run on this one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.data_reduction.cross_products import NumpyGram
from dynid.tape import record
from dynid.tape.llvm import backend as llvm_backend
from dynid.tape.llvm import gram as llvm_gram
from dynid.tape.llvm.engine import host


@pytest.mark.parametrize(("lanes", "fused"), [(2, True), (4, True), (8, True), (2, False)])
def test_any_register_width(lanes: int, fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(host(), lanes=lanes, fused=fused)
    for module in (llvm_backend, llvm_gram):
        monkeypatch.setattr(module, "host", lambda: other)
    monkeypatch.setenv("DYNID_CACHE", "0")
    llvm_gram._code.cache_clear()
    rng = np.random.default_rng(0)
    for widths in ([1], [2, 3], [4, 5, 11], [13, 1, 17]):
        mixers = [rng.normal(size=(width, 6)) for width in widths]
        tape = record(lambda x, m=mixers: {str(k): matrix @ x for k, matrix in enumerate(m)}, x=(6,))
        compiled, reference = llvm_gram.LlvmGram(tape), NumpyGram(tape)
        R0 = [np.triu(rng.normal(size=(width, width))) + 4.0 * np.eye(width) for width in widths]
        for samples in (1, 7, 120, 243):
            inputs = [rng.normal(size=(samples, 6))]
            for ours, theirs in zip(compiled.rows(inputs), reference.rows(inputs), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)
            for conditioners in (None, R0):
                grams = zip(compiled.grams(inputs, conditioners), reference.grams(inputs, conditioners), strict=True)
                for ours, theirs in grams:
                    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-11)
    llvm_gram._code.cache_clear()
