"""What logs say about suspects: rows of the equations that identification uses, by joint and block of time.

The columns are, in this order: links and usual friction; harmless shapes of friction, of which no model need know; and
the suspects (`dynid.estimators.rows.reduce_rows` forms them all). What the first two explain is no suspect's. Torques
and whatever jumps pass one low-pass, so that few samples suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import maximum_filter1d

from dynid.array_types import Bools, Floats, Ints
from dynid.data_reduction import Information
from dynid.estimators.equations import cut_blocks, merge_information, next_segment
from dynid.estimators.rows import reduce_rows
from dynid.identifiability.base_set import BaseParameters
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth
from dynid.robot.model import Robot
from dynid.terms.memory import Hysteresis

BLOCKS, FEWEST_BLOCKS = 20, 6
"""Blocks of time of all logs together, and fewest of each: values are judged by their scatter between them (convention:
Student's t of 19 degrees of freedom is near the normal distribution)."""
FEW = 0.05
"""Share of missing samples that does no harm (effect)."""
MOST_ROWS = 3000
"""Samples of a log that are looked at (convention: more repeat one another)."""
WIDER = 3.0
"""Cutoff of the low-pass of the torques over that of the motion (derivation: products of two speeds have twice the
frequencies of the motion, and the columns of the links are not filtered)."""
RATE = 3.0
"""Rate of the samples over this cutoff (derivation: the low-pass leaves next to nothing at half of it)."""
SLOW, TRAVELS = 0.2, (0.01, 0.05)
"""Harmless friction: speed over a joint's rms speed below which it is that of a joint at rest, which no samples are
taken of; its presliding over the joint's range of motion (convention: friction that builds up over a longer way than
these looks like a torque that is late)."""

Column = dict[int, Floats]
"""Joint index -> (N,) torque per unit of a suspect's amount."""


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Samples of a run in which torques and whatever jumps went through one low-pass."""

    run: Experiment
    """The samples, their torques low-passed."""
    slope: Floats
    """(N, n) rate of the low-passed torques [N m/s or N/s]."""
    harmless: tuple[Floats, ...]
    """(N, n) each: shapes of every joint's friction that no model need hold."""


def take_excerpt(robot: Robot, run: Experiment, delay_s: float = 0.0) -> Excerpt:
    """Samples spread over a robot's run, as many as its cutoff needs, their torques moved back by a delay [s]."""
    known = None if run.derivation is None else run.derivation.smoothing.cutoff_hz
    hz = min(WIDER * known if known else 0.1 * run.rate_hz, 0.4 * run.rate_hz)
    step = max(1, int(run.rate_hz / (RATE * hz)))
    run = run.parts(MOST_ROWS * step, BLOCKS)

    def low_pass(columns: Floats) -> Floats:
        shortest = int(run.rate_hz / hz) + 8
        filtered: Callable[[Floats], Floats] = lambda x: Butterworth(run.rate_hz, hz).apply(x)  # noqa: E731
        return run.by_segment(lambda part: filtered(part) if len(part) > shortest else part, columns)

    missing = ~np.isfinite(run.effort)
    torque = np.where(missing, 0.0, run.effort)
    for j in np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0)).tolist():
        there = np.flatnonzero(~missing[:, j])
        torque[:, j] = np.interp(np.arange(run.samples), there, torque[there, j])
    torque = torque if run.smoothing is not None else low_pass(torque)
    valid = run.valid & (np.abs(low_pass(missing.astype(float))) < FEW) if missing.any() else run.valid
    if delay_s:
        torque = run.by_segment(lambda part: _move_back(part, delay_s * run.rate_hz), torque)
        is_known = run.by_segment(lambda part: _move_back(part, delay_s * run.rate_hz), valid.astype(float))
        valid = valid & (is_known > 1.0 - FEW)
    speed = np.maximum(np.sqrt(np.mean(run.dq**2, axis=0)), 1e-12)
    valid = valid & ~_near_reversals(robot, run, hz) & (np.abs(run.dq) >= SLOW * np.sqrt(np.mean(run.dq**2, axis=0)))
    slope = run.by_segment(lambda part: np.gradient(part, axis=0) if len(part) > 1 else np.zeros_like(part), torque)
    sign = np.sign(run.dq)
    reach = np.maximum(np.ptp(run.q, axis=0), 1e-12)

    def slip(part: Floats) -> Floats:
        """Presliding of every joint, from its positions (N, n) in units of the travel."""
        return np.column_stack([Hysteresis(scale=1.0).along(x, x, x, run.rate_hz) for x in part.T])

    shapes = [
        sign,
        *(run.by_segment(slip, run.q / (travel * reach)) for travel in TRAVELS),
        np.tanh(run.dq / (SLOW * speed)),
    ]
    smooth = [low_pass(shape) for shape in shapes]
    harmless = [*smooth, run.dq * np.abs(run.dq)]
    rows = np.arange(0, run.samples, step)
    thin = replace(run.rows(rows), rate_hz=run.rate_hz / step)
    thin = replace(thin, effort=np.where(valid, torque, np.nan)[rows], valid=valid[rows])
    return Excerpt(thin, run.rate_hz * slope[rows], tuple(np.ascontiguousarray(x[rows]) for x in harmless))


