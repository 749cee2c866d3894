"""Names and values of a robot's geometric constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.expression import Polynomial
from dynid.robot.formats.dh import DH
from dynid.spatial import EXACT


@dataclass(frozen=True, slots=True)
class DHSymbols:
    """One row of a modified DH table as polynomials: numbers where they are 0 or 1, symbols otherwise."""

    d: Polynomial
    r: Polynomial
    cos_alpha: Polynomial
    sin_alpha: Polynomial
    sigma: int
    cos_theta: Polynomial
    """Of a prismatic joint; one for a revolute one, whose angle varies."""
    sin_theta: Polynomial

    @property
    def rotation(self) -> NDArray[np.object_]:
        """(3, 3) orientation of frame j in frame j - 1: the transpose of [GautierKhalil1990] eq. (A7)."""
        ca, sa, ct, st = self.cos_alpha, self.sin_alpha, self.cos_theta, self.sin_theta
        return np.array([[ct, -st, Polynomial()], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]])

    @property
    def T_previous_joint(self) -> NDArray[np.object_]:
        """(4, 4) pose of frame j in frame j - 1."""
        T = np.full((4, 4), Polynomial(), dtype=object)
        T[:3, :3], T[:3, 3] = self.rotation, [self.d, -self.r * self.sin_alpha, self.r * self.cos_alpha]
        return T


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
                sigma=row.sigma,
                cos_theta=symbol_for(f"CT{j}", float(np.cos(row.theta))) if row.sigma else Polynomial.constant(1.0),
                sin_theta=symbol_for(f"ST{j}", float(np.sin(row.theta))) if row.sigma else Polynomial(),
            )
        )
    return table, values
