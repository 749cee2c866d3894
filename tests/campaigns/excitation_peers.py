"""Designs against peers: equal robots, limits, period and harmonics; peers get ten times our time.

The baseline is what one writes with SciPy and Pinocchio: SLSQP over the same Fourier coefficients, gradients by finite
differences, one constraint per joint and limit. Its result is made feasible by our own amplitude repair, and Pinocchio
judges both. Run from the repository's root: ``OPENBLAS_NUM_THREADS=1 python tests/campaigns/excitation_peers.py
[--seconds 4] [--robots puma560 ur10 panda]``; needs ``pin``. Ends with status 1 where a peer is better.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.optimize import minimize

from dynid.excitation.constraints import build_constraints
from dynid.excitation.criteria import ColumnScaled, ConditionNumber, DOptimality, InformationCriterion
from dynid.excitation.design import design_excitation
from dynid.excitation.feasibility import with_feasible_amplitude
from dynid.excitation.fourier import FourierTrajectory
from dynid.excitation.limits import MotionLimits
from dynid.excitation.observation import TorqueObservation, with_smooth_friction
from dynid.excitation.problem import DesignProblem
from dynid.excitation.trajectory import LinearTrajectory
from dynid.parameters.base import base_parameters
from dynid.robot import zoo
from dynid.robot.joint_models import Coulomb, Viscous
from dynid.robot.model import Robot
from dynid.tables import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.pinocchio_oracle import pinocchio_model

Array = np.ndarray
PERIOD_S, HARMONICS, SAMPLES = 10.0, 5, 165
CRITERIA = {"condition number": ColumnScaled(ConditionNumber()), "log det": DOptimality()}
FROM_PINOCCHIO = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
"""Places of XX XY XZ YY YZ ZZ MX MY MZ M among Pinocchio's parameters of a body."""


