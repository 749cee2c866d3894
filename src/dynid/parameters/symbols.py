"""Names and values of a robot's geometric constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.dynamics.chain import EXACT, dh_rows
from dynid.parameters.expression import Polynomial
from dynid.robot.formats.dh import DH
from dynid.robot.model import Robot


@dataclass(frozen=True, slots=True)
class DHSymbols:
    """One row of a modified DH table as polynomials: numbers where they are 0 or 1, symbols otherwise."""

    d: Polynomial
    r: Polynomial
    cos_alpha: Polynomial
    sin_alpha: Polynomial
    cos_theta: Polynomial
    sin_theta: Polynomial


def dh_symbols(rows: Sequence[DH]) -> tuple[list[DHSymbols], dict[str, float]]:
    """Symbols ``D3 R3 CA3 SA3 CT3 ST3`` of a table and their values; zeros, ones and right angles are folded."""
    table, values = [], {}

    def symbol_for(name: str, value: float) -> Polynomial:
        exact = round(value)
        if abs(value - exact) < EXACT and (exact == 0 or (exact in (-1, 1) and name[0] in "CS")):
            return Polynomial.constant(exact)
        values[name] = value
        return Polynomial.symbol(name)

    for j, row in enumerate(rows, start=1):
        table.append(
            DHSymbols(
                d=symbol_for(f"D{j}", row.d),
                r=symbol_for(f"R{j}", row.r) if not row.sigma else Polynomial(),
                cos_alpha=symbol_for(f"CA{j}", float(np.cos(row.alpha))),
                sin_alpha=symbol_for(f"SA{j}", float(np.sin(row.alpha))),
                cos_theta=symbol_for(f"CT{j}", float(np.cos(row.theta))) if row.sigma else Polynomial(),
                sin_theta=symbol_for(f"ST{j}", float(np.sin(row.theta))) if row.sigma else Polynomial(),
            )
        )
    return table, values


def geometry_of(robot: Robot) -> dict[str, float]:
    """Values of the geometric symbols: those of the DH table, or else ``PX3 PY3 PZ3`` of each placement."""
    rows = dh_rows(robot)
    if rows is not None:
        return dh_symbols(rows)[1]
    values = {}
    for j, body in enumerate(robot.bodies, start=1):
        values.update(
            {f"P{axis}{j}": float(p) for axis, p in zip("XYZ", body.p_parent_joint, strict=True) if abs(p) > EXACT}
        )
    return values
