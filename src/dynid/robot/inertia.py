"""`Inertia`: the mass properties of one rigid body in a frame fixed to it, and helpers for readers and writers.

The ten numbers are the mass m, the first moment m c and the tensor about the *origin* of the frame, because torques are
linear in these. With the centre of mass c, ``I_origin = I_com - m [c][c]``, where [c] is the cross-product matrix
([Atkeson1986] eq. (6)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats, ReadOnly
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, DescriptionError, ExportError
from dynid.spatial import EXACT, ROUNDING, skew


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inertia(ReadOnly):
    """Mass, first moment and inertia tensor of a body about the origin of its link frame.

    The ten numbers enter the dynamics linearly. They may be unphysical (in an estimate, or a wrong file): see
    `is_physical`.
    """

    mass: float
    """[kg]"""
    first_moment: Floats
    """(3,) mass times centre of mass [kg m], link frame."""
    about_origin: Floats
    """(3, 3) tensor about the link-frame origin, link axes [kg m^2]; off-diagonal ``XY = -integral(x y dm)``."""

    def __post_init__(self) -> None:
        """Copy, check and freeze the arrays."""
        first_moment = np.array(self.first_moment, dtype=float).reshape(3)
        tensor = np.array(self.about_origin, dtype=float).reshape(3, 3)
        numbers = (self.mass, *first_moment.tolist(), *tensor.ravel().tolist())
        if not math.isfinite(sum(numbers)) and not (  # quick test first; sums of finite numbers may overflow, too
            math.isfinite(self.mass) and np.isfinite(first_moment).all() and np.isfinite(tensor).all()
        ):
            raise DescriptionError("mass, first moment and inertia must be finite numbers")
        tensor = 0.5 * (tensor + tensor.T)
        for array in (first_moment, tensor):
            array.setflags(write=False)
        object.__setattr__(self, "mass", float(self.mass))
        object.__setattr__(self, "first_moment", first_moment)
        object.__setattr__(self, "about_origin", tensor)

    @classmethod
    def zero(cls) -> Self:
        """Make the inertia of a body without mass."""
        return cls(mass=0.0, first_moment=np.zeros(3), about_origin=np.zeros((3, 3)))

    @classmethod
    def from_com(cls, mass: float, com: ArrayLike, about_com: ArrayLike) -> Self:
        """Build from mass [kg], centre of mass (3,) [m] and tensor about the centre of mass (3, 3) [kg m^2].

        Raises:
            ArgumentError: The mass is negative, or the centre of mass is not three numbers.
        """
        if mass < 0.0:
            raise ArgumentError(
                f"mass is {mass:g} kg, and no body has a negative mass",
                remedy="Give a positive mass; Inertia(mass=..., ...) holds estimates, whatever their sign.",
            )
        return cls(**_about_origin(mass, com, about_com))

    @classmethod
    def from_vector(cls, theta: ArrayLike) -> Self:
        """Build from ``[XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M]`` (10,)."""
        xx, xy, xz, yy, yz, zz, mx, my, mz, m = np.asarray(theta, dtype=float)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return cls(mass=m, first_moment=np.array([mx, my, mz]), about_origin=tensor)

    @property
    def vector(self) -> Floats:
        """``[XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M]`` (10,): the order of the regressor's columns."""
        return np.concatenate([self.about_origin[np.triu_indices(3)], self.first_moment, [self.mass]])

    @property
    def com(self) -> Floats:
        """Centre of mass (3,) [m], link frame; the origin for a body without mass."""
        return self.first_moment / self.mass if self.mass != 0.0 else np.zeros(3)

    @property
    def about_com(self) -> Floats:
        """Inertia tensor about the centre of mass, link axes (3, 3) [kg m^2]."""
        c = skew(self.com)
        return self.about_origin + self.mass * c @ c  # [Atkeson1986] eq. (6)

    @property
    def pseudo(self) -> Floats:
        """Pseudo-inertia (4, 4): positive semidefinite exactly when some mass distribution has these ten numbers.

        With points x of the body, it is the integral of ``[x; 1] [x; 1]^T dm`` (Wensing, Kim and Slotine 2018).
        """
        pseudo = np.empty((4, 4))
        pseudo[:3, :3] = 0.5 * self.about_origin.trace() * np.eye(3) - self.about_origin
        pseudo[:3, 3] = pseudo[3, :3] = self.first_moment
        pseudo[3, 3] = self.mass
        return pseudo

    @property
    def is_physical(self) -> bool:
        """Whether a real body can have these numbers (pseudo-inertia positive semidefinite within rounding)."""
        return self.is_physical_in(self)

    def is_physical_in(self, whole: Inertia) -> bool:
        """Whether a real part of a body can have these numbers, within the rounding of the whole body's numbers."""
        return bool(eigvalsh(self.pseudo)[0] >= -EXACT * float(np.trace(whole.pseudo)))

    def in_frame(self, T_new_old: Floats) -> Inertia:
        """The same body described in another frame; ``T_new_old`` (4, 4) maps old to new coordinates."""
        if np.array_equal(T_new_old, np.eye(4)):
            return self
        R, p = T_new_old[:3, :3], T_new_old[:3, 3]
        h = R @ self.first_moment
        # parallel axes for a shift p that is not from the centre of mass, h = R m c: -m[p]^2 - [p][h] - [h][p]
        P = skew(p)
        H = skew(h)
        shift = -self.mass * P @ P - P @ H - H @ P
        tensor = R @ self.about_origin @ R.T + shift
        return Inertia(mass=self.mass, first_moment=h + self.mass * p, about_origin=tensor)

    def __add__(self, other: Inertia) -> Inertia:
        """Mass properties of two bodies welded together, both given in the same frame."""
        return Inertia(
            mass=self.mass + other.mass,
            first_moment=self.first_moment + other.first_moment,
            about_origin=self.about_origin + other.about_origin,
        )

    def __sub__(self, other: Inertia) -> Inertia:
        """Mass properties of a body without a part of it, both given in the same frame."""
        return Inertia(
            mass=self.mass - other.mass,
            first_moment=self.first_moment - other.first_moment,
            about_origin=self.about_origin - other.about_origin,
        )


