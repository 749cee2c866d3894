"""What a command loads: heavy packages take longer than the work itself."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest

import dynid
from dynid.processing.simulation import sum_of_sines
from dynid.runs.run_folder import versions

LOADED = """
import runpy, sys
sys.argv = ["dynid", *sys.argv[1:]]
try:
    runpy.run_module("dynid", run_name="__main__")
except SystemExit:
    pass
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("scipy", "pandas", "matplotlib")), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of a SCARA in a folder, and the map of its columns."""
    folder = tmp_path_factory.mktemp("log")
    robot = dynid.robots.scara()
    time = np.arange(2000) / 200.0
    q, dq, ddq = sum_of_sines(robot.dof, period_s=5.0, harmonics=3, amplitude=0.1, seed=1)(time)
    tau = dynid.inverse_dynamics(robot, q, dq, ddq)
    time = time + 1e-4 * np.random.default_rng(0).normal(size=time.size)  # a clock with jitter is interpolated
    np.save(folder / "log.npy", np.column_stack([time, q, tau]))
    n = robot.dof
    (folder / "map.toml").write_text(
        f'[time]\ncolumn = "array[0]"\nunit = "s"\n[position]\ncolumns = "array[{{1..{n}}}]"\nunit = "SI"\n'
        f'[effort]\ncolumns = "array[{{{n + 1}..{2 * n}}}]"\nunit = "SI"\n'
    )
    return folder


def loaded_by(*words):
    """What a command prints, and the heavy modules that it loads."""
    done = subprocess.run([sys.executable, "-c", LOADED, *map(str, words)], capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr.splitlines()[-1].split()


def test_checking_a_log_loads_nothing_of_scipy(log):
    printed, loaded = loaded_by("check", log / "log.npy", "--robot", "scara", "--map", log / "map.toml")
    assert "usable" in printed
    assert loaded == []


def test_identifying_loads_no_package_of_scipy(log, tmp_path):
    words = ("identify", "scara", log / "log.npy", "--map", log / "map.toml", "--out", tmp_path / "run")
    printed, loaded = loaded_by(*words)
    assert "written" in printed
    packages = (
        "cluster",
        "linalg",
        "special",
        "sparse",
        "spatial",
        "stats",
        "optimize",
        "signal",
        "interpolate",
        "ndimage",
    )
    assert {"pandas", *(f"scipy.{name}" for name in packages)}.isdisjoint(loaded)


def test_no_verb_is_loaded_before_it_is_asked_for():
    words = ("-c", "import sys; from dynid.cli import main; print(*(n for n in sys.modules if 'cli.verbs.' in n))")
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


def test_the_versions_of_a_run_are_those_that_the_standard_library_knows() -> None:
    found = versions()
    for name in ("numpy", "llvmlite", "clarabel"):
        assert found[name] == importlib.metadata.version(name)
