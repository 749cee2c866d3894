"""A load: the ten parameters of what the robot holds, with the uncertainty of every number.

Principal moments and axes come with their uncertainty. Nearly equal moments make axes ill-defined: the angle between
them is the small off-diagonal noise divided by the small gap ([Atkeson1986] eqs. 23-24).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import ArrayLike
from scipy.optimize import approx_fprime

from dynid.arrays import Bools, Floats
from dynid.decompositions import eigh, standard_deviations
from dynid.dynamics.inertia_maps import UPPER, transport
from dynid.errors import ArgumentError, DataError
from dynid.estimators.physical.nearest import nearest_possible_body
from dynid.files.records import Text, as_record
from dynid.files.small_files import HAND_WRITTEN, read_json
from dynid.files.transaction import check_listed
from dynid.findings import Finding, Severity
from dynid.lazy import cached_property
from dynid.robot.inertia import Inertia
from dynid.robot.parts import is_rotation
from dynid.spatial import EXACT, SAME
from dynid.tables import Table, html_card

NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
"""Names of the ten parameters: inertia about the origin of the frame, first moments, mass."""
UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)
"""Units of the ten parameters."""
CHANNELS = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
"""Names of the channels of a wrench: force [N], then moment [N m]."""
PAIRS = ((0, 1, 1), (0, 2, 2), (1, 2, 4))
"""Pairs of axes, and the place of their product of inertia among the ten parameters."""
LITTLE = 0.1
"""Share of a quantity that is little: an error of a mass or a gain below it, the part of the load that a joint feels,
what data say more than was known before (convention)."""
MUCH = 0.2
"""Share of a quantity that is much: a moment of inertia whose error is this share of it, or of the prior one, is not
known; torques or forces that leave this share unexplained make a load doubtful (convention)."""
SURE = 5.0
"""Standard deviations that chance does not explain: of a negative mass, a drift, a gain, an impossible load, of the
difference between two principal moments (level)."""
SETTLED = 1e-3
"""Distance [standard deviations, rad] that the accuracy of a search explains (convention): the next step of
Gauss-Newton is about its square."""


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
    """Pairs of axes whose moments do not differ significantly: their directions mean nothing."""

    @classmethod
    def of(cls, tensor: Floats, covariance: Floats) -> PrincipalAxes:
        """Diagonalise a tensor.

        Args:
            tensor: (3, 3) symmetric [kg m^2].
            covariance: (6, 6) of the entries XX XY XZ YY YZ ZZ [kg^2 m^4].
        """
        moments, axes = eigh(tensor)  # [Atkeson1986] eq. (11)
        axes = axes * np.sign(np.linalg.det(axes))
        turned = transport(axes.T, np.zeros(3))[:6, :6]  # the entries in principal axes
        stderr = np.sqrt(np.maximum(np.diag(turned @ covariance @ turned.T), 0.0))
        diagonal, angle, ill = turned[[0, 3, 5]], np.zeros(3), []
        for i, j, product in PAIRS:
            gap, change = float(moments[j] - moments[i]), diagonal[j] - diagonal[i]
            if gap <= max(SURE * np.sqrt(max(change @ covariance @ change, 0.0)), SAME * abs(float(moments[-1]))):
                ill.append((i, j))
            # [Atkeson1986] eqs. (23), (24): the angle about axis k is the product of inertia over the gap
            angle[3 - i - j] = np.inf if (i, j) in ill else stderr[product] / gap
        return cls(moments=moments, moments_stderr=stderr[[0, 3, 5]], axes=axes, angle_stderr=angle,
                   ill_defined=tuple(ill))  # fmt: skip


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
        spread = np.diag(np.broadcast_to(np.asarray(stderr, dtype=float), (10,)) ** 2)
        known = np.zeros(10, dtype=bool)
        return cls(frame=frame, vector=inertia.vector, covariance=spread, undetermined=known, method=method)

    @classmethod
    def read(cls, path: str | Path) -> Load:
        """Read a load that ``dynid load`` wrote, with its covariance, to use it as the tare of another.

        Raises:
            DataError: The file cannot be read or has other content.

        Example:
            >>> tare = dynid.Load.read(folder / "load.json")
            >>> tare.mass
            2.0
        """
        file = read_load_file(path)
        if missing := set(NAMES) - set(file.parameters):
            raise DataError(f"'{min(missing)}' is missing", path=path, place="parameters", remedy=GIVE_LOAD)
        values = np.array([file.parameters[name] for name in NAMES], dtype=float)  # null becomes NaN
        is_open = np.isnan(values)
        covariance = np.where(is_open[:, None] | is_open, 0.0, np.array(file.covariance, dtype=float))
        if not (np.isfinite(covariance).all() and np.all(np.diag(covariance) >= 0.0)):
            reason = "no errors have this covariance: a number is missing, or a variance is negative"
            raise DataError(reason, path=path, place="covariance", remedy=GIVE_LOAD)
        vector = np.where(is_open, 0.0, values)
        return cls(frame=file.frame, vector=vector, covariance=covariance, undetermined=is_open, method=file.method)

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
        return self._com[0]

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
        is_poor = not self.open_moments and not self.inertia_is_certain
        return () if is_poor else tuple(name for name in NAMES[:6] if name not in self.open_moments)

    @property
    def inertia_is_certain(self) -> bool:
        """Whether every principal moment is known to a fifth of the largest one; otherwise do not use the inertia."""
        principal = self.principal
        return self.has_inertia and bool(principal.moments_stderr.max() <= MUCH * principal.moments[-1])

    @property
    def open_words(self) -> str:
        """What the data leave open, in words: the inertia, or single parameters by name."""
        others = [name for name, is_open in zip(NAMES[6:], self.undetermined[6:], strict=True) if is_open]
        return ", ".join([*(self.open_moments if len(self.open_moments) < 6 else ["the inertia"]), *others])

    @property
    def inertia_about_com(self) -> Floats:
        """(3, 3) tensor about the centre of mass, axes of the frame [kg m^2]; NaN where undetermined."""
        tensor = np.zeros((3, 3))
        tensor[UPPER] = tensor.T[UPPER] = self._about_com[0]
        return tensor

    @property
    def principal(self) -> PrincipalAxes:
        """Principal moments and axes with their uncertainty (eq. 11); NaN and infinite where undetermined."""
        if self.has_inertia:
            return PrincipalAxes.of(self.inertia_about_com, self.about_com_covariance)
        unknown, infinite = np.full((3, 3), np.nan), np.full(3, np.inf)
        return PrincipalAxes(moments=unknown[0], moments_stderr=infinite, axes=unknown, angle_stderr=infinite,
                             ill_defined=tuple((i, j) for i, j, _ in PAIRS))  # fmt: skip

    # --- uncertainty ---

    @property
    def stderr(self) -> Floats:
        """(10,) standard deviation of each parameter; infinite where undetermined."""
        return standard_deviations(self.covariance, self.undetermined)

    @property
    def mass_stderr(self) -> float:
        """Standard deviation of the mass [kg]."""
        return float(self.stderr[9])

    @property
    def com_stderr(self) -> Floats:
        """(3,) standard deviation of the centre of mass [m], to first order; infinite where undetermined."""
        return np.asarray(np.sqrt(np.diag(self._com[1])))

    @property
    def about_com_stderr(self) -> Floats:
        """(6,) standard deviation of XX XY XZ YY YZ ZZ about the centre of mass; infinite where undetermined."""
        return np.asarray(np.sqrt(np.diag(self.about_com_covariance)))

    @property
    def about_com_covariance(self) -> Floats:
        """(6, 6) covariance of the tensor about the centre of mass, order XX XY XZ YY YZ ZZ, to first order."""
        return self._about_com[1]

    @cached_property
    def _com(self) -> tuple[Floats, Floats]:
        return self._derive(lambda body: body.com)

    @cached_property
    def _about_com(self) -> tuple[Floats, Floats]:
        return self._derive(lambda body: body.about_com[UPPER])

    def _derive(self, of: Callable[[Inertia], Floats]) -> tuple[Floats, Floats]:
        """Numbers (k,) of the body and their covariance (k, k), to first order; NaN and infinite where undetermined."""

        def numbers(vector: Floats) -> Floats:
            return of(Inertia.from_vector(vector))  # [Atkeson1986] eq. (10)

        depends = approx_fprime(np.ones(10), numbers) != 0.0
        is_open = depends[:, self.undetermined].any(axis=1)
        vector = np.where(self.undetermined, 1.0, self.vector)
        slopes = approx_fprime(vector, numbers)
        covariance = slopes @ self.covariance @ slopes.T
        np.fill_diagonal(covariance, np.where(is_open, np.inf, np.maximum(np.diag(covariance), 0.0)))
        return np.where(is_open, np.nan, numbers(vector)), covariance

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
            self.with_findings(*(finding for finding in tare.findings if finding not in self.findings)),
            vector=self.vector - tare.vector,
            covariance=self.covariance + tare.covariance,
            undetermined=self.undetermined | tare.undetermined,
            method=f"{self.method}, tare subtracted",
        )

    def in_frame(self, T_new_frame: ArrayLike, frame: str) -> Load:
        """The same load in another frame; ``T_new_frame`` (4, 4) is the pose of the present frame in the new one."""
        T = np.asarray(T_new_frame, dtype=float)
        is_pose = T.shape == (4, 4) and np.isfinite(T).all() and np.allclose(T[3], [0, 0, 0, 1])
        if not (is_pose and is_rotation(T[:3, :3])):
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
        weight, variance = S[:, self.undetermined], np.diag(self.covariance)[self.undetermined]
        if self.undetermined[6:].any() or not np.all(variance > 0.0):
            return np.asarray(np.any(np.abs(weight) > EXACT, axis=1))
        return np.asarray(weight**2 @ variance > MUCH**2 * variance.max(initial=0.0))

    # --- in words ---

    def _rows(self) -> Iterator[tuple[str, float | str, float | str, str]]:
        """Mass, centre of mass, moments of inertia and bias with their standard deviations; what is open last."""
        found = [("mass", self.mass, self.mass_stderr, "kg")]
        first = ("com", self.com, self.com_stderr, "m")
        if self.undetermined[9]:
            first = ("mass times com", self.vector[6:9], self.stderr[6:9], "kg m")
        what, values, spreads, unit = first
        found += [(f"{what} {axis}", *pair, unit) for axis, *pair in zip("xyz", values, spreads, strict=True)]
        if self.has_inertia:
            sizes = zip("123", self.principal.moments, self.principal.moments_stderr, strict=True)
            found += [(f"principal moment {k}", *pair, "kg m^2") for k, *pair in sizes]
        else:
            pairs = zip(self.vector, self.stderr, self.inertia_about_com[UPPER], self.about_com_stderr)
            for name, (value, spread, moved, moved_spread) in zip(NAMES, pairs):
                found += [(name, value, spread, "kg m^2"), (f"{name} about com", moved, moved_spread, "kg m^2")]
        if np.any(self.bias):
            units = np.repeat(["N", "N m"], 3).tolist()
            biases = zip(CHANNELS, self.bias, self.bias_stderr, units, strict=True)
            found += [(f"bias {name}", *rest) for name, *rest in biases]
        yield from ((name, float(value), float(std), unit) for name, value, std, unit in found if np.isfinite(std))
        if self.undetermined.any():
            yield self.open_words, "not identifiable from these data", "", ""

    def table(self) -> str:
        """Mass, centre of mass, inertia and bias with their standard deviations, as text."""
        table = Table.of(["", "value", "std", "unit"], list(self._rows()))
        lines = [f"load in frame '{self.frame}' by {self.method}", "", str(table)]
        if self.has_inertia and (ill := self.principal.ill_defined):
            pairs = ", ".join(f"{i + 1} and {j + 1}" for i, j in ill)
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


GIVE_LOAD = "Give the load.json that `dynid load --out folder` writes."
_Parameter = Annotated[float, Meta(ge=-1e12, le=1e12)] | None
_Moments = Annotated[list[Annotated[float, Meta(ge=-1e24, le=1e24)] | None], Meta(min_length=10, max_length=10)]


class LoadFile(Struct):
    """What a file holds that ``dynid load`` wrote; other keys are for people."""

    parameters: dict[str, _Parameter]
    frame: Text
    covariance: Annotated[list[_Moments], Meta(min_length=10, max_length=10)]
    method: Text
    logs: dict[str, Text] = {}
    """Digest (SHA-256) -> name of every log that the load was identified from."""


def read_load_file(path: str | Path) -> LoadFile:
    """Read the file of a load.

    Raises:
        DataError: The file cannot be read or has other content.
    """
    check_listed(Path(path))
    return as_record(read_json(path, most=HAND_WRITTEN, remedy=GIVE_LOAD), LoadFile, path=path, remedy=GIVE_LOAD)


def make_possible(load: Load) -> Load:
    """The same load if a body can have its parameters, otherwise the nearest possible one, with a finding.

    Open moments of inertia stay open: they may have any value that makes the body possible.
    """
    if load.undetermined[:6].all() or load.undetermined[6:].any() or not load.mass > 0.0:
        return load
    if load.has_inertia and load.inertia.is_physical:
        return load
    nearest = nearest_possible_body(load.vector, load.covariance, load.undetermined)
    look = "Look at signs, units and axes, at the link, and at the delay of the wrench."
    if nearest is None:
        message = "no body can have the estimated parameters, and no possible body was found near them"
        return load.with_findings(remark("impossible-estimate", message, look, severity="warning"))
    vector, shift = nearest
    if not load.has_inertia and shift < SETTLED:
        return load
    message = f"no body can have the plain estimate: the nearest possible one is {shift:.2g} standard deviations off"
    given = "The nearest possible body is given; Load.extras holds the plain estimate."
    far: tuple[str, Severity] = (look, "warning") if shift > SURE else (given, "note")
    evidence = {"shift [standard deviations]": shift}
    return replace(
        load.with_findings(remark("impossible-estimate", message, far[0], severity=far[1], evidence=evidence)),
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
