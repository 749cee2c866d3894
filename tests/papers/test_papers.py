"""The five papers in their quick form: what must be reproduced, and which misprints must be found."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.compiled import gravity_torque, inertia_matrix
from dynid.robot import zoo
from papers import PAPERS, Row, Verdict, reproduce, write_results
from papers.izaguirre1992_printed import run_program
from papers.verdicts import Draw, judge_jointly

REPRODUCED = [
    ("gautier1990", "minimum parameters"),
    ("gautier1990", "all parameters without effect"),
    ("gautier1990", "eliminated by regrouping"),
    ("gautier1990", "eliminated parameters"),
    ("gautier1990", "remaining parameters"),
    *(("gautier1990", f"step b, link {j}: correct relations") for j in range(2, 7)),
    ("gautier1990", "(19): prismatic joint parallel to r1, on the link of r1, alpha = 0 deg"),
    ("gautier1990", "(20): prismatic joint parallel to r1, on a perpendicular prismatic joint, alpha = 90 deg"),
    ("lin1995", "theorem 2, PUMA 560 (r = 1, s = 2)"),
    ("lin1995", "theorem 2, Stanford arm (r = 1, s = 2, joint 3 slides)"),
    ("lin1995", "theorem 2, R P R P R R P (r = 1, s = 6, joints 2 and 4 slide between)"),
    ("lin1995", "theorem 2, random robots"),
    ("gautier1992", "(28): coefficients of the fifth-order segments"),
    ("izaguirre1992", "parameters"),
    ("izaguirre1992", "independent parameters"),
    ("izaguirre1992", "independent inertial parameters of links"),
    ("izaguirre1992", "gravity terms D1 to D6"),
    ("izaguirre1992", "inertia terms with these terms added"),
    ("atkeson1986", "identifiable"),
    ("atkeson1986", "identifiable in combinations"),
    ("atkeson1986", "not identifiable"),
    ("atkeson1986", "reduced parameters"),
    ("atkeson1986", "rank of K^T K"),
]

MISPRINTS = {  # what the software must find wrong, and the right value it must give
    ("gautier1990", "(15), first line"): "XXR(j) = XX(j) - YY(j)",
    ("gautier1990", "(16), line YY: coefficient of XZ"): "-2 s S C",
    ("gautier1992", "(15): Cond(W) > 1"): ">= 1",
    ("gautier1992", "section 5.2: equation of the velocity's extrema"): "3 a3 + 6 a4 u + 10 a5 u^2",
    ("gautier1992", "Table 7, XXR2: X"): "-2.05",
    ("gautier1992", "Table 11, ZZR1: estimate"): "5.0297",
    ("gautier1992", "Table 9: |dW|/|W| at k = 0.01 fits its neighbours, random sequence"): "by interpolation",
    ("gautier1992", "Table 10: |dW|/|W| at k = 0.01 fits its neighbours, random sequence"): "by interpolation",
    ("izaguirre1992", "section 7: parameters fitted in Table 1"): "52",
    ("izaguirre1992", "gravity coefficient c13, from Table 2 [N m]"): "-1.76865",
    ("izaguirre1992", "Table 1, ds4: deviation"): "between 0.02294 and 0.05233",
    ("izaguirre1992", "Table 1, ia1: deviation"): "between 0.01996 and 0.04061",
    ("izaguirre1992", "Table 1, ds4: range"): "maximum 0.146658, minimum 0.045901",
    ("izaguirre1992", "line JS412"): "((S4C4 * (JA511 - JA533)))",
    ("izaguirre1992", "line JS312"): "((S3C3 * (JA411 - JA433)))",
    ("izaguirre1992", "line JS233"): "(JA333 + (2.0 * ((T1224 * BS22) + (T1214 * BS21))))",
    ("izaguirre1992", "inertia term D11"): "with JS413 and JS423",
    ("izaguirre1992", "inertia term D12"): "with JS413 and JS423",
    ("izaguirre1992", "inertia term D13"): "with JS413 and JS423",
    ("izaguirre1992", "(1): velocity terms"): "D_ijk dq_j dq_k",
    ("izaguirre1992", "(8): last diagonal entry"): "lx^2 + ly^2",
    ("izaguirre1992", "recursion of the masses"): "M_j = M_(j+1) + m_j",
    ("izaguirre1992", "(15): first moment of the compound link j"): "inner term L_(j+1)",
    ("izaguirre1992", "(16): tensor of link j"): "m_j (d^ d^)",
    ("izaguirre1992", "(20): matrix U_i"): "[dw/dt] + [w][w]",
    ("izaguirre1992", "(24): moment term"): "first moment of link i itself",
    ("atkeson1986", "Table 5, SP4, estimated"): "15.4029",
    ("atkeson1986", "Table 5, SP2, CAD"): "-0.2735",
    ("atkeson1986", "Table 5, SP4, CAD"): "12.8163",
    ("atkeson1986", "third row of [w x]"): "-y x 0",
    ("atkeson1986", "sphere: moment of inertia about its centre over the one about a tangent"): "2/7",
    ("atkeson1986", "circle of 5 cm: time of one revolution at which inertial forces equal gravity [ms]"): "430",
    ("atkeson1986", "(15): link j's wrench at joint i"): "U_ij = T_i ... T_(j-1) A_j",
    ("atkeson1986", "(A3): left side"): "integral of the acceleration",
    ("gautier1992", "(20): indices of the limits"): "q_Ij <= q_j <= q_Fj",
    ("lin1995", "(92): entry 13 of W"): "-kx",
    ("atkeson1986", "n1, coefficient of SP2"): "a1 c2^2",
    ("atkeson1986", "n1, coefficient of XY3"): "4 d1 d3 c2^2 c3^2",
    ("atkeson1986", "n1, coefficient of ZZ3"): "a1 c2^2 - a3 c2 - 2 d1 d2 s2 c2 + d2 d3 s2",
    ("atkeson1986", "n2, coefficient of SP5"): "-d1^2 s2 c2",
    ("atkeson1986", "n3, coefficient of MY3"): "-0.45 a1 c2 c3 + 0.45 d1^2 s3 - g s2 c3",
}

CHECKED = [  # rows that only redo what the paper computes from its own numbers
    ("gautier1990", "(14), correct lines"),
    ("izaguirre1992", "multiplications in the printed program"),
    ("gautier1992", "example 1: condition number, 1-norm"),
    ("gautier1992", "example 2: relative change of X, case 2"),
    ("gautier1992", "(23b): variables of the search for 15 equations, (r + 1)(2 n - 1)"),
    ("gautier1992", "Table 6: relative error of X, also in Table 3"),
    ("atkeson1986", "Table 5, SP1, estimated"),
]

FAILED = {  # what must not be called reproduced, and what our side or the reason says
    (
        "gautier1990",
        "rule III-B-2: MX, MY of r1 have no effect if r1 = 1, for every direction of gravity",
    ): "parallel to g",
    ("gautier1992", "Tables 3 to 5 and 8 to 10 together"): "expected",
    ("gautier1992", "Table 3"): "of 18 outside",
    ("gautier1992", "equilibrium S after"): "does not reach",
    ("izaguirre1992", "additions in the printed program"): "47 sums, 19 sign changes, 2 sums of angles: 68 in all; 72",
    ("izaguirre1992", "operations of the corrected program"): "105 multiplications, 53 sums",
    ("izaguirre1992", "Figs. 6, 7: open-loop control of slow moves"): "falls",
}

COUNTED = (
    ": correct",
    ", correct",
    "consistent lines",
    "lines with possible",
    "exact inertia terms",
    "section 5.2: peak",
)
"""Words in rows that count the right lines of a table, whose wrong lines have rows of their own; and one long title."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Row]:
    """By paper and by what they compare; each stands in the files, too."""
    folder, made = tmp_path_factory.mktemp("papers"), reproduce(list(PAPERS), quick=True)
    write_results(made, folder)
    found = {(name, row.what): row for name, (_, parts) in made.items() for part in parts for row in part.rows}
    assert len(json.loads((folder / "verdicts.json").read_text())) == len(found)  # no two rows of a paper are alike
    assert (folder / "results.md").read_text().count("Source: ") == sum(len(parts) for _, parts in made.values())
    return found


