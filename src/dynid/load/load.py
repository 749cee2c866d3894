"""A load: the ten parameters of what the robot holds, with the uncertainty of every number.

Principal moments and axes come with their uncertainty. Nearly equal moments make axes ill-defined: the angle between
them is the small off-diagonal noise divided by the small gap ([Atkeson1986] eqs. 23-24).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from dynid.arrays import Bools, Floats
from dynid.decompositions import eigh
from dynid.errors import ArgumentError
from dynid.estimation.physical.nearest import nearest_possible_body
from dynid.findings import Finding, Severity
from dynid.lazy import cached_property
from dynid.parameters.inertia_maps import transport
from dynid.robot.inertia import Inertia
from dynid.spatial import skew
from dynid.tables import Table, html_card

NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
"""Names of the ten parameters: inertia about the origin of the frame, first moments, mass."""
UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)
"""Units of the ten parameters."""
CHANNELS = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
"""Names of the channels of a wrench: force [N], then moment [N m]."""
SPHERE = 1e-3
"""Probability of a tensor that differs so much from a sphere's, by chance, above which axes are ill-defined (level)."""
ROUNDING = 1e-6
"""Relative deviation that rounding explains: of equal moments, of a rigid motion."""
CERTAIN_SHARE = 0.25
"""Largest standard deviation of a principal moment over the largest moment with which an inertia is used; convention.
"""
SURE = 5.0
"""Standard deviations that chance does not explain: of a negative mass, a drift, a gain, an impossible load (level)."""
LITTLE_SHIFT = 1e-3
"""Distance to the nearest possible body [standard deviations] that the cone solver's accuracy explains; convention."""
OPEN_SHARE = 0.2
"""Spread of a moment of inertia over its prior one, or over that of an open moment that it holds, from which on it is
open; convention."""
PAIRS = tuple(combinations(range(3), 2))
UPPER = np.triu_indices(3)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrincipalAxes:
    """Principal moments and axes of an inertia tensor ([Atkeson1986] eq. 11); uncertainties to first order."""

    moments: Floats
    """(3,) ascending [kg m^2]"""
    moments_stderr: Floats
    """(3,) standard deviations of the moments [kg m^2]"""
    axes: Floats
    """(3, 3) columns: unit vectors of the axes in the tensor's frame, right-handed"""
    angle_stderr: Floats
    """(3,) standard deviation of the principal frame's angle about each axis [rad]; infinite where ill-defined"""
    ill_defined: tuple[tuple[int, int], ...]
    """Pairs of axes whose moments do not differ significantly."""

    @classmethod
    def of(cls, tensor: Floats, covariance: Floats) -> PrincipalAxes:
        """Diagonalise a tensor.

        Args:
            tensor: (3, 3) symmetric [kg m^2].
            covariance: (6, 6) of the entries XX XY XZ YY YZ ZZ [kg^2 m^4].
        """
        moments, axes = eigh(tensor)  # [Atkeson1986] eq. (11)
        axes = axes * np.sign(np.linalg.det(axes))
        rows = np.array([_entry(axes[:, k], axes[:, k]) for k in range(3)])
        ill, angle, smallest = [], np.zeros(3), ROUNDING * abs(float(moments[-1]))
        for i, j in PAIRS:
            gap, mixed = float(moments[j] - moments[i]), _entry(axes[:, i], axes[:, j])
            # [Atkeson1986] eqs. (23), (24): the angle about axis k is the product of inertia over the gap
            angle[3 - i - j] = np.sqrt(max(float(mixed @ covariance @ mixed), 0.0)) / max(gap, 1e-300)
            # (difference of moments, twice the product) = (gap, 0) against the (0, 0) of equal moments
            both = np.stack([rows[j] - rows[i], 2.0 * mixed])
            spread = both @ covariance @ both.T + np.eye(2) * (1e-3 * smallest) ** 2
            if gap <= smallest or gap**2 * np.linalg.inv(spread)[0, 0] <= chi2.isf(SPHERE, 5):
                ill.append((i, j))
                angle[3 - i - j] = np.inf
        stderr = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", rows, covariance, rows), 0.0))
        return cls(moments=moments, moments_stderr=stderr, axes=axes, angle_stderr=angle, ill_defined=tuple(ill))


