"""What the printed code must know of the processor."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Host"]


@dataclass(frozen=True, slots=True)
class Host:
    """The processor that the code is made for."""

    name: str
    """LLVM's name of the processor."""

    features: str
    """LLVM's list of its features."""

    lanes: int
    """Doubles per vector register."""

    registers: int
    """Vector registers."""

    fused: bool
    """Whether it has fused multiply-add."""
