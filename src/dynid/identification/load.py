"""A load: what is in the robot's hand, with the uncertainty of every number."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.robot.inertia import Inertia
from dynid.spatial import skew
from dynid.tables import Table

__all__ = ["Load", "NAMES"]

Floats = NDArray[np.float64]
NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)


@dataclass(frozen=True, kw_only=True, eq=False)
class Load:
    """Ten parameters of a rigid load, in the frame of the link that holds it."""

    frame: str
    """Name of that link."""
    vector: Floats
    """(10,) ``XX XY XZ YY YZ ZZ MX MY MZ M`` about the frame's origin."""
    covariance: Floats
    """(10, 10)"""
    undetermined: NDArray[np.bool_]
    """(10,) whether the data leave the parameter open; its value is then zero or a convention."""
    bias: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) constant wrench of the sensor [N, N m]."""
    drift: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) change of the sensor's bias per second [N/s, N m/s]."""
    residual_std: Floats = field(default_factory=lambda: np.zeros(0))
    """Standard deviation of what the load does not explain, per channel or joint [N, N m]."""
    method: str = ""
    notes: tuple[str, ...] = ()
    extras: dict[str, Floats] = field(default_factory=dict)
    """What else was estimated: sensor orientation, gravity direction."""

    @property
    def inertia(self) -> Inertia:
        """The load as a body in its frame; undetermined moments of inertia are those of a point mass."""
        return Inertia.from_vector(self._filled)

    @property
    def _filled(self) -> Floats:
        vector = np.where(self.undetermined, 0.0, self.vector)
        if self.undetermined[:6].any():
            point = Inertia.from_com(vector[9], self.com, np.zeros((3, 3))).vector
            vector = np.where(self.undetermined, point, vector)
        return np.asarray(vector)

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.vector[9])

    @property
    def com(self) -> Floats:
        """(3,) centre of mass in the frame [m] ([Atkeson1986] eq. 10)."""
        return np.asarray(self.vector[6:9] / self.vector[9])

    @property
    def inertia_about_com(self) -> Floats:
        """(3, 3) tensor about the centre of mass, axes of the frame [kg m^2]; NaN where undetermined (eq. 11)."""
        if self.undetermined[:6].any():
            return np.full((3, 3), np.nan)
        return Inertia.from_vector(self.vector).about_com

    @property
    def principal_moments(self) -> Floats:
        """(3,) ascending [kg m^2]; NaN where undetermined."""
        if self.undetermined[:6].any():
            return np.full(3, np.nan)
        return np.asarray(np.linalg.eigvalsh(self.inertia_about_com))

    @property
    def principal_axes(self) -> Floats:
        """(3, 3) columns: axes of `principal_moments`, in the frame; right-handed."""
        if self.undetermined[:6].any():
            return np.full((3, 3), np.nan)
        axes = np.linalg.eigh(self.inertia_about_com)[1]
        return np.asarray(axes * np.sign(np.linalg.det(axes)))

    # --- uncertainty -----------------------------------------------------------------------------------------------

    @property
    def stderr(self) -> Floats:
        """(10,) standard deviation of each parameter; infinite where undetermined."""
        return np.where(self.undetermined, np.inf, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def mass_stderr(self) -> float:
        """Standard deviation of the mass [kg]."""
        return float(self.stderr[9])

    @property
    def com_stderr(self) -> Floats:
        """(3,) standard deviation of the centre of mass [m]."""
        if self.undetermined[6:].any():
            return np.full(3, np.inf)
        jacobian = np.hstack([np.eye(3), -self.com[:, None]]) / self.mass
        return np.sqrt(np.diag(jacobian @ self.covariance[6:, 6:] @ jacobian.T))

    @property
    def about_com_covariance(self) -> Floats:
        """(6, 6) covariance of the tensor about the centre of mass, order XX XY XZ YY YZ ZZ."""
        step = 1e-6 * np.maximum(np.abs(self.vector), 1e-6)
        columns = [
            (_about_com(self.vector + d * unit) - _about_com(self.vector - d * unit)) / (2 * d)
            for d, unit in zip(step, np.eye(10), strict=True)
        ]
        jacobian = np.stack(columns, axis=1)
        return np.asarray(jacobian @ self.covariance @ jacobian.T)

    @property
    def principal_moments_stderr(self) -> Floats:
        """(3,) to first order [kg m^2]; infinite where undetermined."""
        if self.undetermined[:6].any():
            return np.full(3, np.inf)
        rows = np.array([_along(axis) for axis in self.principal_axes.T])
        return np.asarray(np.sqrt(np.einsum("ki,ij,kj->k", rows, self.about_com_covariance, rows)))

    @property
    def ill_defined_axes(self) -> tuple[tuple[int, int], ...]:
        """Pairs of principal axes with moments too close to tell apart: their directions mean nothing (eqs. 23-24)."""
        if self.undetermined[:6].any():
            return ((0, 1), (0, 2), (1, 2))
        moments, spread = self.principal_moments, self.principal_moments_stderr
        pairs = [(i, j) for i in range(3) for j in range(i + 1, 3)]
        return tuple((i, j) for i, j in pairs if moments[j] - moments[i] < 3.0 * np.hypot(spread[i], spread[j]))

    # --- to and from others ----------------------------------------------------------------------------------------

    def minus(self, tare: Load) -> Load:
        """This load without another one in the same frame: the object without the gripper."""
        return Load(
            frame=self.frame,
            vector=self.vector - tare.vector,
            covariance=self.covariance + tare.covariance,
            undetermined=self.undetermined | tare.undetermined,
            bias=self.bias,
            drift=self.drift,
            residual_std=self.residual_std,
            method=f"{self.method}, tare subtracted",
            notes=(*self.notes, *tare.notes),
        )

    def summary(self) -> str:
        """Mass, centre of mass, inertia and bias with their standard deviations, as text."""
        rows: list[tuple[str, float | str, float | str, str]] = [("mass", self.mass, self.mass_stderr, "kg")]
        rows += [(f"com {axis}", float(c), float(s), "m") for axis, c, s in zip("xyz", self.com, self.com_stderr)]
        if self.undetermined[:6].any():
            rows.append(("inertia", "not identifiable from these data", "", ""))
        else:
            moments = zip(self.principal_moments, self.principal_moments_stderr, strict=True)
            rows += [(f"principal moment {k + 1}", float(v), float(s), "kg m^2") for k, (v, s) in enumerate(moments)]
        units = ("N", "N", "N", "N m", "N m", "N m")
        if np.any(self.bias):
            rows += [(f"bias {n}", float(b), "", u) for n, b, u in zip(_CHANNELS, self.bias, units, strict=True)]
        lines = [
            f"load in frame '{self.frame}' by {self.method}",
            "",
            str(Table.of(["", "value", "std", "unit"], rows)),
        ]
        if not self.undetermined[:6].any() and self.ill_defined_axes:
            pairs = ", ".join(f"{i + 1} and {j + 1}" for i, j in self.ill_defined_axes)
            lines.append(f"Principal axes {pairs} are ill-defined: their moments are too close.")
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    def __str__(self) -> str:
        return self.summary()


_CHANNELS = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")


def _about_com(vector: Floats) -> Floats:
    """(6,) XX XY XZ YY YZ ZZ about the centre of mass (parallel axes, [Atkeson1986] eq. 11)."""
    xx, xy, xz, yy, yz, zz = vector[:6]
    c = skew(vector[6:9] / vector[9])
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) + vector[9] * c @ c
    return np.asarray(tensor[np.triu_indices(3)])


def _along(axis: Floats) -> Floats:
    """(6,) row that gives the moment about an axis from XX XY XZ YY YZ ZZ."""
    x, y, z = axis
    return np.array([x * x, 2 * x * y, 2 * x * z, y * y, 2 * y * z, z * z])
