"""Lin 1995: equations (4) to (29), evaluated: composite bodies, the usual recursion, the moment of a rotating body."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats
from dynid.kernels import inverse_dynamics, link_pose, regressor
from dynid.parameters.base import base_parameters
from dynid.parameters.base_set import conversion_matrix
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.spatial import skew
from papers.equations.point_masses import EXACT, Cloud, judge, random_cloud
from papers.judgement.reproduction import Part
from papers.judgement.verdicts import Row, compare_claim

_SLIDES = (False, True, False, False, True)
"""Which joints of the arm slide."""
_STEP = 2e-3
"""Step of difference quotients in time [s] and position: the error, of eighth order, is then about that of rounding."""
_DIFFERENCES = 1e-7
"""Largest relative error of second differences with this step."""
_SECOND = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
_FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])


def formulas(quick: bool = False) -> Part:
    """Evaluate equations on an arm with two sliding joints whose links are point masses."""
    rng = np.random.default_rng(40)
    rows = [
        DH(alpha=a, d=d, theta=t, r=r, sigma=int(s))
        for (a, d, t, r), s in zip(rng.uniform(-1, 1, (5, 4)), _SLIDES, strict=True)
    ]
    clouds = [random_cloud(rng) for _ in rows]
    arm = from_dh(rows, gravity=rng.normal(size=3) * 5.0)
    arm = arm.with_parameters(np.concatenate([cloud.vector for cloud in clouds]))
    return Part(
        title="Equations of sections II to IV, evaluated",
        source="equations (4) to (29), (94) to (117), (A1)",
        rows=(*_composites(arm, rows, clouds, rng), _torques(arm, clouds, rng), *_rotation(rng), *_identification()),
        assumptions="The scan of (10) to (15) is damaged; corrected forms are evaluated. Links are eight point masses "
        "each; the right side is the sum over the masses.",
    )


def _poses(arm: Robot, q: Floats) -> list[Floats]:
    return [link_pose(arm, body.joint.child, q) for body in arm.bodies]


def _frame(row: DH, position: float) -> tuple[Floats, Floats]:
    """Rotation by (5), and distance by (4), of a frame from the frame before it."""
    theta, r = (row.theta, row.r + position) if row.sigma else (row.theta + position, row.r)
    c, s, C, S = np.cos(theta), np.sin(theta), np.cos(row.alpha), np.sin(row.alpha)
    return np.array([[c, -s, 0.0], [C * s, C * c, -S], [S * s, S * c, C]]), np.array([row.d, -r * S, r * C])


def _composites(arm: Robot, rows: list[DH], clouds: list[Cloud], rng: np.random.Generator) -> list[Row]:
    """Constant and varying parts of the moments of composite bodies, at two positions."""
    frames, moments, constants = [], [], []
    for q in rng.uniform(-1.0, 1.0, (2, 5)):
        poses = _poses(arm, q)
        relative = [
            np.linalg.inv(before) @ after for before, after in zip([np.eye(4), *poses[:-1]], poses, strict=True)
        ]
        steps = [_frame(row, position) for row, position in zip(rows, q, strict=True)]
        frames += [(R, T[:3, :3]) for (R, _), T in zip(steps, relative, strict=True)]
        frames += [(s, T[:3, 3]) for (_, s), T in zip(steps, relative, strict=True)]
        parts = _parts(rows, clouds, steps, q)
        for i, (k, varying, U, V) in parts.items():
            inner = [
                cloud.moved(*_split(np.linalg.inv(poses[i]) @ poses[j])) for j, cloud in enumerate(clouds) if j >= i
            ]
            whole = Cloud(np.concatenate([c.mass for c in inner]), np.concatenate([c.at for c in inner]))
            moments += [(k + varying, whole.first), (U + V, whole.tensor)]
        constants.append(np.concatenate([np.concatenate([k, U.ravel()]) for k, _, U, _ in parts.values()]))
    return [
        judge("(4), (5): distance and rotation between frames", "driving-axis frames", *frames),
        judge(
            "(6)-(15): moments of composite bodies, constant and varying parts",
            "k + l, U + V",
            *moments,
            reading="(10) to (15) are read from a damaged scan and derived again",
        ),
        judge("(10), (12), (14): k and U do not depend on the position", "constants", (constants[0], constants[1])),
    ]


def _split(T: Floats) -> tuple[Floats, Floats]:
    return T[:3, :3], T[:3, 3]


def _parts(
    rows: list[DH], clouds: list[Cloud], steps: list[tuple[Floats, Floats]], q: Floats
) -> dict[int, tuple[Floats, Floats, Floats, Floats]]:
    """k, l, U, V of every composite body, from the last to the first."""
    last = len(rows) - 1
    found = {last: (clouds[last].first, np.zeros(3), clouds[last].tensor, np.zeros((3, 3)))}
    mass = clouds[last].total
    for i in reversed(range(last)):
        (k, varying, U, V), (R, s), own, row = found[i + 1], steps[i + 1], clouds[i], rows[i + 1]
        if not row.sigma:
            arm, kernel = R[:, 2] * k[2], np.diag([U[1, 1], U[1, 1], U[2, 2]])
            turned = R @ (varying + np.array([k[0], k[1], 0.0]))
            new_V = R @ (V + U - kernel) @ R.T - skew(s) @ skew(turned) - skew(turned) @ skew(s)
        else:
            s = np.array([row.d, 0.0, 0.0])
            arm, kernel = R @ k, U
            b, slide = skew(R.T @ s), skew(np.array([0.0, 0.0, row.r + q[i + 1]]))
            turned = R @ (varying + mass * np.array([0.0, 0.0, row.r + q[i + 1]]))
            both, one = skew(k + varying), skew(varying)
            inside = V - mass * (slide @ slide + slide @ b + b @ slide) - slide @ both - both @ slide
            new_V = R @ (inside - b @ one - one @ b) @ R.T
        shift = -mass * skew(s) @ skew(s) - skew(s) @ skew(arm) - skew(arm) @ skew(s)
        found[i] = (own.first + arm + mass * s, turned, own.tensor + R @ kernel @ R.T + shift, new_V)
        mass += own.total
    return found


def _torques(arm: Robot, clouds: list[Cloud], rng: np.random.Generator) -> Row:
    """Torques by the recursion, and by the virtual work of all point masses, whose motion is differentiated."""
    q0, dq, ddq = rng.uniform(-1.0, 1.0, (3, 5))
    t = _STEP * np.arange(-4, 5)
    course = q0 + np.outer(t, dq) + np.outer(t**2 / 2, ddq)

    def places(q: Floats) -> Floats:
        moved = [cloud.moved(*_split(T)).at for cloud, T in zip(clouds, _poses(arm, q), strict=True)]
        return np.concatenate(moved)

    acceleration = np.einsum("t,tpa->pa", _SECOND, np.array([places(q) for q in course])) / _STEP**2
    force = np.concatenate([cloud.mass for cloud in clouds])[:, None] * (acceleration - arm.gravity)
    slopes = [
        np.einsum("t,tpa->pa", _FIRST, np.array([places(q0 + h * unit) for h in t])) / _STEP for unit in np.eye(5)
    ]
    work = [float(np.sum(force * slope)) for slope in slopes]
    return judge(
        "(16)-(25): torques by the usual recursion",
        "Newton, Euler",
        (inverse_dynamics(arm, q0, dq, ddq), work),
        within=_DIFFERENCES,
    )


def _rotation(rng: np.random.Generator) -> list[Row]:
    """The moment of a rotating body as a matrix times six moments; two identities of the appendix."""
    body, (w, dw, a, b) = random_cloud(rng), rng.normal(size=(4, 3))
    x, y, z = w
    ax, ay, az = dw
    matrix = np.array(
        [
            [ax, -y * z, y * z, ay - x * z, az + x * y, y * y - z * z],
            [x * z, ay, -x * z, ax + y * z, z * z - x * x, az - x * y],
            [-x * y, x * y, az, x * x - y * y, ax - y * z, ay + x * z],
        ]
    )

    def six(J: Floats) -> Floats:
        return np.array([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])

    spin = skew(dw) + skew(w) @ skew(w)
    A = -skew(a) @ skew(b) - skew(b) @ skew(a)
    J = body.tensor
    left = np.cross(a, np.cross(w, np.cross(w, b))) + np.cross(b, np.cross(w, np.cross(w, a)))
    right = -np.cross(w, np.cross(a, np.cross(b, w)) + np.cross(b, np.cross(a, w)))
    return [
        judge(
            "(26)-(28): moment of a rotating body, linear in six moments",
            "Psi psi(J)",
            (matrix @ six(J), J @ dw + np.cross(w, J @ w)),
        ),
        judge(
            "(29): two levers and the spin matrix",
            "Psi psi(A)",
            (np.cross(a, spin @ b) + np.cross(b, spin @ a), matrix @ six(A)),
        ),
        judge("(A1): identity of double products", "-w x (...)", (left, right)),
    ]


def _identification() -> list[Row]:
    """The equations of each joint in the members of S, and persistent excitation, on the Stanford arm."""
    arm, rng = zoo.stanford().with_terms(), np.random.default_rng(41)
    lin, other = base_parameters(arm, "minimal-combinations"), base_parameters(arm, "closed-form")
    q, dq, ddq = rng.uniform(-1.0, 1.0, (3, 60, 6))
    Y = regressor(arm, q, dq, ddq)
    A = Y[:, :, list(other.columns)] @ conversion_matrix(lin, other)  # (60, 6, 33) in the members of S
    theta = rng.normal(size=Y.shape[-1])
    joints = np.array([int(name[-1]) for name in lin.names]) - 1
    nearer = [A[:, i, joints < i] for i in range(6)]
    own = [A[:, i, joints == i] for i in range(6)]
    least = [float(np.linalg.eigvalsh(block.T @ block)[0]) for block in own]
    still = [abs(float(np.linalg.eigvalsh(block[:1].T @ block[:1])[0])) for block in own if block.shape[1] > 1]
    return [
        judge(
            "(94), (100), (106): the torque of joint i is linear in the members of bodies i to n",
            "v w + what lies beyond",
            (A @ lin.project(theta), Y @ theta),
            *((block, np.zeros_like(block)) for block in nearer if block.size),
        ),
        compare_claim(
            "(111), (117): the excitation matrix of each link has full rank for arbitrary samples",
            "M_i positive definite",
            f"smallest eigenvalue of M_i at least {min(least):.2g} with 60 samples, at most {max(still):.0e} with one",
            min(least) > 1e-3 and max(still) < EXACT,
        ),
    ]
