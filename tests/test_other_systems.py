"""dynid on a system without fork, anonymous memory files, resource limits and the other calls of POSIX.

A ``sitecustomize`` takes them away in this interpreter's children and in theirs, as on Windows; the path of every user
(import all modules, read a log by the safe child, identify, write files, run a command) works all the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ABSENT = """
import os, signal, sys

for name in ("fork", "forkpty", "memfd_create", "sched_getaffinity", "getuid", "geteuid", "getgid", "register_at_fork",
             "killpg", "setsid", "O_DIRECTORY", "O_NOFOLLOW", "pread", "pwrite", "fchmod", "mkfifo", "nice", "getpgid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGXCPU", "SIGPIPE", "SIGHUP", "SIGALRM", "SIGUSR1", "setitimer", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in ("resource", "fcntl", "pwd", "grp", "termios", "pty", "syslog"):
    sys.modules[name] = None
_fsync = os.fsync

def fsync(handle):
    import stat
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        raise PermissionError("a folder cannot be synchronised here")
    _fsync(handle)

os.fsync = fsync
"""

USE = """
import importlib, os, pkgutil, signal, sys
assert not hasattr(os, "fork") and not hasattr(os, "memfd_create") and not hasattr(signal, "SIGXCPU")
import dynid
for module in pkgutil.walk_packages(dynid.__path__, "dynid."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
import numpy as np
from dynid.processing.simulation import sum_of_sines
robot = dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous())
log = dynid.simulate_experiment(robot, sum_of_sines(3, seed=1), rate_hz=100, duration_s=6,
                                noise=dynid.Noise(effort=0.1))
columns = {"time": log.time}
for j in range(3):
    columns |= {f"q_{j}": log.q[:, j], f"tau_{j}": log.effort[:, j]}
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table(columns), "run.parquet")  # its reader works in a process of its own
channel_map = {"time": {"column": "time", "unit": "s"}, "position": {"columns": "q_{0..2}", "unit": "rad"},
               "effort": {"columns": "tau_{0..2}", "unit": "N m"}}
recording = dynid.read_recording("run.parquet", robot, channel_map=channel_map)
assert np.array_equal(recording.q, log.q)
fit = dynid.identify(robot, dynid.process(recording), dynid.Recipe.bare(), estimator=dynid.WLS())
dynid.write_result(fit, "result.json")
from dynid.cli import main
sys.argv = ["dynid", "base", "gautier_khalil_3r"]
main()
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(ABSENT, encoding="utf-8")
    source = str(Path(__file__).parents[1] / "src")
    paths = os.pathsep.join([str(folder), source])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_everything_works_without_the_calls_of_posix(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    done = run(tmp_path, "-c", USE)
    assert done.returncode == 0, done.stderr
    assert "base parameters" in done.stdout
    assert (tmp_path / "result.json").exists()
