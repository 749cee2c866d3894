"""Every error that dynid raises, with its evidence and its remedy.

The classes::

    DynidError
    ├── ArgumentError              a function was called with an array or option it cannot use
    ├── DescriptionError           a robot description (URDF, MJCF, DH, text) is wrong or unsupported
    ├── DataError                  a log or its channel map is wrong
    │   └── LogReadError             the file itself cannot be read
    │       └── UnreachableLogError    not for its content, but for rights, memory, a package or the network
    ├── IdentifiabilityError       the data or the motion cannot reveal what was asked for
    ├── ExcitationError            no trajectory satisfies the limits
    ├── EstimationError            an estimator found no trustworthy answer
    ├── EngineError                workers were lost, or a cluster cannot be reached
    └── ExportError                a result cannot be written, or generated code disagrees with the model

Typical use::

    try:
        robot = dynid.read_urdf("arm.urdf")
    except dynid.DynidError as error:
        print(error)            # file, place, reason and remedy in one sentence
        print(error.remedy)
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from dynid.safe_text import one_line

__all__ = [
    "ArgumentError",
    "DataError",
    "DescriptionError",
    "DynidError",
    "EngineError",
    "EstimationError",
    "ExcitationError",
    "ExportError",
    "IdentifiabilityError",
    "LogReadError",
]


class DynidError(Exception):
    """Base of all errors of dynid.

    Attributes:
        reason: What is wrong, as a clause without a full stop.
        path: The file concerned, or None.
        place: Where in the file or argument (an element, a line, an index), or None.
        remedy: What the user can do about it, or None.
    """

    def __init__(
        self, reason: str, *, path: object = None, place: str | None = None, remedy: str | None = None
    ) -> None:
        """Store the attributes and compose the message: ``path: place: reason. remedy``, of those that are given."""
        self.reason = reason
        self.path = None if path is None else str(path)
        self.place = place
        self.remedy = remedy
        where = ": ".join(part for part in (self.path, place) if part)
        message = f"{where}: {reason}" if where else reason
        super().__init__(one_line(f"{message}. {remedy}" if remedy else message))


class ArgumentError(DynidError):
    """A function was called with an array or option it cannot use."""


class DescriptionError(DynidError):
    """A robot description is wrong or uses something dynid does not support."""


class DataError(DynidError):
    """A log, or the map that explains its channels, is wrong."""


class LogReadError(DataError):
    """A log file cannot be read."""


class UnreachableLogError(LogReadError):
    """A log cannot be read for a reason outside it: rights, a missing package, memory, the network."""


class IdentifiabilityError(DynidError):
    """The data or the motion cannot reveal what was asked for."""


class ExcitationError(DynidError):
    """No trajectory satisfies the limits."""


class EstimationError(DynidError):
    """An estimator found no trustworthy answer."""


class EngineError(DynidError):
    """Workers were lost, or a cluster cannot be reached."""


class ExportError(DynidError):
    """A result cannot be written, or generated code disagrees with the model it was generated from."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Write the question for the known name that is most similar to a wrong one; empty text where none is similar."""
    return "".join(f"Did you mean {near}?" for near in get_close_matches(name, list(known), n=1))
