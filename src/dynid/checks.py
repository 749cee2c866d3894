"""Numbers that a caller gives: refused by name where nothing can be done with them."""

from __future__ import annotations

import numpy as np

from dynid.errors import ArgumentError

__all__ = ["check_number"]


def check_number(
    name: str, value: object, wanted: str, most: float = np.inf, *, zero: bool = False, signed: bool = False
) -> None:
    """Refuse a value that is no finite number from zero to `most`.

    Args:
        name: The argument's name.
        value: What was given. None passes, and so does "auto" where `wanted` names it.
        wanted: What it should be, for the remedy.
        most: Largest number.
        zero: Whether zero will do.
        signed: Whether the number may as well be negative.
    """
    if value is None or (value == "auto" and "'auto'" in wanted):
        return
    number = float(value) if isinstance(value, int | float | np.floating | np.integer) else np.nan
    number = abs(number) if signed else number
    if not (np.isfinite(number) and (0.0 < number <= most or (zero and number == 0.0))):
        raise ArgumentError(f"{name} is {value!r}", remedy=f"Give {wanted}.")
