"""Both models on simulated arms whose friction is known: motions unlike the training, and coverage of intervals.

``python tests/campaigns/simulated_friction.py arms [COUNT] [SEED]``: random arms of three to six joints, real friction
(Stribeck, load, presliding), noise, a delay of up to 4 ms; in training one joint stands still and one is slow, in the
test all move. Prints the worst errors of plain and rich model.

``python tests/campaigns/simulated_friction.py coverage [RUNS] [SEED]``: share of the 95 % intervals with the truth,
three robots, plain friction as the truth and real friction as the truth (there of the link parameters alone).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import dynid
from dynid.estimators.rows import torque_of_terms
from dynid.identifiability.base import base_parameters
from dynid.identification.identify import identify_experiments
from dynid.processing.experiment import Experiment
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms import Hysteresis, SmoothSign, Stribeck
from dynid.terms.base import Reference, Term
from dynid.terms.load_dependent import LoadFriction
from estimators.planted import planted_run
from support.random_robots import random_robot

RATE_HZ = 200.0


def with_friction(robot: Robot, rng: np.random.Generator) -> tuple[Robot, tuple[Term, ...]]:
    """A robot with plain friction in proportion to its torques, and what real friction has besides."""
    probe = planted_run(robot, samples=400, amplitude=0.7)
    size = np.sqrt(np.mean(probe.effort**2, axis=0)) + 1e-3
    links = Reference(robot.parameter_vector)
    for name, s in zip(robot.joint_names, size.tolist(), strict=True):
        dry, viscous = s * rng.uniform(0.05, 0.2), s * rng.uniform(0.02, 0.1)
        own = (dynid.RotorInertia(0.02 * s), dynid.Viscous(viscous), dynid.Coulomb(dry), dynid.Offset(0.02 * s))
        robot = robot.with_terms(*own, joints=[name])
    load = Reference(np.concatenate([links.theta[: 10 * robot.dof], np.zeros(4 * robot.dof)]))
    further: list[Term] = []
    for j, s in enumerate(size.tolist()):
        further += [
            Stribeck(s * rng.uniform(0.02, 0.08), joint=j, scale=0.05),
            Hysteresis(s * rng.uniform(0.02, 0.1), joint=j, scale=0.02),
            LoadFriction(rng.uniform(0.01, 0.06), friction=SmoothSign(joint=j, scale=0.02), reference=load),
        ]
    return robot, tuple(further)


def measured(
    robot: Robot, further: tuple[Term, ...], *, motion: int, seed: int, still: bool = False, delay: int = 0
) -> Experiment:
    """A run of the robot: 12 s of a random motion, noise of 2 %; one joint still and one slow, where wanted."""
    amplitude = np.full(robot.dof, 0.7)
    if still:
        amplitude[seed % robot.dof], amplitude[(seed + 1) % robot.dof] = 0.0, 0.03
    run = planted_run(robot, samples=2400, rate_hz=RATE_HZ, amplitude=amplitude, period_s=9.0, motion=motion)
    effort = run.effort + torque_of_terms(robot, further, np.array([term.value for term in further]), run)
    effort = np.roll(effort, delay, axis=0)
    rng = np.random.default_rng(seed)
    noise = 0.02 * np.sqrt(np.mean(effort**2, axis=0) + 1e-9)
    return replace(run, effort=effort + noise * rng.normal(size=effort.shape), joint_names=robot.joint_names)


def believe(robot: Robot, rng: np.random.Generator) -> Robot:
    """The robot as its file has it: masses off by 30 %, no friction."""
    theta = robot.parameter_vector.copy()
    for j in range(robot.dof):
        theta[10 * j : 10 * j + 10] *= np.exp(0.3 * rng.normal())
    theta[10 * robot.dof :] = 0.0
    return robot.with_parameters(theta)


def judge_arms(count: int, first: int) -> None:
    """Random arms that move unlike their training."""
    ratios, errors = [], []
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        arm = random_robot(seed, joints=int(rng.integers(3, 7)), prismatic=False, fixed=False)
        robot, further = with_friction(arm.with_gravity((0.0, 0.0, -9.81)), rng)
        train = measured(robot, further, motion=2 * seed, seed=seed, still=True, delay=int(rng.integers(0, 2)))
        test = measured(robot, further, motion=2 * seed + 1, seed=seed + 1)
        fit = identify_experiments(believe(robot, rng), [train], dynid.Recipe(terms=()), dynid.FeasibleWLS())
        check = dynid.validate(fit, test)
        ratios.append(check.relative_error / check.plain_error)
        errors.append((check.relative_error, check.plain_error))
    rich, plain = np.array(errors).T
    print(f"{count} arms from seed {first}: rich over plain: median {np.median(ratios):.3f}, worst {max(ratios):.3f} "
          f"(limit 1.5); rich error: median {np.median(rich):.1f} %, worst {rich.max():.1f} %; plain: "
          f"median {np.median(plain):.1f} %, worst {plain.max():.1f} % (limit 100)")  # fmt: skip


def count_coverage(runs: int, first: int) -> None:
    """Intervals of three robots, by the truth of their friction."""
    for name in ("ddarm", "scara", "puma560"):
        for real in (False, True):
            rng = np.random.default_rng(1)
            robot, further = with_friction(zoo.get(name).with_terms(), rng)
            base = base_parameters(robot)
            truth = base.project(robot.parameter_vector)
            links = np.array([column < 10 * robot.dof for column in base.columns])
            hits = []
            for seed in range(first, first + runs):
                train = measured(robot, further if real else (), motion=seed, seed=seed)
                believed = believe(robot, np.random.default_rng(seed))
                fit = identify_experiments(believed, [train], dynid.Recipe(terms=()), dynid.FeasibleWLS(), base=base)
                if fit.base.names != base.names:
                    continue  # a tilt that is not there was found
                values, stderr = fit.estimate.values[: base.rank], fit.estimate.stderr[: base.rank]
                counted = np.isfinite(stderr) & ~np.isin(base.names, fit.estimate.prior_dominated)
                counted &= links if real else True
                hits.append(np.where(counted, np.abs(values - truth) <= 1.96 * stderr, np.nan))
            each = np.nanmean(np.array(hits), axis=0)
            kind = "real friction, links" if real else "plain friction, all"
            print(f"{name:8s} {kind:22s} {len(hits)} runs: {100 * np.nanmean(np.array(hits)):.1f} % covered, "
                  f"single ones {100 * np.nanmin(each):.0f} to {100 * np.nanmax(each):.0f} %", flush=True)  # fmt: skip


if __name__ == "__main__":
    what, *numbers = sys.argv[1:] or ["arms"]
    {"arms": judge_arms, "coverage": count_coverage}[what](*map(int, [*numbers, "200", "1"][:2]))
