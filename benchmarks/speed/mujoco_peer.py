"""MuJoCo: inverse and forward dynamics."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from benchmarks.speed.case import Case, Workload, batch_workloads, function_workload, load
from dynid import Robot


class Mujoco:
    """``mj_inverse`` and ``mj_forward``, in batches with the time to write the state."""

    name = "MuJoCo"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds per sample or call."""
        mujoco = load("mujoco", "mujoco")
        model = mujoco.MjModel.from_xml_string(_mjcf(case.robot))
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


def _mjcf(robot: Robot) -> str:
    """Write a model file with bodies, joints and gravity only."""
    children: dict[int, list[int]] = defaultdict(list)
    for index, body in enumerate(robot.bodies):
        children[body.parent].append(index)

    def text(*values: float) -> str:
        return " ".join(f"{value:.17g}" for value in values)

    def body_text(index: int) -> str:
        body = robot.bodies[index]
        x, y, inertia = body.R_parent_joint[:, 0], body.R_parent_joint[:, 1], body.inertia
        I = inertia.about_com  # noqa: E741
        moments = text(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        kind = "slide" if body.is_prismatic else "hinge"
        return (
            f'<body pos="{text(*body.p_parent_joint)}" xyaxes="{text(*x, *y)}"><joint type="{kind}"'
            f' axis="{text(*body.axis)}"/><inertial mass="{inertia.mass:.17g}" pos="{text(*inertia.com)}"'
            f' fullinertia="{moments}"/>{"".join(map(body_text, children[index]))}</body>'
        )

    bodies = "".join(map(body_text, children[-1]))
    return (
        f'<mujoco><compiler angle="radian" balanceinertia="true" boundmass="1e-6" boundinertia="1e-9"/>'
        f'<option gravity="{text(*robot.gravity)}"/><worldbody>{bodies}</worldbody></mujoco>'
    )
