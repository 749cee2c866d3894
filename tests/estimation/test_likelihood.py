"""Maximum likelihood: identities, coloured torque noise, noise on positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_toeplitz
from scipy.signal import lfilter

from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.linear.least_squares import OLS, WLS
from dynid.estimation.noisy.autoregression import Autoregression, autocovariance
from dynid.estimation.noisy.likelihood import ML
from dynid.estimation.noisy.linearisation import linearisation
from dynid.estimation.noisy.motion_noise import impulse_responses, position_noise
from dynid.estimation.noisy.position_errors import NoisyStretch, _bands
from dynid.kernels import inverse_dynamics
from dynid.logs.recording import Recording
from dynid.loop.laws import assumed_law
from dynid.loop.loop import Loop, ReferenceMotion
from dynid.loop.simulator import simulate_loop
from dynid.parameters.base import base_parameters
from dynid.processing.differentiation import CentralDifferences
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.studies.compare.trial import planted_robot
from dynid.terms.friction import Viscous
from dynid.terms.motors import RotorInertia

from .planted import arm, equations_of, experiment, planted_run, still, truth


def noisy_positions(position: float, seed: int, torque: float = 0.1) -> Samples:
    path = sum_of_sines(3, amplitude=0.8, period_s=6.0)
    noise = Noise(position=position, effort=torque)
    log = simulate_experiment(arm(), path, rate_hz=100.0, duration_s=8.0, noise=noise, with_velocity=False, seed=seed)
    return build_equations(arm(), process(log, cutoff_hz=None))


def test_white_noise_and_exact_positions_are_weighted_least_squares() -> None:
    equations = equations_of(arm(), noise=(0.5, 0.2, 0.1))
    likely, weighted = ML(position_std=0.0, most_order=0).solve(equations), WLS(rounds=20).solve(equations)
    assert likely.values == pytest.approx(weighted.values, abs=1e-9)
    assert likely.noise_std == pytest.approx([0.5, 0.2, 0.1], rel=0.1)


def test_an_autoregression_solves_the_equations_of_yule_and_walker() -> None:
    rng = np.random.default_rng(0)
    taps = np.array([1.0, -1.2, 0.5])
    x = lfilter([1.0], taps, rng.normal(size=20000))
    covariances, count = autocovariance(x, np.ones(x.size, dtype=bool), 6)
    model = Autoregression.fit(covariances, count)
    assert model.order == 2
    independent = -solve_toeplitz(covariances[:2], covariances[1:3])
    assert model.taps[1:] == pytest.approx(independent, abs=1e-9)
    assert model.taps == pytest.approx(taps, abs=0.03)
    assert model.variance == pytest.approx(1.0, rel=0.05)
    assert np.std(model.whiten(x)) == pytest.approx(1.0, rel=0.05)


def test_coloured_noise_is_whitened_and_intervals_hold() -> None:
    errors, inside = [], []
    for seed in range(6):
        run = planted_run(arm(), motion=seed)
        rng = np.random.default_rng(seed)
        colour = lfilter([1.0], [1.0, -0.9], rng.normal(scale=0.2, size=run.effort.shape), axis=0)
        equations = build_equations(arm(), experiment(run.q, run.dq, run.ddq, run.effort + colour, run.rate_hz))
        likely, weighted = ML(position_std=0.0).solve(equations), WLS().solve(equations)
        errors.append([np.linalg.norm(e.values - truth(equations)) for e in (likely, weighted)])
        interval = likely.interval()
        inside.append(np.mean((interval[:, 0] <= truth(equations)) & (truth(equations) <= interval[:, 1])))
        assert likely.findings[-1].code == "noise-levels"
        assert "[1, 1, 1]" in likely.findings[-1].message
    assert np.mean(errors, axis=0)[0] < 0.95 * np.mean(errors, axis=0)[1]
    assert np.mean(inside) > 0.88


def test_noise_on_positions_leaves_no_bias_and_honest_intervals() -> None:
    ratios, plain = [], []
    for seed in range(4):
        equations = noisy_positions(1e-3, seed)
        likely = ML(position_std=1e-3, torque_std=0.1).solve(equations)
        ratios.append((likely.values - truth(equations)) / likely.stderr)
        plain.append(np.linalg.norm(OLS().solve(equations).values - truth(equations)))
        assert np.linalg.norm(likely.values - truth(equations)) < 0.1 * plain[-1]
    assert 0.7 < np.sqrt(np.mean(np.square(ratios))) < 1.3


def test_noise_levels_need_not_be_known() -> None:
    equations = noisy_positions(1e-4, 1)
    likely, known = ML().solve(equations), ML(position_std=1e-4, torque_std=0.1).solve(equations)
    assert np.all(np.abs(likely.values - known.values) < 1.5 * known.stderr)
    assert likely.noise_std[1:] == pytest.approx([0.1, 0.1], rel=0.4)


def test_without_noise_the_truth_is_found() -> None:
    run = planted_run(arm(), samples=600)
    equations = build_equations(arm(), run)
    assert ML(position_std=0.0).solve(equations).values == pytest.approx(truth(equations), abs=1e-7)


def test_noise_of_positions_is_found() -> None:
    assert position_noise(noisy_positions(1e-3, 0).experiments) == pytest.approx(1e-3, rel=0.2)


def test_bands_are_those_of_the_dense_product() -> None:
    rng = np.random.default_rng(0)
    rows, n, width = 7, 2, 4
    J = rng.normal(size=(rows, n, width * n))
    dense = np.zeros((rows * n, (rows + width - 1) * n))
    for k in range(rows):
        dense[k * n : (k + 1) * n, k * n : (k + width) * n] = J[k]
    product = dense @ dense.T
    bands = _bands(J, n)
    for offset in range(width * n):
        assert bands[offset, : rows * n - offset] == pytest.approx(np.diagonal(product, -offset), abs=1e-12)


def test_impulse_responses_differentiate() -> None:
    rate, reach = 50.0, CentralDifferences().margin()
    taps = impulse_responses(CentralDifferences(), rate, reach)
    t = np.arange(-reach, reach + 1) / rate
    assert taps @ t**3 == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert taps @ t == pytest.approx([0.0, 1.0, 0.0], abs=1e-9)
    assert taps @ t**2 == pytest.approx([0.0, 0.0, 2.0], abs=1e-9)


def test_the_equations_hold_for_disturbed_motion() -> None:
    """What J says of a small change of positions is what inverse dynamics says."""
    from dynid.estimation.noisy.linearisation import linearisation
    from dynid.estimation.noisy.position_errors import NoisyStretch

    run = planted_run(arm(), samples=80, rate_hz=50.0)
    equations = build_equations(arm(), run)
    change = 1e-6 * np.random.default_rng(0).normal(size=run.q.shape)
    stretch = NoisyStretch(run.q + change, run.effort, run.valid, run.rate_hz, CentralDifferences())
    target, Y, _ = stretch.equations(linearisation(arm(), equations.base), run.q, truth(equations))
    moved = [np.ascontiguousarray(x) for x in stretch.motion(run.q + change)]
    still_there = [np.ascontiguousarray(x) for x in stretch.motion(run.q)]
    difference = inverse_dynamics(arm(), *moved) - inverse_dynamics(arm(), *still_there)
    assert run.effort[8:-8] - target == pytest.approx(difference, abs=2e-5 * np.abs(difference).max() + 1e-6)
    assert Y.shape == (64, 3, equations.base.rank)


def test_traces_are_those_of_the_inverse_covariance() -> None:
    """They say how large the torques' noise is, and so how wide intervals are."""
    run, std, variances = planted_run(arm(), samples=300, rate_hz=100.0), 1e-4, np.array([0.04, 0.01, 0.0025])
    equations = build_equations(arm(), run)
    stretch = NoisyStretch(run.q, run.effort, run.valid, run.rate_hz, CentralDifferences())
    equations = stretch.equations(linearisation(arm(), equations.base), run.q, truth(equations))
    noise = [Autoregression.white(float(variance)) for variance in variances]
    found = stretch.solve(equations, std, noise).trace
    J = equations[2]
    dense = np.zeros((len(J), 3, 3 * len(run.q)))
    for k in range(len(J)):
        dense[k, :, 3 * k : 3 * k + J.shape[2]] = J[k]
    rows = dense.reshape(3 * len(J), -1)
    covariance = std**2 * rows @ rows.T + np.diag(np.tile(variances, len(J)))
    assert found == pytest.approx(np.diagonal(np.linalg.inv(covariance)).reshape(-1, 3).sum(axis=0), rel=1e-9)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ArgumentError):
        ML(rounds=0)
    with pytest.raises(EstimationError, match="open"):
        ML(position_std=0.0).solve(still(arm(), [1]))


