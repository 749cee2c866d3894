"""Least squares for the equations of a load, and its uncertainty when the noise is correlated in time.

Every channel is reduced to one small triangle; weights, solution and residuals follow from the triangles. The
covariance of the solution under noise that is correlated in time is

    covariance = C (W^H S W) C        C = (W^T W)^-1, S the spectrum of the residuals over that of white noise

S is smoothed over neighbouring frequencies and corrected, frequency by frequency, for what the fit has removed from the
residuals. Every unknown so gets its own factor, since slow and fast columns see different noise.

Every moment of inertia is judged by itself. Where the data leave some of them open, all six get a weak prior: zero,
give or take the whole mass on a plausible radius. A moment that still is hardly more certain than that counts as open.
The others keep what the data say, also in a frame that is turned by some microradians against the axis of motion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import stdtrit

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.errors import IdentifiabilityError
from dynid.information.triangular import factor_from_preconditioned, make_preconditioner, precondition_rows
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

RESOLUTION = 1e-7
"""Smallest relative singular value of the scaled equations that counts as determined; convention."""
ROUNDS = 4
"""Rounds of weighting by the residuals of the round before; convention: the weights change little after two."""
PLAUSIBLE_RADIUS = 0.15
"""Radius [m]: moments of inertia that are less certain than those of the whole mass on this radius count as unknown;
convention, the size of a load in a hand."""
HEAVY_LOAD = 10.0
"""Mass [kg] by which moments of inertia are judged where the data leave the mass open; convention."""
OPEN_SHARE = 0.2
"""Standard deviation of a moment of inertia, as a share of its prior one, from which on it counts as open; convention:
the data then hardly say more than the prior."""
SHARED_SAMPLES = 10.0
"""Weight [samples] of the mean variance of a kind of channels in the variance of each of them; convention."""
STRETCH = 1 << 14
"""Number of samples whose spectrum is computed at once: memory stays bounded, and noise forgets sooner."""
REPRESENTATIVE = 500
"""Number of samples that the preconditioner is made from; convention, ten times the unknowns."""
FEW = 32
"""Number of samples below which nothing is said about correlation in time; convention."""
LEAST_WHITE_SHARE = 0.1
"""Smallest share of the noise power that the fit is taken to leave at a frequency; guards a division."""
NEGLIGIBLE = 1e-12
"""Ratio of a column's length, or of a channel's noise, to the largest one that rounding alone can make."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearSolution:
    """The solution of a linear least-squares problem with k unknowns."""

    values: Floats
    """(k,) of the smallest norm where the data leave directions open"""
    covariance: Floats
    """(k, k) within what the data determine; 1.96 standard deviations hold 95 % for few samples and for many"""
    undetermined: NDArray[np.bool_]
    """(k,) whether the data leave the unknown open"""
    noise_std: Floats
    """(c,) standard deviation of the residual of each channel"""
    autocorrelation_factor: float
    """Mean growth of the variances by correlation in time, at least one"""


def solve_load_equations(W: Floats, y: Floats, noise_std: Floats | None = None) -> LinearSolution:
    """Solve the equations of a load and judge every moment of inertia by itself; see `solve_weighted`.

    Args:
        W: (N, c, k) equations; the first ten columns are those of the load.
        y: (N, c) measurements.
        noise_std: (c,) standard deviations of the channels where they are known.
    """
    plain = solve_weighted(W, y, noise_std)
    is_mass_open = bool(plain.undetermined[9])
    implausible = find_implausible_inertia(plain.values, plain.covariance, is_mass_open=is_mass_open)
    if not (plain.undetermined[:6] | implausible).any():
        return plain
    prior = np.append(inertia_prior(plain.values, is_mass_open=is_mass_open), np.zeros(W.shape[2] - 10))
    solution = solve_weighted(W, y, noise_std, prior)
    undetermined = plain.undetermined.copy()  # the prior is for moments of inertia only
    undetermined[:6] = find_open_moments(solution.covariance, prior)
    return replace(solution, undetermined=undetermined)


