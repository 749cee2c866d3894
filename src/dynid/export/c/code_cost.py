"""What pruning costs and saves: torque errors and operations with all parameters and with the significant ones."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.errors import ArgumentError
from dynid.export.c.c_package import Source, generate_c
from dynid.links.identify import Identification
from dynid.links.pruning import PruningCost
from dynid.links.validation import Validation
from dynid.tape import OperationCount


def count_code(source: Source) -> Mapping[str, OperationCount]:
    """Operations per call of the generated inverse dynamics and of the tasks of the two-rate structure.

    Args:
        source: As for `generate_c`.
    """
    return generate_c(source, ["inverse_dynamics"], two_rate=True).counts


def pruning_cost(fit: Identification, full: Validation | None = None, pruned: Validation | None = None) -> PruningCost:
    """Compare the code of an identification with that of its significant parameters alone.

    Args:
        fit: An identification by `Identification.with_significant`.
        full: Its validation on held-out data.
        pruned: The validation of ``fit.significance`` on the same data.

    Raises:
        ArgumentError: The identification has no significant parameters.

    Example:
        >>> from dataclasses import replace
        >>> short = replace(fit, significance=dynid.links.significant_parameters(fit.equations))
        >>> type(dynid.export.pruning_cost(short)).__name__
        'PruningCost'
    """
    found = fit.significance
    if found is None:
        remedy = "Call fit.with_significant('1%')."
        raise ArgumentError("the identification has no significant parameters", remedy=remedy)
    before, after = count_code(fit), count_code(found)
    joints: dict[str, tuple[float, float]] = {}
    if full is not None and pruned is not None:
        pairs = zip(full.per_joint.tolist(), pruned.per_joint.tolist(), strict=True)
        joints = dict(zip(full.joint_names, pairs, strict=True))
    return PruningCost(
        parameters=(len(fit.estimate.names), len(found.kept)),
        training_error=(float(fit.training_error[-1]), float(found.training_error[-1])),
        held_out_error=None if full is None or pruned is None else (full.relative_error, pruned.relative_error),
        joint_errors=joints,
        operations={name: (count, after[name]) for name, count in before.items()},
    )
