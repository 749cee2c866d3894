"""C functions that keep a state: equal to Python sample after sample, clean under sanitizers, hardened against NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import dynid
from dynid.compiled import kernel
from dynid.errors import ArgumentError, ExportError
from dynid.estimators import OnlineLeastSquares
from dynid.export.c.c_check import FLAGS, CheckProgram
from dynid.export.c.observer_code import check_observer, observer_code, observer_driver, wandering_states
from dynid.export.c.recursive_code import recursive_code
from dynid.export.c.state_code import StateCode
from dynid.export.c.tracker_code import tracker_code
from dynid.monitor.load_tracker import LoadTracker
from dynid.monitor.observer import MomentumObserver, ObserverModel
from dynid.processing.simulation import sum_of_sines
from dynid.terms.memory import Hysteresis, LaggedSign

pytestmark = pytest.mark.usefixtures("compiler")
RATE = 100.0
NOISE = np.array([0.3, 0.2, 0.1])


def arm() -> dynid.Robot:
    return dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous(0.4), dynid.Coulomb(0.6))


def samples(count: int = 300, gripped: slice = slice(0, 0)) -> np.ndarray:
    """Rows of q, dq, ddq, torque; a load is held in some of them."""
    motion = sum_of_sines(3, period_s=4.0, seed=2)(np.arange(count) / RATE)
    torque = dynid.inverse_dynamics(arm(), *motion) + NOISE * np.random.default_rng(0).normal(size=motion[0].shape)
    load = dynid.Inertia.from_com(2.0, [0.1, 0.0, 0.0], 1e-3 * np.eye(3))
    holding = arm().with_body("load", parent=arm().bodies[-1].joint.child, inertia=load)
    torque[gripped] += (dynid.inverse_dynamics(holding, *motion) - dynid.inverse_dynamics(arm(), *motion))[gripped]
    return np.hstack([*motion, torque])


def estimates(
    code: StateCode, begin: str, now: str, rows: np.ndarray, outputs: int, flags: Sequence[str] = FLAGS
) -> np.ndarray:
    """What the functions of an estimator answer at every sample: numbers, then what its update returns."""
    part, std = f"arm_{code.part}", ", ".join(map(repr, NOISE.tolist()))
    driver = CheckProgram(
        header=f"{part}.h",
        declarations=[f"static {part} state;", *[f"const double std[3] = {{{std}}};"] * ("std" in begin),
                      f"if ({part}_begin(&state, {begin}) != 0) {{ return 1; }}"],
        loop=[f"out[{outputs - 1}] = (double){part}_update(&state, in, &in[3], &in[6], &in[9]);", f"{now};"],
        inputs=12,
        outputs=outputs,
    )  # fmt: skip
    return driver.answer(code.files("arm"), rows, flags)


def least_squares(rows: np.ndarray, forgetting: float, flags: Sequence[str] = FLAGS) -> np.ndarray:
    """Values, how many are determined, and what the update returned, of every sample."""
    code = recursive_code(arm())
    rank = code.words["k"]
    now = f"out[{rank}] = (double)arm_recursive_now(&state, out)"
    return estimates(code, str(forgetting), now, rows, rank + 2, flags)


def tracked(
    rows: np.ndarray, memories: tuple[float, float], flags: Sequence[str] = FLAGS, given: str = f"std, {RATE}"
) -> np.ndarray:
    """Sixteen values and variances, and what the update returned, of every sample."""
    begin = f"{given}, {memories[0]}, {memories[1]}"
    return estimates(tracker_code(arm()), begin, "arm_tracker_now(&state, out, &out[16])", rows, 33, flags)


def spoil(rows: np.ndarray, broken: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows with four broken ones among them, in q, dq, ddq and torque, and where the others are."""
    places = np.array([50, 121, 123, 203])
    spoilt = np.insert(rows, places - np.arange(4), rows[:4], axis=0)
    spoilt[places, [0, 4, 7, 11]] = broken
    return spoilt, np.setdiff1d(np.arange(len(spoilt)), places)


