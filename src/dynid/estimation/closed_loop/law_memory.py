"""What a control law remembers along a measured motion, as the integral of a PID law does.

To first order in the memory m, with what the law adds to it at every control instant and slopes A of the new memory,

    m(k + 1) = driven(k) + A(k) m(k),    tau(k) = held(k) + C(k) m(k)

along positions, velocities and references: measured torques tell where the memory started, whatever the robot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.loop.arm import control_tape
from dynid.loop.laws import ControlLaw
from dynid.loop.loop import ReferenceMotion
from dynid.loop.sensitivity import compile_law_slopes
from dynid.processing.experiment import Experiment
from dynid.tape import compile_tape

__all__ = ["acting_on", "carried", "starting_memory"]

Floats = NDArray[np.float64]
LOOKED_S = 1.0
"""Of the log, from which the memory at its beginning is found out [s]."""
UNSEEN = 1e-6
"""Singular values, relative to the largest, of what torques do not tell."""


def acting_on(slopes: Floats, change: Floats) -> Floats:
    """(N, n) what changes (N, k) do through slopes (N, n, k)."""
    return np.asarray((slopes @ change[:, :, None])[:, :, 0])


def carried(driven: Floats, kept: Floats, periods: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """What has been added up at every sample, (N, m), and what is left of the memory at the first, (N, m, m).

    Args:
        driven: (N, m) added in a control period; linear between samples.
        kept: (N, m, m) slopes of the memory after a control period.
        periods: (N,) control periods since the sample before.
    """
    m = driven.shape[1]
    before = np.concatenate([driven[:1], driven[:-1]])
    added, power = np.zeros_like(driven), np.broadcast_to(np.eye(m), kept.shape)
    for period in range(int(periods.max())):  # a memory that decays, and what is added to it, over several periods
        lasts = (periods > period)[:, None]
        present = before + (driven - before) * (period / np.maximum(periods, 1))[:, None]
        added = np.where(lasts, acting_on(kept, added) + present, added)
        power = np.where(lasts[:, :, None], kept @ power, power)
    total, left = np.zeros((len(driven), m)), np.zeros((len(driven), m, m))
    left[0] = np.eye(m)
    for k in range(1, len(total)):
        total[k] = power[k] @ total[k - 1] + added[k]
        left[k] = power[k] @ left[k - 1]
    return total, left


def starting_memory(run: Experiment, law: ControlLaw, reference: ReferenceMotion) -> Floats | None:
    """(m,) memory with which the law gives the torques measured at the beginning of a log; None for one without memory.

    Args:
        run: A gap-free stretch, of which the first sample is at the reference's first instant.
        law: The control law.
        reference: What it was to follow.
    """
    n = run.q.shape[1]
    m = law.memory_size(n)
    if not m:
        return None
    factor = max(1, round(reference.rate_hz / run.rate_hz))
    rows = slice(0, min(run.samples, 2 + round(LOOKED_S * run.rate_hz), -(-len(reference.q) // factor)))
    wanted = [x[::factor][rows] for x in (reference.q, reference.dq, reference.ddq)]
    count = len(wanted[0])
    state = np.concatenate([run.q[rows], run.dq[rows], np.zeros((count, 1))], axis=1)
    tape, given = control_tape(law, n, 1.0 / reference.rate_hz), (np.zeros((count, m)), np.concatenate(wanted, axis=1))
    made = compile_tape(tape, "numpy")(state, *given)
    L = np.asarray(compile_law_slopes(tape, n, "numpy")(state, *given))
    through = L[:, :n, 2 * n :]
    total, left = carried(made["memory"], L[:, n:, 2 * n :], np.minimum(np.arange(count), 1) * factor)
    known = run.valid[rows]
    rest = np.where(known, np.nan_to_num(run.effort[rows]) - made["held"] - acting_on(through, total), 0.0)
    response = ((through @ left) * known[:, :, None]).reshape(-1, m)
    sizes = np.maximum(np.linalg.norm(response, axis=0), 1e-300)
    found = np.linalg.lstsq(response / sizes, rest.reshape(-1), rcond=UNSEEN)[0] / sizes
    return np.where(sizes > 1e-290, found, 0.0)
