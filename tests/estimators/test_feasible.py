"""Physically consistent estimation: possible bodies, verified optima, bounds, fallback."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dynid.errors import ArgumentError, EstimationError
from dynid.estimators.equations import build_equations
from dynid.estimators.physical import conic
from dynid.estimators.physical.bounds import Bounds
from dynid.estimators.physical.conic import ConeCondition, ConeProgram, solve_cone_program, svec, unsvec
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.estimators.physical.nearest import nearest_possible_body
from dynid.robot import zoo
from dynid.robot.inertia import Inertia
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from estimators.planted import SCARA as ROBOT
from estimators.planted import equations_of, planted_run, truth

MARGIN = 1e-3
LINKS = [body.joint.child for body in ROBOT.bodies]


def program(seed: int) -> ConeProgram:
    """Of two bodies and two numbers that are not negative."""
    rng, ball, units = np.random.default_rng(seed), svec(np.eye(4)), np.eye(22)
    return ConeProgram(
        matrix=rng.normal(size=(11, 22)),
        target=3.0 * rng.normal(size=11),
        centre=np.concatenate([ball, ball, np.ones(2)]),
        pull=np.full(22, 0.1),
        constraints=[
            *(ConeCondition("matrix", -body, -MARGIN * ball) for body in (units[:10], units[10:20])),
            ConeCondition("at most", -units[20:], np.zeros(2)),
        ],
    )


@pytest.mark.parametrize("seed", range(3))
def test_optimality_by_an_independent_check(seed: int) -> None:
    """KKT: the gradient lies in the dual cone and is complementary to the solution."""
    case = program(seed)
    y = solve_cone_program(case)
    gradient = case.matrix.T @ (case.matrix @ y - case.target) + case.pull * (y - case.centre)
    for body in range(2):
        part = slice(10 * body, 10 * body + 10)
        Q, G = unsvec(y[part]) - MARGIN * np.eye(4), unsvec(gradient[part])
        assert np.linalg.eigvalsh(Q)[0] > -1e-6
        assert np.linalg.eigvalsh(G)[0] > -1e-4
        assert abs(np.sum(Q * G)) < 1e-3
    held = slice(20, None)
    assert (y[held] > -1e-7).all()
    assert (gradient[held] > -1e-4).all()
    assert np.abs(gradient[held] * y[held]).max() < 1e-3


@pytest.mark.parametrize(
    ("value", "gap", "beyond", "accepted"),
    [
        (0.5, 0.9e-5, 0.0, 1),
        (0.5, 1.1e-5, 0.0, 0),
        (-20.0, 1.9e-4, 1.9e-5, 1),
        (-20.0, -2.1e-4, 0.0, 0),
        (1.0, 0.0, 2.1e-5, 0),
    ],
)
def test_answers_of_the_solver_are_checked(
    value: float, gap: float, beyond: float, accepted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps and violations up to 1e-5, relative to what is larger than one; the second try counts, too."""
    answer = SimpleNamespace(x=np.ones(3), obj_val=value, obj_val_dual=value + gap)
    tries = [(None, "failed"), (answer, "Solved")]
    monkeypatch.setattr(conic, "_call", lambda _: tries.pop(0))
    case = ConeProgram(
        matrix=np.eye(3), target=np.full(3, 0.5), centre=np.zeros(3), pull=np.zeros(3),
        constraints=[ConeCondition("at most", np.eye(3), np.full(3, 1.0 - beyond))],
    )  # fmt: skip
    if accepted:
        np.testing.assert_array_equal(solve_cone_program(case), np.ones(3))
    else:
        with pytest.raises(EstimationError, match="passes its check"):
            solve_cone_program(case)


def test_bounds_hold() -> None:
    equations = equations_of(ROBOT, noise=0.1)
    bounds = Bounds(mass={LINKS[1]: (1.0, 2.0)}, known=(LINKS[0],), total_mass=(1.0, 100.0))
    estimate = FeasibleWLS(bounds=bounds).solve(equations)
    assert estimate.standard is not None
    assert 1.0 - 1e-4 <= estimate.standard[19] <= 2.0 + 1e-4
    np.testing.assert_allclose(estimate.standard[:10], ROBOT.parameter_vector[:10], atol=1e-5)


def test_contradictory_bounds_are_named() -> None:
    bounds = Bounds(mass={LINKS[1]: (50.0, 60.0)}, total_mass=(0.0, 20.0))
    with pytest.raises(EstimationError, match=rf"satisfies mass of {LINKS[1]} in \[50, 60\] kg and total mass"):
        FeasibleWLS(bounds=bounds).solve(equations_of(ROBOT, noise=0.1))


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError):
        FeasibleWLS(margin=2.0)
    with pytest.raises(ArgumentError, match="no joint moves"):
        FeasibleWLS(bounds=Bounds(mass={"nobody": (0.0, 1.0)})).solve(equations_of(ROBOT))