@pytest.mark.parametrize("forgetting", [1.0, 0.995])
def test_recursive_least_squares_are_those_of_python(forgetting: float, sanitized: list[str]) -> None:
    """At rest in one pose, with one moving joint, then all: the same parameters are known after every sample."""
    rows, known = samples(90), []
    rows[:60, :8] *= np.arange(8) % 3 == 2
    rows[:30, :9] = rows[0, :9] * (np.arange(9) < 3)
    estimator = OnlineLeastSquares(arm(), forgetting=forgetting)
    for row, found in zip(rows, least_squares(rows, forgetting, sanitized), strict=True):
        estimator.update(*row.reshape(4, 3))
        estimate = estimator.estimate()
        wanted = np.where(estimate.undetermined, 0.0, estimate.values)
        known.append(np.sum(~estimate.undetermined))
        np.testing.assert_allclose(found, [*wanted, known[-1], 0.0], rtol=1e-7, atol=1e-7)
    assert len(set(known)) > 3


@pytest.mark.parametrize(("memories", "gripped"), [((0.0, 0.0), slice(0, 0)), ((2.0, 20.0), slice(100, 200))])
def test_the_load_tracker_is_that_of_python(
    memories: tuple[float, float], gripped: slice, sanitized: list[str]
) -> None:
    rows = samples(gripped=gripped)
    load, friction = (memory or np.inf for memory in memories)
    tracker = LoadTracker(arm(), noise_std=NOISE, rate_hz=RATE, load_memory_s=load, friction_memory_s=friction)
    jumped = []
    for k, row in enumerate(rows):
        before = tracker.jumps
        tracker.update(*row.reshape(4, 3))
        jumped += [k] * (tracker.jumps - before)
    found, now = tracked(rows, memories, sanitized), tracker.estimate()
    np.testing.assert_allclose(found[-1, :10], now.parameters, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[-1, 10:16], now.friction.ravel(), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[-1, 16:26], now.stderr**2, rtol=1e-8)
    assert np.flatnonzero(found[:, -1]).tolist() == jumped
    grips = [] if not memories[0] else [100, 200]  # gripped after a second, dropped after two
    assert len(jumped) == len(grips)
    assert all(0 <= jump - grip <= 30 for jump, grip in zip(jumped, grips, strict=True))


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e13])
def test_broken_samples_change_no_estimate(broken: float) -> None:
    rows = samples()
    spoilt, good = spoil(rows, broken)
    whole, left = tracked(rows, (2.0, 20.0)), tracked(spoilt, (2.0, 20.0))
    np.testing.assert_array_equal(left[good], whole)
    assert (np.delete(left, good, axis=0)[:, -1] == -1).all()
    np.testing.assert_array_equal(least_squares(spoilt, 1.0)[good], least_squares(rows, 1.0))


@pytest.mark.parametrize("given", ["in, 100.0", "std, 0.0", "std, NAN", "std, 100.0, -1.0"])
def test_unusable_arguments_are_refused(given: str) -> None:
    """The input array holds zeros before the first row: no standard deviations."""
    given, memory = given.removesuffix(", -1.0"), -1.0 if given.endswith("-1.0") else 0.0
    with pytest.raises(ExportError):
        tracked(samples(), (memory, 0.0), [*FLAGS, "-include", "math.h"], given)


def remembering() -> ObserverModel:
    """A UR10 with friction of two kinds of memory."""
    robot = dynid.robots.ur10().with_terms(dynid.Viscous(2.0), dynid.Coulomb(3.0), dynid.RotorInertia(0.3))
    terms = (Hysteresis(4.0, joint=1, scale=0.02), LaggedSign(2.0, joint=4, scale=0.05))
    return ObserverModel(robot, robot.parameter_vector, terms)


