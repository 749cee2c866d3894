"""Gautier, Khalil 1990: the PUMA 560 step by step, the printed relations, the bound (18), prismatic joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.energy_recursion import (
    count_bound,
    energy_derivatives,
    energy_transport,
    potential_transport,
)
from dynid.kernels import energy_regressor
from dynid.parameters.base import Method, base_parameters
from dynid.parameters.base_set import conversion_matrix
from dynid.parameters.inertia_maps import transport
from dynid.parameters.layout import INERTIAL_SYMBOLS
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.tables import Table
from papers.data import read_printed
from papers.judgement.formulas import Monomials, evaluate
from papers.judgement.random_robots import random_robot
from papers.judgement.reproduction import Part
from papers.judgement.verdicts import Row, compare_claim, compare_derived, compare_exactly, compare_lines

TITLE = "Gautier, Khalil 1990: direct calculation of the minimum set of inertial parameters"
_METHODS: tuple[Method, ...] = ("closed-form", "minimal-combinations", "structural", "numeric")
_PUMA = {"D3": 0.4318, "R3": 0.1501, "D4": 0.0203, "R4": 0.4331}


def _pose(alpha: float, d: float, theta: float, r: float) -> tuple[Floats, Floats]:
    """Rotation and origin of frame j in frame j - 1."""
    T = DH(alpha=alpha, d=d, theta=theta, r=r).T_previous_joint
    return T[:3, :3], T[:3, 3]


def puma560(quick: bool = False) -> Part:
    """Check every relation of every step of section V."""
    data = read_printed("gautier1990")["puma560"]
    robot = zoo.puma560()
    base = base_parameters(robot, "closed-form")
    agree = [base_parameters(robot, method) for method in _METHODS]
    same = all(np.allclose(conversion_matrix(o, base) @ o.grouping, base.grouping, atol=1e-9) for o in agree)
    rows = [
        compare_claim(
            "step a: parameters of link 1 without effect",
            " ".join(data["no_effect_step_a"]),
            " ".join(n for n in base.unidentifiable if n.endswith("1")),
            [n for n in base.unidentifiable if n.endswith("1")] == data["no_effect_step_a"],
        ),
        *_steps(data["links"]),
        compare_exactly("all parameters without effect", data["no_effect"], base.unidentifiable),
        compare_exactly(
            "eliminated by regrouping", data["regrouped"], _list_regrouped(base.names, base.unidentifiable)
        ),
        compare_exactly("minimum parameters", data["minimum"].split(), list(base.names)),
        compare_exactly("eliminated parameters", data["eliminated"], len(base.layout) - base.rank),
        compare_exactly("remaining parameters", data["left"], base.rank),
        compare_claim(
            "four independent methods give the same set",
            "closed form",
            ", ".join(_METHODS),
            same,
            reason="the methods disagree",
        ),
    ]
    table = Table.of(("parameter", "combination"), [tuple(e.split(" = ", 1)) for e in base.expressions if " = " in e])
    return Part(
        title="The PUMA 560, step by step",
        source=data["source"],
        rows=tuple(rows),
        tables=(("The final set, from the geometry alone", table),),
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
            compare_claim(
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
    first = compare_derived(
        "(15), first line",
        read_printed("gautier1990")["equation15"]["first_line"],
        "XXR(j) = XX(j) - YY(j)",
        same=not _is_first_line_wrong(body),
        note="The line subtracts YY(j) from link j; the second line adds it to link j - 1",
    )
    rows = [
        *_lines("equation14", "(14)", mass, twist),
        first,
        *_lines("equation15", "(15)", body, twist),
        *_lines("equation16", "(16)", tensor, turn),
    ]
    return Part(title="The regrouping relations", source="equations (14), (15), (16)", rows=tuple(rows))


def _is_first_line_wrong(body: Mapping[str, Floats]) -> bool:
    """Whether YY(j) is added to XX of link j - 1, from which the printed first line subtracts it."""
    return bool(np.allclose(body["YY"][:, 0], 1.0))


def _lines(key: str, label: str, sources: Mapping[str, Floats], basis: Monomials) -> list[Row]:
    """Make one row for the correct lines and one for each wrong coefficient."""
    good, rows = [], []
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
        rows += [compare_derived(f"{label}, line {line}: coefficient of {s}", was, right) for s, was, right in wrong]
    held = f"correct for every geometry: {' '.join(good)}" + ("; the others below" if rows else "")
    return [compare_lines(f"{label}, correct lines", len(lines), len(good), note=held), *rows]


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
        compare_claim(
            "(18): no robot has more than 7 n_r + 4 n_t - 3 - (1 if joint 1 is revolute)",
            "at most",
            f"true for {number - over} of {number} random robots; {attained} attain the bound",
            over == 0,
            reason=f"{over} robots have more",
        ),
        compare_claim(
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
                compare_claim(
                    f"{label}, alpha = {alpha:g} deg",
                    "closed form",
                    f"base parameters differ by at most {error:.0e}",
                    error < 1e-9,
                    reason="the relation gives other base parameters than the regressor",
                )
            )
    counts = {"cylindrical (RPP)": (zoo.cylindrical(), 5), "SCARA (RRPR)": (zoo.scara(), 8)}
    counts |= {"Stanford": (zoo.stanford(), 33), "Cartesian (PPP)": (zoo.cartesian(), 3)}
    table = Table.of(
        ("robot", "bound (18)", "base parameters", "by the regressor's rank"),
        [
            (n, count_bound(r), base_parameters(r).rank, base_parameters(r, "numeric").rank)
            for n, (r, _) in counts.items()
        ],
    )
    rows += [
        compare_claim(
            f"number of parameters, {name}",
            f"at most {count_bound(robot)}",
            f"{base_parameters(robot).rank}; the regressor has rank {base_parameters(robot, 'numeric').rank}",
            base_parameters(robot, "numeric").rank == base_parameters(robot).rank == known <= count_bound(robot),
        )
        for name, (robot, known) in counts.items()
    ]
    return Part(
        title="Particular regrouping with prismatic joints",
        source="section IV-C, equations (19), (20)",
        rows=tuple(rows),
        tables=(("Robots with prismatic joints", table),),
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


BLOCKS = {
    "(A3), 36 entries of DJ": (slice(0, 6), slice(0, 6)),
    "(A4), 18 entries of DS": (slice(6, 9), slice(0, 6)),
    "(A5), 6 entries of Dm": (slice(9, 10), slice(0, 6)),
    "(A6), (A7) and the zeros of (A2)": (slice(0, 10), slice(6, 10)),
}
"""Equations of the appendix -> the block of lambda that they print."""
ROUNDING = 1e-12
"""Largest difference from an exact relation that rounding explains, for quantities of the order of one (convention)."""


def appendix(quick: bool = False) -> Part:
    """Check the matrices of the appendix entry by entry, and the recursion against the energy of the whole robot."""
    rng = np.random.default_rng(4)
    number = 20 if quick else 200
    rows_of_table = [_random_row(rng, k % 2) for k in range(number)]
    printed = np.array([energy_transport(row) for row in rows_of_table])
    poses = [row.T_previous_joint for row in rows_of_table]
    right = np.array([transport(T[:3, :3], T[:3, 3]).T for T in poses])
    rows = [
        _compare_entries(f"{label}: derivatives of a moved body", printed[:, *block] - right[:, *block])
        for label, block in BLOCKS.items()
    ]
    beta = np.array([potential_transport(row) for row in rows_of_table])
    rows.append(
        _compare_entries("(13), (A11): beta is lambda in its last four columns", beta[..., 6:] - right[..., 6:])
    )
    rows += _recursion_rows(rng, number)
    return Part(
        title="The recursion of the energy's derivatives",
        source="section IV-A, equations (9)-(13); appendix, equations (A1)-(A12)",
        rows=tuple(rows),
        assumptions=f"We test {number} random rows of a modified DH table and {number} random robots of one to seven "
        "joints.",
    )


def _random_row(rng: np.random.Generator, sigma: int) -> DH:
    alpha, d, theta, r = rng.uniform(-1.5, 1.5, 4)
    return DH(alpha=alpha, d=d, theta=theta, r=r, sigma=sigma)


def _compare_entries(what: str, difference: Floats) -> Row:
    error = float(np.abs(difference).max())
    reason = "an entry differs from the transport of a rigid body"
    return compare_claim(what, "printed", f"differ by at most {error:.0e}", error < ROUNDING, reason=reason)


def _recursion_rows(rng: np.random.Generator, number: int) -> list[Row]:
    """Compare DE + DU of random robots with the energy regressor, which is derived from velocities directly."""
    errors: dict[str, list[float]] = {"revolute": [], "prismatic": [], "mixed": []}
    for k in range(number):
        kind = tuple(errors)[k % 3]
        count = int(rng.integers(1, 8))
        sigmas = rng.integers(2, size=count) if kind == "mixed" else np.full(count, int(kind == "prismatic"))
        table = [_random_row(rng, int(sigma)) for sigma in sigmas]
        robot = from_dh(table, gravity=9.81 * rng.normal(size=3))
        q, dq = rng.normal(size=(2, count))
        found, columns = energy_derivatives(robot, q, dq), energy_regressor(robot, q, dq)
        error = np.abs((found.kinetic + found.potential).ravel() - columns).max() / np.abs(columns).max()
        errors[kind].append(float(error))
    labels = {"revolute": "(A1), (A8), (A10), (A12)", "prismatic": "(A1), (A9), (A10), (A12)", "mixed": "(A1)-(A12)"}
    return [
        compare_claim(
            f"{labels[kind]}: energy of {kind} joints",
            "DE + DU by recursion",
            f"the energy regressor to {max(found):.0e}",
            max(found) < ROUNDING,
            reason="the recursion gives another energy",
        )
        for kind, found in errors.items()
    ]


PARTS: dict[str, Callable[[bool], Part]] = {
    "PUMA 560": puma560,
    "relations": equations,
    "bound (18)": bound,
    "prismatic joints": prismatic,
    "appendix": appendix,
}
