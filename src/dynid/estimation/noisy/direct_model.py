"""One sampling period of the direct dynamic model in base parameters, with its exact derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.noisy.linearisation import linearisation
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot

NODES = (0, 1, 1, 2)
"""Which of the torques at start, middle and end each Runge-Kutta stage takes."""


@dataclass(frozen=True, slots=True, eq=False)
class DirectModel:
    """``[q, dq, beta] -> [q, dq, beta]`` one sampling period later; fourth-order Runge-Kutta."""

    robot: Robot
    base: BaseParameters
    friction_speed: float | None = None
    """Dry friction is smoothed below this speed [rad/s or m/s]; None leaves its jump."""

    def steps(self, states: Floats, torque: Floats, h: float) -> Floats:
        """(m, 2 n + b) many states one period on.

        Args:
            states: (m, 2 n + b) positions, velocities, base parameters.
            torque: (3, n) at the start, middle and end of the period [N m or N].
            h: The period [s].
        """
        n = self.robot.dof
        theta = np.zeros((len(states), len(self.base.layout)))
        theta[:, list(self.base.columns)] = states[:, 2 * n :]
        evaluate = linearisation(self.robot, self.base, self.friction_speed).terms

        def rate(x: Floats, tau: Floats) -> Floats:
            terms = evaluate(np.ascontiguousarray(x[:, :n]), np.ascontiguousarray(x[:, n:]), theta)
            ddq = np.linalg.solve(terms["inertia"], (tau - terms["bias"])[..., None])[..., 0]
            return np.hstack([x[:, n:], ddq])

        x = states[:, : 2 * n]
        with np.errstate(over="ignore", invalid="ignore"):
            k1 = rate(x, torque[0])
            k2 = rate(x + 0.5 * h * k1, torque[1])
            k3 = rate(x + 0.5 * h * k2, torque[1])
            k4 = rate(x + h * k3, torque[2])
            return np.hstack([x + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4), states[:, 2 * n :]])

    def linear_step(self, state: Floats, torque: Floats, h: float) -> tuple[Floats, Floats, Floats]:
        """A state (2 n + b,) one period on, with the derivatives by itself and by the torque.

        Returns:
            (2 n + b,) the next state; (2 n + b, 2 n + b) F; (2 n + b, n) G, of a torque that shifts for a whole period.
        """
        n, b = self.robot.dof, self.base.rank
        beta, torque = np.ascontiguousarray(state[2 * n :]), np.ascontiguousarray(torque)
        x = state[: 2 * n]
        identity = np.eye(2 * n, 3 * n + b)  # by positions, velocities, parameters, torque
        total, slopes = np.zeros(2 * n), np.zeros_like(identity)
        k, D = np.zeros(2 * n), np.zeros_like(identity)
        with np.errstate(over="ignore", invalid="ignore"):
            for node, part, weight in zip(NODES, (0.0, 0.5, 0.5, 1.0), (1.0, 2.0, 2.0, 1.0), strict=True):
                k, D = self._rate(x + part * h * k, identity + part * h * D, beta, torque[node])
                total, slopes = total + weight * k, slopes + weight * D
            moved = identity + h / 6.0 * slopes
            mean = np.concatenate([x + h / 6.0 * total, beta])
        F = np.eye(2 * n + b)
        F[: 2 * n] = moved[:, : 2 * n + b]
        G = np.zeros((2 * n + b, n))
        G[: 2 * n] = moved[:, 2 * n + b :]
        return mean, F, G

    def _rate(self, x: Floats, X: Floats, beta: Floats, torque: Floats) -> tuple[Floats, Floats]:
        """Rate (2 n,) of a state and of its derivatives (2 n, 3 n + b)."""
        n = self.robot.dof
        rate = linearisation(self.robot, self.base, self.friction_speed).rate
        at = rate(x[:n].copy(), x[n:].copy(), torque, beta)
        change = np.empty_like(X)
        change[:n] = X[n:]
        np.matmul(at[:, 1 : 2 * n + 1], X, out=change[n:])
        change[n:, 2 * n :] += at[:, 2 * n + 1 :]
        return np.concatenate([x[n:], at[:, 0]]), change
