"""Fewer samples of runs, where they tell as much: for the choices of an identification, not for its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dynid.decompositions import pinv
from dynid.processing.experiment import Experiment

SAMPLES_PER_PERIOD = 40.0
"""Smallest number of samples in a period of the upper end of a stated band (convention: a cubic over two such steps
changes what is in the band by less than 1e-4)."""
MANY = 200_000
"""Number of samples of all runs that suffice for a choice (convention: some minutes of a quick log) ..."""
FEWEST = 20_000
"""... and of a single run that are kept in any case (convention)."""
PARTS = 20
"""Number of parts of a long run, evenly spread over it (convention)."""


def shorten_long(runs: Sequence[Experiment]) -> list[Experiment]:
    """Parts of runs that have together many more than `MANY` samples; shorter ones as they are.

    Samples next to one another stay so: friction at reversals would look smoother in every tenth sample.
    """
    share = MANY / max(sum(run.samples for run in runs), 1)
    return [run if share > 0.5 else run.parts(max(int(share * run.samples), FEWEST), PARTS) for run in runs]


def thin_out(run: Experiment, band_hz: float) -> Experiment:
    """The run with as many samples as a band [Hz] needs; torques are those of cubics through their neighbours.

    Both sides of the equations then hold the same below the band, and there are fewer of them to form and to filter.
    """
    step = int(run.rate_hz / (SAMPLES_PER_PERIOD * band_hz))
    if step < 2 or run.samples <= 2 * step:
        return run
    places = np.arange(step, run.samples - step, step)
    windows = partial(sliding_window_view, window_shape=2 * step + 1, axis=0)
    middle = pinv(np.vander(np.linspace(-1.0, 1.0, 2 * step + 1), 4, increasing=True))[0]
    inside = run.segment[places - step] == run.segment[places + step]
    valid = windows(run.valid)[::step].all(axis=2) & inside[:, None]
    effort = windows(np.where(run.valid, run.effort, 0.0))[::step] @ middle
    return replace(run.rows(places), effort=effort, valid=valid, rate_hz=run.rate_hz / step)
