"""FIGAROH's trajectory optimiser and FloBaRoID's method, run by an interpreter that has them; knows nothing of dynid.

``python excitation_peer_worker.py figaroh|flobaroid|columns|judge problem.json result.npz``. The problem is what
`excitation_peers.py` writes: the URDF with the limits to keep, the base columns, time, seed. FIGAROH is used as its
examples do (cubic splines through waypoints, condition number of its base regressor, IPOPT); iterates that keep its
constraints are remembered, since IPOPT rarely ends on this cost. FloBaRoID is on no package index and needs iDynTree,
which has no wheel for ARM, so its method is rebuilt from its source: Fourier series about the middle of the range,
regularised D-optimality with its costs of torque balance, torque size and range, one constraint per joint and limit,
400 random trials with their amplitude reduced to feasibility, then IPOPT. Its gradients take as long as the finite
differences used here. Both start again until the time is over.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

Array = np.ndarray
CONFIG = """
robot:
  name: robot
  properties:
    joints: {{active_joints: {joints}}}
    mechanics: {{reduction_ratios: {ones}, ratio_essential: 100.0}}
tasks:
  identification:
    enabled: true
    problem:
      include_external_forces: false
      use_joint_torques: true
      model_components: {{friction: true, joint_offset: false, actuator_inertia: false}}
    signal_processing: {{sampling_frequency: 100.0, cutoff_frequency: 10.0}}
  optimal_trajectory:
    enabled: true
    problem: {{soft_lim: 0.0, max_attempts: 500, max_iterations: 100}}
    trajectory: {{waypoints: 11, frequency: 16, segment_duration: {segment}}}
"""


def figaroh_optimiser(problem: dict[str, Any]) -> Any:
    """FIGAROH's optimiser of this robot, ready to solve; remembers the best feasible iterate in ``best``."""
    from figaroh.optimal.base_optimal_trajectory import BaseOptimalTrajectory, BaseTrajectoryIPOPTProblem
    from figaroh.tools.robot import load_robot

    class Problem(BaseTrajectoryIPOPTProblem):
        def gradient(self, X: Array) -> Array:
            if self._is_feasible(X):
                cost = self.objective(X)
                found = {key: np.array(value) for key, value in self.opt_cb.items()}
                self.opt_traj.best = min(self.opt_traj.best, (cost, found), key=lambda pair: pair[0])
            return super().gradient(X)

        def intermediate(self, *args: Any) -> bool:
            super().intermediate(*args)
            return time.process_time() < self.opt_traj.end

    class Optimiser(BaseOptimalTrajectory):
        best: tuple[float, dict[str, Array]] = (np.inf, {})
        end = np.inf

        def create_ipopt_problem(self, *args: Any) -> Any:
            return Problem(self, *args)

    robot = load_robot(problem["urdf"], package_dirs=str(Path(problem["urdf"]).parent), load_by_urdf=True)
    joints = list(robot.model.names)[1:]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        segment = problem["period_s"] / 10
        file.write(CONFIG.format(joints=json.dumps(joints), ones=json.dumps([1.0] * len(joints)), segment=segment))
    optimiser = Optimiser(robot, joints, config_file=file.name)
    optimiser.identif_config["active_joints"] = joints
    optimiser.identif_config["act_idxv"] = [robot.model.joints[robot.model.getJointId(j)].idx_v for j in joints]
    np.random.seed(0)  # the base columns are those of a random motion
    optimiser.initialize()
    return optimiser


def figaroh(problem: dict[str, Any]) -> dict[str, Array]:
    """The best motion that FIGAROH finds in the time, sampled finely."""
    optimiser = figaroh_optimiser(problem)
    optimiser.end = time.process_time() + problem["seconds"]
    np.random.seed(problem["seed"])
    while time.process_time() < optimiser.end:
        optimiser.solve(stack_reps=1)
    cost, found = optimiser.best
    names = {"q": "p_f", "dq": "v_f", "ddq": "a_f"}
    return {"cost": np.array(cost), **{key: found[name] for key, name in names.items() if name in found}}


