"""Output of the commands: progress bars, findings, verdicts, JSON."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.errors import visible_text

if TYPE_CHECKING:
    from dynid.findings import Finding
    from dynid.links.identify import Identification


Advance = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a short description of the current step."""
LINE = 80
"""Widest line that is printed, in characters (convention: the usual width of a terminal)."""
SETTLING_S = 2.0
"""Time after which the speed so far says something about the rest [s] (convention)."""
WIDTH = 44
"""Largest width of the text beside a progress bar, in characters (convention)."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text; characters that would steer the terminal, which names in files may hold, are escaped."""
    click.echo(visible_text(text.replace("\t", "    ")), err=err, nl=nl)


@contextlib.contextmanager
def progress(task: str) -> Iterator[Advance]:
    """Show a progress bar with the elapsed and the remaining time; show nothing if the output is no terminal.

    The remaining time is that of the measured speed. It is not shown during the first seconds, nor once the last step
    has begun, whose length is not known.

    Args:
        task: Description of the task.
    """
    if not (sys.stderr.isatty() or os.environ.get("FORCE_COLOR")):
        yield lambda share, note: None  # without the packages that draw
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Remaining(ProgressColumn):
        """Time left at the speed so far."""

        def render(self, task: Task) -> Text:
            return Text(remaining_time(task.completed, task.elapsed or 0.0), style="progress.remaining")

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), Remaining())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        number = bar.add_task(task, total=1.0)
        yield lambda share, note: bar.update(
            number, completed=share, description=visible_text(f"{task}: {note}")[:WIDTH]
        )


def remaining_time(share: float, elapsed_s: float) -> str:
    """Say how long the rest takes at the speed so far; empty where nothing honest can be said.

    Args:
        share: Finished share, 0 to 1.
        elapsed_s: Time since the start [s].
    """
    if elapsed_s < SETTLING_S or not 0.0 < share < 1.0:
        return ""
    left = elapsed_s * (1.0 - share) / share
    return f"about {left:.0f} s left" if left < 90.0 else f"about {left / 60.0:.0f} min left"


def show_finding(finding: Finding) -> None:
    """Print a finding on the error stream, within the width of the terminal; of a note, print no remedy."""
    if finding.severity == "note":
        parts = ("note", finding.log, finding.joint, finding.message)
        echo(wrap_lines(": ".join(filter(None, parts))), err=True)
        return
    head, text = finding.severity, visible_text(wrap_lines(str(finding)))
    colour = {"error": "red", "warning": "yellow"}[head]
    click.echo(click.style(head, fg=colour, bold=True) + text.removeprefix(head), err=True)


_TIE = "\ue000"
"""Stands for a space at which no line is broken."""
_AFTER_NUMBER = re.compile(r"(?<=\d) (?=(?:%|ms|Hz|deg|mm|kg|N|s)(?:\W|$))")
"""The space between a number and its unit."""


def wrap_lines(text: str, *, tables: bool = True) -> str:
    """Break sentences at the width of the terminal, at most 80 columns; rows of tables stay as they are.

    Args:
        text: The lines.
        tables: Whether lines with two spaces inside are rows of tables.
    """
    width = min(LINE, shutil.get_terminal_size().columns)
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


def identification_overview(fit: Identification) -> str:
    """The main figures of an identification in a few lines: joints, friction, findings; no table of all parameters."""
    from dynid.links.friction_summary import joint_friction
    from dynid.tables import Table, plain_number

    estimate = fit.estimate
    condition = "infinite" if estimate.undetermined.any() else plain_number(estimate.condition)
    joints = joint_friction(fit)
    friction = [(f.name, f.dry.text, f.unit, f.viscous.text, f.viscous_unit) for f in joints]
    lines = [
        f"{fit.robot.name}: {len(estimate.names)} base parameters by {estimate.method}",
        f"condition number {condition}, training error {fit.training_error[-1]:.3g} % of the torques as "
        "they enter the fit, noise included",
        fit.bounds.sentence,
    ]
    if friction:
        lines += ["", Table.of(["joint", "dry friction", "unit", "viscous friction", "unit"], friction).to_text()]
        lines += [f.remark for f in joints if f.remark]
    if fit.selection is not None:
        kept = list(dict.fromkeys(type(term).__name__ for term in fit.selection.terms))
        lines += ["", f"Selected terms: {', '.join(kept) or 'none'}."]
    lines += [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in estimate.findings]
    return wrap_lines("\n".join(lines).replace("\u00a0", " "))


def print_json(value: object) -> None:
    """Print a value as JSON; numbers that are not finite become null."""
    echo(json.dumps(finite_values(value), indent=2, allow_nan=False))


def print_json_line(value: object) -> None:
    """Print a value as one line of JSON, at once: for programs that read while others write."""
    echo(json.dumps(finite_values(value), allow_nan=False))


def write_no_more() -> None:
    """Give up the output, whose reader has ended or whose disk is full: Python would try again when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def finite_values(value: Any) -> Any:
    """Replace numbers that are not finite by None."""
    if isinstance(value, dict):
        return {str(key): finite_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_verdict(text: str, *, good: bool | None) -> None:
    """Print a verdict; its first line is green, red, or yellow where nothing was judged (None)."""
    head, _, rest = visible_text(wrap_lines(text)).partition("\n")
    colour = "yellow" if good is None else "green" if good else "red"
    click.echo(click.style(head, fg=colour, bold=True) + (f"\n{rest}" if rest else ""))


def print_written(out: Path) -> None:
    """Print the paths of a run folder and of its report."""
    echo(f"written: {out}\nopen {out / 'report.html'} in a browser")
