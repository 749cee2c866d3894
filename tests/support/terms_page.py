"""Writes docs/terms.md: every term in `dynid.terms.TERMS`, as it declares itself.

Run: ``PYTHONPATH=tests python tests/support/terms_page.py``
"""

from __future__ import annotations

import inspect
from pathlib import Path

from dynid.terms import TERMS, AngleHarmonic, Hysteresis
from dynid.terms.base import RecordableTerm, ScaledTerm, Term
from dynid.terms.coupling import CoupledTerm
from dynid.terms.motors import Offset

PAGE = Path(__file__).parents[2] / "docs" / "terms.md"


def page() -> str:
    """The text of the page."""
    lines = [
        "# Terms",
        "",
        "Written by `tests/support/terms_page.py` from `dynid.terms.TERMS`. A term is a friction, drive,",
        "spring or coupling contribution to the joint torques: one parameter, and the torque per unit of it.",
        "Terms that the tape records can be attached to a robot (`robot.with_terms(...)`): the regressor,",
        "simulations and generated C then carry them. All terms can be given to `identify(..., terms=[...])`,",
        "The units are those of revolute joints; for prismatic",
        "joints read N for N m, m for rad and kg for kg m^2.",
        "",
        "| class | symbol | unit | what | never negative | recorded | memory | URDF, MJCF |",
        "|---|---|---|---|---|---|---|---|",
        *(row(term) for term in TERMS),
    ]
    return "\n".join(lines) + "\n"


def row(term: type[Term]) -> str:
    """The line of one term."""
    what = " ".join((inspect.getdoc(term) or "").split("\n\n")[0].split())
    recorded = issubclass(term, RecordableTerm)
    flags = (term.is_non_negative, recorded, issubclass(term, ScaledTerm) and not recorded)
    files = ", ".join(name for name in (term.urdf_attribute, term.mjcf_attribute) if name)
    files += "tendon" if issubclass(term, Offset | CoupledTerm | AngleHarmonic | Hysteresis) else ""
    cells = [f"`{term.__name__}`", term.symbol, term.base_unit, what.replace("|", "\\|")]
    return f"| {' | '.join([*cells, *('yes' if flag else '' for flag in flags), files])} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
