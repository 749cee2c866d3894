"""Output of the commands: progress bars, findings, verdicts, JSON."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dynid.findings import Finding

__all__ = ["finite_values", "print_json", "print_verdict", "print_written", "progress", "show_finding"]

Advance = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a short description of the current step."""
WIDTH = 60
"""Largest width of the text beside a progress bar, in characters (convention)."""


@contextlib.contextmanager
def progress(task: str) -> Iterator[Advance]:
    """Show a progress bar with the elapsed and the remaining time; show nothing if the output is no terminal.

    Args:
        task: Description of the task.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        number = bar.add_task(task, total=1.0)
        yield lambda share, note: bar.update(number, completed=share, description=f"{task}: {note}"[:WIDTH])


def show_finding(finding: Finding) -> None:
    """Print a finding on the error stream; of a note, print the message only."""
    click.echo(finding.message if finding.severity == "note" else str(finding), err=True)


def print_json(value: object) -> None:
    """Print a value as JSON; numbers that are not finite become null."""
    click.echo(json.dumps(finite_values(value), indent=2, allow_nan=False))


def finite_values(value: Any) -> Any:
    """Replace numbers that are not finite by None."""
    if isinstance(value, dict):
        return {str(key): finite_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_verdict(text: str, *, good: bool) -> None:
    """Print a verdict; its first line is coloured on a terminal."""
    head, _, rest = text.partition("\n")
    click.echo(click.style(head, fg="green" if good else "red", bold=True) + (f"\n{rest}" if rest else ""))


def print_written(out: Path) -> None:
    """Print the paths of a run folder and of its report."""
    click.echo(f"written: {out}; open {out / 'report.html'} in a browser")
