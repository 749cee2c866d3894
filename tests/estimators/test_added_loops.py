"""Loops of experiments without one, number by number: stretches, rates, commanded motions, reversals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import dynid
from dynid.control_loop.loop import TimeFunction
from dynid.errors import ArgumentError
from dynid.estimators.closed_loop.added_loops import (
    SplinedMotion,
    check_commanded_motion,
    exclude_reversals,
    with_loop,
)
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth, CentralDifferences, Derivation

from .planted import Floats, experiment

ROBOT = dynid.robots.scara().with_terms(dynid.Coulomb(1.0))
LAW = dynid.control_loop.PD(100.0, 10.0)
CUBICS = [Polynomial([0.1, -0.4, 0.3, 0.2]), Polynomial([0.0, 1.0, -0.5, 0.1])]


def motion(time: Floats) -> tuple[Floats, Floats, Floats]:
    """Positions, velocities and accelerations (N, 2) of two joints that follow cubics."""
    q, dq, ddq = (np.stack([cubic.deriv(k)(time) for cubic in CUBICS], axis=1) for k in range(3))
    return q, dq, ddq


def log(samples: int, cutoff_hz: float | None = None, joints: int = 2) -> Experiment:
    """Samples at 100 Hz from 3 s on."""
    states = (np.tile(x, 2)[:, :joints] for x in motion(np.arange(samples) / 100.0))
    run = experiment(*states, np.zeros((samples, joints)), 100.0)
    made = None if cutoff_hz is None else Derivation(Butterworth(100.0, cutoff_hz), CentralDifferences())
    return replace(run, time=run.time + 3.0, derivation=made)


def test_logged_positions_are_joined_by_their_spline() -> None:
    """A missing and a late sample are left out; a cubic is its own spline, up to the gap from 1 to 2 s."""
    time = np.concatenate([np.arange(101), np.arange(200, 301)]) / 100.0
    q = motion(time)[0]
    q[40, 1] = np.nan
    late = np.insert(time, 60, 0.1), np.insert(q, 60, 7.0, axis=0)
    joined = SplinedMotion([(late[0][:80], late[1][:80]), (late[0][80:], late[1][80:])])
    for start, stop in ((-5e-5, 0.7), (0.3, 1.00005), (2.1, 3.00005), (1.99995, 2.7)):
        at = np.linspace(start, stop, 33)
        for found, exact in zip(joined(at), motion(at), strict=True):
            np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)
    for start, stop in ((-2e-4, 0.7), (2.1, 3.0002)):
        with pytest.raises(ArgumentError, match="do not cover the log"):
            joined(np.array([start, stop]))
    for start, stop in ((0.5, 1.0002), (0.5, 2.5), (1.9998, 2.5), (0.0, 3.0)):
        with pytest.raises(ArgumentError, match="missing between 1 and 2 s"):
            joined(np.array([start, stop]))
    with pytest.raises(ArgumentError, match=r"between 0\.5 and 0\.54 s"):
        SplinedMotion([(np.delete(time, [51, 52, 53]), np.delete(q, [51, 52, 53], axis=0))])(np.array([0.2, 0.8]))
    with pytest.raises(ArgumentError, match="do not cover"):
        SplinedMotion([(time[:1], q[:1])])(time[:1])


@pytest.mark.parametrize("rate_hz", [510.5, 97.5, 250.0, 40.0])
def test_rates_that_are_no_multiples_are_refused(rate_hz: float) -> None:
    near = 100.0 * max(1.0, np.ceil(rate_hz / 100.0))
    with pytest.raises(
        ArgumentError, match=f"of {rate_hz:g} Hz is no multiple of the log's 100 Hz. .*such as {near:g} Hz"
    ):
        with_loop(log(500), law=LAW, rate_hz=rate_hz)


@pytest.mark.parametrize(("rate_hz", "used_hz", "cutoff_hz"), [(500.0, 500, None), (508.0, 500, 1.0), (98.5, 100, 1.0)])
@pytest.mark.parametrize("known", [None, lambda time: motion(time - 3.0)])
def test_a_loop_for_every_stretch_that_is_long_enough(
    rate_hz: float, used_hz: int, cutoff_hz: float | None, known: TimeFunction | None
) -> None:
    """One second settles, or what the low-pass needs, and more than one must remain."""
    settling = Butterworth(100.0, cutoff_hz).settling_s
    settles = max(100, int(np.ceil(100 * settling)))
    lengths = [settles + 100, settles + 101, 799 - 2 * settles]
    run = replace(log(1000, cutoff_hz), segment=np.repeat([0, 1, 2], lengths))
    found = with_loop(run, known, law=LAW, rate_hz=rate_hz)
    assert [part.samples for part in found] == [101, lengths[2] - settles]
    for part, first, length in zip(found, np.cumsum(lengths)[:2], lengths[1:], strict=True):
        loop = part.loop
        assert loop is not None
        assert (loop.law, loop.start_s, part.time[0]) == (LAW, run.time[first], run.time[first + settles])
        np.testing.assert_array_equal(loop.q0, run.q[first])
        assert loop.reference.rate_hz == used_hz
        # the low-pass reaches beyond the end of a stretch; beyond the log only a known motion goes on
        beyond = int(used_hz * settling) if known or first == lengths[0] else 0
        count = (length - 1) * used_hz // 100 + 1 + beyond
        assert len(loop.reference.q) == pytest.approx(count, abs=1 if beyond else 0)
        exact = motion(loop.start_s - 3.0 + np.arange(len(loop.reference.q)) / used_hz)
        for name, values in zip(("q", "dq", "ddq"), exact, strict=True):
            np.testing.assert_allclose(getattr(loop.reference, name), values, atol=1e-6 * np.abs(values).max())


@pytest.mark.parametrize(("cutoff_hz", "reach"), [(None, 0), (2.0, 13), (12.5, 2), (8.4, 3)])
def test_torques_near_reversals_of_joints_with_dry_friction_do_not_count(cutoff_hz: float | None, reach: int) -> None:
    """A quarter of the cutoff's period before and behind; at least a quarter of a joint's samples stay."""
    speed = np.ones((120, 4))
    speed[40:, 0] = speed[20:, 1] = speed[60:, 3] = -1.0
    kept = {2: 7, 3: 8}.get(reach, 9)  # samples between turns; all but 2 reach + 1 stay
    speed[:, 2] = (-1.0) ** (np.arange(120) // kept)
    robot = dynid.robots.scara().with_terms(dynid.Coulomb(1.0), joints=ROBOT.joint_names[:3])
    found = exclude_reversals(replace(log(120, cutoff_hz, joints=4), dq=speed), robot)
    for joint, turn in ((0, 40), (1, 20)):
        left_out = np.arange(turn - reach, turn + reach + 1)
        np.testing.assert_array_equal(np.flatnonzero(~found.valid[:, joint]), left_out)
    assert found.valid[:, 3].all()
    assert found.valid[:, 2].mean() == pytest.approx({0: 107 / 120, 13: 1.0, 2: 0.3, 3: 1.0}[reach], abs=0.03)


@pytest.mark.parametrize(("spread", "off"), [(0.5, 0.4), (0.01, 0.1), (2.0, 1.6)])
@pytest.mark.parametrize(("joint", "unit"), [(0, "rad"), (2, "m")])
def test_commanded_positions_that_are_not_of_the_log_are_refused(
    spread: float, off: float, joint: int, unit: str
) -> None:
    """Four fifths of the motion's standard deviation are allowed, and a tenth of a radian or metre in any case."""
    run = log(200, joints=4)
    run = replace(run, q=spread * np.repeat((-1.0) ** np.arange(200)[:, None], 4, axis=1))
    for factor in (0.98, 1.02):
        q = np.repeat(run.q, 5, axis=0)
        q[::5, joint] += factor * off * np.where(np.arange(200) < 100, 1.0, -1.0)
        reference = dynid.control_loop.ReferenceMotion(q=q, dq=0 * q, ddq=0 * q, rate_hz=500.0)
        looped = replace(run, loop=dynid.control_loop.Loop(law=LAW, reference=reference, start_s=3.0))
        if factor < 1.0:
            check_commanded_motion(looped, ROBOT)
            continue
        told = f"of '{ROBOT.joint_names[joint]}' are {factor * off:.3g} {unit} from .* which move by {spread:.3g}$"
        with pytest.raises(ArgumentError, match=told.replace("$", r"\.")):
            check_commanded_motion(looped, ROBOT)
