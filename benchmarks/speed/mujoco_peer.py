"""MuJoCo: inverse and forward dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.speed.case import Case, Workload, batch_workloads, function_workload, load
from dynid import Robot
from dynid.robot import to_mujoco


class Mujoco:
    """``mj_inverse`` and ``mj_forward``, in batches with the time to write the state."""

    name = "MuJoCo"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds per sample or call."""
        mujoco = load("mujoco", "mujoco")
        model = free_model(case.robot)
        data = mujoco.MjData(model)
        q, v, a = case.states(case.few)
        torques = np.zeros_like(q)

        def batch() -> None:
            for i in range(case.few):
                data.qpos[:], data.qvel[:], data.qacc[:] = q[i], v[i], a[i]
                mujoco.mj_inverse(model, data)
                torques[i] = data.qfrc_inverse

        def forward() -> None:
            for i in range(case.few):
                data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[i], v[i], a[i]
                mujoco.mj_forward(model, data)
                torques[i] = data.qacc

        batch()
        return {
            "inverse dynamics, batch": case.best(batch, case.few),
            **batch_workloads("inverse_dynamics", case.best(batch, case.few)),
            function_workload("inverse_dynamics", 1): case.best(
                lambda: [mujoco.mj_inverse(model, data) for _ in range(case.few)], case.few
            ),
            **batch_workloads("forward_dynamics", case.best(forward, case.few)),
            function_workload("forward_dynamics", 1): case.best(
                lambda: [mujoco.mj_forward(model, data) for _ in range(case.few)], case.few
            ),
        }


def free_model(robot: Robot) -> Any:
    """The robot in MuJoCo without the forces of its limits."""
    model = to_mujoco(robot)
    model.opt.disableflags |= load("mujoco", "mujoco").mjtDisableBit.mjDSBL_CONSTRAINT
    return model