def solve_weighted(
    W: Floats, y: Floats, noise_std: Floats | None = None, prior: Floats | None = None
) -> LinearSolution:
    """Solve ``W x = y`` with every channel weighted by its own residual.

    Args:
        W: (N, c, k) equations of c channels.
        y: (N, c) measurements.
        noise_std: (c,) standard deviations of the channels where they are known. By default they come from the
            residuals; channels of one kind (forces, moments) share what few samples cannot tell apart.
        prior: (k,) one over the standard deviation of each unknown about zero before any data; zero without a prior,
            as by default.

    Raises:
        IdentifiabilityError: The noise is not known, and there are as many unknowns as equations.
    """
    count, channels, unknowns = W.shape
    before = np.diag(np.zeros(unknowns) if prior is None else prior)
    before = np.column_stack([before, np.zeros(unknowns)])[np.any(before, axis=1)]
    triangles = [_triangle(np.column_stack([W[:, c], y[:, c]])) for c in range(channels)]
    smallest = NEGLIGIBLE * max(float(np.abs(y).max()), 1e-150)
    std = np.ones(channels) if noise_std is None else np.maximum(noise_std, smallest)
    spare = np.full(channels, np.inf)
    for _ in range(ROUNDS if noise_std is None else 1):  # weights from the residuals of the round before
        rows = np.concatenate([*(triangle / s for triangle, s in zip(triangles, std, strict=True)), before])
        values, covariance, undetermined = solve_minimum_norm(rows[:, :-1], rows[:, -1])
        if noise_std is None:
            squares = np.array([np.sum((triangle @ np.append(values, -1.0)) ** 2) for triangle in triangles])
            used = [np.sum((t[:, :-1] @ covariance) * t[:, :-1]) / s**2 for t, s in zip(triangles, std, strict=True)]
            variance, spare = _shared_variance(squares, count - np.array(used))
            std = np.maximum(np.sqrt(variance), smallest)
    residual = y - W @ values
    gram = spectral_gram(W / std[:, None], residual / std, covariance) + before[:, :-1].T @ before[:, :-1]
    grown, factor = inflate_covariance(covariance, gram)
    return LinearSolution(
        values=values,
        covariance=grown * student_factor(float(spare.min()) / factor) ** 2,
        undetermined=undetermined,
        noise_std=std,
        autocorrelation_factor=factor,
    )


def _shared_variance(squares: Floats, spare: Floats) -> tuple[Floats, Floats]:
    """Variance (c,) of each channel, and degrees of freedom (c,) of its kind: three channels make a kind."""
    kind = np.arange(len(squares)) // 3
    total, freedom = (np.asarray(np.bincount(kind, x)[kind], dtype=float) for x in (squares, spare))
    if freedom.min() < 0.5:
        raise IdentifiabilityError(
            "there are no more equations than unknowns, so that the noise cannot be estimated",
            remedy="Give more poses or samples, or noise_std.",
        )
    return (squares + SHARED_SAMPLES * total / freedom) / (np.maximum(spare, 0.0) + SHARED_SAMPLES), freedom


