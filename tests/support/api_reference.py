"""Writes docs/api.md: every public name with its signature and first sentence, grouped by the stage it belongs to.

Run: ``PYTHONPATH=tests python tests/support/api_reference.py``
"""

from __future__ import annotations

import inspect
from pathlib import Path

import dynid
from dynid import _HOME

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
STAGES = {
    "robot": "Robots",
    "parameters": "What can be known",
    "excitation": "Motions that reveal it",
    "data": "From a log to an experiment",
    "information": "Reducing logs",
    "kernels": "Dynamics, compiled",
    "estimation": "Estimators",
    "closed_loop": "Robots in their control loops",
    "identification": "Links and loads",
    "export": "Results as files and code",
    "report": "Reports",
    "errors": "Errors",
}


def reference() -> str:
    """The page."""
    chapters: dict[str, list[str]] = {}
    for module, names in sorted(_HOME.items()):
        stage = module.split(".")[1]
        title = STAGES.get(stage, stage.replace("_", " ").capitalize())
        chapters.setdefault(title, []).extend(f"- `{signature(name)}`: {sentence(name)}" for name in names)
    order = [*STAGES.values(), *sorted(set(chapters) - set(STAGES.values()))]
    lines = [
        "# Public names",
        "",
        "Written by `tests/support/api_reference.py`. `help(dynid.NAME)` has arguments with shapes, units and frames.",
        "Robots that are built in: `dynid.robots`, listed by `dynid robots`.",
    ]
    for title in order:
        if title in chapters:
            lines += ["", f"## {title}", "", *sorted(chapters[title], key=str.lower)]
    return "\n".join(lines) + "\n"


def signature(name: str) -> str:
    """The name with the names of its arguments."""
    thing = getattr(dynid, name)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return name
    try:
        arguments = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return name
    if not callable(thing):
        return name
    shown, starred = [], False
    for argument in arguments:
        if argument.kind is argument.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        prefix = {argument.VAR_POSITIONAL: "*", argument.VAR_KEYWORD: "**"}.get(argument.kind, "")
        starred = starred or argument.kind is argument.VAR_POSITIONAL
        shown.append(prefix + argument.name)
    return f"{name}({', '.join(shown)})"


def sentence(name: str) -> str:
    """The first line of its description."""
    text = inspect.getdoc(getattr(dynid, name)) or ""
    return text.partition("\n")[0].strip()


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
