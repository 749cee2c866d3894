"""Recognise the object in the hand, and verify that it is held as expected ([Atkeson1986] sections 2.1.1 and 4.1).

An object is recognised by its mass and principal moments of inertia, which do not depend on the grasp (`recognise`). A
grasp is verified by the centre of mass and the principal axes, which depend on it (`verify_grasp`). Both take a `Load`
with its covariance, from any of the identifications of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation
from scipy.special import softmax
from scipy.stats import chi2, norm

from dynid.array_types import Floats
from dynid.errors import ArgumentError, DataError
from dynid.findings import Finding
from dynid.payload.load import Load, PrincipalAxes, remark
from dynid.robot.inertia import Inertia
from dynid.safe_files.records import Text, as_record
from dynid.safe_files.small_files import read_toml
from dynid.spatial import TINY
from dynid.tables import Table

Size = Annotated[float, Meta(ge=0.0, le=1e12)]
"""A number from zero up that a file may contain."""
UNKNOWN_OBJECT = "something else"
"""Name of the hypothesis that the load is none of the library's objects."""


class KnownObject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object of the library, with the variation of its mass and moments from piece to piece."""

    name: Text
    """Name of the object, unique in its library."""
    mass: Size
    """Mass [kg]."""
    principal_moments: tuple[Size, Size, Size] | None = None
    """(3,) principal moments of inertia in any order [kg m^2]; None if unknown."""
    mass_tolerance: Size = 0.01
    """Relative standard deviation of the mass from piece to piece (convention)."""
    moment_tolerance: Size = 0.03
    """Relative standard deviation of the moments from piece to piece (convention)."""

    def __post_init__(self) -> None:
        """Refuse numbers that no body has."""
        *smaller, largest = np.sort(self.principal_moments or np.ones(3))
        # no moment exceeds the sum of the others, but for rounding of written numbers
        is_tensor = len(smaller) == 2 and min(smaller) > 0.0 and largest <= 1.001 * sum(smaller)
        if not (0.0 < self.mass < np.inf and is_tensor and min(self.mass_tolerance, self.moment_tolerance) >= 0.0):
            raise ArgumentError(
                f"no body has the numbers of object '{self.name}'",
                remedy="Give a positive mass [kg] and principal moments [kg m^2], none above the sum of the others.",
            )


class _Library(Struct, forbid_unknown_fields=True):
    """Content of a library's file."""

    object: Annotated[list[KnownObject], Meta(min_length=1, max_length=1000)]
    description: Any = None


def read_library(path: str | Path) -> tuple[KnownObject, ...]:
    r"""Read known objects from a TOML file, each a table ``[[object]]`` with the fields of `KnownObject`.

    Raises:
        DataError: The file cannot be read or has other content.
    """
    remedy = 'Write [[object]] tables with name = "...", mass = ... and optional principal_moments = [..., ..., ...].'
    content = read_toml(path, remedy=remedy)
    try:
        return tuple(as_record(content, _Library, path=path, remedy=remedy).object)
    except ArgumentError as error:
        raise DataError(error.reason, path=path, remedy=remedy) from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recognition:
    """The probability of every object of the library."""

    names: tuple[str, ...]
    """(k,) names of the objects, the most probable first; ``something else`` is among them."""
    probabilities: Floats
    """(k,) posterior probabilities; they sum to one."""
    fit: Floats
    """(k,) p-value of the difference between estimate and object (chi-squared test); NaN for something else."""

    def __str__(self) -> str:
        """Write a table of the probabilities."""
        rows = list(zip(self.names, self.probabilities.tolist(), self.fit.tolist(), strict=True))
        return Table.of(["object", "probability", "chance of such a difference"], rows, digits=3).to_text()


def recognise(load: Load, library: Sequence[KnownObject], *, unknown: float = 0.05) -> Recognition:
    """Compute how probable each known object is, by Bayes' rule.

    Args:
        load: The estimate with its covariance, gripper subtracted; without an inertia only the mass counts.
        library: Known objects, with equal prior probabilities.
        unknown: Prior probability that the load is none of them.

    Example:
        >>> Known = dynid.payload.KnownObject
        >>> library = [Known(name="block", mass=2.0), Known(name="cup", mass=0.35)]
        >>> weighed = dynid.Load.of(load.inertia, "link3", stderr=0.01)
        >>> result = dynid.payload.recognise(weighed, library)
        >>> result.names[int(np.argmax(result.probabilities))]
        'block'
    """
    if not library or not 0.0 <= unknown < 1.0:
        raise ArgumentError("recognition needs a library, and a probability of the unknown in [0, 1)")
    if len({UNKNOWN_OBJECT, *(thing.name for thing in library)}) <= len(library):
        raise ArgumentError(
            f"two objects have the same name, or one is '{UNKNOWN_OBJECT}'", remedy="Give each its own."
        )
    if load.undetermined[9]:
        raise ArgumentError("the mass of the load is not known", remedy="Identify it with several orientations.")
    features = np.array([load.mass])
    spread = np.array([load.mass_stderr])
    if load.has_inertia:
        principal = load.principal
        features = np.append(features, principal.moments)
        spread = np.append(spread, principal.moments_stderr)
    # features of an unknown object: a normal distribution about the measured ones, as wide as they are large
    broad = np.hypot(spread, features)
    # (logarithm of prior and likelihood, name, p-value) of each hypothesis
    found = [(np.log(max(unknown, TINY)) + _log_density(np.zeros_like(features), broad), UNKNOWN_OBJECT, float("nan"))]
    for thing in library:
        moments = sorted(thing.principal_moments or ())
        expected = np.array([thing.mass, *moments])[: len(features)]
        count = len(expected)  # only the mass, if the moments of the object or of the load are unknown
        tolerance = np.array([thing.mass_tolerance, *[thing.moment_tolerance] * 3])[:count] * expected
        total = np.hypot(spread[:count], tolerance)
        difference = features[:count] - expected
        # unknown moments of an object are as uncertain as those of an unknown object
        likelihood = _log_density(difference, total) + _log_density(np.zeros(len(features) - count), broad[count:])
        p_value = float(chi2.sf(np.sum((difference / total) ** 2), count))
        found.append((np.log((1.0 - unknown) / len(library)) + likelihood, thing.name, p_value))
    found.sort(key=lambda hypothesis: -hypothesis[0])
    scores, names, fit = zip(*found, strict=True)
    return Recognition(names=names, probabilities=softmax(scores), fit=np.array(fit))


