"""Every function of a robot by its public name, for one state and for batches, and the first call in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.speed.case import BOUND, SIZES, Case, Workload, function_workload, repeat
from dynid import compiled
from dynid.array_types import Floats

STATES: dict[str, tuple[str, ...]] = {
    "inverse_dynamics": ("q", "dq", "ddq"),
    "forward_dynamics": ("q", "dq", "tau"),
    "inertia_matrix": ("q",),
    "gravity_torque": ("q",),
    "velocity_torque": ("q", "dq"),
    "regressor": ("q", "dq", "ddq"),
    "energy_regressor": ("q", "dq"),
    "momentum_regressor": ("q", "dq"),
    "christoffel_coefficients": ("q",),
    "link_pose": ("q",),
    "link_jacobian": ("q",),
}
"""Public function -> the states it takes."""
OF_A_LINK = ("link_pose", "link_jacobian")
"""Functions that also take the name of a link."""
FEW_CALLS = 2000
"""Calls for one state in one measurement (convention: some milliseconds)."""

FIRST_TORQUE = """
import re, time
import numpy as np
import dynid
robot = dynid.robots.{robot}()
dynid.inverse_dynamics(robot, *np.ones((3, robot.dof)))
seconds = time.process_time()
print(seconds, int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1e3)
"""
"""A new process that computes one torque; it prints its processor time [s] and its largest memory [MB]."""


def states_of(case: Case, function: str, samples: int) -> list[Floats]:
    """Random states (samples, n) that a function takes; torques are drawn like accelerations."""
    drawn = dict(zip(("q", "dq", "ddq"), case.states(samples), strict=True))
    drawn["tau"] = drawn["ddq"]
    return [drawn[name] for name in STATES[function]]


def _call(case: Case, function: str, states: Sequence[Floats]) -> Callable[[], object]:
    compute, robot = getattr(compiled, function), case.robot
    if function in OF_A_LINK:
        link = robot.links[-1].name
        return lambda: compute(robot, link, *states)
    if len(states) == 1:  # written out, because unpacking a list takes longer than a call may
        (q,) = states
        return lambda: compute(robot, q)
    if len(states) == 2:
        q, dq = states
        return lambda: compute(robot, q, dq)
    q, dq, last = states
    return lambda: compute(robot, q, dq, last)


def measure_public_functions(case: Case) -> dict[Workload, float]:
    """Measure seconds per state of every public function, for one state and for batches."""
    measured: dict[Workload, float] = {}
    for function in STATES:
        for size in SIZES:
            states = states_of(case, function, size)
            if size == 1:
                states = [state[0].copy() for state in states]
            rounds = max(1, FEW_CALLS // size)
            call = repeat(_call(case, function, states), rounds)
            measured[function_workload(function, size)] = case.best(call, rounds * size)
    return measured


def measure_bound_forms(case: Case) -> dict[Workload, float]:
    """Measure seconds per call of `dynid.compiled.function` with an array for the result."""
    measured: dict[Workload, float] = {}
    for function in BOUND:
        states = [state[0].copy() for state in states_of(case, function, 1)]
        compute = compiled.function(case.robot, function)
        out = np.array(compute(*states))
        calls = range(FEW_CALLS)
        if len(states) == 1:
            (q,) = states
            measured[f"{function}, bound"] = case.best(lambda: [compute(q, out) for _ in calls], FEW_CALLS)  # noqa: B023
            continue
        q, dq, last = states
        measured[f"{function}, bound"] = case.best(lambda: [compute(q, dq, last, out) for _ in calls], FEW_CALLS)  # noqa: B023
    return measured


def measure_fresh_processes(case: Case) -> dict[Workload, float]:
    """Measure new processes: the first torque from a filled cache, its memory, the import, the help of the command."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**keep_bytecode(folder), "DYNID_CACHE_DIR": folder}
        script = FIRST_TORQUE.format(robot=case.robot.name)
        runs = [fresh_process(["-c", script], environment) for _ in range(1 + min(case.repeats, 5))][1:]
        imports = "import time, dynid; dynid.inverse_dynamics; print(time.process_time())"
        loaded = [fresh_process(["-c", imports], environment)[0] for _ in runs]
        helped = [_help_time(environment) for _ in range(1 + len(runs))][1:]
    return {
        "first torque in a new process": min(seconds for seconds, _ in runs),
        "memory of a new process with one torque [MB]": min(memory for _, memory in runs),
        "import": min(loaded),
        "dynid --help": min(helped),
    }


def keep_bytecode(folder: str) -> dict[str, str]:
    """This environment, in which Python compiles each source once into a folder, as an installer does."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode")}


def fresh_process(words: Sequence[str], environment: dict[str, str]) -> list[float]:
    """Numbers that a new Python prints."""
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def _help_time(environment: dict[str, str]) -> float:
    """Processor time of ``dynid --help`` [s]."""
    script = (
        "import contextlib, io, time\nfrom dynid.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main(['--help'])\n"
        "print(time.process_time())"
    )
    return fresh_process(["-c", script], environment)[0]