def columns(problem: dict[str, Any]) -> dict[str, Array]:
    """Which of the columns FV, FS and Pinocchio's inertial ones FIGAROH takes for its base."""
    optimiser = figaroh_optimiser(problem)
    kept = np.delete(np.arange(12 * optimiser.model.nv), optimiser.idx_e)
    return {"columns": kept[optimiser.idx_b]}


def judge(problem: dict[str, Any]) -> dict[str, Array]:
    """FIGAROH's own cost of given motions."""
    optimiser = figaroh_optimiser(problem)
    motions = np.load(problem["motions"])
    cost = [
        np.linalg.cond(optimiser._stack_base_regressors(*(motions[f"{part}{k}"] for part in ("q", "dq", "ddq"))))
        for k in range(problem["count"])
    ]
    return {"cost": np.array(cost)}


class FloBaRoID:
    """Cost and constraints as in FloBaRoID's TrajectoryOptimizer, by Pinocchio."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.model = pin.buildModelFromUrdf(problem["urdf"])
        self.data = self.model.createData()
        self.n, self.inertial = self.model.nv, problem["inertial"]
        self.friction_columns, self.levels = problem["friction"], np.array(problem["levels"])
        self.limits = {key: np.array(problem[key]) for key in ("lower", "upper", "velocity", "acceleration", "torque")}
        self.harmonics = problem["harmonics"]
        w = 2.0 * np.pi / problem["period_s"] * np.arange(1, self.harmonics + 1)
        phase = np.outer(np.arange(problem["samples"]) * problem["period_s"] / problem["samples"], w)
        sin, cos = np.sin(phase), np.cos(phase)
        self.basis = [np.hstack(parts) for parts in ((sin / w, -cos / w), (cos, sin), (-sin * w, cos * w))]
        self.reach = np.repeat(self.limits["velocity"], 2 * self.harmonics)
        self.scale = 0.0
        self.last: tuple[bytes, tuple[float, Array]] = (b"", (0.0, np.zeros(0)))

    def motion(self, x: Array) -> list[Array]:
        """Positions, velocities, accelerations; x holds q0 and then the coefficients, joint after joint."""
        C = x[self.n :].reshape(self.n, -1).T
        q, dq, ddq = (basis @ C for basis in self.basis)
        return [q + x[: self.n], dq, ddq]

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Cost, and constraints that are at most zero."""
        if self.last[0] == x.tobytes():
            return self.last[1]
        q, dq, ddq = self.motion(x)
        rigid = np.array(
            [pin.computeJointTorqueRegressor(self.model, self.data, *s) for s in zip(q, dq, ddq, strict=True)]
        )
        torque = np.array([pin.rnea(self.model, self.data, *s) for s in zip(q, dq, ddq, strict=True)])
        torque += self.levels[0::2] * dq + self.levels[1::2] * np.sign(dq)
        friction = np.zeros((len(q), self.n, 2 * self.n))
        for j in range(self.n):
            friction[:, j, 2 * j], friction[:, j, 2 * j + 1] = dq[:, j], np.sign(dq[:, j])
        W = np.concatenate([rigid[:, :, self.inertial], friction[:, :, self.friction_columns]], axis=2)
        W = W.reshape(-1, W.shape[2])
        eigenvalues = np.linalg.eigvalsh(W.T @ W)
        spread = -np.sum(np.log(eigenvalues + 1e-4 * max(eigenvalues[-1], 1e-30)))
        self.scale = self.scale or 10.0 / max(abs(spread), 1.0)
        used = np.abs(torque).max(axis=0) / self.limits["torque"]
        span = (q.max(axis=0) - q.min(axis=0)) / (self.limits["upper"] - self.limits["lower"])
        cost = spread * self.scale + 10.0 * np.std(used) / max(np.mean(used), 1e-9)
        cost += 10.0 * max(0.0, 1.0 - np.mean(used) / 0.25) + 10.0 * (1.0 - np.mean(span))
        excess = [self.limits["lower"] - q.min(axis=0), q.max(axis=0) - self.limits["upper"]]
        for part, name in ((dq, "velocity"), (ddq, "acceleration"), (torque, "torque")):
            excess.append(np.abs(part).max(axis=0) - self.limits[name])
        self.last = (x.tobytes(), (float(cost), np.concatenate(excess)))
        return self.last[1]

    def repaired(self, x: Array) -> tuple[float, Array] | None:
        """Cost and variables after the amplitude was reduced to feasibility."""
        for amplitude in 0.9 ** np.arange(30):
            y = np.concatenate([x[: self.n], amplitude * x[self.n :]])
            cost, excess = self.evaluate(y)
            if excess.max() <= 0.0:
                return cost, y
        return None


