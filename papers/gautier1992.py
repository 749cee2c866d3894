"""Gautier, Khalil 1992: the appendix, formulas, and checks of the printed tables of components.

Random and optimum points and the exciting trajectory (section 6.1 and 6.2) are in `gautier1992_points`, noise and
bounds (section 6.3) in `gautier1992_noise`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid import robots
from dynid.array_types import Floats
from dynid.excitation.trajectories.quintic import quintic_coefficients, segment_peaks
from papers import gautier1992_noise, gautier1992_points
from papers.formulas import Monomials, evaluate
from papers.report import Figure, Part, draw
from papers.verdicts import ROUNDED, Row, Tolerance, count_right, derive, read_printed, row

_ONE_DIGIT = Tolerance(factor=1.05, basis="the tables print these errors with one to three digits")
"""Tolerance of the relative errors that two tables print."""


TITLE = "Gautier, Khalil 1992: exciting trajectories for the identification of base inertial parameters"


def appendix(quick: bool = False) -> Part:
    """Compute examples 1 and 2 of the appendix, on the meaning of a condition number."""
    one, two = read_printed("gautier1992")["appendix"].values()
    A, Y, dY = (np.array(one[key]) for key in ("A", "Y", "dY"))
    X, inverse = np.linalg.solve(A, Y), np.linalg.inv(A)
    moved = np.linalg.solve(A, Y + dY)
    relative = float(np.abs(moved - X).sum() / np.abs(X).sum())
    share = float(np.abs(dY).sum() / np.abs(Y).sum())
    condition = float(np.linalg.cond(A, 1))
    rows = [
        derive("example 1: determinant", one["determinant"], float(np.linalg.det(A)), within=ROUNDED),
        _arrays("example 1: inverse (A2)", one["inverse"], inverse),
        _arrays("example 1: solution (A4)", one["X"], X),
        derive("example 1: relative perturbation of Y (A5)", one["relative_dY"], share, within=ROUNDED),
        _arrays("example 1: perturbed solution (A7)", one["perturbed"], moved),
        derive("example 1: relative change of X (A7)", one["relative_dX"], relative, within=ROUNDED),
        derive("example 1: condition number, 1-norm", one["condition"], condition, within=ROUNDED, digits=6),
        derive("example 1: the bound (12) is attained", 1.0, relative / (condition * share), within=ROUNDED),
    ]
    A, Y = np.array(two["A"]), np.array(two["Y"])
    rows.append(derive("example 2: condition number", two["condition"], float(np.linalg.cond(A)), within=ROUNDED))
    for k, change in enumerate(two["dY"]):
        dX = np.linalg.solve(A, np.array(change))
        found = float(np.linalg.norm(dX) / np.linalg.norm(np.linalg.solve(A, Y)))
        rows.append(
            derive(f"example 2: relative change of X, case {k + 1}", two["relative_dX"][k], found, within=ROUNDED)
        )
    return Part(title="Appendix: two examples", source="Appendix, examples 1 and 2", rows=tuple(rows))


def _arrays(what: str, paper: list[object], ours: Floats) -> Row:
    good = np.allclose(np.array(paper, dtype=float), ours, atol=1e-9)
    return derive(what, str(paper), str(np.round(ours, 6).tolist()), bool(good))


def formulas(quick: bool = False) -> Part:
    """Check statements of sections 3 to 5."""
    rng = np.random.default_rng(5)
    A, v, w = rng.uniform(-2, 2, (3, 200))
    T, u = rng.uniform(0.5, 3, 200), rng.uniform(0, 1, 200)
    right = quintic_coefficients(np.zeros(200), A, v, w, T)
    data = read_printed("gautier1992")
    error = max(
        float(np.abs(evaluate(text, {"A": A, "v": v, "w": w, "T": T}) - right[:, int(name[1])]).max())
        for name, text in data["equation28"].items()
    )
    a3, a4, a5 = right[:, 3:].T
    basis = Monomials([["a3", "a4", "a5"], ["1", "u", "u**2"]], {"a3": a3, "a4": a4, "a5": a5, "u": u})
    velocity = basis.fit((6 * a3 * u + 12 * a4 * u**2 + 20 * a5 * u**3) / (2 * u))
    jerk = basis.fit(6 * a3 + 24 * a4 * u + 60 * a5 * u**2)
    still = np.zeros(1)
    peak = float(segment_peaks(quintic_coefficients(still, still + 1.0, still, still, still + 1.0), 1.0)[1][0])
    claimed = data["section5_2"]["velocity_extrema"]
    orthogonal = float(np.linalg.cond(np.linalg.qr(rng.normal(size=(6, 4)))[0]))
    rows = (
        derive(
            "(15): Cond(W) > 1",
            "> 1",
            ">= 1",
            agrees=orthogonal > 1.0 + 1e-9,
            note=f"a matrix with orthonormal columns has {orthogonal:.3g}, as the paper says itself",
        ),
        _limits(rng),
        derive("(23b): variables of the search for 15 equations, (r + 1)(2 n - 1)", 80, 16 * 5, note=_VARIABLES),
        derive("(23b): variables of the search for 30 equations, section 6.2", 155, 31 * 5, note=_VARIABLES),
        row("(28): coefficients of the fifth-order segments", "closed form", f"error {error:.0e}", error < 1e-9),
        derive(
            "section 5.2: equation of the velocity's extrema",
            basis.text(basis.fit_formula(claimed)),
            basis.text(velocity),
            agrees=basis.fit_formula(claimed) == velocity,
        ),
        derive(
            "section 5.2: peak acceleration of 1 rad in 1 s from rest to rest, at the roots of the printed condition",
            "0 rad/s^2, at the roots of the acceleration",
            f"{peak:.4g} rad/s^2, at the roots of the jerk",
            note=f"the condition is {basis.text(jerk)} = 0",
            agrees=peak < 1e-9,
        ),
        _monotone(rng, 200 if quick else 2000),
        _unphysical(),
    )
    return Part(
        title="Statements and formulas",
        source="equations (15), (20), (28), section 5.2, Table 6",
        rows=rows,
        figures=(_counterexample(),),
    )


_VARIABLES = "dynid's search has (r + 1) 2 n, 96 and 186: with the position of joint 1, which has no effect"


def _limits(rng: np.random.Generator) -> Row:
    """Count the points within each joint's limits that (20) accepts, with the printed and with the right indices."""
    indices = read_printed("gautier1992")["equation20"]
    upper = np.deg2rad([90.0, 87.5, 65.0])
    lower = -upper[::-1]
    q = rng.uniform(lower, upper, (1000, 3))
    shares = []
    for at in (indices, dict.fromkeys(indices, "j")):
        pairs = [{"i": i, "j": j} for i in range(3) for j in range(3)]
        passed = [
            (lower[k[at["lower"]]] <= q[:, k[at["position"]]]) & (q[:, k[at["position"]]] <= upper[k[at["upper"]]])
            for k in pairs
        ]
        shares.append(float(np.mean(np.all(passed, axis=0))))
    return derive(
        "(20): indices of the limits",
        "q_I{lower} <= q_{position} <= q_F{upper}".format(**indices),
        "q_Ij <= q_j <= q_Fj",
        agrees=shares[0] == 1.0,
        note=f"the printed form accepts {100 * shares[0]:.0f} % of the points within the joints' limits, the right one "
        f"{100 * shares[1]:.0f} %",
    )