def observed(rows: np.ndarray, flags: Sequence[str] = FLAGS) -> np.ndarray:
    return observer_driver(6, "arm").answer(observer_code(remembering()).files("arm"), rows, flags)


def python_steps(rows: np.ndarray) -> np.ndarray:
    observer = MomentumObserver(remembering())
    return np.array([observer.step(*np.split(row[:-1], 3), row[-1]) for row in rows])


def test_the_observer_is_that_of_python_with_memory_and_changing_periods(sanitized: list[str]) -> None:
    rows = wandering_states(6, 2000)
    rows[1000:, -1] *= 1.5
    expected = python_steps(rows)
    momentum = kernel(remembering().robot, "momentum_balance")(rows[:, :6], rows[:, 6:12])["momentum"]
    size = np.abs(momentum).max() / rows[0, -1]  # the largest term of the balance
    assert np.abs(observed(rows, sanitized) - expected).max() < 1e-12 * size
    assert np.abs(expected[:, 1]).max() > 1.0


def test_an_error_of_the_observer_is_relative_to_its_momentum_over_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = wandering_states(6)
    assert len(rows) == 1000
    np.testing.assert_array_equal(rows[:, -1], 1e-3)
    np.testing.assert_allclose(np.gradient(rows[:, :6], 1e-3, axis=0)[1:-1], rows[1:-1, 6:12], atol=1e-4)
    right = python_steps(rows)
    momentum = kernel(remembering().robot, "momentum_balance")(rows[-1:, :6], rows[-1:, 6:12])["momentum"]
    expected = 0.1 / (np.abs(momentum).max() / 1e-3 + np.abs(right).max())
    monkeypatch.setattr(CheckProgram, "answer", lambda *_: right - 0.1 * (np.arange(6) == 2))
    assert check_observer(remembering(), "arm", "double", 1.01 * expected) == pytest.approx(expected)
    with pytest.raises(ExportError, match="differs by"):
        check_observer(remembering(), "arm", "double", 0.99 * expected)


@pytest.mark.parametrize(
    ("column", "broken"), [(0, np.nan), (8, np.inf), (17, -np.inf), (18, np.nan), (18, np.inf), (0, 1e13)]
)
def test_the_observer_refuses_a_broken_sample_and_stays(column: int, broken: float) -> None:
    rows = wandering_states(6, 60)
    rows[[0, 20, 21, 40], column] = broken  # the first one begins the observer, but for the period
    rows[50, 18] = 0.0
    rows[51, 18] = -1e-3
    kept = np.ones(60, dtype=bool)
    kept[[20, 21, 40, 50, 51]] = False
    kept[0] = column == 18
    found = observed(rows)
    np.testing.assert_allclose(found[kept], python_steps(rows[kept]), atol=1e-9)
    np.testing.assert_array_equal(found[[20, 21, 40, 50, 51]], found[[19, 19, 39, 49, 49]])


def test_a_package_has_such_parts_on_request() -> None:
    parts = ["observer_step", "load_tracker", "least_squares"]
    package = dynid.generate_c(arm(), ["inverse_dynamics", *parts], name="arm", two_rate=False)
    errors = package.check(samples=50)  # compiles all of them
    assert set(errors) == {"inverse_dynamics", "observer_step"}
    assert max(errors.values()) <= 1e-12
    for part in ("observer", "tracker", "recursive"):
        for file in ("README.md", "CMakeLists.txt"):
            assert f"arm_{part}.c" in package.files[file]
        assert not any(word in package.files[f"arm_{part}.c"] for word in ("malloc", "calloc", "free(", "alloca"))
    with pytest.raises(ArgumentError, match="no function"):
        dynid.generate_c(arm(), ["observer_step"])
    with pytest.raises(ArgumentError, match="double precision"):
        dynid.generate_c(arm(), ["gravity", "load_tracker"], precision="float")
    single = dynid.generate_c(arm(), ["gravity", "observer_step"], precision="float", two_rate=False)
    assert single.check(samples=20)["observer_step"] <= single.tolerance
