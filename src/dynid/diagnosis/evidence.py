"""The linear regression by which faults of a log or a model are found: its rows and columns.

A suspect is a possible fault, such as a late torque or a wrong encoder zero. To first order it adds a torque that is
linear in its amounts a, so the measured torques of a log with this fault follow

    torque = X x + Z a + noise.

X holds the harmless columns, which a robot without faults has as well: those of its base parameters (links and usual
friction), and shapes of friction that no model need contain. Z holds the columns of the suspect.

`take_excerpt` thins a processed run to few samples. `dynid.diagnosis.suspects.FittedRobot` turns such samples into
`Evidence`, the rows of this regression, and `dynid.diagnosis.verdicts` fits the rows.

Letters of shapes: N samples, n joints, R rows, P columns, B blocks of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d, shift

from dynid.array_types import Bools, Floats, Ints
from dynid.data_reduction import Information
from dynid.processing import Butterworth, Cleaning
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.memory import Hysteresis

BLOCKS, FEWEST_BLOCKS = 20, 6
"""Number of blocks of time (stretches of equal length) that all logs together are cut into, and the fewest of one log.
The scatter of an estimate between blocks is its standard error (convention: Student's t of 19 degrees of freedom is
near the normal distribution)."""
FEW = Cleaning().most_missing  # share of missing samples that does no harm
MOST_ROWS = 3000
"""Largest number of samples that an excerpt of a log holds (convention: more repeat one another)."""
WIDER = 3.0
"""Cutoff of the torques' low-pass, divided by the cutoff of the motion (derivation: products of two speeds have twice
the frequencies of the motion, and the columns of the links are not filtered)."""
RATE = 3.0
"""Sampling rate of an excerpt, divided by the cutoff of the torques (derivation: the low-pass leaves next to nothing
at half of this rate)."""
SLOW, TRAVELS = 0.2, (0.01, 0.05)
"""Two limits of harmless friction. Samples slower than this share of the joint's rms speed are left out, as at rest.
Dry friction builds up over these shares of the joint's range of motion, its presliding (convention: friction that
builds up over a longer way looks like a late torque)."""


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Few samples of a run. One low-pass was applied to the torques and to columns that jump where a joint reverses."""

    run: Experiment
    """The samples, with low-passed torques; `valid` (N, n) marks the torques that count."""
    slope: Floats
    """(N, n) time derivative of the low-passed torques [N m/s or N/s]."""
    harmless: tuple[Floats, ...]
    """(N, n) each: a shape of friction, evaluated for every joint along its motion, that no model need contain."""


def take_excerpt(robot: Robot, run: Experiment, delay_s: float = 0.0) -> Excerpt:
    """Take as many samples of a processed run as the bandwidth of its motion needs, spread over the run.

    Torques are moved back by their delay [s] behind the motion. Not valid are those near missing ones, at low speed,
    and near reversals of a joint or drive.
    """
    known = None if run.derivation is None else run.derivation.smoothing.cutoff_hz  # of positions, in processing
    # a tenth of the rate where the motion has no known cutoff; below the Nyquist frequency in any case
    hz = min(WIDER * known if known else 0.1 * run.rate_hz, 0.4 * run.rate_hz)
    step = max(1, int(run.rate_hz / (RATE * hz)))
    run = run.parts(MOST_ROWS * step, BLOCKS)  # evenly spread parts of a long run

    def low_pass(columns: Floats) -> Floats:
        """Low-pass columns (N, k) in each gap-free stretch; stretches shorter than the filter's memory stay."""
        shortest, smooth = int(run.rate_hz / hz) + 8, Butterworth(run.rate_hz, hz).apply
        return run.by_segment(lambda part: smooth(part) if len(part) > shortest else part, columns)

    # 1. torques: interpolate missing ones for the filter, which spoils its neighbours; then low-pass and move back
    missing = ~np.isfinite(run.effort)
    torque = np.where(missing, 0.0, run.effort)
    for j in np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0)).tolist():
        there = np.flatnonzero(~missing[:, j])
        torque[:, j] = np.interp(np.arange(run.samples), there, torque[there, j])
    torque = torque if run.smoothing is not None else low_pass(torque)  # `smoothing`: processing filtered them already
    valid = run.valid & (np.abs(low_pass(missing.astype(float))) < FEW) if missing.any() else run.valid
    if delay_s:
        later = (-delay_s * run.rate_hz, 0.0)  # samples of which the torques are taken; zero beyond the ends
        torque = run.by_segment(lambda part: shift(part, later), torque)
        valid = valid & (run.by_segment(lambda part: shift(part, later), valid.astype(float)) > 1.0 - FEW)
    rms_speed = np.sqrt(np.mean(run.dq**2, axis=0))
    valid = valid & ~_find_reversals(robot, run, hz) & (np.abs(run.dq) >= SLOW * rms_speed)
    slope = run.by_segment(lambda part: np.gradient(part, axis=0) if len(part) > 1 else np.zeros_like(part), torque)

    # 2. harmless friction: Coulomb, presliding over two ways, Stribeck-like at low speed, quadratic in speed
    def preslide(part: Floats) -> Floats:
        """(N, n) state of presliding in -1..1, from positions (N, n) divided by the way over which it builds up."""
        return np.column_stack([Hysteresis(scale=1.0).along(x, x, x, run.rate_hz) for x in part.T])

    reach = np.maximum(np.ptp(run.q, axis=0), 1e-12)
    shapes = [
        np.sign(run.dq),
        *(run.by_segment(preslide, run.q / (travel * reach)) for travel in TRAVELS),
        np.tanh(run.dq / (SLOW * np.maximum(rms_speed, 1e-12))),
    ]
    harmless = [*map(low_pass, shapes), run.dq * np.abs(run.dq)]

    # 3. every `step`-th sample of all of them
    rows = np.arange(0, run.samples, step)
    thin = replace(run.rows(rows), rate_hz=run.rate_hz / step)
    thin = replace(thin, effort=np.where(valid, torque, np.nan)[rows], valid=valid[rows])
    return Excerpt(thin, run.rate_hz * slope[rows], tuple(np.ascontiguousarray(x[rows]) for x in harmless))


