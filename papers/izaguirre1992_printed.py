"""Izaguirre et al. 1992 as printed: check the equations, the statistics and the program of Appendix A.

Evaluation on random bodies finds wrong indices and signs of equations. Statistics of ten values are compared with the
range that ten values can have. The program is run line by line; its operations are counted and compared with our code.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from dynid import Robot, generate_c, gravity_torque, inertia_matrix, robots, velocity_torque
from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.spatial import skew
from papers.formulas import (
    OperatorCount,
    constant_operators,
    evaluate,
    mend_parentheses,
    operators,
    variables,
)
from papers.report import Part
from papers.verdicts import DATA, Row, count_right, derive, read_printed, row


def equations(quick: bool = False) -> Part:
    """Evaluate printed and corrected forms on random bodies and motions."""
    rows = (_velocity_terms(), _product(), _masses(), _first_moment(), _tensor(), _acceleration(), _moment())
    return Part(
        title="Printed equations, evaluated",
        source="equations (1), (8), (15), (16), (20), (24), recursion of the masses",
        rows=rows,
        assumptions="Each printed form and its corrected form are evaluated on random bodies and motions and compared "
        "with the definition they must satisfy.",
    )


def _row(what: str, printed: str, right: str, errors: tuple[float, float]) -> Row:
    note = f"error of the printed form {errors[0]:.1g}, of the right form {errors[1]:.0e}"
    return derive(what, printed, right, note=note, agrees=errors[0] < 1e-6)


def _velocity_terms() -> Row:
    """Compare torques from Christoffel symbols of the PUMA 560's inertia matrix with its velocity torques."""
    robot: Robot = robots.puma560()
    q, dq = np.random.default_rng(12).uniform(-1, 1, (2, 6))
    step = 1e-5 * np.eye(6)
    dM = np.array([(inertia_matrix(robot, q + h) - inertia_matrix(robot, q - h)) / 2e-5 for h in step])
    D = 0.5 * (np.einsum("kij->ijk", dM) + np.einsum("jik->ijk", dM) - np.einsum("ijk->ijk", dM))
    right = np.einsum("ijk,j,k->i", D, dq, dq)
    printed = np.einsum("ijk,i,k->i", D, dq, dq)
    truth = velocity_torque(robot, q, dq)
    errors = tuple(float(np.abs(x - truth).max()) for x in (printed, right))
    return _row("(1): velocity terms", "D_ijk dq_i dq_k", "D_ijk dq_j dq_k", (errors[0], errors[1]))


def _product() -> Row:
    """Check the last diagonal entry of the squared cross-product matrix."""
    x, y, z = np.random.default_rng(19).normal(size=3)
    truth = float((-skew(np.array([x, y, z])) @ skew(np.array([x, y, z])))[2, 2])
    return _row(
        "(8): last diagonal entry",
        "lx^2 + lz^2",
        "lx^2 + ly^2",
        (abs(x * x + z * z - truth), abs(x * x + y * y - truth)),
    )


def _masses() -> Row:
    m = np.append(np.random.default_rng(13).uniform(1, 5, 6), 0.0)
    right = np.cumsum(m[::-1])[::-1]
    printed = np.zeros(7)
    for j in range(5, -1, -1):
        printed[j] = printed[j + 1] + m[j + 1]
    errors = (float(np.abs(printed - right).max()), 0.0)
    return _row("recursion of the masses", "M_j = M_(j+1) + m_(j+1)", "M_j = M_(j+1) + m_j", errors)


def _points(seed: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Point masses of link j and of the links beyond it in frame j + 1, and the vector p from frame j to j + 1."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(8, 3)),
        rng.uniform(0.1, 1, 8),
        rng.normal(size=(8, 3)),
        rng.uniform(0.1, 1, 8),
        rng.normal(size=3),
    )


def _first_moment() -> Row:
    """Check the first moment of the compound link about frame j's origin, in axes of frame j + 1."""
    link, m, beyond, M, p = _points(14)
    truth = m @ (link + p) + M @ (beyond + p)
    own, inner, total = m @ link, M @ beyond, float(m.sum() + M.sum())
    right = own + inner + p * total
    printed = own + truth + p * total
    errors = (float(np.abs(printed - truth).max()), float(np.abs(right - truth).max()))
    return _row("(15): first moment of the compound link j", "inner term L_j", "inner term L_(j+1)", errors)


