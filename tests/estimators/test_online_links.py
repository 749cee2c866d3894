"""Link by link on line: equal to the whole log at any time, and honest about what the motion has not excited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynid.compiled import regressor
from dynid.errors import ArgumentError, DataError
from dynid.estimators import OnlineEnergy, OnlineLeastSquares
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.link_by_link import LinkByLink
from dynid.estimators.online.online_links import OnlineLinkByLink
from dynid.identifiability.base import base_parameters
from dynid.monitor.load_tracker import LoadTracker
from dynid.payload.online_load import OnlineLoad
from dynid.processing.experiment import Experiment
from dynid.robot import zoo
from dynid.robot.model import Robot

from .planted import Floats, arm, experiment, feed, held_run, planted_run, with_friction

ROBOTS = [arm(), with_friction(zoo.stanford()), with_friction(zoo.puma560())]


def link_by_link_by_hand(Y: Floats, own: list[list[int]]) -> Floats:
    """[Lin1995]'s procedure in so many words: from the last joint on, least squares for the link's own parameters.

    It is linear: (b, N, n) values per unit of each torque.
    """
    found = np.zeros((Y.shape[2], *Y.shape[:2]))
    for joint in reversed(range(Y.shape[1])):
        left = -np.tensordot(Y[:, joint], found, 1)
        left[:, :, joint] += np.eye(len(Y))
        found[own[joint]] = np.tensordot(np.linalg.pinv(Y[:, joint][:, own[joint]]), left, 1)
    return found


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_after_the_last_sample_it_is_the_batch_estimate(robot: Robot) -> None:
    run = planted_run(robot, noise=0.5, samples=400)
    tracker = feed(OnlineLinkByLink(robot), run)
    online, batch = tracker.estimate(), LinkByLink().solve(build_equations(robot, run))
    assert np.abs(online.values - batch.values).max() < 1e-9
    assert online.noise_std == pytest.approx(batch.noise_std, rel=1e-9)
    assert online.references == batch.references
    own = [[tracker.base.names.index(name) for name in link.parameters] for link in tracker.excitation]
    Y = regressor(robot, run.q, run.dq, run.ddq, columns=tracker.base.columns)
    L = link_by_link_by_hand(Y, own)
    assert online.values == pytest.approx(np.tensordot(L, run.effort, 2), abs=1e-9)
    squares = ((run.effort - Y @ online.values) ** 2).sum(axis=0)
    assert batch.noise_std == pytest.approx(np.sqrt(squares / [400 - len(mine) for mine in own]), rel=1e-6)
    for found in (online, batch):  # whose blocks of time differ
        variances = np.sum(L**2, axis=1) @ (found.noise_std**2 * found.inflation)
        assert found.stderr == pytest.approx(np.sqrt(variances), rel=1e-6)


@pytest.mark.parametrize("robot", [zoo.stanford(), with_friction(zoo.puma560()), arm()], ids=lambda r: r.name)
def test_lins_own_constants(robot: Robot) -> None:
    """[Lin1995]'s procedure in his set S, with columns from the whole regressor, beside the tracker in that set."""
    run = planted_run(robot, noise=0.5, samples=400)
    base = base_parameters(robot, method="minimal-combinations")
    tracker = feed(OnlineLinkByLink(robot, base), run, 400)
    estimate = tracker.estimate()
    assert estimate.names == base.names
    own = [[base.names.index(name) for name in link.parameters] for link in tracker.excitation]
    Y = regressor(robot, run.q, run.dq, run.ddq) @ np.linalg.pinv(base.grouping)
    assert estimate.values == pytest.approx(np.tensordot(link_by_link_by_hand(Y, own), run.effort, 2), abs=1e-9)
    for joint, link in enumerate(tracker.excitation):
        A = Y[:, joint][:, own[joint]]
        assert link.condition == pytest.approx(np.linalg.cond(A / np.linalg.norm(A, axis=0)), rel=1e-6)


def test_portions_and_masks_do_not_matter() -> None:
    robot = arm()
    run = planted_run(robot, noise=0.5, samples=300)
    valid = run.valid.copy()
    valid[40:90, 2] = False
    masked = replace(run, effort=np.where(valid, run.effort, np.nan), valid=valid)
    single, whole = (feed(OnlineLinkByLink(robot), masked, portion) for portion in (1, 77))
    assert single.estimate().values == pytest.approx(whole.estimate().values, abs=1e-9)
    assert single.estimate().stderr == pytest.approx(whole.estimate().stderr, rel=1e-9)
    assert single.estimate().values == pytest.approx(
        LinkByLink().solve(build_equations(robot, masked)).values, abs=1e-9
    )
    assert [link.samples for link in single.excitation] == [300, 300, 250]


NEVER_SHOWN = [
    (arm(), [1]),
    (zoo.ddarm(), [0, 1, 2]),
    (with_friction(zoo.cylindrical()), [1]),
]


