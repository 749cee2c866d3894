"""`Estimate`, the result of an estimation, and `Estimator`, the interface of all ways to get one.

An estimator takes `Factors` (the equations ``torque = columns @ unknowns`` of logs, reduced by QR) and returns an
`Estimate`: values and covariance of the base parameters, the combinations that torques determine. `identify`, reports
and exports read it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors, Samples
from dynid.findings import Finding
from dynid.identifiability.base_set import BaseParameters, conversion_matrix
from dynid.spatial import EXACT
from dynid.tables import Table, html_card

TWO_SIDED_95 = 1.959963984540054
"""97.5 % point of the normal distribution: half width of a 95 % interval in standard deviations."""

Source = Literal["data", "prior", "open"]
"""Source of a parameter's value: the data, the prior more than the data, or neither."""
REMARKS: dict[Source, str] = {"data": "", "prior": "prior-dominated", "open": "not determined"}
"""Source of a value -> remark in tables."""


class Unknowns(Protocol):
    """Equations in memory or on line: all that `Estimate.of` asks of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) names of the unknowns."""

    @property
    def units(self) -> tuple[str, ...]:
        """(b,) units of the unknowns."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """(n,) number of valid samples of each joint."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """Base parameters and parameters of terms with their uncertainty; b numbers in all, of a robot with n joints."""

    names: tuple[str, ...]
    """(b,) names of the base parameters, then of the terms besides the robot's own."""
    units: tuple[str, ...]
    """(b,) their units."""
    values: Floats
    """(b,) their values."""
    covariance: Floats
    """(b, b) covariance of the values; an infinite variance where the data determine nothing. Variances are enlarged
    for few degrees of freedom, so that 1.96 standard deviations are half of a 95 % interval by Student's t."""
    undetermined: NDArray[np.bool_]
    """(b,) whether the data leave the parameter open; its value is then a convention (smallest norm)."""
    noise_std: Floats
    """(n,) standard deviation of each joint's residual torque [N m or N]."""
    inflation: Floats
    """(n,) autocorrelation factor, by which correlation of the residuals in time multiplies the variance."""
    samples: NDArray[np.int64]
    """(n,) number of valid samples of each joint."""
    condition: float
    """Condition number of the weighted, column-scaled equations."""
    method: str
    """Name of the method, as a noun phrase."""
    standard: Floats | None = None
    """(p,) standard parameters; None from estimators of base parameters only."""
    least_norm: Floats | None = None
    """(p,) standard parameters near the smallest norm, or with zeros, from estimators of all of them together
    (Atkeson et al. 1986). They predict torques and are seldom those of possible bodies (Table 4 of the paper),
    therefore not in `standard`. None from other estimators."""
    findings: tuple[Finding, ...] = ()
    """What a person should know: undetermined parameters, fallbacks, chosen weights, doubts."""
    at_bound: tuple[str, ...] = ()
    """Names of bodies, parameters and bounds that lie on a constraint."""
    given_bounds: tuple[str, ...] = ()
    """The part of `at_bound` that are bounds of the user; the others are physical: bodies, non-negative friction."""
    prior_dominated: tuple[str, ...] = ()
    """Names of the parameters that the prior determines more than the data do."""
    extras: dict[str, float] = field(default_factory=dict)
    """Further numbers of the method, such as condition numbers, by name."""
    references: tuple[str, ...] = ()
    """Keys of docs/references.md: the papers of the estimator."""

    @classmethod
    def of(cls, equations: Unknowns, **fields: Any) -> Estimate:
        """Make an estimate with the names and units of equations, and add a finding about undetermined parameters.

        Args:
            equations: The equations.
            **fields: All other fields, by name; samples are by default those of the equations.
        """
        given = tuple(fields.pop("findings", ()))
        findings = (*given, *_note_open_parameters(equations.names, fields["undetermined"]))
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
        """Compute the standard deviations (m,) of linear combinations of the values.

        1.96 of them are half of a 95 % interval. Undetermined values count as exactly known, so a caller whose
        combinations contain some must mark these itself.

        Args:
            rows: (m, b) coefficients, one combination per row.
        """
        finite = np.where(np.isfinite(self.covariance), self.covariance, 0.0)
        # diagonal of rows C rows'
        variance = np.einsum("ij,jk,ik->i", rows, finite, rows, optimize=True)
        return np.asarray(np.sqrt(variance))

    @property
    def relative_stderr(self) -> Floats:
        """(b,) standard deviation over magnitude, in percent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100.0 * self.stderr / np.abs(self.values))

    def interval(self) -> Floats:
        """Compute the 95 % confidence interval (b, 2) of each value."""
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
        """(b,) source of each value: "data", "prior" (more than the data), or "open" (a convention)."""
        by_prior = set(self.prior_dominated)
        return tuple(
            "open" if is_open else "prior" if name in by_prior else "data"
            for name, is_open in zip(self.names, self.undetermined, strict=True)
        )

    def table(self, source: Source | None = None, *, names: Collection[str] | None = None) -> Table:
        """Show one row per parameter: name, value, standard deviation, unit, remark.

        Args:
            source: Only parameters with this source; all by default.
            names: Only parameters with these names; all by default.
        """
        rows = [
            (name, float(value), float(error), float(relative), unit, REMARKS[its_source])
            for name, value, error, relative, unit, its_source in zip(
                self.names, self.values, self.stderr, self.relative_stderr, self.units, self.sources, strict=True
            )
            if source in (None, its_source) and (names is None or name in names)
        ]
        return Table.of(["parameter", "value", "std", "std %", "unit", ""], rows)


def _note_open_parameters(names: tuple[str, ...], undetermined: NDArray[np.bool_]) -> tuple[Finding, ...]:
    """Make the finding about parameters that the data leave open, if there are any."""
    opened = [name for name, is_open in zip(names, undetermined, strict=True) if is_open]
    if not opened:
        return ()
    message = f"the motion leaves {len(opened)} parameters open: {', '.join(opened)}"
    return (Finding(code="open-parameters", severity="warning", where="parameters", message=message),)


def convert_estimate(estimate: Estimate, given: BaseParameters, wanted: BaseParameters) -> Estimate:
    """Convert an estimate of one set of base parameters into another set, such as Lin's; terms stay as they are.

    A parameter of the wanted set is undetermined if one of the given parameters that it is combined of is.

    Args:
        estimate: An estimate of the set ``given``, and of any terms.
        given: The set that was estimated.
        wanted: Another set of the same robot; see `dynid.identifiability.conversion_matrix`.

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
    finite = np.where(np.outer(known, known), estimate.covariance, 0.0)
    acts = np.abs(matrix) > EXACT * np.abs(matrix).max(axis=1, initial=0.0, keepdims=True)
    undetermined = (acts & ~known).any(axis=1)
    covariance = matrix @ finite @ matrix.T
    covariance[undetermined, undetermined] = np.inf
    names = (*wanted.names, *estimate.names[given.rank :])
    by_prior = (acts & [name in estimate.prior_dominated for name in estimate.names]).any(axis=1)
    others = (finding for finding in estimate.findings if finding.code != "open-parameters")
    return replace(
        estimate,
        names=names,
        findings=(*others, *_note_open_parameters(names, undetermined)),
        units=(*wanted.units, *estimate.units[given.rank :]),
        values=matrix @ estimate.values,
        covariance=covariance,
        undetermined=undetermined,
        prior_dominated=tuple(name for name, prior in zip(names, by_prior, strict=True) if prior),
    )


