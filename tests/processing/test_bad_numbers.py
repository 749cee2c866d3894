"""Numbers that cannot be meant, given to processing, simulation and the calibration of drives: refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.logs.drives import CurrentGains, ThreePhase
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.processing.uniform import Cleaning
from dynid.terms.friction import Coulomb, Viscous

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
        *(("dropouts", x) for x in (1.0, -1, NAN)),
        *(("jitter_s", x) for x in (-1, NAN)),
        *(("quantisation", x) for x in (-1, [1, 2])),
        *(("noise", x) for x in (Noise(effort=-1), Noise(position=NAN), Noise(velocity=[1, 2]))),
        *(("delay_s", x) for x in (NAN, np.inf)),
        *(("seed", x) for x in (-1, "a")),
    ],
)
def test_simulation_refuses_by_name(name, value):
    with pytest.raises(ArgumentError, match=name):
        simulate_experiment(ARM, PATH, **{"rate_hz": 100.0, "duration_s": 2.0, name: value})


@pytest.mark.parametrize("shapes", [((100, 6), (90, 6), (100, 6)), ((100, 6),) * 2, ((1, 6),) * 3, ((100,),) * 3])
def test_simulation_refuses_arrays_that_are_no_motion(shapes):
    with pytest.raises(ArgumentError, match="no motion"):
        simulate_experiment(ARM, tuple(np.zeros(shape) for shape in shapes), rate_hz=100.0)


def test_simulation_refuses_what_is_no_motion_and_what_ends_too_soon():
    still = (np.zeros((101, 6)),) * 3
    with pytest.raises(ArgumentError, match="no motion"):
        simulate_experiment(ARM, None, rate_hz=100.0)
    with pytest.raises(ArgumentError, match="ends after 1 s"):
        simulate_experiment(ARM, still, rate_hz=100.0, duration_s=50.0)
    with pytest.raises(ArgumentError, match="no motion"):
        simulate_experiment(ARM, (np.full((9, 6), NAN),) * 3, rate_hz=100.0)


def test_friction_can_be_given_to_the_simulation():
    models = (Viscous(1.0), Coulomb(2.0))
    given = simulate_experiment(ARM, PATH, rate_hz=100.0, duration_s=1.0, friction=models)
    own = simulate_experiment(ARM.with_terms(*models), PATH, rate_hz=100.0, duration_s=1.0)
    np.testing.assert_array_equal(given.effort, own.effort)


def test_shapes_of_drives_are_refused_by_name():
    with pytest.raises(ArgumentError, match="2 gains"):
        CurrentGains(np.array([1.0, 2.0])).effort(np.zeros((5, 3)))
    with pytest.raises(ArgumentError, match="angles of shape"):
        ThreePhase(0.1).torque(np.zeros((5, 2)), np.zeros(5))
