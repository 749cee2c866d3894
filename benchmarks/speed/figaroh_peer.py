"""FIGAROH: the regressor of a whole log."""

from __future__ import annotations

from types import SimpleNamespace

from benchmarks.speed.case import Case, Workload, load
from benchmarks.speed.pinocchio_model import pinocchio_model
from benchmarks.speed.pinocchio_python import lstsq_time


class Figaroh:
    """``build_regressor_basic``: inertial columns alone, and columns with friction and offsets, solved by lstsq."""

    name = "FIGAROH"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds per sample."""
        build_regressor_basic = load("figaroh.tools.regressor", "figaroh").build_regressor_basic
        _, model = pinocchio_model(case.robot)
        robot = SimpleNamespace(model=model, data=model.createData())
        states = case.states(case.few)
        plain = {"is_joint_torques": True, "act_idxv": list(range(case.robot.dof))}
        full = {**plain, "has_friction": True, "has_joint_offset": True}
        inertial = case.best(lambda: build_regressor_basic(robot, *states, plain), case.few)
        friction = case.best(lambda: build_regressor_basic(robot, *states, full), case.few)
        return {
            "regressor streamed": inertial,
            "regressor dense": inertial,
            "logs to R": friction + lstsq_time(case),
        }
