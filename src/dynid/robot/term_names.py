"""Names of terms for settings and messages, and adding the terms of such names to a robot.

A term is a contribution to the joint torques with one parameter, such as friction or rotor inertia; each kind is a
class of `dynid.terms`. A recipe is a file with the settings of an identification; it lists terms by name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dynid.robot.model import Robot
from dynid.terms import TERMS
from dynid.terms.base import ScaledTerm, StateTerm, Term
from dynid.terms.catalogue import usual_terms


def _recipe_name(kind: type[Term]) -> str:
    """Make the name of a kind of term in recipes: `RotorInertia` becomes ``rotor-inertia``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def term_words(terms: Iterable[Term]) -> str:
    """Write the kinds of some terms for messages, with counts above one: ``viscous, lagged sign (4)``."""
    names = (_recipe_name(type(term)).replace("-", " ") for term in terms)
    # those named after persons have a capital letter
    kinds = Counter(name.capitalize() if name in ("coulomb", "stribeck") else name for name in names)
    return ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in kinds.items())


def known_terms() -> dict[str, type[StateTerm]]:
    """List the terms that a recipe can add to every joint: name -> class.

    They depend on the present q, dq and ddq of one joint. Terms with a constant to choose, such as the velocity scale
    of a smooth sign, are left out.
    """
    return {
        _recipe_name(kind): kind for kind in TERMS if issubclass(kind, StateTerm) and not issubclass(kind, ScaledTerm)
    }


USUAL_TERMS = tuple(_recipe_name(type(term)) for term in usual_terms())
"""Names of the usual terms of a joint, see `dynid.terms.usual_terms`."""


def add_terms(robot: Robot, names: Iterable[str] = USUAL_TERMS) -> Robot:
    """Add terms with the value zero to every joint that lacks them; terms that a joint has already keep their values.

    Args:
        robot: The robot.
        names: Names of the terms, as in `Recipe.terms`; the usual terms by default.

    Returns:
        A copy of the robot. The named terms come first, in the order of the names.
    """
    known = known_terms()
    wanted = [known[name]() for name in names]
    for joint in robot.moving_joints if wanted else ():
        present = {type(term): term for term in joint.terms}
        terms = [present.pop(type(term), term) for term in wanted]
        robot = robot.with_terms(*terms, *present.values(), joints=[joint.name])
    return robot
