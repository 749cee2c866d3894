"""Atkeson, An, Hollerbach 1986: equations (1) to (20) and Appendix II, evaluated."""

from __future__ import annotations

import numpy as np
from scipy.integrate import simpson
from scipy.spatial.transform import Rotation

from dynid.arrays import Floats
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.ridge import Ridge
from dynid.kernels import inverse_dynamics, regressor
from dynid.processing.experiment import Experiment
from dynid.robot import zoo
from dynid.spatial import skew
from papers.equations.point_masses import Cloud, judge, random_cloud, random_rotation
from papers.judgement.reproduction import Part
from papers.judgement.verdicts import Row, compare_claim


def _dot(w: Floats) -> Floats:
    """The matrix [.w] of the paper: ``I w`` for the six moments Ixx Ixy Ixz Iyy Iyz Izz."""
    x, y, z = w
    return np.array([[x, y, z, 0, 0, 0], [0, x, 0, y, z, 0], [0, 0, x, 0, y, z]])


def _matrix(w: Floats, dw: Floats, a: Floats) -> Floats:
    """A_i of (8) for the parameters m, mc, Ixx ... Izz; a is the origin's acceleration less gravity."""
    A = np.zeros((6, 10))
    A[:3, 0] = a
    A[:3, 1:4] = skew(dw) + skew(w) @ skew(w)
    A[3:, 1:4] = skew(-a)
    A[3:, 4:] = _dot(dw) + skew(w) @ _dot(w)
    return A


def _parameters(body: Cloud) -> Floats:
    """The ten parameters in the paper's order."""
    return np.concatenate([[body.total], body.first, body.tensor[np.triu_indices(3)]])


def formulas(quick: bool = False) -> Part:
    """Evaluate equations on point masses in motion."""
    return Part(
        title="Equations, evaluated",
        source="equations (1) to (20), (A1) to (A7)",
        rows=(*_one_body(), *_chain(), *_estimates(), *_integrals()),
        assumptions="Bodies are eight point masses each; the right side is the sum over the masses.",
    )


def _one_body() -> list[Row]:
    rng = np.random.default_rng(31)
    body, (w, dw, ddp, g) = random_cloud(rng), rng.normal(size=(4, 3))
    c, m = body.first / body.total, body.total
    at_centre = Cloud(body.mass, body.at - c)
    ddq = ddp + np.cross(dw, c) + np.cross(w, np.cross(w, c))
    force, moment = body.wrench(w, dw, ddp - g)
    own_force, own_moment = at_centre.wrench(w, dw, ddq)
    q_I, p_I, mc = at_centre.tensor, body.tensor, body.first
    shift = (c @ c) * np.eye(3) - np.outer(c, c)
    f4 = m * (ddp - g) + np.cross(dw, mc) + np.cross(w, np.cross(w, mc))
    n5 = np.cross(g - ddp, mc) + q_I @ dw + m * np.cross(c, np.cross(dw, c)) + np.cross(w, q_I @ w)
    n5 = n5 + m * np.cross(c, np.cross(w, np.cross(w, c)))
    n7 = np.cross(g - ddp, mc) + p_I @ dw + np.cross(w, p_I @ w)
    return [
        judge(
            "(1)-(3): motion of the centre of mass and about it",
            "Newton, Euler",
            (m * ddq, own_force),
            (q_I @ dw + np.cross(w, q_I @ w), own_moment),
            _centre(rng),
        ),
        judge(
            "(4)-(8): wrench at the joint, linear in ten parameters",
            "A phi",
            (f4, force),
            (n5, moment),
            (q_I + m * shift, p_I),
            (n7, moment),
            (_matrix(w, dw, ddp - g) @ _parameters(body), [*force, *moment]),
        ),
    ]


