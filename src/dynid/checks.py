"""Checks of arguments and of installed libraries: errors name the argument, the reason and the remedy.

Public functions and settings call them on what a user gives. Functions ``check_...`` return nothing; functions
``as_...`` return the value in its proper type. What is refused is refused by an ArgumentError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from math import hypot
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ArgumentError, did_you_mean

LARGEST = 1e30
"""Largest number that a setting may have, and the inverse of the smallest positive one (convention: the squares and
inverses of both are finite doubles)."""
LARGEST_SIGNAL = 1e12
"""Largest position, velocity, torque or current in SI units (convention: no robot reaches it)."""


def check_number(
    name: str,
    value: object,
    wanted: str,
    most: float = LARGEST,
    *,
    zero: bool = False,
    signed: bool = False,
    auto: bool = False,
) -> None:
    """Refuse a value that is no number from ``1 / LARGEST`` (so above zero) to ``most``.

    Args:
        name: The argument's name.
        value: The value; None passes.
        wanted: What it should be, for the remedy.
        most: Largest number.
        zero: Whether numbers from zero up are allowed.
        signed: Whether negative numbers are allowed; then the absolute value must be within the bounds.
        auto: Whether the word "auto" is allowed.
    """
    if value is None or (auto and value == "auto"):
        return
    number = float(value) if isinstance(value, int | float | np.floating | np.integer) else np.nan  # NaN is refused
    number = abs(number) if signed else number
    least = 0.0 if zero else 1.0 / LARGEST
    if not least <= number <= most:
        raise ArgumentError(f"{name} is {value!r}", remedy=f"Give {wanted}.")


def check_names(key: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that are not known; ``key`` is the setting that holds them."""
    for name in set(names) - set(known):
        near = did_you_mean(name, known)
        raise ArgumentError(f"{key}: there is no '{name}'", remedy=f"{near} Known names: {', '.join(known)}.".lstrip())


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse a value that is no object of a class."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} is {value!r}", remedy=f"Give a {kind.__name__}.")


def as_number(
    name: str, value: object, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> float:
    """Convert a value to a finite number larger than ``above``, at least ``least`` and at most ``most``, or refuse it.

    Text and booleans are refused.
    """
    bound = f"larger than {above:g}" if above is not None else f"{least:g} or larger" if least is not None else "finite"
    bound += "" if most is None else f" and at most {most:g}"
    try:
        number = np.nan if isinstance(value, str | bytes | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = np.nan
    inside = (
        (above is None or number > above) and (least is None or number >= least) and (most is None or number <= most)
    )
    if not (np.isfinite(number) and inside):
        raise ArgumentError(f"{name} is {value!r}", remedy=f"Give a number that is {bound}.")
    return number


def as_whole(name: str, value: object, *, least: int) -> int:
    """Convert a value to a whole number, at least ``least``, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{name} is {value!r}", remedy=f"Give a whole number, {least} or larger.")
    return int(value)


def as_sample(name: str, values: ArrayLike, size: int) -> Floats:
    """Convert one sample to an array (size,), one number per joint, or refuse it.

    NaN passes: it stands for an absent number. A finite number above `LARGEST_SIGNAL` is refused. The function is
    quick, because it is called in control loops.
    """
    try:
        row = np.ascontiguousarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} is {values!r}", remedy=f"Give {size} numbers, one per joint.") from error
    if row.shape != (size,):
        raise ArgumentError(f"{name} has the shape {row.shape}", remedy=f"Give {size} numbers, one per joint.")
    # hypot is the norm of the row: one quick test in the usual case. A NaN passes it, and an infinite number does not;
    # then the finite numbers are tested alone
    finite = np.where(np.isfinite(row), row, 0.0) if hypot(*row.tolist()) > LARGEST_SIGNAL else row
    if hypot(*finite.tolist()) > LARGEST_SIGNAL:
        remedy = "Check its unit and where it comes from."
        raise ArgumentError(f"{name} is {row.tolist()}, which no robot reaches", remedy=remedy)
    return row


def as_row(
    name: str,
    values: ArrayLike | None,
    size: int,
    *,
    same: bool = False,
    least: float | None = None,
    above: float | None = None,
    each: str = "one per joint",
) -> Floats:
    """Convert finite numbers to an array (size,), or refuse them.

    Args:
        name: The argument's name.
        values: The numbers.
        size: How many there must be.
        same: Whether a single number may be given for all.
        least: Smallest number allowed.
        above: Number that all must exceed.
        each: What the numbers stand for, for the remedy.
    """
    shapes = f"{size} numbers, {each}" + (", or one for all" if same else "")
    try:
        row = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} is {values!r}", remedy=f"Give {shapes}.") from error
    if row.shape != (size,) and not (same and row.shape == ()):
        raise ArgumentError(f"{name} has the shape {row.shape}", remedy=f"Give {shapes}.")
    if not np.isfinite(row).all():
        raise ArgumentError(f"{name} is not finite: {row.tolist()}", remedy=f"Give {shapes}, all finite.")
    if least is not None and row.min() < least:
        raise ArgumentError(f"{name} has {row.min():g}", remedy=f"Give {shapes}, {least:g} or larger.")
    if above is not None and row.min() <= above:
        raise ArgumentError(f"{name} has {row.min():g}", remedy=f"Give {shapes}, larger than {above:g}.")
    return np.array(np.broadcast_to(row, size))


def as_columns(columns: Sequence[int], count: int) -> tuple[int, ...]:
    """Convert integers, or a mask of ``count`` booleans, to column indices from 0 to ``count - 1``.

    Raises:
        ArgumentError: They are neither.
    """
    try:
        found = np.asarray(columns if isinstance(columns, np.ndarray) else list(columns))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"columns are not a sequence of integers: {error}") from error
    if found.dtype == bool and found.shape == (count,):
        found = np.flatnonzero(found)
    if found.shape == (0,):
        return ()
    if found.ndim != 1 or found.dtype.kind not in "iu" or np.ma.isMaskedArray(columns):
        raise ArgumentError(
            f"columns are {found.dtype} numbers of shape {found.shape}",
            remedy=f"Give integers from 0 to {count - 1}, or a mask of {count} booleans.",
        )
    indices = tuple(found.tolist())
    if min(indices) < 0 or max(indices) >= count:
        wrong = next(index for index in indices if not 0 <= index < count)
        raise ArgumentError(f"there is no column {wrong}", remedy=f"Give integers from 0 to {count - 1}.")
    return indices


def require_library(module: str, package: str) -> Any:
    """Import and return an optional library, or raise an error that says how to install it.

    Args:
        module: Name of the module.
        package: What to install: the name of the package, or an extra such as ``dynid[casadi]``.

    Raises:
        ArgumentError: The library is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ArgumentError(f"{module} is not installed", remedy=f"Install it: pip install '{package}'.") from error
