"""Whether the friction and the rotors of an identified robot are possible: friction brakes, and a rotor has inertia.

The estimator `feasible` makes them so. Others need not: a cubic term that fits the fast part may leave negative dry
friction behind, and the simulated joint then moves by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import TWO_SIDED_95, Estimate
from dynid.estimation.physical.passivity import all_terms, steady_states, typical_torque
from dynid.findings import Finding
from dynid.robot.model import Robot
from dynid.terms import Coulomb, RotorInertia, Viscous
from dynid.terms.base import Surface, Term

DRIVING = 0.01
"""Torque along the motion above which friction counts as driving, over the joint's root mean square torque (convention:
ten times what the constraint of the estimator `feasible` allows)."""


def check_friction(equations: Factors, estimate: Estimate, theta: Floats) -> tuple[Finding, ...]:
    """A finding for every joint whose friction drives it, and for every negative rotor inertia.

    Only what lies beyond the 95 % interval counts: noise makes a small friction negative as often as not.

    Args:
        equations: The equations, whose motion gives the speeds and loads.
        estimate: The estimate.
        theta: (p,) standard parameters with which the torques are computed.
    """
    names, first = equations.robot.joint_names, 10 * equations.robot.dof
    members: dict[Surface, list[tuple[int, Term]]] = {}
    for place, term in enumerate(all_terms(equations), start=first):
        surface = term.surface(names)
        if surface is not None:
            members.setdefault(surface, []).append((place, term))
    driving = (_driving(equations, estimate, theta, surface, rubbing) for surface, rubbing in members.items())
    return (*(finding for finding in driving if finding is not None), *_negative_rotors(equations, estimate, theta))


def _driving(
    equations: Factors, estimate: Estimate, theta: Floats, surface: Surface, rubbing: Sequence[tuple[int, Term]]
) -> Finding | None:
    """The finding for one surface; None where its friction brakes, or may brake."""
    states = steady_states(surface, equations.excerpts)
    steady = [(place, term, np.sign(states.speed) * term.steady_torque(states)) for place, term in rubbing]
    acting = [(place, term, torque) for place, term, torque in steady if torque.any()]
    if not acting:
        return None
    table = np.column_stack([torque for _, _, torque in acting])
    values, covariance = _values(equations, estimate, theta, [place for place, _, _ in acting])
    if not np.isfinite(covariance).all():
        return None
    against = table @ values
    spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", table, covariance, table), 0.0))
    surely = against + TWO_SIDED_95 * spread < -DRIVING * typical_torque(surface, equations.excerpts)
    if not surely.any():
        return None
    name = "+".join(equations.robot.joint_names[joint] for joint, _ in surface)
    slides = equations.robot.bodies[surface[-1][0]].is_prismatic
    force, speed_unit = ("N", "m/s") if slides else ("N m", "rad/s")
    speeds = np.abs(states.speed[surely])
    carried = ", ".join(dict.fromkeys(type(term).__name__ for _, term, _ in acting))
    return Finding(
        code="negative-friction",
        severity="warning",
        where=f"joint '{name}'",
        message=f"the friction of {name} ({carried}) drives the joint in place of braking it: up to "
        f"{-against[surely].min():.3g} {force}, at speeds from {speeds.min():.2g} to {speeds.max():.2g} {speed_unit}",
        remedy="Do not simulate this model there. Identify with the estimator feasible, which lets friction only "
        "brake, or take friction terms out that the data do not need.",
        evidence={f"torque [{force}]": float(against[surely].min()), f"speed [{speed_unit}]": float(speeds.max())},
    )


def _negative_rotors(equations: Factors, estimate: Estimate, theta: Floats) -> Iterator[Finding]:
    """A finding for every rotor inertia that is negative beyond its interval."""
    first = 10 * equations.robot.dof
    for place, placed in enumerate(equations.robot.terms, start=first):
        if not isinstance(placed.term, RotorInertia):
            continue
        values, covariance = _values(equations, estimate, theta, [place])
        half = TWO_SIDED_95 * float(np.sqrt(covariance[0, 0]))
        if values[0] + half < 0.0:
            yield Finding(
                code="negative-friction",
                severity="warning",
                where=f"joint '{placed.owner}'",
                message=f"the rotor inertia of {placed.owner} is negative: {values[0]:.3g} +- {half:.2g}",
                remedy="Identify with the estimator feasible, and look for a fault that acts like an inertia: a delay "
                "between torques and positions, or a wrong gear.",
                evidence={"rotor inertia": float(values[0])},
            )


def _values(equations: Factors, estimate: Estimate, theta: Floats, places: Sequence[int]) -> tuple[Floats, Floats]:
    """(k,) parameters at places among the standard parameters and further terms, and their covariance (k, k).

    The covariance is infinite where the data do not determine a parameter by itself.
    """
    base, size = equations.base, theta.size
    alone = {base.layout.index(name) for name in base.identifiable}
    row_of = {column: row for row, column in enumerate(base.columns) if column in alone}
    rows = [row_of.get(place, -1) if place < size else base.rank + place - size for place in places]
    values = np.array([estimate.values[r] if r >= 0 else theta[p] for r, p in zip(rows, places, strict=True)])
    covariance = np.full((len(rows), len(rows)), np.inf)
    if all(row >= 0 and not estimate.undetermined[row] for row in rows):
        covariance = estimate.covariance[np.ix_(rows, rows)]
    return values, covariance


def note_lone_terms(robot: Robot, terms: Sequence[Term]) -> tuple[Finding, ...]:
    """A note where the model has some of rotor inertia, viscous and dry friction for a joint, but not all of them.

    What the joint has of the others is then absorbed by those, as where a robot file states damping alone.

    Args:
        robot: The robot with its terms.
        terms: Further terms of the model; friction among them is taken to be complete.
    """
    usual = {RotorInertia: "rotor inertia", Viscous: "viscous friction", Coulomb: "dry friction"}
    names = robot.joint_names
    rubbing = {joint for term in terms for joint, _ in term.surface(names) or ()}
    found: dict[tuple[str, str], list[str]] = {}
    for number, joint in enumerate(robot.moving_joints):
        own = [text for kind, text in usual.items() if any(isinstance(term, kind) for term in joint.terms)]
        missing = [text for text in usual.values() if text not in own]
        if own and missing and number not in rubbing:
            found.setdefault((" and ".join(own), " and ".join(missing)), []).append(joint.name)
    return tuple(
        Finding(
            code="lone-terms",
            severity="note",
            where=", ".join(joints),
            message=f"the model of {', '.join(joints)} has {own}, but no {missing}: what the joints have of the latter "
            "is counted to the former and to the links",
            remedy="Let the recipe add the usual terms (Recipe.terms), unless the joints surely lack them.",
        )
        for (own, missing), joints in found.items()
    )
