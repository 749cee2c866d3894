"""Pinocchio from Python: a loop over the samples, and numpy's lstsq for the whole matrix, as in most programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.studies.benchmark.case import Case, Floats, Workload, repeat
from dynid.studies.benchmark.pinocchio_model import pinocchio_model

__all__ = ["PinocchioPython"]


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
        one = q[0].copy(), v[0].copy(), a[0].copy()

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
            "inverse dynamics, one call": case.best(
                lambda: [pin.rnea(model, data, *one) for _ in range(case.few)], case.few
            ),
            **_one_state(case, pin, model, data, one),
        }


def _one_state(
    case: Case, pin: Any, model: Any, data: Any, one: tuple[Floats, Floats, Floats]
) -> dict[Workload, float]:
    q, v, a = one
    tau = np.array(pin.rnea(model, data, q, v, a))
    functions: dict[Workload, Callable[[], object]] = {
        "inverse_dynamics, one state": lambda: pin.rnea(model, data, q, v, a),
        "inertia_matrix, one state": lambda: pin.crba(model, data, q),
        "gravity_torque, one state": lambda: pin.computeGeneralizedGravity(model, data, q),
        "regressor, one state": lambda: pin.computeJointTorqueRegressor(model, data, q, v, a),
        "forward_dynamics, one state": lambda: pin.aba(model, data, q, v, tau),
    }
    return {name: case.best(repeat(call, case.few), case.few) for name, call in functions.items()}


def lstsq_time(case: Case) -> float:
    """Measure the seconds per sample of numpy's lstsq on the stacked base and friction columns of all joints."""
    samples = max(case.few, min(20_000, case.samples // 50))
    W = np.random.default_rng(3).normal(size=(samples * case.robot.dof, len(case.friction_columns)))
    y = np.ones(len(W))
    return case.best(lambda: np.linalg.lstsq(W, y, rcond=None), samples)
