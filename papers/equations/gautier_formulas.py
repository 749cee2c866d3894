"""Gautier, Khalil 1990 and 1992: equations of the energy, of regrouping, of criteria and of segments, evaluated."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.integrate import simpson

from dynid.arrays import Floats
from dynid.excitation.criteria import ConditionNumber, Equilibrium, FrobeniusCondition, WeightedCost
from dynid.excitation.points.energy_points import EnergyPoints
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.kernels import energy_regressor, gravity_torque, inertia_matrix, inverse_dynamics, regressor
from dynid.parameters.base import base_parameters
from dynid.parameters.inertia_maps import transport
from dynid.processing.simulation import sum_of_sines
from dynid.robot import zoo
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from papers.equations.point_masses import judge, random_cloud, random_rotation
from papers.judgement.reproduction import Part
from papers.judgement.verdicts import Row, compare_exactly

_NUMBERS_OF_VARIABLES = {15: 80, 30: 155}
"""Variables of the 3-R robot by the number of equations, printed in sections 4.3 and 6.2 of the paper of 1992."""

_STEP = 1e-3
"""Step of difference quotients [rad or s]: their error, of fourth order, is then about that of rounding."""
_DIFFERENCES = 1e-8
"""Largest relative error of difference quotients with this step."""


def formulas_1990(quick: bool = False) -> Part:
    """Evaluate the equations of sections III and IV on the PUMA 560."""
    rng = np.random.default_rng(38)
    arm = zoo.puma560()
    theta = np.concatenate([random_cloud(rng).vector for _ in range(6)])
    arm = arm.with_terms().with_parameters(theta)
    q, dq = rng.uniform(-2.0, 2.0, (2, 40, 6))
    h, rest = energy_regressor(arm, q, dq), energy_regressor(arm, q, 0 * dq)
    kinetic = 0.5 * np.einsum("ki,kij,kj->k", dq, inertia_matrix(arm, q), dq)
    slopes = np.stack([_slope(arm, theta, q, j) for j in range(6)], axis=1)
    return Part(
        title="Equations of sections III and IV, evaluated",
        source="equations (1) to (8), (17)",
        rows=(
            judge(
                "(1), (2), (7): kinetic energy, linear in ten parameters per link",
                "sum of DE_i X_i",
                ((h - rest) @ theta, kinetic),
            ),
            judge(
                "(3), (8): potential energy, whose slope is the gravity torque",
                "sum of DU_i X_i",
                (slopes, gravity_torque(arm, q)),
                within=_DIFFERENCES,
            ),
            *_regrouping(rng),
            _tensor(rng),
        ),
        assumptions="A PUMA 560 whose links are eight point masses each.",
    )


def _slope(arm: Robot, theta: Floats, q: Floats, joint: int) -> Floats:
    """Derivative of the energy at rest with respect to one joint's position, by differences of fourth order."""
    shift = _STEP * np.eye(arm.dof)[joint]
    U = [energy_regressor(arm, q + k * shift, 0 * q) @ theta for k in (-2, -1, 1, 2)]
    return np.asarray((U[0] - 8 * U[1] + 8 * U[2] - U[3]) / (12 * _STEP))


def _regrouping(rng: np.random.Generator) -> list[Row]:
    arm = zoo.puma560().with_terms()
    base = base_parameters(arm, "closed-form")
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, 40, 6))
    h, Y = energy_regressor(arm, q, dq), regressor(arm, q, dq, ddq).reshape(240, -1)
    moving = h - h[:1]  # W_i of (3) is a constant and has no effect
    silent = [base.layout.index(name) for name in base.unidentifiable]
    theta = rng.normal(size=60)
    reduced = np.zeros(60)
    reduced[list(base.columns)] = base.project(theta)
    return [
        judge(
            "(4): parameters whose derivatives of the energy are zero have no effect",
            "DE = 0 and dU = 0",
            (np.abs(moving[:, silent]).max(), 0.0),
            (np.abs(Y[:, silent]).max(), 0.0),
        ),
        judge(
            "(5), (6): regrouped parameters keep energy and torques",
            "X_i = 0 and XR = X + alpha X_i",
            (moving @ reduced, moving @ theta),
            (Y @ reduced, Y @ theta),
        ),
    ]


def _tensor(rng: np.random.Generator) -> Row:
    body, R = random_cloud(rng), random_rotation(rng)
    tensor_only = Inertia(mass=0.0, first_moment=np.zeros(3), about_origin=body.tensor).vector
    moved = transport(R, np.zeros(3)) @ tensor_only
    truth = Inertia(mass=0.0, first_moment=np.zeros(3), about_origin=body.moved(R, np.zeros(3)).tensor).vector
    return judge("(17): tensor of a sliding link in the frame before it", "A J A^T", (moved, truth))


