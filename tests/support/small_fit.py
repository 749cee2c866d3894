"""A small identification that tests share: three joints, six seconds, made once."""

from __future__ import annotations

from functools import cache

import dynid
from dynid.processing.simulation import sum_of_sines


@cache
def small_fit() -> tuple[dynid.Identification, dynid.Experiment]:
    """The direct drive arm with friction: its identification by weighted least squares, and the experiment."""
    robot = dynid.robots.ddarm().with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.3))
    noise = dynid.Noise(effort=0.1)
    log = dynid.simulate_experiment(robot, sum_of_sines(3, seed=0), rate_hz=100, duration_s=6, noise=noise)
    run = dynid.process(log, cutoff_hz=10)
    return dynid.identify(robot, run, dynid.Recipe.bare(), estimator=dynid.WLS()), run