class Estimator(ABC):
    """A way to solve equations. Concrete estimators are frozen dataclasses with their settings as fields, without data.

    A new estimator is one class that declares the attributes below and implements `estimate`; a line in
    `dynid.estimators.registry` gives it to recipes, to the command line and its help, and to `estimators`.
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
    """Whether `estimate` needs single samples: equations of whole experiments in memory, and not low-passed."""
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
        """Estimate from `Factors`, or from `Samples` if `reads_samples`; users call `solve`, which checks this."""

    def _check_kind(self, equations: Factors) -> None:
        """Refuse equations that the estimator cannot solve: without samples, or with terms or a band."""
        kind = type(self)
        if kind.reads_samples and not isinstance(equations, Samples):
            raise ArgumentError(
                f"{kind.__name__} needs whole experiments in memory, and these equations are reduced",
                remedy="Use an estimator of factors (ols, wls, feasible, ridge), or read the log into memory.",
            )
        if equations.terms and not kind.accepts_terms:
            terms = ", ".join(term.name for term in equations.terms)
            raise ArgumentError(
                f"{kind.__name__} can solve for links and the robot's own terms only, "
                f"and these equations have the terms {terms}",
                remedy="Build the equations without terms, or use another estimator.",
            )
        if equations.band_hz is not None and kind.reads_samples:
            raise ArgumentError(
                f"{kind.__name__} works on single samples, and both sides of these equations are low-passed",
                remedy="Build the equations without band_hz, or use another estimator.",
            )
