"""Control experiments with an identified model: `python examples/controller/experiments.py [folder]`.

A PUMA 560 with rotors and friction is identified from a noisy simulated log. Then controllers with the identified
model, with a model whose parameters are wrong by 20 percent, and without a model follow the same fast motion, with
realistic encoders and drives. The script writes docs/control.md and docs/control.svg.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from run import ROTORS

import dynid
from dynid.control.bang_coast_bang import BangCoastBang
from dynid.control.control_simulation import Imperfections
from dynid.control.controllers import ComputedTorque, FeedForward
from dynid.control.experiments import (
    Tracking,
    hold_still,
    robustness,
    track,
    tracking_table,
    with_wrong_parameters,
)
from dynid.control.two_rate import bandwidths, two_rate_study
from dynid.processing.simulation import Noise, simulate_experiment
from dynid.report.chart import Chart, Line, arrange_charts

START = np.array([0.0, -0.5, 0.3, 0.0, 0.2, 0.0])
STROKE = np.array([1.2, 0.9, -1.0, 1.5, 0.8, -1.2])
FLAWS = Imperfections(encoder_step=2 * np.pi / 2**16, torque_noise=0.002)
AGE_S = 0.5e-3  # age of velocities that are differences of encoder counts at 1 kHz
GAINS = {"kp": [2000.0, 2000.0, 800.0, 20.0, 20.0, 20.0], "kd": [200.0, 200.0, 80.0, 2.0, 2.0, 2.0]}


def true_robot() -> dynid.Robot:
    """The PUMA 560 with rotors and viscous friction."""
    arm = dynid.robots.puma560()
    for name, rotor in zip(arm.joint_names, ROTORS, strict=True):
        arm = arm.with_terms(dynid.RotorInertia(rotor), dynid.Viscous(rotor), joints=[name])
    return arm


def identify(robot: dynid.Robot) -> dynid.Robot:
    """Identify the robot from ten seconds of noisy measurements."""
    plan = dynid.design_excitation(  # bounded by effort and not by time, so that every machine finds the same motion
        robot,
        dynid.MotionLimits.from_robot(robot, scale=0.8),
        period_s=10.0,
        harmonics=5,
        seed=0,
        settings=dynid.excitation.SearchSettings(time_limit_s=1e6),
    )
    log = simulate_experiment(
        robot, plan.trajectory, rate_hz=500.0, noise=Noise(position=1e-5, effort=0.1), with_velocity=False
    )
    return dynid.identify(robot, dynid.process(log), dynid.Recipe.bare()).identified


def compensate_age(model: dynid.Robot, move: dynid.Trajectory) -> ComputedTorque:
    """Computed torque that compensates the age of its velocities."""
    return ComputedTorque(model, move, velocity_age_s=AGE_S)


def trackings(robot: dynid.Robot, model: dynid.Robot, move: dynid.Trajectory) -> dict[str, Tracking]:
    """Simulate the same motion under five controllers."""
    wrong = with_wrong_parameters(robot, 0.2)
    nothing = robot.with_parameters(1e-9 * robot.parameter_vector)
    controllers = {
        "computed torque, identified": compensate_age(model, move),
        "computed torque, 20 % wrong": compensate_age(wrong, move),
        "feed-forward + PD, identified": FeedForward(model, move, **GAINS),
        "feed-forward + PD, 20 % wrong": FeedForward(wrong, move, **GAINS),
        "PD alone": FeedForward(nothing, move, **GAINS),
    }
    return {name: track(robot, law, move, imperfections=FLAWS) for name, law in controllers.items()}


def gains(robot: dynid.Robot, model: dynid.Robot, move: dynid.Trajectory, flaws: Imperfections) -> list[float]:
    """Factors by which the tracking error is smaller than with six models whose parameters are wrong by 20 %."""

    def error(known: dynid.Robot) -> float:
        law = compensate_age(known, move) if flaws.encoder_step else ComputedTorque(known, move)
        return float(np.linalg.norm(track(robot, law, move, imperfections=flaws).rms))

    right = error(model)
    return [error(with_wrong_parameters(robot, 0.2, seed)) / right for seed in range(6)]


def picture(runs: dict[str, Tracking]) -> str:
    """Draw the errors of the first three joints over time as SVG."""
    charts = []
    for joint in range(3):
        for kind in ("computed torque", "feed-forward"):
            chosen = {name: run for name, run in runs.items() if name.startswith(kind)}
            lines = tuple(
                Line.of(name.split(", ")[-1], run.simulation.time, 1e3 * run.error[:, joint])
                for name, run in chosen.items()
            )
            charts.append(Chart(f"joint {joint + 1}: {kind}", lines, x_label="time [s]", y_label="error [mrad]"))
    return arrange_charts(charts)


def main(folder: Path) -> None:
    """Run everything, write control.md and control.svg."""
    robot = true_robot()
    model = identify(robot)
    move = dynid.excitation.minimum_jerk(START, START + STROKE, duration_s=0.8)
    jerky = BangCoastBang.within(START, START + STROKE, velocity=np.full(6, 2.5), acceleration=np.full(6, 20.0))
    runs = trackings(robot, model, move)
    ideal, flawed, limit = (
        gains(robot, known, move, flaws) for known, flaws in ((model, Imperfections()), (model, FLAWS), (robot, FLAWS))
    )
    drift = hold_still(robot, model, START)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "control.svg").write_text(picture(runs))
    text = f"""# Control with an identified model

This page is written by `make control`. The robot is a simulated PUMA 560 with rotors and viscous friction, 16-bit
encoders, drives with 0.2 % noise, and control at 1 kHz. Its model was identified from ten seconds of a noisy log. The
motion takes all six joints through about 60 degrees in 0.8 s.

With ideal sensors and drives, computed torque with the identified model has
{min(ideal):.0f} to {max(ideal):.0f} times smaller errors than with parameters that are wrong by 20 % (six draws
of random signs). With these sensors and drives the factor is
{min(flawed):.0f} to {max(flawed):.0f}; with the true model it is {min(limit):.0f} to {max(limit):.0f}.
Velocities are differences of encoder counts and therefore half a period old;
the controller compensates this (`velocity_age_s`).
Released under gravity compensation with the identified model, the arm moves {drift:.1e} rad in one second.

![errors over time](control.svg)

## Tracking errors

{tracking_table(runs).to_markdown()}

## Robustness: errors of computed torque over the error of all parameters ([Atkeson1986] section 4.2.2)

{robustness(robot, move, controller=compensate_age, imperfections=FLAWS).to_markdown()}

The row of 0 % shows the errors with the true model, caused by encoders, drives and the control period. It is one run;
the other rows are medians of three wrong models.

## Two rates: torque error over the background period ([Izaguirre1992] section 3)

{two_rate_study(robot, move).to_table().to_markdown()}

Bandwidths of the signals, if the same motion has discontinuous accelerations (bang, coast, bang):

{bandwidths(robot, jerky).to_table().to_markdown()}
"""
    (folder / "control.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out/control"))
