"""Faults planted in simulated logs: does the gate name them, and does anything wrong get through in silence?

Run ``python tests/campaigns/fault_injection.py [cases] [first seed]``; 1400 cases by default, to which 600 in the logs
of real robots belong (`real_faults.py`). A case is *named* when the report or the error mentions the planted kind. It
is *silent* when there is neither error nor warning, nothing was dropped for it, and a fit of the processed log lies
more than three standard deviations from the fits of clean logs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.errors import DynidError
from dynid.gate.quality import check_recording
from dynid.gate.quick_fit import Samples, with_friction, with_smooth_sign
from dynid.kernels import regressor
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

Floats = NDArray[np.float64]
Rng = np.random.Generator
RATE_HZ = 250.0
DURATION_S = 12.0
ROBOTS = ("puma560", "panda", "ur10", "iiwa14")


@cache
def planted(name: str) -> Robot:
    """The true robot: a zoo arm with friction, 10 % heavier here and lighter there than its model file says."""
    arm = dynid.robots.get(name)
    scale = 1.0 + 0.1 * np.random.default_rng(5).uniform(-1.0, 1.0, arm.dof)
    believed = arm.with_terms(RotorInertia(0.2), Viscous(1.0), Coulomb(2.0), Offset(0.3))
    theta = believed.parameter_vector.copy()
    theta[: 10 * arm.dof] *= np.repeat(scale, 10)
    return believed.with_parameters(theta)


def believed(name: str) -> Robot:
    """What the user has: the arm's model file."""
    return dynid.robots.get(name)


