"""Izaguirre, Hashimoto, Paul, Hayward 1992: equations (2) to (29), evaluated on arms of point masses."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats
from dynid.kernels import gravity_torque, inertia_matrix, link_pose, regressor, velocity_torque
from dynid.parameters.base import base_parameters
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.model import Robot
from dynid.spatial import skew
from papers.equations.point_masses import Cloud, judge, random_cloud
from papers.judgement.reproduction import Part
from papers.judgement.verdicts import Row

_Z = np.array([0.0, 0.0, 1.0])


def formulas(quick: bool = False) -> Part:
    """Evaluate equations on two arms of four joints."""
    return Part(
        title="Equations of the coefficients, evaluated",
        source="equations (2) to (7), (9) to (14), (17) to (19), (21) to (23), (25) to (29)",
        rows=(*_coefficients(), _compound(), _velocity(), _dependencies()),
        assumptions="Every link is eight point masses; positions, axes and velocities are drawn.",
    )


def _arm(rng: np.random.Generator) -> tuple[Robot, list[Cloud], Floats]:
    """An arm whose frames lie on its joint axes, the masses of its links, and a position."""
    rows = [DH(alpha=a, d=d, r=r) for a, d, r in rng.uniform(-1.2, 1.2, (4, 3))]
    clouds = [random_cloud(rng) for _ in rows]
    arm = from_dh(rows, gravity=rng.normal(size=3) * 5.0)
    return arm.with_parameters(np.concatenate([c.vector for c in clouds])), clouds, rng.uniform(-2.0, 2.0, 4)


def _coefficients() -> list[Row]:
    """Inertia and gravity terms by sums over all masses, and by the moments of compound links."""
    rng = np.random.default_rng(34)
    arm, clouds, q = _arm(rng)
    M, G, g = inertia_matrix(arm, q), gravity_torque(arm, q), arm.gravity
    poses = [link_pose(arm, body.joint.child, q) for body in arm.bodies]
    base = [cloud.moved(T[:3, :3], T[:3, 3]) for cloud, T in zip(clouds, poses, strict=True)]
    z, o = [T[:3, 2] for T in poses], [T[:3, 3] for T in poses]
    direct, expanded, closed, frames = (np.zeros((4, 4)) for _ in range(4))
    weights, simple = np.zeros(4), np.zeros(4)
    for j in range(4):
        mass, at = np.concatenate([c.mass for c in base[j:]]), np.concatenate([c.at for c in base[j:]])
        compound = Cloud(mass, at - o[j])
        weights[j] = -mass @ (np.cross(z[j], at - o[j]) @ g)
        own = Cloud(mass, (at - o[j]) @ poses[j][:3, :3])  # in axes of frame j
        R = poses[j][:3, :3]
        simple[j] = -(g @ R) @ np.array([-own.first[1], own.first[0], 0.0])
        for i in range(j + 1):
            p = o[j] - o[i]
            direct[i, j] = direct[j, i] = mass @ np.sum(np.cross(z[i], at - o[i]) * np.cross(z[j], at - o[j]), axis=1)
            first = np.cross(z[i], p) @ np.cross(z[j], compound.at).T
            second = np.sum(np.cross(z[i], compound.at) * np.cross(z[j], compound.at), axis=1)
            expanded[i, j] = expanded[j, i] = mass @ (first + second)
            closed[i, j] = closed[j, i] = (
                np.cross(z[i], p) @ np.cross(z[j], compound.first) + z[i] @ compound.tensor @ z[j]
            )
            T = np.linalg.inv(poses[i]) @ poses[j]
            x, y = T[:2, 3]
            arms = np.array([-own.first[1], own.first[0], 0.0])
            term = _Z @ T[:3, :3] @ own.tensor @ _Z + np.array([-y, x, 0.0]) @ T[:3, :3] @ arms
            frames[i, j] = frames[j, i] = term
    upright = arm.with_gravity([0.0, 0.0, -9.81])
    rows = [poses[j][2, :2] for j in range(4)]
    lever = [
        Cloud(np.concatenate([c.mass for c in base[j:]]), np.concatenate([c.at for c in base[j:]]) - o[j])
        for j in range(4)
    ]
    firsts = [poses[j][:3, :3].T @ lever[j].first for j in range(4)]
    vertical = [9.81 * (rows[j] @ np.array([-firsts[j][1], firsts[j][0]])) for j in range(4)]
    return [
        judge("(2), (3): inertia terms of point masses", "(z_i x r_i) . (z_j x r_j)", (direct, M)),
        judge("(6), (7), (9): by moments of the compound link", "L_j and I_j", (expanded, M), (closed, M)),
        judge("(10)-(12): by transformations of frames", "rows of R and p", (frames, M)),
        judge(
            "(4), (5), (13), (14): gravity terms",
            "-(z_i x r_i) . g",
            (weights, G),
            (simple, G),
            (vertical, gravity_torque(upright, q)),
        ),
    ]


def _compound() -> Row:
    """The tensor of a compound link from that of the next one."""
    rng = np.random.default_rng(35)
    link, beyond, p = random_cloud(rng), random_cloud(rng), rng.normal(size=3)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R = R * np.linalg.det(R)
    both = Cloud(np.concatenate([link.mass, beyond.mass]), np.concatenate([link.at, beyond.at]))
    near = both.moved(R, R @ p)  # about the origin of frame j, in its axes
    p_j, L = skew(R @ p), skew(near.first)
    printed = R @ (link.tensor + beyond.tensor + both.total * skew(p) @ skew(p)) @ R.T - p_j @ L - L @ p_j
    return judge("(17): tensor of the compound link", "recursion", (printed, near.tensor))


def _velocity() -> Row:
    """Velocity torques by (18) to (24), with (20) and (24) corrected, in frames at the far end of each link."""
    rng = np.random.default_rng(36)
    table = [StandardDH(alpha=twist, a=length, d=d) for twist, length, d in rng.uniform(-1.2, 1.2, (4, 3))]
    arm = from_dh(table, convention="standard")
    clouds = [random_cloud(rng) for _ in table]
    places = [dict(body.members)[f"link{j + 1}"] for j, body in enumerate(arm.bodies)]
    near = [cloud.moved(T[:3, :3], T[:3, 3]) for cloud, T in zip(clouds, places, strict=True)]
    arm = arm.with_parameters(np.concatenate([cloud.vector for cloud in near]))
    q, dq = rng.uniform(-2.0, 2.0, (2, 4))
    far = [link_pose(arm, f"link{j + 1}", q) for j in range(4)]
    steps = [np.linalg.inv(before) @ after for before, after in zip([np.eye(4), *far[:-1]], far, strict=True)]
    w = dw = dv = np.zeros(3)
    motion = []
    for step, rate in zip(steps, dq, strict=True):
        R, p = step[:3, :3], step[:3, :3].T @ step[:3, 3]
        w, dw = R.T @ (w + rate * _Z), R.T @ (dw + np.cross(w, rate * _Z))  # (18), (19)
        U = skew(dw) + skew(w) @ skew(w)
        dv = R.T @ dv + U @ p  # (20)
        motion.append((w, dw, dv, U))
    f = n = np.zeros(3)
    torque = np.zeros(4)
    for i in reversed(range(4)):
        (w, dw, dv, U), cloud, step = motion[i], clouds[i], steps[i]
        force = cloud.total * dv + U @ cloud.first  # (21)
        moment = cloud.tensor @ dw + np.cross(w, cloud.tensor @ w)  # (22)
        f = step[:3, :3] @ (f + force)  # (23)
        n = step[:3, :3] @ (n + moment + np.cross(cloud.first, dv)) + np.cross(step[:3, 3], f)  # (24)
        torque[i] = n[2]
    return judge(
        "(18)-(24): velocity torques by the recursion",
        "recursion",
        (torque, velocity_torque(arm, q, dq)),
        reading="with (20) and (24) corrected",
    )


def _dependencies() -> Row:
    """Torques with the dependent parameters dropped and the others modified."""
    rng = np.random.default_rng(37)
    arm, clouds, _ = _arm(rng)
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, 50, 4))
    Y = regressor(arm, q, dq, ddq).reshape(200, -1)
    base, theta = base_parameters(arm, "numeric"), np.concatenate([cloud.vector for cloud in clouds])
    kept = Y[:, list(base.columns)]
    return judge(
        "(25)-(29): dropping dependent parameters and modifying the others keeps the torques",
        "same torques",
        (kept @ base.project(theta), Y @ theta),
        (kept @ base.grouping, Y),
    )
