"""Logs of which neither law nor commanded motion is told: how near the truth, and do intervals hold it?

Run ``PYTHONPATH=tests python tests/campaigns/assumed_loops.py [--runs 4] [--robots gautier_khalil_3r,puma560]``. The
robots move under laws that the estimators do not know; positions are low-passed as `dynid.process` does by itself.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np

import dynid
from support.closed_loops import EVERY, Scene, scene

METHODS: dict[str, dynid.estimation.Estimator] = {
    "WLS": dynid.WLS(),
    "IV": dynid.estimation.InLoop(estimator=dynid.estimation.InstrumentalVariables()),
    "DIDIM": dynid.estimation.InLoop(estimator=dynid.estimation.DIDIM()),
}
NOISES = (1e-5, 1e-4, 1e-3)


def laws(chosen: Scene) -> dict[str, dynid.loop.ControlLaw]:
    """A soft and a stiff one, and one that knows the robot roughly."""
    stiff = dynid.loop.assumed_law(chosen.robot, 20.0)
    kp = np.asarray(stiff.kp)
    w = 2.0 * np.pi * 6.0
    return {
        "PD": chosen.loop.law,
        "stiff PID": dynid.loop.PID(kp=kp, ki=5.0 * kp, kd=stiff.kd),
        "computed torque, model 20 % off": dynid.loop.ComputedTorqueLaw(chosen.prior, kp=w**2, kd=2.0 * w),
    }


def log(truth: dynid.loop.LoopSimulation, noise: float, seed: int) -> dynid.Experiment:
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
        truth = dynid.loop.simulate_loop(chosen.robot, replace(chosen.loop, law=law), every=EVERY)
        for noise in NOISES:
            problems = [chosen.equations(log(truth, noise, seed)) for seed in range(runs)]
            cells = [f"{method} {outcome(chosen, problems, METHODS[method], clean)}" for method in METHODS]
            print(f"{name}, {law_name}, {noise:g} rad: {'; '.join(cells)}", flush=True)


def outcome(
    chosen: Scene,
    problems: list[dynid.estimation.Samples],
    estimator: dynid.estimation.Estimator,
    clean: dynid.Experiment,
) -> str:
    """Error of the torques along another motion, and the share of the 95 % intervals that hold the truth."""
    errors, held, refused = [], [], 0
    for problem in problems:
        try:
            found = estimator.solve(problem)
        except dynid.DynidError:
            refused += 1
            continue
        held.append(np.abs(found.values - chosen.values) < 1.96 * found.stderr)
        wanted = problem.torque(chosen.values, clean)
        apart = (problem.torque(found.values, clean) - wanted) / wanted.std(axis=0)
        errors.append(100.0 * float(np.sqrt(np.mean(apart**2))))
    said = f", refused {refused}" if refused else ""
    return f"{np.median(errors):.2g} % ({100.0 * np.mean(held):.0f} %){said}" if errors else "refused"


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
