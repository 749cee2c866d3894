"""Ten parameters of a body as a 4 x 4 pseudo-inertia, seen relative to a prior body.

For a prior with pseudo-inertia ``P0 = L L^T`` the whitened pseudo-inertia ``Q = L^-1 P L^-T`` of a body is the identity
where the body is the prior. It is positive definite exactly when the body is physical, and its distance from the
identity has no unit: the metric of [LeeWensingPark2020] (constant pull-back). `svec` stacks a symmetric matrix with
off-diagonals times sqrt(2), as cones of positive semidefinite matrices want it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.findings import Finding
from dynid.robot.inertia import Inertia

_ROWS, _COLUMNS = np.array([(i, j) for j in range(4) for i in range(j + 1)]).T
_SCALE = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))


def svec(matrix: Floats) -> Floats:
    """(10,) upper triangle of a symmetric (4, 4) matrix, column by column, off-diagonals times sqrt(2)."""
    return np.asarray(matrix[_ROWS, _COLUMNS] * _SCALE)


def unsvec(vector: Floats) -> Floats:
    """(4, 4) symmetric matrix from `svec`."""
    matrix = np.zeros((4, 4))
    matrix[_ROWS, _COLUMNS] = matrix[_COLUMNS, _ROWS] = vector / _SCALE
    return matrix


_UNITS = np.stack([unsvec(unit) for unit in np.eye(10)])


def _parameters_of(pseudo: Floats) -> Floats:
    """(K, 10) ``XX XY XZ YY YZ ZZ MX MY MZ M`` of pseudo-inertias (K, 4, 4)."""
    xx, yy, zz, m = np.diagonal(pseudo, axis1=1, axis2=2).T
    xy, xz, yz = pseudo[:, 0, 1], pseudo[:, 0, 2], pseudo[:, 1, 2]
    first = pseudo[:, :3, 3].T
    return np.stack([yy + zz, -xy, -xz, xx + zz, -yz, xx + yy, *first, m], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class WhitenedBody:
    """Coordinates of a body relative to a prior one."""

    from_whitened: Floats
    """(10, 10) parameters = from_whitened @ svec(Q)"""
    findings: tuple[Finding, ...]
    """What had to be done to make the prior a possible body; empty where it is one."""

    @classmethod
    def around(cls, prior: Inertia, name: str, smallest: float = 1e-4) -> WhitenedBody:
        """Coordinates around a prior body; an impossible or massless prior is replaced by the nearest possible body.

        Args:
            prior: The prior's mass properties.
            name: Name of the link, for the finding.
            smallest: Smallest eigenvalue of the pseudo-inertia that is kept, relative to the largest.
        """
        pseudo, message = prior.pseudo, ""
        values, vectors = eigh(pseudo)
        if values[-1] <= 0.0 or prior.mass <= 0.0:
            message = f"'{name}' has no mass in the prior: a ball of 1 kg and 0.1 m is used instead"
            pseudo = np.diag([0.004, 0.004, 0.004, 1.0])
        elif values[0] < smallest * 1e-6 * values[-1]:
            message = f"'{name}' is not a possible body in the prior: the nearest possible body is used instead"
            pseudo = (vectors * np.maximum(values, smallest * values[-1])) @ vectors.T
        root = np.linalg.cholesky(pseudo)
        found = Finding(code="prior-replaced", severity="note", where=name, message=message)
        return cls(_parameters_of(root @ _UNITS @ root.T).T, (found,) if message else ())