def test_torques_without_noise() -> None:
    """Rounding is all that is left over; the prior's weight must not be chosen by its sign."""
    prior = zoo.ur10e().with_terms(RotorInertia(), Viscous(), Coulomb(), Offset())
    equations = build_equations(prior, planted_run(prior.with_parameters(1.2 * prior.parameter_vector)))
    planted = 1.2 * truth(equations)
    np.testing.assert_allclose(FeasibleWLS().solve(equations).values, planted, atol=1e-3 * np.abs(planted).max())


def test_one_sided_bounds() -> None:
    equations, inf = equations_of(ROBOT, noise=0.05), np.inf
    wide = Bounds(
        mass={LINKS[1]: (1.0, inf)},
        total_mass=(-inf, 1e3),
        com_box={LINKS[2]: ([-inf, -inf, -5.0], [inf, 5.0, inf])},
    )
    free = FeasibleWLS(prior_weight=1.0).solve(equations)
    np.testing.assert_allclose(
        FeasibleWLS(prior_weight=1.0, bounds=wide).solve(equations).values, free.values, rtol=1e-3, atol=1e-3
    )


def test_bounds_that_hold_nothing_are_named() -> None:
    equations = equations_of(ROBOT, noise=0.05)
    with pytest.raises(ArgumentError, match=f"centre of mass of {LINKS[2]} in its box. holds nothing"):
        FeasibleWLS(bounds=Bounds(com_box={LINKS[2]: ([1.0, -1.0, 1.0], [0.0, 1.0, 0.0])})).solve(equations)
    with pytest.raises(ArgumentError, match="is no box"):
        FeasibleWLS(bounds=Bounds(com_box={LINKS[2]: ([1.0, -1.0], [0.0, 1.0, 0.0])})).solve(equations)
    with pytest.raises(ArgumentError, match=f"mass of {LINKS[0]}"):
        FeasibleWLS(bounds=Bounds(mass={LINKS[0]: (5.0, 4.0)})).solve(equations)


def test_bounds_that_hold_are_told() -> None:
    equations = equations_of(ROBOT, noise=0.05)
    wrong = Bounds(mass={LINKS[1]: (50.0, np.inf)})
    estimate = FeasibleWLS(prior_weight=1.0, bounds=wrong).solve(equations)
    assert estimate.standard is not None
    assert estimate.standard[19] >= 50.0 - 1e-3
    assert estimate.given_bounds == (f"mass of {LINKS[1]} in [50, inf] kg",)
    assert set(estimate.given_bounds) <= set(estimate.at_bound)
    true = Bounds(mass={LINKS[1]: (0.1, 100.0)}, known=(LINKS[0],))
    estimate = FeasibleWLS(prior_weight=1.0, bounds=true).solve(equations)
    assert not [name for name in estimate.at_bound if "mass" in name]


def test_the_nearest_body_against_closed_forms() -> None:
    """A ball where the data leave the inertia open; and moments a, b, c that no body has, moved to a + b = c."""
    centre = np.array([0.1, -0.2, 0.3])
    ball = Inertia.from_com(2.0, centre, 0.4 * 2.0 * 0.05**2 * np.eye(3))
    found = nearest_possible_body(ball.vector + 9.0 * (np.arange(10) < 6), 0.01 * np.eye(10), np.arange(10) < 6)
    assert found is not None
    np.testing.assert_allclose(found[0], ball.vector, atol=1e-5)
    assert found[1] == pytest.approx(0.0, abs=1e-3)
    moments, lacking = np.array([0, 3, 5]), np.array([1.0, 1.0, -1.0])
    covariance = 1e-4 * np.eye(10)
    covariance[np.ix_(moments, moments)] += 1e-4 * np.array([[3.0, 1.0, 0.5], [1.0, 2.0, -0.5], [0.5, -0.5, 1.0]])
    impossible = np.zeros(10)
    impossible[[*moments, 9]] = 0.1, 0.2, 0.35, 2.0
    found = nearest_possible_body(impossible, covariance)
    assert found is not None
    along = covariance[np.ix_(moments, moments)] @ lacking
    variance = lacking @ along
    np.testing.assert_allclose(found[0][moments], impossible[moments] + 0.05 * along / variance, atol=1e-3)
    assert found[1] == pytest.approx(0.05 / np.sqrt(variance), rel=0.02)
    ball = Inertia.from_com(2.0, np.zeros(3), 0.4 * 2.0 * 0.05**2 * np.eye(3))
    whitened = np.linalg.solve(ball.pseudo, Inertia.from_vector(found[0]).pseudo)
    assert np.linalg.eigvals(whitened).min() == pytest.approx(1e-4, rel=0.1)


def test_an_impossible_prior_is_replaced_and_noted() -> None:
    theta = ROBOT.parameter_vector.copy()
    theta[10:16], theta[19] = -1.0, -5.0
    estimate = FeasibleWLS().solve(build_equations(ROBOT.with_parameters(theta), planted_run(ROBOT, noise=0.1)))
    assert any(f.code == "prior-replaced" and f.where == LINKS[1] for f in estimate.findings)
    assert estimate.standard is not None
    assert all(body.inertia.is_physical for body in ROBOT.with_parameters(estimate.standard).bodies)
