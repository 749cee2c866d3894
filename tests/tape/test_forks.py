"""The copy of a process that forks while one of its threads compiles a kernel: it computes, and never hangs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, threading, time, warnings
import numpy as np
import dynid

warnings.simplefilter("ignore", DeprecationWarning)  # newer versions warn of threads
stop = threading.Event()
robot = dynid.robots.ddarm()

def compile_on():
    column = 0
    while not stop.is_set():
        column = column % 29 + 1
        dynid.compiled.kernel(robot, "regressor", columns=range(column))(*np.zeros((3, 2, 3)))

def compute():
    small = dynid.robots.cylindrical()
    dynid.inverse_dynamics(small, *np.zeros((3, 2, 3)))

dynid.inverse_dynamics(robot, *np.zeros((3, 2, 3)))  # imports of a thread are beyond the reach of dynid
thread = threading.Thread(target=compile_on)
thread.start()
children = []
for _ in range(10):
    time.sleep(0.03)
    child = os.fork()
    if child == 0:
        compute()
        os._exit(0)
    children.append(child)
stop.set()
thread.join()
end = time.monotonic() + 20.0
while children and time.monotonic() < end:
    children = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
    time.sleep(0.01)
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
print(len(children), "hang")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_children_of_a_process_that_compiles_do_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "DYNID_CACHE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "0 hang\n", done.stderr[-2000:]
