"""Doubts about samples that come while a robot runs, each said once.

They are wrong units, shuffled joints, a slow stream, and torques that are dead or have the wrong sign.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.arrays import Floats
from dynid.monitor.calibration import Calibration
from dynid.monitor.live_lines import SET_CLOCK_S, Sample

FIRST = 200
"""Samples after which rate, positions and velocities are judged (convention)."""
QUICK = 4.0
"""Times the high speed or torque of the calibration above which units are doubted (convention: 57 for degrees)."""
OFTEN = 20
"""Samples beyond this that make a doubt (convention: no single spike)."""
SLOW = 1.5
"""Periods of the calibration between two samples above which the stream is too slow (convention)."""
UNLIKE = 2.0
"""Ratio of moved positions to integrated velocities, or its inverse, above which they disagree (convention)."""

LONG = 1000
"""Samples that are compared with the torques of the model at a time (convention: some seconds)."""
LOADED = 0.1
"""Part of its high torque that the model must expect on a joint for its torque to be judged (convention)."""
OPPOSITE = -0.5
"""Correlation of measured and expected torques below which their signs differ (convention)."""


class LiveChecks:
    """Looks at samples one by one."""

    def __init__(self, calibration: Calibration) -> None:
        """Prepare for the joints and the rate of a calibration."""
        n = len(calibration.joint_names)
        self._known, self._count = calibration, 0
        self._last: Sample | None = None
        self._beyond = np.zeros((2, n), dtype=np.int64)
        self._periods: list[float] = []
        self._moved, self._integrated = np.zeros(n), np.zeros(n)
        self._is_known, self._compared, self._sums = np.zeros(n, dtype=bool), 0, np.zeros((3, n))

    def step(self, sample: Sample, external: Floats | None = None) -> Iterator[str]:
        """Take a sample; iterate over the doubts that it raises.

        Args:
            sample: The sample.
            external: (n,) torques from outside by the watch [N m or N]; None while it does not know them.
        """
        before, self._last = self._last, sample
        self._count += 1
        if before is not None and self._count <= FIRST and 0.0 < sample.time_s - before.time_s <= SET_CLOCK_S:
            period = sample.time_s - before.time_s
            self._periods.append(period)
            self._moved += np.abs(sample.q - before.q)
            self._integrated += period * 0.5 * np.abs(sample.dq + before.dq)
        yield from self._units(sample)
        if self._count == FIRST and self._periods:
            yield from self._rate()
            yield from self._motion()
        if external is not None and not self._is_known.all():
            yield from self._torques(sample.torque, sample.torque + external)

    def _units(self, sample: Sample) -> Iterator[str]:
        band = self._known.band
        for row, (values, high, name, units) in enumerate(
            (
                (sample.dq, band.high_speed, "velocity", "rad/s or m/s"),
                (sample.torque, band.high_torque, "torque", "N m or N"),
            )
        ):
            self._beyond[row] += np.abs(values) > QUICK * high
            for j in np.flatnonzero(self._beyond[row] == OFTEN):
                self._beyond[row, j] += 1  # said once
                ratio = abs(values[j]) / high[j]
                yield (
                    f"the {name} of {self._known.joint_names[j]} is {ratio:.0f} times what is usual in the "
                    f"calibration; check its unit ({units}) and the order of the joints"
                )

    def _rate(self) -> Iterator[str]:
        found, wanted = 1.0 / float(np.median(self._periods)), self._known.whitening.rate_hz
        if found * SLOW < wanted:
            yield (
                f"samples come at {found:.3g} Hz, but the watch is calibrated for {wanted:.3g} Hz; "
                "send every sample, or calibrate from a log at this rate"
            )

    def _motion(self) -> Iterator[str]:
        moving = np.maximum(self._moved, self._integrated) > 0.1  # [rad or m]
        ratio = (self._moved + 1e-9) / (self._integrated + 1e-9)
        for j in np.flatnonzero(moving & ((ratio > UNLIKE) | (ratio < 1.0 / UNLIKE))):
            yield (
                f"positions of {self._known.joint_names[j]} move {ratio[j]:.2g} times as far as its velocities say; "
                "check their units (rad, rad/s) and the order of the joints"
            )

    def _torques(self, measured: Floats, expected: Floats) -> Iterator[str]:
        """Compare torques (n,) with those of the model; a push is no part of either."""
        self._sums += np.square(measured), np.square(expected), measured * expected
        self._compared += 1
        if self._compared < LONG:
            return
        (own, model, product), self._compared, self._sums = self._sums, 0, np.zeros_like(self._sums)
        is_loaded = ~self._is_known & (np.sqrt(model / LONG) > LOADED * self._known.band.high_torque)
        self._is_known |= is_loaded
        for j in np.flatnonzero(is_loaded):
            name = self._known.joint_names[j]
            if own[j] == 0.0:
                yield f"the torque of {name} is zero all the time, but the model expects some; check its source"
            elif product[j] < OPPOSITE * np.sqrt(own[j] * model[j]):
                yield f"the torque of {name} has the opposite sign of what the model expects; check its sign"
