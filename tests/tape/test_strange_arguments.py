"""Arguments that cannot be used are refused by name; caches of others, swapped entries and lost homes are harmless."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid import compiled
from dynid.errors import ArgumentError
from dynid.robot import zoo
from dynid.tape import compile_tape, record
from dynid.tape.llvm.object_cache import ObjectCache
from dynid.terms.base import StateTerm
from dynid.terms.friction import Viscous

ROBOT = zoo.tx40()
STATES = np.random.default_rng(0).normal(size=(3, 4, ROBOT.dof))
COUNT = ROBOT.parameter_vector.size


@pytest.mark.parametrize("columns", [[1.7, 2.2], ["1"], [-1], [COUNT], [True, False], 5, [[1]]])
def test_columns_that_are_no_columns(columns: Any) -> None:
    with pytest.raises(ArgumentError, match="column"):
        compiled.kernel(ROBOT, "regressor", columns=columns)
    with pytest.raises(ArgumentError, match="column"):
        compiled.regressor(ROBOT, *STATES, columns=columns)
    with pytest.raises(ArgumentError, match="column"):
        compiled.kernel(ROBOT, "inertia_matrix", columns=[0])


@pytest.mark.parametrize(
    "dq",
    [
        STATES[1] + 0j,
        STATES[1].astype(str),
        STATES[1].astype("datetime64[s]"),
        np.ma.masked_greater(STATES[1], 0.0),
        np.full(STATES[1].shape, {}),
    ],
)
def test_states_that_are_no_real_numbers(dq: Any) -> None:
    with pytest.raises(ArgumentError, match="dq"):
        compiled.inverse_dynamics(ROBOT, STATES[0], dq, STATES[2])
    with pytest.raises(ArgumentError, match="dq"):
        compiled.wrench_regressor(ROBOT, ROBOT.links[-1].name, STATES[0], dq, STATES[2])
    with pytest.raises(ArgumentError, match="dq"):
        compiled.forward_dynamics(ROBOT, STATES[0], dq, STATES[2])


def test_options_that_there_are_not() -> None:
    tape = record(lambda x: 2.0 * x, x=(3,))
    with pytest.raises(ArgumentError, match="backend"):
        compile_tape(tape, "foo")  # type: ignore[arg-type]


# --- users' terms -----------------------------------------------------------------------------------------


def cubic(power: int) -> type[StateTerm]:
    """A class of the same name and text whatever it computes."""

    class Cubic(Viscous):
        def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
            return dq**power

    return Cubic


class Tuned(Viscous):
    """State that its text does not show."""

    def __init__(self, value: float = 0.0, factor: float = 1.0) -> None:
        object.__setattr__(self, "factor", factor)
        super().__init__(value)

    def with_value(self, value: float) -> Tuned:
        return Tuned(float(value), self.factor)  # type: ignore[attr-defined]

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return self.factor * dq  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Table(Viscous):
    """State whose text is cut."""

    table: Any = None

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return float(self.table[1500]) * dq


def test_each_users_model_has_its_own_kernel() -> None:
    dq = np.full(ROBOT.dof, 2.0)
    rest = np.zeros(ROBOT.dof)
    low, high = np.zeros(3000), np.where(np.arange(3000) == 1500, 5.0, 0.0)
    cases: list[tuple[StateTerm, float]] = [
        (Viscous(1.0), 2.0),
        (cubic(2)(1.0), 4.0),  # type: ignore[call-arg]
        (cubic(3)(1.0), 8.0),  # type: ignore[call-arg]
        (Tuned(1.0, 3.0), 6.0),
        (Tuned(1.0, 7.0), 14.0),
        (Table(1.0, low), 0.0),
        (Table(1.0, high), 10.0),
    ]
    prints = set()
    for model, expected in cases:
        robot = ROBOT.with_couplings().with_terms(model)
        column = compiled.regressor(robot, rest, dq, rest)[0, 10 * robot.dof]
        assert column == pytest.approx(expected)
        prints.add(robot.fingerprint)
        assert robot.fingerprint == robot.with_parameters(2.0 * robot.parameter_vector).fingerprint
    assert len(prints) == len(cases)
    assert ROBOT.with_terms(cubic(2)()).fingerprint == ROBOT.with_terms(cubic(2)()).fingerprint


# --- the cache ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner")
def test_entries_of_another_user_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ObjectCache(tmp_path)
    cache.write("x", b"code")
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert cache.read("x") is None
    assert (tmp_path / "x.o").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="of the XDG folders")
def test_homes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def lost() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("DYNID_CACHE_DIR", raising=False)
    monkeypatch.delenv("DYNID_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert ObjectCache.default().folder == tmp_path / ".cache" / "dynid"
    monkeypatch.setattr(Path, "home", lost)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert ObjectCache.default().folder == tmp_path / "dynid"
    monkeypatch.delenv("XDG_CACHE_HOME")
    with pytest.warns(RuntimeWarning, match="no home folder"):
        assert ObjectCache.default().folder is None
    assert ObjectCache.default().folder is None  # and not a word more


@pytest.mark.parametrize("error", ["RuntimeError", "AttributeError", "OSError", "ImportError"])
def test_a_broken_llvmlite_is_done_without(tmp_path: Path, error: str) -> None:
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text("")
    (tmp_path / "llvmlite" / "binding.py").write_text(f"raise {error}('broken')")
    program = "import numpy, dynid.tape as t; print(t.compile_tape(t.record(lambda x: 2.0 * x, x=(1,))).backend)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "numpy", done.stderr
    assert "llvmlite cannot be loaded" in done.stderr
