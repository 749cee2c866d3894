"""The group of all commands: options that may stand anywhere, and one message and an exit code for every failure."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

import click

from dynid import errors
from dynid.cli.screen import echo, write_no_more
from dynid.safe_text import visible_text

EXIT_CODES = """\b
Exit codes:
  0    success
  1    the verdict failed: held-out error, doubtful load, faulty log,
       or a rerun that differs
  2    wrong options or settings
  3    bad robot description or data
  4    the data do not determine the parameters
  5    no solution was found, or nothing could be written
  70   internal error of dynid
  130  interrupted"""

INTERRUPTED = (
    "interrupted; earlier files stay as they were. Give the command again: dynid fleet --store continues where it "
    "stopped, the others begin anew."
)

ANYWHERE = ("--no-snap", "--allow-unphysical", "--verbose")
"""Options of the whole program that may also be written after the name of a command."""
_CODES: list[tuple[type[errors.DynidError], int]] = [
    (errors.ArgumentError, 2),
    (errors.DescriptionError, 3),
    (errors.DataError, 3),
    (errors.IdentifiabilityError, 4),
    (errors.DynidError, 5),
]
"""Type of error -> exit code; the first type that fits counts."""


class ErrorGroup(click.Group):
    """Turns errors into messages and exit codes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        extra.setdefault("terminal_width", max(24, min(80, shutil.get_terminal_size().columns) - 2))
        if os.environ.get("NO_COLOR"):
            extra.setdefault("color", False)
        with _one_message():
            return super().make_context(info_name, args, parent, **extra)
        raise AssertionError("a message ends the program")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move options of the whole program to the front, unless they stand behind ``--``."""
        place = args.index("--") if "--" in args else len(args)
        flags = [word for word in ANYWHERE if word in args[:place]]
        return super().parse_args(ctx, [*flags, *(w for k, w in enumerate(args) if w not in ANYWHERE or k > place)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and self.get_command(ctx, name) is None and not name.startswith("-"):
            if name == "help":
                ctx.fail("No such command 'help'. dynid --help lists the commands, dynid COMMAND --help explains one.")
            ctx.fail(f"No such command '{name}'. {errors.did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)  # scripts start what they put aside without one
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # letters that the locale cannot show become escapes
        with _one_message():
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # reports a full disk or a closed pipe here


_usual_form = warnings.formatwarning
warnings.formatwarning = lambda *parts, **more: visible_text(_usual_form(*parts, **more))  # they may quote files
atexit.register(gc.freeze)  # the process gives up all objects as a whole: none need be searched for unused cycles


@contextlib.contextmanager
def _one_message() -> Iterator[None]:
    """End the program with one message and an exit code for any error inside a ``with`` block."""
    try:
        yield
    except errors.DynidError as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        _fail(str(error), code)
    except BrokenPipeError:
        write_no_more()  # the reader of the output has ended, which is no error
        sys.exit(0)
    except KeyboardInterrupt:
        _fail(INTERRUPTED, 130)
    except MemoryError:
        _fail("there is not enough memory. Use shorter logs, or several of them.", 5)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else "the output: "
        _fail(
            f"{place}{error.strerror or error}. Check that it exists, that you may use it, and that "
            "the disk has space.",
            5,
        )
    except click.ClickException as error:
        object.__setattr__(error, "message", visible_text(error.message))  # names of files may steer a terminal
        raise
    except (click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        if _is_interrupt(error):
            _fail(INTERRUPTED, 130)
        if os.environ.get("DYNID_TRACEBACK"):
            raise
        _fail(
            f"internal error of dynid: {type(error).__name__}: {error}. Set DYNID_TRACEBACK=1 to "
            "see where it occurred.",
            70,
        )


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an error came from an interrupt: one during the import of a library can raise any kind of error."""
    return isinstance(error, KeyboardInterrupt) or (error is not None and _is_interrupt(error.__context__))


def _fail(message: str, code: int) -> NoReturn:
    """Print a message and end the program."""
    with contextlib.suppress(OSError):
        echo(f"dynid: {message}", err=True)
    if code == 5:
        write_no_more()
    sys.exit(code)
