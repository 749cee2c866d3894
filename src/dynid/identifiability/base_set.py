"""`BaseParameters`: the combinations of a robot's parameters that act on its torques, and why others do not.

The torques are linear in the p standard parameters theta: ten inertial parameters per link, and one per term of
friction, motor or spring. ``tau = Y(q, dq, ddq) theta``, but the columns of the regressor Y are linearly dependent over
all motions. A set of b base parameters ``beta = grouping @ theta`` is as small as possible and gives the same torques.
`base_parameters` makes it; identification estimates beta, and `conversion_matrix` leads from one set to another.

Parameters fall into three groups ([Atkeson1986] section 4.2.1): those that can be identified alone, those that act only
in combination with others, and those that never act.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.identifiability.expression import Combination
from dynid.identifiability.layout import ParameterLayout
from dynid.spatial import EXACT, SIX_DIGITS
from dynid.tables import Table, html_card

EVERY_MOTION = "every motion"
"""Value of `BaseParameters.motion` without restriction."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseParameters:
    """A minimal set of b parameters that gives the same torques as all p standard parameters.

    Usually each base parameter takes the place of one standard parameter, whose column of the regressor is *kept*: for
    every motion, ``Y @ theta == Y[:, columns] @ beta`` with ``beta = project(theta)``. The set of [Lin1995] (sums over
    a link and all links behind it) does not; there ``Y @ theta == Y[:, columns] @ (mixing @ beta)``.
    """

    robot: str
    """Name of the robot."""
    layout: ParameterLayout
    """The p standard parameters."""
    columns: tuple[int, ...]
    """(b,) the kept columns of the regressor; ascending, in Lin's set in the order of its members."""
    grouping: Floats
    """(b, p) matrix of the combinations: ``beta = grouping @ theta``. In the kept columns it is the identity, in Lin's
    set the inverse of `mixing`."""
    combinations: tuple[Combination, ...]
    """(b,) the rows of `grouping` as formulas in the robot's lengths and angles."""
    symbols: Mapping[str, float] = field(default_factory=dict)
    """Values of the symbols in these formulas: lengths [m], and cosines and sines of angles."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Name of a parameter that never acts -> the reason."""
    method: str
    """How the combinations were found."""
    references: tuple[str, ...] = ()
    """Papers of the method, as keys of docs/references.md."""
    motion: str = EVERY_MOTION
    """In words, the motions for which the set holds; a restricted motion reveals fewer parameters."""
    rank_gap: float = float("inf")
    """`RowSpace.gap` of a sampled regressor: its b-th singular value divided by the next; infinite for methods without
    sampling."""
    mixing: Floats | None = None
    """(b, b) map from beta to factors of the kept columns, for Lin's set; None where beta are these factors."""
    member_units: tuple[str, ...] = ()
    """(b,) SI units of beta, for Lin's set; empty where they are the units of the kept columns."""
    fingerprint: str = ""
    """`Robot.fingerprint`, a hash of the robot's geometry and terms; empty where the parameters refer to other frames
    than the robot's body frames."""

    def __post_init__(self) -> None:
        """Make the matrices read-only."""
        self.grouping.setflags(write=False)
        if self.mixing is not None:
            self.mixing.setflags(write=False)

    @property
    def rank(self) -> int:
        """Number of base parameters b."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) such as ``ZZR1``: the R marks that other parameters are added to ``ZZ1``; ``U33_1`` in Lin's set."""
        return tuple(combination.name for combination in self.combinations)

    @property
    def units(self) -> tuple[str, ...]:
        """(b,) SI units."""
        return self.member_units or tuple(self.layout[column].unit for column in self.columns)

    @property
    def expressions(self) -> tuple[str, ...]:
        """(b,) formulas as text: ``ZZR1 = ZZ1 + YY2 + ...``."""
        return tuple(map(str, self.combinations))

    @property
    def rows_alone(self) -> dict[int, int]:
        """Column of each standard parameter that can be identified alone -> index of the kept column, 0 to b - 1."""
        is_alone = np.count_nonzero(self.kept_grouping, axis=1) == 1
        return {column: row for row, column in enumerate(self.columns) if is_alone[row]}

    @property
    def identifiable(self) -> list[str]:
        """Names of the standard parameters that can be identified alone."""
        return [self.layout[column].name for column in self.rows_alone]

    @property
    def kept_grouping(self) -> Floats:
        """(b, p) matrix G with ``Y == Y[:, columns] @ G`` for every motion; the identity in the kept columns."""
        if self.mixing is None:
            return self.grouping
        rows = self.mixing @ self.grouping
        rows[np.abs(rows) <= EXACT * np.abs(rows).max()] = 0.0
        return np.asarray(rows)

    @property
    def combined(self) -> list[str]:
        """Names of the standard parameters that act only together with others."""
        alone = set(self.identifiable)
        acts = np.any(self.grouping != 0.0, axis=0)
        return [name for name, does in zip(self.layout.names, acts, strict=True) if does and name not in alone]

    @property
    def unidentifiable(self) -> list[str]:
        """Names of the standard parameters that never act."""
        acts = np.any(self.grouping != 0.0, axis=0)
        return [name for name, does in zip(self.layout.names, acts, strict=True) if not does]

    def owners(self, index: int) -> tuple[str, ...]:
        """Names of the links and joints whose parameters occur in base parameter ``index``."""
        touched = (self.layout[int(column)].owner for column in np.flatnonzero(self.grouping[index]))
        return tuple(dict.fromkeys(touched))

    @property
    def kept(self) -> tuple[str, ...]:
        """(b,) names of the standard parameters of the kept columns."""
        return tuple(self.layout[column].name for column in self.columns)

    def project(self, theta: ArrayLike) -> Floats:
        """Values of the base parameters (..., b) from those of the standard parameters (..., p)."""
        values = np.asarray(theta, dtype=float)
        if values.shape[-1:] != (len(self.layout),):
            remedy = f"Give {len(self.layout)} numbers, such as robot.parameter_vector, or rows of them."
            raise ArgumentError(f"the standard parameters have the shape {values.shape}", remedy=remedy)
        return np.asarray(values @ self.grouping.T)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """The result in one line."""
        return f"BaseParameters({self.headline})"

    def _repr_html_(self) -> str:
        """The result as HTML, for notebooks."""
        return html_card(self.headline, self._lines_without_effect(), self.table)

    @property
    def table(self) -> Table:
        """One row per base parameter: its combination, its unit, and the links and joints that take part."""
        parts = zip(self.combinations, self.units, self._owner_texts(), strict=True)
        rows = [(combination.name, combination.right_side(), unit, owners) for combination, unit, owners in parts]
        return Table.of(("base parameter", "is", "unit", "of"), rows)

    @property
    def headline(self) -> str:
        """The result in one line."""
        how = f"{self.method}; {self.motion}"
        return f"{self.robot}: {self.rank} base parameters from {len(self.layout)} standard ones ({how})"

    def to_text(self) -> str:
        """The result as plain text."""
        lines = [self.headline, ""]
        for text, owners in zip(self.expressions, self._owner_texts(), strict=True):
            lines.append(f"  {text}" + (f"   [{owners}]" if " = " in text else ""))
        lines += ["", *self._summary_lines(), *self._lines_without_effect("  ")]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The whole result as JSON, for other programs; coefficients are by name of the standard parameter."""
        names = self.layout.names
        base = [
            {
                "name": combination.name,
                "column": column,
                "unit": self.layout[column].unit,
                "expression": combination.right_side(),
                "coefficients": {names[k]: row[k] for k in np.flatnonzero(row).tolist()},
                "owners": list(self.owners(index)),
            }
            for index, (combination, column, row) in enumerate(
                zip(self.combinations, self.columns, self.grouping.tolist(), strict=True)
            )
        ]
        report = {
            "robot": self.robot,
            "method": self.method,
            "motion": self.motion,
            "standard_parameters": list(names),
            "base_parameters": base,
            "identifiable": self.identifiable,
            "combined": self.combined,
            "unidentifiable": dict.fromkeys(self.unidentifiable, "") | dict(self.reasons),
            "symbols": dict(self.symbols),
            "rank_gap": self.rank_gap if np.isfinite(self.rank_gap) else None,
        }
        return json.dumps(report, indent=2)

    def _owner_texts(self) -> list[str]:
        """(b,) the owners of each base parameter as text."""
        return [", ".join(self.owners(index)) for index in range(self.rank)]

    def _summary_lines(self) -> list[str]:
        """Lines with the values of the symbols, and with the three groups of standard parameters."""
        lines = []
        used = {name for c in self.combinations for t in c.terms for name in t.coefficient.symbols}
        values = [f"{name} = {value:.6g}" for name, value in self.symbols.items() if name in used]
        if values:
            lines.append(f"with {', '.join(values)}")
        if np.isfinite(self.rank_gap):
            lines.append(f"Gap between what counts and rounding: {self.rank_gap:.1e}")
        groups = (("Identifiable one by one", self.identifiable), ("Only in combinations", self.combined))
        lines += [f"{what} ({len(names)}): {' '.join(names) or 'none'}" for what, names in groups]
        return [*lines, f"Without effect ({len(self.unidentifiable)}):"]

    def _lines_without_effect(self, indent: str = "") -> list[str]:
        """One line per reason, with the parameters that have no effect for this reason."""
        by_reason: dict[str, list[str]] = {}
        for name in self.unidentifiable:
            by_reason.setdefault(self.reasons.get(name, "no motion shows it"), []).append(name)
        return [f"{indent}{' '.join(names)}: {reason}" for reason, names in by_reason.items()]


def conversion_matrix(given: BaseParameters, wanted: BaseParameters) -> Floats:
    """Matrix T (b, b) from one set of base parameters to another: ``beta_wanted = T @ beta_given``.

    A covariance P becomes ``T @ P @ T.T``. The sets that different methods find for one robot and one motion span the
    same combinations, so each determines the others.

    Raises:
        ArgumentError: The sets belong to different parameters or to different motions.

    Example:
        >>> minimal = dynid.base_parameters(robot, "minimal-combinations")
        >>> dynid.identifiability.conversion_matrix(dynid.base_parameters(robot), minimal).shape
        (21, 21)
    """
    if given.layout != wanted.layout:
        raise ArgumentError("the two sets have different standard parameters", remedy="Give two sets of one robot.")
    # theta with zeros outside the given set's kept columns gives the same torques as any theta with this beta
    matrix = wanted.grouping[:, list(given.columns)]
    if given.mixing is not None:
        matrix = matrix @ given.mixing
    missed = np.abs(matrix @ given.grouping - wanted.grouping).max(initial=0.0)
    if given.rank != wanted.rank or missed > SIX_DIGITS * np.abs(wanted.grouping).max(initial=0.0):
        raise ArgumentError(
            f"the two sets do not determine one another: {given.rank} parameters ({given.motion}) and {wanted.rank} "
            f"({wanted.motion})",
            remedy="Give two sets of one robot for the same motion.",
        )
    return np.asarray(matrix)


def require_kept_columns(base: BaseParameters) -> BaseParameters:
    """Return the set if each base parameter is the factor of one kept column of the regressor.

    Raises:
        ArgumentError: It is not, as in Lin's set.
    """
    if base.mixing is None:
        return base
    raise ArgumentError(
        f"the members of the set '{base.method}' are not columns of the regressor",
        remedy="Use base_parameters(robot), and conversion_matrix to this set afterwards.",
    )
