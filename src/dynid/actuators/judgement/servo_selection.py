"""Terms of a servo model chosen inside the training motions: a term stays if it predicts motions it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dynid.actuators.motion import CommandedMotion, stretches_of
from dynid.actuators.servo_identification import fit_servos
from dynid.actuators.servo_model import ServoModel
from dynid.actuators.servo_simulator import simulate_servos
from dynid.errors import ArgumentError, EstimationError

FOLDS = 3
"""Parts of a single motion, and groups of motions with few gains, that are predicted from the others. Convention."""
LEAST_GAIN = 0.01
"""Share by which a term must lower the squared error of predicted motions; the rule of the real-data benchmark."""
LEAST_SHARE = 2.0 / 3.0
"""Share of the folds that a term must improve; the rule of the real-data benchmark."""


@dataclass(frozen=True, slots=True)
class TermTrial:
    """A model that was tried."""

    kinds: tuple[str, ...]
    """The kinds beyond those of the model."""
    error: float
    """Root of the mean squared error of predicted positions, over folds [rad or m]; infinite where one runs away."""
    better: int
    """Folds that it predicts better than the model without its last kind."""
    kept: bool
    """Whether its last kind was taken up."""


@dataclass(frozen=True, slots=True, eq=False)
class TermChoice:
    """The chosen model, and how it was chosen."""

    model: ServoModel
    chosen: tuple[str, ...]
    """Kinds that were taken up."""
    trials: tuple[TermTrial, ...]
    """All that was tried: the model alone, then each candidate alone and with those taken up before it."""
    folds: int
    """Number of folds."""


def select_terms(
    model: ServoModel,
    motions: Sequence[CommandedMotion],
    candidates: Sequence[str] | None = None,
    *,
    correlation: float | Literal["loop"] = "loop",
    starts: int = 1,
) -> TermChoice:
    """Choose the terms of a model by predicting motions, or parts of a motion, from the others.

    Motions with three gains or more are predicted gain by gain, others in three groups; one motion in three parts. Each
    candidate is tried alone; then, the best first, each is taken up if it lowers the squared error by 1 % and improves
    two thirds of the folds.

    Args:
        model: The model without candidates.
        motions: The motions that the model may be chosen by; motions that it is to be tried on stay apart.
        candidates: Kinds that may be taken up, free in each joint; those of the model by default.
        correlation: As for `dynid.identify_actuators`.
        starts: Number of first guesses of the first fit of every fold.

    Raises:
        ArgumentError: There is no candidate, or a motion is too short.
        EstimationError: The model alone cannot be simulated.

    Example:
        >>> choice = dynid.actuators.select_terms(servo, [sensed], ["offset"])
        >>> choice.chosen, [trial.kinds for trial in choice.trials]
        ((), [(), ('offset',)])
    """
    names = tuple(model.candidates if candidates is None else candidates)
    if not names:
        raise ArgumentError("there are no terms to choose from", remedy='Name some: candidates = ["offset", ...].')
    model = replace(model, candidates=())
    search = _Search(_folds(motions), correlation)
    begun = [fit_servos(model, train, correlation=correlation, starts=starts).model for train, _ in search.folds]
    base = search.tried(begun)
    trials = [TermTrial((), base.rms, 0, True)]
    alone = {name: search.tried(base.models, name) for name in names}
    chosen: tuple[str, ...] = ()
    first = base
    for name in sorted(names, key=lambda name: alone[name].rms):
        tried = alone[name]
        if chosen:
            trials.append(TermTrial((name,), tried.rms, tried.better(first), False))
            tried = search.tried(base.models, name)
        better = tried.better(base)
        gain = 1.0 - (tried.rms / base.rms) ** 2 if base.rms > 0.0 else 0.0
        kept = bool(gain >= LEAST_GAIN and better >= LEAST_SHARE * len(search.folds))
        trials.append(TermTrial((*chosen, name), tried.rms, better, kept))
        if kept:
            base, chosen = tried, (*chosen, name)
    whole = replace(model, parameters=(*model.parameters, *chosen))
    return TermChoice(whole, chosen, tuple(trials), len(search.folds))


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """A model in every fold."""

    models: list[ServoModel]
    """With the values that each fold's training gave."""
    squares: list[float]
    """Mean squared error of each fold's held-out motions."""

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.squares)))

    def better(self, other: _Tried) -> int:
        return sum(mine < his for mine, his in zip(self.squares, other.squares, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Fits and predictions over folds."""

    folds: list[tuple[list[CommandedMotion], list[CommandedMotion]]]
    correlation: float | Literal["loop"]

    def tried(self, models: Sequence[ServoModel], added: str | None = None) -> _Tried:
        """The models, with one more kind or as they are, fitted and tried in every fold."""
        fitted, squares = [], []
        for model, (train, held) in zip(models, self.folds, strict=True):
            if added is not None:
                model = replace(model, parameters=(*model.parameters, added))
                try:
                    model = fit_servos(model, train, correlation=self.correlation).model
                except EstimationError:
                    fitted.append(model)
                    squares.append(float("inf"))
                    continue
            fitted.append(model)
            squares.append(_square(model, held))
        return _Tried(fitted, squares)


def _square(model: ServoModel, motions: Sequence[CommandedMotion]) -> float:
    """Mean squared error of simulated motions; infinite where one runs away."""
    parts = stretches_of(motions)
    try:
        errors = [motion.compared(motion.position - simulate_servos(model, model.start, motion)) for motion in parts]
    except EstimationError:
        return float("inf")
    return float(sum(np.sum(error**2) for error in errors) / max(1, sum(motion.counts.sum() for motion in parts)))


def _folds(motions: Sequence[CommandedMotion]) -> list[tuple[list[CommandedMotion], list[CommandedMotion]]]:
    """Training and held-out motions of every fold."""
    pieces = list(motions)
    if len(pieces) == 1:
        motion = pieces[0]
        pieces = list(motion.windows((motion.time[-1] - motion.time[0]) / FOLDS * (1.0 - 1e-9)))[:FOLDS]
    gains = [None if motion.kp is None else tuple(motion.kp.tolist()) for motion in pieces]
    different = list(dict.fromkeys(gains))
    groups = [different.index(gain) for gain in gains]
    if len(different) < FOLDS:  # with fewer, two thirds of the folds are all of them
        groups = [k % FOLDS for k in range(len(pieces))]
    found = [
        ([piece for piece, group in zip(pieces, groups, strict=True) if group != fold],
         [piece for piece, group in zip(pieces, groups, strict=True) if group == fold])
        for fold in dict.fromkeys(groups)
    ]  # fmt: skip
    if len(found) < 2:
        raise ArgumentError("one short motion cannot be predicted from others", remedy="Give more motions.")
    return found
