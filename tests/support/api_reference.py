"""Writes docs/api.md: every public name with its signature and first sentence, the front door first, then by package.

Run: ``PYTHONPATH=tests python tests/support/api_reference.py``
"""

from __future__ import annotations

import inspect
from enum import Enum
from pathlib import Path
from textwrap import indent
from types import ModuleType

import dynid
from support.example_names import SHARED

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
PIPELINE = (
    "robot",
    "terms",
    "kernels",
    "parameters",
    "information",
    "excitation",
    "loop",
    "logs",
    "processing",
    "diagnosis",
    "estimation",
    "links",
    "load",
    "actuators",
    "monitor",
    "fleet",
    "export",
    "report",
    "runs",
    "findings",
    "errors",
)
"""Packages in the order of the pipeline, the ground last."""


def reference() -> str:
    """The page."""
    assert set(PIPELINE) == set(dynid.PACKAGES)
    front = sorted((name for names in dynid._HOME.values() for name in names), key=str.lower)
    lines = [
        "# Public names",
        "",
        "Written by `tests/support/api_reference.py`. `help(dynid.NAME)` has arguments with shapes, units and frames.",
        "Robots that are built in: `dynid.robots`, listed by `dynid robots`. The examples share these objects, and a "
        "`folder` with the log `run1.csv` and its channel map `map.toml`:",
        "",
        "```python",
        SHARED.rstrip(),
        "```",
        "",
        "## `dynid`",
        "",
        *(entry(dynid, name) for name in front),
    ]
    for package in PIPELINE:
        module = getattr(dynid, package)
        names = [name for name in sorted(module.__all__, key=str.lower) if name not in front]
        if names:
            first = (inspect.getdoc(module) or "").partition("\n")[0]
            lines += ["", f"## `dynid.{package}`", "", first, "", *(entry(module, name) for name in names)]
    return "\n".join(lines) + "\n"


def entry(module: ModuleType, name: str) -> str:
    """One line for a name."""
    thing = getattr(module, name)
    text = inspect.getdoc(thing) if callable(thing) else ""
    described = (text or "").partition("\n")[0].strip()
    line = f"- `{signature(name, thing)}`" + (f": {described}" if described else "")
    return f"{line}\n\n{indent(shown, '    ')}\n" if (shown := example(text or "")) else line


def example(text: str) -> str:
    """The example of a docstring as a block of code; empty where there is none."""
    if ">>>" not in text:
        return ""
    lines = text[text.index(">>>") :].splitlines()
    kept = [line.strip() for line in lines[: next((k for k, x in enumerate(lines) if not x.strip()), len(lines))]]
    return "\n".join(["```", *kept, "```"])


def signature(name: str, thing: object) -> str:
    """The name with the names of its arguments; exceptions and enumerations, which users do not call, by name alone."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception | Enum)):
        return name
    try:
        arguments = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
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


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
