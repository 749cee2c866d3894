"""Progress on a terminal: a bar with the rate and the time that remains; nothing where output is piped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

__all__ = ["Advance", "progress", "size_of", "within"]

Advance = Callable[[float, str], None]
"""Called with how much is done in all, and what comes next."""


@contextlib.contextmanager
def progress(what: str, total: float | None = None, unit: str = "") -> Iterator[Advance]:
    """A progress bar.

    Args:
        what: What is being done.
        total: When it is finished, in ``unit``; None where nobody can tell.
        unit: Of the rate that is shown: ``MB``, ``parts``; none for work that is measured in seconds.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    bar = Progress(*_columns(unit), console=console, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda done, note: bar.update(task, completed=done, description=f"{what}: {note}"[:60])


def within(advance: Advance, what: str, done: float, size: float) -> Advance:
    """For one step of several, which is told as a share of itself: it begins at ``done`` and is worth ``size``."""
    return lambda share, note: advance(done + size * share, what)


def _columns(unit: str) -> Sequence[ProgressColumn]:
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """How fast it goes."""

        def render(self, task: Any) -> Text:
            return Text("" if task.speed is None or not unit else f"{task.speed:.3g} {unit}/s")

    return (TextColumn("{task.description}"), BarColumn(), Rate(), TimeElapsedColumn(), TimeRemainingColumn())


def size_of(path: str | Path) -> float:
    """Size of a file, or of a folder's files [MB]."""
    place = Path(path)
    files = [file for file in place.iterdir() if file.is_file()] if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files) / 1e6
