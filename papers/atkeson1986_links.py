"""Atkeson, An, Hollerbach 1986: the links of the direct-drive arm (Tables 3 to 5, sections 3.3 and 4.2, Appendix I)."""

from __future__ import annotations

from functools import cache

import numpy as np

from dynid import Experiment, base_parameters, inverse_dynamics, parameter_layout, regressor, robots
from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.estimators import ReducedSet, Ridge, Samples, TruncatedSVD, build_equations
from dynid.excitation import minimum_jerk
from dynid.robot import modified_dh
from dynid.tables import Table
from papers.formulas import Monomials, evaluate
from papers.report import Figure, Part, draw
from papers.verdicts import UNSTATED, Forced, Row, Tolerance, count_right, derive, read_printed, row

_L2 = 0.45
"""Length of link 2 of the direct-drive arm [m], as in the paper."""
_KEPT = {
    "SP1": ("YZ2", 1),
    "SP2": ("YY3", -1),
    "SP3": ("ZZ2", 1),
    "SP4": ("ZZ1", 1),
    "SP5": ("YY2", -1),
    "SP6": ("MY2", -1),
}
"""The parameter that carries each combination in the reduced set, and its sign there."""


_TABLE_5 = Tolerance(absolute=2.01e-4, basis="a combination adds up to four numbers of four decimals each")
"""Tolerance of Table 5 in the units of its numbers: four roundings of half a unit of the last digit."""


def _values(table: str) -> dict[str, float]:
    robot = robots.ddarm(parameters="cad" if table == "3" else "estimated")
    return dict(zip(parameter_layout(robot).names, robot.parameter_vector.tolist(), strict=True)) | {"l2": _L2}


def tables345(quick: bool = False) -> Part:
    """Compute Table 5 from Tables 3 and 4."""
    data = read_printed("atkeson1986")
    rows: list[Row] = []
    for column, (table, name) in enumerate((("4", "estimated"), ("3", "CAD"))):
        known = _values(table)
        for combination, text in data["combinations"].items():
            claimed = data["table5"][combination][column]
            right = float(evaluate(text, known))
            note = f"{text.replace('**', '^')} from Table {table}"
            what = f"Table 5, {combination}, {name}"
            rows.append(derive(what, claimed, round(right, 4), within=_TABLE_5, note=note))
    return Part(title="Table 5 from Tables 3 and 4", source=data["table5"]["source"], rows=tuple(rows))


def groups(quick: bool = False) -> Part:
    """Find the three groups of section 4.2.1: identifiable, identifiable in combinations, not identifiable."""
    data = read_printed("atkeson1986")["groups"]
    base = base_parameters(robots.ddarm(), order=[name for name, _ in _KEPT.values()])
    other = base_parameters(modified_dh(robots.ddarm()).robot)
    found = {"fully": base.identifiable, "combined": base.combined, "never": base.unidentifiable}
    titles = {"fully": "identifiable", "combined": "identifiable in combinations", "never": "not identifiable"}
    rows = [row(titles[key], sorted(data[key]), sorted(names)) for key, names in found.items()]
    rows.append(row("reduced parameters", data["reduced"], base.rank))
    counts = [len(other.identifiable), len(other.combined), len(other.unidentifiable)]
    rows.append(
        row(
            "section 4.2.1: the groups depend on the geometry only",
            "9 / 10 / 11 parameters",
            f"in modified DH frames {' / '.join(str(x) for x in counts)}; {other.rank} base parameters there, "
            f"{base.rank} in the paper's frames",
            counts == [len(base.identifiable), len(base.combined), len(base.unidentifiable)],
            reason="the groups also depend on the choice of the frames; the number of base parameters does not",
        )
    )
    table = Table.of(
        ("base parameter", "combination"), [tuple(e.split(" = ", 1)) for e in base.expressions if " = " in e]
    )
    return Part(
        title="Three groups of parameters",
        source=data["source"],
        rows=tuple(rows),
        tables={"Combinations in the paper's frames": table},
    )


@cache
def _equations(noise: float = 0.0) -> Samples:
    """Build the equations of the three trajectories: 200 samples each, torques of Table 4's parameters."""
    data = read_printed("atkeson1986")["links"]
    robot = robots.ddarm(parameters="estimated")
    runs = []
    count = data["samples"] // 3
    for seed, ((start, end), duration) in enumerate(zip(data["trajectories"], data["durations"], strict=True)):
        path = minimum_jerk(np.deg2rad(start), np.deg2rad(end), duration_s=duration)
        time = np.linspace(0.0, duration, count)
        q, dq, ddq = path.evaluate(time)
        effort = inverse_dynamics(robot, q, dq, ddq)
        effort = effort + noise * np.random.default_rng(seed).normal(size=effort.shape)
        valid, segment = np.ones(q.shape, dtype=bool), np.zeros(count, dtype=np.int64)
        rate = (count - 1) / duration
        runs.append(
            Experiment(time=time, q=q, dq=dq, ddq=ddq, effort=effort, valid=valid, segment=segment, rate_hz=rate)
        )
    return build_equations(robot, runs)


