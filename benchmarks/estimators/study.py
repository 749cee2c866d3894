"""Trials of all methods under all conditions, and summaries of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.estimators.compared_methods import Method, method
from benchmarks.estimators.condition import Condition
from benchmarks.estimators.trial import Setting, Trial, check_length, make_trial
from dynid.engines.engine_names import make_engine
from dynid.errors import ArgumentError, DynidError
from dynid.estimation.estimate import Estimate
from dynid.parameters.base import base_parameters

Progress = Callable[[int, int, str], None]
"""Called with the number of finished trials, the number of all trials, and the condition of the last one."""
Trials = dict[int, list[tuple["Outcome", ...]]]
"""Outcomes of the trials by the index of the condition: one per method, then ordinary least squares once more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One method on one trial."""

    method: str
    refused: str = ""
    """Why there is no estimate; empty if there is one."""
    error: float = np.inf
    """Relative error of the base parameters [%]"""
    deviations: tuple[float, ...] = ()
    """(b,) errors over their stated standard deviations"""
    torque_error: float = np.inf
    """Relative torque error on another motion [%]"""
    position_error: float = np.inf
    """Root mean square position error of the simulated loop on another motion [rad or m]"""
    seconds: float = 0.0
    """Processor time [s]"""
    iterations: float = np.nan
    simulations: float = np.nan
    warned: bool = False
    """Whether the estimate doubts the control law."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """One method under one condition, all runs together."""

    condition: Condition
    method: str
    runs: int
    refused: int
    error: float
    """Median relative error of the base parameters [%]"""
    bias: float
    """Largest mean error of a parameter over its stated standard deviation"""
    coverage: float
    """Share of 95 % intervals that contain the truth [%]"""
    torque_error: float
    """Median [%]"""
    position_error: float
    """Median [rad or m]"""
    relative_time: float
    """Median time, relative to ordinary least squares on the same log"""
    iterations: float
    simulations: float
    warned: int
    """Runs in which the estimate doubts the control law"""
    reason: str
    """Reason of the first run without an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """A finished comparison."""

    robot: str
    parameters: int
    methods: tuple[str, ...]
    conditions: tuple[Condition, ...]
    runs: int
    duration_s: float
    summaries: tuple[Summary, ...]

    def of(self, condition: Condition, name: str) -> Summary:
        """One method under one condition."""
        return next(s for s in self.summaries if s.condition == condition and s.method == name)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "robot": self.robot,
            "parameters": self.parameters,
            "runs": self.runs,
            "duration_s": self.duration_s,
            "methods": {name: method(name).title for name in self.methods},
            "results": [asdict(summary) for summary in self.summaries],
        }


def run_study(
    setting: Setting,
    conditions: Sequence[Condition],
    methods: Sequence[str],
    *,
    runs: int = 20,
    seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Progress | None = None,
) -> Study:
    """Compare methods.

    Args:
        setting: The robot and its motion.
        conditions: Conditions of the logs.
        methods: Short names; see `benchmarks.estimators.compared_methods`.
        runs: Logs per condition, with different noise and initial parameters.
        seed: Seed of the first log; each further log adds one.
        jobs: Number of processes.
        scheduler: Address of a Dask cluster that runs the trials instead.
        tell: Called after each trial.
    """
    chosen = tuple(method(name) for name in dict.fromkeys(methods))
    if runs < 1 or jobs < 1 or not chosen or not conditions:
        raise ArgumentError("a comparison needs at least one method, condition, run and job")
    if seed < 0:
        raise ArgumentError(f"seed is {seed}", remedy="Give zero or a positive number.")
    for condition in conditions:
        check_length(setting, condition)
    tasks = [(place, seed + run) for place in range(len(conditions)) for run in range(runs)]
    found: Trials = {place: [] for place in range(len(conditions))}
    order = run_trials(setting, conditions, chosen, tasks, jobs, scheduler)
    for done, (place, _, outcomes) in enumerate(order, start=1):
        found[place].append(outcomes)
        if tell is not None:
            tell(done, len(tasks), conditions[place].label)
    return summarise(setting, conditions, chosen, found)


def summarise(setting: Setting, conditions: Sequence[Condition], methods: Sequence[Method], found: Trials) -> Study:
    """Summarise the trials of each condition and method."""
    summaries = [
        _summarise_method(
            condition, entry.name, [outcomes[k] for outcomes in found[place]], [o[-1] for o in found[place]]
        )
        for place, condition in enumerate(conditions)
        for k, entry in enumerate(methods)
    ]
    return Study(
        robot=setting.robot.name,
        parameters=base_parameters(setting.robot).rank,
        methods=tuple(entry.name for entry in methods),
        conditions=tuple(conditions),
        runs=min(len(trials) for trials in found.values()),
        duration_s=setting.duration_s,
        summaries=tuple(summaries),
    )