def _log_density(difference: Floats, std: Floats) -> float:
    """Compute the log-likelihood of independent normal differences (k,) with standard deviations (k,)."""
    return float(np.sum(norm.logpdf(difference, scale=std)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraspCheck:
    """Deviations of a grasp from the expected one, and whether they matter."""

    offset: Floats
    """(3,) centre of mass minus the expected one, in the load's frame [m]."""
    offset_stderr: Floats
    """(3,) standard deviation of `offset` [m]."""
    tilt_deg: float
    """Angle between the principal axes and the expected ones [deg]; of the single axis if two moments are equal; NaN if
    no axis is well-defined."""
    tilt_stderr_deg: float
    """Standard deviation of `tilt_deg` [deg]."""
    mass_ratio: float
    """Measured over expected mass."""
    problems: tuple[Finding, ...]
    """Deviations beyond tolerance and uncertainty; empty for a good grasp."""

    @property
    def is_good(self) -> bool:
        """Whether no deviation is beyond tolerance and uncertainty."""
        return not self.problems


def verify_grasp(
    load: Load,
    expected: Inertia,
    *,
    offset_tolerance: ArrayLike = 0.005,
    tilt_tolerance_deg: float = 10.0,
    mass_tolerance: float = 0.05,
) -> GraspCheck:
    """Compare the grasp of an object with the expected one; a value that is too uncertain counts as a problem.

    Args:
        load: The estimate, gripper subtracted.
        expected: Mass properties of the object as it should be held, in the load's frame.
        offset_tolerance: Tolerance of the centre of mass [m], one number or (3,).
        tilt_tolerance_deg: Tolerance of the principal axes [deg]; 180 accepts every orientation.
        mass_tolerance: Relative tolerance of the mass.

    Example:
        >>> type(dynid.payload.verify_grasp(dynid.Load.of(load.inertia, "link3", stderr=1e-3), load.inertia)).__name__
        'GraspCheck'
    """
    offset = load.com - expected.com
    stderr = load.com_stderr
    tolerance = np.broadcast_to(np.asarray(offset_tolerance, dtype=float), (3,))
    tilt, tilt_stderr, is_known = _tilt(load, expected)
    ratio = load.mass / expected.mass
    # each: name, value, its standard deviation, its tolerance, and its unit with a word for the message
    judged = [
        (f"centre of mass along {axis}", *(1e3 * np.array([offset[k], stderr[k], tolerance[k]])), "mm off")
        for k, axis in enumerate("xyz")
    ]
    if tilt_tolerance_deg < 180.0:
        judged.append(("orientation", tilt, tilt_stderr if is_known else np.inf, tilt_tolerance_deg, "deg turned"))
    excess = 100.0 * np.array([ratio - 1.0, load.mass_stderr / expected.mass, mass_tolerance])
    problems = []
    for what, value, spread, limit, unit in (*judged, ("mass", *excess, "% too much")):
        if not spread <= limit:  # also if it is NaN
            message = f"the {what} is too uncertain to judge the grasp ({spread:.3g} {unit.split()[0]})"
        elif abs(value) > limit + 2.0 * spread:
            message = f"the {what} is {value:+.3g} {unit}"
        else:
            continue
        problems.append(remark("grasp", message, severity="warning", where=what, evidence={unit: float(value)}))
    return GraspCheck(offset=offset, offset_stderr=stderr, tilt_deg=tilt, tilt_stderr_deg=tilt_stderr,
                      mass_ratio=ratio, problems=tuple(problems))  # fmt: skip


def _tilt(load: Load, expected: Inertia) -> tuple[float, float, bool]:
    """Compare the principal axes with the expected ones.

    Axes have no sign. With two equal moments only the third axis counts; with three equal moments there is no axis.

    Returns:
        The smallest angle between the axes and its standard deviation [deg], and whether the estimate defines all axes
        that the expected body has.
    """
    principal = load.principal
    wanted = PrincipalAxes.of(expected.about_com, np.zeros((6, 6)))
    equal = set(wanted.ill_defined)
    undefined = equal | set(principal.ill_defined)  # pairs of moments whose axes may turn in their plane
    if len(undefined) > 1 or (0, 2) in undefined:
        return float("nan"), float("inf"), False
    if undefined:
        k = 2 if undefined == {(0, 1)} else 0  # the axis that is left
        one, other = wanted.axes[:, k], principal.axes[:, k]
        angle = np.arctan2(np.linalg.norm(np.cross(one, other)), abs(one @ other))
        spread = np.linalg.norm(np.delete(principal.angle_stderr, k))
    else:
        turn, found = map(Rotation.from_matrix, (wanted.axes, principal.axes))
        # the four half turns about the axes give the same axes with other signs
        angle = min((turn * half_turn * found.inv()).magnitude() for half_turn in Rotation.create_group("D2"))
        spread = principal.angle_stderr.max()
    return float(np.rad2deg(angle)), float(np.rad2deg(spread)), undefined == equal
