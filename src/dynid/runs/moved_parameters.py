"""Which parameters differ between two identifications of one robot by more than both uncertainties allow.

Terms that share the friction of a joint are hardly told apart, so that each of them may differ much where their sum
does not, and little where it does. The friction of a joint is therefore compared as its curve shows it: dry and
viscous, in the same states for both. All other parameters are compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, norm

from dynid.decompositions import svd
from dynid.estimation.estimate import TWO_SIDED_95
from dynid.identification.identify import Identification
from dynid.identification.rich.joint_friction import Figure, joint_friction

RESOLUTION, OPEN = 1e-8, 1e-3
"""Relative singular value below which a direction of a load is not told, and share of its mass that may be so."""
UNEXPLAINED = 0.05
"""Share of what moved that a load need not explain (convention: friction that grows with it leaves some)."""
FALSE_MOVES = 0.05
"""Probability that any parameter of an unchanged robot is called moved (convention: one comparison in twenty)."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A parameter that moved beyond its interval."""

    name: str
    """Of the parameter, or ``dry friction`` and other parts of a joint's friction."""
    joint: str
    unit: str
    before: float
    after: float
    sigmas: float
    """Difference over its standard deviation."""

    @property
    def sentence(self) -> str:
        """What moved from where to where."""
        way = "grew" if self.after > self.before else "fell"
        values = f"from {self.before:.3g} to {self.after:.3g}{f' {self.unit}' if self.unit else ''}"
        return f"{self.name} of {self.joint} {way} {values} ({self.sigmas:.1f} standard deviations)"


@dataclass(frozen=True, slots=True)
class MovedLoad:
    """A load that explains how the links moved."""

    link: str
    mass: float
    """[kg]; negative where a load was taken off."""
    stderr: float

    @property
    def sentence(self) -> str:
        """The load with its 95 % interval."""
        what = "a load of" if self.mass > 0.0 else "a load that was taken off, of"
        mass = f"{abs(self.mass):.3g} ± {TWO_SIDED_95 * self.stderr:.2g} kg"
        return f"{what} {mass} on {self.link} explains what moved in the links"


def find_load(before: Identification, after: Identification) -> MovedLoad | None:
    """The load on a last link that explains how the inertial parameters moved; None where none does, or none moved.

    Ten parameters of a load move the base parameters by ``D x``; x by least squares, weighted by both uncertainties.
    """
    before, after = before.in_columns, after.in_columns
    base, rank = before.base, before.base.rank
    if after.base.columns != base.columns:
        return None
    links = np.array([column < 10 * before.robot.dof for column in base.columns])
    known = links & ~(before.estimate.undetermined | after.estimate.undetermined)[:rank]
    S = (before.estimate.covariance + after.estimate.covariance)[:rank, :rank][np.ix_(known, known)]
    if not known.any() or not np.isfinite(S).all():
        return None
    root = np.linalg.cholesky(S)
    moved = np.linalg.solve(root, (after.estimate.values - before.estimate.values)[:rank][known])
    whole, count = float(moved @ moved), int(known.sum())
    if chi2.sf(whole, count) > FALSE_MOVES:
        return None
    parents, best = {body.parent for body in before.robot.bodies}, None
    for j, body in enumerate(before.robot.bodies):
        if j in parents:
            continue
        D = np.linalg.solve(root, base.grouping[known][:, 10 * j : 10 * j + 10])
        U, sizes, Vt = svd(D, full_matrices=False)
        good = sizes > RESOLUTION * sizes[0]
        inverse = (Vt[good].T / sizes[good]) @ U[:, good].T
        x = inverse @ moved
        left, freedom = float(np.sum((moved - D @ x) ** 2)), count - int(good.sum())
        told = abs((inverse @ D)[9, 9] - 1.0) < OPEN
        stderr = float(np.linalg.norm(inverse[9]))
        explains = left < UNEXPLAINED * whole or (freedom > 0 and chi2.sf(left, freedom) > FALSE_MOVES)
        if told and explains and abs(x[9]) > TWO_SIDED_95 * stderr and (best is None or left < best[0]):
            best = left, MovedLoad(body.joint.child, float(x[9]), stderr)
    return None if best is None else best[1]


def find_moved(before: Identification, after: Identification) -> tuple[Moved, ...]:
    """Find the parameters that moved between two identifications, by joint.

    Args:
        before: The earlier one.
        after: The later one; friction is compared at the speeds, positions and loads of its data, or up to the speed
            limits of the joints where it has none.
    """
    friction = list(_friction(before, after))
    carried = {name for _, terms in friction for name in terms}
    every = [one for one, _ in friction]
    every += [one for one in _single_parameters(before, after) if one.name not in carried]
    level = norm.isf(FALSE_MOVES / max(1, len(every)) / 2.0)
    found = [one for one in every if one.sigmas > level]
    order = {joint: place for place, joint in enumerate(before.robot.joint_names)}
    return tuple(sorted(found, key=lambda one: (order.get(one.joint, len(order)), -one.sigmas)))


def _friction(before: Identification, after: Identification) -> Iterator[tuple[Moved, tuple[str, ...]]]:
    """Parts of the friction of each joint, with the names of the parameters that carry it in either model."""
    runs = [run for run in after.equations.excerpts if run.samples]
    known = {friction.name: friction for friction in joint_friction(before, runs)}
    for new in joint_friction(after, runs):
        if (old := known.get(new.name)) is None:
            continue
        dry, viscous = (_change(name, new.name, unit, a, b) for name, unit, a, b in zip(
            ("dry friction", "viscous friction"), (new.unit, new.viscous_unit), old.line, new.line, strict=True
        ))  # fmt: skip
        if dry is not None and viscous is not None:
            yield from ((one, (*old.terms, *new.terms)) for one in (dry, viscous))


def _single_parameters(before: Identification, after: Identification) -> Iterator[Moved]:
    """The parameters of the same name."""
    old, new, joints = before.estimate, after.estimate, _joints(before)
    for i, name in enumerate(old.names):
        if name not in new.names:
            continue
        k = new.names.index(name)
        first = Figure(float(old.values[i]), float(old.stderr[i]))
        second = Figure(float(new.values[k]), float(new.stderr[k]))
        if (one := _change(name, joints[name], old.units[i], first, second)) is not None:
            yield one


def _change(name: str, joint: str, unit: str, before: Figure, after: Figure) -> Moved | None:
    """A change with its size; None where the data of one identification do not determine the value."""
    spread = float(np.hypot(before.stderr, after.stderr))
    if not (np.isfinite(spread) and spread > 0.0):
        return None
    return Moved(name, joint, unit, before.value, after.value, abs(after.value - before.value) / spread)


def _joints(fit: Identification) -> dict[str, str]:
    """Name of each parameter -> the joint it belongs to; several are joined by ``+``."""
    names, first = fit.robot.joint_names, 10 * fit.robot.dof
    found = {}
    for name, column in zip(fit.base.names, fit.base.columns, strict=True):
        placed = fit.robot.terms[column - first].joints if column >= first else (column // 10,)
        found[name] = "+".join(names[j] for j in placed)
    for term in fit.terms:
        found[term.name] = "+".join(names[j] for j in term.acts_on(names))
    return found
