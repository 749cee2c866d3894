"""Which object is in the hand, and is it held as it should be ([Atkeson1986] sections 2.1.1 and 4.1)?

An object is recognised by its mass and principal moments of inertia, which do not depend on the grasp. A grasp is
verified by the centre of mass and the principal axes, which do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation
from scipy.stats import chi2, multivariate_normal

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.errors import ArgumentError
from dynid.files.records import Text
from dynid.findings import Finding
from dynid.load.load import Load, remark
from dynid.robot.inertia import Inertia
from dynid.tables import Table

Size = Annotated[float, Meta(ge=0.0, le=1e12)]
NOBODY = "something else"
"""Name of the hypothesis that the load is none of the library's objects."""
EQUAL = 1e-3
"""Principal moments of an expected body that differ by less than this share of the largest are equal; convention."""


class KnownObject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object of the library, with the tolerance of its numbers."""

    name: Text
    """Name of the object, unique in its library."""
    mass: Size
    """[kg]"""
    principal_moments: tuple[Size, Size, Size] | None = None
    """(3,) in any order [kg m^2]; None where they are not known."""
    mass_tolerance: Size = 0.01
    """Relative standard deviation of the mass from piece to piece; convention."""
    moment_tolerance: Size = 0.03
    """Relative standard deviation of the moments from piece to piece; convention."""

    def __post_init__(self) -> None:
        """Refuse numbers that no body has."""
        *smaller, largest = np.sort(self.principal_moments or (1.0, 1.0, 1.0))
        # no moment exceeds the sum of the others, but for rounding
        is_tensor = len(smaller) == 2 and min(smaller) > 0.0 and largest <= 1.001 * sum(smaller)
        if not (0.0 < self.mass < np.inf and is_tensor and min(self.mass_tolerance, self.moment_tolerance) >= 0.0):
            raise ArgumentError(
                f"no body has the numbers of object '{self.name}'",
                remedy="Give a positive mass [kg] and principal moments [kg m^2], none above the sum of the others.",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recognition:
    """The probability of every object of the library."""

    names: tuple[str, ...]
    """(k,) names of the objects, the most probable first; ``something else`` is among them"""
    probabilities: Floats
    """(k,) probabilities; they sum to one"""
    fit: Floats
    """(k,) probability that the object itself differs from the estimate by at least as much; NaN for something else"""

    def __str__(self) -> str:
        """A table of the probabilities."""
        rows = list(zip(self.names, self.probabilities.tolist(), self.fit.tolist(), strict=True))
        return Table.of(["object", "probability", "chance of such a difference"], rows, digits=3).to_text()


def recognise(load: Load, library: Sequence[KnownObject], *, unknown: float = 0.05) -> Recognition:
    """Compare a load, gripper subtracted, with known objects.

    Args:
        load: The estimate with its covariance; without an inertia only the mass counts.
        library: Known objects, with equal prior probabilities.
        unknown: Prior probability that the load is none of them.

    Example:
        >>> library = [dynid.load.KnownObject(name="block", mass=2.0), dynid.load.KnownObject(name="cup", mass=0.35)]
        >>> weighed = dynid.Load.of(load.inertia, "link3", stderr=0.01)
        >>> result = dynid.load.recognise(weighed, library)
        >>> result.names[int(np.argmax(result.probabilities))]
        'block'
    """
    if not library or not 0.0 <= unknown < 1.0:
        raise ArgumentError("recognition needs a library, and a probability of the unknown in [0, 1)")
    if len({NOBODY, *(thing.name for thing in library)}) <= len(library):
        raise ArgumentError(f"two objects have the same name, or one is '{NOBODY}'", remedy="Give each its own.")
    features, covariance = _features(load)
    # something else may have twice or half of every measured feature
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
        if count < len(features):  # unknown moments of an object are as uncertain as those of something else
            score += _log_density(np.zeros(len(features) - count), broad[count:, count:])
        scores.append((thing.name, score, float(chi2.sf(distance, count))))
    logs = np.array([score for _, score, _ in scores])
    weights = np.exp(logs - logs.max())
    order = np.argsort(-weights, kind="stable")
    return Recognition(
        names=tuple(scores[k][0] for k in order),
        probabilities=(weights / weights.sum())[order],
        fit=np.array([scores[k][2] for k in order]),
    )


def _features(load: Load) -> tuple[Floats, Floats]:
    """Mass and, if determined, principal moments, with their covariance."""
    if load.undetermined[9]:
        raise ArgumentError("the mass of the load is not known", remedy="Identify it with several orientations.")
    mass = np.array([[load.mass_stderr**2]])
    if not load.has_inertia:
        return np.array([load.mass]), mass
    principal = load.principal
    return np.array([load.mass, *principal.moments]), block_diag(mass, np.diag(principal.moments_stderr**2))


def _log_density(difference: Floats, covariance: Floats) -> float:
    return float(multivariate_normal.logpdf(difference, cov=covariance)) if difference.size else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraspCheck:
    """Whether an object is held as expected."""

    offset: Floats
    """(3,) centre of mass minus the expected one, in the frame [m]"""
    offset_stderr: Floats
    """(3,) [m]"""
    tilt_deg: float
    """Angle between the principal axes and the expected ones [deg]; of the single axis if two moments are equal; NaN if
    no axis is well-defined"""
    tilt_stderr_deg: float
    """Standard deviation of `tilt_deg` [deg]."""
    mass_ratio: float
    """Measured over expected mass."""
    problems: tuple[Finding, ...]
    """Deviations beyond tolerance and uncertainty; empty for a good grasp."""

    @property
    def is_good(self) -> bool:
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
    """Compare the grasp of an object with the expected one; a value that is too uncertain is a problem.

    Args:
        load: The estimate, gripper subtracted.
        expected: Mass properties of the object as it should be held, in the load's frame.
        offset_tolerance: Tolerance of the centre of mass [m], one number or (3,).
        tilt_tolerance_deg: Tolerance of the principal axes [deg]; 180 accepts every orientation.
        mass_tolerance: Relative tolerance of the mass.

    Example:
        >>> type(dynid.load.verify_grasp(dynid.Load.of(load.inertia, "link3", stderr=1e-3), load.inertia)).__name__
        'GraspCheck'
    """
    offset, stderr = load.com - expected.com, load.com_stderr
    tolerance = np.broadcast_to(np.asarray(offset_tolerance, dtype=float), (3,))
    tilt, tilt_stderr, is_known = _tilt(load, expected)
    ratio = load.mass / expected.mass
    judged = [
        (f"centre of mass along {axis}", 1e3 * offset[k], 1e3 * stderr[k], 1e3 * tolerance[k], "mm off")
        for k, axis in enumerate("xyz")
    ]
    if tilt_tolerance_deg < 180.0:
        spread = tilt_stderr if is_known else np.inf
        judged.append(("orientation", tilt, spread, tilt_tolerance_deg, "deg turned"))
    judged.append(("mass", 100.0 * (ratio - 1.0), 100.0 * load.mass_stderr / expected.mass, 100.0 * mass_tolerance,
                   "% too much"))  # fmt: skip
    problems = []
    for what, value, spread, limit, unit in judged:
        if not spread <= limit:
            message = f"the {what} is too uncertain to judge the grasp ({spread:.3g} {unit.split()[0]})"
        elif abs(value) > limit + 2.0 * spread:
            message = f"the {what} is {value:+.3g} {unit}"
        else:
            continue
        problems.append(remark("grasp", message, severity="warning", where=what, evidence={unit: float(value)}))
    return GraspCheck(
        offset=offset,
        offset_stderr=stderr,
        tilt_deg=tilt,
        tilt_stderr_deg=tilt_stderr,
        mass_ratio=ratio,
        problems=tuple(problems),
    )


def _tilt(load: Load, expected: Inertia) -> tuple[float, float, bool]:
    """Smallest angle between principal frames, its standard deviation [deg], and whether it covers all axes there are.

    Axes have no sign. With two equal moments only the third axis counts, from either side; with three equal moments
    there is no axis.
    """
    principal = load.principal
    moments, axes = eigh(expected.about_com)
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
