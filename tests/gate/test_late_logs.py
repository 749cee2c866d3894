"""Delays of all torques under correlated noise: found, not invented, stated on the screen, and shared by logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.findings import Finding
from dynid.gate.model_delay import check_common_delay, check_delay, combine_delays, measured_delay
from dynid.links.log_reader import LogReader
from dynid.links.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.processing.delay import Delay
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines

ROBOT = dynid.robots.ur10()
RATE_HZ = 100.0
CORRELATION = 0.8


def late_log(seed: int, samples: int, sticky: int | None = None, duration_s: float = 12.0) -> Recording:
    """A log whose torques are late by some samples; the noise of one joint may be large near its reversals."""
    terms = (dynid.RotorInertia(0.3), dynid.Viscous(8.0), dynid.Coulomb(6.0), dynid.Offset())
    motion, noise = sum_of_sines(ROBOT.dof, seed=seed), dynid.Noise(position=2e-5)
    log = dynid.simulate_experiment(
        ROBOT.with_terms(*terms), motion, rate_hz=RATE_HZ, duration_s=duration_s, noise=noise, seed=seed
    )
    assert log.effort is not None
    white = np.random.default_rng(seed + 1).normal(size=log.effort.shape)
    slow = white.copy()
    for row in range(1, len(white)):
        slow[row] = CORRELATION * slow[row - 1] + np.sqrt(1.0 - CORRELATION**2) * white[row]
    if sticky is not None:
        speed = np.abs(np.gradient(log.q[:, sticky], axis=0)) * RATE_HZ
        slow[:, sticky] *= 1.0 + 15.0 * np.exp(-((speed / (0.1 * speed.max())) ** 2))
    return replace(log, effort=np.roll(log.effort, samples, axis=0) + slow).rows(slice(samples, None))


def told(log: Recording) -> Finding:
    (finding,) = check_delay(ROBOT, process(log, filter_effort=False))
    return finding


@pytest.mark.parametrize(("sticky", "seeds"), [(None, (1, 2, 4, 5, 6)), (1, (2, 4, 5))])
def test_a_delay_is_found_though_some_reversals_are_not_explained(sticky, seeds):
    for seed in seeds:
        late, clean = (told(late_log(seed, samples, sticky)) for samples in (2, 0))
        assert (late.code, late.severity) == ("unsynchronised", "warning"), seed
        assert late.evidence["delay [s]"] == pytest.approx(0.02, abs=2.5 * late.evidence["standard error [s]"])
        assert clean.code == "measured-delay", seed


def delay(milliseconds: float, error: float) -> Delay:
    return Delay(
        seconds=1e-3 * milliseconds, stderr_s=1e-3 * error, residual_before=0.1, residual_after=0.1, period_s=0.005
    )


def test_a_vague_estimate_is_not_nothing_to_do():
    vague, sharp = measured_delay(delay(19.0, 11.0)), measured_delay(delay(0.5, 0.4))
    assert "does not rule out a delay of up to 41 ms" in vague.message
    assert "delay_s=0.019" in vague.remedy
    assert "nothing" not in vague.remedy
    assert sharp.remedy == "There is nothing to do."


def test_estimates_of_several_logs_count_by_their_errors():
    common = combine_delays([delay(19.0, 4.0), delay(21.0, 4.0), delay(-50.0, 400.0), delay(90.0, np.inf)])
    assert common is not None
    assert common.seconds == pytest.approx(0.02, abs=1e-4)
    assert common.stderr_s == pytest.approx(0.004 / np.sqrt(2.0), rel=1e-3)
    assert common.sure
    apart = combine_delays([delay(0.0, 1.0), delay(20.0, 1.0)])
    assert apart is not None
    assert not apart.sure
    assert combine_delays([delay(0.0, np.inf)]) is None


def test_a_delay_that_only_all_logs_show_is_a_warning():
    vague = [[measured_delay(delay(each, 5.0))] for each in (18.0, 20.0, 22.0)]
    (found,) = check_common_delay(vague, [0.005] * 3)
    assert (found.code, found.severity) == ("unsynchronised", "warning")
    assert "delay_s=0.020000" in found.remedy
    assert not list(check_common_delay(vague[:1], [0.005]))
    sure = [[replace(each[0], severity="warning")] for each in vague]
    assert not list(check_common_delay(sure, [0.005] * 3))  # each of them says it
    doubtful = [[replace(each[0], evidence={**each[0].evidence, "with other friction [s]": 0.0})] for each in vague]
    assert not list(check_common_delay(doubtful, [0.005] * 3))


@pytest.mark.parametrize(("samples", "words"), [(2, "moved back"), (0, "left as they are")])
@pytest.mark.parametrize("hold_out", [None, "30%"])
def test_what_was_done_about_an_unknown_delay_is_told(samples, words, hold_out):
    seen: list[Finding] = []
    recipe = Recipe(gate=False, delay_s="auto", hold_out=hold_out)
    reader = LogReader(robot=ROBOT, recipe=recipe, notice=seen.append)
    reader.training_and_proof([late_log(5, samples, duration_s=20.0)])
    (finding,) = seen
    assert finding.code == "estimated-delay"
    assert words in finding.message