def _find_reversals(robot: Robot, run: Experiment, hz: float) -> Bools:
    """(N, n) whether a joint reverses within one period of the low-pass [Hz], which smears the jump of friction.

    Where a drive moves several joints, its friction reverses with its own speed and acts on all of them.
    """
    own = np.eye(robot.dof)
    drives = [[c.ratios.get(name, 0.0) for name in robot.joint_names] for c in robot.couplings]
    turns = np.zeros(run.q.shape, dtype=bool)
    for ratios in np.vstack([own, *drives]):  # (n,) speed of a drive per speed of each joint
        back = np.diff(np.sign(run.dq @ ratios)) != 0.0
        turns[1:, ratios != 0.0] |= (back & (np.diff(run.segment) == 0))[:, None]  # not from one segment to the next
    return np.asarray(maximum_filter1d(turns, 2 * max(1, round(run.rate_hz / hz)) + 1, axis=0))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows ``torque = columns @ unknowns``, each of one joint and one block of time.

    A row is no sample: those of a joint in a block are compressed to the triangle R of a QR decomposition of
    ``[columns, torque]``, whose at most P + 1 rows have the same normal equations and residual.
    """

    columns: Floats
    """(R, P) torque per unit of each unknown: first the harmless columns, then those of the suspects."""
    torque: Floats
    """(R,) compressed like the columns [N m or N]."""
    joint: Ints
    """(R,) index of each row's joint."""
    block: Ints
    """(R,) number of each row's block of time, from 0."""
    counts: Ints
    """(n,) number of samples of each joint behind the rows."""
    harmless: int
    """Number of harmless columns: base parameters first, then the further shapes of friction."""
    runs: Ints
    """(B,) number of the run that a block belongs to."""

    @classmethod
    def of(cls, information: Information, harmless: int, runs: Sequence[int]) -> Evidence:
        """Collect the triangles of reduced equations, one for each joint and segment (a block of time), in one table.

        The first columns are harmless; `runs` (B,) is the number of each block's run.
        """
        width, tables, places = len(information.columns), [], []
        for joint, support in enumerate(information.supports):
            for block, segment in enumerate(information.segments):
                rows = information.rows(joint, segment)  # [columns that act on this joint, torque]
                tables.append(np.zeros((len(rows), width + 1)))
                tables[-1][:, [*support, width]] = rows
                places += [(joint, block)] * len(rows)
        table, place = np.concatenate(tables), np.array(places)
        counts = information.samples.sum(axis=0)
        return cls(table[:, :-1], table[:, -1], place[:, 0], place[:, 1], counts, harmless, np.asarray(runs))

    @classmethod
    def of_rows(cls, columns: Floats, torque: Floats, joint: Ints, block: Ints) -> Evidence:
        """Take rows as they are, all their columns (R, P) harmless; `joint` may be the channel of a sensor instead."""
        blocks = np.zeros(int(block.max(initial=-1)) + 1, dtype=np.int64)
        return cls(columns, torque, joint, block, np.bincount(joint), columns.shape[1], blocks)

    @property
    def suspects(self) -> Floats:
        """(R, s) the columns of the suspects."""
        return self.columns[:, self.harmless :]

    def by_joint(self, torque: Floats) -> list[Floats]:
        """For each joint the column (R, 1) of its own torque (R,), zero in the rows of other joints."""
        return [(torque * (self.joint == j))[:, None] for j in range(len(self.counts))]

    def effect(self, columns: Floats, value: Floats) -> float:
        """How much torque amounts (d,) of a suspect make: their rms torque over that of a joint, at the worst joint.

        Rows in which all columns (R, d) of the suspect are zero do not count.
        """
        count, here = len(self.counts), columns.any(axis=1)
        made = np.bincount(self.joint, (columns @ value) ** 2, count)
        total = np.bincount(self.joint[here], self.torque[here] ** 2, count)
        return float(np.sqrt(np.max(np.divide(made, total, out=np.zeros(count), where=total > 0.0))))