class Pinocchio:
    """The robot as Pinocchio sees it, with the base columns of its regressor."""

    def __init__(self, robot: Robot) -> None:
        self.model = pinocchio_model(robot)
        self.data = self.model.createData()
        self.n = robot.dof
        columns = np.array(base_parameters(robot).columns)
        links = 10 * self.n
        self.inertial = [10 * (c // 10) + FROM_PINOCCHIO[c % 10] for c in columns[columns < links]]
        self.friction = columns[columns >= links] - links
        self.parameters = robot.parameter_vector

    def regressors(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Regressor of the bodies (N, n, 10 n)."""
        rigid = np.empty((len(q), self.n, 10 * self.n))
        for k, state in enumerate(zip(q, dq, ddq, strict=True)):
            rigid[k] = pin.computeJointTorqueRegressor(self.model, self.data, *state)
        return rigid

    def matrix(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Observation matrix (N n, b)."""
        rigid = self.regressors(q, dq, ddq)
        friction = np.zeros((len(q), self.n, 2 * self.n))  # FV1 FC1 FV2 FC2 ...
        for j in range(self.n):
            friction[:, j, 2 * j], friction[:, j, 2 * j + 1] = dq[:, j], np.sign(dq[:, j])
        W = np.concatenate([rigid[:, :, self.inertial], friction[:, :, self.friction]], axis=2)
        return W.reshape(-1, W.shape[2])

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torques (N, n), friction included."""
        rigid = [pin.rnea(self.model, self.data, *s) for s in zip(q, dq, ddq, strict=True)]
        values = self.parameters[10 * self.n :]
        return np.array(rigid) + values[0::2] * dq + values[1::2] * np.sign(dq)


def value(criterion: InformationCriterion, W: Array) -> float:
    """Criterion of an observation matrix, in logarithms; large where it is singular."""
    try:
        found, _ = criterion.of_information(W.T @ W)
    except np.linalg.LinAlgError:
        return 50.0
    return float(np.log(found)) if criterion.positive else found / W.shape[1]


class Late(Exception):
    """The baseline's time is over."""


def baseline(
    robot: Robot, limits: MotionLimits, criterion: InformationCriterion, start: LinearTrajectory, seconds: float
) -> LinearTrajectory:
    """SLSQP with finite differences from the same start; the best feasible motion within the time."""
    peer, constraints = Pinocchio(robot), build_constraints(robot, limits)
    times, recorded = start.grid(SAMPLES)
    basis = [start.basis(times, order) for order in range(3)]
    scale = np.maximum(np.abs(start.coefficients), 0.05)
    centre, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    end = time.monotonic() + seconds
    best: tuple[float, LinearTrajectory] = (np.inf, start)

    def motion(x: Array) -> list[Array]:
        return [b @ (x.reshape(scale.shape) * scale) for b in basis]

    def objective(x: Array) -> float:
        if time.monotonic() > end:
            raise Late
        return value(criterion, peer.matrix(*(part[recorded] for part in motion(x))))

    def reserves(x: Array) -> Array:
        q, dq, ddq = motion(x)
        parts = [(q - centre) / half, dq / limits.velocity, ddq / limits.acceleration]
        parts.append(peer.torque(q, dq, ddq) / limits.torque)
        return np.concatenate([1.0 - np.abs(part).max(axis=0) for part in parts])

    def keep(x: Array) -> None:
        nonlocal best
        found = with_feasible_amplitude(start.with_coefficients(x.reshape(scale.shape) * scale), constraints, times)
        if found is not None:
            cost = value(criterion, peer.matrix(*found.evaluate(times[recorded])))
            best = min(best, (cost, found), key=lambda pair: pair[0])

    x = (start.coefficients / scale).ravel()
    keep(x)
    try:
        options = {"maxiter": 10000, "ftol": 1e-9}
        limited = [{"type": "ineq", "fun": reserves}]
        minimize(objective, x, method="SLSQP", constraints=limited, callback=keep, options=options)
    except Late:
        pass
    return best[1]


def design(
    robot: Robot, limits: MotionLimits, criterion: InformationCriterion, seconds: float
) -> tuple[LinearTrajectory, float]:
    """Our design and the time it took [s]."""
    begun = time.monotonic()
    plan = design_excitation(
        robot, limits, period_s=PERIOD_S, harmonics=HARMONICS, criterion=criterion, starts=1, time_limit_s=seconds
    )
    return plan.trajectory, time.monotonic() - begun


def judged(robot: Robot, trajectory: LinearTrajectory) -> dict[str, float]:
    """Both criteria by Pinocchio's regressor at 1000 samples."""
    times, recorded = trajectory.grid(1000)
    W = Pinocchio(robot).matrix(*trajectory.evaluate(times[recorded]))
    return {
        "condition number": CRITERIA["condition number"].value(W),
        "log det": -CRITERIA["log det"].value(W),
    }


def quickest(function: Callable[[], Any], runs: int) -> float:
    """Smallest of several processor times [s]."""
    spent = []
    for _ in range(runs):
        begun = time.thread_time()
        function()
        spent.append(time.thread_time() - begun)
    return min(spent)


def speed_ratio(robot: Robot, limits: MotionLimits) -> tuple[float, float, float]:
    """Value and gradient at 1000 samples: our time, Pinocchio's with forward differences, its regressor calls' [s]."""
    family = FourierTrajectory.still(robot.dof, period_s=PERIOD_S, harmonics=HARMONICS)
    observation = TorqueObservation(with_smooth_friction(robot), base_parameters(robot).columns)
    sizes = (0.5 * (limits.upper - limits.lower), limits.velocity, limits.acceleration)
    problem = DesignProblem(family, observation, (), sizes=sizes, samples=1000)
    x = 0.3 * np.random.default_rng(0).normal(size=problem.size)
    criterion, peer = CRITERIA["condition number"], Pinocchio(robot)
    times, recorded = family.grid(1000)
    states = problem.trajectory(x).evaluate(times[recorded])
    ours = quickest(lambda: problem.objective(x, criterion), 100)
    theirs = quickest(lambda: value(criterion, peer.matrix(*states)), 10)
    calls = quickest(lambda: peer.regressors(*states), 10)
    return ours, theirs * (problem.size + 1), calls * (problem.size + 1)


def report_figaroh() -> None:
    """Say why FIGAROH has no row."""
    missing = [name for name in ("figaroh", "cyipopt") if find_spec(name) is None]
    sys.stdout.write(
        f"FIGAROH: no result; not installed here: {', '.join(missing) or 'nothing'}. Version 1.0.2 itself installs by "
        "pip, but its trajectories are solved by cyipopt, which has no wheel and whose build asks for an installed "
        "IPOPT.\nFloBaRoID: no result; not tried, it needs IPOPT too.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="our time for each design")
    parser.add_argument("--robots", nargs="+", default=["puma560", "ur10", "panda"])
    options = parser.parse_args()
    rows, good = [], True
    for name in options.robots:
        robot = getattr(zoo, name)().with_joint_models(Viscous(), Coulomb())
        limits = MotionLimits.from_robot(robot, acceleration=7.5)
        ours, theirs, calls = speed_ratio(robot, limits)
        good &= theirs > 200 * ours
        sys.stdout.write(
            f"{name}: value and gradient, 1000 samples: {1e3 * ours:.2f} ms; Pinocchio with finite differences "
            f"{1e3 * theirs:.0f} ms: {theirs / ours:.0f} times (its regressor calls alone: {calls / ours:.0f} times)\n"
        )
        sys.stdout.flush()
        start, _ = design(robot, limits, CRITERIA["condition number"], 0.0)
        for goal, criterion in CRITERIA.items():
            best, spent = design(robot, limits, criterion, options.seconds)
            peer = baseline(robot, limits, criterion, start, 10 * spent)
            found = [judged(robot, trajectory) for trajectory in (best, peer)]
            rows.append([name, goal, *(round(f[goal], 3) for f in found), round(spent, 1), round(10 * spent, 1)])
            ratio = found[0][goal] - found[1][goal]
            good &= bool(ratio <= 0 if goal == "condition number" else ratio >= 0)
    header = ["robot", "goal", "dynid", "SciPy + Pinocchio", "dynid, s", "SciPy, s"]
    sys.stdout.write(Table.of(header, rows, digits=4).to_text() + "\n")
    report_figaroh()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
