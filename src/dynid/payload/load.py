"""A load: the ten parameters of the body that the robot holds, with the uncertainty of every number.

Every identification of this package (`wrist`, `payload`, `online_load`) returns a `Load`; recognition, robot files and
the command `dynid load` read it. `LoadFile` is its file; `make_possible` replaces parameters that no body can have, and
`remark` makes findings.

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

from dynid.array_types import Bools, Floats
from dynid.decompositions import eigh, standard_deviations
from dynid.dynamics.inertia_maps import UPPER, transport
from dynid.errors import ArgumentError, DataError
from dynid.estimators.linear.robust import SETTLED
from dynid.estimators.physical.nearest import nearest_possible_body
from dynid.findings import Finding, Severity
from dynid.lazy import cached_property
from dynid.robot.inertia import Inertia
from dynid.robot.parts import is_rotation
from dynid.safe_files.records import Text, as_record
from dynid.safe_files.small_files import HAND_WRITTEN, read_json
from dynid.safe_files.transaction import check_listed
from dynid.spatial import EXACT, SAME
from dynid.tables import Table, html_card

NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
"""Names of the ten parameters: inertia about the origin of the frame, first moments, mass."""
UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)
"""Units of the ten parameters."""
CHANNELS = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
"""Names of the channels of a wrench: force [N], then moment [N m]."""
PAIRS = tuple((i, j, product) for product, (i, j) in enumerate(np.transpose(UPPER).tolist()) if i < j)
"""Pairs of axes, each with the index of their product of inertia among the ten parameters."""
SMALL_SHARE = 0.1
"""Share below which a quantity counts as small: the relative error of a known mass or gain, the part of the load that
acts on a joint, what data add to prior knowledge (convention)."""
LARGE_SHARE = 0.2
"""Share from which on a quantity counts as large: a moment of inertia with this relative error, or with this share of
its prior standard deviation, is not known; a load that leaves this share of the torques or forces unexplained is
doubtful (convention)."""
SIGNIFICANT_STD = 5.0
"""Standard deviations from which on an estimate is significant: a negative mass, a drift, a gain, an impossible load,
the difference between two principal moments (level: one in two million by chance)."""


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
        """Compute principal moments and axes of a tensor, with standard deviations to first order.

        Args:
            tensor: (3, 3) symmetric [kg m^2].
            covariance: (6, 6) covariance of the entries XX XY XZ YY YZ ZZ [kg^2 m^4].
        """
        moments, axes = eigh(tensor)  # [Atkeson1986] eq. (11)
        if np.linalg.det(axes) < 0.0:
            axes = -axes  # right-handed
        to_principal = transport(axes.T, np.zeros(3))[:6, :6]  # maps the six entries to those in principal axes
        stderr = np.sqrt(np.maximum(np.diag(to_principal @ covariance @ to_principal.T), 0.0))
        diagonal = to_principal[[0, 3, 5]]  # rows of XX, YY and ZZ
        angle = np.zeros(3)
        ill_defined = []
        for i, j, product in PAIRS:
            gap = float(moments[j] - moments[i])
            change = diagonal[j] - diagonal[i]
            if gap <= max(
                SIGNIFICANT_STD * np.sqrt(max(change @ covariance @ change, 0.0)), SAME * abs(float(moments[-1]))
            ):
                ill_defined.append((i, j))
            # [Atkeson1986] eqs. (23), (24): the angle about the third axis, 3 - i - j, is the product of inertia over
            # the gap
            angle[3 - i - j] = np.inf if (i, j) in ill_defined else stderr[product] / gap
        return cls(moments=moments, moments_stderr=stderr[[0, 3, 5]], axes=axes, angle_stderr=angle,
                   ill_defined=tuple(ill_defined))  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Load:
    """Ten parameters of a rigid load in the frame of the link that holds it."""

    frame: str
    """Name of the link that holds the load; all vectors and tensors are in its axes."""
    vector: Floats
    """(10,) ``XX XY XZ YY YZ ZZ MX MY MZ M`` about the frame's origin; units as in `UNITS`."""
    covariance: Floats
    """(10, 10) covariance of `vector` in the directions that the data determine; see `undetermined` for the others."""
    undetermined: Bools
    """(10,) whether the data do not determine the parameter; its value is then zero or a convention."""
    bias: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) constant wrench of the sensor [N, N m], sensor axes."""
    bias_stderr: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) standard deviation of the bias [N, N m]; infinite where undetermined."""
    drift: Floats = field(default_factory=lambda: np.zeros(6))
    """(6,) change of the sensor's bias per second [N/s, N m/s], sensor axes."""
    residual_std: Floats = field(default_factory=lambda: np.zeros(0))
    """(6,) or (n,) standard deviation of the residual of each wrench channel or joint [N, N m]."""
    method: str = ""
    """How the load was identified, for people."""
    findings: tuple[Finding, ...] = ()
    """Findings about the estimate; a warning makes it doubtful."""
    extras: dict[str, Floats] = field(default_factory=dict)
    """Further estimates: ``R_frame_sensor`` (3, 3), ``orientation_stderr`` (3,) [rad], ``gravity`` (3,) and
    ``gravity_stderr`` (3,) in base axes [m/s^2], ``plain`` (10,) the estimate before the nearest possible body took its
    place, ``shift`` (1,) the distance of the two in standard deviations, ``compliance``, ``compliance_stderr`` (6,)
    [m/N, rad/(N m)] and ``damping_s``, ``damping_stderr_s`` (6,) [s] of the sensor."""

    @classmethod
    def of(cls, inertia: Inertia, frame: str, *, stderr: ArrayLike = 0.0, method: str = "given") -> Load:
        """Make a load that is known before any identification: weighed, or from its drawing.

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
        """Whether the standard deviation of every principal moment is at most a fifth of the largest moment."""
        principal = self.principal
        return self.has_inertia and bool(principal.moments_stderr.max() <= LARGE_SHARE * principal.moments[-1])

    @property
    def open_words(self) -> str:
        """The undetermined parameters as text: the inertia for all six moments, and single parameters by name."""
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
        """Centre of mass (3,) and its covariance (3, 3)."""
        return self._derive(lambda body: body.com)

    @cached_property
    def _about_com(self) -> tuple[Floats, Floats]:
        """Entries (6,) of the inertia tensor about the centre of mass, and their covariance (6, 6)."""
        return self._derive(lambda body: body.about_com[UPPER])

    def _derive(self, of: Callable[[Inertia], Floats]) -> tuple[Floats, Floats]:
        """Numbers that follow from the ten parameters, with their covariance to first order.

        Args:
            of: Function from a body to k numbers.

        Returns:
            (k,) numbers, NaN where undetermined, and (k, k) covariance, infinite on its diagonal there.
        """

        def numbers(vector: Floats) -> Floats:
            return of(Inertia.from_vector(vector))  # [Atkeson1986] eq. (10)

        # (k, 10) which number depends on which parameter, at a body of ones; a number is open if one of its parameters
        # is
        ones = np.ones(10)
        depends = approx_fprime(ones, numbers) != 0.0
        is_open = depends[:, self.undetermined].any(axis=1)
        vector = np.where(self.undetermined, ones, self.vector)
        slopes = approx_fprime(vector, numbers)
        covariance = slopes @ self.covariance @ slopes.T
        np.fill_diagonal(covariance, np.where(is_open, np.inf, np.maximum(np.diag(covariance), 0.0)))
        return np.where(is_open, np.nan, numbers(vector)), covariance

    def with_findings(self, *findings: Finding) -> Load:
        """Add findings."""
        return replace(self, findings=(*self.findings, *findings))

    # --- other frames and other loads ---

    def minus(self, tare: Load) -> Load:
        """Subtract another load in the same frame, such as the gripper, so that the object alone stays.

        Args:
            tare: The load to subtract.
        """
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
        """Express the load in another frame.

        Args:
            T_new_frame: (4, 4) pose of the present frame in the new one.
            frame: Name of the link of the new frame.
        """
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
        """(10,) which parameters in another frame are undetermined, because they contain an undetermined one.

        Where undetermined moments of inertia have a (prior) variance, a small part of them in another parameter is
        counted by that parameter's variance; the parameter becomes undetermined only if the part is large.

        Args:
            S: (10, 10) map of the parameters to the other frame.
        """
        weight, variance = S[:, self.undetermined], np.diag(self.covariance)[self.undetermined]
        if self.undetermined[6:].any() or not np.all(variance > 0.0):
            return np.asarray(np.any(np.abs(weight) > EXACT, axis=1))
        return np.asarray(weight**2 @ variance > LARGE_SHARE**2 * variance.max(initial=0.0))

    # --- tables and text ---

    def _rows(self) -> Iterator[tuple[str, float | str, float | str, str]]:
        """Mass, centre of mass, moments of inertia and bias with their standard deviations; what is open last."""
        rows = [("mass", self.mass, self.mass_stderr, "kg")]
        if self.undetermined[9]:
            what, values, stderrs, unit = "mass times com", self.vector[6:9], self.stderr[6:9], "kg m"
        else:
            what, values, stderrs, unit = "com", self.com, self.com_stderr, "m"
        rows += [(f"{what} {axis}", *pair, unit) for axis, *pair in zip("xyz", values, stderrs, strict=True)]
        if self.has_inertia:
            sizes = zip("123", self.principal.moments, self.principal.moments_stderr, strict=True)
            rows += [(f"principal moment {k}", *pair, "kg m^2") for k, *pair in sizes]
        else:
            pairs = zip(self.vector, self.stderr, self.inertia_about_com[UPPER], self.about_com_stderr)
            for name, (value, spread, moved, moved_spread) in zip(NAMES, pairs):
                rows += [(name, value, spread, "kg m^2"), (f"{name} about com", moved, moved_spread, "kg m^2")]
        if np.any(self.bias):
            units = np.repeat(["N", "N m"], 3).tolist()
            biases = zip(CHANNELS, self.bias, self.bias_stderr, units, strict=True)
            rows += [(f"bias {name}", *rest) for name, *rest in biases]
        yield from ((name, float(value), float(std), unit) for name, value, std, unit in rows if np.isfinite(std))
        if self.undetermined.any():
            yield self.open_words, "not identifiable from these data", "", ""

    def table(self) -> str:
        """Mass, centre of mass, inertia and bias with their standard deviations, as text."""
        table = Table.of(["", "value", "std", "unit"], list(self._rows()))
        lines = [f"load in frame '{self.frame}' by {self.method}", "", str(table)]
        if self.has_inertia and (ill_defined := self.principal.ill_defined):
            pairs = ", ".join(f"{i + 1} and {j + 1}" for i, j in ill_defined)
            lines.append(f"Principal axes {pairs} are ill-defined: their moments are too close.")
        return "\n".join(lines)

    def __str__(self) -> str:
        """The table and the findings, as text."""
        return "\n".join([self.table(), *self._sentences()])

    def _sentences(self) -> list[str]:
        """The findings as sentences."""
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
    """The content of a file that ``dynid load`` wrote; its other keys are for people."""

    parameters: dict[str, _Parameter]
    """Name of each of the ten parameters -> its value; None if undetermined."""
    frame: Text
    """Name of the link that holds the load."""
    covariance: Annotated[list[_Moments], Meta(min_length=10, max_length=10)]
    """(10, 10) covariance of the parameters."""
    method: Text
    """How the load was identified."""
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
    """Replace parameters that no body can have by those of the nearest possible body, with a finding.

    Undetermined moments of inertia may have any value that makes the body possible.
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
    if not load.has_inertia and shift < SETTLED:  # possible already, with suitable undetermined moments
        return load
    message = f"no body can have the plain estimate: the nearest possible one is {shift:.2g} standard deviations off"
    given = "The nearest possible body is given; Load.extras holds the plain estimate."
    advice: tuple[str, Severity] = (look, "warning") if shift > SIGNIFICANT_STD else (given, "note")
    evidence = {"shift [standard deviations]": shift}
    return replace(
        load.with_findings(remark("impossible-estimate", message, advice[0], severity=advice[1], evidence=evidence)),
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
    """Make a finding about a load, by default a note."""
    return Finding(code=code, severity=severity, where=where, message=message, remedy=remedy, evidence=evidence or {})
