"""Writes docs/api.md: the public names, package by package, from whose docstrings mkdocstrings makes the reference.

Run: ``PYTHONPATH=tests python tests/support/api_reference.py``
"""

from __future__ import annotations

import inspect
from pathlib import Path

import dynid
from support.example_names import SHARED

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
OPENING = """---
search:
  boost: 0.1
---

# Public names

`help(dynid.NAME)` prints the same text. Robots that are built in: `dynid.robots`, listed by `dynid robots`. The
examples share these objects, and a `folder` with the log `run1.csv` and its channel map `map.toml`:

```python
{shared}
```
"""


def reference() -> str:
    """The page."""
    front = {name: module for module, names in dynid._HOME.items() for name in names}
    parts = [OPENING.format(shared=SHARED.rstrip()), section("dynid", "What most programs need.", front)]
    for package in dynid.PACKAGES:
        module = getattr(dynid, package)
        homes = {
            name: f"dynid.{package}.{home}" for home, names in getattr(module, "NAMES", {}).items() for name in names
        }
        homes = homes or {name: f"dynid.{package}" for name in module.__all__}
        others = {name: home for name, home in homes.items() if name not in front}
        if others:
            parts.append(section(f"dynid.{package}", (inspect.getdoc(module) or "").partition("\n")[0], others))
    return "\n".join(parts)


def section(title: str, first: str, homes: dict[str, str]) -> str:
    """A package with its names."""
    names = "\n".join(f"::: {homes[name]}.{name}" for name in sorted(homes, key=str.lower))
    return f"## {title}\n\n{first}\n\n{names}\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
