"""Priors and bounds: distances by their definitions, optima by another parametrisation, shapes by point masses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import logm
from scipy.optimize import least_squares

from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.physical.bounds import Bounds
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.estimation.physical.prior import Distance, PriorCoordinates, prior_residual
from dynid.estimation.physical.pseudo_inertia import WhitenedBody, svec
from dynid.robot import zoo
from dynid.robot.inertia import Inertia
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from estimation.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))
LINKS = [body.joint.child for body in ROBOT.bodies]
DISTANCES: tuple[Distance, ...] = ("pull-back", "euclidean", "entropic", "geometric")


def random_body(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    L = np.eye(4) + 0.4 * rng.normal(size=(4, 4))
    return L @ L.T


@pytest.mark.parametrize("seed", range(4))
def test_distances_are_what_they_are_called(seed: int) -> None:
    Q = random_body(seed)
    scale = WhitenedBody.around(Inertia.from_com(2.0, (0.1, 0.0, 0.2), 0.01 * np.eye(3)), "b").from_whitened
    squares = {d: float(np.sum(prior_residual(d, svec(Q), scale)[0] ** 2)) for d in DISTANCES}
    assert squares["pull-back"] == pytest.approx(np.sum((Q - np.eye(4)) ** 2))
    assert squares["entropic"] == pytest.approx(2.0 * (np.trace(Q) - np.linalg.slogdet(Q)[1] - 4.0))
    assert squares["geometric"] == pytest.approx(np.sum(logm(Q).real ** 2))
    inverse = float(np.sum(prior_residual("geometric", svec(np.linalg.inv(Q)), scale)[0] ** 2))
    assert inverse == pytest.approx(squares["geometric"])


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("near", [1e-4, 1.0])
def test_slopes_are_those_of_the_residual(distance: Distance, near: float) -> None:
    scale = WhitenedBody.around(Inertia.from_com(2.0, (0.1, 0.0, 0.2), 0.01 * np.eye(3)), "b").from_whitened
    y = svec(np.eye(4) + near * (random_body(1) - np.eye(4)))
    _, slope = prior_residual(distance, y, scale)
    step = 1e-6 * np.eye(10)
    columns = [
        (prior_residual(distance, y + e, scale)[0] - prior_residual(distance, y - e, scale)[0]) / 2e-6 for e in step
    ]
    np.testing.assert_allclose(slope, np.stack(columns, axis=1), atol=2e-5)


def test_rows_are_rescaled_part_by_part() -> None:
    coordinates = PriorCoordinates.of(ROBOT, np.array([2.0, 30.0])).widened(3)
    rows = np.random.default_rng(0).normal(size=(5, coordinates.pull.size))
    np.testing.assert_allclose(coordinates.rescale_rows(rows), rows @ coordinates.unknowns, rtol=1e-13, atol=1e-13)
    rows[:, : 10 * ROBOT.dof] = 0.0
    np.testing.assert_allclose(coordinates.rescale_rows(rows), rows @ coordinates.unknowns, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("distance", ["entropic", "geometric"])
def test_optimum_by_another_parametrisation(distance: Distance) -> None:
    """The same cost over triangles L with Q = L L^T, by SciPy, from the prior."""
    run = planted_run(ROBOT, noise=0.3, samples=120)
    equations = build_equations(ROBOT, run)
    factor = equations.information.weight(refined_weights(equations))
    settings = FeasibleWLS(prior_weight=30.0, distance=distance, signs=False)
    mine = feasible_parameters(equations, factor, 30.0, settings).theta
    coordinates = PriorCoordinates.of(ROBOT, np.zeros(0))
    matrix, bodies = factor.R @ equations.grouping @ coordinates.from_scaled, ROBOT.dof
    lower = np.tril_indices(4)

    def unknowns(u: np.ndarray) -> np.ndarray:
        y = u.copy()
        for j in range(bodies):
            L = np.zeros((4, 4))
            L[lower] = u[10 * j : 10 * j + 10]
            y[10 * j : 10 * j + 10] = svec(L @ L.T)
        return y

    def residual(y: np.ndarray) -> np.ndarray:
        parts = [slice(10 * j, 10 * j + 10) for j in range(bodies)]
        away = [prior_residual(distance, y[part], coordinates.from_scaled[part, part])[0] for part in parts]
        models = np.sqrt(30.0 * coordinates.pull[10 * bodies :]) * (y - coordinates.centre)[10 * bodies :]
        return np.concatenate([matrix @ y - factor.z, np.sqrt(30.0) * np.concatenate(away), models])

    start = np.concatenate([np.tile(np.eye(4)[lower], bodies), coordinates.centre[10 * bodies :]])
    other = least_squares(lambda u: residual(unknowns(u)), start, xtol=1e-12, ftol=1e-12, gtol=1e-10)
    y = np.linalg.solve(coordinates.from_scaled, mine)
    assert 0.5 * np.sum(residual(y) ** 2) <= other.cost * (1.0 + 1e-6)
    np.testing.assert_allclose(matrix @ y, matrix @ unknowns(other.x), atol=1e-2)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("friction", [True, False])
def test_every_distance_gives_possible_robots(distance: Distance, friction: bool) -> None:
    robot = ROBOT if friction else zoo.scara()
    equations = build_equations(robot, planted_run(robot, noise=0.5, samples=300))
    estimate = FeasibleWLS(distance=distance).solve(equations)
    assert estimate.standard is not None
    assert all(body.inertia.is_physical for body in robot.with_parameters(estimate.standard).bodies)
    truth = equations.base.project(robot.parameter_vector)
    assert np.all(np.abs(estimate.values - truth) < 6.0 * estimate.stderr + 1e-6)


def points(seed: int, count: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return rng.uniform(0.1, 1.0, count), directions * rng.uniform(0.0, 1.0, (count, 1))


def parameters_of(masses: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(10,) of point masses, by sums over points."""
    tensor = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, places, strict=True))
    return np.concatenate([np.asarray(tensor)[np.triu_indices(3)], masses @ places, [masses.sum()]])


