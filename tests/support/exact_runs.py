"""Experiments of exact motions, with whatever signals a test plants."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.processing.experiment import Experiment

Floats = NDArray[np.float64]


def exact_run(time: Floats, motion: tuple[Floats, Floats, Floats], **signals: Any) -> Experiment:
    """One gap-free stretch of q, dq, ddq (N, n), without torques unless they are given."""
    q, dq, ddq = motion
    fields: dict[str, Any] = {
        "effort": np.zeros_like(q),
        "valid": np.ones(q.shape, dtype=bool),
        "segment": np.zeros(len(time), dtype=np.int64),
        "rate_hz": round(1.0 / float(time[1] - time[0]), 6),
    }
    return Experiment(time=time, q=q, dq=dq, ddq=ddq, **fields | signals)