def _triangle(rows: Floats) -> Floats:
    """(w, w) R with ``R^T R == rows^T rows``: reflections for few rows, preconditioned cross products for many."""
    if len(rows) <= 2 * REPRESENTATIVE:
        return np.asarray(np.linalg.qr(rows, mode="r"))
    some = rows[:: len(rows) // REPRESENTATIVE]
    R0 = make_preconditioner(np.asarray(np.linalg.qr(some, mode="r")), len(some))
    Z = precondition_rows(rows, R0)
    return factor_from_preconditioned(Z @ Z.T, R0)


def solve_minimum_norm(
    W: Floats, y: Floats, resolution: float = RESOLUTION
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Solution (k,) of the smallest norm, its covariance (k, k) for unit noise, and which unknowns are undetermined."""
    length = np.linalg.norm(W, axis=0)
    seen = length > NEGLIGIBLE * length.max(initial=0.0)
    scale = np.where(seen, length, 1.0)
    triangle = np.asarray(np.linalg.qr(np.column_stack([W / scale, y]), mode="r"))
    R, z = triangle[: len(scale), :-1], triangle[: len(scale), -1]
    root = _inverse(R, resolution)
    if root is not None:
        root = root / scale[:, None]
        return root @ z, root @ root.T, np.zeros(len(scale), dtype=bool)
    U, s, Vt = svd(R)  # all of Vt: fewer equations than unknowns leave directions open too
    s = np.append(s, np.zeros(len(Vt) - len(s)))
    good = s > resolution * s[0]
    undetermined = np.any(np.abs(Vt[~good]) > 1e-5, axis=0) | ~seen
    root = Vt[good].T / s[good] / scale[:, None]
    return root @ (U[:, good[: len(U)]].T @ z), root @ root.T, undetermined


def _inverse(R: Floats, resolution: float) -> Floats | None:
    """Inverse of a triangle that is far from singular, which saves the singular values; None otherwise."""
    k = R.shape[1]
    if len(R) < k or np.min(np.abs(np.diagonal(R)), initial=1.0) < resolution:
        return None
    inverse = np.asarray(solve_triangular(R, np.eye(k)))
    return inverse if np.abs(inverse).sum(axis=0).max(initial=0.0) * 10.0 * k * resolution < 1.0 else None


def find_implausible_inertia(vector: Floats, covariance: Floats, *, is_mass_open: bool = False) -> NDArray[np.bool_]:
    """(6,) which of XX XY XZ YY YZ ZZ are less certain than any plausible value of them.

    Args:
        vector: (10,) parameters of a load, or more unknowns that begin with them.
        covariance: (10, 10) or larger, their covariance.
        is_mass_open: Whether the data leave the mass open.
    """
    return np.asarray(_moment_spread(covariance) > _plausible_moment(vector, is_mass_open))


def inertia_prior(vector: Floats, *, is_mass_open: bool = False) -> Floats:
    """(10,) one over the prior standard deviation of each parameter of a load; zero for mass and first moments.

    Args:
        vector: (10,) parameters of a load as the data alone give them.
        is_mass_open: Whether the data leave the mass open.
    """
    return np.append(np.full(6, 1.0 / _plausible_moment(vector, is_mass_open)), np.zeros(4))


def find_open_moments(covariance: Floats, prior: Floats) -> NDArray[np.bool_]:
    """(6,) which moments of inertia are hardly more certain than before the data.

    Args:
        covariance: (10, 10) or larger, of a solution with the prior.
        prior: (10,) or longer, the `inertia_prior` of that solution.
    """
    return np.asarray(_moment_spread(covariance) * prior[:6] > OPEN_SHARE)


def _moment_spread(covariance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(np.diag(covariance)[:6], 0.0)))


def _plausible_moment(vector: Floats, is_mass_open: bool) -> float:
    """Moment of inertia [kg m^2] of the whole mass on a plausible radius."""
    if is_mass_open:
        return HEAVY_LOAD * PLAUSIBLE_RADIUS**2
    mass = max(abs(float(vector[9])), 1e-300)
    reach = min(max(PLAUSIBLE_RADIUS, float(np.linalg.norm(vector[6:9])) / mass), 1.0)
    return mass * reach**2


# --- noise that is correlated in time ---


def spectral_gram(W: Floats, residual: Floats, covariance: Floats) -> Floats:
    """(k, k) ``W^H S W``, with one spectrum S common to all channels; ``W^T W`` for few samples.

    Args:
        W: (N, c, k) equations of c channels, each divided by the channel's standard deviation.
        residual: (N, c) divided by the same; a sample that does not count has zero residual and zero equations.
        covariance: (k, k) of the unknowns under white noise.
    """
    seen = np.flatnonzero(np.any(W, axis=(0, 1)))
    whole = np.zeros_like(covariance)
    whole[np.ix_(seen, seen)] = _gram(W[:, :, seen], residual, covariance[np.ix_(seen, seen)])
    return whole


def _gram(W: Floats, residual: Floats, covariance: Floats) -> Floats:
    count, counted = len(W), float(np.count_nonzero(np.any(W, axis=2)))
    if count < FEW or not np.any(residual):
        return np.asarray(np.einsum("ncj,nck->jk", W, W))
    spectra = np.fft.rfft(W, axis=0)
    noise = (np.abs(np.fft.rfft(residual, axis=0)) ** 2).sum(axis=1)
    removed = np.real(np.einsum("fck,fck->f", spectra @ covariance, spectra.conj()))  # by the fit
    white = np.maximum(_smooth(counted - removed, count), LEAST_WHITE_SHARE * counted)
    shape = _smooth(noise, count) / white
    twice = np.full(len(shape), 2.0)  # positive and negative frequencies
    twice[0], twice[-1] = 1.0, 1.0 if count % 2 == 0 else 2.0
    flat_spectra = (spectra * np.sqrt(twice * shape / count)[:, None, None]).reshape(-1, W.shape[2])
    return np.asarray(np.real(flat_spectra.conj().T @ flat_spectra))


def _smooth(power: Floats, count: int) -> Floats:
    """Means over neighbouring frequencies, mirrored at both ends."""
    reach = max(4, int(np.sqrt(count) / 4))
    mirrored = np.concatenate([power[reach:0:-1], power, power[-2 : -reach - 2 : -1]])
    return np.convolve(mirrored, np.full(2 * reach + 1, 1.0 / (2 * reach + 1)), mode="valid")


def inflate_covariance(covariance: Floats, gram: Floats) -> tuple[Floats, float]:
    """Covariance (k, k) under the noise of a `spectral_gram`, and its mean growth over white noise, at least one."""
    grown = np.asarray(covariance @ gram @ covariance)
    spread = np.diag(covariance)
    scale = np.sqrt(np.where(spread > 0.0, spread, 1.0))
    growth = float(np.trace(grown / np.outer(scale, scale)) / max(1, np.count_nonzero(spread)))
    return (grown, growth) if growth > 1.0 else (covariance, 1.0)


def student_factor(spare: float) -> float:
    """Factor for standard deviations that were estimated with few degrees of freedom: 1.96 of them then hold 95 %."""
    return max(1.0, float(stdtrit(max(spare, 1.0), 0.975)) / 1.96) if np.isfinite(spare) else 1.0


def run_spectral_gram(
    robot: Robot,
    run: Experiment,
    design: Floats,
    values: Floats,
    covariance: Floats,
    std: Floats,
    *,
    known: Floats | None = None,
) -> Floats:
    """(k, k) spectral gram of a run's joint torques, where every joint has its own spectrum.

    Args:
        robot: Geometry and terms.
        run: The experiment.
        design: (p, k) maps the unknowns to the robot's parameters in this run.
        values: (k,) estimated unknowns.
        covariance: (k, k) covariance of the unknowns under white noise.
        std: (n,) standard deviation of each joint's noise [N m or N]; infinite for joints that do not count.
        known: (p,) parameters that are not estimated; zero by default.
    """
    theta = design @ values + (0.0 if known is None else known)
    needed = np.flatnonzero(np.any(design, axis=1) | (theta != 0.0))
    total = np.zeros_like(covariance)
    for first in range(0, run.samples, STRETCH):
        rows = slice(first, first + STRETCH)
        Y = regressor(robot, run.q[rows], run.dq[rows], run.ddq[rows], columns=needed.tolist())
        residual = np.where(run.valid[rows], run.effort[rows] - Y @ theta[needed], 0.0) / std
        for joint in np.flatnonzero(np.isfinite(std)):
            counts = run.valid[rows, joint, None] / std[joint]
            W = (Y[:, joint] * counts) @ design[needed]
            total += spectral_gram(W[:, None, :], residual[:, [joint]], covariance)
    return total