def inertia_about_com(mass: float, com: ArrayLike, about_com: ArrayLike) -> Inertia:
    """Build like `Inertia.from_com`, but accept a negative mass, for readers of files: `check_robot` reports it."""
    return Inertia(**_about_origin(mass, com, about_com))


def _about_origin(mass: float, com: ArrayLike, about_com: ArrayLike) -> dict[str, Any]:
    """The fields of an `Inertia` from mass, centre of mass, and tensor about the centre of mass."""
    c = np.asarray(com, dtype=float)
    if c.shape != (3,):
        raise ArgumentError(f"com has the shape {c.shape}", remedy="Give 3 numbers, along x, y and z [m].")
    about_origin = np.asarray(about_com) - mass * skew(c) @ skew(c)  # [Atkeson1986] eq. (6)
    return {"mass": mass, "first_moment": mass * c, "about_origin": about_origin}


def centre_of_mass(inertia: Inertia, link: str) -> Floats:
    """Centre of mass (3,) [m] to write into a model file.

    Raises:
        ExportError: The body has a first moment but no mass; model files hold mass and centre, not the moment.
    """
    if inertia.mass == 0.0 and inertia.first_moment.any():
        raise ExportError(
            "a first moment without mass has no centre of mass to write",
            place=f"link '{link}'",
            remedy="Constrain the estimate to physical bodies, or move this moment to a link that has mass.",
        )
    return inertia.com


def is_same_inertia(a: Inertia, b: Inertia) -> bool:
    """Whether two inertias are equal within rounding: mass, first moment and tensor each on its own scale."""
    pairs = ((a.mass, b.mass), (a.first_moment, b.first_moment), (a.about_origin, b.about_origin))
    return all(np.linalg.norm(np.subtract(x, y)) <= ROUNDING * np.linalg.norm(y) for x, y in pairs)