def _near_reversals(robot: Robot, run: Experiment, hz: float) -> Bools:
    """(N, n) where a joint turns round within a period of the low-pass [Hz], which smears what friction does there.

    Where a drive moves several joints, all of them feel that it turns round.
    """
    own = np.eye(robot.dof)
    drives = [[c.ratios.get(name, 0.0) for name in robot.joint_names] for c in robot.couplings]
    turns = np.zeros(run.q.shape, dtype=bool)
    for ratios in np.vstack([own, *drives]):
        back = np.diff(np.sign(run.dq @ ratios)) != 0.0
        turns[1:, ratios != 0.0] |= (back & (np.diff(run.segment) == 0))[:, None]
    return np.asarray(maximum_filter1d(turns, 2 * max(1, round(run.rate_hz / hz)) + 1, axis=0))


def _move_back(signal: Floats, samples: float) -> Floats:
    """A signal (N, k) so many samples later; zero where it is not known."""
    count = len(signal)
    if count < 2:
        return np.zeros_like(signal)
    place = np.arange(count) + samples
    inside = (place >= 0.0) & (place <= count - 1.0)
    moved = CubicSpline(np.arange(count), signal)(np.clip(place, 0.0, count - 1.0))
    return np.asarray(np.where(inside[:, None], moved, 0.0))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows of equations, each of one joint and block of time: harmless columns, those of suspects, the torque."""

    columns: Floats
    """(R, P) torque per unit of each column."""
    torque: Floats
    """(R,) [N m or N]"""
    joint: Ints
    """(R,) index of each row's joint."""
    block: Ints
    """(R,) number of each row's block of time, from 0."""
    counts: Ints
    """(n,) number of samples of each joint."""
    harmless: int
    """Number of the first columns, which are harmless: links, usual friction, friction of any shape."""
    runs: Ints
    """(B,) number of the run that a block belongs to."""

    @classmethod
    def of(cls, information: Information, harmless: int, runs: Sequence[int]) -> Evidence:
        """The rows of reduced equations."""
        width = len(information.columns)
        tables, places = [], []
        for joint, support in enumerate(information.supports):
            for block, segment in enumerate(information.segments):
                rows = information.rows(joint, segment)
                table = np.zeros((len(rows), width + 1))
                table[:, [*support, width]] = rows
                tables.append(table)
                places.append(np.tile([joint, block], (len(rows), 1)))
        rows, place = np.concatenate(tables), np.concatenate(places)
        counts = information.samples.sum(axis=0)
        return cls(rows[:, :-1], rows[:, -1], place[:, 0], place[:, 1], counts, harmless, np.asarray(runs))

    @classmethod
    def of_rows(cls, columns: Floats, torque: Floats, joint: Ints, block: Ints) -> Evidence:
        """Rows of any equations with harmless columns (R, P) alone; the joint may be the channel of a sensor."""
        blocks = np.zeros(int(block.max(initial=-1)) + 1, dtype=np.int64)
        return cls(columns, torque, joint, block, np.bincount(joint), columns.shape[1], blocks)

    @property
    def suspects(self) -> Floats:
        """(R, s) the columns of the suspects."""
        return self.columns[:, self.harmless :]


def gather(
    robot: Robot, base: BaseParameters, excerpts: Sequence[Excerpt], columns: Sequence[Sequence[Column]] | None = None
) -> Evidence:
    """The evidence of excerpts.

    Args:
        robot: The robot with its usual terms.
        base: Its base parameters.
        excerpts: The excerpts, one of each run.
        columns: For each excerpt the columns of the suspects; none by default.
    """
    parts: list[Information] = []
    runs: list[int] = []
    for number, excerpt in enumerate(excerpts):
        own = [{j: shape[:, j]} for shape in excerpt.harmless for j in range(robot.dof)]
        blocks = cut_blocks(excerpt.run, max(BLOCKS // len(excerpts), FEWEST_BLOCKS))
        further = () if columns is None else columns[number]
        part = reduce_rows(robot, base, (), excerpt.run, blocks, None, (*own, *further))
        parts.append(part.renumber(next_segment(parts)))
        runs += [number] * len(part.segments)
    return Evidence.of(merge_information(parts), base.rank + len(excerpts[0].harmless) * robot.dof, runs)
