"""Priors and the nearest possible robot in closed form: two slides at a right angle, and single bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.compiled import regressor
from dynid.estimators.equations import Samples, build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.physical.conic import unsvec
from dynid.estimators.physical.definiteness import check_inertia
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.estimators.physical.nearest import _information_root, lift_parameters
from dynid.estimators.physical.prior import PriorCoordinates, WhitenedBody
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.inertia import Inertia
from dynid.terms.friction import SmoothSign, Viscous
from dynid.terms.motors import Offset, RotorInertia

from .planted import Floats, planted_run

BODY = Inertia.from_com(2.0, [0.1, -0.05, 0.08], np.diag([0.05, 0.06, 0.04]))
SLIDES = from_dh([DH(sigma=1), DH(sigma=1, alpha=90)], degrees=True, name="slides", inertias=[BODY] * 2)
ROBOT = SLIDES.with_terms(Viscous(0.5), Offset(0.2))
OPEN = np.array([False, False, True, False, True, False])  # M1 M2 FV1 OFF1 FV2 OFF2
NOISE, INFLATION = np.array([0.5, 2.0]), np.array([1.0, 9.0])


def rows() -> tuple[Samples, Floats]:
    """Equations, and the columns (N, 2, 6) of the base parameters."""
    run = planted_run(ROBOT, noise=0.1, samples=150, amplitude=(0.8, 0.3))
    equations = build_equations(ROBOT, run)
    return equations, regressor(ROBOT, run.q, run.dq, run.ddq)[:, :, list(equations.base.columns)]


@pytest.mark.parametrize("size", [4.0, 1e-12])
@pytest.mark.parametrize("deviations", [-3.0, 0.9, 1.1, 30.0])
def test_the_nearest_robot_is_the_projection_on_what_is_possible(deviations: float, size: float) -> None:
    """The first body's mass is negative by some deviations; all move along its column of the covariance to zero."""
    equations, Y = rows()
    G = np.einsum("tjb,j,tjc->bc", Y, 1.0 / (NOISE**2 * INFLATION), Y)
    covariance = size * np.linalg.inv(G)
    std = np.sqrt(covariance[0, 0])
    # the root mean square over the four known parameters
    values = np.array([-2.0 * deviations * std, 40.0, 9.0, 0.3, 9.0, -0.4])
    known = np.where(OPEN, 0.0, values)[~OPEN]
    strength = np.sqrt(known @ np.linalg.solve(covariance[np.ix_(~OPEN, ~OPEN)], known))
    estimate = replace(
        WLS().solve(equations),
        values=values, covariance=covariance, noise_std=NOISE, inflation=INFLATION, undetermined=OPEN,
    )  # fmt: skip
    theta, findings = lift_parameters(equations, estimate)
    deviations *= min(1.0, 1e4 / strength)  # nothing is trusted more than ten thousand deviations
    moved = values + covariance[0] * max(0.0, -values[0]) / std**2
    found = equations.base.project(theta)[~OPEN]
    np.testing.assert_allclose(found, moved[~OPEN], atol=1e-3 + 0.02 * std)
    if deviations < 1.0:
        assert not findings
        return
    (finding,) = findings
    assert finding.evidence["standard deviations"] == pytest.approx(deviations, rel=0.02)
    assert f"{finding.evidence['standard deviations']:.2g} standard deviations away" in finding.message


def test_distances_by_a_covariance_of_few_directions() -> None:
    """Of parameters in units that differ by 1e8, one of them known exactly: its columns are one deviation long."""
    columns = np.random.default_rng(0).normal(size=(5, 3)) * np.array([1.0, 1e-4, 10.0, 0.0, 1e4])[:, None]
    root = _information_root(columns @ columns.T)
    np.testing.assert_allclose((root @ columns).T @ (root @ columns), np.eye(3), atol=1e-6)


