"""Objects told apart by what they weigh and how they turn, and grasps verified."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dynid.errors import ArgumentError
from dynid.payload.load import Load
from dynid.payload.recognition import KnownObject, recognise, verify_grasp
from dynid.robot.inertia import Inertia

BRICK = Inertia.from_com(1.1, [0.0, 0.0, 0.05], np.diag([0.0005, 0.0021, 0.0024]))
BAR = Inertia.from_com(1.1, [0.0, 0.0, 0.05], np.diag([0.0007, 0.0242, 0.0244]))
CAN = Inertia.from_com(0.4, [0.0, 0.0, 0.05], np.diag([0.0005, 0.0005, 0.0003]))
LIBRARY = [
    KnownObject(name=name, mass=body.mass, principal_moments=tuple(np.linalg.eigvalsh(body.about_com)))
    for name, body in (("brick", BRICK), ("bar", BAR), ("can", CAN))
]


def measured(body: Inertia, *, noise: float = 1e-4, seed: int = 0) -> Load:
    rng = np.random.default_rng(seed)
    spread = noise * np.array([1] * 6 + [5] * 3 + [50.0])
    held = Rotation.random(random_state=seed).as_matrix()
    turned = Inertia.from_com(body.mass, held @ body.com, held @ body.about_com @ held.T)
    return Load.of(Inertia.from_vector(turned.vector + rng.normal(size=10) * spread), "tool", stderr=spread)


@pytest.mark.parametrize("name", ["brick", "bar", "can"])
def test_objects_are_recognised_however_they_are_held(name: str) -> None:
    body = {"brick": BRICK, "bar": BAR, "can": CAN}[name]
    found = [recognise(measured(body, seed=seed), LIBRARY) for seed in range(10)]
    assert {result.names[0] for result in found} == {name}
    assert all(result.probabilities[0] > 0.6 for result in found)
    assert np.mean([result.fit[0] > 0.05 for result in found]) > 0.7
    assert np.sum(found[0].probabilities) == pytest.approx(1.0)
    assert name in found[0].__str__()


def test_without_inertia_only_the_mass_speaks() -> None:
    known = measured(BAR)
    open_inertia = np.array([True] * 6 + [False] * 4)
    load = Load(frame="tool", vector=known.vector, covariance=known.covariance, undetermined=open_inertia)
    result = recognise(load, LIBRARY)
    chance = dict(zip(result.names, result.probabilities, strict=True))
    assert chance["brick"] == pytest.approx(chance["bar"])
    assert chance["can"] < 1e-6


def test_grasp_as_expected_and_not() -> None:
    spread = 1e-6 * np.ones(10)
    expected = Inertia.from_com(1.0, [0.0, 0.0, 0.06], np.diag([0.001, 0.003, 0.004]))
    good = verify_grasp(Load.of(expected, "tool", stderr=spread), expected)
    assert good.is_good
    assert good.tilt_deg == pytest.approx(0.0, abs=1e-6)
    turn = Rotation.from_euler("z", 25, degrees=True).as_matrix()
    wrong = Inertia.from_com(1.3, [0.0, 0.02, 0.06], turn @ expected.about_com @ turn.T)
    check = verify_grasp(Load.of(wrong, "tool", stderr=spread), expected)
    assert not check.is_good
    assert check.tilt_deg == pytest.approx(25.0, abs=1e-3)
    assert [problem.where for problem in check.problems] == ["centre of mass along y", "orientation", "mass"]
    ball = Inertia.from_com(1.0, [0.0, 0.0, 0.06], 0.003 * np.eye(3))
    check = verify_grasp(Load.of(ball, "tool", stderr=spread), ball)
    assert np.isnan(check.tilt_deg)
    assert "uncertain" in check.problems[0].message
    assert verify_grasp(Load.of(ball, "tool", stderr=spread), ball, tilt_tolerance_deg=180.0).is_good


def test_an_axis_of_symmetry_is_checked() -> None:
    spread = np.array([1e-6] * 6 + [1e-5] * 3 + [1e-4])
    turn = Rotation.from_euler("x", 60, degrees=True).as_matrix()
    turned = Inertia.from_com(CAN.mass, CAN.com, turn @ CAN.about_com @ turn.T)
    assert verify_grasp(Load.of(CAN, "tool", stderr=spread), CAN).is_good
    check = verify_grasp(Load.of(turned, "tool", stderr=spread), CAN)
    assert check.tilt_deg == pytest.approx(60.0, abs=1.0)
    assert [problem.where for problem in check.problems] == ["orientation"]


def test_what_cannot_be_told_is_no_good_grasp() -> None:
    vague = Load.of(BRICK, "tool", stderr=np.array([1.0] * 6 + [0.2] * 3 + [5.0]))
    uncertain = [problem.where for problem in verify_grasp(vague, BRICK).problems if "uncertain" in problem.message]
    assert {"centre of mass along x", "orientation", "mass"} <= set(uncertain)
    known = np.zeros(10, dtype=bool)
    nothing = Load(frame="tool", vector=BRICK.vector, covariance=np.zeros((10, 10)), undetermined=~known)
    assert not verify_grasp(nothing, BRICK).is_good


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError, match="library"):
        recognise(measured(BAR), [])
    for wrong in ({"mass": 0.0}, {"mass": 1.0, "principal_moments": (1.0, 1.0, 100.0)}):
        with pytest.raises(ArgumentError, match="no body has"):
            KnownObject(name="ghost", **wrong)
    with pytest.raises(ArgumentError, match="same name"):
        recognise(measured(BAR), [LIBRARY[0], LIBRARY[0]])
