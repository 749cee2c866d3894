"""Long experiments in blocks, and how uncertain a solution is when noise is correlated in time and between channels.

The solution of ``sum_t H_t' v_t(theta) = 0`` has covariance ``A^-1 B A^-T``: A is the slope of the sum and B its
covariance. By Parseval ``B = sum_f H(f)* S(f) H(f)``: only noise at frequencies where H has power matters, whatever
filters and differentiation did to the rest. The spectral density S of the noise is taken to be constant within bands,
where its periodograms are averaged. Experiments are cut into blocks, so that only a few blocks of H are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import condition_number, eigh
from dynid.errors import IdentifiabilityError

Arrays = TypeVar("Arrays", bound=NDArray[Any] | tuple[NDArray[Any], ...])
SPECTRUM_SAMPLES = 4096
"""Most samples of a block whose spectrum is taken at once (convention)."""
BESIDE = 64
"""Samples on either side of a block that differences at its ends see."""
MEMORY = 2**26
"""Bytes of arrays that are kept for the next time they are needed."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive samples of an experiment."""

    run: int
    """Number of the experiment"""
    rows: slice
    wide: slice
    """The same rows and those beside them"""

    @property
    def inner(self) -> slice:
        """Where the block's rows are among the wide ones."""
        return slice(self.rows.start - self.wide.start, self.rows.stop - self.wide.start)


