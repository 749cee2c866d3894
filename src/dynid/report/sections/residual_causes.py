"""Why held-out torques are not predicted: noise, which is measured above the band of the motion, or the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.links.identify import Identification
from dynid.links.validation import NOISE_SHARE, Validation
from dynid.processing.experiment import Experiment
from dynid.report.series import FEWEST, autocorrelate


@dataclass(frozen=True, slots=True)
class JointResidual:
    """What is left of one joint's held-out torque."""

    name: str
    noise_percent: float
    """Share of noise in the power of the residual [%]."""
    correlation_s: float
    """Time after which the autocorrelation of the residual has fallen to 1/e [s]."""

    @property
    def is_noise(self) -> bool:
        """Whether noise is the larger part of the residual."""
        return self.noise_percent >= NOISE_SHARE

    @property
    def reason(self) -> str:
        """``noise`` or ``model``."""
        return "noise" if self.is_noise else "model"


def joint_residuals(fit: Identification, check: Validation, runs: Sequence[Experiment]) -> tuple[JointResidual, ...]:
    """Split the held-out residuals of every joint into noise and errors of the model.

    Args:
        fit: The identification.
        check: Its validation.
        runs: The runs of the validation.
    """
    longest = max(runs, key=lambda run: run.samples).matched(fit.robot)
    shares = np.zeros(len(check.joint_names)) if check.noise_percent is None else check.noise_percent
    residual = longest.effort - fit.torque(longest)
    found = []
    for j, name in enumerate(check.joint_names):
        e = residual[longest.valid[:, j], j]
        found.append(JointResidual(name, float(shares[j]), _correlation_time(e, longest.rate_hz)))
    return tuple(found)


def _correlation_time(e: Floats, rate_hz: float) -> float:
    """First lag at which the autocorrelation is below 1/e [s]; at most one second is looked at."""
    if e.size < FEWEST:
        return 0.0
    lags, correlation = autocorrelate(e, rate_hz)
    below = np.flatnonzero(correlation < np.exp(-1.0))
    return float(lags[below[0]] if below.size else lags[-1])