def _monotone(rng: np.random.Generator, number: int) -> Row:
    """Test whether a longer segment always has a smaller peak acceleration."""
    change, start, end = rng.uniform(-2, 2, (3, number, 1))
    times = np.geomspace(0.3, 10.0, 120) * np.ones((number, 1))
    peaks = segment_peaks(quintic_coefficients(np.zeros_like(change), change, start, end, times), times)
    rising = [float(np.mean(np.any(np.diff(peak, axis=1) > 1e-9, axis=1))) for peak in peaks]
    return row(
        "section 5.2: peak acceleration is a decreasing function of the duration",
        "always",
        f"false for {100 * rising[1]:.0f} % of random end velocities; the peak velocity rises for "
        f"{100 * rising[0]:.0f} %",
        rising[1] == 0,
        reason="so the largest of the joints' shortest durations can violate another joint's limit. dynid increases "
        "the duration until every joint is within its limits. The figure shows an example",
    )


def _counterexample() -> Figure:
    times = np.linspace(1.2, 6.0, 200)
    one = np.ones_like(times)
    velocity, acceleration = segment_peaks(quintic_coefficients(0 * one, 2 * one, one, one, times), times)
    curves = {"acceleration": (times, acceleration), "velocity": (times, velocity)}
    panels = {"Motion by 2 rad with 1 rad/s at both ends: peaks": curves}
    caption = "A longer segment can need more acceleration."
    return draw("gautier1992-peaks", caption, panels, "duration [s]", "rad/s^2, rad/s", 1)


