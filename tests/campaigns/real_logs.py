"""The real logs: their robots, their held-out parts, and the measure of the error on them.

Everything is chosen on training data; the held-out torques are predicted from positions alone. The README of the data
sets fixes the measure: both torques are resampled, low-passed in the same way, trimmed, thinned out and compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import signal

import dynid
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from dynid.processing.experiment import Dropped, Experiment
from dynid.processing.timing import source_clock
from dynid.processing.uniform import Cleaning
from dynid.robot.model import Robot
from dynid.terms.base import Term
from dynid.terms.springs import AngleHarmonic

Floats = NDArray[np.float64]
ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))
PLAIN = (dynid.RotorInertia(), dynid.Viscous(), dynid.Coulomb(), dynid.Offset())


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A log, its robot, and the measure of its error."""

    name: str
    robot: Callable[[], Robot]
    files: tuple[str, ...]
    split: str
    """``blocks`` of 0.75 s, every third held out; ``files``, the last held out; ``end``, the last 40 % held out."""
    rate_hz: float
    cutoffs_hz: tuple[float, ...]
    """Evaluation cutoffs; the first is also the band in which the model is fitted. Empty for no filter."""
    trim_s: float
    step: int
    baseline: str
    attainable: str
    targets: tuple[float, ...]
    dead_band: float = 0.0
    max_gap_s: float | None = None
    terms: tuple[Term, ...] = ()
    """Known peculiarities of the machine."""

    @property
    def quasi_static(self) -> bool:
        """Whether rows are picked samples with measured velocity and no acceleration."""
        return not self.cutoffs_hz

    @property
    def cleaning(self) -> Cleaning:
        """Samples that are left out; half of a log may be missing, because held-out blocks are masked."""
        return Cleaning(max_gap_s=self.max_gap_s, most_missing=0.5)

    def recordings(self, robot: Robot) -> list[Recording]:
        """Read the logs with the channel map of the data set."""
        known = robot if self.name != "panda_unisa" else None  # that log's joint names carry another prefix
        folder = DATA / self.name
        paths = [folder / file for file in self.files] or [folder]
        return [read_recording(path, known, channel_map=ROOT / "channel_maps" / f"{self.name}.toml") for path in paths]

    def processed(
        self, recording: Recording, cutoff_hz: float | None, *, training: bool, plain: bool = False
    ) -> Experiment:
        """Process a log; rest and slow rows are masked for training only.

        Args:
            recording: The log.
            cutoff_hz: Cutoff of the positions [Hz].
            training: Whether the experiment is fitted; otherwise torques are predicted from its motion.
            plain: Whether to follow the textbook: clock of the log, rest included, torques low-passed like positions.
        """
        if self.quasi_static:
            dead_band = self.dead_band if training else 0.0
            return dynid.process(replace(recording, isolated=True), dead_band=dead_band)
        cleaning = replace(self.cleaning, relayed=not plain)
        cutoff = None if cutoff_hz is None else min(cutoff_hz, 0.45 * self.rate_hz)
        if training:
            options = dynid.Processing(dead_band=self.dead_band, cleaning=cleaning, filter_effort=plain)
            options = replace(options, rest=None if plain else options.rest)
            return dynid.process(recording, options, cutoff_hz=cutoff)
        return dynid.process(recording, cutoff_hz=cutoff, trim_s=0.0, rest=None, cleaning=cleaning)


def part(recording: Recording, rows: slice) -> Recording:
    """Cut rows out of a recording."""
    return replace(
        recording,
        time=recording.time[rows],
        q=recording.q[rows],
        dq=None if recording.dq is None else recording.dq[rows],
        effort=None if recording.effort is None else recording.effort[rows],
        wrench=None if recording.wrench is None else recording.wrench[rows],
    )


def split(data: DataSet, recordings: list[Recording]) -> tuple[list[Recording], Recording, NDArray[np.bool_]]:
    """Return training recordings, the recording with the held-out part, and the mask of its held-out rows."""
    if data.split == "files":
        return recordings[:-1], recordings[-1], np.ones(recordings[-1].time.size, dtype=bool)
    log = recordings[0]
    assert log.effort is not None
    if data.split == "blocks":
        held = ((log.time - log.time[0]) // 0.75).astype(int) % 3 == 2
        return [replace(log, effort=np.where(held[:, None], np.nan, log.effort))], log, held
    end = int(np.searchsorted(log.time, log.time[0] + 0.6 * (log.time[-1] - log.time[0])))
    last = part(log, slice(end, None))
    return [part(log, slice(0, end))], last, np.ones(last.time.size, dtype=bool)


def held_out_error(
    data: DataSet, log: Recording, held: NDArray[np.bool_], motion: Experiment, predicted: Floats, cutoff: float | None
) -> float:
    """100 |measured - predicted| / |measured| over all joints and kept samples [%]."""
    assert log.effort is not None
    if cutoff is None:
        counts = np.abs(motion.dq) >= data.dead_band
        return _relative([(log.effort[:: data.step], predicted[:: data.step], counts[:: data.step])])
    predicted, dq, clock = _on_log_rows(log, motion, predicted)
    time_s = np.arange(clock[0], clock[-1] + 1e-9, 1.0 / data.rate_hz)
    measured, predicted, dq = (
        resampled(time_s, stamps, table) for stamps, table in ((log.time, log.effort), (clock, predicted), (clock, dq))
    )
    inside = np.interp(time_s, log.time, held.astype(float)) > 0.999
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(int), [0]])))
    sections = signal.butter(4, cutoff, fs=data.rate_hz, output="sos")
    trim = round(data.trim_s * data.rate_hz)
    parts = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        rows = slice(start, stop)
        if stop - start > 2 * trim + data.step:
            kept = slice(trim, stop - start - trim, data.step)
            smooth = [signal.sosfiltfilt(sections, table[rows], axis=0)[kept] for table in (measured, predicted)]
            parts.append((smooth[0], smooth[1], (np.abs(dq[rows]) >= data.dead_band)[kept]))
    return _relative(parts)


