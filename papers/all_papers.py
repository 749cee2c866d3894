"""The list of the five papers, and the function that reproduces one of them or all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike

from dynid.errors import ArgumentError
from papers import atkeson1986, gautier1990, gautier1992, izaguirre1992, lin1995
from papers.equations import atkeson_formulas, gautier_formulas, izaguirre_formulas, lin_formulas
from papers.judgement.places import build_not_compared
from papers.judgement.reproduction import Part, Reproduction

Progress = Callable[[int, int, str], None]
"""Called before each part with the number of finished parts, the number of all parts and the name of the next one."""
Maker = Callable[[bool], Part]
"""Makes a part; the argument says whether to reduce the effort."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and the functions that regenerate its parts; a part is one table, figure, example or claim."""

    title: str
    makers: Mapping[str, Maker]
    """The function that regenerates a part, by the name of the part."""


_EVALUATED = "equations, evaluated"
REPRODUCTIONS: dict[str, Paper] = {
    "atkeson1986": Paper(atkeson1986.TITLE, atkeson1986.PARTS | {_EVALUATED: atkeson_formulas.formulas}),
    "gautier1990": Paper(gautier1990.TITLE, gautier1990.PARTS | {_EVALUATED: gautier_formulas.formulas_1990}),
    "gautier1992": Paper(gautier1992.TITLE, gautier1992.PARTS | {_EVALUATED: gautier_formulas.formulas_1992}),
    "lin1995": Paper(lin1995.TITLE, lin1995.PARTS | {_EVALUATED: lin_formulas.formulas}),
    "izaguirre1992": Paper(izaguirre1992.TITLE, izaguirre1992.PARTS | {_EVALUATED: izaguirre_formulas.formulas}),
}
"""The papers by name. A new paper also needs its printed numbers in data/<name>.toml, its numbered places in
data/places.toml, its table in docs/references/ and its counts in tests/test_references.py."""


def reproduce(
    name: str,
    folder: str | PathLike[str] | None,
    progress: Progress | None = None,
    *,
    quick: bool = False,
) -> Reproduction:
    """Reproduce the tables and figures of one paper or of all five, and write them into a folder.

    Args:
        name: A key of `REPRODUCTIONS`, or ``all``.
        folder: Output folder; None writes nothing.
        progress: Called before each part.
        quick: Whether to use fewer random draws and optimiser steps, for a first look and for tests.

    Raises:
        ArgumentError: There is no such paper.
    """
    if name != "all" and name not in REPRODUCTIONS:
        known = ", ".join([*REPRODUCTIONS, "all"])
        raise ArgumentError(f"there is no paper '{name}' to reproduce", remedy=f"Choose one of {known}.")
    papers = list(REPRODUCTIONS) if name == "all" else [name]
    total = sum(len(REPRODUCTIONS[key].makers) for key in papers)
    parts: list[Part] = []
    done = 0
    for key in papers:
        own: list[Part] = []
        for part_name, make in REPRODUCTIONS[key].makers.items():
            if progress is not None:
                progress(done, total, f"{key}: {part_name}")
            own.append(make(quick))
            done += 1
        # last part: numbered places of the paper that no row compares, with the reason
        own.append(build_not_compared(key, own))
        parts += [replace(part, title=f"{key}: {part.title}") for part in own] if name == "all" else own
    heading = "The five papers, reproduced" if name == "all" else REPRODUCTIONS[name].title
    result = Reproduction(name, heading, tuple(parts))
    if folder is not None:
        result.write(folder)
    return result