@pytest.mark.parametrize("key", REPRODUCED, ids=lambda key: " ".join(key))
def test_exact_results(rows: dict[tuple[str, str], Row], key: tuple[str, str]) -> None:
    assert rows[key].verdict is Verdict.REPRODUCED, rows[key]


@pytest.mark.parametrize("key", MISPRINTS, ids=lambda key: " ".join(key))
def test_misprints_are_found(rows: dict[tuple[str, str], Row], key: tuple[str, str]) -> None:
    assert rows[key].verdict in (Verdict.MISPRINT, Verdict.SCAN), rows[key]
    assert MISPRINTS[key] in rows[key].ours


def test_no_other_formula_of_appendix_1_and_no_other_line_is_accused(rows: dict[tuple[str, str], Row]) -> None:
    accused = {key for key, row in rows.items() if row.verdict in (Verdict.MISPRINT, Verdict.SCAN)}
    allowed = {
        ("izaguirre1992", "lines with balanced parentheses"),
        ("izaguirre1992", "Appendix A: Z6, also in Table 2"),
    }
    counted = {key for key in accused if any(word in key[1] for word in COUNTED)}
    assert accused - counted == set(MISPRINTS) | allowed


@pytest.mark.parametrize("key", CHECKED, ids=lambda key: " ".join(key))
def test_printed_arithmetic_is_called_so(rows: dict[tuple[str, str], Row], key: tuple[str, str]) -> None:
    assert rows[key].verdict is Verdict.CHECKED, rows[key]


