"""Whether the friction and the rotors of an identified robot are possible: friction brakes, and a rotor has inertia.

The estimator `feasible` makes them so. Others need not.
"""

from __future__ import annotations

import numpy as np

from dynid.estimation.equations import Factors
from dynid.estimation.estimate import TWO_SIDED_95, Estimate
from dynid.estimation.physical.passivity import all_terms
from dynid.findings import Finding


def check_friction(equations: Factors, estimate: Estimate) -> tuple[Finding, ...]:
    """A finding where friction or a rotor inertia that must not be negative is so beyond its 95 % interval.

    Args:
        equations: The equations.
        estimate: The estimate.
    """
    base, first, size = equations.base, 10 * equations.robot.dof, len(equations.base.layout)
    alone = {base.layout.index(name) for name in base.identifiable}
    row_of = {column: row for row, column in enumerate(base.columns) if column in alone}
    row_of |= {size + k: base.rank + k for k in range(len(equations.terms))}
    wrong = []
    for place, term in enumerate(all_terms(equations), start=first):
        row = row_of.get(place)
        if term.is_non_negative and row is not None and np.isfinite(estimate.stderr[row]):
            high = estimate.values[row] + TWO_SIDED_95 * estimate.stderr[row]
            wrong += [f"{estimate.names[row]} {estimate.values[row]:.3g} {estimate.units[row]}"] if high < 0.0 else []
    if not wrong:
        return ()
    return (
        Finding(
            code="negative-friction",
            severity="warning",
            where="friction",
            message=f"friction or rotor inertia is surely negative: {', '.join(wrong)}",
            remedy="Do not simulate this model. Identify with the estimator feasible, which lets friction only brake.",
        ),
    )
