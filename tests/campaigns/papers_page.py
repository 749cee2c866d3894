"""Reproduce all five papers with full effort and write docs/papers.md: ``make papers`` (some minutes)."""

from __future__ import annotations

from pathlib import Path

from dynid.studies.papers import build_page, reproduce

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"


def main() -> None:
    """Write the page."""
    result = reproduce("all", None, lambda done, total, title: print(f"{done + 1}/{total} {title}", flush=True))
    PAGE.write_text(build_page(result), encoding="utf-8")
    print(result.summary())


if __name__ == "__main__":
    main()
