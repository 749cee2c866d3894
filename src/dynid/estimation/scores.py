"""How uncertain the solution of estimating equations is when noise is correlated in time and between channels.

The solution of ``sum_t H_t' v_t(theta) = 0`` has covariance ``A^-1 B A^-T``: A is the slope of the sum and B its
covariance. H is smooth, so only the noise v within H's band matters; filters may have cut what is above, and
differentiation raised it. Within that band its spectrum is taken to be flat: v's periodograms averaged over the band
give one (m, m) matrix S, and ``B = sum_t H_t' S H_t``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.errors import IdentifiabilityError

__all__ = ["lengthened", "resolvable", "scaled_solution", "solution_covariance"]

Floats = NDArray[np.float64]
POWER = 0.99
"""Share of H's power that its band holds."""
WIDER = 1.5
"""The noise is looked at in a band wider than that by this factor, ..."""
NARROWEST_HZ = 3.0
"""... at least up to here, ..."""
FLAT = 0.75
"""Filtered noise is flat up to this share of the frequency below which it has nine tenths of its power."""
WIDEST = 0.8
"""... and at most up to this share of half the sampling rate."""
SMALLEST_SHARE = 0.25
"""Of the noise's freedom that is taken to be left, however many parameters were fitted."""
SINGULAR = 1e-13
"""Smallest reciprocal condition number of scaled equations that are solved."""


def solution_covariance(
    slope: Floats, rows: Sequence[Floats], noise: Sequence[Floats], rate_hz: float, outputs: int | None = None
) -> tuple[Floats, float]:
    """(b, b) covariance of the solution, and the band of the noise that counted [Hz].

    The fit takes its share out of the noise, and takes it from that band: of the ``2 band T`` independent values of
    each output, b are gone.

    Args:
        slope: (b, b) matrix A.
        rows: (N, m, b) matrices H of every run.
        noise: (N, m) of every run: what is left over with the solution.
        rate_hz: Of the samples [Hz].
        outputs: Number of outputs that were fitted; m by default.
    """
    band = min(_band(rows, rate_hz), _flat(noise, rate_hz))
    m, b = noise[0].shape[1], slope.shape[0]
    density, values = np.zeros((m, m)), 0.0
    for v in noise:
        spectrum = np.fft.rfft(v, axis=0)
        inside = slice(0, 1 + int(band * len(v) / rate_hz))
        part = spectrum[inside]
        part[1:] *= np.sqrt(2.0)  # each of these stands for its negative frequency too
        density += (part.T @ part.conj()).real / len(v)
        values += 2.0 * len(part) - 1.0
    density /= values
    share = 1.0 - b / (values * (outputs or m))
    root = np.linalg.cholesky(density + 1e-14 * max(np.trace(density), 1e-280) * np.eye(m))
    B = np.zeros((b, b))
    for H in rows:
        scaled = np.tensordot(H, root, axes=(1, 0)).transpose(0, 2, 1).reshape(-1, b)
        B += scaled.T @ scaled
    inverse = np.linalg.inv(slope)
    return inverse @ B @ inverse.T / max(share, SMALLEST_SHARE), band


def _flat(noise: Sequence[Floats], rate_hz: float) -> float:
    """Upper end of the band in which low-passed noise may still be flat [Hz]."""
    longest = max(noise, key=len)
    power = np.cumsum(np.abs(np.fft.rfft(longest, axis=0)) ** 2, axis=0)
    reached = [int(np.searchsorted(column, 0.9 * column[-1])) for column in power.T if column[-1] > 0.0]
    return float(max(FLAT * min(reached, default=len(power)) * rate_hz / len(longest), 1.0))


def _band(rows: Sequence[Floats], rate_hz: float) -> float:
    """Upper end of the band in which the noise counts [Hz]."""
    longest = max(rows, key=len)
    flat = longest.reshape(len(longest), -1)
    scale = np.sqrt((flat**2).sum(axis=0))
    flat = flat[:, scale > 0.0] / scale[scale > 0.0]
    power = (np.abs(np.fft.rfft(flat, axis=0)) ** 2).sum(axis=1)
    total = float(power.sum())
    reached = int(np.searchsorted(np.cumsum(power), POWER * total)) if total > 0.0 else 0
    highest = reached * rate_hz / len(longest)
    return float(min(max(WIDER * highest, NARROWEST_HZ), WIDEST * 0.5 * rate_hz))


def scaled_solution(matrix: Floats, right: Floats) -> tuple[Floats, float]:
    """The solution of square equations whose unknowns differ much in size, and the scaled condition number.

    Raises:
        IdentifiabilityError: The equations do not determine all unknowns.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diagonal(matrix)), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    condition = float(np.linalg.cond(scaled)) if np.isfinite(scaled).all() else np.inf
    if not condition < 1.0 / SINGULAR:
        raise IdentifiabilityError(
            "the simulated motion does not determine all base parameters",
            remedy="Move every joint, or identify a reduced set first (dynid.ReducedSet).",
        )
    return scale * np.linalg.solve(scaled, scale * right), condition


def resolvable(normal: Floats, squares: float) -> Floats:
    """(b,) changes of single parameters that change the outputs, of which these are the weighted squares, by 1e-9."""
    return np.asarray(1e-9 * np.sqrt(squares / np.maximum(np.abs(np.diagonal(normal)), 1e-300)))


def lengthened(step: Floats, before: Floats | None, normal: Floats) -> Floats:
    """A step of a fixed-point iteration, lengthened as the step before it shows that others would follow (Aitken)."""
    if before is None:
        return step
    metric = np.abs(np.diagonal(normal))
    ratio = float((step * metric) @ before / max(float((before * metric) @ before), 1e-300))
    return step / (1.0 - min(max(ratio, 0.0), 0.5))
