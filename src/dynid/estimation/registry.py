"""Every estimator by name, one line each; what each can do is declared on its class and collected in `estimators`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors, LoopedRuns
from dynid.estimation.estimate import Estimator

ESTIMATORS: dict[str, str] = {
    "feasible": "dynid.estimation.physical.feasible:FeasibleWLS",
    "wls": "dynid.estimation.linear.least_squares:WLS",
    "ols": "dynid.estimation.linear.least_squares:OLS",
    "huber": "dynid.estimation.linear.robust:Huber",
    "ridge": "dynid.estimation.linear.minimum_norm:Ridge",
    "svd": "dynid.estimation.linear.minimum_norm:TruncatedSVD",
    "reduced-set": "dynid.estimation.linear.reduced_set:ReducedSet",
    "link-by-link": "dynid.estimation.linear.link_by_link:LinkByLink",
    "energy": "dynid.estimation.linear.energy_differences:Energy",
    "iv": "dynid.estimation.closed_loop.instrumental:InstrumentalVariables",
    "didim": "dynid.estimation.closed_loop.didim:DIDIM",
}
"""Name -> "module:class". To add an estimator, add a line; a module is imported when its estimator is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an estimator can do, as its class declares it."""

    name: str
    """Name on the command line."""
    title: str
    """Usual name of the method."""
    use: str
    """When to use it."""
    references: tuple[str, ...]
    """Keys of docs/references.md."""
    simulates_loop: bool
    """Whether it simulates the control loop, and so needs the control law or `dynid.estimation.InLoop`."""
    accepts_streams: bool
    """Whether it can solve equations of logs larger than memory."""
    accepts_terms: bool
    """Whether the model may have terms besides links and the robot's own terms."""
    accepts_band: bool
    """Whether both sides of the equations may be low-passed."""
    on_command_line: bool
    """Whether the command line offers it."""


def estimator_class(name: str) -> type[Estimator]:
    """The class of an estimator.

    Raises:
        ArgumentError: There is no estimator of that name.
    """
    if name not in ESTIMATORS:
        raise ArgumentError(f"there is no estimator '{name}'", remedy=f"Choose one of {', '.join(ESTIMATORS)}.")
    module, _, kind = ESTIMATORS[name].partition(":")
    found: type[Estimator] = getattr(import_module(module), kind)
    return found


def estimator(name: str, **settings: Any) -> Estimator:
    """The estimator of a name, with the settings that suit processed logs where none are given.

    Args:
        name: A key of `ESTIMATORS`.
        **settings: Settings of the estimator's class.

    Raises:
        ArgumentError: There is no estimator of that name, or a setting makes no sense.

    Example:
        >>> dynid.estimation.estimator("huber").name
        'huber'
    """
    kind = estimator_class(name)
    return kind(**settings) if settings else kind.for_logs()


def capabilities(kind: type[Estimator]) -> Capabilities:
    """What an estimator's class declares."""
    return Capabilities(
        name=kind.name,
        title=kind.title,
        use=kind.use,
        references=kind.references,
        simulates_loop=LoopedRuns in kind.needs,
        accepts_streams=Factors in kind.needs,
        accepts_terms=kind.accepts_terms,
        accepts_band=kind.accepts_band,
        on_command_line=kind.on_command_line,
    )


def estimators() -> tuple[Capabilities, ...]:
    """The table of all estimators, in the order of `ESTIMATORS`.

    Example:
        >>> dynid.estimation.estimators()[0].name
        'feasible'
    """
    return tuple(capabilities(estimator_class(name)) for name in ESTIMATORS)
