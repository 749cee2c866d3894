"""The six real data sets through their channel maps: sizes, rates and ranges in SI units."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from support.servo_logs import DATASETS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not DATASETS.is_dir(), reason=f"the real data sets are not at {DATASETS}")


@dataclass(frozen=True)
class Facts:
    """What is known of a log."""

    path: str
    shape: tuple[int, int]
    rate_hz: float
    largest_q: float
    largest_effort: tuple[float, float]
    needs: str | None = None


FACTS = {
    "tx40": Facts("tx40", (45_000, 6), 5000, 6.3, (80, 110)),
    "panda_gaz": Facts("panda_gaz", (20_544, 7), 978, 3.8, (30, 45)),
    "panda_unisa": Facts("panda_unisa", (727, 7), 30, 3.8, (25, 40)),
    "ur10_unisa": Facts("ur10_unisa", (3441, 6), 125, 6.3, (120, 160)),
    "kuka_kr300": Facts("kuka_kr300/rec_FF_A.mat", (2501, 6), 250, 3.2, (4000, 6000)),
    "yumi_ft": Facts("yumi_ft/gravitylog.mat", (13_802, 7), 1 / 4.032e-3, 5.2, (8, 14), "h5py"),
}


def load(name: str, path: str | None = None) -> Recording:
    facts = FACTS[name]
    if facts.needs:
        pytest.importorskip(facts.needs)
    return read_recording(DATASETS / (path or facts.path), channel_map=ROOT / "channel_maps" / f"{name}.toml")


@pytest.mark.parametrize("name", FACTS)
def test_size_rate_and_ranges(name: str) -> None:
    facts, recording = FACTS[name], load(name)
    assert recording.q.shape == facts.shape
    assert recording.effort.shape == facts.shape
    assert (facts.shape[0] - 1) / recording.duration == pytest.approx(facts.rate_hz, rel=0.01)
    assert np.isfinite(recording.q).all()
    assert np.abs(recording.q).max() < facts.largest_q
    low, high = facts.largest_effort
    assert low < np.abs(recording.effort).max() < high
    assert recording.effort_time is None
    assert recording.sha256


def test_tx40_wrist_coupling_and_rest() -> None:
    recording = load("tx40")
    motor = np.loadtxt(DATASETS / "tx40" / "pos_read_data.csv", delimiter=",", skiprows=1)
    torque = np.loadtxt(DATASETS / "tx40" / "curr_data.csv", delimiter=",", skiprows=1)
    q = recording.q + np.array([0, np.pi / 2, -np.pi / 2, 0, 0, 0])
    np.testing.assert_allclose(32 * q[:, 4] + 32 * q[:, 5], motor[:, 5], atol=1e-9)
    np.testing.assert_allclose(-48 * q[:, 3], motor[:, 3], atol=1e-9)
    np.testing.assert_allclose(recording.effort[:, 4], 45 * torque[:, 4] + 32 * torque[:, 5], atol=1e-9)
    assert np.ptp(recording.q[-7000:], axis=0).max() < 0.01  # it stands still at the end


@pytest.mark.parametrize("name", ["panda_unisa", "ur10_unisa"])
def test_bags_equal_their_decoded_copies(name: str) -> None:
    recording = load(name)
    copy = next(DATASETS.joinpath(name).glob("*exciting*.npz"))
    sections: dict[str, Any] = {
        "time": {"column": "t", "unit": "s"},
        "position": {"columns": "q", "unit": "rad"},
        "velocity": {"columns": "v", "unit": "rad/s"},
        "effort": {"columns": "effort", "unit": "N m"},
    }
    other = read_recording(copy, channel_map=sections)
    np.testing.assert_allclose(recording.time, other.time - other.time[0], rtol=0, atol=1e-9)
    for field in ("q", "dq", "effort"):
        np.testing.assert_array_equal(getattr(recording, field), getattr(other, field))


def test_yumi_wrench_in_newton_metres_and_isolated_rows() -> None:
    recording = load("yumi_ft")
    assert recording.isolated
    weight = 0.2239 * 9.81
    force = recording.wrench[:, :3] - [-1.09, -3.00, 6.78]
    assert np.median(np.linalg.norm(force, axis=1)) == pytest.approx(weight, rel=0.05)
    assert np.abs(recording.wrench[:, 3:]).max() < 2.0