def _centre(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Acceleration of a body's point by (3), and by differences of its place; both in fixed axes."""
    c, axis, p1, p2 = rng.normal(size=(4, 3))
    step = 1e-3
    t = step * np.arange(-4, 5)
    angle = 0.7 * t + 0.4 * t**2  # the body turns about a fixed axis
    unit = axis / np.linalg.norm(axis)
    places = p1 * t[:, None] + p2 * t[:, None] ** 2 / 2 + Rotation.from_rotvec(angle[:, None] * unit).apply(c)
    stencil = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
    w, dw = 0.7 * unit, 0.8 * unit
    return p2 + np.cross(dw, c) + np.cross(w, np.cross(w, c)), stencil @ places / step**2


def _chain() -> list[Row]:
    """Three links: wrenches are carried to joint 1 by (12) to (16), and summed directly."""
    rng = np.random.default_rng(32)
    bodies = [random_cloud(rng) for _ in range(3)]
    steps = [(random_rotation(rng), rng.normal(size=3)) for _ in range(2)]  # frame i + 1 in frame i
    w, dw, a = rng.normal(size=(3, 3))
    motion = [(w, dw, a)]
    for R, s in steps:  # the joints rest, so that the links move as one body
        w, dw, a = motion[-1]
        motion.append((R.T @ w, R.T @ dw, R.T @ (a + np.cross(dw, s) + np.cross(w, np.cross(w, s)))))
    wrenches = [np.concatenate(body.wrench(*move)) for body, move in zip(bodies, motion, strict=True)]
    T = [np.block([[R, np.zeros((3, 3))], [skew(s) @ R, R]]) for R, s in steps]
    second = bodies[1].moved(*steps[0])
    direct = np.concatenate(second.wrench(*motion[0]))
    third = bodies[2].moved(*steps[1]).moved(*steps[0])
    total = sum(np.concatenate(body.wrench(*motion[0])) for body in (bodies[0], second, third))
    A = [_matrix(*move) @ _parameters(body) for body, move in zip(bodies, motion, strict=True)]
    stacked = A[0] + T[0] @ A[1] + T[0] @ T[1] @ A[2]
    summed = wrenches[0] + T[0] @ (wrenches[1] + T[1] @ wrenches[2])
    return [
        judge(
            "(12)-(16): wrenches carried from link to link",
            "sum over the links beyond a joint",
            (T[0] @ wrenches[1], direct),
            (summed, total),
            (stacked, total),
            reading="with A_j in (15), where the scan has A_i",
        )
    ]


def _estimates() -> list[Row]:
    """Least squares of a load, and of links that are not all identifiable."""
    rng = np.random.default_rng(33)
    body = random_cloud(rng)
    motions = rng.normal(size=(4, 3, 3))
    A = np.concatenate([_matrix(*move) for move in motions])
    w = np.concatenate([np.concatenate(body.wrench(*move)) for move in motions])
    arm = zoo.ddarm(parameters="estimated")
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, 60, 3))
    effort = inverse_dynamics(arm, q, dq, ddq)
    valid, segment = np.ones(q.shape, dtype=bool), np.zeros(60, dtype=np.int64)
    run = Experiment(
        time=np.arange(60.0), q=q, dq=dq, ddq=ddq, effort=effort, valid=valid, segment=segment, rate_hz=1.0
    )
    K, tau = regressor(arm, q, dq, ddq).reshape(180, 30), effort.reshape(180)
    ridge = np.linalg.solve(K.T @ K + 10.0 * np.eye(30), K.T @ tau)
    rank = int(np.linalg.matrix_rank(K.T @ K, tol=1e-9 * np.linalg.norm(K.T @ K)))
    return [
        judge("(9): load by least squares", "(A^T A)^-1 A^T w", (np.linalg.solve(A.T @ A, A.T @ w), _parameters(body))),
        compare_claim(
            "(18), (19): K^T K of the links is not invertible",
            "not invertible",
            f"rank {rank} of 30",
            rank < 30,
        ),
        judge(
            "(20): ridge regression",
            "(K^T K + d 1)^-1 K^T tau",
            (Ridge(d=10.0).parameters(build_equations(arm, [run])), ridge),
        ),
    ]


def _integrals() -> list[Row]:
    """Integrals along a motion that turns about two axes; R turns fixed axes into those of the body."""
    t = np.linspace(0.0, 1.0, 4001)
    a, b, da, db = np.sin(2 * t), np.cos(3 * t), 2 * np.cos(2 * t), -3 * np.sin(3 * t)
    dda, ddb = -4 * np.sin(2 * t), -9 * np.cos(3 * t)
    w = np.stack([db, da * np.sin(b), da * np.cos(b)], axis=1)  # Rz(a) Rx(b), in its own axes
    dw = np.stack([ddb, dda * np.sin(b) + da * db * np.cos(b), dda * np.cos(b) - da * db * np.sin(b)], axis=1)
    turn = Rotation.from_euler("ZX", np.stack([a, b], axis=1)).inv()
    R = turn.as_matrix()
    rates = np.array([1.0, 2.0, 3.0])
    v, acceleration = rates * np.cos(np.outer(t, rates)), -(rates**2) * np.sin(np.outer(t, rates))
    fixed_w = turn.inv().apply(w)
    body_v, g = turn.apply(v), np.array([0.3, -0.2, -9.8])
    derivative = np.gradient(body_v, t, axis=0, edge_order=2)
    middle = slice(2, -2)
    A1 = derivative + turn.apply(np.cross(fixed_w, v))
    change = w[-1] - w[0]
    return [
        compare_claim(
            "(A1): derivative in turning axes",
            "R d/dt v = d/dt (R v) + R (w x v)",
            f"largest error {np.abs(A1 - turn.apply(acceleration))[middle].max():.0e} with differences of 0.25 ms",
            bool(np.abs(A1 - turn.apply(acceleration))[middle].max() < 1e-4),
        ),
        judge(
            "(A2), (A4)-(A7): integrals",
            "values between the ends, and integrals of products",
            (
                body_v[-1] - body_v[0] + simpson(turn.apply(np.cross(fixed_w, v)), x=t, axis=0),
                simpson(turn.apply(acceleration), x=t, axis=0),
            ),
            (change, simpson(dw, x=t, axis=0)),
            (simpson(R, x=t, axis=0) @ g, simpson(turn.apply(g), x=t, axis=0)),
            (skew(change), simpson([skew(x) for x in dw], x=t, axis=0)),
            (_dot(change), simpson([_dot(x) for x in dw], x=t, axis=0)),
        ),
    ]
