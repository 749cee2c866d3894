"""Logs in pieces: the same numbers as in one go, the same findings, errors in their turn; and the compiled loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.logs.reading import read_recording, read_stream
from dynid.logs.recording import Recording
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.terms.friction import Coulomb, Viscous

ROBOT = dynid.robots.puma560().with_terms(Viscous(1.0), Coulomb(2.0))
MAP: dict[str, Any] = {
    "time": {"column": "t", "unit": "ms"},
    "position": {"columns": "q{0..5}", "unit": "rad"},
    "effort": {"columns": "tau{0..5}", "unit": "N m"},
}


@pytest.fixture(scope="module")
def log() -> Recording:
    path = sum_of_sines(6, period_s=6.0, amplitude=0.7, seed=1)
    noise = Noise(position=1e-5, effort=0.2)
    return simulate_experiment(ROBOT, path, rate_hz=500.0, duration_s=14.0, noise=noise, seed=1, with_velocity=False)


def write(log: Recording, path: Path) -> None:
    """The log as a file of the suffix's format."""
    assert log.effort is not None
    values = np.column_stack([1e3 * log.time, log.q, log.effort])
    names = ["t", *(f"q{j}" for j in range(6)), *(f"tau{j}" for j in range(6))]
    if path.suffix == ".csv":
        np.savetxt(path, values, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(dict(zip(names, values.T, strict=True))), path, row_group_size=2000)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_pieces_of_a_file_make_up_the_file(log: Recording, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    write(log, path)
    whole = read_recording(path, channel_map=MAP)
    told: list[float] = []
    parts = list(read_stream(path, channel_map=MAP, rows=3000, progress=lambda share, note: told.append(share)))
    assert len(parts) > 2
    assert told == sorted(told)
    assert 0.0 < told[-1] <= 1.0
    for name in ("time", "q", "effort"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
