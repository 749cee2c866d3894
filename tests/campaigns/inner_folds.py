"""Rules of the identification judged inside the training parts of the real logs: no held-out torque is read.

    python tests/campaigns/inner_folds.py [--rules] [data set ...]

Every training run of a data set is cut into four parts of time. Each part is left out in turn; terms, weights and fit
come from the others, and the left-out part judges. Rules of selection and regularisation are compared by these figures:
the standing one, with ``--rules`` also one model in place of the mean, no selection, and runs without own offsets.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from real_data import COMMANDS
from real_logs import DATA, ROOT, SETS

import dynid
from dynid.links.common.common_cutoff import CutoffChoice
from dynid.links.estimators import make_estimator
from dynid.links.identify import identify_experiments, prepare_robot
from dynid.links.log_reader import LogReader
from dynid.links.recipe import Recipe
from dynid.links.validation import validate
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

PARTS = 4
"""Number of parts of a training run (convention)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Training:
    """The training part of a data set at one evaluation cutoff."""

    name: str
    robot: Robot
    recipe: Recipe
    runs: tuple[Experiment, ...]

    def parts(self) -> Iterator[tuple[list[Experiment], list[Experiment]]]:
        """For each part the runs without it, and the part of each run."""
        for part in range(PARTS):
            masks = [(np.arange(run.samples) * PARTS // run.samples == part)[:, None] for run in self.runs]
            pairs = list(zip(self.runs, masks, strict=True))
            train = [replace(run, valid=run.valid & ~mine) for run, mine in pairs]
            yield train, [replace(run, valid=run.valid & mine) for run, mine in pairs]

    def errors(self, recipe: Recipe) -> list[float]:
        """Relative error on each part by a fit of the others [%]."""
        found = []
        for train, held in self.parts():
            fit = identify_experiments(self.robot, train, recipe, make_estimator(recipe, self.robot, [], None))
            found.append(validate(fit, held, trim_s=recipe.trim_s).relative_error)
        return found


def read_training(name: str, **changes: Any) -> list[Training]:
    """Read the training part of a data set as its command does, for each evaluation cutoff."""
    (data,) = (data for data in SETS if data.name == name)
    words = [str(DATA / word[5:]) if word.startswith("DATA/") else word for word in COMMANDS[name]]
    settings: dict[str, Any] = {"gate": False, "judge_rest": True}
    hold, logs, place = {}, [], 1
    while place < len(words):
        key, value = words[place], words[place + 1] if place + 1 < len(words) else ""
        if not key.startswith("--"):
            logs.append(key)
            place += 1
            continue
        if key == "--hold":
            hold[value] = 0.0
        elif key == "--hold-out":
            settings["hold_out"] = value
        elif key == "--set":
            field, text = value.split("=", 1)
            settings[field] = tuple(text.split(",")) if field == "springs" else float(text)
        place += 2
    path = str(ROOT / words[0]) if words[0].startswith("robots/") else words[0]
    robot = dynid.read_urdf(path, hold=hold) if path.endswith("urdf") else dynid.read_mjcf(path)
    channel_map = ROOT / "channel_maps" / f"{name}.toml"
    found = []
    for cutoff in data.cutoffs_hz or (None,):
        band = {} if cutoff is None else {"band_hz": float(cutoff), "trim_s": data.trim_s}
        recipe = Recipe(**settings | band | changes)
        model = prepare_robot(robot, recipe, channel_map)
        reader = LogReader(robot=model, recipe=recipe, channel_map=channel_map)
        choose = CutoffChoice(model, band_hz=recipe.band_hz, terms=recipe.spring_terms(model), base=None)
        runs, _ = reader.training_and_proof(logs, choose=choose)
        title = f"{name} {cutoff:g} Hz" if len(data.cutoffs_hz) > 1 else name
        found.append(Training(name=title, robot=model, recipe=recipe, runs=tuple(runs)))
    return found


def rules(standing: Recipe) -> dict[str, Recipe]:
    """The rules that are compared, by name."""
    one = None if standing.selection is None else replace(standing.selection, average=False)
    return {
        "standing": standing,
        "one model": replace(standing, selection=one),
        "no selection": replace(standing, selection=None),
        "runs share offsets": replace(standing, per_run=()),
    }


def main(words: list[str]) -> None:
    """Print the errors of the standing rule, or of all, on every part."""
    every, names = "--rules" in words, [word for word in words if not word.startswith("--")]
    for name in names or list(COMMANDS):
        for training in read_training(name):
            for rule, recipe in rules(training.recipe).items():
                asked = rule == "standing" or every
                if not asked or (rule == "runs share offsets" and len(training.runs) < 2):
                    continue
                started = time.process_time()
                errors = training.errors(recipe)
                seconds = time.process_time() - started
                figures = " ".join(f"{error:6.3f}" for error in errors)
                mean = np.exp(np.mean(np.log(errors)))
                print(
                    f"{training.name:16s} {rule:18s} mean {mean:6.3f} %  parts {figures}  ({seconds:.1f} s)", flush=True
                )


if __name__ == "__main__":
    main(sys.argv[1:])
