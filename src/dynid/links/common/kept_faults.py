"""Faults of the set-up that a result rests on: terms of the model that stand for one, and causes that nothing mends.

A wrong gain, cross-talk or a tilted base that selection keeps makes the fit right and the set-up wrong: it is a warning
with its value. A delay, a drift, a push, a wrong clock or a change of the load that the gate names stays in the result
unless the recipe takes it into account: such a result is not called passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.estimation.estimate import Estimate
from dynid.findings import Finding
from dynid.robot.model import Robot
from dynid.terms.base import Term
from dynid.terms.load_dependent import BaseTilt, CrossTalk, DriveGain

SHOWN = 3.0
"""Standard errors from which on the value of a kept term is listed (convention: as the intervals of three sigma)."""
UNMENDED: dict[str, tuple[str, ...]] = {
    "delay": (),
    "load": (),
    "velocity-scale": (),
    "drift": ("trend", "warming"),
}
"""Code of a cause that biases the result -> members of ``per_run`` in the recipe that take it into account. A delay
that is corrected is not found again, for the gate looks at the corrected log."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How terms of a kind are reported."""

    says: Callable[[Term, Sequence[str]], str]
    """Beginning of a sentence about one of them."""
    quantity: str
    """What they stand for, where the logs show none."""
    unit: str
    factor: float
    """Printed unit over SI unit."""
    remedy: str


def _name(names: Sequence[str], joint: int) -> str:
    return f"'{names[joint]}'"


_KINDS: dict[type[Term], _Kind] = {
    BaseTilt: _Kind(
        lambda term, names: f"the base is tilted about horizontal axis {'xy'[getattr(term, 'axis', 0)]} by",
        "a tilt of the base",
        "deg",
        180.0 / np.pi,
        "Measure how the robot stands, and give its gravity (gravity in the recipe).",
    ),
    DriveGain: _Kind(
        lambda term, names: f"the torque of {_name(names, getattr(term, 'joint', 0))} is measured too {{large}} by",
        "a wrong gain of a torque",
        "%",
        100.0,
        "Check the gain, the torque constant and the gear of the joint in the channel map; an encoder's zero or a "
        "spring may look the same.",
    ),
    CrossTalk: _Kind(
        lambda term, names: (
            f"the torque sensor of {_name(names, getattr(term, 'joint', 0))} also feels that of "
            f"{_name(names, getattr(term, 'source', 0))}, by"
        ),
        "cross-talk between torque sensors",
        "%",
        100.0,
        "Check the sensors and the order of the joints; a spring or a cable may look the same.",
    ),
}


def check_kept_terms(robot: Robot, terms: Sequence[Term], estimate: Estimate) -> Iterator[Finding]:
    """Report terms of the model that stand for a fault of the set-up, with their values.

    There is one finding for each kind: a warning where a value is surely not zero, otherwise a note.

    Args:
        robot: The robot.
        terms: The terms beside the robot's own, whose values are the last ones of the estimate.
        estimate: The estimate.
    """
    first = len(estimate.values) - len(terms)
    for kind, rule in _KINDS.items():
        kept = [(first + place, term) for place, term in enumerate(terms) if isinstance(term, kind)]
        if not kept:
            continue
        ratios = {k: abs(estimate.values[k]) / max(float(estimate.stderr[k]), 1e-300) for k, _ in kept}
        sure = [(k, term) for k, term in kept if ratios[k] > SHOWN]
        texts, evidence = [], {}
        for k, term in sure or [max(kept, key=lambda pair: ratios[pair[0]])]:
            value, error = rule.factor * float(estimate.values[k]), rule.factor * float(estimate.stderr[k])
            says = rule.says(term, robot.joint_names).replace("{large}", "large" if value > 0.0 else "small")
            size = abs(value) if kind is DriveGain else value
            texts.append(f"{says} {size:.3g} +- {error:.2g} {rule.unit}")
            evidence[f"{term.name} [{rule.unit}]"] = value
        largest = max(abs(estimate.values[k]) + 2.0 * float(estimate.stderr[k]) for k, _ in kept)
        most = f"{rule.factor * largest:.2g} {rule.unit}"
        unshown = f"the model holds {rule.quantity}, which the logs do not surely show (at most {most})"
        yield Finding(
            code="kept-fault",
            severity="warning" if sure else "note",
            where="model",
            message=f"the model needs this to explain the logs: {'; '.join(texts)}" if sure else unshown,
            evidence=evidence,
            remedy=rule.remedy,
        )


def unmended(findings: Iterable[Finding], per_run: Sequence[str]) -> tuple[str, ...]:
    """What the findings name that biases the result and that the recipe does not take into account, as clauses.

    Each begins with the log and the joint that it is about, where the finding names them.

    Args:
        findings: Findings of the gate and of the estimate.
        per_run: ``per_run`` of the recipe.
    """
    return tuple(
        dict.fromkeys(
            ": ".join(part for part in (finding.log, finding.joint, finding.message) if part)
            for finding in findings
            if finding.code in UNMENDED
            and finding.severity != "note"
            and not set(UNMENDED[finding.code]) & set(per_run)
        )
    )