def _tensor() -> Row:
    """Check the share of link j in the compound tensor, moved from the far to the near frame."""
    link, m, _, _, p = _points(15)

    def about(x: Floats) -> Floats:
        return np.asarray(-sum(w * skew(v) @ skew(v) for w, v in zip(m, x, strict=True)))

    d = m @ link / m.sum()
    moved = -m.sum() * skew(d + p) @ skew(d + p)
    right = about(link) + m.sum() * skew(d) @ skew(d) + moved
    printed = about(link) + m.sum() * (skew(d) + skew(d)) + moved
    truth = about(link + p)
    errors = (float(np.abs(printed - truth).max()), float(np.abs(right - truth).max()))
    return _row("(16): tensor of link j", "m_j (d^ + d^)", "m_j (d^ d^)", errors)


def _acceleration() -> Row:
    """Check the acceleration of a point of a rotating body."""
    w, dw, v, p = np.random.default_rng(16).normal(size=(4, 3))
    truth = np.cross(dw, p) + np.cross(w, np.cross(w, p))
    printed = (skew(w) + skew(v) @ skew(w)) @ p
    right = (skew(dw) + skew(w) @ skew(w)) @ p
    errors = (float(np.abs(printed - truth).max()), float(np.abs(right - truth).max()))
    return _row("(20): matrix U_i", "[w] + [v][w]", "[dw/dt] + [w][w]", errors)


def _moment() -> Row:
    """Check which first moment enters the moment of a link about frame i + 1's origin."""
    link, m, beyond, M, _ = _points(17)
    a = np.random.default_rng(18).normal(size=3)
    truth = np.cross(link, m[:, None] * a).sum(axis=0)
    printed = np.cross(m @ link + M @ beyond, a)
    errors = (float(np.abs(printed - truth).max()), float(np.abs(np.cross(m @ link, a) - truth).max()))
    return _row("(24): moment term", "first moment with index i + 1", "first moment of link i itself", errors)


_VALUES = 10
"""Number of trajectories, each of which contributes one value to every line of Tables 1 and 2."""


def consistency(quick: bool = False) -> Part:
    """Check whether ten values can have the statistics of Tables 1 and 2."""
    data = read_printed("izaguirre1992")
    rows: list[Row] = []
    for number in (1, 2):
        lines = data[f"table{number}"]
        wrong = {name: found for name, line in lines.items() if (found := _impossible(*line))}
        what = f"Table {number}: lines with possible statistics of ten values"
        note = "the others are below" if wrong else ""
        rows.append(count_right(what, len(lines), len(lines) - len(wrong), note=note))
        for name, found in wrong.items():
            rows += [
                derive(f"Table {number}, {name}: {quantity}", was, right, note=why)
                for quantity, was, right, why in found
            ]
    listing, table = data["constants"]["Z6"], data["table2"]["z6"][0]
    rows.append(derive("Appendix A: Z6, also in Table 2", listing, table, note="the program lacks a digit"))
    return Part(title="Tables 1 and 2: consistency", source="Tables 1 and 2, Appendix A", rows=tuple(rows))


def _impossible(average: float, deviation: float, maximum: float, minimum: float) -> list[tuple[str, str, str, str]]:
    """Find impossible statistics of ten values; each as quantity, printed value, right value and reason."""
    found = []
    low, high = sorted((minimum, maximum))
    if maximum < minimum:
        right = f"maximum {high:g}, minimum {low:g}"
        found.append(("range", f"maximum {maximum:g}, minimum {minimum:g}", right, "maximum and minimum are exchanged"))
    if not low <= average <= high:
        found.append(
            ("average", f"{average:g}", f"between {low:g} and {high:g}", "an average lies between minimum and maximum")
        )
        return found
    least, most = _deviations(average, high, low)
    if not 0.98 * least <= deviation <= 1.02 * most:
        note = "Ten values with this average, minimum and maximum cannot have the printed deviation"
        found.append(("deviation", f"{deviation:g}", f"between {least:.4g} and {most:.4g}", note))
    return found


def _deviations(average: float, maximum: float, minimum: float) -> tuple[float, float]:
    """Smallest and largest standard deviation of ten values; the smallest with divisor 10, the largest with divisor 9.

    It is smallest where all values but the extremes are equal, and largest where all are extremes (Bhatia and Davis).
    """
    others = (_VALUES * average - maximum - minimum) / (_VALUES - 2)
    squares = (maximum - average) ** 2 + (average - minimum) ** 2 + (_VALUES - 2) * (others - average) ** 2
    most = _VALUES * (maximum - average) * (average - minimum) / (_VALUES - 1)
    return float(np.sqrt(squares / _VALUES)), float(np.sqrt(most))


