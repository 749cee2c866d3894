"""Which object is in the hand, and whether it is held as it should be ([Atkeson1986] sections 2.1.1 and 4.1).

Objects are told apart by mass and principal moments of inertia: these do not depend on how they are held. A grasp is
verified by what does: centre of mass and principal axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation
from scipy.special import gammaincc

from dynid.errors import ArgumentError
from dynid.load.load import Load
from dynid.robot.inertia import Inertia
from dynid.tables import Table

__all__ = ["GraspCheck", "KnownObject", "Recognition", "recognise", "verify_grasp"]

Floats = NDArray[np.float64]
NOBODY = "something else"
EQUAL = 1e-3
"""Principal moments of an expected body closer than this part of the largest are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownObject:
    """An object of the library, with the tolerance of its numbers."""

    name: str
    mass: float
    """[kg]"""
    principal_moments: tuple[float, float, float] | None = None
    """In any order [kg m^2]; None where they are not known."""
    mass_tolerance: float = 0.01
    """Standard deviation from piece to piece, relative."""
    moment_tolerance: float = 0.03
    """Likewise of the moments."""

    def __post_init__(self) -> None:
        """Refuse what no body has."""
        if not 0.0 < self.mass < np.inf or not (self.mass_tolerance >= 0.0 and self.moment_tolerance >= 0.0):
            raise ArgumentError(f"object '{self.name}' needs a positive mass and tolerances from zero up")
        if self.name == NOBODY:
            raise ArgumentError(f"'{NOBODY}' stands for what is not in the library", remedy="Give another name.")
        if self.principal_moments is not None:
            moments = np.sort(np.array(self.principal_moments, dtype=float))
            if moments.shape != (3,) or not moments[0] > 0.0 or not moments[2] <= 1.001 * (moments[0] + moments[1]):
                raise ArgumentError(
                    f"object '{self.name}' has principal moments {self.principal_moments} that no body has",
                    remedy="Give three, positive, none above the sum of the others [kg m^2].",
                )

    @classmethod
    def of(cls, name: str, inertia: Inertia) -> KnownObject:
        """From mass properties in any frame."""
        a, b, c = np.linalg.eigvalsh(inertia.about_com).tolist()
        return cls(name=name, mass=inertia.mass, principal_moments=(a, b, c))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recognition:
    """How probable every object of the library is."""

    names: tuple[str, ...]
    """Of the objects, the most probable first; ``something else`` is among them."""
    probabilities: Floats
    """(k,) they sum to one"""
    fit: Floats
    """(k,) chance that the object itself would differ from the estimate by as much; NaN for something else"""

    @property
    def best(self) -> str:
        """Name of the most probable object."""
        return self.names[0]

    def summary(self) -> str:
        """A table to read."""
        rows = list(zip(self.names, self.probabilities.tolist(), self.fit.tolist(), strict=True))
        return Table.of(["object", "probability", "chance of such a difference"], rows, digits=3).to_text()

    def __str__(self) -> str:
        return self.summary()


def recognise(load: Load, library: Sequence[KnownObject], *, unknown: float = 0.05) -> Recognition:
    """Compare a load, gripper subtracted, with known objects.

    Args:
        load: The estimate with its covariance; where it has no inertia only the mass counts.
        library: All equally probable beforehand.
        unknown: Probability beforehand that it is none of them.
    """
    if not library or not 0.0 <= unknown < 1.0:
        raise ArgumentError("recognition needs a library, and a probability of the unknown in [0, 1)")
    if len({thing.name for thing in library}) < len(library):
        raise ArgumentError("two objects of the library have the same name", remedy="Give every object its own.")
    features, covariance = _features(load)
    # anything else may be twice or half of what was measured, in every feature
    broad = covariance + np.diag(features**2)
    scores = [(NOBODY, np.log(max(unknown, 1e-300)) + _log_density(np.zeros_like(features), broad), float("nan"))]
    for thing in library:
        count = len(features) if thing.principal_moments is not None else 1
        moments = sorted(thing.principal_moments or ())
        expected = np.array([thing.mass, *moments])[:count]
        tolerance = np.array([thing.mass_tolerance, *[thing.moment_tolerance] * 3])[:count] * expected
        total = covariance[:count, :count] + np.diag(tolerance**2)
        difference = features[:count] - expected
        distance = float(difference @ np.linalg.solve(total, difference))
        score = np.log((1.0 - unknown) / len(library)) + _log_density(difference, total)
        if count < len(features):  # what is not known of an object is as uncertain as that of anything else
            score += _log_density(np.zeros(len(features) - count), broad[count:, count:])
        scores.append((thing.name, score, float(gammaincc(0.5 * count, 0.5 * distance))))
    logs = np.array([score for _, score, _ in scores])
    weights = np.exp(logs - logs.max())
    order = np.argsort(-weights, kind="stable")
    return Recognition(
        names=tuple(scores[k][0] for k in order),
        probabilities=(weights / weights.sum())[order],
        fit=np.array([scores[k][2] for k in order]),
    )


