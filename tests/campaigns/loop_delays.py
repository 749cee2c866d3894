"""Delays planted in the torques of PD loops with dry friction: are they inside their intervals?

    python tests/campaigns/loop_delays.py [cases] [first seed]

Each case simulates one of three robots under a PD law at 1 kHz, with dry friction of up to about a third of the
torques, logs it at 100 to 500 Hz with noise, moves the torques by -10 to 20 ms, and estimates the delay with the
robot's equations (`model_delay`, as `dynid check` does). The controller holds a torque for 1 ms, so that it acts half
a millisecond later than it is stamped.
"""

from __future__ import annotations

import sys

import numpy as np

import dynid
from dynid.gate.model_delay import model_delay
from dynid.logs.recording import Recording
from dynid.loop import Loop, ReferenceMotion, assumed_law, simulate_loop
from dynid.processing.delay import Delay
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines
from dynid.robot.model import Robot

ROBOTS = ("ddarm", "scara", "puma560")
CONTROL_HZ = 1000.0
DURATION_S = 12.0
START = 200
"""Control periods at the start of each run that are not logged."""
WANTED = 0.95
"""Share of the planted delays that the 95 % intervals must hold (issue 23)."""
TWO_SIDED = 1.96
"""Standard errors of a 95 % interval."""


def planted_log(case: int, first: int = 0, *, delay_s: float | None = None) -> tuple[Robot, Recording, float]:
    """The robot that a user has, the log of one case, and its delay [s] (a random one unless it is given)."""
    rng = np.random.default_rng((first, case))
    arm = dynid.robots.get(ROBOTS[case % len(ROBOTS)]).with_terms()
    amplitude = np.where([joint.kind == "prismatic" for joint in arm.moving_joints], 0.15, 0.7)
    path = sum_of_sines(arm.dof, amplitude=amplitude, seed=first + case)
    reference = ReferenceMotion.of(path, rate_hz=CONTROL_HZ, duration_s=DURATION_S)
    q, dq, ddq = (np.ascontiguousarray(x) for x in path(np.arange(0.0, DURATION_S, 0.02)))
    size = dynid.inverse_dynamics(arm, q, dq, ddq).std(axis=0)
    truth = arm
    for joint, torque in zip(arm.joint_names, size, strict=True):
        friction = (
            dynid.RotorInertia(0.1),
            dynid.Viscous(0.1 * torque),
            dynid.Coulomb(rng.uniform(0.02, 0.4) * torque),
        )
        truth = truth.with_terms(*friction, joints=[joint])
    loop = Loop(law=assumed_law(truth, rng.uniform(4.0, 12.0)), reference=reference)
    run = simulate_loop(truth, loop)
    late = rng.uniform(-0.01, 0.02)
    late = late if delay_s is None else delay_s
    rows = slice(START, -START, int(rng.choice([2, 4, 10])))
    time = run.time[rows]
    torque = np.column_stack([np.interp(time - late, run.time, column) for column in run.torque.T])
    noise = rng.normal(size=(2, *torque.shape))
    log = Recording(time=time, q=run.q[rows] + 2e-5 * noise[0], effort=torque + 0.01 * size * noise[1])
    return arm, log, late - 0.5 / CONTROL_HZ


def estimated(robot: Robot, log: Recording) -> Delay:
    """The delay as the gate estimates it."""
    return model_delay(robot, process(log, filter_effort=False))[0]


def main(cases: int, first: int) -> int:
    """Run the campaign and print a table; the exit code says whether it passed."""
    errors = np.empty((cases, 2))
    for case in range(cases):
        robot, log, late = planted_log(case, first)
        found = estimated(robot, log)
        errors[case] = found.seconds - late, found.stderr_s
        if abs(errors[case, 0]) > TWO_SIDED * found.stderr_s:
            print(
                f"    {robot.name}, case {case}: {1e3 * found.seconds:.2f} +- {1e3 * found.stderr_s:.2f} ms for "
                f"{1e3 * late:.2f} ms", flush=True,
            )  # fmt: skip
    print("robot      cases  mean error  rms error  median standard error [ms]  covered")
    for k, name in enumerate(ROBOTS):
        error, spread = 1e3 * errors[k :: len(ROBOTS)].T
        held = np.mean(np.abs(error) <= TWO_SIDED * spread)
        print(
            f"{name:10s} {error.size:5d} {error.mean():11.2f} {np.sqrt(np.mean(error**2)):10.2f} "
            f"{np.median(spread):27.2f} {100 * held:7.1f} %"
        )
    covered = float(np.mean(np.abs(errors[:, 0]) <= TWO_SIDED * errors[:, 1]))
    print(f"covered: {100 * covered:.1f} % of {cases}")
    return int(covered < WANTED)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(numbers or [200]), *([0] if len(numbers) < 2 else [])))
