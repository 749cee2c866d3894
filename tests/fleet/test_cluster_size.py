"""A million samples on a real Dask cluster, one worker killed; the campaign fleet_cluster.py has the long version."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.engines import Local
from tests.campaigns.fleet_cluster import bits, reduce_all, timed, write_logs

FILES = 8
SAMPLES = 125_000


def test_a_million_samples_by_four_workers_of_which_one_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    pytest.importorskip("psutil", reason="psutil is not installed")
    paths = write_logs(tmp_path, FILES, SAMPLES)
    leaves = reduce_all(Local(), paths)
    found, _, watch = timed(4, paths, kills=1, every_s=0.5)
    assert watch.done == 1
    assert found == bits(leaves)