@pytest.mark.parametrize("key", FAILED, ids=lambda key: " ".join(key))
def test_what_is_not_reproduced(rows: dict[tuple[str, str], Row], key: tuple[str, str]) -> None:
    assert rows[key].verdict is Verdict.FAILED, rows[key]
    assert FAILED[key] in rows[key].ours + rows[key].note


def test_the_sixteen_extrema_of_table_2_have_rows(rows: dict[tuple[str, str], Row]) -> None:
    assert sum("of ten random sequences" in what for _, what in rows) == 16


@pytest.mark.parametrize(("place", "shift"), [(1, 0.037), (2, -0.043), (3, -0.021), (4, 0.018)])
def test_loads_of_table_1(rows: dict[tuple[str, str], Row], place: int, shift: float) -> None:
    for form, most in (("static", (0.010, 1e-3)), ("dynamic", (0.040, 2e-3))):
        row = rows["atkeson1986", f"place {place}, {form}: mass [kg], change of c_y [m]"]
        away = np.abs(np.array([float(word) for word in row.ours.split(", ")]) - (1.106, shift))
        assert np.all(away < most), row


def test_special_motions_of_table_2_improve_the_inertia(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["atkeson1986", "special motions and the faster arm give smaller errors"].ours == "both smaller"


def test_a_table_is_judged_as_a_whole() -> None:
    rng = np.random.default_rng(0)
    ours = rng.normal(size=1000)
    fair = [Draw.of("", paper, ours) for paper in rng.normal(size=40)]
    shifted = [Draw.of("", paper, ours) for paper in 1.0 + rng.normal(size=40)]  # most lie within their bands
    assert sum(draw.is_inside for draw in shifted) > 28
    verdicts = [judge_jointly("", draws, assumption="ours", reason="").verdict for draws in (fair, shifted)]
    assert verdicts == [Verdict.ASSUMED, Verdict.FAILED]


def test_the_printed_program_once_repaired() -> None:
    q = np.random.default_rng(1).uniform(-3, 3, (20, 6))
    D, G = run_program(q, repaired=True)
    np.testing.assert_allclose(D, inertia_matrix(zoo.puma260(), q), atol=1e-12)
    np.testing.assert_allclose(G, gravity_torque(zoo.puma260(), q), atol=1e-12)