def flobaroid(problem: dict[str, Any]) -> dict[str, Array]:
    """The best motion that FloBaRoID's method finds in the time."""
    method, rng, end = (
        FloBaRoID(problem),
        np.random.default_rng(problem["seed"]),
        time.process_time() + problem["seconds"],
    )
    middle = 0.5 * (method.limits["lower"] + method.limits["upper"])
    best: tuple[float, Array] = (np.inf, np.zeros(0))
    while time.process_time() < end:
        start: tuple[float, Array] = (np.inf, np.zeros(0))
        for _ in range(400):
            if time.process_time() > end:
                break
            centre = middle + np.deg2rad(25.0) * rng.uniform(-1, 1, method.n)
            trial = method.repaired(np.concatenate([centre, method.reach * rng.uniform(-1, 1, method.reach.size)]))
            start = min(start, trial or start, key=lambda pair: pair[0])
        best = min(best, start, key=lambda pair: pair[0])
        if start[1].size:
            best = min(best, descended(method, start[1], middle, end) or best, key=lambda pair: pair[0])
    q, dq, ddq = method.motion(best[1])
    return {"cost": np.array(best[0]), "q": q, "dq": dq, "ddq": ddq, "x": best[1]}


def descended(method: FloBaRoID, x: Array, middle: Array, end: float) -> tuple[float, Array] | None:
    """IPOPT from one start; the best iterate after repair."""
    import cyipopt

    found: list[tuple[float, Array]] = []

    class Problem:
        def objective(self, x: Array) -> float:
            return method.evaluate(x)[0]

        def constraints(self, x: Array) -> Array:
            return method.evaluate(x)[1]

        def _differences(self, x: Array) -> Array:
            base = np.concatenate([[method.evaluate(x)[0]], method.evaluate(x)[1]])
            rows = []
            for k in range(x.size):
                cost, excess = method.evaluate(x + 1e-6 * (np.arange(x.size) == k))
                rows.append((np.concatenate([[cost], excess]) - base) / 1e-6)
            return np.array(rows).T

        def gradient(self, x: Array) -> Array:
            if repaired := method.repaired(x):
                found.append(repaired)
            self.kept = self._differences(x)
            self.at = x.copy()
            return self.kept[0]

        def jacobian(self, x: Array) -> Array:
            return (self.kept if np.array_equal(x, self.at) else self._differences(x))[1:].ravel()

        def intermediate(self, *_: Any) -> bool:
            return time.process_time() < end

    freedom, reach, m = np.deg2rad(25.0), method.reach, 5 * method.n
    ipopt = cyipopt.Problem(
        n=x.size,
        m=m,
        problem_obj=Problem(),
        lb=np.concatenate([middle - freedom, -reach]),
        ub=np.concatenate([middle + freedom, reach]),
        cl=np.full(m, -1e20),
        cu=np.zeros(m),
    )
    for name, value in {"hessian_approximation": "limited-memory", "print_level": 0, "sb": "yes"}.items():
        ipopt.add_option(name, value)
    ipopt.add_option("max_iter", 200)
    ipopt.solve(x)
    return min(found, key=lambda pair: pair[0], default=None)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    action, source, target = sys.argv[1:]
    actions = {"figaroh": figaroh, "flobaroid": flobaroid, "columns": columns, "judge": judge}
    np.savez(target, **actions[action](json.loads(Path(source).read_text())))
