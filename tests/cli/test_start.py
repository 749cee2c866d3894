"""What a command loads: heavy packages take longer than the work itself."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import dynid
from dynid.processing.simulation import sum_of_sines

LOADED = """
import runpy, sys
sys.argv = ["dynid", *sys.argv[1:]]
try:
    runpy.run_module("dynid", run_name="__main__")
except SystemExit:
    pass
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("scipy", "pandas", "matplotlib")), file=sys.stderr)
"""


def test_checking_a_log_loads_nothing_of_scipy(tmp_path):
    robot = dynid.robots.scara()
    time = np.arange(2000) / 200.0
    q, dq, ddq = sum_of_sines(robot.dof, period_s=5.0, harmonics=3, amplitude=0.4, seed=1)(time)
    tau = dynid.inverse_dynamics(robot, q, dq, ddq)
    time = time + 1e-4 * np.random.default_rng(0).normal(size=time.size)  # a clock with jitter is interpolated
    np.save(tmp_path / "log.npy", np.column_stack([time, q, tau]))
    n = robot.dof
    (tmp_path / "map.toml").write_text(
        f'[time]\ncolumn = "array[0]"\nunit = "s"\n[position]\ncolumns = "array[{{1..{n}}}]"\nunit = "SI"\n'
        f'[effort]\ncolumns = "array[{{{n + 1}..{2 * n}}}]"\nunit = "SI"\n'
    )
    words = ["check", str(tmp_path / "log.npy"), "--robot", "scara", "--map", str(tmp_path / "map.toml")]
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, timeout=60)
    assert "usable" in done.stdout, done.stderr
    assert done.stderr.splitlines()[-1] == ""
