"""Numbers and formulas printed in the papers, with their sources."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["read_printed"]


@cache
def read_printed(paper: str) -> dict[str, Any]:
    """Read the numbers and formulas that a paper prints, by table, equation or section."""
    return tomllib.loads(files("papers.data").joinpath(f"{paper}.toml").read_text(encoding="utf-8"))