_REPAIR = {  # terms that the program omits for link 3: its share of the products of inertia JS413 and JS423
    "JS313": "JS313 + S3*JS423",
    "JS323": "JS323 - C3*JS423",
    "JS311": "JS311 - 2*S3C3*JS413",
    "JS322": "JS322 + 2*S3C3*JS413",
    "JS312": "JS312 + (C3C3 - S3S3)*JS413",
}


_OMITTED = "the products JS413 and JS423 are absent from all five statements of link 3"


@cache
def printed_program() -> tuple[tuple[str, str], ...]:
    """Read the variables and formulas of the program as printed."""
    text = (DATA / "izaguirre1992_listing.txt").read_text(encoding="utf-8")
    return tuple((name.strip(), formula.strip()) for name, formula in (line.split("=") for line in text.splitlines()))


def _mend_program() -> tuple[dict[str, str], list[str]]:
    """Balance the parentheses of the program; return it and the names of the changed lines."""
    program, broken = {}, []
    for name, formula in printed_program():
        try:
            operators(formula)
        except ArgumentError:
            broken.append(name)
        program[name] = mend_parentheses(formula)
    return program, broken


def _constants() -> dict[str, float]:
    c: dict[str, float] = dict(read_printed("izaguirre1992")["constants"])
    c["Z6"] = read_printed("izaguirre1992")["table2"]["z6"][0]  # the printed program lacks a digit
    c |= {"FP42": c["D4"] * c["M6"], "FP32": -c["D3"] * c["M6"], "FP21": c["A2"] * c["M6"]}
    c |= {f"NP4{k}": c["M6"] * c["D4"] ** 2 for k in ("11", "33")}
    c |= {f"NP3{k}": c["M6"] * c["D3"] ** 2 for k in ("11", "33")}
    return c | {f"NP2{k}": c["M6"] * c["A2"] ** 2 for k in ("22", "33")}


def run_program(q: Floats, *, repaired: bool) -> tuple[Floats, Floats]:
    """Compute inertia matrices (N, 6, 6) and gravity torques (N, 6) at positions (N, 6) with the printed program."""
    names: dict[str, object] = dict(_constants())
    names |= {f"S{j + 1}": np.sin(q[:, j]) for j in range(6)} | {f"C{j + 1}": np.cos(q[:, j]) for j in range(6)}
    names |= {"C23": np.cos(q[:, 1] + q[:, 2]), "S23": np.sin(q[:, 1] + q[:, 2])}
    for name, formula in _mend_program()[0].items():
        names[name] = evaluate(formula, names)
        if name == "JS311" and repaired:
            names |= {key: evaluate(text, names) for key, text in _REPAIR.items()}
    D, G = np.zeros((len(q), 6, 6)), np.zeros((len(q), 6))
    for i in range(6):
        G[:, i] = names[f"DI{i + 1}"]  # type: ignore[call-overload]
        for j in range(i, 6):
            D[:, i, j] = D[:, j, i] = names[f"DIJ{i + 1}{j + 1}"]  # type: ignore[call-overload]
    return D, G


