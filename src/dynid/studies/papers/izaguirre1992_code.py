"""Izaguirre et al. 1992, Appendix A: the printed program run line by line, counted, and held against ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.export.c.c_package import generate_c
from dynid.kernels import gravity_torque, inertia_matrix
from dynid.robot import zoo
from dynid.studies.papers.data import printed
from dynid.studies.papers.formulas import (
    OperatorCount,
    constant_operators,
    evaluate,
    mend_parentheses,
    operators,
    variables,
)
from dynid.studies.papers.reproduction import Listing, Part, Row, Verdict, checked, equal, in_kind

__all__ = ["counts", "listing", "printed_program", "run_program"]

Floats = NDArray[np.float64]
_REPAIR = {  # what link 3 drops: its share of the products of inertia JS413 and JS423
    "JS313": "JS313 + S3*JS423",
    "JS323": "JS323 - C3*JS423",
    "JS311": "JS311 - 2*S3C3*JS413",
    "JS322": "JS322 + 2*S3C3*JS413",
    "JS312": "JS312 + (C3C3 - S3S3)*JS413",
}


@cache
def printed_program() -> tuple[tuple[str, str], ...]:
    """Variables and formulas as printed."""
    text = files("dynid.studies.papers.data").joinpath("izaguirre1992_listing.txt").read_text(encoding="utf-8")
    return tuple((name.strip(), formula.strip()) for name, formula in (line.split("=") for line in text.splitlines()))


def _mended() -> tuple[dict[str, str], list[str]]:
    """The program with parentheses balanced, and the lines that needed it."""
    program, broken = {}, []
    for name, formula in printed_program():
        try:
            operators(formula)
        except ArgumentError:
            broken.append(name)
        program[name] = mend_parentheses(formula)
    return program, broken


def _constants() -> dict[str, float]:
    c: dict[str, float] = dict(printed("izaguirre1992")["constants"])
    c["Z6"] = printed("izaguirre1992")["table2"]["z6"][0]  # the listing has lost a digit
    c |= {"FP42": c["D4"] * c["M6"], "FP32": -c["D3"] * c["M6"], "FP21": c["A2"] * c["M6"]}
    c |= {f"NP4{k}": c["M6"] * c["D4"] ** 2 for k in ("11", "33")}
    c |= {f"NP3{k}": c["M6"] * c["D3"] ** 2 for k in ("11", "33")}
    return c | {f"NP2{k}": c["M6"] * c["A2"] ** 2 for k in ("22", "33")}


def run_program(q: Floats, *, repaired: bool) -> tuple[Floats, Floats]:
    """Inertia matrices (N, 6, 6) and gravity torques (N, 6) that the program gives at positions (N, 6)."""
    names: dict[str, object] = dict(_constants())
    names |= {f"S{j + 1}": np.sin(q[:, j]) for j in range(6)} | {f"C{j + 1}": np.cos(q[:, j]) for j in range(6)}
    names |= {"C23": np.cos(q[:, 1] + q[:, 2]), "S23": np.sin(q[:, 1] + q[:, 2])}
    for name, formula in _mended()[0].items():
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
    """Run the printed program, find what is wrong with it, and show it beside the generated one."""
    q = np.random.default_rng(11).uniform(-np.pi, np.pi, (200, 6))
    M, G = inertia_matrix(zoo.puma260(), q), gravity_torque(zoo.puma260(), q)
    (D, g), (mended, _) = run_program(q, repaired=False), run_program(q, repaired=True)
    error = np.abs(D - M).max(axis=0)
    wrong = [f"D{i + 1}{j + 1}" for i in range(6) for j in range(i, 6) if error[i, j] > 1e-9]
    right = 21 - len(wrong)
    broken = _mended()[1]
    rows = [
        checked("lines with balanced parentheses", len(printed_program()), len(printed_program()) - len(broken)),
        *(
            Row(f"line {n}", f, mend_parentheses(f), Verdict.MISPRINT, "parentheses mended")
            for n, f in printed_program()
            if n in broken
        ),
        in_kind(
            "gravity terms D1 to D6", "exact", f"error {np.abs(g - G).max():.0e} N m", bool(np.abs(g - G).max() < 1e-9)
        ),
        Row("inertia terms that are exact", "21 terms", f"{right} terms; misprints below", Verdict.REPRODUCED),
    ]
    for name in wrong:
        i, j = int(name[1]) - 1, int(name[2]) - 1
        largest = float(error[i, j])
        rows.append(
            Row(
                f"inertia term {name}",
                "exact",
                f"wrong by up to {largest:.2g} kg m^2 ({100 * largest / float(np.abs(M[:, i, j]).max()):.0f} %)",
                Verdict.MISPRINT,
                "right: add what link 3 drops, " + "; ".join(f"{k} = {v}" for k, v in _REPAIR.items()),
            )
        )
    fixed = float(np.abs(mended - M).max())
    rows.append(in_kind("with these terms added", "exact", f"all 21 terms to {fixed:.0e} kg m^2", fixed < 1e-9))
    package = generate_c(zoo.puma260(), ["gravity"])
    source = "\n".join(text for name, text in package.files.items() if name.endswith(".c"))
    theirs = "\n".join(f"{name} = {formula};" for name, formula in printed_program())
    return Part(
        title="The generated program",
        source="Appendix A",
        rows=tuple(rows),
        listings=(Listing("Appendix A, as printed", theirs), Listing("Generated by dynid", _function(source))),
        assumptions="Z6 is taken from Table 2; the listing has lost a digit of it.",
    )


def _function(source: str) -> str:
    """The background task in the generated source."""
    start = source.find("background_inertia(")
    start = source.rfind("\nvoid", 0, start) + 1 if start >= 0 else 0
    end = source.find("\n}", start)
    return source[start : end + 2] if end > 0 else source


def _written(multiplications: int, additions: int) -> list[Row]:
    """Operators of the printed program and of the repaired one, as they are written."""
    program = _mended()[0]
    total, fixed = _counted(program, set(_constants()))
    products = total.products + total.doublings
    least = total.sums + total.negations + 2
    most = least + fixed.sums + fixed.negations
    repair = sum(map(operators, _REPAIR.values()), total)
    return [
        equal("multiplications in the printed program", multiplications, products),
        Row(
            "additions in the printed program",
            str(additions),
            f"{total.sums} sums, {total.negations} sign changes, 2 sums of angles: {least}; {most} with constants",
            Verdict.REPRODUCED if least <= additions <= most else Verdict.DIFFERS,
            "the paper counts sign changes as additions, and constants prepared beforehand in part",
        ),
        Row(
            "operations of the program once it is right",
            f"{multiplications} multiplications",
            f"{repair.products + repair.doublings} multiplications, {repair.sums} sums",
            Verdict.REPRODUCED if repair == total else Verdict.DIFFERS,
            "the paper counts the program as printed, which drops terms of D11, D12 and D13",
        ),
    ]


def _counted(program: Mapping[str, str], constants: set[str]) -> tuple[OperatorCount, OperatorCount]:
    """Operators that depend on the positions, and those of constants."""
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
    """Operators of the printed program, and of ours for the same tasks."""
    data = printed("izaguirre1992")["operations"]
    rows = _written(*data["inertia_and_gravity"])
    plain = generate_c(zoo.puma260(), ["velocity_torque"])
    links = generate_c(zoo.puma260().with_joint_models(), ["velocity_torque"])
    loaded = generate_c(zoo.puma260(), ["velocity_torque"], load="struct")
    for key, count in (
        ("inertia_and_gravity", plain.counts["background_inertia"]),
        ("velocity_torques", links.counts["velocity_torque"]),
        ("inertia_and_gravity_with_load", loaded.counts["background_inertia"]),
        ("velocity_torques_with_load", loaded.counts["velocity_torque"]),
    ):
        fewer = count.multiplications <= data[key][0] and count.additions <= data[key][1]
        rows.append(
            Row(
                f"{key.replace('_', ' ')}: multiplications / additions",
                " / ".join(str(x) for x in data[key]),
                f"{count.multiplications} / {count.additions}",
                Verdict.DIFFERS,
                "ours needs fewer, and is exact" if fewer else "ours costs more",
            )
        )
    synchronous = plain.counts["synchronous"]
    rows.append(
        equal(
            "synchronous task per joint: multiplications / additions",
            "6 / 6",
            f"{synchronous.multiplications // 6} / {synchronous.additions // 6}",
            note="six products with accelerations; our seventh addition is friction",
        )
    )
    return Part(title="Operation counts", source=data["source"], rows=tuple(rows))