def _entry(a: Floats, b: Floats) -> Floats:
    """(6,) row that gives ``a^T I b`` from XX XY XZ YY YZ ZZ."""
    (x, y, z), (u, v, w) = a, b
    return np.array([x * u, x * v + y * u, x * w + z * u, y * v, y * w + z * v, z * w])


@dataclass(frozen=True, kw_only=True, eq=False)
class Load:
    """Ten parameters of a rigid load in the frame of the link that holds it."""

    frame: str
    """Name of the link that holds the load; all vectors and tensors are in its axes."""
    vector: Floats
    """(10,) ``XX XY XZ YY YZ ZZ MX MY MZ M`` about the frame's origin; units as in `UNITS`."""
    covariance: Floats
    """(10, 10) covariance of `vector`, within what the data determine; `stderr` is infinite for the others."""
    undetermined: Bools
    """(10,) whether the data leave the parameter open; its value is then zero or a convention."""
    bias: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) constant wrench of the sensor [N, N m], sensor axes."""
    bias_stderr: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) standard deviation of the bias [N, N m]; infinite where undetermined."""
    drift: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) change of the sensor's bias per second [N/s, N m/s], sensor axes."""
    residual_std: Floats = field(default_factory=lambda: np.zeros(0))
    """(6,) or (n,) standard deviation of the residual of each wrench channel or joint [N, N m]."""
    method: str = ""
    """How the load was identified, in words."""
    findings: tuple[Finding, ...] = ()
    """Findings about the estimate; a warning makes it doubtful."""
    extras: dict[str, Floats] = field(default_factory=dict)
    """Further estimates: ``R_frame_sensor`` (3, 3), ``orientation_stderr`` (3,) [rad], ``gravity`` (3,) and
    ``gravity_stderr`` (3,) in base axes [m/s^2], ``plain`` (10,) the estimate before the nearest possible body took its
    place, ``shift`` (1,) the distance of the two in standard deviations, ``compliance``, ``compliance_stderr`` (6,)
    [m/N, rad/(N m)] and ``damping_s``, ``damping_stderr_s`` (6,) [s] of the sensor."""

    @classmethod
    def of(cls, inertia: Inertia, frame: str, *, stderr: ArrayLike = 0.0, method: str = "given") -> Load:
        """A load that is known beforehand: weighed, or from its drawing.

        Args:
            inertia: Mass properties of the load in the frame.
            frame: Name of the link that holds the load.
            stderr: Standard deviation of the ten parameters, one number or (10,).
            method: Where the numbers come from.
        """
        spread = np.broadcast_to(np.asarray(stderr, dtype=float), (10,))
        return cls(
            frame=frame,
            vector=inertia.vector,
            covariance=np.diag(spread**2),
            undetermined=np.zeros(10, dtype=bool),
            method=method,
        )

    @cached_property
    def inertia(self) -> Inertia:
        """The load as a body in its frame, for programs that need numbers for all ten parameters.

        Undetermined moments of inertia are those of a point mass, or of the possible body that is nearest to the
        determined ones where a point mass cannot have those. They are assumptions, not measurements.
        """
        vector = np.where(self.undetermined, 0.0, self.vector)
        if not self.undetermined[:6].any() or not vector[9] > 0.0:
            return Inertia.from_vector(vector)
        point = Inertia.from_com(vector[9], vector[6:9] / vector[9], np.zeros((3, 3))).vector
        body = Inertia.from_vector(np.where(self.undetermined, point, vector))
        if body.is_physical or self.undetermined[6:].any():
            return body
        nearest = nearest_possible_body(self.vector, self.covariance, self.undetermined)
        return body if nearest is None else Inertia.from_vector(nearest[0])

    @property
    def mass(self) -> float:
        """Mass [kg]; NaN where undetermined."""
        return float("nan") if self.undetermined[9] else float(self.vector[9])

    @property
    def com(self) -> Floats:
        """(3,) centre of mass in the frame [m]; NaN where undetermined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            com = self.vector[6:9] / self.vector[9]  # [Atkeson1986] eq. (10)
        return np.where(self.undetermined[6:9] | self.undetermined[9], np.nan, com)

    @property
    def has_inertia(self) -> bool:
        """Whether the data determine the whole inertia tensor about the centre of mass."""
        return not self.undetermined.any()

    @property
    def open_moments(self) -> tuple[str, ...]:
        """Names of the moments of inertia that the data leave open, of XX XY XZ YY YZ ZZ."""
        return tuple(name for name, is_open in zip(NAMES[:6], self.undetermined[:6], strict=True) if is_open)

    @property
    def known_moments(self) -> tuple[str, ...]:
        """Names of the moments of inertia that may be used: all six, some (others are open), or none.

        If the data determine all six, but poorly, none of them is known.
        """
        if not self.open_moments:
            return NAMES[:6] if self.inertia_is_certain else ()
        return tuple(name for name in NAMES[:6] if name not in self.open_moments)

    @property
    def inertia_is_certain(self) -> bool:
        """Whether every principal moment is known to a quarter of the largest one; otherwise do not use the inertia."""
        principal = self.principal
        return self.has_inertia and bool(principal.moments_stderr.max() <= CERTAIN_SHARE * principal.moments[-1])

    @property
    def inertia_about_com(self) -> Floats:
        """(3, 3) tensor about the centre of mass, axes of the frame [kg m^2]; NaN where undetermined."""
        is_open = np.zeros((3, 3), dtype=bool)
        is_open[UPPER] = self.about_com_undetermined
        tensor = Inertia.from_vector(np.where(self.undetermined, 0.0, self.vector)).about_com  # [Atkeson1986] eq. (10)
        return np.where(is_open | is_open.T, np.nan, tensor)

    @property
    def about_com_undetermined(self) -> Bools:
        """(6,) whether the data leave XX XY XZ YY YZ ZZ about the centre of mass open."""
        # h h^T - |h|^2 holds h_i and h_j, on the diagonal the two others
        first = [
            self.undetermined[[6 + k for k in range(3) if (k in (i, j)) == (i != j)]].any() for i, j in zip(*UPPER)
        ]
        return np.asarray(self.undetermined[:6] | first | self.undetermined[9])

    @property
    def about_com_stderr(self) -> Floats:
        """(6,) standard deviation of XX XY XZ YY YZ ZZ about the centre of mass; infinite where undetermined."""
        if self.undetermined[9]:
            return np.full(6, np.inf)
        spread = np.sqrt(np.maximum(np.diag(self.about_com_covariance), 0.0))
        return np.where(self.about_com_undetermined, np.inf, spread)

    @property
    def principal(self) -> PrincipalAxes:
        """Principal moments and axes with their uncertainty (eq. 11); NaN and infinite where undetermined."""
        if not self.has_inertia:
            nan, infinite = np.full((3, 3), np.nan), np.full(3, np.inf)
            return PrincipalAxes(
                moments=nan[0], moments_stderr=infinite, axes=nan, angle_stderr=infinite, ill_defined=PAIRS
            )
        return PrincipalAxes.of(self.inertia_about_com, self.about_com_covariance)

    # --- uncertainty ---

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
        """(3,) standard deviation of the centre of mass [m], to first order; infinite where undetermined."""
        if self.undetermined[9]:
            return np.full(3, np.inf)
        jacobian = np.hstack([np.eye(3), -(self.vector[6:9] / self.vector[9])[:, None]]) / self.vector[9]
        spread = np.sqrt(np.diag(jacobian @ self.covariance[6:, 6:] @ jacobian.T))
        return np.where(self.undetermined[6:9], np.inf, spread)

    @property
    def about_com_covariance(self) -> Floats:
        """(6, 6) covariance of the tensor about the centre of mass, order XX XY XZ YY YZ ZZ, to first order."""
        m, h = self.vector[9], self.vector[6:9]
        # I_com = I + [h][h] / m: derivatives with respect to h_k and m
        columns = [(skew(e) @ skew(h) + skew(h) @ skew(e)) / m for e in np.eye(3)] + [-skew(h) @ skew(h) / m**2]
        jacobian = np.hstack([np.eye(6), np.stack([c[UPPER] for c in columns], axis=1)])
        return np.asarray(jacobian @ self.covariance @ jacobian.T)

    @property
    def ill_defined_axes(self) -> tuple[tuple[int, int], ...]:
        """Pairs of principal axes whose moments do not differ significantly: their directions mean nothing."""
        return self.principal.ill_defined

    def with_findings(self, *findings: Finding) -> Load:
        """The same load with further findings."""
        return replace(self, findings=(*self.findings, *findings))

    # --- other frames and other loads ---

    def minus(self, tare: Load) -> Load:
        """This load without another one in the same frame: the object without the gripper."""
        if tare.frame != self.frame:
            raise ArgumentError(
                f"the tare is in frame '{tare.frame}', the load in '{self.frame}'",
                remedy="Express the tare in the load's frame first: tare.in_frame(T, frame).",
            )
        return replace(
            self,
            vector=self.vector - tare.vector,
            covariance=self.covariance + tare.covariance,
            undetermined=self.undetermined | tare.undetermined,
            method=f"{self.method}, tare subtracted",
            findings=(*self.findings, *(finding for finding in tare.findings if finding not in self.findings)),
        )

    def in_frame(self, T_new_frame: ArrayLike, frame: str) -> Load:
        """The same load in another frame; ``T_new_frame`` (4, 4) is the pose of the present frame in the new one."""
        T = np.asarray(T_new_frame, dtype=float)
        rigid = T.shape == (4, 4) and np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=ROUNDING)
        if not (rigid and np.isfinite(T).all() and np.linalg.det(T[:3, :3]) > 0.0 and np.allclose(T[3], [0, 0, 0, 1])):
            raise ArgumentError(
                "the pose of the frame is no rigid motion", remedy="Give (4, 4): a rotation and a position [m]."
            )
        S = transport(T[:3, :3], T[:3, 3])
        undetermined = self._open_in_frame(S)
        return replace(
            self,
            frame=frame,
            vector=np.where(undetermined, 0.0, S @ np.where(self.undetermined, 0.0, self.vector)),
            covariance=S @ self.covariance @ S.T,
            undetermined=undetermined,
        )

    def _open_in_frame(self, S: Floats) -> Bools:
        """(10,) parameters of another frame that hold an open one, S (10, 10) mapping the ten to that frame.

        Where open moments of inertia have a spread (the prior one), a trace of them in another parameter is part of
        that parameter's own spread, and opens it only if it is large.
        """
        weight = S[:, self.undetermined]
        spread = np.diag(self.covariance)[self.undetermined]
        if self.undetermined[6:].any() or not np.all(spread > 0.0):
            return np.asarray(np.any(np.abs(weight) > 1e-12, axis=1))
        mixed = np.sqrt(np.sum(weight**2 * spread, axis=1))
        return np.asarray(mixed > OPEN_SHARE * np.sqrt(np.max(spread, initial=0.0)))

    def _rows(self) -> Iterator[tuple[str, float | str, float | str, str]]:
        """Mass, centre of mass, moments of inertia and bias with their standard deviations; what is open last."""
        unknown = "not identifiable from these data"
        if self.undetermined[9]:
            yield "mass", unknown, "", ""
            moments = zip("xyz", self.vector[6:9], self.stderr[6:9], self.undetermined[6:9], strict=True)
            yield from ((f"mass times com {axis}", float(v), float(s), "kg m") for axis, v, s, u in moments if not u)
        else:
            yield "mass", self.mass, self.mass_stderr, "kg"
            com = zip("xyz", self.com, self.com_stderr, strict=True)
            yield from ((f"com {axis}", float(c), float(s), "m") for axis, c, s in com)
        if self.has_inertia:
            principal = self.principal
            sizes = zip("123", principal.moments, principal.moments_stderr, strict=True)
            yield from ((f"principal moment {k}", float(v), float(s), "kg m^2") for k, v, s in sizes)
        else:
            about_com = zip(self.inertia_about_com[UPPER], self.about_com_stderr, strict=True)
            for name, value, spread, (moved, moved_spread) in zip(NAMES, self.vector, self.stderr, about_com):
                if np.isfinite(spread):
                    yield name, float(value), float(spread), "kg m^2"
                if np.isfinite(moved_spread):
                    yield f"{name} about com", float(moved), float(moved_spread), "kg m^2"
        if names := self.open_moments:
            yield "inertia" if len(names) == 6 else ", ".join(names), unknown, "", ""
        if np.any(self.bias):
            for k, (name, value, spread) in enumerate(zip(CHANNELS, self.bias, self.bias_stderr, strict=True)):
                yield f"bias {name}", float(value), float(spread), "N" if k < 3 else "N m"

    def table(self) -> str:
        """Mass, centre of mass, inertia and bias with their standard deviations, as text."""
        table = Table.of(["", "value", "std", "unit"], list(self._rows()))
        lines = [f"load in frame '{self.frame}' by {self.method}", "", str(table)]
        if self.has_inertia and self.ill_defined_axes:
            pairs = ", ".join(f"{i + 1} and {j + 1}" for i, j in self.ill_defined_axes)
            lines.append(f"Principal axes {pairs} are ill-defined: their moments are too close.")
        return "\n".join(lines)

    def __str__(self) -> str:
        """The table and the findings, as text."""
        return "\n".join([self.table(), *self._sentences()])

    def _sentences(self) -> list[str]:
        return [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in self.findings]

    def __repr__(self) -> str:
        """Mass and frame in one line."""
        return f"Load({self.mass:.4g} kg in frame '{self.frame}', by {self.method or 'no method'})"

    def _repr_html_(self) -> str:
        """The table and the findings, for notebooks."""
        table = Table.of(["", "value", "standard deviation", "unit"], list(self._rows()))
        return html_card(repr(self), self._sentences(), table)


def make_possible(load: Load) -> Load:
    """The same load if a body can have its parameters, otherwise the nearest possible one, with a finding.

    Open moments of inertia stay open: they may have any value that makes the body possible.
    """
    is_all_open = bool(load.undetermined[:6].all())
    if is_all_open or load.undetermined[6:].any() or not load.mass > 0.0:
        return load
    if load.has_inertia and load.inertia.is_physical:
        return load
    nearest = nearest_possible_body(load.vector, load.covariance, load.undetermined)
    look = "Look at signs, units and axes, at the link, and at the delay of the wrench."
    if nearest is None:
        message = "no body can have the estimated parameters, and no possible body was found near them"
        return load.with_findings(remark("impossible-load", message, look, severity="warning"))
    vector, shift = nearest
    if not load.has_inertia and shift < LITTLE_SHIFT:
        return load
    message = f"no body can have the plain estimate: the nearest possible one is {shift:.2g} standard deviations off"
    given = "The nearest possible body is given; Load.extras holds the plain estimate."
    is_far = shift > SURE
    found = remark(
        "impossible-load", message, look if is_far else given, severity="warning" if is_far else "note",
        evidence={"shift [standard deviations]": shift},
    )  # fmt: skip
    return replace(
        load.with_findings(found),
        vector=np.where(load.undetermined, 0.0, vector),
        extras={**load.extras, "plain": load.vector, "shift": np.array([shift])},
    )


def remark(
    code: str,
    message: str,
    remedy: str = "",
    *,
    severity: Severity = "note",
    where: str = "load",
    evidence: Mapping[str, float] | None = None,
) -> Finding:
    """A finding about a load."""
    return Finding(code=code, severity=severity, where=where, message=message, remedy=remedy, evidence=evidence or {})
