"""The simulated robot moved by MuJoCo (extra ``sim``), as an independent alternative."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.control.plant import Plant, smoothed
from dynid.dynamics.inertia_matrix import motor_inertia_matrix
from dynid.dynamics.inverse_dynamics import joint_model_torque
from dynid.errors import ArgumentError
from dynid.robot.mjcf_writer import mjcf_text
from dynid.tape import compile_single, record

__all__ = ["MujocoPlant"]

Floats = NDArray[np.float64]


class MujocoPlant(Plant):
    """MuJoCo integrates the links and rotors; friction and offsets are those of the robot's joint models."""

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
            raise ArgumentError("MuJoCo has no rotors that couple joints", remedy="Use RungeKuttaPlant.")
        model = mujoco.MjModel.from_xml_string(mjcf_text(self.robot.with_joint_models()))
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        model.dof_armature[:] = np.diag(rotors)
        return mujoco, model, mujoco.MjData(model)

    @cached_property
    def _friction(self) -> Any:
        robot, shape = self.robot, (self.robot.dof,)
        rest, theta = np.zeros(robot.dof), robot.parameter_vector
        tape = record(lambda q, dq: joint_model_torque(robot, theta, q, dq, rest), q=shape, dq=shape)
        return compile_single(smoothed(tape, self.friction_speed))

    def advance(self, state: Floats, torque: Floats, duration: float) -> Floats:
        mujoco, model, data = self._simulation
        n = self.robot.dof
        q, dq = state[:n].copy(), state[n : 2 * n].copy()
        acting = torque - self._friction(q, dq)
        model.opt.timestep = duration
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, dq, acting
        mujoco.mj_step(model, data)
        work = state[-1] + acting @ (data.qpos - q)
        return np.concatenate([data.qpos, data.qvel, [work]])
