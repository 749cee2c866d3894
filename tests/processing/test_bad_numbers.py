"""Numbers that cannot be meant, given to processing, simulation and the calibration of drives: refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.processing.uniform import Cleaning

ARM = dynid.robots.puma560()
PATH = sum_of_sines(6, period_s=2.0, seed=1)
LOG = simulate_experiment(ARM, PATH, rate_hz=100.0, duration_s=4.0)
NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("cutoff_hz", x) for x in (0, NAN, -5.0, "10")),
        *(("band_hz", x) for x in (0, NAN, -1.0)),
        *(("rate_hz", x) for x in (0, NAN, -1.0)),
        *(("trim_s", x) for x in (NAN, -1.0)),
        *(("dead_band", x) for x in (NAN, -1.0)),
        *(("max_gap_s", x) for x in (NAN, 0, -1.0)),
        *(("effort_delay_s", x) for x in (NAN, 1e3, "x")),
    ],
)
def test_processing_refuses_by_name(name, value):
    with pytest.raises(ArgumentError, match=name) as caught:
        process(LOG, **({"cleaning": Cleaning(max_gap_s=value)} if name == "max_gap_s" else {name: value}))
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rate_hz", x) for x in (0, -1, NAN, np.inf)),
        *(("duration_s", x) for x in (-1, NAN, np.inf)),
        *(("quantisation", x) for x in (-1, [1, 2])),
        *(("noise", x) for x in (Noise(effort=-1), Noise(position=NAN), Noise(velocity=[1, 2]))),
        *(("delay_s", x) for x in (NAN, np.inf)),
        *(("seed", x) for x in (-1, "a")),
    ],
)
def test_simulation_refuses_by_name(name, value):
    with pytest.raises(ArgumentError, match=name):
        simulate_experiment(ARM, PATH, **{"rate_hz": 100.0, "duration_s": 2.0, name: value})


def test_simulation_refuses_what_is_no_motion():
    with pytest.raises(ArgumentError, match="no motion"):
        simulate_experiment(ARM, None, rate_hz=100.0)
    with pytest.raises(ArgumentError, match="no motion"):
        simulate_experiment(ARM, (np.zeros((9, 6)),) * 3, rate_hz=100.0)