def clean_log(name: str, seed: int, **options: object) -> Recording:
    """A faultless log of the true robot."""
    arm = planted(name)
    limits = [min(abs(j.limits.lower), abs(j.limits.upper), 1.2) for j in arm.moving_joints]
    amplitude = np.array([0.6 * limit if limit > 0.1 else 0.4 for limit in limits])
    path = sum_of_sines(arm.dof, period_s=6.0, harmonics=5, amplitude=amplitude, seed=seed)
    noise = Noise(position=2e-5, velocity=2e-3, effort=0.3)
    return simulate_experiment(
        arm,
        path,
        rate_hz=RATE_HZ,
        duration_s=DURATION_S,
        noise=noise,
        seed=seed,
        **options,  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Fault:
    """A fault: how it is planted, and the words that count as naming it."""

    plant: Callable[[str, int, Rng], Recording]
    names: tuple[str, ...]


def _edited(change: Callable[[dict[str, Floats], Rng], None]) -> Callable[[str, int, Rng], Recording]:
    """A fault that edits the arrays of a clean log."""

    def plant(name: str, seed: int, rng: Rng) -> Recording:
        log = clean_log(name, seed)
        arrays = {key: np.array(getattr(log, key)) for key in ("time", "q", "dq", "effort")}
        change(arrays, rng)
        return replace(log, **arrays)

    return plant


def _holes(channel: str, low: float, high: float) -> Callable[[dict[str, Floats], Rng], None]:
    def change(log: dict[str, Floats], rng: Rng) -> None:
        x = log[channel]
        j = rng.integers(x.shape[1])
        x[rng.random(len(x)) < rng.uniform(low, high), j] = rng.choice([np.nan, np.inf])

    return change


def _spikes(channel: str) -> Callable[[dict[str, Floats], Rng], None]:
    def change(log: dict[str, Floats], rng: Rng) -> None:
        x = log[channel]
        j = rng.integers(x.shape[1])
        rows = rng.choice(np.arange(5, len(x) - 5), size=rng.integers(1, 20), replace=False)
        x[rows, j] = rng.choice([-4.7e226, 1e9, 40.0 * np.ptp(x[:, j]), np.median(x[:, j]) + 3.0 * np.ptp(x[:, j])])

    return change


def _gap(log: dict[str, Floats], rng: Rng) -> None:
    rows = len(log["time"])
    start, length = rng.integers(rows // 15, rows - 3 * rows // 10), rng.integers(5, rows // 5)
    for key in log:
        log[key] = np.delete(log[key], slice(start, start + length), axis=0)


def _loss(log: dict[str, Floats], rng: Rng) -> None:
    keep = np.ones(len(log["time"]), dtype=bool)
    for start in rng.integers(10, len(keep) - 30, size=rng.integers(2, 12)):
        keep[start : start + rng.integers(4, 20)] = False
    for key in log:
        log[key] = log[key][keep]


def _repeated(log: dict[str, Floats], rng: Rng) -> None:
    rows = rng.integers(1, len(log["time"]), size=rng.integers(1, 40))
    log["time"][rows] = log["time"][rows - 1]


def _backward(log: dict[str, Floats], rng: Rng) -> None:
    cut = rng.integers(len(log["time"]) // 4, 3 * len(log["time"]) // 4)
    log["time"][cut:] -= rng.uniform(0.2, 3.0)


def _clock_unit(log: dict[str, Floats], rng: Rng) -> None:
    log["time"] *= rng.choice([1e3, 1e9, 1e6])


def _degrees(channel: str) -> Callable[[dict[str, Floats], Rng], None]:
    def change(log: dict[str, Floats], rng: Rng) -> None:
        for key in ("q", "dq") if channel == "both" else (channel,):
            log[key] *= 180.0 / np.pi

    return change


def _torque_unit(log: dict[str, Floats], rng: Rng) -> None:
    log["effort"] *= rng.choice([1e3, 1e-3, 1e2, 0.05])


def _flip(channel: str) -> Callable[[dict[str, Floats], Rng], None]:
    def change(log: dict[str, Floats], rng: Rng) -> None:
        j = rng.integers(log["q"].shape[1])
        for key in ("q", "dq") if channel == "motion" else (channel,):
            log[key][:, j] *= -1.0

    return change


def _flip_all(log: dict[str, Floats], rng: Rng) -> None:
    log["effort"] *= -1.0


def _swap(channels: tuple[str, ...]) -> Callable[[dict[str, Floats], Rng], None]:
    def change(log: dict[str, Floats], rng: Rng) -> None:
        i, k = rng.choice(log["q"].shape[1], size=2, replace=False)
        for key in channels:
            log[key][:, [i, k]] = log[key][:, [k, i]]

    return change


def _saturate(log: dict[str, Floats], rng: Rng) -> None:
    j = rng.integers(log["effort"].shape[1])
    x = log["effort"][:, j]
    level = np.percentile(np.abs(x - x.mean()), rng.uniform(75.0, 97.0))
    log["effort"][:, j] = np.clip(x, x.mean() - level, x.mean() + level)


def _dead_torque(log: dict[str, Floats], rng: Rng) -> None:
    log["effort"][:, rng.integers(log["effort"].shape[1])] = 0.0


def _frozen(name: str, seed: int, rng: Rng) -> Recording:
    arm = planted(name)
    still = rng.choice(arm.dof, size=rng.integers(1, arm.dof), replace=False)
    amplitude = np.full(arm.dof, 0.6)
    amplitude[still] = 0.0
    path = sum_of_sines(arm.dof, period_s=6.0, amplitude=amplitude, seed=seed)
    noise = Noise(position=2e-5, velocity=2e-3, effort=0.3)
    return simulate_experiment(arm, path, rate_hz=RATE_HZ, duration_s=DURATION_S, noise=noise, seed=seed)


def _wrapped(log: dict[str, Floats], rng: Rng) -> None:
    j = rng.integers(log["q"].shape[1])
    shift = np.median(log["q"][:, j])
    log["q"][:, j] = np.mod(log["q"][:, j] - shift, 2.0 * np.pi) + shift


def _compensated(name: str, seed: int, rng: Rng) -> Recording:
    log = clean_log(name, seed)
    return replace(log, effort=log.effort - dynid.gravity_torque(planted(name), np.ascontiguousarray(log.q)))


def _wall(name: str, seed: int, rng: Rng) -> Recording:
    arm = planted(name)
    directions = [g for g in np.vstack([np.eye(3), -np.eye(3)]) * 9.81 if g[2] >= 0.0]
    log = clean_log(name, seed)
    truth = path_of(name, seed)(np.asarray(log.time))
    extra = dynid.gravity_torque(arm.with_gravity(directions[rng.integers(len(directions))]), truth[0])
    return replace(log, effort=log.effort - dynid.gravity_torque(arm, truth[0]) + extra)


def path_of(name: str, seed: int) -> Callable[[Floats], tuple[Floats, Floats, Floats]]:
    """The motion of `clean_log`."""
    arm = planted(name)
    limits = [min(abs(j.limits.lower), abs(j.limits.upper), 1.2) for j in arm.moving_joints]
    amplitude = np.array([0.6 * limit if limit > 0.1 else 0.4 for limit in limits])
    return sum_of_sines(arm.dof, period_s=6.0, harmonics=5, amplitude=amplitude, seed=seed)


def _late(name: str, seed: int, rng: Rng) -> Recording:
    return clean_log(name, seed, delay_s=float(rng.choice([-1, 1]) * rng.uniform(0.004, 0.05)))


def _load_change(name: str, seed: int, rng: Rng) -> Recording:
    arm = planted(name)
    before = clean_log(name, seed)
    load = dynid.Inertia.from_com(rng.uniform(2.0, 5.0), (0.0, 0.0, 0.1), 0.01 * np.eye(3))
    heavier = arm.with_body("load", parent=arm.moving_joints[-1].child, inertia=load)
    states = [np.ascontiguousarray(x) for x in path_of(name, seed)(np.asarray(before.time))]
    extra = dynid.inverse_dynamics(heavier, *states) - dynid.inverse_dynamics(arm, *states)
    cut = rng.integers(len(extra) // 3, 2 * len(extra) // 3)
    extra[:cut] = 0.0
    return replace(before, effort=before.effort + extra)


def _jitter(name: str, seed: int, rng: Rng) -> Recording:
    return clean_log(name, seed, jitter_s=float(rng.uniform(0.1, 0.3)) / RATE_HZ)


EDITS: dict[str, Callable[[dict[str, Floats], Rng], None]] = {
    "NaN in positions": _holes("q", 0.001, 0.04),
    "NaN in torques": _holes("effort", 0.001, 0.04),
    "too many NaN": _holes("effort", 0.08, 0.9),
    "absurd positions": _spikes("q"),
    "absurd torques": _spikes("effort"),
    "gap": _gap,
    "lost bursts": _loss,
    "repeated stamps": _repeated,
    "backward clock": _backward,
    "clock in ms, us, ns": _clock_unit,
    "degrees": _degrees("both"),
    "degrees per second": _degrees("dq"),
    "torque unit": _torque_unit,
    "torque flipped": _flip("effort"),
    "motion flipped": _flip("motion"),
    "velocity flipped": _flip("dq"),
    "all torques flipped": _flip_all,
    "torques swapped": _swap(("effort",)),
    "joints swapped": _swap(("q", "dq", "effort")),
    "velocities swapped": _swap(("dq",)),
    "saturated": _saturate,
    "dead torque": _dead_torque,
    "wrapped angle": _wrapped,
}
"""Faults that edit the arrays of a log in place; they also go into the logs of real robots."""

FAULTS: dict[str, Fault] = {
    "nothing": Fault(lambda name, seed, rng: clean_log(name, seed), ()),
    "NaN in positions": Fault(_edited(EDITS["NaN in positions"]), ("not-finite",)),
    "NaN in torques": Fault(_edited(EDITS["NaN in torques"]), ("not-finite",)),
    "too many NaN": Fault(_edited(EDITS["too many NaN"]), ("not-finite",)),
    "absurd positions": Fault(_edited(EDITS["absurd positions"]), ("spikes", "unit")),
    "absurd torques": Fault(_edited(EDITS["absurd torques"]), ("spikes",)),
    "gap": Fault(_edited(EDITS["gap"]), ("gap",)),
    "lost bursts": Fault(_edited(EDITS["lost bursts"]), ("gap",)),
    "repeated stamps": Fault(_edited(EDITS["repeated stamps"]), ("repeated-stamp",)),
    "backward clock": Fault(_edited(EDITS["backward clock"]), ("backward-time",)),
    "clock in ms, us, ns": Fault(_edited(EDITS["clock in ms, us, ns"]), ("time-unit",)),
    "jitter": Fault(_jitter, ("jitter",)),
    "degrees": Fault(_edited(EDITS["degrees"]), ("unit",)),
    "degrees per second": Fault(_edited(EDITS["degrees per second"]), ("unit",)),
    "torque unit": Fault(_edited(EDITS["torque unit"]), ("unit",)),
    "torque flipped": Fault(_edited(EDITS["torque flipped"]), ("flipped",)),
    "motion flipped": Fault(_edited(EDITS["motion flipped"]), ("flipped",)),
    "velocity flipped": Fault(_edited(EDITS["velocity flipped"]), ("flipped",)),
    "all torques flipped": Fault(_edited(EDITS["all torques flipped"]), ("flipped",)),
    "torques swapped": Fault(_edited(EDITS["torques swapped"]), ("swapped",)),
    "joints swapped": Fault(_edited(EDITS["joints swapped"]), ("swapped", "unit")),
    "velocities swapped": Fault(_edited(EDITS["velocities swapped"]), ("swapped",)),
    "late torque": Fault(_late, ("unsynchronised",)),
    "saturated": Fault(_edited(EDITS["saturated"]), ("saturated",)),
    "dead torque": Fault(_edited(EDITS["dead torque"]), ("frozen",)),
    "frozen joints": Fault(_frozen, ("frozen", "low-excitation")),
    "wrapped angle": Fault(_edited(EDITS["wrapped angle"]), ("wrapped",)),
    "gravity-compensated": Fault(_compensated, ("gravity-compensated", "gravity-direction")),
    "wall mounted": Fault(_wall, ("gravity-direction",)),
    "load changed": Fault(_load_change, ("change",)),
}


def fitted_torque(name: str, log: Recording) -> Floats:
    """Torque (100 n,) at fixed random states, predicted with parameters fitted to the processed log."""
    model = with_friction(believed(name))
    experiment = process(log)
    samples = Samples.of(model, experiment, rows=1500)
    if samples is None:
        raise dynid.errors.DataError("too few samples are left")
    Y = with_smooth_sign(regressor(model, samples.q, samples.dq, samples.ddq), samples.sign)[:, samples.used]
    A, b = Y.reshape(-1, Y.shape[2]), samples.effort[:, samples.used].reshape(-1)
    theta = np.linalg.lstsq(A, b, rcond=1e-4)[0]
    states = np.random.default_rng(1).uniform(-0.6, 0.6, size=(3, 100, model.dof))
    return (regressor(model, *states) @ theta).reshape(-1)


@cache
def clean_spread(name: str) -> tuple[Floats, Floats]:
    """Mean and standard deviation of `fitted_torque` over clean logs."""
    fits = np.array([fitted_torque(name, clean_log(name, 900 + seed)) for seed in range(8)])
    return fits.mean(axis=0), fits.std(axis=0, ddof=1)


def run_case(fault: str, name: str, seed: int) -> tuple[bool, bool]:
    """Whether the fault was named, and whether it got through in silence."""
    try:
        log = FAULTS[fault].plant(name, seed, np.random.default_rng(seed))
        report = check_recording(log, believed(name))
    except DynidError as error:
        return any(word in str(error) for word in FAULTS[fault].names), False
    wanted = FAULTS[fault].names
    named = report.clean if fault == "nothing" else any(word in report.codes for word in wanted)
    silent = report.clean and not named and _wrong(name, log)
    return named, silent


def _wrong(name: str, log: Recording) -> bool:
    """Whether a fit of the log is more than three standard deviations off, in the root mean square."""
    try:
        fit = fitted_torque(name, log)
    except DynidError:
        return False
    mean, spread = clean_spread(name)
    return bool(np.sqrt(np.mean(((fit - mean) / np.maximum(spread, 1e-3)) ** 2)) > 3.0)


def print_table(kinds: list[str], count: Counter[str], named: Counter[str], silent: Counter[str], cases: int) -> int:
    """Print what became of every kind; 1 unless nothing was silent and 95 % were named."""
    print(f"{'fault':24s} {'cases':>6s} {'named':>6s} {'silent':>7s}")
    for kind in kinds:
        print(f"{kind:24s} {count[kind]:6d} {named[kind]:6d} {silent[kind]:7d}")
    hits, quiet = (sum(counter[kind] for kind in FAULTS) for counter in (named, silent))
    print(f"named {100 * hits / cases:.1f} %, silently wrong {quiet} of {cases}")
    return int(quiet > 0 or hits < 0.95 * cases)


def main(cases: int, first: int) -> int:
    """Run the campaign and print a table; the exit code says whether it passed."""
    named, silent, count = Counter[str](), Counter[str](), Counter[str]()
    kinds = list(FAULTS)
    for case in range(cases):
        fault, name = kinds[case % len(kinds)], ROBOTS[(case // len(kinds)) % len(ROBOTS)]
        hit, quiet = run_case(fault, name, first + case)
        count[fault] += 1
        named[fault] += hit
        silent[fault] += quiet
        if not hit or quiet:
            print(f"    {fault} on {name}, seed {first + case}: {'SILENT' if quiet else 'not named'}", flush=True)
        if (case + 1) % 100 == 0:
            print(f"{case + 1} cases: {named.total()} named, {silent.total()} silent", flush=True)
    return print_table(kinds, count, named, silent, cases)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(numbers or [1400]), *([0] if len(numbers) < 2 else [])))
