"""Pinocchio from Python: a loop over the samples, and numpy's lstsq for the whole matrix, as in most programs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.speed.case import BOUND, Case, Workload, batch_workloads, function_workload, repeat
from benchmarks.speed.pinocchio_model import pinocchio_model
from benchmarks.speed.public_functions import fresh_process, keep_bytecode, states_of
from dynid.array_types import Floats


class PinocchioPython:
    """``pin.computeJointTorqueRegressor`` and ``pin.rnea`` in a loop."""

    name = "Pinocchio, Python loop"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds per sample or call."""
        pin, model = pinocchio_model(case.robot)
        data = model.createData()
        q, v, a = case.states(case.few)
        out = np.zeros((case.few, case.robot.dof, 10 * case.robot.dof))
        torques = np.zeros_like(q)

        def discard() -> None:
            for i in range(case.few):
                pin.computeJointTorqueRegressor(model, data, q[i], v[i], a[i])

        def store() -> None:
            for i in range(case.few):
                out[i] = pin.computeJointTorqueRegressor(model, data, q[i], v[i], a[i])

        def torque() -> None:
            for i in range(case.few):
                torques[i] = pin.rnea(model, data, q[i], v[i], a[i])

        stored = case.best(store, case.few)
        return {
            "regressor streamed": case.best(discard, case.few),
            "regressor dense": stored,
            "logs to R": stored + lstsq_time(case),
            "inverse dynamics, batch": case.best(torque, case.few),
            **_public_functions(case, pin, model, data),
            **_new_process(case),
        }


def _calls(pin: Any, model: Any, data: Any) -> dict[str, Callable[..., object]]:
    """The same quantities in Pinocchio, as functions of our states."""
    last = model.njoints - 1
    return {
        "inverse_dynamics": lambda q, v, a: pin.rnea(model, data, q, v, a),
        "forward_dynamics": lambda q, v, tau: pin.aba(model, data, q, v, tau),
        "inertia_matrix": lambda q: pin.crba(model, data, q),
        "gravity_torque": lambda q: pin.computeGeneralizedGravity(model, data, q),
        "velocity_torque": lambda q, v: pin.computeCoriolisMatrix(model, data, q, v) @ v,
        "regressor": lambda q, v, a: pin.computeJointTorqueRegressor(model, data, q, v, a),
        "energy_regressor": lambda q, v: (
            pin.computeKineticEnergyRegressor(model, data, q, v) + pin.computePotentialEnergyRegressor(model, data, q)
        ),
        "link_pose": lambda q: (pin.forwardKinematics(model, data, q), data.oMi[last].homogeneous),
        "link_jacobian": lambda q: pin.computeJointJacobian(model, data, q, last),
    }


def _public_functions(case: Case, pin: Any, model: Any, data: Any) -> dict[Workload, float]:
    """Seconds per call of the same arrays, and per state of a loop over the rows of a batch."""
    measured: dict[Workload, float] = {}
    for function, call in _calls(pin, model, data).items():
        states = states_of(case, function, case.few)
        one = [state[0].copy() for state in states]
        seconds = case.best(repeat(_bind(call, one), case.few), case.few)
        measured[function_workload(function, 1)] = seconds
        if function in BOUND:
            measured[f"{function}, bound"] = seconds
        measured |= batch_workloads(function, case.best(_loop(call, states), case.few))
    return measured


def _bind(call: Callable[..., object], states: Sequence[Floats]) -> Callable[[], object]:
    if len(states) == 1:  # written out, because unpacking a list takes time
        (q,) = states
        return lambda: call(q)
    if len(states) == 2:
        q, v = states
        return lambda: call(q, v)
    q, v, a = states
    return lambda: call(q, v, a)


def _loop(call: Callable[..., object], states: Sequence[Floats]) -> Callable[[], object]:
    def loop() -> None:
        for row in zip(*states, strict=True):
            call(*row)

    return loop


def _new_process(case: Case) -> dict[Workload, float]:
    """A new process that builds the robot's model and computes one torque, and its memory."""
    script = (
        "import re, time\nimport numpy as np\nimport pinocchio as pin\nmodel = pin.Model()\n"
        f"for k in range({case.robot.dof}):\n"
        "    model.addJoint(k, pin.JointModelRZ(), pin.SE3.Identity(), str(k))\n"
        "pin.rnea(model, model.createData(), *np.ones((3, model.nv)))\n"
        "seconds = time.process_time()\n"
        "print(seconds, int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) / 1e3)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = keep_bytecode(folder)
        runs = [fresh_process(["-c", script], environment) for _ in range(1 + min(case.repeats, 5))][1:]
    return {
        "first torque in a new process": min(seconds for seconds, _ in runs),
        "memory of a new process with one torque [MB]": min(memory for _, memory in runs),
    }


def lstsq_time(case: Case) -> float:
    """Measure the seconds per sample of numpy's lstsq on the stacked base and friction columns of all joints."""
    samples = max(case.few, min(20_000, case.samples // 50))
    W = np.random.default_rng(3).normal(size=(samples * case.robot.dof, len(case.friction_columns)))
    y = np.ones(len(W))
    return case.best(lambda: np.linalg.lstsq(W, y, rcond=None), samples)
