"""Arms that differ from their fleet: in the shared parameters (a tool left on, another link), or in their own ones.

Shared parameters: an arm is compared with all others. Its equations, own unknowns eliminated, are ``R s = z + noise``
of unit variance; at the others' estimate s' with covariance C the difference ``z - R s'`` has the covariance
``I + R C R^T``. A cause that changes the shared parameters by ``D x`` gains, in units of the noise, what the columns
``R D`` explain of the whitened difference; without a cause the gain of rank k follows chi^2_k.

No model is perfect, so the gains of arms that are alike are larger than that. How much larger, the fleet itself tells:
the median over the arms is set against the median of the distribution.

Own parameters: friction differs from arm to arm. The scatter of all other arms and the arm's own uncertainty say how
unusual a value is; so a small fleet can only tell of large differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import svd
from dynid.estimation.intervals.odd_ones import OddOne, odd_ones
from dynid.fleet.pooling import ArmEquations, Pool, share_of_others
from dynid.parameters.base import BaseParameters
from dynid.robot.model import Robot

__all__ = ["Cause", "Difference", "different_arms", "shared_causes", "unusual_values"]

Floats = NDArray[np.float64]
CHANCE = 1e-2
"""Probability that any arm of a fleet without differences is reported, over all arms, causes and parameters."""
FEWEST_ARMS = 5
"""Smallest fleet whose scatter can be judged (convention)."""
FEWEST_SHARED = 3
"""Smallest fleet in which the shared parameters of one arm are compared with those of the others (convention)."""
RESOLUTION = 1e-8
"""Relative singular value of a cause's columns below which a direction is not determined (convention)."""
SPARE_GAIN = 2.0
"""Gain per further parameter, in units of the usual one, that a general change may have beyond a load before it is
preferred (convention: twice what chance gives)."""
SPARE_SHARE = 0.1
"""Share of the gain that a load need not explain to be preferred (convention: no model is perfect)."""
OPEN = 1e-6
"""Share of a cause's parameter in a direction without equations that leaves it open (as for single robots)."""
KNOWN_MASS = 0.3
"""Largest standard deviation of a load's mass, relative to it, with which the mass is stated (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cause:
    """A change of the shared parameters."""

    name: str
    """Link that would carry a load, or empty for any change at all."""
    directions: Floats
    """(s, k) change of the shared parameters per unit; for a load its ten parameters, the mass last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which an arm differs from its fleet."""

    arm: str
    what: str
    """Parameter, such as FC3, or the link that carries a load."""
    kind: str
    """``load``, ``links`` or ``own``."""
    deviations: float
    """Size in standard deviations."""
    sentence: str
    """What a person should know, with values and units."""


def shared_causes(robot: Robot, base: BaseParameters, shared_places: Sequence[int]) -> list[Cause]:
    """Loads on the last bodies, and any change of the links at all."""
    parents = {body.parent for body in robot.bodies}
    rows = list(shared_places)
    causes = [
        Cause(name=body.joint.child, directions=base.grouping[rows][:, 10 * j : 10 * j + 10])
        for j, body in enumerate(robot.bodies)
        if j not in parents
    ]
    return [*causes, Cause(name="", directions=np.eye(len(rows)))]


def different_arms(arms: Sequence[ArmEquations], pool: Pool, causes: Sequence[Cause]) -> tuple[list[Difference], Pool]:
    """Arms whose shared parameters differ from those of the others, and the pool without them.

    The arm that differs most is taken out, and the others are compared again without it, until none differs.

    Args:
        arms: Their equations.
        pool: All arms together.
        causes: What may differ; a load is preferred to a general change where it explains as much.

    Returns:
        The differences, and a pool whose shared parameters are those of the remaining arms; the own ones of an arm that
        differs are estimated beside its difference.
    """
    found: list[Difference] = []
    shifts: dict[int, Floats] = {}
    present = list(range(len(arms)))
    while len(present) >= FEWEST_SHARED:
        gains = [[_gain(pool, arm, present, cause) for arm in present] for cause in causes]
        usual = [_usual(row) for row in gains]
        best: tuple[float, int, int] | None = None
        for number, row in enumerate(gains):
            for place, gain in enumerate(row):
                chance = gain.chance(usual[number], len(present))
                if chance <= CHANCE / (len(arms) * len(causes)):
                    worth = gain.size / usual[number] - gain.rank
                    best = max(best or (0.0, 0, 0), (worth, number, place))
        if best is None:
            break
        _, number, place = best
        number = _simplest(gains, usual, number, place, causes)
        arm = present[place]
        found.append(_described(arms[arm].name, causes[number], gains[number][place], usual[number]))
        shifts[arm] = causes[number].directions @ gains[number][place].change
        present.remove(arm)
    return found, share_of_others(arms, pool, present, shifts) if found else pool


def unusual_values(names: Sequence[str], units: Sequence[str], arms: Sequence[str], pool: Pool) -> list[Difference]:
    """Own parameters that are far from those of the fleet.

    Args:
        names: (k,) names of the own parameters, gains included.
        units: (k,) their units.
        arms: Names of the arms.
        pool: The fleet.
    """
    if len(arms) < FEWEST_ARMS:
        return []
    values = np.array([own.values for own in pool.own])
    std = np.array([own.std for own in pool.own])
    found = []
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        for odd in _outliers(values[:, k], std[:, k], CHANCE / max(values.size, 1)):
            value, mean = float(values[odd.place, k]), odd.mean
            share = f", {100.0 * (value / mean - 1.0):+.0f} %" if abs(value - mean) < 10.0 * abs(mean) else ""
            sentence = (
                f"{name} is {value:.4g} {unit} against {mean:.4g} {unit} of the fleet{share} "
                f"({abs(odd.deviations):.2g} standard deviations)"
            )
            found.append(
                Difference(
                    arm=arms[odd.place], what=name, kind="own", deviations=abs(odd.deviations), sentence=sentence
                )
            )
    return sorted(found, key=lambda difference: -difference.deviations)


def _outliers(values: Floats, std: Floats, chance: float) -> list[OddOne]:
    """Arms whose value is far from the others', the farthest first.

    Arms scatter by nature: the others tell by how much, beyond their own uncertainty.
    """

    def variance(arm: int, others: Sequence[int]) -> float:
        own = std[others] ** 2
        natural = max(float(values[others].var(ddof=1)) - float(own.mean()), 0.0)
        return natural + float(std[arm]) ** 2 + (natural + float(own.mean())) / len(others)

    known = np.flatnonzero(np.isfinite(std)).tolist()
    found = odd_ones(
        values, variance, places=known, freedom=lambda _, others: len(others) - 1.0, chance=chance, fewest=FEWEST_ARMS
    )
    return [odd for odd in found if odd.p_value <= chance]


@dataclass(frozen=True, slots=True, eq=False)
class _Gain:
    """What a cause explains of one arm's difference from the others."""

    size: float
    rank: int
    change: Floats
    """(k,) the cause's parameters."""
    std: Floats
    """(k,) their standard deviations; infinite where they are not determined."""

    def chance(self, usual: float, arms: int) -> float:
        """Probability of such a gain in an arm that is like the others."""
        from scipy.special import fdtrc

        if not self.rank:
            return 1.0
        return float(fdtrc(self.rank, self.rank * (arms - 1), self.size / (self.rank * usual)))


