"""Which parameters differ between two identifications of one robot by more than both uncertainties allow.

Data hardly distinguish terms that share the friction of a joint, so that each of them may differ much where their sum
does not, and little where it does. The friction of a joint is therefore compared as its curve shows it: dry and
viscous, in the same states for both. All other parameters are compared one by one. A change of the links' parameters
may be that of a load, which `find_load` looks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, norm

from dynid.decompositions import svd
from dynid.diagnosis.verdicts import RESOLUTION
from dynid.estimators.estimate import TWO_SIDED_95
from dynid.identification.identify import Identification
from dynid.identification.rich.joint_friction import Figure, joint_friction

OPEN_MASS_SHARE = 1e-3
"""Share of a load's mass that may lie in directions of its ten parameters that base parameters do not show (convention:
far above rounding)."""
UNEXPLAINED_SHARE = 0.05
"""Share of the squared change of the links that a load need not explain (convention: friction that grows with a load
leaves some)."""
FALSE_MOVES = 0.05
"""Significance level: probability that any parameter of an unchanged robot is called moved (convention)."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A parameter that changed by more than its uncertainty."""

    name: str
    """Name of the parameter, or ``dry friction`` or ``viscous friction``."""
    joint: str
    """Name of its joint, or of several joined by ``+``."""
    unit: str
    before: float
    """Earlier value."""
    after: float
    """Later value."""
    sigmas: float
    """Difference over its standard deviation [-]."""

    @property
    def sentence(self) -> str:
        """Name, joint, both values and the size of the change, as a sentence."""
        way = "grew" if self.after > self.before else "fell"
        values = f"from {self.before:.3g} to {self.after:.3g}{f' {self.unit}' if self.unit else ''}"
        return f"{self.name} of {self.joint} {way} {values} ({self.sigmas:.1f} standard deviations)"


@dataclass(frozen=True, slots=True)
class MovedLoad:
    """A load that explains how the parameters of the links changed."""

    link: str
    """Link that carries it."""
    mass: float
    """[kg]; negative where a load was taken off."""
    stderr: float
    """Standard deviation of the mass [kg]."""

    @property
    def sentence(self) -> str:
        """The load with its 95 % interval."""
        what = "a load of" if self.mass > 0.0 else "a load that was taken off, of"
        mass = f"{abs(self.mass):.3g} ± {TWO_SIDED_95 * self.stderr:.2g} kg"
        return f"{what} {mass} on {self.link} explains what moved in the links"


def find_load(before: Identification, after: Identification) -> MovedLoad | None:
    """Find the load on a last link of the chain that explains how the inertial parameters changed.

    The ten parameters x of a load change the base parameters by ``D x``; x follows by least squares, weighted by both
    uncertainties. Of several links that explain the change, the one with the smallest residual counts.

    Returns:
        The load; None where the links did not change significantly, no load explains it, or the two identifications
        have different base parameters.
    """
    # values of base parameters, each the combination that stands at one independent column
    before = before.in_columns
    after = after.in_columns
    base = before.base
    if after.base.columns != base.columns:
        return None
    of_links = np.array([column < 10 * before.robot.dof for column in base.columns])
    known = of_links & ~(before.estimate.undetermined | after.estimate.undetermined)[: base.rank]
    S = (before.estimate.covariance + after.estimate.covariance)[: base.rank, : base.rank][np.ix_(known, known)]
    if not known.any() or not np.isfinite(S).all():
        return None
    root = np.linalg.cholesky(S)
    change = np.linalg.solve(root, (after.estimate.values - before.estimate.values)[: base.rank][known])  # whitened
    squares = float(change @ change)
    if chi2.sf(squares, change.size) > FALSE_MOVES:
        return None
    parents = {body.parent for body in before.robot.bodies}
    best: MovedLoad | None = None
    best_squares = np.inf
    for j, body in enumerate(before.robot.bodies):
        if j in parents:
            continue
        D = np.linalg.solve(root, base.grouping[known][:, 10 * j : 10 * j + 10])
        U, sizes, Vt = svd(D, full_matrices=False)
        shown = sizes > RESOLUTION * sizes[0]
        inverse = (Vt[shown].T / sizes[shown]) @ U[:, shown].T
        x = inverse @ change
        left_squares = float(np.sum((change - D @ x) ** 2))
        freedom = change.size - int(shown.sum())
        mass_is_shown = abs((inverse @ D)[9, 9] - 1.0) < OPEN_MASS_SHARE  # 9: the mass, last of ten parameters
        stderr = float(np.linalg.norm(inverse[9]))
        explains = left_squares < UNEXPLAINED_SHARE * squares or (
            freedom > 0 and chi2.sf(left_squares, freedom) > FALSE_MOVES
        )
        if mass_is_shown and explains and abs(x[9]) > TWO_SIDED_95 * stderr and left_squares < best_squares:
            best_squares = left_squares
            best = MovedLoad(body.joint.child, float(x[9]), stderr)
    return best


