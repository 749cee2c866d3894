"""Writes docs/findings.md: every code of a finding with its meaning, grouped as in dynid/findings.py.

Run: ``PYTHONPATH=tests python tests/support/findings_page.py``
"""

from __future__ import annotations

import re
from pathlib import Path

import dynid.findings
from dynid.findings import CODES

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
HEADING = re.compile(r"^ +# (.+), from (.+)$")
"""A comment in the list of codes that begins a group: what its findings are about, and where they come from."""
CODE = re.compile(r'^ +"([a-z-]+)": ')


def page() -> str:
    """The text of the page."""
    lines = [
        "# Findings",
        "",
        "Written by `tests/support/findings_page.py` from `dynid.findings.CODES`. Whatever is worth knowing about",
        "a robot model, a log, a motion, a control law, an estimate or a load is a `Finding`: one of these codes,",
        "a severity (error, warning or note), the place, the numbers behind it, and a remedy. Programs decide on",
        "the code, never on the message:",
        '`dynid.check_recording(log, robot).about("unit")`.',
    ]
    for title, source, codes in groups():
        lines += ["", f"## {title[0].upper()}{title[1:]}", "", f"Reported by `{source}`.", ""]
        lines += ["| code | meaning |", "|---|---|", *(f"| `{code}` | {CODES[code]} |" for code in codes)]
    return "\n".join(lines) + "\n"


def groups() -> list[tuple[str, str, list[str]]]:
    """What each group of codes is about, where its findings come from, and its codes."""
    found: list[tuple[str, str, list[str]]] = []
    for line in Path(dynid.findings.__file__).read_text(encoding="utf-8").splitlines():
        if heading := HEADING.match(line):
            found.append((heading[1], heading[2], []))
        elif found and (code := CODE.match(line)) and code[1] in CODES:
            found[-1][2].append(code[1])
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
