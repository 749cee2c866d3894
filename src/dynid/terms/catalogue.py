"""The list of all classes of terms, contributions to the joint torques, and the usual terms of a joint."""

from __future__ import annotations

from importlib import import_module

from dynid.terms.base import Term
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia


def _find_terms() -> list[type[Term]]:
    """Find the terms in the modules that ``NAMES`` of ``dynid/terms/__init__.py`` lists; bases have no symbol."""
    modules = [import_module(f"dynid.terms.{name}") for name in import_module("dynid.terms").NAMES]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Term) and kind.__module__ == module.__name__
        if hasattr(kind, "symbol")
    ]


TERMS: list[type[Term]] = _find_terms()
"""Every class of terms. Readers of result and robot files accept the classes listed here and no other."""


def usual_terms() -> tuple[RotorInertia, Viscous, Coulomb, Offset]:
    """The usual terms of a joint, with zero values: rotor inertia, viscous and dry friction, offset.

    Example:
        >>> [type(term).__name__ for term in dynid.terms.usual_terms()]
        ['RotorInertia', 'Viscous', 'Coulomb', 'Offset']
    """
    return RotorInertia(), Viscous(), Coulomb(), Offset()
