"""Recorded programs kept on disk: recorded once, the same afterwards, and anew when the code behind them changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dynid import kernels
from dynid.kernels import record_quantity
from dynid.robot.zoo import scara
from dynid.tape import record
from dynid.tape.llvm.object_cache import source_digest
from dynid.tape.tape_cache import recorded_once
from dynid.terms.base import Dependence, StateTerm


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DYNID_CACHE", raising=False)
    return tmp_path / "cache"


def _program():
    return record(lambda q, p: {"a": np.sin(q) * 3.25, "b": np.outer(q, q) + p}, q=(3,), p=())


def test_a_program_is_recorded_once(tmp_path):
    calls = []

    def make():
        calls.append(1)
        return _program()

    source = tmp_path / "equations.py"
    source.write_text("one")
    first, second = recorded_once("k", [source], make), recorded_once("k", [source], make)
    assert len(calls) == 1
    assert first.fingerprint == second.fingerprint == _program().fingerprint
    assert not any(array.flags.writeable for array in (second.opcodes, second.operands, second.constants))
    recorded_once("other", [source], make)
    assert len(calls) == 2
    source.write_text("two")
    source_digest.cache_clear()
    recorded_once("k", [source], make)
    assert len(calls) == 3


@pytest.mark.parametrize("quantity", ["regressor", "inverse_dynamics", "inertia_and_bias"])
def test_equations_from_the_cache_are_the_recorded_ones(quantity):
    robot = scara()
    fresh = kernels._record(robot, quantity, False)
    assert record_quantity(robot, quantity).fingerprint == fresh.fingerprint
    assert record_quantity(robot, quantity).fingerprint == fresh.fingerprint
    heavier = robot.with_parameters(2.0 * robot.parameter_vector)
    assert record_quantity(heavier, quantity).fingerprint == kernels._record(heavier, quantity, False).fingerprint


@dataclass(frozen=True)
class Own(StateTerm):
    """A term as a user writes it."""

    name: ClassVar[str] = "own friction"
    symbol: ClassVar[str] = "OWN"
    dependence: ClassVar[Dependence] = Dependence.VELOCITY

    def formula(self, q, dq, ddq):
        return dq * dq * dq


def test_equations_with_a_users_term_are_not_kept(folder):
    record_quantity(scara().with_terms(Own()), "inverse_dynamics")
    assert not folder.exists() or not list(folder.glob("tape-*"))
