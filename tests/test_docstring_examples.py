"""Public functions have an example in their docstring, and every example gives what it says."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import dynid
from support.example_names import shared_names

LIBRARIES = {
    "casadi_function": ("casadi",),
    "casadi_from_tape": ("casadi",),
    "from_mujoco": ("mujoco",),
    "from_pinocchio": ("pinocchio",),
    "read_lerobot": ("pyarrow",),
    "to_mujoco": ("mujoco",),
    "to_pinocchio": ("pinocchio",),
}
"""Function -> the libraries without which its example cannot run."""


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    seen = set()
    for place in ("dynid", *(f"dynid.{package}" for package in dynid.PACKAGES)):
        module = import_module(place)
        for name in module.__all__:
            thing = getattr(module, name, None)
            if inspect.isfunction(thing) and thing not in seen:
                seen.add(thing)
                yield f"{place}.{name}", thing


FUNCTIONS = dict(public_functions())


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return shared_names(tmp_path_factory.mktemp("examples"))


def test_every_public_function_has_an_example() -> None:
    assert not [name for name, function in FUNCTIONS.items() if ">>>" not in (function.__doc__ or "")]


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if ">>>" in (function.__doc__ or "")])
def test_the_example_holds(name: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for library in LIBRARIES.get(name.rpartition(".")[2], ()):
        pytest.importorskip(library)
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(FUNCTIONS[name]) or "", dict(names), name, None, 0)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert tried
    assert not failed, "".join(report)
