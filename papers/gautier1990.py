"""Gautier, Khalil 1990: the PUMA 560 step by step, the printed relations, the bound (18), prismatic joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dynid import DH, Robot, base_parameters, from_dh, robots
from dynid.array_types import Floats
from dynid.dynamics.inertia_maps import transport
from dynid.identifiability import conversion_matrix
from dynid.identifiability.base import Method
from dynid.identifiability.layout import INERTIAL_SYMBOLS
from dynid.tables import Table
from papers.formulas import Monomials, evaluate
from papers.random_robots import random_robot
from papers.report import Part
from papers.verdicts import Row, count_right, derive, read_printed, row

TITLE = "Gautier, Khalil 1990: direct calculation of the minimum set of inertial parameters"
_METHODS: tuple[Method, ...] = ("closed-form", "minimal-combinations", "structural", "numeric")
_PUMA = {"D3": 0.4318, "R3": 0.1501, "D4": 0.0203, "R4": 0.4331}


def _pose(alpha: float, d: float, theta: float, r: float) -> tuple[Floats, Floats]:
    """Rotation and origin of frame j in frame j - 1."""
    T = DH(alpha=alpha, d=d, theta=theta, r=r).T_previous_joint
    return T[:3, :3], T[:3, 3]


def count_bound(robot: Robot) -> int:
    """Largest number of base parameters of the links that a serial robot can have, eq. (18)."""
    prismatic = sum(body.is_prismatic for body in robot.bodies)
    return 7 * (robot.dof - prismatic) + 4 * prismatic - 3 - (not robot.bodies[0].is_prismatic)


def puma560(quick: bool = False) -> Part:
    """Check every relation of every step of section V."""
    data = read_printed("gautier1990")["puma560"]
    robot = robots.puma560()
    base = base_parameters(robot, "closed-form")
    agree = [base_parameters(robot, method) for method in _METHODS]
    same = all(np.allclose(conversion_matrix(o, base) @ o.grouping, base.grouping, atol=1e-9) for o in agree)
    rows = [
        row(
            "step a: parameters of link 1 without effect",
            " ".join(data["no_effect_step_a"]),
            " ".join(n for n in base.unidentifiable if n.endswith("1")),
            [n for n in base.unidentifiable if n.endswith("1")] == data["no_effect_step_a"],
        ),
        *_steps(data["links"]),
        row("all parameters without effect", data["no_effect"], base.unidentifiable),
        row("eliminated by regrouping", data["regrouped"], _list_regrouped(base.names, base.unidentifiable)),
        row("minimum parameters", data["minimum"].split(), list(base.names)),
        row("eliminated parameters", data["eliminated"], len(base.layout) - base.rank),
        row("remaining parameters", data["left"], base.rank),
        row(
            "the sets by the geometry, by the structure and by the rank of the regressor span one space",
            "closed form",
            f"so does Lin's set, which has other members: {', '.join(_METHODS)}",
            same,
        ),
    ]
    table = Table.of(("parameter", "combination"), [tuple(e.split(" = ", 1)) for e in base.expressions if " = " in e])
    return Part(
        title="The PUMA 560, step by step",
        source=data["source"],
        rows=tuple(rows),
        tables={"The final set, from the geometry alone": table},
    )


def _list_regrouped(names: tuple[str, ...], gone: list[str]) -> list[str]:
    kept = {name.replace("R", "", 1) if "R" in name else name for name in names}
    every = [f"{symbol}{j}" for j in range(2, 7) for symbol in INERTIAL_SYMBOLS]
    return [name for name in every if name not in kept and name not in gone]


def _steps(links: Mapping[str, Mapping[str, str]]) -> list[Row]:
    """Move the parameters that a joint cannot separate to the link before it; check the printed relations."""
    rng = np.random.default_rng(0)
    names = [f"{symbol}{j}" for j in range(1, 7) for symbol in INERTIAL_SYMBOLS]
    start = rng.normal(size=(6, 10))
    known = dict(zip(names, start.ravel(), strict=True)) | _PUMA
    angles = rng.uniform(-3, 3, 6)
    table = [(0, 0, 0), (-90, 0, 0), (0, "D3", "R3"), (-90, "D4", "R4"), (90, 0, 0), (-90, 0, 0)]
    values, rows = start.copy(), []
    for j in range(6, 1, -1):
        alpha, d, r = table[j - 1]
        pose = _pose(np.deg2rad(float(alpha)), _PUMA.get(str(d), 0.0), angles[j - 1], _PUMA.get(str(r), 0.0))
        moved = np.zeros(10)
        moved[[0, 3, 8, 9]] = values[j - 1][[3, 3, 8, 9]]  # rotation about z leaves this body unchanged
        values[j - 1] = values[j - 1] - moved
        values[j - 2] += transport(*pose) @ moved
        now = dict(zip(names, values.ravel(), strict=True))
        wrong = [n for n, text in links[str(j)].items() if abs(evaluate(text, known) - now[n]) > 1e-12]
        rows.append(
            row(
                f"step b, link {j}: correct relations",
                f"{len(links[str(j)])} relations",
                f"{len(links[str(j)]) - len(wrong)} are correct to 1e-12",
                not wrong,
                reason=f"wrong relations: {', '.join(wrong)}",
            )
        )
    return rows


def equations(quick: bool = False) -> Part:
    """Check equations (14), (15), (16) coefficient by coefficient against the transport of a rigid body."""
    rng = np.random.default_rng(1)
    count = 400
    alpha, theta = rng.uniform(-3, 3, (2, count))
    d, r = rng.uniform(-1, 1, (2, count))
    samples = {"S": np.sin(alpha), "C": np.cos(alpha), "s": np.sin(theta), "c": np.cos(theta), "d": d, "r": r}
    maps = np.array([transport(*_pose(*row)) for row in zip(alpha, d, theta, r, strict=True)])
    still = np.array([transport(*_pose(*row)) for row in zip(alpha, d, theta, 0 * r, strict=True)])
    lengths = ["1", "d", "r", "d*r", "d**2", "r**2"]
    twist = Monomials([lengths, ["1", "S"], ["1", "C", "C**2"]], samples)
    turn = Monomials([["1", "s"], ["1", "c", "c**2"], ["1", "S"], ["1", "C", "C**2"]], samples)
    mass = {"M": maps[:, :, 9]}
    body = {"YY": maps[:, :, 0] + maps[:, :, 3], "MZ": maps[:, :, 8], "M": maps[:, :, 9]}
    tensor = {symbol: still[:, :, k] for k, symbol in enumerate(INERTIAL_SYMBOLS[:6])}
    first = derive(
        "(15), first line",
        read_printed("gautier1990")["equation15"]["first_line"],
        "XXR(j) = XX(j) - YY(j)",
        agrees=not _is_first_line_wrong(body),
        note="The line subtracts YY(j) from link j; the second line adds it to link j - 1",
    )
    rows = [
        *_lines("equation14", "(14)", mass, twist),
        *_lines("equation15", "(15)", body, twist, [first]),
        *_lines("equation16", "(16)", tensor, turn),
    ]
    return Part(title="The regrouping relations", source="equations (14), (15), (16)", rows=tuple(rows))


def _is_first_line_wrong(body: Mapping[str, Floats]) -> bool:
    """Whether YY(j) is added to XX of link j - 1, from which the printed first line subtracts it."""
    return bool(np.allclose(body["YY"][:, 0], 1.0))


def _lines(
    key: str, label: str, sources: Mapping[str, Floats], basis: Monomials, wrong_lines: Sequence[Row] = ()
) -> list[Row]:
    """Make one row for the correct lines, one for each other wrong line and one for each wrong coefficient."""
    good, rows = [], list(wrong_lines)
    lines = {line: text for line, text in read_printed("gautier1990")[key].items() if line in INERTIAL_SYMBOLS}
    for line, text in lines.items():
        place = INERTIAL_SYMBOLS.index(line)
        wrong = []
        for source, columns in sources.items():
            names = dict.fromkeys(INERTIAL_SYMBOLS, 0.0) | basis.samples | {source: 1.0}
            claimed = basis.fit(evaluate(text, names) * np.ones(len(columns)))
            right = basis.fit(columns[:, place])
            if claimed != right:
                wrong.append((source, basis.text(claimed), basis.text(right)))
        good += [line] if not wrong else []
        rows += [derive(f"{label}, line {line}: coefficient of {s}", was, right) for s, was, right in wrong]
    held = f"correct for every geometry: {' '.join(good)}" + ("; the others below" if rows else "")
    return [count_right(f"{label}, correct lines", len(lines) + len(wrong_lines), len(good), note=held), *rows]


def bound(quick: bool = False) -> Part:
    """Test equation (18) and rule III-B-2 on random robots."""
    rng = np.random.default_rng(2)
    number = 20 if quick else 120
    cases = []
    for k in range(number):
        robot = random_robot(rng, int(rng.integers(2, 7)), oblique=k % 2 == 1, upright=k % 4 < 2)
        base = base_parameters(robot, "closed-form")
        cases.append((robot, base.rank, set(base.unidentifiable)))
    limits = [count_bound(robot) for robot, _, _ in cases]
    over = sum(rank > limit for (_, rank, _), limit in zip(cases, limits, strict=True))
    attained = sum(rank == limit for (_, rank, _), limit in zip(cases, limits, strict=True))
    claimed = [case for case in cases if case[0].joints[0].kind == "revolute"]
    wrong = sum(not {"MX1", "MY1"} <= gone for _, _, gone in claimed)
    upright = [case for case in claimed if _is_first_axis_vertical(case[0])]
    wrong_upright = sum(not {"MX1", "MY1"} <= gone for _, _, gone in upright)
    rows = (
        row(
            "(18): no robot has more than 7 n_r + 4 n_t - 3 - (1 if joint 1 is revolute)",
            "at most",
            f"true for {number - over} of {number} random robots; {attained} attain the bound",
            over == 0,
            reason=f"{over} robots have more",
        ),
        row(
            "rule III-B-2: MX, MY of r1 have no effect if r1 = 1, for every direction of gravity",
            f"all {len(claimed)} robots with r1 = 1",
            f"true for {len(claimed) - wrong} of {len(claimed)}",
            not wrong,
            reason="right: the axis of r1 must also be parallel to gravity. With that condition the rule holds for "
            f"{len(upright) - wrong_upright} of {len(upright)} robots",
        ),
    )
    return Part(
        title="The bound on the number of parameters",
        source="equation (18), section III-B rule 2",
        rows=rows,
        assumptions=f"We test {number} random robots with 2 to 6 joints, a third of them prismatic. "
        "Half of the robots have "
        "oblique twists, half have gravity in any direction. The paper proves the bound and gives no examples.",
    )


def _is_first_axis_vertical(robot: Robot) -> bool:
    first = robot.joints[0]
    axis = first.T_parent_joint[:3, :3] @ np.asarray(first.axis, dtype=float)
    return bool(np.linalg.norm(np.cross(axis, robot.gravity)) < 1e-9 * np.linalg.norm(robot.gravity))


def prismatic(quick: bool = False) -> Part:
    """Check equations (19) and (20) on robots with prismatic joints between r1 and r2."""
    rng = np.random.default_rng(3)
    rows = []
    for key, label, alphas, before in (
        ("equation19", "(19): prismatic joint parallel to r1, on the link of r1", (0.0, 180.0), None),
        ("equation20", "(20): prismatic joint parallel to r1, on a perpendicular prismatic joint", (90.0, -90.0), 1),
    ):
        for alpha in alphas:
            error = max(_particular(key, alpha, before, rng) for _ in range(3))
            rows.append(
                row(
                    f"{label}, alpha = {alpha:g} deg",
                    "closed form",
                    f"base parameters differ by at most {error:.0e}",
                    error < 1e-9,
                    reason="the relation gives other base parameters than the regressor",
                )
            )
    return Part(
        title="Particular regrouping with prismatic joints",
        source="section IV-C, equations (19), (20)",
        rows=tuple(rows),
        assumptions="The paper gives the relations without an example; we chose the robots.",
    )


def _particular(key: str, alpha: float, slide: int | None, rng: np.random.Generator) -> float:
    """Apply a printed relation, then equation (17) to the first slide; return the error of the base parameters."""
    d, r, theta = rng.uniform(-0.6, 0.6, 3)
    last = DH(alpha=alpha, d=d, theta=np.rad2deg(theta), r=r, sigma=1)
    middle = DH(alpha=-alpha, d=rng.uniform(-0.5, 0.5), theta=0.0, sigma=1)
    table = [DH(), last] if slide is None else [DH(), middle, last]
    robot = from_dh(table, degrees=True)
    theta_values = rng.normal(size=10 * len(table))
    links = theta_values.reshape(-1, 10).copy()
    names = {"s": np.sin(theta), "c": np.cos(theta), "S": np.sin(np.deg2rad(alpha)), "C": np.cos(np.deg2rad(alpha))}
    names |= {"d": d, "MX": links[-1, 6], "MY": links[-1, 7]}
    links[-2] += _slide_tensor(last, links[-1])
    for symbol, text in read_printed("gautier1990")[key].items():
        links[-2, INERTIAL_SYMBOLS.index(symbol)] += evaluate(text, names)
    links[-1, :9] = 0.0
    if slide is not None:
        links[0] += _slide_tensor(middle, links[1])
        links[1, :6] = 0.0
    base = base_parameters(robot, "structural")
    claimed = base.project(links.ravel())
    return float(np.abs(claimed - base.project(theta_values)).max())


def _slide_tensor(row: DH, link: Floats) -> Floats:
    """Rotate the inertia tensor of a sliding link into the frame before it (equation (17))."""
    turned = transport(*_pose(np.deg2rad(row.alpha), 0.0, np.deg2rad(row.theta), 0.0))
    return np.asarray(turned @ np.where(np.arange(10) < 6, link, 0.0))


PARTS: dict[str, Callable[[bool], Part]] = {
    "PUMA 560": puma560,
    "relations": equations,
    "bound (18)": bound,
    "prismatic joints": prismatic,
}