def run_trials(
    setting: Setting,
    conditions: Sequence[Condition],
    methods: tuple[Method, ...],
    tasks: Sequence[tuple[int, int]],
    jobs: int,
    scheduler: str | None = None,
) -> Iterator[tuple[int, int, tuple[Outcome, ...]]]:
    """Run trials; yields (index of the condition, seed, outcomes). With several processes the order may change.

    Args:
        setting: The robot and its motion.
        conditions: The conditions that the tasks refer to.
        methods: Methods, each tried on every log.
        tasks: Index of the condition, and seed.
        jobs: Number of processes.
        scheduler: Address of a Dask cluster that runs the trials instead.
    """
    work = [(setting, conditions[place], methods, place, seed) for place, seed in tasks]
    kind = "dask" if scheduler is not None else "processes" if jobs > 1 else "local"
    with make_engine(kind, workers=jobs if kind == "processes" else None, scheduler=scheduler) as engine:
        for outcome in engine.run(_run_task, work):
            yield outcome.result()


def _run_task(
    work: tuple[Setting, Condition, tuple[Method, ...], int, int],
) -> tuple[int, int, tuple[Outcome, ...]]:
    setting, condition, methods, place, seed = work
    return place, seed, run_trial(setting, condition, methods, seed)


_WARM: set[tuple[str, str, float]] = set()
"""(method, robot, rate) that have run once in this process, so that their kernels are compiled."""


def run_trial(setting: Setting, condition: Condition, methods: tuple[Method, ...], seed: int) -> tuple[Outcome, ...]:
    """Run all methods on one log, and ordinary least squares once more as the unit of time."""
    trial = make_trial(setting, condition, seed)
    outcomes = []
    for entry in (*methods, method("ols")):
        key = (entry.name, setting.robot.fingerprint, condition.rate_hz)
        if key not in _WARM:
            _run_method(entry, trial)
            _WARM.add(key)
        outcomes.append(_run_method(entry, trial))
    return tuple(outcomes)


def _run_method(entry: Method, trial: Trial) -> Outcome:
    started = time.process_time()
    try:
        estimate = entry.solve(trial)
    except (DynidError, np.linalg.LinAlgError) as error:
        return Outcome(method=entry.name, refused=str(error), seconds=time.process_time() - started)
    return _judge(entry, trial, estimate, time.process_time() - started)


def _judge(entry: Method, trial: Trial, estimate: Estimate, seconds: float) -> Outcome:
    difference = estimate.values - trial.truth
    size = float(np.linalg.norm(trial.truth))
    return Outcome(
        method=entry.name,
        error=float(100.0 * np.linalg.norm(difference) / size),
        deviations=tuple((difference / np.maximum(estimate.stderr, 1e-12 * size)).tolist()),
        torque_error=trial.torque_error(estimate.values),
        position_error=trial.position_error(estimate.values),
        seconds=seconds,
        iterations=estimate.extras.get("iterations", np.nan),
        simulations=estimate.extras.get("simulations", np.nan),
        warned=not estimate.codes.isdisjoint({"controller", "law-doubted"}),
    )


def _summarise_method(condition: Condition, name: str, outcomes: list[Outcome], units: list[Outcome]) -> Summary:
    good = [outcome for outcome in outcomes if not outcome.refused]
    deviations = np.array([outcome.deviations for outcome in good])
    times = [o.seconds / max(unit.seconds, 1e-9) for o, unit in zip(outcomes, units, strict=True) if not o.refused]

    def middle(values: list[float]) -> float:
        finite = [value for value in values if not np.isnan(value)]
        return float(np.median(finite)) if finite else float("nan")

    return Summary(
        condition=condition,
        method=name,
        runs=len(outcomes),
        refused=len(outcomes) - len(good),
        error=middle([o.error for o in good]),
        bias=float(np.abs(deviations.mean(axis=0)).max()) if good else float("nan"),
        coverage=float(100.0 * np.mean(np.abs(deviations) < 1.96)) if good else float("nan"),
        torque_error=middle([o.torque_error for o in good]),
        position_error=middle([o.position_error for o in good]),
        relative_time=middle(times),
        iterations=middle([o.iterations for o in good]),
        simulations=middle([o.simulations for o in good]),
        warned=sum(o.warned for o in good),
        reason=next((o.refused for o in outcomes if o.refused), ""),
    )
