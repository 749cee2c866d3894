"""Numbers that cannot be meant, given to processing, simulation and the calibration of drives: refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.processing import simulation
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.processing.uniform import Cleaning

ARM = dynid.robots.puma560()
PATH = sum_of_sines(6, period_s=2.0, seed=1)
LOG = simulate_experiment(ARM, PATH, rate_hz=100.0, duration_s=4.0)
NAN = float("nan")


PROCESSING = """
cutoff_hz: 0, NAN, -5.0, "10"
band_hz: 0, NAN, -1.0
rate_hz: 0, NAN, -1.0
trim_s: NAN, -1.0
dead_band: NAN, -1.0
max_gap_s: NAN, 0, -1.0
effort_delay_s: NAN, 1e3, 1.1, -1.1, "x"
"""
SIMULATION = """
rate_hz: 0, -1, NAN, np.inf
duration_s: -1, NAN, np.inf
quantisation: -1, [1, 2], np.inf
noise: Noise(effort=-1), Noise(position=NAN), Noise(velocity=[1, 2])
delay_s: NAN, np.inf
seed: -1, "a"
"""
"""Setting: values that it refuses."""


@pytest.mark.parametrize("case", PROCESSING.strip().splitlines())
def test_processing_refuses_by_name(case):
    name, values = case.split(": ")
    for value in eval(f"[{values}]", vars(simulation) | globals()):
        with pytest.raises(ArgumentError, match=name) as caught:
            process(LOG, **({"cleaning": Cleaning(max_gap_s=value)} if name == "max_gap_s" else {name: value}))
        assert caught.value.remedy


@pytest.mark.parametrize("case", SIMULATION.strip().splitlines())
def test_simulation_refuses_by_name(case):
    name, values = case.split(": ")
    for value in eval(f"[{values}]", vars(simulation) | globals()):
        with pytest.raises(ArgumentError, match=name):
            simulate_experiment(ARM, PATH, **{"rate_hz": 100.0, "duration_s": 2.0, name: value})


def test_simulation_refuses_what_is_no_motion():
    with pytest.raises(ArgumentError, match="no motion"):
        simulate_experiment(ARM, None, rate_hz=100.0)
    with pytest.raises(ArgumentError, match="no motion"):
        simulate_experiment(ARM, (np.zeros((9, 6)),) * 3, rate_hz=100.0)