def _on_log_rows(log: Recording, motion: Experiment, predicted: Floats) -> tuple[Floats, Floats, Floats]:
    """Predicted torques, velocities and their clock; for a relayed log row by row with the time stamps of the log."""
    source = source_clock(log.time, log.q) if Dropped.REPEATED_ROW in motion.dropped else None
    if source is None:
        return predicted, motion.dq, motion.time
    rows = [resampled(source.time, motion.time, table) for table in (predicted, motion.dq)]
    return rows[0], rows[1], log.time


def resampled(time_s: Floats, stamps: Floats, table: Floats) -> Floats:
    """Interpolate columns linearly at other instants."""
    return np.column_stack([np.interp(time_s, stamps, column) for column in table.T])


def _relative(parts: list[tuple[Floats, Floats, NDArray[np.bool_]]]) -> float:
    squares = sum(float(np.sum((measured - predicted)[counts] ** 2)) for measured, predicted, counts in parts)
    total = sum(float(np.sum(measured[counts] ** 2)) for measured, _, counts in parts)
    return 100.0 * float(np.sqrt(squares / total))


# --- the robots ----------------------------------------------------------------------------------------------------


def tx40() -> Robot:
    """Staubli TX40 with its coupled wrist."""
    robot = dynid.read_urdf(DATA / "tx40" / "tx40_mdh_modified.urdf")
    last = robot.joint_names[-2:]
    return robot.with_terms(*PLAIN, dynid.terms.Coupling({last[0]: 1.0, last[1]: 1.0}))


def panda(folder: str) -> Robot:
    """Franka Panda, fingers held."""
    path = DATA / folder / "panda.urdf"
    fingers = re.findall(r'<joint[^>]*name="([^"]*finger[^"]*)"', path.read_text())
    return dynid.read_urdf(path, hold=dict.fromkeys(fingers, 0.0)).with_terms(*PLAIN)


def ur10() -> Robot:
    """Universal Robots UR10."""
    return dynid.read_urdf(DATA / "ur10_unisa" / "ur10_robot.urdf").with_terms(*PLAIN)


def kuka() -> Robot:
    """KUKA KR300; its masses are rough guesses for a robot of 1.1 t, because no model of it is published."""
    return dynid.read_mjcf(ROOT / "robots" / "kuka_kr300.xml").with_terms(*PLAIN)


def yumi() -> Robot:
    """One arm of ABB's YuMi on its tilted base; masses are guesses for an arm of about 9 kg."""
    return dynid.read_mjcf(ROOT / "robots" / "yumi.xml").with_terms(*PLAIN[1:])


COUNTERBALANCE = tuple(AngleHarmonic(joint=1, order=order, sine=sine) for order in (1, 2) for sine in (False, True))
"""Torque of the hydraulic cylinder on axis 2 of the KR300."""

SETS = (
    DataSet(name="tx40", robot=tx40, files=(), split="blocks", rate_hz=5000, cutoffs_hz=(30,), trim_s=0.05, step=25,
            dead_band=0.02, baseline="5.0-5.6 / 6.0-6.5", attainable="4.5 / 4.1 / 4.2-3.9", targets=(4.6,)),
    DataSet(name="panda_gaz", robot=lambda: panda("panda_gaz"), files=(), split="end", rate_hz=500, cutoffs_hz=(3, 8),
            trim_s=0.5, step=10, max_gap_s=0.02, baseline="0.79 / 0.95; 1.21 / 1.31",
            attainable="0.72 / 0.46 / 0.72-0.43; 1.17 / 0.77 / 1.23-0.82",
            targets=(0.75, 1.20)),
    DataSet(name="panda_unisa", robot=lambda: panda("panda_unisa"), files=(), split="end", rate_hz=30, cutoffs_hz=(4,),
            trim_s=0.5, step=1, baseline="1.87 / 2.60", attainable="2.28 / 2.03 / 2.70-2.60", targets=(2.4,)),
    DataSet(name="ur10_unisa", robot=ur10, files=(), split="end", rate_hz=125, cutoffs_hz=(6,), trim_s=0.3, step=3,
            baseline="5.9 / 8.8", attainable="4.4 / 3.4 / 4.5-3.5", targets=(4.8,)),
    DataSet(name="kuka_kr300", robot=kuka, files=("rec_FF_A.mat", "rec_FF_B.mat", "rec_FF_C.mat"), split="files",
            rate_hz=250, cutoffs_hz=(5,), trim_s=0.6, step=4, baseline="A 9.3, B 11 / 10.9",
            attainable="10.9 / 10.1 / 11.1-10.1",
            targets=(10.6,), terms=COUNTERBALANCE),
    DataSet(name="yumi_ft", robot=yumi, files=("gravitylog.mat",), split="end", rate_hz=248, cutoffs_hz=(), trim_s=0.0,
            step=4, dead_band=0.01, baseline="6.7 / 7.6", attainable="6.0 / - / 6.0", targets=(6.3,)),
)  # fmt: skip
