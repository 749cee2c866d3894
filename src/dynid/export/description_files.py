"""Identified terms that URDF and MJCF files cannot hold."""

from __future__ import annotations

import re

from dynid.links.identify import Identification
from dynid.terms.base import Term

__all__ = ["missing_terms", "terms_note"]


def missing_terms(fit: Identification) -> dict[str, tuple[str, ...]]:
    """For each file format, list the identified terms that it cannot hold: terms that are not zero, selected terms."""
    terms = [placed.term for placed in fit.identified.terms if placed.term.value]
    selected = [term.name for term in fit.terms]
    lost = {
        "URDF": [_words(term) for term in terms if term.urdf_attribute is None],
        "MJCF": [_words(term) for term in terms if term.mjcf_attribute is None],
    }
    return {name: tuple(dict.fromkeys(words + selected)) for name, words in lost.items()}


def terms_note(fit: Identification, folder: object) -> str:
    """Say in one sentence what the files lack and which file has everything; empty if nothing is lost."""
    lost = [f"{name} cannot hold {', '.join(terms)}" for name, terms in missing_terms(fit).items() if terms]
    if not lost:
        return ""
    return f"{'; '.join(lost)}. The file result.json holds every term; dynid codegen {folder} uses it."


def _words(term: Term) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(term).__name__).lower()
