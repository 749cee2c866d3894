"""The term whose torque depends on the joint's position, as of springs, counterweights and eccentric gears."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dynid.terms.base import StateTerm


@dataclass(frozen=True)
class AngleHarmonic(StateTerm):
    """Torque that repeats with the joint angle, as of an eccentric gear: ``value cos(order q)`` or the sine [N m or N].

    A spring or counterweight is a sum of several of them.
    """

    order: int = field(default=1, kw_only=True)
    """Periods per turn of the joint."""
    sine: bool = field(default=False, kw_only=True)
    """Whether the torque follows the sine instead of the cosine."""
    symbol: ClassVar[str] = "H"

    @property
    def name(self) -> str:
        return f"{self.prefix}{self.number}"

    @property
    def prefix(self) -> str:
        return f"H{'S' if self.sine else 'C'}{self.order}_"

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return (np.sin if self.sine else np.cos)(self.order * q)