def _features(load: Load) -> tuple[Floats, Floats]:
    """Mass, and principal moments where there are any, with their covariance."""
    if load.undetermined[9]:
        raise ArgumentError("the mass of the load is not known", remedy="Identify it with several orientations.")
    mass = np.array([[load.mass_stderr**2]])
    if not load.has_inertia:
        return np.array([load.mass]), mass
    principal = load.principal
    return np.array([load.mass, *principal.moments]), block_diag(mass, np.diag(principal.moments_stderr**2))


def _log_density(difference: Floats, covariance: Floats) -> float:
    if not difference.size:
        return 0.0
    _, size = np.linalg.slogdet(covariance)
    quadratic = difference @ np.linalg.solve(covariance, difference)
    return float(-0.5 * (quadratic + size + difference.size * np.log(2.0 * np.pi)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraspCheck:
    """Whether an object is held as expected."""

    offset: Floats
    """(3,) centre of mass minus the expected one, in the frame [m]"""
    offset_stderr: Floats
    """(3,) [m]"""
    tilt_deg: float
    """Angle by which principal axes are turned against the expected ones, the axis alone where two moments are equal;
    NaN where none is well-defined"""
    tilt_stderr_deg: float
    mass_ratio: float
    """Measured over expected mass."""
    problems: tuple[str, ...]
    """What is not as expected, in words; empty for a good grasp."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong beyond tolerance and uncertainty."""
        return not self.problems


def verify_grasp(
    load: Load,
    expected: Inertia,
    *,
    offset_tolerance: ArrayLike = 0.005,
    tilt_tolerance_deg: float = 10.0,
    mass_tolerance: float = 0.05,
) -> GraspCheck:
    """Compare where and how an object is held with where it should be; what cannot be told is a problem.

    Args:
        load: The estimate, gripper subtracted.
        expected: Mass properties of the object as it should be held, in the load's frame.
        offset_tolerance: Of the centre of mass [m], one number or (3,).
        tilt_tolerance_deg: Of the principal axes [deg]; 180 where it does not matter how the object is turned.
        mass_tolerance: Of the mass, relative.
    """
    offset = load.com - expected.com
    tolerance = np.broadcast_to(np.asarray(offset_tolerance, dtype=float), (3,))
    problems = []
    for axis, d, spread, limit in zip("xyz", offset, load.com_stderr, tolerance, strict=True):
        if not spread <= limit:
            problems.append(
                f"centre of mass along {axis} cannot be told: its standard deviation is {1e3 * spread:.3g} mm"
            )
        if abs(d) > limit + 2.0 * spread:
            problems.append(f"centre of mass is {1e3 * d:+.1f} mm off along {axis}")
    tilt, tilt_spread, told = _tilt(load, expected)
    if tilt_tolerance_deg < 180.0 and not (told and tilt_spread <= tilt_tolerance_deg):
        problems.append("how the object is turned cannot be told: its principal axes are too uncertain")
    if tilt > tilt_tolerance_deg + 2.0 * tilt_spread:
        problems.append(f"the object is turned by {tilt:.0f} deg")
    ratio, uncertain = load.mass / expected.mass, load.mass_stderr / expected.mass
    if not uncertain <= mass_tolerance:
        problems.append(f"the mass cannot be told: its standard deviation is {100 * uncertain:.3g} %")
    if abs(ratio - 1.0) > mass_tolerance + 2.0 * uncertain:
        problems.append(f"mass is {ratio:.2f} times the expected one")
    return GraspCheck(
        offset=offset,
        offset_stderr=load.com_stderr,
        tilt_deg=tilt,
        tilt_stderr_deg=tilt_spread,
        mass_ratio=ratio,
        problems=tuple(problems),
    )


def _tilt(load: Load, expected: Inertia) -> tuple[float, float, bool]:
    """Smallest angle between principal frames (axes have no sign), its standard deviation [deg], and whether it is all.

    Of a body with two equal moments only the third axis counts, from either side; of one with three, nothing does.
    """
    principal = load.principal
    moments, axes = np.linalg.eigh(expected.about_com)
    equal = {(i, j) for i, j in ((0, 1), (1, 2)) if moments[j] - moments[i] < EQUAL * moments[-1]}
    unsure = equal | set(principal.ill_defined)
    if len(unsure) > 1 or (0, 2) in unsure:
        return float("nan"), float("inf"), False
    if unsure:
        k = ({0, 1, 2} - set(next(iter(unsure)))).pop()  # the axis that stands out
        angle = np.arccos(min(1.0, abs(float(axes[:, k] @ principal.axes[:, k]))))
        spread = np.linalg.norm(np.delete(principal.angle_stderr, k))
        return float(np.rad2deg(angle)), float(np.rad2deg(spread)), unsure == equal
    axes = axes * np.sign(np.linalg.det(axes))
    flips = [np.diag([a, b, a * b]) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    turns = [float(Rotation.from_matrix(axes @ flip @ principal.axes.T).magnitude()) for flip in flips]
    return float(np.rad2deg(min(turns))), float(np.rad2deg(principal.angle_stderr.max())), True