def listing(quick: bool = False) -> Part:
    """Run the printed program, find its errors, and show it beside the generated one."""
    q = np.random.default_rng(11).uniform(-np.pi, np.pi, (200, 6))
    M, G = inertia_matrix(robots.puma260(), q), gravity_torque(robots.puma260(), q)
    (D, g), (mended, _) = run_program(q, repaired=False), run_program(q, repaired=True)
    error = np.abs(D - M).max(axis=0)
    wrong = [f"D{i + 1}{j + 1}" for i in range(6) for j in range(i, 6) if error[i, j] > 1e-9]
    right = 21 - len(wrong)
    broken = _mend_program()[1]
    rows = [
        count_right("lines with balanced parentheses", len(printed_program()), len(printed_program()) - len(broken)),
        *(
            derive(f"line {n}", f, mend_parentheses(f), note="parentheses balanced")
            for n, f in printed_program()
            if n in broken
        ),
        row(
            "gravity terms D1 to D6", "exact", f"error {np.abs(g - G).max():.0e} N m", bool(np.abs(g - G).max() < 1e-9)
        ),
        count_right("exact inertia terms", 21, right, note="the others are below", not_scan=_OMITTED),
    ]
    for name in wrong:
        i, j = int(name[1]) - 1, int(name[2]) - 1
        largest = float(error[i, j])
        rows.append(
            derive(
                f"inertia term {name}",
                "without JS413 and JS423",
                "with JS413 and JS423",
                agrees=largest < 1e-9,
                note=f"The printed program is wrong by up to {largest:.2g} kg m^2 "
                f"({100 * largest / float(np.abs(M[:, i, j]).max()):.0f} %); terms for link 3 are missing: "
                + "; ".join(f"{k} = {v}" for k, v in _REPAIR.items()),
                not_scan=_OMITTED,
            )
        )
    fixed = float(np.abs(mended - M).max())
    rows.append(
        row(
            "inertia terms with these terms added",
            "exact",
            f"all 21 terms are exact to {fixed:.0e} kg m^2",
            fixed < 1e-9,
        )
    )
    return Part(
        title="The generated program",
        source="Appendix A",
        rows=tuple(rows),
        assumptions="Z6 is taken from Table 2; the printed program lacks a digit of it.",
    )


def _count_operators(multiplications: int, additions: int) -> list[Row]:
    """Count the operators of the printed program and of the corrected one."""
    program = _mend_program()[0]
    total, fixed = _split_operators(program, set(_constants()))
    products = total.products + total.doublings
    least = total.sums + total.negations + 2
    most = least + fixed.sums + fixed.negations
    repair = sum(map(operators, _REPAIR.values()), total)
    return [
        derive("multiplications in the printed program", multiplications, products),
        row(
            "additions in the printed program",
            str(additions),
            f"{total.sums} sums, {total.negations} sign changes, 2 sums of angles: {least} in all; "
            f"{most} with constants",
            additions in (least, most),
            reason="both countings miss the printed number by two",
        ),
        row(
            "operations of the corrected program",
            f"{multiplications} multiplications",
            f"{repair.products + repair.doublings} multiplications, {repair.sums} sums",
            repair == total,
            reason="the paper counts the printed program, which omits terms of D11, D12 and D13",
        ),
    ]


def _split_operators(program: Mapping[str, str], constants: set[str]) -> tuple[OperatorCount, OperatorCount]:
    """Count the operators that depend on the positions, and those of constants."""
    known, varying, fixed = set(constants), OperatorCount(), OperatorCount()
    for name, formula in program.items():
        of_constants = constant_operators(formula, known)
        everything = operators(formula)
        fixed += of_constants
        varying += everything - of_constants
        if variables(formula) <= known:
            known.add(name)
    return varying, fixed


def counts(quick: bool = False) -> Part:
    """Compare the operation counts of the printed program with ours for the same tasks."""
    data = read_printed("izaguirre1992")["operations"]
    rows = _count_operators(*data["inertia_and_gravity"])
    plain = generate_c(robots.puma260(), ["velocity_torque"])
    links = generate_c(robots.puma260().with_terms(), ["velocity_torque"])
    loaded = generate_c(robots.puma260(), ["velocity_torque"], load="struct")
    for key, count in (
        ("inertia_and_gravity", plain.counts["background_inertia"]),
        ("velocity_torques", links.counts["velocity_torque"]),
        ("inertia_and_gravity_with_load", loaded.counts["background_inertia"]),
        ("velocity_torques_with_load", loaded.counts["velocity_torque"]),
    ):
        fewer = count.multiplications <= data[key][0] and count.additions <= data[key][1]
        rows.append(
            row(
                f"{key.replace('_', ' ')}: multiplications / additions",
                " / ".join(str(x) for x in data[key]),
                f"{count.multiplications} / {count.additions}",
                note="ours needs fewer operations and is exact" if fewer else "ours needs more operations",
            )
        )
    synchronous = plain.counts["synchronous"]
    rows.append(
        row(
            "synchronous task per joint: multiplications / additions",
            "6 / 6",
            f"{synchronous.multiplications // 6} / {synchronous.additions // 6}",
            note="the sum of six products takes five additions; gravity and velocity torques take one each. The "
            "paper's six follow if a background task adds gravity and velocity torques beforehand",
        )
    )
    return Part(title="Operation counts", source=data["source"], rows=tuple(rows))