def formulas_1992(quick: bool = False) -> Part:
    """Evaluate the equations of sections 2 to 5 on the robot with three joints."""
    rng = np.random.default_rng(39)
    W = rng.normal(size=(20, 15))
    sigma = np.linalg.svd(W, compute_uv=False)
    U, s, V = np.linalg.svd(W)
    S = np.zeros((20, 15))
    S[:15] = np.diag(s)
    condition, equilibrium = sigma[0] / sigma[-1], np.abs(W).max() / np.abs(W).min()
    A = W.T @ W
    frobenius = np.sqrt(np.sum(A**2)) * np.sqrt(np.sum(np.linalg.inv(A) ** 2))
    cost = WeightedCost(((2.0, ConditionNumber()), (0.5, Equilibrium())))
    return Part(
        title="Equations of sections 2 to 5, evaluated",
        source="equations (1) to (10), (14), (16) to (19), (21) to (27), (29)",
        rows=(
            _work(),
            judge(
                "(14), (16), (17): condition number",
                "largest over smallest singular value",
                (np.linalg.norm(W, 2) * np.linalg.norm(np.linalg.pinv(W), 2), condition),
                (ConditionNumber().value(W), condition),
                (U.T @ W, S @ V),
            ),
            judge(
                "(18), (19), (21), (22): criteria",
                "lambda1 Cond + lambda2 S, S, Frobenius norms",
                (cost.value(W), 2.0 * condition + 0.5 * equilibrium),
                (Equilibrium().value(W), equilibrium),
                (FrobeniusCondition().value(W), frobenius),
            ),
            *_variables(),
            _segments(rng),
        ),
    )


def _work() -> Row:
    """Work of the torques along a motion, and the change of the energy."""
    robot = zoo.gautier_khalil_3r()
    time = np.linspace(0.0, 2.0, 4001)
    q, dq, ddq = sum_of_sines(3, period_s=4.0, amplitude=0.8, seed=1)(time)
    power = np.sum(inverse_dynamics(robot, q, dq, ddq) * dq, axis=1)
    h = energy_regressor(robot, q, dq)
    base = base_parameters(robot)
    X = base.project(robot.parameter_vector)
    ends = (0, 1000, 2600, 4000)
    work = [simpson(power[a : b + 1], x=time[a : b + 1]) for a, b in pairwise(ends)]
    rows = [(h[b] - h[a])[list(base.columns)] for a, b in pairwise(ends)]
    return judge(
        "(1)-(10): work of the torques between two samples", "difference of h, times X", (np.array(rows) @ X, work)
    )


def _variables() -> list[Row]:
    """Count the variables of the search; the first axis is vertical, so that its position has no effect."""
    points = EnergyPoints(zoo.gautier_khalil_3r(), lower=-1.0, upper=1.0, velocity=1.0)
    rng = np.random.default_rng(0)
    found = {}
    for r in _NUMBERS_OF_VARIABLES:
        sequence = points.random(r, rng)
        x = points.variables(sequence.q, sequence.dq)
        q = sequence.q.copy()
        q[:, 0] += 0.3
        without = int(np.allclose(points.matrix(q, sequence.dq), sequence.W, atol=1e-12)) * (r + 1)
        found[r] = x.size - without
    return [
        compare_exactly(f"(23): number of variables for {r} equations", n, found[r])
        for r, n in _NUMBERS_OF_VARIABLES.items()
    ]


def _segments(rng: np.random.Generator) -> Row:
    """Ends of segments, derivatives along them, and their peaks within the limits."""
    q, dq = rng.uniform(-1.0, 1.0, (2, 4, 3))
    path = QuinticTrajectory(q=q, dq=dq, durations=np.array([0.7, 1.1, 0.9]))
    ends = np.array([0.0, 0.7, 1.8, 2.7])
    at, speed, acceleration = path.evaluate(ends)
    t = np.linspace(0.1, 0.6, 7)
    around = [path.evaluate(t + k * _STEP) for k in (-2, -1, 1, 2)]
    slopes = [(x[0] - 8 * x[1] + 8 * x[2] - x[3]) / (12 * _STEP) for x in zip(*around, strict=True)]
    inside = path.evaluate(t)
    return judge(
        "(24)-(27): ends and derivatives of segments",
        "q, q' given and q'' = 0 at both ends",
        (at, q),
        (speed, dq),
        (acceleration, np.zeros((4, 3))),
        (inside[1], slopes[0]),
        (inside[2], slopes[1]),
        within=_DIFFERENCES,
    )