def holds(bounds: Bounds, body: np.ndarray) -> bool:
    theta = ROBOT.parameter_vector.copy()
    theta[10:20] = body
    (constraint,) = bounds.constraints(ROBOT)
    value = constraint.rows @ theta - constraint.side
    if constraint.kind == "cone":
        return bool(value[0] >= np.linalg.norm(value[1:]) - 1e-12)
    return bool(np.all(value <= 1e-12) if constraint.kind == "at most" else np.all(np.abs(value) < 1e-9))


@pytest.mark.parametrize("seed", range(5))
def test_shapes_hold_what_lies_in_them(seed: int) -> None:
    masses, unit = points(seed)
    centre, axes = np.array([0.1, -0.2, 0.3]), np.array([[0.3, 0.1, 0.0], [0.0, 0.2, 0.0], [0.1, 0.0, 0.5]])
    inside = centre + unit @ axes.T
    body = parameters_of(masses, inside)
    com = body[6:9] / body[9]
    shifted = parameters_of(masses, inside + 2.0)
    link, corner = LINKS[1], 0.5 * np.ones(3)
    for bounds in (
        Bounds(com_ellipsoid={link: (centre, axes)}),
        Bounds(mass_ellipsoid={link: (centre, axes)}),
        Bounds(com_hull={link: inside}),
        Bounds(com_box={link: (com - corner, com + corner)}),
    ):
        assert holds(bounds, body)
        assert not holds(bounds, shifted)
    hollow = parameters_of(masses, centre + 1.5 * unit / np.linalg.norm(unit, axis=1, keepdims=True) @ axes.T)
    assert not holds(Bounds(mass_ellipsoid={link: (centre, axes)}), hollow), "its centre is inside, its mass is not"


def test_symmetries() -> None:
    masses, places = points(7)
    across = np.concatenate([places, places * [1.0, -1.0, 1.0]])
    body = parameters_of(np.tile(masses, 2), across)
    assert holds(Bounds(mirror={LINKS[1]: "y"}), body)
    assert not holds(Bounds(mirror={LINKS[1]: "x"}), body)
    turns = np.linspace(0.0, 2.0 * np.pi, 6, endpoint=False)
    about = np.concatenate(
        [places @ np.array([[np.cos(a), np.sin(a), 0], [-np.sin(a), np.cos(a), 0], [0, 0, 1]]) for a in turns]
    )
    assert holds(Bounds(revolved={LINKS[1]: "z"}), parameters_of(np.tile(masses, 6), about))
    assert not holds(Bounds(revolved={LINKS[1]: "z"}), body)


def test_bounds_hold_in_the_estimate() -> None:
    equations = build_equations(ROBOT, planted_run(ROBOT, noise=0.1))
    low, high = np.full(3, -0.05), np.full(3, 0.02)
    corners = np.array([[x, y, z] for x in (-0.04, 0.03) for y in (-0.04, 0.03) for z in (-0.04, 0.03)])
    bounds = Bounds(
        com_box={LINKS[1]: (low, high)},
        com_hull={LINKS[2]: corners},
        com_ellipsoid={LINKS[0]: (np.zeros(3), (0.1, 0.01, 0.02))},
        mirror={LINKS[3]: "xy"},
    )
    theta = FeasibleWLS(bounds=bounds).solve(equations).standard
    assert theta is not None
    com = [theta[10 * j + 6 : 10 * j + 9] / theta[10 * j + 9] for j in range(4)]
    assert np.all(com[1] >= low - 1e-4)
    assert np.all(com[1] <= high + 1e-4)
    assert np.all(np.abs(com[2] + 0.005) <= 0.035 + 1e-4)
    assert np.linalg.norm(com[0] / [0.1, 0.01, 0.02]) <= 1.0 + 1e-3
    np.testing.assert_allclose(theta[30:40][[1, 2, 4, 6, 7]], 0.0, atol=1e-6)


def test_a_contradiction_is_named_and_nothing_else() -> None:
    equations = build_equations(ROBOT, planted_run(ROBOT, noise=0.1))
    bounds = Bounds(
        mass={LINKS[0]: (0.0, 100.0), LINKS[1]: (50.0, 60.0)},
        total_mass=(0.0, 20.0),
        com_box={LINKS[2]: (np.full(3, -1.0), np.full(3, 1.0))},
    )
    with pytest.raises(EstimationError, match="no possible robot") as caught:
        FeasibleWLS(bounds=bounds).solve(equations)
    assert f"mass of {LINKS[1]} in [50, 60] kg" in str(caught.value)
    assert "total mass" in str(caught.value)
    assert LINKS[2] not in str(caught.value)
    assert f"{LINKS[0]} " not in str(caught.value)


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(com_hull={LINKS[0]: np.zeros((5, 3))}),
        Bounds(com_ellipsoid={LINKS[0]: (np.zeros(3), np.zeros(3))}),
        Bounds(com_box={LINKS[0]: (np.zeros(2), np.ones(3))}),
        Bounds(mirror={LINKS[0]: "w"}),
        Bounds(known=("nobody",)),
    ],
)
def test_shapes_that_are_none_are_refused(bounds: Bounds) -> None:
    with pytest.raises(ArgumentError):
        bounds.constraints(ROBOT)


def test_unknown_distances_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no distance"):
        FeasibleWLS(distance="manhattan")  # type: ignore[arg-type]
