"""Names of terms in recipes, and robots with the terms of such names on all joints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dynid.robot.model import Robot
from dynid.terms import TERMS
from dynid.terms.base import ScaledTerm, StateTerm, Term
from dynid.terms.catalogue import usual_terms


def _recipe_name(kind: type[Term]) -> str:
    """Name of a term in recipes: that of its class in lower case, with hyphens."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def term_words(terms: Iterable[Term]) -> str:
    """The kinds of some terms for a person: ``viscous, lagged sign (4)``."""
    named = (_recipe_name(type(term)).replace("-", " ") for term in terms)
    kinds = Counter(name.capitalize() if name in ("coulomb", "stribeck") else name for name in named)  # after persons
    return ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in kinds.items())


def known_terms() -> dict[str, type[StateTerm]]:
    """Terms that a recipe can add to every joint: those of one joint's present state that need no scale."""
    return {
        _recipe_name(kind): kind for kind in TERMS if issubclass(kind, StateTerm) and not issubclass(kind, ScaledTerm)
    }


USUAL_TERMS = tuple(_recipe_name(type(term)) for term in usual_terms())
"""Names of the terms of a usual joint, see `dynid.terms.usual_terms`."""


def add_terms(robot: Robot, names: Iterable[str] = USUAL_TERMS) -> Robot:
    """Add terms to every joint that lacks them; terms that a joint has keep their values.

    Args:
        robot: The robot.
        names: Names of the terms, as in `Recipe.terms`; those of a usual joint by default.
    """
    known = known_terms()
    added = [known[name]() for name in names]
    for joint in robot.moving_joints if added else ():
        own = {type(term): term for term in joint.terms}
        terms = [own.pop(type(term), term) for term in added]
        robot = robot.with_terms(*terms, *own.values(), joints=[joint.name])
    return robot