def test_unknowns_are_one_at_the_prior_and_terms_without_prior_have_usual_sizes() -> None:
    """A usual size has the torque of its own joint at the speed of the fastest joint."""
    run = planted_run(ROBOT, noise=0.1, samples=300, amplitude=(0.8, 0.3))
    own = np.array([0.0, -0.2, 0.0, 0.0])  # FV1 OFF1 FV2 OFF2
    robot = ROBOT.with_parameters(np.append(ROBOT.parameter_vector[:20], own))
    robot = replace(
        robot,
        links=tuple(replace(x, inertia=Inertia.zero()) if x.name == robot.links[-1].name else x for x in robot.links),
    )
    terms = [SmoothSign(joint=j, scale=0.5) for j in (0, 1, 1)]
    found = PriorCoordinates.of(build_equations(robot, run, terms=terms), np.array([50.0, np.nan, 0.0]))
    torque, fastest = np.sqrt(np.mean(run.effort**2, axis=0)), np.sqrt(np.mean(run.dq**2, axis=0)).max()
    sizes = [torque[0] / fastest, 0.2, torque[1] / fastest, torque[1], 1000.0 / 50.0, 1000.0, 1000.0]
    np.testing.assert_allclose(np.diagonal(found.from_scaled)[20:], sizes, rtol=1e-9)
    np.testing.assert_allclose((found.from_scaled @ found.centre)[:10], BODY.vector, atol=1e-12)
    np.testing.assert_allclose(found.centre[20:], [0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found.pull, [1.0] * 10 + [0.01] * 10 + [1.0, 0.01, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert [finding.where for finding in found.findings] == [robot.links[-1].name]


@pytest.mark.parametrize(
    ("second", "mass", "used"),
    [
        ([0.1, 0.2, 0.3], 2.0, None),
        ([0.1, 0.2, 2e-10], 2.0, None),  # thin, but possible
        ([0.1, 0.2, 1e-10], 2.0, [0.1, 0.2, 2e-4, 2.0]),
        ([-0.1, 0.2, 0.3], 2.0, [2e-4, 0.2, 0.3, 2.0]),
        ([0.1, 0.2, 0.3], -1.0, [0.004, 0.004, 0.004, 1.0]),
        ([-0.1, -0.2, -0.3], 0.0, [0.004, 0.004, 0.004, 1.0]),
    ],
)
def test_whitened_bodies_are_the_priors_root_times_them(
    second: list[float], mass: float, used: list[float] | None
) -> None:
    """``P = L Q L'`` with ``P0 = L L'``; a prior that is no body is replaced by the nearest, or by a ball."""
    prior = Inertia(mass=mass, first_moment=np.zeros(3), about_origin=np.diag(np.sum(second) - np.array(second)))
    body = WhitenedBody.around(prior, "hand")
    root = np.diag(np.sqrt(used or [*second, mass]))
    for unit in np.eye(10):
        pseudo = Inertia.from_vector(body.from_whitened @ unit).pseudo
        np.testing.assert_allclose(pseudo, root @ unsvec(unit) @ root, atol=1e-12)
    told = "no mass" if mass <= 0.0 else "not a possible body"
    assert [told in finding.message for finding in body.findings] == [True] * (used is not None)


@pytest.mark.parametrize(
    ("masses", "added", "wrong"), [((3.0, 1.0), 0.0, 0), ((3.0, -1.0), 0.0, 2000), ((3.0, -1.0), 1.5, 0)]
)
def test_an_inertia_matrix_that_is_not_positive_definite(masses: tuple[float, float], added: float, wrong: int) -> None:
    """Of slides it is diag(M1 + M2, M2); a rotor adds to it. A thousand poses of the data and as many others."""
    equations = build_equations(ROBOT, planted_run(ROBOT, samples=150), terms=[RotorInertia(joint=1)])
    theta = ROBOT.parameter_vector.copy()
    theta[[9, 19]] = masses
    found = check_inertia(equations, theta, np.array([added]))
    assert [finding.message[-21:] for finding in found] == [f"at {wrong} of 2000 poses"] * bool(wrong)
    assert [finding.evidence["smallest eigenvalue [kg m^2]"] for finding in found] == [-1.0] * bool(wrong)


def test_a_weak_prior_leaves_the_deviations_of_the_data_and_a_strong_one_has_its_own() -> None:
    """Of one slide under slow noise: 100 % of a body over the root of the weight, ten times that of a friction."""
    robot = from_dh([DH(sigma=1)], name="slide", inertias=[BODY]).with_terms(Viscous(0.5), Offset(0.2))
    run = planted_run(robot, noise=0.1, samples=400)
    run = replace(run, effort=run.effort + 0.3 * np.sin(np.arange(400) / 15.0)[:, None])
    equations = build_equations(robot, run)
    data, weak, strong = (
        e.solve(equations) for e in (WLS(), FeasibleWLS(prior_weight=1e-9), FeasibleWLS(prior_weight=1e8))
    )
    assert data.inflation[0] > 2.0
    np.testing.assert_allclose(weak.values, data.values, rtol=1e-3)
    np.testing.assert_allclose(weak.covariance, data.covariance, rtol=1e-3)
    assert (weak.prior_dominated, strong.prior_dominated) == ((), strong.names)
    np.testing.assert_allclose(strong.stderr, [2e-4, 5e-4, 2e-4], rtol=0.02)