def links(quick: bool = False) -> Part:
    """Compare ridge regression, the reduced set and the pseudo-inverse on the same 600 samples (section 3.3)."""
    data, noisy = read_printed("atkeson1986")["links"], _equations(2.0)
    estimators: dict[str, Ridge | ReducedSet | TruncatedSVD] = {
        "ridge, d = 10": Ridge(d=data["d"]),
        "reduced set": ReducedSet(),
        "pseudo-inverse": TruncatedSVD(),
    }
    truth = robots.ddarm(parameters="estimated").parameter_vector
    columns = [truth, *(np.asarray(estimator.solve(noisy).least_norm) for estimator in estimators.values())]
    cells: list[tuple[str | float, ...]] = [
        (name, *[float(values[k]) for values in columns]) for k, name in enumerate(noisy.base.layout.names)
    ]
    table = Table.of(("parameter", "Table 4", *estimators), cells)
    reference = estimators["reduced set"].solve(noisy).values
    apart = {
        name: float(np.linalg.norm(estimator.solve(noisy).values - reference) / np.linalg.norm(reference))
        for name, estimator in estimators.items()
    }
    agree = row(
        "ridge regression and reduced set agree",
        "agree with each other",
        f"relative difference from the reduced set: {apart['ridge, d = 10']:.1e} (ridge), "
        f"{apart['pseudo-inverse']:.1e} (pseudo-inverse)",
        max(apart.values()) < 5e-3,
        assumption="torques simulated from Table 4, with 2 N m of white noise",
    )
    return Part(
        title="Estimating the links of the direct-drive arm",
        source=data["source"] + ", Table 4, Figure 8",
        rows=(*_eigenvalues(), agree, *_pseudo_inverse(truth), _figure8_row(noisy)),
        tables={"All 30 parameters, estimated from torques simulated from Table 4 with 2 N m of noise": table},
        figures=(_figure8(noisy),),
        assumptions="The arm is simulated with the estimated parameters of Table 4. White noise of 2 "
        "N m is added to its "
        "torques; the paper does not state the noise.",
    )


def _eigenvalues() -> tuple[Row, ...]:
    """Compute rank and smallest eigenvalue of the three trajectories' equations, and compare them with d."""
    data, equations = read_printed("atkeson1986")["links"], _equations()
    smallest = float(Ridge(d=data["d"]).solve(equations).extras["smallest_eigenvalue"])
    return (
        row("rank of K^T K", 15, equations.base.rank),
        row(
            "smallest eigenvalue of K^T K that is not zero",
            data["smallest_eigenvalue"],
            smallest,
            within=UNSTATED,
            assumption="the arm follows its fifth-order trajectories exactly; the second takes 1.3 s "
            "(illegible in the scan)",
        ),
        row(
            "d = 10 is far below that eigenvalue",
            "10 << 3395",
            f"{data['d'] / smallest:.2%} of it",
            data["d"] < 0.01 * smallest,
        ),
    )


def _pseudo_inverse(truth: Floats) -> tuple[Row, ...]:
    """Compare ridge regression with the pseudo-inverse, in our data and in Table 4."""
    equations = _equations()
    ridge = Ridge(d=read_printed("atkeson1986")["links"]["d"]).solve(equations).least_norm
    least = TruncatedSVD().solve(equations).least_norm
    clean = float(np.linalg.norm(np.asarray(ridge) - np.asarray(least)) / np.linalg.norm(truth))
    silent = np.linalg.svd(equations.base.grouping, full_matrices=True)[2][equations.base.rank :]
    outside = float(np.linalg.norm(silent @ truth) / np.linalg.norm(truth))
    return (
        row(
            "ridge regression approximates the pseudo-inverse",
            "approximation",
            f"relative difference {clean:.1e} without noise",
            clean < 2e-3,
        ),
        row(
            "Table 4 is such a solution: its part without effect on any torque",
            "0 for a pseudo-inverse",
            f"{outside:.2%} of its norm",
            outside < 0.02,
        ),
    )


