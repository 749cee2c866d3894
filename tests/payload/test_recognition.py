"""Objects told apart by what they weigh and how they turn, and grasps verified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import norm

from dynid.errors import ArgumentError
from dynid.payload.load import Load
from dynid.payload.recognition import KnownObject, recognise, verify_grasp
from dynid.robot.inertia import Inertia

BODIES = {
    name: Inertia.from_com(mass, [0.0, 0.0, 0.05], np.diag(moments))
    for name, mass, moments in (
        ("brick", 1.1, [0.0005, 0.0021, 0.0024]),
        ("bar", 1.1, [0.0007, 0.0242, 0.0244]),
        ("can", 0.4, [0.0005, 0.0005, 0.0003]),
    )
}
LIBRARY = [
    KnownObject(name=name, mass=body.mass, principal_moments=tuple(np.linalg.eigvalsh(body.about_com)))
    for name, body in BODIES.items()
]


def measured(body: Inertia, *, noise: float = 1e-4, seed: int = 0) -> Load:
    rng = np.random.default_rng(seed)
    spread = noise * np.array([1] * 6 + [5] * 3 + [50.0])
    held = Rotation.random(random_state=seed).as_matrix()
    turned = Inertia.from_com(body.mass, held @ body.com, held @ body.about_com @ held.T)
    return Load.of(Inertia.from_vector(turned.vector + rng.normal(size=10) * spread), "tool", stderr=spread)


@pytest.mark.parametrize("name", BODIES)
def test_objects_are_recognised_however_they_are_held(name: str) -> None:
    found = [recognise(measured(BODIES[name], seed=seed), LIBRARY) for seed in range(10)]
    assert {result.names[0] for result in found} == {name}
    assert all(result.probabilities[0] > 0.6 for result in found)
    assert np.mean([result.fit[0] > 0.05 for result in found]) > 0.7
    assert name in str(found[0])


def test_a_ball_has_no_orientation_and_an_unknown_load_no_grasp() -> None:
    ball = Inertia.from_com(1.0, [0.0, 0.0, 0.06], 0.003 * np.eye(3))
    load = Load.of(ball, "tool", stderr=1e-6)
    check = verify_grasp(load, ball)
    assert np.isnan(check.tilt_deg)
    assert "uncertain" in check.problems[0].message
    assert verify_grasp(load, ball, tilt_tolerance_deg=180.0).is_good
    assert not verify_grasp(replace(load, undetermined=np.ones(10, dtype=bool)), ball).is_good


BOX = np.diag([0.01, 0.03, 0.035])


@pytest.mark.parametrize(
    ("mass", "mass_std", "com", "com_std", "deg", "where"),
    [
        (4.19, 0.001, 4e-3, 1e-6, 9.0, ""),
        (3.79, 0.001, 0.0, 1e-6, 0.0, "mass"),
        (4.35, 0.1, 0.0, 1e-6, 0.0, ""),  # 8.75 %, within 5 % and two standard deviations of 2.5 %
        (4.0, 0.19, 0.0, 1e-6, 0.0, ""),
        (4.0, 0.21, 0.0, 1e-6, 0.0, "mass"),  # 5.25 % is too uncertain
        (4.0, 0.001, -6e-3, 1e-6, 0.0, "centre of mass along z"),
        (4.0, 0.001, 0.0, 4e-3, 0.0, ""),
        (4.0, 0.001, 0.0, 6e-3, 0.0, "centre of mass along z"),
        (4.0, 0.001, 0.0, 1e-6, -11.0, "orientation"),
    ],
)
def test_a_grasp_is_judged_at_its_tolerances(
    mass: float, mass_std: float, com: float, com_std: float, deg: float, where: str
) -> None:
    turn = Rotation.from_euler("y", deg, degrees=True).as_matrix()
    held = Inertia.from_com(mass, [0.0, 0.0, com], turn @ BOX @ turn.T)
    spread = np.array([1e-7] * 6 + [1e-7, 1e-7, mass * com_std, mass_std])
    check = verify_grasp(Load.of(held, "tool", stderr=spread), Inertia.from_com(4.0, [0.0, 0.0, 0.0], BOX))
    assert "; ".join(problem.where for problem in check.problems) == where
    assert check.tilt_deg == pytest.approx(abs(deg), abs=1e-6)
    expected = {"mm off": 1e3 * com, "% too much": 25.0 * (mass - 4.0), "deg turned": abs(deg)}
    told = {unit: value for problem in check.problems for unit, value in problem.evidence.items()}
    assert told == pytest.approx({unit: expected[unit] for unit in told}, abs=1e-6)


def test_chances_are_those_of_normal_masses() -> None:
    """Three standard deviations of the larger mass, two of the smaller; something else is as broad as it is heavy."""
    library = [KnownObject(name=str(mass), mass=mass, mass_tolerance=0.04) for mass in (0.8, 1.3)]
    load = Load.of(Inertia.from_com(1.0, [0.0, 0.0, 0.1], 1e-3 * np.eye(3)), "tool", stderr=np.full(10, 0.03))
    masses = replace(load, undetermined=np.arange(10) < 6)
    found = recognise(masses, library, unknown=0.2)
    spread = np.hypot(0.03, [0.032, 0.052, 1.0])
    density = [0.4, 0.4, 0.2] * norm.pdf([0.2, -0.3, 0.0] / spread) / spread
    chance = dict(zip(found.names, found.probabilities, strict=True))
    expected = dict(zip(["0.8", "1.3", "something else"], density / density.sum(), strict=True))
    assert chance == pytest.approx(expected)
    assert found.fit[found.names.index("0.8")] == pytest.approx(2.0 * norm.sf(0.2 / spread[0]))


@pytest.mark.parametrize("moments", [(0.003, 0.005, 0.005), (0.003, 0.003, 0.005)])
@pytest.mark.parametrize("equal", [True, False])
def test_an_axis_of_symmetry_is_checked(moments: tuple[float, float, float], equal: bool) -> None:
    """The tilt spreads as the angles about the other axes; an estimate that tells only one axis judges no brick."""
    spread = np.array([1e-6] * 6 + [1e-5] * 3 + [1e-4])
    turn = Rotation.from_euler("y", 60, degrees=True).as_matrix()
    turned = Load.of(Inertia.from_com(0.4, [0.0, 0.0, 0.0], turn @ np.diag(moments) @ turn.T), "tool", stderr=spread)
    wanted = np.diag(moments if equal else (0.0025, 0.004, 0.006))
    check = verify_grasp(turned, Inertia.from_com(0.4, [0.0, 0.0, 0.0], wanted))
    assert check.tilt_deg == pytest.approx(60.0, abs=1.0)
    finite = turned.principal.angle_stderr[np.isfinite(turned.principal.angle_stderr)]
    assert check.tilt_stderr_deg == pytest.approx(np.rad2deg(np.linalg.norm(finite)))
    assert [problem.where for problem in check.problems] == ["orientation"]
    assert ("uncertain" in check.problems[0].message) != equal
    other = np.diag((0.003, 0.003, 0.005) if moments[1] > 0.004 else (0.003, 0.005, 0.005))
    assert np.isnan(verify_grasp(turned, Inertia.from_com(0.4, [0.0, 0.0, 0.0], other)).tilt_deg)


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError, match="library"):
        recognise(measured(BODIES["bar"]), [])
    for wrong in (
        {"mass": 0.0},
        {"mass": np.inf},
        {"principal_moments": (1.0, 2.003, 1.0)},
        {"principal_moments": (0.0, 1.0, 1.0)},
        {"mass_tolerance": -0.1},
        {"moment_tolerance": -0.1},
    ):
        with pytest.raises(ArgumentError, match="no body has"):
            KnownObject(**{"name": "ghost", "mass": 1.0, **wrong})
    KnownObject(name="rod", mass=1.0, principal_moments=(1.0, 2.001, 1.0), mass_tolerance=0.0)
    with pytest.raises(ArgumentError, match="same name"):
        recognise(measured(BODIES["bar"]), [LIBRARY[0], LIBRARY[0]])