def test_noise_that_the_law_answers_to_is_modelled() -> None:
    # the torque residual at the true motion and parameters has the variance that the model of its noise says
    robot, std = planted_robot(zoo.gautier_khalil_3r()), 1e-3
    path = sum_of_sines(3, amplitude=0.8, period_s=10.0)
    reference = ReferenceMotion.of(path, rate_hz=2000.0, duration_s=8.0)
    loop = Loop(law=assumed_law(robot, 3.0), reference=reference, friction_speed=0.05)
    noise = std * np.random.default_rng(0).normal(size=reference.q.shape)
    run = simulate_loop(robot, loop, every=20, position_noise=noise)
    base = base_parameters(robot)
    model = linearisation(robot, base, loop.friction_speed)
    measured = (run.q + noise[::20], run.torque, np.ones(run.q.shape, dtype=bool), 100.0, CentralDifferences())
    ratios = []
    for answer in (loop.law.stiffness(3), None):
        stretch = NoisyStretch(*measured, answer)
        beta = base.project(robot.parameter_vector)
        target, Y, J = stretch.equations(model, run.q, beta)
        rest, length, seen, predicted = target - Y @ beta, 50, np.zeros(3), np.zeros(3)
        window = np.hanning(length)  # what the slow motion sees of the noise
        for first in range(0, len(rest) - length, length // 2):
            carried = np.zeros((3, 3 * (length + 2 * stretch.reach)))
            for k in range(length):
                carried[:, 3 * k : 3 * k + J.shape[2]] += window[k] * J[first + k]
            seen += (window @ rest[first : first + length]) ** 2
            predicted += std**2 * (carried**2).sum(axis=1)
        ratios.append(seen / predicted)
    assert ratios[0] == pytest.approx(np.ones(3), abs=0.7)
    assert ratios[1].max() > 2.0


def test_held_torques_act_half_a_control_period_late() -> None:
    """A law at 500 Hz logged at 100 Hz: taken as acting at once, its torques look like too little friction."""
    robot = zoo.ddarm().with_terms(RotorInertia(0.1), Viscous(0.5))
    reference = ReferenceMotion.of(sum_of_sines(3, amplitude=0.8, period_s=4.0), rate_hz=500.0, duration_s=4.0)
    loop = Loop(law=assumed_law(robot, 3.0), reference=reference)
    run, rng = simulate_loop(robot, loop, every=5), np.random.default_rng(0)
    noise = (1e-4 * rng.normal(size=run.q.shape), 0.05 * rng.normal(size=run.q.shape))
    log = process(Recording(time=run.time, q=run.q + noise[0], effort=run.torque + noise[1]), cutoff_hz=None, rest=None)
    equations = build_equations(robot, replace(log, loop=loop))
    places = [k for k, name in enumerate(equations.names) if name.startswith("FV")]
    planted = base_parameters(robot).project(robot.parameter_vector)
    late, at_once = (
        ML(position_std=1e-4, torque_delay_s=delay, fed_back=False).solve(equations) for delay in (None, 0.0)
    )
    assert np.all(np.abs((late.values - planted) / late.stderr) < 4.0)
    assert np.abs(late.values - planted)[places].max() < 0.01 * np.abs(at_once.values - planted)[places].max()
    assert np.abs((at_once.values - planted) / at_once.stderr)[places].max() > 10.0
    with pytest.raises(ArgumentError, match="samples after"):
        ML(position_std=1e-4, torque_delay_s=0.1).solve(equations)


def test_torques_of_the_wrong_sign_are_refused() -> None:
    run = noisy_positions(1e-3, 0).experiments[0]
    flipped = build_equations(arm(), replace(run, effort=-run.effort))
    with pytest.raises(EstimationError, match="negative"):
        ML(position_std=1e-3).solve(flipped)
    exact = planted_run(arm(), noise=0.1)
    with pytest.raises(EstimationError, match="negative"):
        ML(position_std=0.0).solve(build_equations(arm(), replace(exact, effort=-exact.effort)))


def test_noise_levels_that_do_not_fit_are_said() -> None:
    equations = noisy_positions(1e-3, 0)
    right = ML(position_std=1e-3, torque_std=0.1).solve(equations)
    wrong = ML(position_std=2e-4, torque_std=0.1).solve(equations)
    assert "misfit" not in right.codes
    assert "misfit" in wrong.codes
    assert np.all(wrong.stderr > right.stderr / 3.0)


def test_positions_that_were_low_passed_are_told() -> None:
    path = sum_of_sines(3, amplitude=0.8, period_s=6.0)
    noise = Noise(position=1e-3, effort=0.1)
    log = simulate_experiment(arm(), path, rate_hz=100.0, duration_s=8.0, noise=noise, with_velocity=False)
    equations = build_equations(arm(), process(log))
    likely, exact = (ML(position_std=std).solve(equations) for std in (None, 0.0))
    assert "position-filter" in likely.codes
    assert "position-filter" not in exact.codes


@pytest.mark.parametrize("level", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["position_std", "torque_std"])
def test_nonsense_noise_levels_are_refused(name: str, level: float) -> None:
    with pytest.raises(ArgumentError, match=name):
        ML(**{name: level})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="torque_std has shape"):
        ML(position_std=1e-3, torque_std=(1.0, 2.0)).solve(noisy_positions(1e-3, 0))
