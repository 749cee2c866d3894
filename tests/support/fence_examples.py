"""An extension of griffe: examples in docstrings (``>>>`` up to an empty line) become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*?(?=\n\s*\n|\Z)", re.M | re.S)


class FenceExamples(griffe.Extension):
    """Fences the examples of every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change a docstring before it is parsed."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", obj.docstring.value)
