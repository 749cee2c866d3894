"""Random robots, some with very tight limits: a feasible motion, or an error that names the limits in conflict.

Run from the repository's root: ``python tests/campaigns/excitation_robots.py --count 100``. Ends with status 1 on any
other outcome.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "excitation"))
from conftest import all_limits, arm

from dynid.errors import ExcitationError
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import SearchSettings
from dynid.excitation.limits import MotionLimits


def outcome(seed: int) -> str:
    robot = arm(seed, joints=4 + seed % 4, tight=seed % 2 == 1)
    limits = all_limits(robot) if seed % 3 == 0 else MotionLimits.from_robot(robot)
    try:
        plan = design_excitation(robot, limits, seed=seed, settings=SearchSettings(starts=1, iterations=25, outer=6))
    except ExcitationError as error:
        named = any(name in str(error) for name in (*robot.joint_names, robot.bodies[-1].joint.child))
        sys.stdout.write(f"{seed}: {error}\n")
        return "conflict named" if named else "conflict NOT named"
    times, _ = plan.trajectory.grid(5000)
    worst = min(m.relative for m in measure_margins(build_constraints(robot, limits), plan.trajectory.motion(times)))
    sys.stdout.write(f"{seed}: condition number {plan.condition_number:.3g}, smallest margin {worst:.2g}\n")
    return "feasible" if worst > -1e-4 else "limit BROKEN"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    begun = time.monotonic()
    found = Counter(outcome(seed) for seed in range(parser.parse_args().count))
    sys.stdout.write(f"{dict(found)} in {time.monotonic() - begun:.0f} s\n")
    sys.exit(1 if any(np.char.isupper(word) for name in found for word in name.split()) else 0)
