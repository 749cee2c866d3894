"""Widths of selected friction terms are those of the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from campaigns.interval_conditions import make_robot, record
from dynid.estimation.equations import build_equations
from dynid.kernels import inverse_dynamics
from dynid.links.common.term_widths import _beyond, _explained, refine_widths
from dynid.terms.base import Reference
from dynid.terms.friction import SmoothSign, Stribeck
from dynid.terms.load_dependent import LoadFriction


@pytest.mark.parametrize("width", [0.03, 0.1, 0.3])
def test_a_planted_width_is_found(width: float) -> None:
    robot = make_robot("ddarm")
    run = record(robot, "white", 5)
    links = inverse_dynamics(robot.with_terms(), run.q, run.dq, run.ddq)
    planted = replace(run, effort=run.effort + 0.1 * np.abs(links) * np.tanh(run.dq / width))
    load = Reference(robot.parameter_vector).of_links(3)
    terms = [LoadFriction(friction=SmoothSign(joint=j, scale=0.1), reference=load) for j in range(3)]
    found = refine_widths(build_equations(robot, [planted], terms=terms), terms)
    scales = [term.friction.scale for term in found.values() if isinstance(term, LoadFriction)]  # type: ignore[attr-defined]
    assert len(scales) == 3
    # the mean loads are 116, 19 and 4 N m, the friction a tenth of them, the noise 0.2 N m
    assert (np.abs(np.log(scales) - np.log(width)) < (0.03, 0.1, 0.3)).all()


def test_without_evidence_widths_stay() -> None:
    robot = make_robot("ddarm")
    run = record(robot, "white", 5)
    terms = [Stribeck(joint=j, scale=0.2) for j in range(3)]
    assert refine_widths(build_equations(robot, [run], terms=terms), terms) == {term: term for term in terms}


def test_the_load_of_the_links_leaves_friction_out() -> None:
    robot = make_robot("ddarm")
    run = record(robot, "white", 5)
    theta = Reference(robot.parameter_vector).of_links(3).theta
    found = inverse_dynamics(robot.with_parameters(theta), run.q, run.dq, run.ddq)
    np.testing.assert_allclose(found, inverse_dynamics(robot.with_terms(), run.q, run.dq, run.ddq), atol=1e-12)


@pytest.mark.parametrize("dependent", [False, True])
def test_what_fixed_columns_leave_explains_as_much_as_all_rows(dependent: bool) -> None:
    generator = np.random.default_rng(3)
    table, side = generator.normal(size=(60, 12)), generator.normal(size=60)
    if dependent:
        table[:, 3] = table[:, 1] - table[:, 2]
    triangle = np.linalg.qr(np.column_stack([table / np.linalg.norm(table, axis=0), side]), mode="r")[:12]
    columns, right = _beyond(triangle[:, :12], triangle[:, 12], 8)
    fits = [table[:, [*range(8), *last]] for last in ([], [8], [9], [10], [11])]
    none, *left = [np.sum((side - X @ np.linalg.lstsq(X, side, rcond=1e-9)[0]) ** 2) for X in fits]
    np.testing.assert_allclose(_explained(columns[:, :0], columns, right), none - np.array(left), rtol=1e-9)
