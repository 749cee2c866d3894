"""The papers' results, symbol by symbol."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.identifiability.base import base_parameters
from dynid.robot import zoo
from dynid.robot.formats.modified_dh import modified_dh

METHODS = ("closed-form", "minimal-combinations", "structural", "numeric")
TAIL = "(M4 + M5 + M6)"
LONG_TAIL = "(M3 + M4 + M5 + M6)"
PUMA560 = {  # [GautierKhalil1990] section V, every relation of the final set
    "ZZR1": f"ZZ1 + YY2 + YY3 + 2*R3*MZ3 + (D3^2 + R3^2)*M3 + (D3^2 + D4^2 + R3^2)*{TAIL}",
    "XXR2": f"XX2 - YY2 - D3^2*{LONG_TAIL}",
    "XZR2": f"XZ2 - D3*MZ3 - D3*R3*{LONG_TAIL}",
    "ZZR2": f"ZZ2 + D3^2*{LONG_TAIL}",
    "MXR2": f"MX2 + D3*{LONG_TAIL}",
    "XXR3": f"XX3 - YY3 + YY4 + 2*R4*MZ4 + (R4^2 - D4^2)*{TAIL}",
    "XYR3": f"XY3 - D4*MZ4 - D4*R4*{TAIL}",
    "ZZR3": f"ZZ3 + YY4 + 2*R4*MZ4 + (D4^2 + R4^2)*{TAIL}",
    "MXR3": f"MX3 + D4*{TAIL}",
    "MYR3": f"MY3 + MZ4 + R4*{TAIL}",
    "XXR4": "XX4 - YY4 + YY5",
    "ZZR4": "ZZ4 + YY5",
    "MYR4": "MY4 - MZ5",
    "XXR5": "XX5 - YY5 + YY6",
    "ZZR5": "ZZ5 + YY6",
    "MYR5": "MY5 + MZ6",
    "XXR6": "XX6 - YY6",
}
PUMA560_NAMES = (
    "ZZR1 XXR2 XY2 XZR2 YZ2 ZZR2 MXR2 MY2 XXR3 XYR3 XZ3 YZ3 ZZR3 MXR3 MYR3 XXR4 XY4 XZ4 YZ4 ZZR4 MX4 MYR4 "
    "XXR5 XY5 XZ5 YZ5 ZZR5 MX5 MYR5 XXR6 XY6 XZ6 YZ6 ZZ6 MX6 MY6"
)


@pytest.mark.parametrize("method", METHODS)
def test_puma560_relations(method):
    order = ["ZZ1"] if method == "minimal-combinations" else None  # Lin's space in Gautier and Khalil's columns
    base = base_parameters(zoo.puma560(), method, order=order)
    assert " ".join(base.names) == PUMA560_NAMES
    relations = {c.name: c.right_side() for c in base.combinations if c.is_regrouped}
    assert relations == PUMA560
    assert base.unidentifiable == ["XX1", "XY1", "XZ1", "YY1", "YZ1", "MX1", "MY1", "MZ1", "M1", "MZ2", "M2"]
    assert len(base.layout) - base.rank == 24


def test_3r_robot_has_the_names_of_table_6():
    base = base_parameters(zoo.gautier_khalil_3r())
    # the paper writes XY_3, ZZ_3, ... because nothing is regrouped into them; XXR3 absorbs YY3
    assert " ".join(base.names) == "ZZR1 XXR2 XY2 XZR2 YZ2 ZZR2 MXR2 MY2 XXR3 XY3 XZ3 YZ3 ZZ3 MX3 MY3"


@pytest.mark.parametrize("method", METHODS)
def test_direct_drive_arm_in_the_papers_frames(method):
    """[Atkeson1986] section 4.2.1: three lists, and the six combinations of Table 5 on the paper's own choice."""
    kept = ["YZ2", "YY3", "ZZ2", "ZZ1", "YY2", "MY2"]
    base = base_parameters(zoo.ddarm(), method, order=kept)
    assert base.rank == 15
    assert set(base.identifiable) == set(["MX2", "XY2", "XZ2", "MX3", "MY3", "XY3", "XZ3", "YZ3", "ZZ3"])
    assert set(base.combined) == set(["ZZ1", "MY2", "XX2", "YY2", "YZ2", "ZZ2", "M3", "MZ3", "XX3", "YY3"])
    assert set(base.unidentifiable) == set(["M1", "MX1", "MY1", "MZ1", "XX1", "XY1", "XZ1", "YY1", "YZ1", "M2", "MZ2"])
    l2 = base.symbols["PZ3"]
    assert l2 == 0.45
    expected = {
        "YZR2": {"YZ2": 1, "MZ3": l2},
        "YYR3": {"YY3": 1, "XX3": -1},
        "ZZR2": {"ZZ2": 1, "XX3": 1},
        "ZZR1": {"ZZ1": 1, "XX2": 1, "XX3": 1, "M3": l2**2},
        "YYR2": {"YY2": 1, "XX2": -1, "XX3": -1},
        "MYR2": {"MY2": 1, "MZ3": -1},
    }
    for name, terms in expected.items():
        row = base.grouping[base.names.index(name)]
        found = {base.layout[k].name: row[k] for k in np.flatnonzero(row)}
        assert found == pytest.approx(terms, abs=1e-12)
    assert "YZR2 = YZ2 + PZ3*MZ3" in base.expressions


@pytest.mark.parametrize("method", METHODS)
def test_direct_drive_arm_in_modified_dh_frames(method):
    """The classification depends on the frames: with O2 where axes 2 and 3 meet it is 10 / 11 / 9, still 15 in all."""
    base = base_parameters(modified_dh(zoo.ddarm()).robot, method)
    assert [base.rank, len(base.identifiable), len(base.combined), len(base.unidentifiable)] == [15, 10, 11, 9]
    assert "YZ2" in base.identifiable
    assert {"M2", "MZ2"} <= set(base.combined)


COUNTS = {
    "stanford": (zoo.stanford, 33, 35),
    "scara RRRP": (lambda: zoo.scara(joints="RRRP"), 8, 10),
    "scara RRPR": (lambda: zoo.scara(joints="RRPR"), 8, 10),
    "cartesian": (zoo.cartesian, 3, 3),
    "cylindrical": (zoo.cylindrical, 5, 7),
    "puma560": (zoo.puma560, 36, 38),
    "3R": (zoo.gautier_khalil_3r, 15, 17),
    "direct-drive arm": (zoo.ddarm, 15, 17),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("robot", COUNTS)
def test_counts_upright_and_under_oblique_gravity(robot, method):
    build, upright, oblique = COUNTS[robot]
    assert base_parameters(build(), method).rank == upright
    tilted = build().with_gravity([1.0, 2.0, -9.0])
    assert base_parameters(tilted, method).rank == oblique


def test_puma560_without_gravity_loses_two():
    for method in METHODS:
        assert base_parameters(zoo.puma560().with_gravity([0, 0, 0]), method).rank == 34


# --- PUMA 260, [Izaguirre1992] Table 1


@pytest.mark.parametrize("method", METHODS)
def test_puma260_counts(method):
    assert base_parameters(zoo.puma260(), method).rank == 52
    assert base_parameters(zoo.puma260().with_terms(), method).rank == 36
