"""Gautier and Khalil 1992, Tables 3 to 5 and 8 to 10: every printed number has a row, and the noise its one reading."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.points.energy_points import EnergyPoints
from dynid.robot import zoo
from dynid.studies.papers import Row, Verdict
from dynid.studies.papers.data import read_printed

NUMBERS = {3: 18, 4: 18, 5: 18, 8: 18, 9: 18, 10: 18}
"""Printed numbers of each table: two sequences, three noise levels, three columns."""
READING = "noise of positions by {}: |dW|/|W| over k, random sequences, r = {}"


def test_every_printed_number_has_a_row(rows: dict[tuple[str, str], Row]) -> None:
    for table, count in NUMBERS.items():
        found = [what for paper, what in rows if paper == "gautier1992" and what.startswith(f"Table {table}: ")]
        assert sum("noise on" in what for what in found) == count


@pytest.mark.parametrize("r", [15, 30])
def test_half_the_range_is_the_only_reading(rows: dict[tuple[str, str], Row], r: int) -> None:
    assert rows["gautier1992", READING.format("the full range", r)].verdict is Verdict.DIFFERS
    assert rows["gautier1992", READING.format("half the range", r)].verdict is Verdict.CONSTRUCTED


@pytest.mark.parametrize(("half", "velocity"), [(30, 1.03), (60, 0.74), (90, 0.68), (110, 0.68), (135, 0.65)])
def test_the_full_range_is_refuted_for_all_limits_that_table_2_admits(half: float, velocity: float) -> None:
    bound = np.deg2rad(half)
    model = EnergyPoints(zoo.gautier_khalil_3r(), lower=-bound, upper=bound, velocity=velocity)
    columns = read_printed("gautier1992")["noise"]["30"]["dW_columns"]
    printed = np.median(np.array([columns["random_motion"], columns["random_both"]]) / [0.001, 0.01, 0.1])
    rng = np.random.default_rng(0)
    medians = []
    for share in (0.5, 1.0):
        ratios = []
        for _ in range(60):
            points = model.random(30, rng)
            q = points.q + 0.0025 * share * 2.0 * bound * rng.normal(size=points.q.shape)
            W = model.matrix(q, points.dq + 0.0025 * velocity * rng.normal(size=points.dq.shape))
            ratios.append(np.linalg.norm(W - points.W, 2) / np.linalg.norm(points.W, 2) / 0.01)
        medians.append(np.median(ratios))
    assert abs(np.log(medians[0] / printed)) < np.log(1.5) < abs(np.log(medians[1] / printed))


def test_equilibrium_is_not_reproduced(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["gautier1992", "equilibrium S after"].verdict is Verdict.DIFFERS


def test_bounds_hold(rows: dict[tuple[str, str], Row]) -> None:
    found = [row for (paper, what), row in rows.items() if paper == "gautier1992" and what.startswith("(11), ")]
    assert len(found) == 2
    assert all(row.verdict is Verdict.REPRODUCED for row in found)
