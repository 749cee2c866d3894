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

WITHOUT = {
    "identify", "calibrate_drives", "gains_from_weighed_mass", "joint_friction",
    "calibrate_sensor", "check_controller", "check_wrench", "christoffel_coefficients", "design_energy_points",
    "design_load_motion", "design_point_trajectory", "energy_regressor", "excitation_table",
    "find_wrench_delay", "forward_dynamics", "from_mujoco", "from_pinocchio", "function", "gains_from_added_mass",
    "gains_from_static_load", "gravity_torque", "identify_drive_gains", "identify_end_link", "identify_load",
    "inertia_matrix", "inverse_dynamics", "kernel", "link_jacobian", "link_pose", "momentum_regressor",
    "optimise_points", "read_law", "read_lerobot", "read_library", "read_load", "recognise", "reduce_extended",
    "regressor", "run_design", "run_load", "simulate_loop", "snapped_joints", "study_load", "to_mujoco",
    "to_pinocchio", "urdf_hulls", "velocity_torque", "with_loop", "wrench_data", "wrench_regressor",
}  # fmt: skip
"""Functions of the packages that have no example yet: they need a sensor log, a control loop or seconds of search,
or stand in a file that has reached its 600 lines."""

LIBRARIES = {
    "plot": ("matplotlib",),
    "casadi_function": ("casadi",),
    "casadi_from_tape": ("casadi",),
    "usd_overlay": ("pxr",),
    "to_sysid": ("mujoco.sysid", "tabulate"),
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


def test_every_public_function_has_an_example_or_is_listed() -> None:
    missing = {function.__name__ for function in FUNCTIONS.values() if ">>>" not in (function.__doc__ or "")}
    assert missing <= WITHOUT
    assert missing >= WITHOUT, "take names with an example off the list"


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
