"""What the robot files beside a result cannot hold, and where it is kept."""

from __future__ import annotations

import re

from dynid.links.identify import Identification
from dynid.terms.base import Term

__all__ = ["missing_terms", "terms_note"]


def missing_terms(fit: Identification) -> dict[str, tuple[str, ...]]:
    """File format -> identified terms that it has no place for: terms that are not zero, and selected terms."""
    terms = [placed.term for placed in fit.identified.terms if placed.term.value]
    selected = [term.name for term in fit.terms]
    lost = {
        "URDF": [_words(term) for term in terms if term.urdf_attribute is None],
        "MJCF": [_words(term) for term in terms if term.mjcf_attribute is None],
    }
    return {name: tuple(dict.fromkeys(words + selected)) for name, words in lost.items()}


def terms_note(fit: Identification, folder: object) -> str:
    """One sentence for people: what the files lack, and what takes the whole; empty where nothing is lost."""
    lost = [f"{name} has no place for {', '.join(terms)}" for name, terms in missing_terms(fit).items() if terms]
    if not lost:
        return ""
    return f"Of what was identified, {'; '.join(lost)}. result.json has it all: dynid codegen {folder} takes it."


def _words(term: Term) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(term).__name__).lower()