def _gain(pool: Pool, arm: int, present: Sequence[int], cause: Cause) -> _Gain:
    x, R = _whitened(pool, arm, present)
    columns = R @ cause.directions
    scale = np.linalg.norm(columns, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    U, values, Vt = svd(columns / scale, full_matrices=False)
    good = values > RESOLUTION * max(float(values.max(initial=0.0)), 1e-300)
    inverse = (Vt[good].T / values[good]) / scale[:, None]
    part = U[:, good].T @ x
    is_open = np.any(np.abs(Vt[~good]) > OPEN, axis=0) if np.any(~good) else np.zeros(len(scale), dtype=bool)
    std = np.where(is_open, np.inf, np.linalg.norm(inverse, axis=1))
    return _Gain(float(part @ part), int(np.count_nonzero(good)), inverse @ part, std)


def _whitened(pool: Pool, arm: int, present: Sequence[int]) -> tuple[Floats, Floats]:
    """The arm's difference from the others (s,), of unit variance, and its columns (s, s)."""
    others = [k for k in present if k != arm]
    value, covariance, null = pool.of_arms(others)
    E = pool.eliminated[arm]
    R, x = E[:-1, :-1], E[:-1, -1] - E[:-1, :-1] @ value
    if null.size:  # directions that the others leave open say nothing about a difference
        U = svd(R @ null, full_matrices=False)[0]
        R, x = R - U @ (U.T @ R), x - U @ (U.T @ x)
    root = np.linalg.cholesky(np.eye(len(x)) + R @ covariance @ R.T)
    return np.linalg.solve(root, x), np.linalg.solve(root, R)


def _usual(gains: Sequence[_Gain]) -> float:
    """How much larger the gains of arms that are alike are than noise makes them; at least one."""
    from scipy.special import chdtri

    ratios = [gain.size / float(chdtri(gain.rank, 0.5)) for gain in gains if gain.rank]
    return max(1.0, float(np.median(ratios))) if ratios else 1.0


def _simplest(
    gains: Sequence[Sequence[_Gain]], usual: Sequence[float], number: int, place: int, causes: Sequence[Cause]
) -> int:
    """The first load that explains what the best cause does, but for what its further parameters would by chance."""
    best = gains[number][place]
    for other, cause in enumerate(causes):
        if cause.name:
            missing = (best.size - gains[other][place].size) / usual[number]
            spare = max(best.rank - gains[other][place].rank, 1)
            if missing <= SPARE_GAIN * spare + SPARE_SHARE * best.size / usual[number]:
                return other
    return number


def _described(arm: str, cause: Cause, gain: _Gain, usual: float) -> Difference:
    size = float(np.sqrt(gain.size / usual))
    sure = f"{size:.2g} standard deviations"
    if not cause.name:
        return Difference(arm=arm, what="links", kind="links", deviations=size,
                          sentence=f"its links differ from those of the fleet ({sure})")  # fmt: skip
    mass, std = float(gain.change[9]), float(gain.std[9] * np.sqrt(usual))
    load = f"as if {cause.name} held {mass:+.3g} ± {std:.2g} kg" if std < KNOWN_MASS * abs(mass) else (
        f"as if {cause.name} held another load")  # fmt: skip
    return Difference(arm=arm, what=cause.name, kind="load", deviations=size, sentence=f"{load} ({sure})")
