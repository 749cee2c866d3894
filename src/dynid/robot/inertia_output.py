"""What a model file can say about an inertia, and whether it has to be said anew."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ExportError
from dynid.robot.inertia import Inertia

__all__ = ["centre_of_mass", "same_inertia"]

_ROUNDING = 1e-14  # sums of parameters, as a robot rebuilt from its parameter vector has them, differ by this much


def centre_of_mass(inertia: Inertia, link: str) -> NDArray[np.float64]:
    """Centre of mass (3,) [m] of what is to be written.

    Raises:
        ExportError: The body has a first moment but no mass; model files hold mass and centre, not the moment.
    """
    if inertia.mass == 0.0 and inertia.first_moment.any():
        raise ExportError(
            "a first moment without mass has no centre of mass to write",
            place=f"link '{link}'",
            remedy="Constrain the estimate to physical bodies, or move this moment to a link that has mass.",
        )
    return inertia.com


def same_inertia(a: Inertia, b: Inertia) -> bool:
    """Whether two inertias are the same within rounding, mass, first moment and tensor each on its own scale."""
    pairs = ((a.mass, b.mass), (a.first_moment, b.first_moment), (a.about_origin, b.about_origin))
    return all(np.linalg.norm(np.subtract(x, y)) <= _ROUNDING * np.linalg.norm(y) for x, y in pairs)