def _figure8_row(equations: Samples) -> Row:
    cad = robots.ddarm(parameters="cad")
    found = TruncatedSVD().solve(equations).values
    errors = []
    for run in equations.experiments:
        torques = (equations.torque(found, run), inverse_dynamics(cad, run.q, run.dq, run.ddq))
        errors.append([float(np.linalg.norm(run.effort - torque)) for torque in torques])
    estimated, modelled = (float(x) for x in np.linalg.norm(errors, axis=0))
    return row(
        "Fig. 8: estimated parameters predict torques better than CAD ones",
        "estimated ones match very closely, CAD ones less so",
        f"torque error {modelled / estimated:.0f} times larger with CAD parameters",
        modelled > 2.0 * estimated,
        assumption=Forced(
            "the simulated arm has the parameters of Table 4, so that only estimated ones can fit it",
        ),
    )


def _figure8(equations: Samples) -> Figure:
    run, cad = equations.experiments[0], robots.ddarm(parameters="cad")
    estimated = equations.torque(TruncatedSVD().solve(equations).values, run)
    modelled = inverse_dynamics(cad, run.q, run.dq, run.ddq)
    curves = {"measured": run.effort, "CAD": modelled, "estimated": estimated}
    panels = {f"Joint {j + 1}": {name: (run.time, x[:, j]) for name, x in curves.items()} for j in range(3)}
    caption = "Figure 8 in kind: measured, modelled and estimated torques."
    return draw("atkeson1986-figure8", caption, panels, "time [s]", "N m", 1)


def appendix1(quick: bool = False) -> Part:
    """Check the closed form, coefficient by coefficient; wrong coefficients are derived anew from the regressor."""
    rng = np.random.default_rng(20)
    count = 700
    q, dq, ddq = rng.uniform(-2, 2, (3, count, 3))
    robot = robots.ddarm().with_gravity([0.0, 0.0, -9.80665])
    Y, names = regressor(robot, q, dq, ddq), parameter_layout(robot).names
    samples = {f"{letter}{j + 1}": x[:, j] for letter, x in (("a", ddq), ("d", dq)) for j in range(3)}
    samples |= {f"s{j + 1}": np.sin(q[:, j]) for j in range(3)} | {f"c{j + 1}": np.cos(q[:, j]) for j in range(3)}
    samples |= {"g": np.full(count, 9.80665), "l2": np.full(count, _L2)}
    motion = ["a1", "a2", "a3", "d1**2", "d2**2", "d3**2", "d1*d2", "d1*d3", "d2*d3", "g"]
    basis = Monomials([motion, ["1", "s2"], ["1", "s3"], ["1", "c2", "c2**2"], ["1", "c3", "c3**2"]], samples)
    rows: list[Row] = []
    for joint, formulas in enumerate(read_printed("atkeson1986")["appendix1"].values()):
        good = []
        for parameter, text in formulas.items():
            kept, sign = _KEPT.get(parameter, (parameter, 1))
            column = sign * Y[:, joint, names.index(kept)]
            if np.abs(evaluate(text, samples) - column).max() < 1e-9:
                good.append(parameter)
            else:
                rows.append(_correct(f"n{joint + 1}, coefficient of {parameter}", text, column, basis))
        wrong = len(formulas) - len(good)
        others = (
            f"; the other {wrong} {'is a misprint' if wrong == 1 else 'are misprints'}, listed above" if wrong else ""
        )
        held = f"correct to 1e-9: {' '.join(good)}{others}"
        rows.append(count_right(f"n{joint + 1}: correct coefficients", len(formulas), len(good), note=held))
        silent = sorted(set(names) - {_KEPT.get(p, (p, 1))[0] for p in formulas} - _absorbed_parameters())
        quiet = all(np.abs(Y[:, joint, names.index(n)]).max() < 1e-12 for n in silent)
        rows.append(
            row(
                f"n{joint + 1}: no other parameter has an effect",
                "no other term",
                f"{len(silent)} parameters have none",
                quiet,
            )
        )
    return Part(
        title="Appendix I: the closed form",
        source="Appendix I",
        rows=tuple(rows),
        assumptions="The printed formulas are read from a scan. In them, a and d are joint "
        "accelerations and velocities, s "
        "and c are sines and cosines of joint angles. Our formulas contain l2 = 0.45 m as a number.",
    )


def _absorbed_parameters() -> set[str]:
    """Parameters that have an effect only through the six combinations."""
    return {"M3", "MZ3", "XX3", "XX2"}


def _correct(what: str, text: str, column: Floats, basis: Monomials) -> Row:
    right = basis.fit(column)
    shown = text.replace("**", "^").replace("*", " ")
    try:
        claimed = basis.fit_formula(text)
    except ArgumentError:
        return derive(what, shown, basis.text(right), note="The printed one contains terms that are no torque")
    wrong = {k: right.get(k, 0.0) - claimed.get(k, 0.0) for k in {**right, **claimed} if right.get(k) != claimed.get(k)}
    note = f"The printed one lacks {basis.text(wrong)}"
    return derive(what, shown, basis.text(right), agrees=not wrong, note=note)
