"""The long description of the package: README.md with links that work outside of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#|mailto:)([^)\s]+)\)")
"""A link or picture of Markdown whose target is a path of the repository."""


def absolute_links(text: str, home: str) -> str:
    """Make the links of a Markdown text absolute: pages and files at `home`, pictures as raw files."""
    return LINK.sub(lambda m: f"{m[1]}[{m[2]}]({home}/{'raw' if m[1] else 'blob'}/main/{m[3]})", text)


class ReadmeHook(MetadataHookInterface):
    """Sets the field `readme` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Take README.md; its links become absolute once `project.urls` states the address of the repository."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        home = metadata.get("urls", {}).get("Repository")
        text = text if home is None else absolute_links(text, home.rstrip("/"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
