"""From recordings to the experiments of an identification: one set of choices for what is fitted and what is judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from dynid.errors import ArgumentError
from dynid.gate.model_delay import resolve_delay
from dynid.links.hold_out import HoldOut, mask_training, split_recording
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Chain, Processing, process
from dynid.processing.rest import Rest
from dynid.processing.uniform import Cleaning
from dynid.robot.model import Robot

__all__ = ["Preparation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What is done to every recording before it is fitted or judged; the rest is as `dynid.process` does by itself."""

    cutoff_hz: float | Literal["auto"] | None = "auto"
    """Low-pass of the positions [Hz]; "auto" is what suits their noise, within 1.5 and 3 times the band."""
    band_hz: float | None = None
    """Upper end of the band in which torques are to be explained [Hz]; None for all there is."""
    dead_band: float = 0.0
    """Rows of a joint slower than this count nowhere [rad/s or m/s]."""
    delay_s: float | Literal["auto"] = 0.0
    """How late torques are stamped [s]."""
    robot: Robot | None = field(default=None, repr=False)
    """Whose equations tell the delay, where it is to be found; without it, functions that suit any robot."""
    max_gap_s: float | None = None
    """Longest step that is no gap [s]; three sampling periods by default."""
    rest: Rest | None = field(default_factory=Rest)
    """Which standstill does not count; None for none."""
    trim_s: float | Literal["auto"] = "auto"
    """Time cut off at both ends of every stretch [s]; "auto" is the settling time of the low-pass."""

    def __post_init__(self) -> None:
        """Refuse a band that is none."""
        if self.band_hz is not None and not self.band_hz > 0.0:
            raise ArgumentError(f"band_hz is {self.band_hz}", remedy="Give the upper end of the band [Hz], or None.")

    def experiment(self, recording: Recording) -> Experiment:
        """The experiment of a whole recording."""
        return self._processed(recording)[0]

    def chosen_cutoff(self, recording: Recording) -> float | None:
        """The low-pass of the positions that suits a recording [Hz]."""
        chosen = self._processed(recording, _missing(recording))[1].cutoff_hz
        assert not isinstance(chosen, str)
        return chosen

    def parts(self, recording: Recording, rule: HoldOut, *, judge_rest: bool = False) -> tuple[Experiment, Experiment]:
        """What to identify from, and what is kept aside: prepared as the first part, seen alone, suggests.

        Args:
            recording: The log.
            rule: What is kept aside.
            judge_rest: Whether standstill counts in what is kept aside, as it never does in what is fitted.
        """
        training, held = split_recording(recording, rule)
        fitted, chosen = self._processed(training, _taken_out(recording, training))
        like = replace(self, cutoff_hz=chosen.cutoff_hz, delay_s=chosen.effort_delay_s)
        return fitted, mask_training(like.to_judge(judge_rest).experiment(held), recording, rule)

    def to_judge(self, judge_rest: bool) -> Preparation:
        """The same for data that are not fitted but judged by.

        What the ends of a comparison in a band leave out is enough: nothing is cut off before.

        Args:
            judge_rest: Whether standstill counts, as it never does in what is fitted.
        """
        trim: float | Literal["auto"] = "auto" if self.band_hz is None else 0.0
        return replace(self, rest=None if judge_rest else self.rest, trim_s=trim)

    def _processed(self, recording: Recording, taken_out: float = 0.0) -> tuple[Experiment, Processing]:
        """The experiment, and the choices made for it; a share of the torques may have been taken out on purpose."""
        options = self.options(taken_out)
        if recording.isolated:
            return process(recording, options), options
        options, delay = resolve_delay(recording, options, self.robot)
        chain = Chain.start(recording, options)
        experiment = chain.experiment()
        return (replace(experiment, recipe=(delay, *experiment.recipe)) if delay else experiment), chain.options

    def options(self, taken_out: float = 0.0) -> Processing:
        """The choices as `process` and `process_stream` know them, cutoff and delay still to be found.

        Args:
            taken_out: Share of the torques that was taken out on purpose.
        """
        return Processing(
            cutoff_hz=self.cutoff_hz,
            band_hz=self.band_hz,
            dead_band=self.dead_band,
            effort_delay_s=self.delay_s,
            rest=self.rest,
            trim_s=self.trim_s,
            cleaning=Cleaning(max_gap_s=self.max_gap_s),
        ).allowing_missing(taken_out)


def _taken_out(whole: Recording, part: Recording) -> float:
    """Share of a part's torques that the whole recording has."""
    return max(0.0, _missing(part) - _missing(whole))


def _missing(recording: Recording) -> float:
    """Largest share of a joint's torques that are no numbers."""
    if recording.effort is None or not recording.effort.size:
        return 0.0
    return float(np.isnan(recording.effort).mean(axis=0).max())
