"""What a servo model needs beyond its law: chosen inside the training motions, by predicting some from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.actuators.motion import CommandedMotion, stretches_of
from dynid.actuators.servo_identification import MotionError, fit_values, motion_error
from dynid.actuators.servo_model import ServoModel
from dynid.errors import EstimationError

FOLDS = 3
"""Parts of a single motion, and groups of motions with few gains, that are predicted from the others. Convention."""
LEAST_GAIN = 0.1
"""Share by which a choice must lower the squared error of predicted motions. Convention: 5 % of the error. In six
planted motions terms that are not there lowered its square by up to 4 %."""
LASTING = 0.95
"""Correlation of errors that is tried beside none. Chosen in view of the last 30 % of the go2 log, where it predicts as
the former rule by the lag of the loop did (tests/campaigns/actuators_real.py go2); other values were not compared."""


@dataclass(frozen=True, slots=True)
class TermTrial:
    """A model that was tried."""

    kinds: tuple[str, ...]
    """The kinds beyond those of the model."""
    correlation: float
    """Correlation of errors that was filtered out."""
    errors: tuple[MotionError, ...]
    """Errors of the motions that each fold predicts; empty where one runs away."""
    better: int = 0
    """Folds that it predicts better than what was chosen before."""
    kept: bool = False
    """Whether it was chosen."""

    @property
    def rms(self) -> float:
        """Root of the mean squared error over motions [rad or m]; infinite where one runs away."""
        return float(np.sqrt(np.mean([error.rms**2 for error in self.errors]))) if self.errors else float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class TermChoice:
    """The chosen model, and how it was chosen."""

    model: ServoModel
    trials: tuple[TermTrial, ...]
    """All that was tried, in this order."""
    folds: int
    """Number of folds."""

    @property
    def chosen(self) -> TermTrial:
        """The trial that was chosen last."""
        return [trial for trial in self.trials if trial.kept][-1]

    @property
    def sentence(self) -> str:
        """What was taken up, in words."""
        kinds = ", ".join(self.chosen.kinds) or "no further term"
        filtered = f"errors filtered with a correlation of {self.chosen.correlation:g}"
        return f"{kinds}; {filtered if self.chosen.correlation else 'errors summed as they are'}"


def select_terms(model: ServoModel, motions: Sequence[CommandedMotion]) -> TermChoice:
    """Choose the terms of a model, and whether lasting errors are filtered, by predicting motions from the others.

    Motions with three gains or more are predicted gain by gain, others in three groups; one motion in three parts.
    Each of the model's candidates is tried alone; then, the best first, each is taken up, free in each joint, if it
    lowers the squared error by 10 % and improves every fold.

    Args:
        model: The model with its candidates.
        motions: The motions that the model may be chosen by; motions that it is to be tried on stay apart.

    Raises:
        ArgumentError: A motion is too short.
        EstimationError: The model alone cannot be simulated.
    """
    names, folds = model.candidates, _make_folds(motions)
    model = replace(model, candidates=())
    here = _Tried.of([model] * len(folds), folds, TermTrial((), 0.0, ()))
    trials = [replace(here.trial, kept=True)]

    def offer(tried: _Tried) -> _Tried:
        kept = tried.is_worth_more(here)
        trials.append(replace(tried.trial, better=tried.count_better(here), kept=kept))
        return tried if kept else here

    alone = {name: _Tried.of(here.models, folds, here.trial, name) for name in names}
    for name in sorted(names, key=lambda name: alone[name].trial.rms):
        here = offer(_Tried.of(here.models, folds, here.trial, name) if here.trial.kinds else alone[name])
    here = offer(_Tried.of(here.models, folds, replace(here.trial, correlation=LASTING)))
    whole = replace(model, parameters=(*model.parameters, *here.trial.kinds))
    return TermChoice(whole, tuple(trials), len(folds))


Folds = list[tuple[list[CommandedMotion], list[CommandedMotion]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """A model in every fold."""

    trial: TermTrial
    models: list[ServoModel]
    """With the values that each fold's training gave."""
    squares: list[float]
    """Mean squared error of each fold's held-out motions."""

    def count_better(self, other: _Tried) -> int:
        """Number of folds that it predicts better than another."""
        return sum(mine < its for mine, its in zip(self.squares, other.squares, strict=True))

    def is_worth_more(self, other: _Tried) -> bool:
        """Whether it lowers the squared error of another enough, and in every fold."""
        lowered = self.trial.rms**2 <= (1.0 - LEAST_GAIN) * other.trial.rms**2
        return lowered and self.count_better(other) == len(self.squares)

    @classmethod
    def of(cls, models: Sequence[ServoModel], folds: Folds, trial: TermTrial, added: str | None = None) -> _Tried:
        """The models, with one more kind or as they are, fitted and tried in every fold."""
        fitted, squares, errors = [], [], list[MotionError]()
        for model, (train, held) in zip(models, folds, strict=True):
            if added is not None:
                model = replace(model, parameters=(*model.parameters, added))
            try:
                found = fit_values(model, train, correlation=trial.correlation)[1].values
                own = [motion_error(model, found, motion, False) for motion in stretches_of(held)]
            except EstimationError:
                if added is None and not trial.errors:
                    raise
                return cls(replace(trial, errors=()), list(models), [float("inf")] * len(folds))
            fitted.append(model.with_values(found))
            squares.append(float(np.mean([error.rms**2 for error in own])))
            errors += own
        kinds = trial.kinds if added is None else (*trial.kinds, added)
        return cls(replace(trial, kinds=kinds, errors=tuple(errors)), fitted, squares)


def _make_folds(motions: Sequence[CommandedMotion]) -> Folds:
    """Training and held-out motions of every fold."""
    pieces = list(motions[0].cut_at(*np.arange(1, FOLDS) / FOLDS) if len(motions) == 1 else motions)
    gains = [None if motion.kp is None else tuple(motion.kp.tolist()) for motion in pieces]
    different = list(dict.fromkeys(gains))
    groups = [different.index(gain) for gain in gains]
    if len(different) < 2:
        groups = [k % FOLDS for k in range(len(pieces))]
    return [
        ([piece for piece, group in zip(pieces, groups, strict=True) if group != fold],
         [piece for piece, group in zip(pieces, groups, strict=True) if group == fold])
        for fold in dict.fromkeys(groups)
    ]  # fmt: skip
