"""`Estimate`, the result of an estimation with what it could not determine, and `Estimator`, the way to get one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors, Samples
from dynid.findings import Finding
from dynid.parameters.base_set import BaseParameters, conversion_matrix
from dynid.spatial import EXACT
from dynid.tables import Table, html_card

TWO_SIDED_95 = 1.959963984540054
"""97.5 % point of the normal distribution: half width of a 95 % interval in standard deviations."""

Source = Literal["data", "prior", "open"]
"""Where the value of a parameter comes from."""
REMARKS: dict[Source, str] = {"data": "", "prior": "prior-dominated", "open": "not determined"}
"""What tables say about the source of a value."""


class Unknowns(Protocol):
    """What has unknowns: equations, or sums of them."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def units(self) -> tuple[str, ...]: ...
    @property
    def counts(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """Base parameters with their uncertainty."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    """(b,) base parameters, then terms."""
    covariance: Floats
    """(b, b) covariance of the values; infinite variance where the data determine nothing. Its standard deviations are
    such that 1.96 of them are half of a 95 % interval, few degrees of freedom (Student's t) included."""
    undetermined: NDArray[np.bool_]
    """(b,) whether the data do not determine the parameter; its value is then a convention (smallest norm)."""
    noise_std: Floats
    """(n,) standard deviation of each joint's residual torque [N m or N]."""
    inflation: Floats
    """(n,) autocorrelation factor: by how much residuals that are correlated in time raise the variance."""
    samples: NDArray[np.int64]
    """(n,) number of valid samples of each joint."""
    condition: float
    """Condition number of the weighted, column-scaled equations."""
    method: str
    """Name of the method, as a noun phrase."""
    standard: Floats | None = None
    """(p,) standard parameters; None from estimators of base parameters only."""
    least_norm: Floats | None = None
    """(p,) all standard parameters by an estimator that finds them together, near the smallest norm or with zeros, and
    seldom those of possible bodies (Table 4 of Atkeson's paper); None by others."""
    findings: tuple[Finding, ...] = ()
    """What a person should know: undetermined parameters, fallbacks, chosen weights, doubts."""
    at_bound: tuple[str, ...] = ()
    """Bodies, parameters and bounds that lie on a constraint."""
    given_bounds: tuple[str, ...] = ()
    """Those of `at_bound` that the user gave; the others are physical: bodies, friction that must not be negative."""
    prior_dominated: tuple[str, ...] = ()
    """Parameters that the prior determines more than the data do."""
    extras: dict[str, float] = field(default_factory=dict)
    """Figures of merit of the method."""
    references: tuple[str, ...] = ()
    """Keys of docs/references.md: the papers of the estimator."""

    @classmethod
    def of(cls, equations: Unknowns, **fields: Any) -> Estimate:
        """The estimate from equations, with their names and units, and a finding about undetermined parameters.

        Args:
            equations: The equations.
            **fields: All other fields, by name; samples are by default those of the equations.
        """
        undetermined, findings = fields["undetermined"], tuple(fields.pop("findings", ()))
        findings = (*findings, *_open_parameters(equations.names, undetermined))
        fields.setdefault("samples", equations.counts)
        return cls(names=equations.names, units=equations.units, findings=findings, **fields)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the findings."""
        return frozenset(finding.code for finding in self.findings)

    @property
    def stderr(self) -> Floats:
        """(b,) standard deviation of each value; infinite where undetermined."""
        with np.errstate(invalid="ignore"):
            return np.where(self.undetermined, np.inf, np.sqrt(np.diag(self.covariance)))

    def spread(self, rows: Floats) -> Floats:
        """(m,) standard deviations of combinations (m, b) of values that the data determine.

        1.96 of them are half of a 95 % interval. Values that are not determined count as known.
        """
        finite = np.where(np.isfinite(self.covariance), self.covariance, 0.0)
        variance = np.einsum("ij,jk,ik->i", rows, finite, rows, optimize=True)
        return np.asarray(np.sqrt(variance))

    @property
    def relative_stderr(self) -> Floats:
        """(b,) standard deviation over magnitude, in percent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100.0 * self.stderr / np.abs(self.values))

    def interval(self) -> Floats:
        """(b, 2) 95 % confidence interval of each value."""
        half = TWO_SIDED_95 * self.stderr
        return np.stack([self.values - half, self.values + half], axis=1)

    def __repr__(self) -> str:
        """Method and size in one line."""
        return f"Estimate({len(self.names)} parameters by {self.method}, condition number {self.condition:.3g})"

    def _repr_html_(self) -> str:
        """The parameters, for notebooks."""
        return html_card(repr(self), table=self.table())

    @property
    def sources(self) -> tuple[Source, ...]:
        """(b,) where each value comes from: the data, the prior more than the data, or a convention (open)."""
        named = set(self.prior_dominated)
        return tuple(
            "open" if free else "prior" if name in named else "data"
            for name, free in zip(self.names, self.undetermined, strict=True)
        )

    def table(self, source: Source | None = None, *, names: Collection[str] | None = None) -> Table:
        """One row per parameter: name, value, standard deviation, unit, remark.

        Args:
            source: Only the parameters whose values come from there; all by default.
            names: Only these parameters; all by default.
        """
        rows = [
            (name, float(value), float(error), float(relative), unit, REMARKS[mine])
            for name, value, error, relative, unit, mine in zip(
                self.names, self.values, self.stderr, self.relative_stderr, self.units, self.sources, strict=True
            )
            if source in (None, mine) and (names is None or name in names)
        ]
        return Table.of(["parameter", "value", "std", "std %", "unit", ""], rows)


def _open_parameters(names: tuple[str, ...], undetermined: NDArray[np.bool_]) -> tuple[Finding, ...]:
    """The finding about parameters that the data leave open, where there are any."""
    left = [name for name, free in zip(names, undetermined, strict=True) if free]
    if not left:
        return ()
    message = f"the motion leaves {len(left)} parameters open: {', '.join(left)}"
    return (Finding(code="open-parameters", severity="warning", where="parameters", message=message),)


def convert_estimate(estimate: Estimate, given: BaseParameters, wanted: BaseParameters) -> Estimate:
    """An estimate of one set of base parameters as one of another set, such as Lin's; terms besides stay as they are.

    A parameter of the wanted set is open if one that it contains is.

    Args:
        estimate: Of the set ``given``, and any terms besides.
        given: The set that was estimated.
        wanted: The other set of the same robot; see `dynid.parameters.conversion_matrix`.

    Raises:
        ArgumentError: The sets do not determine one another, or the estimate is of other parameters.
    """
    if given is wanted:
        return estimate
    if estimate.names[: given.rank] != given.names:
        raise ArgumentError(
            "the estimate is of other parameters than the given set", remedy="Give the set that was estimated."
        )
    matrix = np.eye(len(estimate.names))
    matrix[: given.rank, : given.rank] = conversion_matrix(given, wanted)
    known = ~estimate.undetermined
    values = np.where(np.outer(known, known), estimate.covariance, 0.0)
    acts = np.abs(matrix) > EXACT * np.abs(matrix).max(axis=1, initial=0.0, keepdims=True)
    undetermined = (acts & ~known).any(axis=1)
    covariance = matrix @ values @ matrix.T
    covariance[undetermined, undetermined] = np.inf
    names = (*wanted.names, *estimate.names[given.rank :])
    by_prior = (acts & [name in estimate.prior_dominated for name in estimate.names]).any(axis=1)
    others = (finding for finding in estimate.findings if finding.code != "open-parameters")
    return replace(
        estimate,
        names=names,
        findings=(*others, *_open_parameters(names, undetermined)),
        units=(*wanted.units, *estimate.units[given.rank :]),
        values=matrix @ estimate.values,
        covariance=covariance,
        undetermined=undetermined,
        prior_dominated=tuple(name for name, prior in zip(names, by_prior, strict=True) if prior),
    )


class Estimator(ABC):
    """A way to solve equations. Concrete estimators are frozen dataclasses that hold their settings and no data.

    A new estimator is one class that declares the attributes below and implements `estimate`; a line in
    `dynid.estimation.registry` gives it to recipes, to the command line and its help, and to `estimators`.
    """

    name: ClassVar[str]
    """Name on the command line, in lower case."""
    title: ClassVar[str]
    """Usual name of the method, as a noun phrase."""
    use: ClassVar[str]
    """When to use it, as one short clause."""
    references: ClassVar[tuple[str, ...]] = ()
    """Keys of docs/references.md."""
    reads_samples: ClassVar[bool] = False
    """Whether `estimate` looks at single samples: of whole experiments in memory, and not low-passed."""
    accepts_terms: ClassVar[bool] = True
    """Whether the equations may have terms besides links and the robot's own terms."""
    simulates_loop: ClassVar[bool] = False
    """Whether it simulates the control loop of the experiments."""

    def solve(self, equations: Factors) -> Estimate:
        """Estimate the base parameters and the terms of equations.

        Raises:
            ArgumentError: The equations are not of a kind that this estimator can solve.
        """
        self._check_kind(equations)
        found = self.estimate(equations)
        return found if found.references else replace(found, references=self.references)

    @abstractmethod
    def estimate(self, equations: Any) -> Estimate:
        """Estimate from `Factors`, or from `Samples` where it reads them; see `solve`."""

    def _check_kind(self, equations: Factors) -> None:
        """Refuse equations without samples, with terms or with a band, where the estimator cannot solve them."""
        me = type(self)
        if me.reads_samples and not isinstance(equations, Samples):
            raise ArgumentError(
                f"{me.__name__} needs whole experiments in memory, and these equations are reduced",
                remedy="Use an estimator of factors (ols, wls, feasible, ridge), or read the log into memory.",
            )
        if equations.terms and not me.accepts_terms:
            raise ArgumentError(
                f"{me.__name__} can solve for links and the robot's own terms only, and these equations have the terms "
                f"{', '.join(term.name for term in equations.terms)}",
                remedy="Build the equations without terms, or use another estimator.",
            )
        if equations.band_hz is not None and me.reads_samples:
            raise ArgumentError(
                f"{me.__name__} works on single samples, and both sides of these equations are low-passed",
                remedy="Build the equations without band_hz, or use another estimator.",
            )