@pytest.mark.parametrize(("robot", "still"), NEVER_SHOWN, ids=lambda case: getattr(case, "name", str(case)))
def test_what_the_motion_cannot_show_never_gets_a_finite_interval(robot: Robot, still: list[int]) -> None:
    run = held_run(robot, still, samples=300, noise=0.1)
    tracker = OnlineLinkByLink(robot)
    Y = regressor(robot, run.q, run.dq, run.ddq, columns=tracker.base.columns).reshape(-1, tracker.base.rank)
    length = np.linalg.norm(Y, axis=0)
    _, s, Vt = np.linalg.svd(Y / np.where(length > 1e-10, length, np.inf))
    free = Vt[np.append(s, np.zeros(len(Vt) - len(s))) < 1e-9]
    hidden = (np.abs(free) > 1e-6).any(axis=0)
    assert hidden.any()
    for k in range(run.samples):
        tracker.update(run.q[k], run.dq[k], run.ddq[k], run.effort[k])
        if k < 60 or k % 20 == 19:
            estimate = tracker.estimate()
            assert np.isinf(estimate.stderr[hidden]).all()
            assert np.isinf(estimate.interval()[hidden]).all()
    assert "open-parameters" in estimate.codes
    assert not tracker.is_persistently_exciting
    if len(still) == 1:
        assert np.isfinite(estimate.stderr[~hidden]).any()


NOISE = (1e-5, 1e-3, 1e-1)
"""Standard deviations of measured positions, velocities and accelerations."""


def measured(run: Experiment, seed: int = 0) -> Experiment:
    rng = np.random.default_rng(seed)
    states = [x + std * rng.normal(size=x.shape) for x, std in zip((run.q, run.dq, run.ddq), NOISE, strict=True)]
    return experiment(*states, run.effort, run.rate_hz)


def test_a_measured_motion_that_excites_is_recognised() -> None:
    robot = arm()
    run = measured(planted_run(robot, noise=0.1, samples=1500))
    tracker = feed(OnlineLinkByLink(robot, motion_std=NOISE), run, 1500)
    assert tracker.is_persistently_exciting
    estimate = tracker.estimate()
    assert np.isfinite(estimate.stderr).all()
    exact = feed(OnlineLinkByLink(robot), run, 1500).estimate()
    assert estimate.values == pytest.approx(exact.values, abs=1e-9)


def test_motion_noise_without_meaning_is_refused() -> None:
    with pytest.raises(ArgumentError, match="motion_std"):
        OnlineLinkByLink(arm(), motion_std=(1e-5, -1.0, 0.1))
    with pytest.raises(ArgumentError, match="accelerations"):
        OnlineLinkByLink(arm(), motion_std=(1e-5, 0.1))  # type: ignore[arg-type]


def test_few_equations_and_silence_claim_nothing() -> None:
    robot = zoo.ddarm()
    run = planted_run(robot, samples=17)
    tracker = OnlineLinkByLink(robot)
    for k in range(17):  # seven parameters of the last link; ten more equations tell their noise
        tracker.update(run.q[k], run.dq[k], run.ddq[k], run.effort[k])
        assert tracker.estimate().undetermined.all() == (k < 16)
    quiet = feed(OnlineLinkByLink(robot), replace(run, effort=0.0 * run.q), 17)
    assert quiet.estimate().undetermined.all()


def test_memory_is_bounded() -> None:
    robot = zoo.ddarm()
    run = planted_run(robot, samples=2000)
    tracker = OnlineLinkByLink(robot)
    for part in np.array_split(np.arange(2000), 250):
        tracker.update(run.q[part], run.dq[part], run.ddq[part], run.effort[part])
        assert len(tracker.equations.information.parts) <= 20
    assert len(tracker.equations.information.parts) >= 10
    assert tracker.equations.counts.tolist() == [2000] * 3


TRACKERS = {
    "least squares": lambda: OnlineLeastSquares(arm()),
    "links": lambda: OnlineLinkByLink(arm()),
    "energy": lambda: OnlineEnergy(arm(), rate_hz=100.0),
    "load and friction": lambda: LoadTracker(arm(), noise_std=0.1, rate_hz=100.0),
    "load": lambda: OnlineLoad(frame="tool"),
}


def numbers(tracker: Any) -> Any:
    """All that a tracker tells."""
    estimate = tracker.estimate()
    return [*(getattr(estimate, "vector", getattr(estimate, "values", getattr(estimate, "parameters", None)))),
            *estimate.stderr]  # fmt: skip


@pytest.mark.parametrize("name", TRACKERS)
def test_all_trackers_have_one_contract(name: str) -> None:
    """One sample or many, in place; refused samples are named and leave no trace; what does not count is marked."""
    run = planted_run(arm(), noise=0.1, samples=61)
    signals = [run.q, run.dq, *[run.ddq] * (name != "energy"), run.effort]
    if name == "load":
        signals = list(np.split(np.random.default_rng(0).normal(size=(61, 6, 11)), [10], axis=2))
        signals[1] = signals[1][..., 0]
    one, many = TRACKERS[name](), TRACKERS[name]()
    assert many.update(*(x[:60] for x in signals)) is None
    for k in range(60):
        one.update(*(x[k] for x in signals))
    before = numbers(many)
    assert numbers(one) == pytest.approx(before, rel=1e-6, abs=1e-8)
    for signal in range(len(signals)):
        for value in (np.nan, 1e40):
            broken = [np.array(x[60]) for x in signals]
            broken[signal].flat[1] = value
            with pytest.raises(DataError, match=r"sample 60, (joint joint2|channel F[xy]): .*Leave the sample out"):
                many.update(*broken)
            assert (many.samples, numbers(many)) == (60, before)
    many.update(*broken, valid=np.arange(len(broken[-1])) != 1)
    assert many.samples == 61


def test_wrong_shapes_are_refused() -> None:
    tracker = OnlineLinkByLink(arm())
    with pytest.raises(ArgumentError, match="shapes"):
        tracker.update(np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((3, 3)))
    with pytest.raises(ArgumentError, match="truth values"):
        tracker.update(*np.zeros((4, 3)), valid=[1, 0, 1])
