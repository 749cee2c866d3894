"""A simulated robot whose accelerations come from MuJoCo (extra ``sim``), as an independent check."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.control.plant import Plant, runge_kutta, smooth_signs
from dynid.dynamics.inertia_matrix import motor_inertia_matrix
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.errors import ArgumentError, EstimationError, ExportError
from dynid.lazy import cached_property
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.tape import compile_single, record


class MujocoPlant(Plant):
    """MuJoCo computes the accelerations of links and rotors; friction and offsets are those of the terms.

    Steps are those of `RungeKuttaPlant`, with friction in every stage: MuJoCo would hold friction constant over a
    step, which makes the simulation of light joints unstable.
    """

    @cached_property
    def _simulation(self) -> tuple[Any, Any, Any]:
        try:
            import mujoco
        except ImportError as error:
            raise ArgumentError(
                "MuJoCo is not installed", remedy="Install the extra: pip install 'dynid[sim]'."
            ) from error
        rotors = np.asarray(motor_inertia_matrix(self.robot, self.robot.parameter_vector), dtype=float)
        if np.any(rotors - np.diag(np.diag(rotors))):
            raise ArgumentError("MuJoCo cannot model rotors that couple joints", remedy="Use RungeKuttaPlant.")
        try:
            model = mujoco.MjModel.from_xml_string(mjcf_text(self.robot.with_terms().with_couplings()))
        except (ExportError, ValueError) as error:
            reason = error.reason if isinstance(error, ExportError) else str(error)
            raise ArgumentError(
                f"MuJoCo needs the mass and inertia of every body of robot '{self.robot.name}': {reason}",
                remedy="Use RungeKuttaPlant or AdaptivePlant: they need only the identifiable parameters.",
            ) from error
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        model.dof_armature[:] = np.diag(rotors)
        return mujoco, model, mujoco.MjData(model)

    @cached_property
    def _friction(self) -> Any:
        robot, shape = self.robot, (self.robot.dof,)
        rest, theta = np.zeros(robot.dof), robot.parameter_vector
        tape = record(lambda q, dq: term_torque(robot, theta, q, dq, rest), q=shape, dq=shape)
        return compile_single(smooth_signs(tape, self.friction_speed))

    def advance(self, state: Floats, torque: Floats, duration: float) -> Floats:
        mujoco, model, data = self._simulation
        n = self.robot.dof

        def rate(now: Floats) -> Floats:
            q, dq = now[:n].copy(), now[n : 2 * n].copy()
            acting = torque - self._friction(q, dq)
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, dq, acting
            mujoco.mj_forward(model, data)
            return np.concatenate([dq, data.qacc, [acting @ dq]])

        warnings: list[str] = []
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(warnings.append)  # instead of a file in the user's folder
        try:
            for step in self.steps(duration):
                state = runge_kutta(rate, state, step)
        finally:
            mujoco.set_mju_user_warning(before)
        if warnings:
            raise EstimationError(
                f"MuJoCo stopped: {warnings[0]}", remedy="Simulate with RungeKuttaPlant to find the cause."
            )
        return state
