"""The energy equations on line: equal to the whole log, with friction and without accelerations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

import dynid
from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.energy_differences import Energy
from dynid.estimators.online.online_energy import OnlineEnergy
from dynid.processing.experiment import Experiment
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.base import StateTerm
from dynid.terms.springs import AngleHarmonic

from .planted import Floats, arm, feed, planted_run, with_friction

ROBOTS = [arm(), with_friction(zoo.stanford()), with_friction(zoo.puma560()), with_friction(zoo.scara()), zoo.ur10()]


@dataclass(frozen=True)
class Swinging(StateTerm):
    """An inertia that depends on the angle, so that its torque is not the rate of a momentum."""

    symbol: ClassVar[str] = "SW"
    base_unit: ClassVar[str] = "kg m^2"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.cos(q) * ddq


def energy_by_hand(robot: Robot, run: Experiment, columns: tuple[int, ...], steps: int) -> tuple[Floats, Floats]:
    """W and Y of [GautierKhalil1992] eq. (9), with the work of each friction written out."""
    count = (run.samples - 1) // steps

    def integral(values: Floats) -> Floats:
        clock = np.arange(steps + 1) / run.rate_hz
        parts = [values[k * steps : (k + 1) * steps + 1] for k in range(count)]
        return np.array([make_interp_spline(clock, part, k=5).integrate(0.0, clock[-1]) for part in parts])

    ends = np.arange(count + 1) * steps
    h = np.diff(dynid.energy_regressor(robot, run.q[ends], run.dq[ends]), axis=0)
    rows: list[Floats] = []
    for joint in range(robot.dof if robot.parameter_vector.size > 10 * robot.dof else 0):
        dq = run.dq[:, joint]
        rows += [np.diff(0.5 * dq[ends] ** 2), integral(dq**2), integral(np.abs(dq)), integral(dq)]
    whole = np.column_stack([h, *rows])
    return whole[:, list(columns)], integral((run.effort * run.dq).sum(axis=1))


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_after_the_last_sample_it_is_the_batch_estimate(robot: Robot) -> None:
    run = planted_run(robot, noise=0.5, samples=2000, rate_hz=240.0)
    tracker = feed(OnlineEnergy(robot, rate_hz=240.0), run, accelerations=False)
    online = tracker.estimate()
    batch = Energy().solve(build_equations(robot, run))
    assert np.abs(online.values - batch.values).max() < 1e-9
    assert online.stderr == pytest.approx(batch.stderr, rel=1e-9)
    assert online.references == batch.references == ("GautierKhalil1992",)
    W, Y = energy_by_hand(robot, run, tracker.base.columns, 12)
    assert tracker.equation_count == len(Y)
    assert np.abs(online.values - np.linalg.lstsq(W, Y, rcond=None)[0]).max() < 1e-9


def test_an_interval_shorter_than_the_sampling_time_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"interval_s is 0\.001 s, and samples are 0\.004 s apart"):
        OnlineEnergy(arm(), rate_hz=250.0, interval_s=0.001)
    with pytest.raises(ArgumentError, match=r"samples are 0\.004 s apart.*interval_s=0\.04\."):
        Energy(interval_s=0.001).solve(build_equations(arm(), planted_run(arm(), samples=500, rate_hz=250.0)))


def test_gaps_masks_and_portions() -> None:
    robot = arm()
    run = planted_run(robot, noise=0.3, samples=3000, rate_hz=250.0)
    valid = run.valid.copy()
    valid[500:600, 1] = False
    segment = (np.arange(3000) > 1700).astype(np.int64)
    broken = replace(run, valid=valid, effort=np.where(valid, run.effort, np.nan), segment=segment)
    batch = Energy().solve(build_equations(robot, broken))
    for portion in (1, 7, 400):
        tracker = OnlineEnergy(robot, rate_hz=250.0)
        for first, last in ((0, 1701), (1701, 3000)):
            tracker.start_stretch()
            feed(tracker, broken.rows(slice(first, last)), portion, accelerations=False)
        assert tracker.samples == 3000
        assert np.abs(tracker.estimate().values - batch.values).max() < 1e-9


def test_constant_energy_shows_nothing() -> None:
    """A vertical axis at constant speed: all energies are constant but for rounding."""
    robot = zoo.ddarm()
    time = np.arange(1000) / 250.0
    q = np.column_stack([0.7 * time, np.full((1000, 2), [0.4, -0.6])])
    dq = np.tile([0.7, 0.0, 0.0], (1000, 1))
    tracker = OnlineEnergy(robot, rate_hz=250.0)
    tracker.update(q, dq, 0.1 * np.random.default_rng(0).normal(size=q.shape))
    assert tracker.equation_count > 60
    assert tracker.estimate().undetermined.all()


def test_few_equations_and_silence_claim_nothing() -> None:
    robot = zoo.ddarm()
    run = planted_run(robot, samples=2000, rate_hz=240.0)
    tracker = OnlineEnergy(robot, rate_hz=240.0)
    for k in range(12 * 26):
        tracker.update(run.q[k], run.dq[k], run.effort[k])
        if np.isfinite(tracker.estimate().stderr).any():
            assert tracker.equation_count >= 15 + 10
    assert np.isfinite(tracker.estimate().stderr).any()
    quiet = OnlineEnergy(robot, rate_hz=240.0)
    quiet.update(run.q, run.dq, np.zeros_like(run.q))
    assert quiet.estimate().undetermined.all()


def test_terms_of_the_present_state_take_part_and_those_without_energy_are_refused() -> None:
    robot = arm().with_terms(AngleHarmonic(1.5, joint=1, order=3), keep=True)
    run = planted_run(robot, samples=3000, rate_hz=250.0)
    tracker = feed(OnlineEnergy(robot, rate_hz=250.0), run, 500, accelerations=False)
    assert tracker.base.rank == 26
    place = next(k for k, name in enumerate(tracker.base.names) if name.startswith("HC3"))
    assert tracker.estimate().values[place] == pytest.approx(1.5, abs=1e-6)
    with pytest.raises(ArgumentError, match="no momentum"):
        OnlineEnergy(arm().with_terms(Swinging(1.0, joint=1), keep=True), rate_hz=100.0)