def find_moved(before: Identification, after: Identification) -> tuple[Moved, ...]:
    """Find the parameters that moved between two identifications, ordered by joint, the largest change first.

    Args:
        before: The earlier one.
        after: The later one; friction is compared at the speeds, positions and loads of its data, or up to the speed
            limits of the joints where it has none.
    """
    friction = list(_friction_changes(before, after))
    friction_terms = {name for _, terms in friction for name in terms}
    changes = [change for change, _ in friction]
    changes += [change for change in _parameter_changes(before, after) if change.name not in friction_terms]
    level = norm.isf(FALSE_MOVES / max(1, len(changes)) / 2.0)  # two-sided, for all comparisons together (Bonferroni)
    moved = [change for change in changes if change.sigmas > level]
    order = {joint: place for place, joint in enumerate(before.robot.joint_names)}
    # parameters of several joints come last
    return tuple(sorted(moved, key=lambda change: (order.get(change.joint, len(order)), -change.sigmas)))


def _friction_changes(before: Identification, after: Identification) -> Iterator[tuple[Moved, tuple[str, ...]]]:
    """Changes of dry and viscous friction of each joint, each with the names of all terms of its friction.

    A joint whose data do not determine both in both identifications is left out.
    """
    runs = [run for run in after.equations.excerpts if run.samples]
    friction_before = {friction.name: friction for friction in joint_friction(before, runs)}
    for new in joint_friction(after, runs):
        if (old := friction_before.get(new.name)) is None:
            continue
        dry = _change("dry friction", new.name, new.unit, old.line[0], new.line[0])
        viscous = _change("viscous friction", new.name, new.viscous_unit, old.line[1], new.line[1])
        if dry is not None and viscous is not None:
            terms = (*old.terms, *new.terms)
            yield dry, terms
            yield viscous, terms


def _parameter_changes(before: Identification, after: Identification) -> Iterator[Moved]:
    """Changes of the parameters that both identifications have by the same name."""
    old = before.estimate
    new = after.estimate
    joints = _joints(before)
    for i, name in enumerate(old.names):
        if name not in new.names:
            continue
        k = new.names.index(name)
        first = Figure(float(old.values[i]), float(old.stderr[i]))
        second = Figure(float(new.values[k]), float(new.stderr[k]))
        if (change := _change(name, joints[name], old.units[i], first, second)) is not None:
            yield change


def _change(name: str, joint: str, unit: str, before: Figure, after: Figure) -> Moved | None:
    """Compare two values; None where the data of one identification do not determine its value."""
    spread = float(np.hypot(before.stderr, after.stderr))
    if not (np.isfinite(spread) and spread > 0.0):
        return None
    return Moved(name, joint, unit, before.value, after.value, abs(after.value - before.value) / spread)


def _joints(fit: Identification) -> dict[str, str]:
    """Name of each parameter -> the joint it belongs to; several are joined by ``+``."""
    # columns of the robot's parameters: ten per link, then one per term
    names = fit.robot.joint_names
    first_term = 10 * fit.robot.dof
    found = {}
    for name, column in zip(fit.base.names, fit.base.columns, strict=True):
        joints = fit.robot.terms[column - first_term].joints if column >= first_term else (column // 10,)
        found[name] = "+".join(names[j] for j in joints)
    for term in fit.terms:
        found[term.name] = "+".join(names[j] for j in term.acts_on(names))
    return found
