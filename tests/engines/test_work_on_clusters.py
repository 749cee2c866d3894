"""Multi-start designs on a running Dask cluster give what they give here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dynid.engines import DaskCluster
from dynid.excitation import SearchSettings, design_excitation
from dynid.excitation.limits import MotionLimits
from dynid.robot import zoo


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    pytest.importorskip("distributed", reason="Dask is not installed")
    with DaskCluster(workers=1) as cluster:
        yield cluster.client.scheduler.address


def test_a_design_of_several_starts(scheduler: str) -> None:
    robot = zoo.gautier_khalil_3r()
    limits = MotionLimits.from_robot(robot)
    quick = {"starts": 2, "iterations": 4, "outer": 2, "time_limit_s": 1000.0}
    here, there = (
        design_excitation(robot, limits, seed=3, settings=SearchSettings(**quick, scheduler=address))  # type: ignore[arg-type]
        for address in (None, scheduler)
    )
    assert here.value == there.value
    assert [(step.start, step.iteration) for step in here.history] == [(s.start, s.iteration) for s in there.history]
