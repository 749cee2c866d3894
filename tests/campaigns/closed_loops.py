"""Estimators that simulate the loop, with a law that is told or assumed: how near the truth, and do intervals hold it?

Run ``PYTHONPATH=tests python tests/campaigns/closed_loops.py [--runs 4] [--robots gautier_khalil_3r,puma560]``.
Positions
are low-passed as `dynid.process` does by itself. Each cell is the median error of the torques along another motion, the
share of 95 % intervals that hold the truth, the largest bias in standard deviations, and seconds per estimate.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from time import perf_counter

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np

import dynid
from dynid.estimators.closed_loop.added_loops import SplinedMotion
from support.closed_loops import EVERY, Scene, scene

NOISES = (1e-5, 1e-4, 1e-3)


def methods(chosen: Scene, law: dynid.control_loop.laws.ControlLaw) -> dict[str, dynid.estimators.Estimator]:
    """Least squares, and both closed-loop estimators with the law and the commanded motion told, and without."""
    reference = chosen.loop.reference
    motion = SplinedMotion([(np.arange(len(reference.q)) / reference.rate_hz, reference.q)])
    found: dict[str, dynid.estimators.Estimator] = {"WLS": dynid.WLS()}
    for make in (dynid.estimators.InstrumentalVariables, dynid.estimators.DIDIM):
        told = {"law": law, "rate_hz": reference.rate_hz, "motions": (motion,)}
        found[f"{make.name} told"] = make(**told)
        found[f"{make.name} assumed"] = make()
    return found


def laws(chosen: Scene) -> dict[str, dynid.control_loop.laws.ControlLaw]:
    """A soft and a stiff one, and one that knows the robot roughly."""
    stiff = dynid.control_loop.assumed_law(chosen.robot, 20.0)
    kp = np.asarray(stiff.kp)
    w = 2.0 * np.pi * 6.0
    return {
        "PD": chosen.loop.law,
        "stiff PID": dynid.control_loop.PID(kp=kp, ki=5.0 * kp, kd=stiff.kd),
        "computed torque, model 20 % off": dynid.control_loop.ComputedTorqueLaw(chosen.prior, kp=w**2, kd=2.0 * w),
    }


def log(truth: dynid.control_loop.simulator.LoopSimulation, noise: float, seed: int) -> dynid.Experiment:
    """What is logged of a run."""
    rng = np.random.default_rng(seed)
    q = truth.q + noise * rng.normal(size=truth.q.shape)
    effort = truth.torque + 0.02 * truth.torque.std(axis=0) * rng.normal(size=truth.q.shape)
    return dynid.process(dynid.Recording(time=truth.time, q=q, effort=effort))


def measure(name: str, runs: int) -> None:
    """Print the table of a robot."""
    chosen = scene(name, friction_speed=None)
    clean = scene(name, seed=1).clean()
    for law_name, law in laws(chosen).items():
        truth = dynid.control_loop.simulate_loop(chosen.robot, replace(chosen.loop, law=law), every=EVERY)
        for noise in NOISES:
            problems = [chosen.equations(log(truth, noise, seed)) for seed in range(runs)]
            cells = [f"{name} {outcome(chosen, problems, each, clean)}" for name, each in methods(chosen, law).items()]
            print(f"{name}, {law_name}, {noise:g} rad: {'; '.join(cells)}", flush=True)


def outcome(
    chosen: Scene,
    problems: list[dynid.estimators.Samples],
    estimator: dynid.estimators.Estimator,
    clean: dynid.Experiment,
) -> str:
    """One cell of the table."""
    errors, away, refused, began = [], [], 0, perf_counter()
    for problem in problems:
        try:
            found = estimator.solve(problem)
        except dynid.DynidError:
            refused += 1
            continue
        away.append((found.values - chosen.values) / found.stderr)
        wanted = problem.torque(chosen.values, clean)
        apart = (problem.torque(found.values, clean) - wanted) / wanted.std(axis=0)
        errors.append(100.0 * float(np.sqrt(np.mean(apart**2))))
    said = f", refused {refused}" if refused else ""
    if not errors:
        return "refused"
    bias, seconds = np.abs(np.mean(away, axis=0)).max(), (perf_counter() - began) / len(problems)
    held = 100.0 * np.mean(np.abs(away) < 1.96)
    return f"{np.median(errors):.2g} % ({held:.0f} %, bias {bias:.1f}, {seconds:.1f} s){said}"


def main() -> None:
    """All robots."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--robots", default="gautier_khalil_3r,puma560")
    options = parser.parse_args()
    for name in options.robots.split(","):
        measure(name, options.runs)


if __name__ == "__main__":
    main()
