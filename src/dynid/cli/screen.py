"""Output of the commands: progress bars, findings, verdicts, JSON."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid.safe_text import one_line, visible_text
from dynid.tables import count_words

if TYPE_CHECKING:
    from dynid.findings import Finding
    from dynid.tables import Table


Advance = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a short description of the current step."""
LINE_WIDTH = 80
"""Widest line that is printed, in characters (convention: the usual width of a terminal)."""
MOST_FINDINGS = 5
"""Most findings on a screen; --verbose shows all (convention)."""
MOST_ROWS = 12
"""Most rows of a table on a screen; --verbose shows all (convention)."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text; characters that would steer the terminal, which names in files may hold, are escaped."""
    click.echo(visible_text(text.replace("\t", "    ")), err=err, nl=nl)


@contextlib.contextmanager
def progress(task: str) -> Iterator[Advance]:
    """Show a progress bar with the remaining time; show nothing if the output is no terminal.

    Args:
        task: Description of the task.
    """
    if not sys.stderr.isatty():
        yield lambda share, note: None
        return
    with click.progressbar(length=100, label=task, file=sys.stderr) as bar:

        def advance(share: float, note: str) -> None:
            bar.label = visible_text(f"{task}: {note}")[: LINE_WIDTH // 2]
            bar.update(round(100.0 * share) - bar.pos)

        yield advance


def show_finding(finding: Finding, *, brief: bool = False) -> None:
    """Print a finding on the error stream: whole, or without what to do about it (brief)."""
    place = (finding.log or finding.where) if finding.joint is None else finding.joint
    message = finding.message if finding.severity == "note" else finding.sentence.removeprefix(f"{place}: ")
    message = (finding.brief or finding.message) if brief else message
    colour = {"error": "red", "warning": "yellow", "note": None}[finding.severity]
    text = f"{finding.severity} [{finding.code}]: {place}: {message}"
    head, _, rest = wrap_lines(one_line(text), tables=False).partition(" ")
    click.echo(f"{click.style(head, fg=colour, bold=colour is not None)} {rest}", err=True)


_TIE = "\ue000"
"""Stands for a space at which no line is broken (a character of Unicode's private use area)."""
_AFTER_NUMBER = re.compile(r"(?<=\d) (?=(?:%|ms|Hz|deg|mm|kg|N|s)(?:\W|$))")
"""The space between a number and its unit."""


def wrap_lines(text: str, *, tables: bool = True) -> str:
    """Break sentences at the width of the terminal, at most 80 columns; rows of tables stay as they are.

    Args:
        text: The lines.
        tables: Whether lines with two spaces inside are rows of tables.
    """
    width = min(LINE_WIDTH, shutil.get_terminal_size().columns)
    lines = []
    for line in _AFTER_NUMBER.sub(_TIE, text).splitlines():
        is_table = (tables and "  " in line.strip()) or set(line.strip()) <= {"-", " "}
        if is_table or len(line) <= width:
            lines.append(line)
        else:
            further = " " * (len(line) - len(line.lstrip()) + 2)
            lines += textwrap.wrap(
                line, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
            )
    return "\n".join(lines).replace(_TIE, " ")


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print a value as JSON, with null for what is not finite; without an indent, in one line."""
    from dynid.plain_data import json_values

    echo(json.dumps(json_values(value), indent=indent, allow_nan=False))


def write_no_more() -> None:
    """Discard further output, where its reader has ended or the disk is full.

    Python would write what is buffered when the program ends, and fail again.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_verdict(text: str, *, good: bool | None) -> None:
    """Print a verdict; its first line is green, red, or yellow where nothing was judged (None)."""
    head, _, rest = visible_text(wrap_lines(text)).partition("\n")
    colour = "yellow" if good is None else "green" if good else "red"
    click.echo(click.style(head, fg=colour, bold=True) + (f"\n{rest}" if rest else ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The parts of a result that a command shows, in this order; every verb has the same."""

    verdict: str
    """One or two sentences with the errors."""
    good: bool | None
    """Whether the verdict is good; None where nothing was judged."""
    tables: Sequence[Table | str] = ()
    findings: Sequence[Finding] = ()
    """Findings of the result, in addition to those that were reported while the command ran."""
    files: Sequence[str] = ()
    """One line per file that matters, with its error."""
    commands: Sequence[str] = ()
    """Commands to run next."""
    details: str = ""
    """Everything else, for --verbose."""


def print_screen(screen: Screen, reported: Sequence[Finding], out: Path | None, *, verbose: bool) -> None:
    """Print verdict, tables, findings, files and next commands.

    Args:
        screen: The parts of the result.
        reported: Findings of the run.
        out: The run folder; None without one.
        verbose: Whether all rows, findings and details are printed.
    """
    print_verdict(screen.verdict, good=screen.good)
    rest = "--verbose or report.html" if out else "--verbose"
    for table in screen.tables:
        if verbose or isinstance(table, str) or len(table.rows) <= MOST_ROWS:
            echo(f"\n{table}")
        else:
            echo(f"\n{type(table)(table.header, table.rows[:MOST_ROWS], digits=table.digits)}")
            echo(f"{MOST_ROWS} of {len(table.rows)}; the rest: {rest}.")
    order = ("error", "warning", "note")
    every = [*reported, *(finding for finding in screen.findings if finding not in reported)]
    findings = sorted(every, key=lambda finding: order.index(finding.severity))
    shown = findings if verbose else findings[:MOST_FINDINGS]
    if shown:
        echo("")
    for finding in shown:
        show_finding(finding, brief=not verbose)
    if shown and not verbose:
        echo(f"{count_words(len(findings), 'finding')}, and what to do: {rest}.")
    if verbose and screen.details:
        echo(f"\n{wrap_lines(screen.details)}")
    page = "" if out is None or not (out / "report.html").exists() else f"; open {out / 'report.html'} in a browser"
    written = [] if out is None else [f"written: {out}{page}"]
    for line in (*screen.files, *written):
        echo(wrap_lines(one_line(line)))
    for command in screen.commands[:2]:  # in one line each, to copy
        echo(f"next: {one_line(command)}")