def cut(samples: Sequence[int], size: int = SPECTRUM_SAMPLES) -> tuple[Block, ...]:
    """Cut experiments with these numbers of samples into equal blocks of at most ``size`` samples."""
    blocks = []
    for run, count in enumerate(samples):
        edges = np.linspace(0, count, -(-count // size) + 1).astype(int).tolist()
        for start, stop in pairwise(edges):
            wide = slice(max(0, start - BESIDE), min(count, stop + BESIDE))
            blocks.append(Block(run, slice(start, stop), wide))
    return tuple(blocks)


class Kept(Generic[Arrays]):
    """Arrays by number, made whenever they are asked for; the first ones are kept, as far as memory allows."""

    def __init__(self, make: Callable[[int], Arrays], count: int, memory: int | None = None) -> None:
        """Nothing is made yet.

        Args:
            make: The arrays of a number.
            count: How many numbers there are.
            memory: Bytes that may be kept; MEMORY by default.
        """
        self._make, self._count = make, count
        self._left = MEMORY if memory is None else memory
        self._kept: dict[int, Arrays] = {}

    def __len__(self) -> int:
        """How many numbers there are."""
        return self._count

    def __getitem__(self, number: int) -> Arrays:
        """The arrays of a number."""
        if number in self._kept:
            return self._kept[number]
        made = self._make(number)
        size = sum(array.nbytes for array in (made if isinstance(made, tuple) else (made,)))
        if size <= self._left:
            self._kept[number], self._left = made, self._left - size
        return made

    def __iter__(self) -> Iterator[Arrays]:
        """All of them in turn."""
        return (self[number] for number in range(self._count))


BAND_HZ = 4.0
"""Least width of the bands within which the noise's spectrum is taken to be flat [Hz]."""
BANDS = 12
"""Most bands of the noise's spectrum; where there would be more, they are wider."""
SMALLEST_SHARE = 0.25
"""Smallest share of the noise's degrees of freedom that is taken to be left after the fit."""
SINGULAR = 1e-13
"""Smallest reciprocal condition number of scaled equations that are solved."""
RESOLVED = 1e-9
"""Smallest relative change of the outputs that is not taken for rounding (convention)."""
LARGEST_RATIO = 0.5
"""Largest ratio of consecutive steps that is extrapolated (convention): a step becomes at most twice as long."""


def solution_covariance(
    slope: Floats,
    rows: Sequence[Floats] | Kept[Floats],
    noise: Sequence[Floats],
    rate_hz: float,
    outputs: int | None = None,
) -> Floats:
    """(b, b) covariance of the solution.

    The fit takes its share out of the noise, and takes it from outputs and bands in proportion to what they contribute:
    of the ``2 width T`` independent values of an output in a band, their share of b are gone. Samples that do not count
    are zero; the density is that of the others.

    Args:
        slope: (b, b) matrix A.
        rows: (N, m, b) matrices H of every run, or of long blocks of it: noise of different ones is independent.
        noise: (N, m) of each: what is left over with the solution, zero where a sample does not count.
        rate_hz: Sampling rate [Hz].
        outputs: How many of the m outputs, the first, were fitted; all by default.
    """
    m, b = noise[0].shape[1], slope.shape[0]
    spectra = Kept(lambda k: spectrum(rows[k]), len(noise))
    sums = NoiseSums(m, b, rate_hz, outputs)
    for H, values in zip(spectra, noise, strict=True):
        sums.add_noise(H, values)
    for H, values in zip(spectra, noise, strict=True):
        sums.add_rows(H, len(values))
    return sums.covariance(slope)


def spectrum(x: Floats) -> NDArray[np.complex128]:
    """(F, ...) Fourier transform of rows (N, ...), with zeros behind them up to a length that is quick to transform."""
    return np.asarray(np.fft.rfft(x, quick_length(len(x)), axis=0))


def quick_length(samples: int) -> int:
    """Samples with those zeros, which do not count any more than others that are left out: no factor above 5."""
    odd = (int(3**i * 5**k) for i in range(21) for k in range(14))
    powers = (factor for factor in odd if factor < 5 * samples)
    return min(factor << max(0, (-(-samples // factor) - 1).bit_length()) for factor in powers)


def times(matrices: Floats, values: Floats) -> Floats:
    """(N, n) products of matrices (N, n, b) with values (b,): one product in place of N small ones."""
    return np.asarray((matrices.reshape(-1, matrices.shape[2]) @ values).reshape(matrices.shape[:2]))


class NoiseSums:
    """The sums behind `solution_covariance`: every run is shown twice, and none is kept."""

    def __init__(self, m: int, b: int, rate_hz: float, outputs: int | None = None) -> None:
        """Nothing is seen yet; arguments as for `solution_covariance`."""
        self._rate_hz, self._fitted = rate_hz, np.arange(m) < (outputs or m)
        self._width = max(BAND_HZ, 0.5 * rate_hz / BANDS)
        self._bands = max(1, int(np.ceil(0.5 * rate_hz / self._width)))
        self._densities = np.zeros((self._bands, m, m), dtype=complex)
        self._powers, self._values = np.zeros((self._bands, m, b)), np.zeros(self._bands)
        self._counts, self._samples = np.zeros(m), 0
        self._roots: list[NDArray[np.complex128]] = []
        self._B = np.zeros((b, b))

    def add_noise(self, H: NDArray[np.complex128], noise: Floats) -> None:
        """First pass, over all runs: add `spectrum` (F, m, b) of the rows, and the noise (N, m)."""
        m, b, N, v = *H.shape[1:], quick_length(len(noise)), spectrum(noise)
        self._counts, self._samples = self._counts + np.count_nonzero(noise, axis=0), self._samples + N
        for band in range(self._bands):
            inside = _inside(band, self._width, self._rate_hz, N)
            self._densities[band] += v[inside].T @ v[inside].conj() / N
            self._values[band] += 2.0 * len(v[inside])
            parts = H[inside].view(np.float64).reshape(-1, m, b, 2)
            self._powers[band] += np.einsum("fmbp,fmbp->mb", parts, parts) * (2.0 / N)

    def add_rows(self, H: NDArray[np.complex128], N: int) -> None:
        """Second pass, over all runs again: add `spectrum` (F, m, b) of the N rows."""
        roots, N = self._roots or self._density_roots(), quick_length(N)
        for band in range(self._bands):
            inside = H[_inside(band, self._width, self._rate_hz, N)]
            scaled = (roots[band].T @ inside.conj()).reshape(-1, len(self._B))
            parts = np.concatenate([scaled.real, scaled.imag])
            self._B += 2.0 / N * (parts.T @ parts)

    def _density_roots(self) -> list[NDArray[np.complex128]]:
        """(m, m) factors of the density of every band, after the loss of freedom by the fit was corrected."""
        counting = self._counts / self._samples
        known = np.sqrt(np.maximum(counting, 1e-300))
        densities = self._densities / (np.maximum(0.5 * self._values, 1.0)[:, None, None] * np.outer(known, known))
        powers = self._powers * (np.diagonal(densities, axis1=1, axis2=2).real * self._fitted)[:, :, None]
        taken = (powers / np.maximum(powers.sum(axis=(0, 1)), 1e-300)).sum(axis=2)  # (bands, m), adds up to b
        share = 1.0 - taken / np.maximum(self._values[:, None] * counting, 1.0)
        scale = 1.0 / np.sqrt(np.maximum(share, SMALLEST_SHARE))
        self._roots = [_root(densities[band]) * scale[band][:, None] for band in range(self._bands)]
        return self._roots

    def covariance(self, slope: Floats) -> Floats:
        """(b, b) of the solution whose equations have this slope."""
        inverse = np.linalg.inv(slope)
        return np.asarray(inverse @ self._B @ inverse.T)


def _inside(band: int, width: float, rate_hz: float, N: int) -> slice:
    """Which of a spectrum's frequencies are in a band; rest (the mean) counts half and is left to the first."""
    edge = width * N / rate_hz
    return slice(int(np.ceil(band * edge)), min(int(np.ceil((band + 1) * edge)), N // 2 + 1))


def _root(density: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """(m, m) factor F with ``F F* = density``, which may be singular."""
    values, vectors = eigh(density)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def scaled_condition(normal: Floats) -> float:
    """Condition number of the equations behind a normal matrix J'WJ (b, b), their columns scaled to length one."""
    length = np.sqrt(np.diagonal(normal))
    return float(np.sqrt(condition_number(normal / np.outer(length, length))))


def solve_scaled(matrix: Floats, right: Floats) -> tuple[Floats, float]:
    """The solution of square equations whose unknowns differ much in size, and the scaled condition number.

    Raises:
        IdentifiabilityError: The equations do not determine all unknowns.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diagonal(matrix)), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    condition = float(condition_number(scaled)) if np.isfinite(scaled).all() else np.inf
    if not condition < 1.0 / SINGULAR:
        raise IdentifiabilityError(
            "the simulated motion does not determine all base parameters",
            remedy="Move every joint, check that the control law moves the simulated robot too, or identify a reduced "
            "set first (dynid.estimation.ReducedSet).",
        )
    return scale * np.linalg.solve(scaled, scale * right), condition


def smallest_changes(normal: Floats, squares: float) -> Floats:
    """(b,) change of each parameter alone that changes the outputs by RESOLVED of themselves.

    Args:
        normal: (b, b) normal matrix.
        squares: Weighted sum of the squared outputs.
    """
    return np.asarray(RESOLVED * np.sqrt(squares / np.maximum(np.abs(np.diagonal(normal)), 1e-300)))


def extrapolate_step(step: Floats, before: Floats | None, normal: Floats) -> Floats:
    """A step of a fixed-point iteration, extrapolated by Aitken's rule from the ratio to the step before it."""
    if before is None:
        return step
    metric = np.abs(np.diagonal(normal))
    ratio = float((step * metric) @ before / max(float((before * metric) @ before), 1e-300))
    return step / (1.0 - min(max(ratio, 0.0), LARGEST_RATIO))
