"""The channel map of the small logs that several tests write, logs of an arm with friction, and a result from one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.processing.simulation import sum_of_sines

MAP = """[time]
column = "t"
unit = "s"
[position]
columns = "q{1..3}"
unit = "rad"
[effort]
columns = "tau{1..3}"
unit = "N m"
"""
HEADER = "t,q1,q2,q3,tau1,tau2,tau3"
LIVE_HEADER = "time,q1,q2,q3,dq1,dq2,dq3,tau1,tau2,tau3"


def rubbing_log(seed: int, duration_s: float, **noise: float) -> dynid.Recording:
    """A motion of the three-joint arm with friction, a torque noise of 0.1 N m, and further noise by its name."""
    terms = (dynid.Viscous(0.5), dynid.Coulomb(0.3), dynid.RotorInertia(0.2), dynid.Offset(0.1))
    return dynid.simulate_experiment(
        dynid.robots.gautier_khalil_3r().with_terms(*terms), sum_of_sines(3, seed=seed), rate_hz=100,
        duration_s=duration_s, noise=dynid.Noise(effort=0.1, **noise), seed=seed,
    )  # fmt: skip


def csv_lines(rows: np.ndarray) -> list[str]:
    """Samples (N, 10) as a live watch reads them."""
    return [LIVE_HEADER, *(",".join(map(repr, row)) for row in rows.tolist())]


def identify_train(folder: Path) -> None:
    """Identify the arm from ``train.csv`` by ``map.toml``; the run is the folder ``result``."""
    words = ["gautier_khalil_3r", folder / "train.csv", "--map", folder / "map.toml", "--out", folder / "result"]
    plain = ["--estimator", "wls", "--set", "friction=plain", "--set", "cutoff_hz=10", "--set", "gate=false"]
    done = CliRunner().invoke(main, ["identify", *map(str, words), *plain])
    assert done.exit_code == 0, done.output
