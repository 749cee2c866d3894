"""The robot in its control loop: control laws, commanded motions, and the compiled simulation."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "laws": ["Cascade", "ComputedTorqueLaw", "PD", "PID", "UserLaw", "assumed_law", "read_law"],
    "loop": ["Loop", "ReferenceMotion"],
    "simulator": ["simulate_loop"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
