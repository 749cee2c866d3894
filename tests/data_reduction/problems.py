"""Logs to reduce, and the dense matrices they stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.compiled import regressor
from dynid.data_reduction import Information
from dynid.robot import zoo
from dynid.robot.model import Robot
from support.random_robots import random_robot, random_states

RANDOM = {
    "serial": random_robot(3, joints=4, terms=True),
    "tree": random_robot(11, joints=6, tree=True, terms=True),
    "one joint": random_robot(5, joints=1),
    "no models": random_robot(8, joints=5),
}
ROBOTS: dict[str, Robot] = {**RANDOM, "coupled wrist": zoo.tx40()}


@dataclass(frozen=True)
class Log:
    """A robot's log with noise on the torques."""

    robot: Robot
    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray
    tau: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.q, self.dq, self.ddq, self.tau

    def dense(self, columns: tuple[int, ...] | None = None) -> np.ndarray:
        """(N, n, p + 1) the regressor beside the torques."""
        Y = regressor(self.robot, self.q, self.dq, self.ddq, columns=columns)
        return np.concatenate([Y, self.tau[:, :, None]], axis=2)


def random_log(robot: Robot, samples: int, seed: int = 0) -> Log:
    q, dq, ddq = random_states(robot, samples, seed)
    noise = np.random.default_rng(seed + 1).normal(size=q.shape)
    tau = regressor(robot, q, dq, ddq) @ robot.parameter_vector + noise
    return Log(robot, q, dq, ddq, tau)


def independent_columns(robot: Robot) -> tuple[int, ...]:
    """Columns of the regressor that form a basis of all of them, found numerically from left to right."""
    Y = regressor(robot, *random_states(robot, 200, seed=9)).reshape(-1, robot.parameter_vector.size)
    length = np.linalg.norm(Y, axis=0)
    kept: list[int] = []
    basis = np.zeros((len(Y), 0))
    for column in np.flatnonzero(length > 1e-9 * length.max()):
        rest = Y[:, column] / length[column]
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        if np.linalg.norm(rest) > 1e-8:
            kept.append(int(column))
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return tuple(kept)


def identical(one: Information, other: Information) -> bool:
    return len(one.parts) == len(other.parts) and all(
        (a.segment, a.level, a.position, a.samples) == (b.segment, b.level, b.position, b.samples)
        and all(np.array_equal(x, y) for x, y in zip(a.matrices, b.matrices, strict=True))
        for a, b in zip(one.parts, other.parts, strict=True)
    )