def _unphysical() -> Row:
    """Check the triangle inequality of link 3 with the values of Table 6."""
    inertia = robots.gautier_khalil_3r().bodies[2].inertia.vector
    difference, product, zz = inertia[0], inertia[1], inertia[5]
    least = float(np.hypot(difference, 2.0 * product))
    return row(
        "Table 6: values X of link 3 belong to a rigid body",
        f"ZZ3 = {zz:g}",
        f"a body needs ZZ3 >= sqrt((XX3 - YY3)^2 + 4 XY3^2) = {least:.3f}",
        bool(zz >= least),
        reason="no rigid body has these values. A linear identification is not affected; tests of physical "
        "consistency cannot use them",
    )


def tables(quick: bool = False) -> Part:
    """Check that every line of Tables 6, 7, 11, 12 is consistent in itself and with the other tables."""
    data = read_printed("gautier1992")["components"]
    parts = {number: np.array(data[number]["rows"]) for number in ("6", "7", "11", "12")}
    usual = np.median([rows[:, 0] for rows in parts.values()], axis=0)
    rows: list[Row] = []
    for number, values in parts.items():
        found = [row for k, line in enumerate(values) for row in _line(number, data["names"][k], line, float(usual[k]))]
        good = 15 - len(found)
        note = "the others are below" if found else ""
        rows.append(count_right(f"Table {number}: consistent lines", 15, good, note=note))
        rows += found
    noise = read_printed("gautier1992")["noise"]
    for number, values in parts.items():
        about = data[number]
        table = noise[str(about["r"])]
        claimed = table[about["sequence"]]["energy"][noise["k"].index(about["k"])]
        errors = float(np.linalg.norm(values[:, 2]) / np.linalg.norm(usual))
        where = f"Table {table['tables']['energy']}"
        rows.append(
            derive(
                f"Table {number}: relative error of X, also in {where}", claimed, errors, within=_ONE_DIGIT, digits=3
            )
        )
    return Part(title="Tables 6, 7, 11, 12: consistency", source="Tables 6, 7, 11, 12, 3, 8", rows=tuple(rows))


def _line(table: str, name: str, line: Floats, usual: float) -> list[Row]:
    """Find the wrong entry of a line, if there is one: the entry whose correction makes the line consistent."""
    X, estimate, difference, relative, _ = (float(v) for v in line)
    if abs(X - estimate - difference) <= 1.6e-4:
        return []
    if abs(X - usual) > 1e-9:
        return [derive(f"Table {table}, {name}: X", X, round(estimate + difference, 4), note="as in the other tables")]
    right = round(X - difference, 4)
    agrees = abs((X - right) / X - relative) < 1.5e-4
    note = "X agrees with the other tables; difference and relative difference agree with each other"
    return [derive(f"Table {table}, {name}: estimate", estimate, right, note=note if agrees else "")]


PARTS: dict[str, Callable[[bool], Part]] = {
    "appendix": appendix,
    "statements": formulas,
    "consistency of the tables": tables,
    "Table 2 and Fig. 2": gautier1992_points.table2,
    "measures of the condition number": gautier1992_points.measures,
    "Figs. 3 to 5": gautier1992_points.figures,
    "Tables 3 to 5 and 8 to 10": gautier1992_noise.noise,
    "reading of the noise": gautier1992_noise.reading,
    "columns of Tables 3 to 5 and 8 to 10": gautier1992_noise.consistency,
    "bounds (12) and (13)": gautier1992_noise.bounds,
    "Tables 6, 7, 11, 12": gautier1992_noise.components,
}
