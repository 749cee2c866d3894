"""Conditions under which estimators are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product

import numpy as np

from dynid.errors import ArgumentError

_BOUNDS = {
    "position_std": ("--noise", 0.0, True),
    "torque_std": ("torque_noise", 0.0, True),
    "rate_hz": ("--rate", 0.0, False),
    "quantisation": ("quantisation", 0.0, True),
    "gain_error": ("--gains", -1.0, False),
    "start_error": ("start", 0.0, True),
}
"""For each field: its option on the command line, its lower bound, and whether the bound itself is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Errors of the measurement, and errors of the information that the estimator gets."""

    position_std: float = 1e-4
    """Standard deviation of the white position noise, which the controller sees too [rad or m]"""
    torque_std: float = 0.02
    """Standard deviation of the white torque noise, as a share of each joint's rms torque"""
    rate_hz: float = 100.0
    """Sampling rate of the log [Hz]"""
    quantisation: float = 0.0
    """Resolution of the encoders [rad or m]; 0 for exact positions"""
    gain_error: float = 0.0
    """Relative error of the controller gains that the estimators get"""
    start_error: float = 0.1
    """Relative error of the initial parameters of the estimators, with random sign"""

    def __post_init__(self) -> None:
        """Refuse values outside the bounds."""
        for entry in fields(self):
            value, (option, least, closed) = getattr(self, entry.name), _BOUNDS[entry.name]
            if not (least < value < np.inf or (closed and value == least)):
                raise ArgumentError(
                    f"{entry.name} ({option}) is {value:g}",
                    remedy=f"Give a finite number {'from' if closed else 'above'} {least:g}{' on' if closed else ''}.",
                )

    @property
    def known_position_std(self) -> float:
        """Standard deviation of the position error, including the resolution of the encoders [rad or m].

        A rounding error is uniform over one step, so its variance is the square of the step over 12.
        """
        return float(np.hypot(self.position_std, self.quantisation / np.sqrt(12.0)))

    @property
    def label(self) -> str:
        """Short description."""
        return ", ".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """Noise and rate, and everything that differs from the default."""
        parts = [f"{self.position_std:g} rad", f"{self.rate_hz:g} Hz"]
        if self.torque_std != Condition().torque_std:
            parts.append(f"torque noise {100 * self.torque_std:g} %")
        if self.quantisation:
            parts.append(f"steps {self.quantisation:g} rad")
        if self.gain_error:
            parts.append(f"gains {100 * self.gain_error:+g} %")
        if self.start_error != Condition().start_error:
            parts.append(f"start {100 * self.start_error:g} % off")
        return tuple(parts)


def conditions(
    *,
    position_std: Sequence[float] = (1e-4,),
    torque_std: Sequence[float] = (0.02,),
    rate_hz: Sequence[float] = (100.0,),
    quantisation: Sequence[float] = (0.0,),
    gain_error: Sequence[float] = (0.0,),
    start_error: Sequence[float] = (0.1,),
) -> tuple[Condition, ...]:
    """Make all combinations of the given values, each once."""
    found = (
        Condition(position_std=a, torque_std=b, rate_hz=c, quantisation=d, gain_error=e, start_error=f)
        for c, b, d, e, f, a in product(rate_hz, torque_std, quantisation, gain_error, start_error, position_std)
    )
    return tuple(dict.fromkeys(found))
