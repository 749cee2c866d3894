"""How fast: the TX40's log from files on disk to a validated result, and one feasible solve for seven links.

Run ``python tests/campaigns/identification_speed.py``; prints seconds of one core, best of five, once all is compiled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

from real_logs import DATA, SETS, tx40

import dynid
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.estimation.selection import ForwardSelection
from dynid.links.log_reader import LogReader
from dynid.processing.simulation import sum_of_sines

BEST_OF = 5


def best(task: Callable[[], object]) -> float:
    """Seconds of one core, best of several, after one run that compiles."""
    task()
    times = []
    for _ in range(BEST_OF):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def tx40_to_verdict(select: ForwardSelection | None) -> dynid.Validation:
    """Read, process, identify physically consistent, validate on every third block: what `dynid identify` does."""
    data, robot = SETS[0], tx40()
    recipe = dynid.Recipe.bare(band_hz=30.0, dead_band=data.dead_band, judge_rest=True, selection=select)
    reader = LogReader(robot=robot, recipe=replace(recipe, hold_out="every:3:0.75", gate=False))
    (used,), (kept,) = reader.training_and_proof(data.recordings(robot)[:1])
    return dynid.validate(dynid.identify(robot, used, recipe), kept)


def feasible_solve() -> Callable[[], object]:
    """The cone program of a Panda with friction, already reduced."""
    robot = dynid.robots.panda().with_terms(
        dynid.RotorInertia(0.1), dynid.Viscous(0.5), dynid.Coulomb(0.4), dynid.Offset(0.1)
    )
    path = sum_of_sines(robot.dof, amplitude=0.6, seed=1)
    log = dynid.simulate_experiment(robot, path, rate_hz=500.0, duration_s=10.0, noise=dynid.Noise(effort=0.1), seed=0)
    problem = dynid.estimation.build_equations(robot, dynid.process(log))
    factor = problem.information.weight(refined_weights(problem))
    return lambda: feasible_parameters(problem, factor, 1.0, FeasibleWLS(prior_weight=1.0))


def main() -> None:
    """Print both figures."""
    print(f"feasible solve, 7 links: {1e3 * best(feasible_solve()):.1f} ms")
    if DATA.is_dir():
        for what, select in (("as it is", None), ("terms selected", ForwardSelection())):
            seconds = best(lambda select=select: tx40_to_verdict(select))  # type: ignore[misc]
            print(
                f"tx40, 45 000 samples from disk to verdict, {what}: {seconds:.2f} s; {tx40_to_verdict(select).verdict}"
            )


if __name__ == "__main__":
    main()
