"""A fleet of simulated arms with planted differences: how many are found, and how many arms are accused falsely.

Run ``python tests/campaigns/fleet_differences.py`` (``--arms 100 --fleets 5 --robot puma560 --logs 1``). In every fleet
one arm has 30 % more dry friction in one joint, another holds a tool of 0.5 kg; the friction of all arms scatters by
5 %, their offsets by 0.2 N m. Also printed: how much better shared parameters are known than by one arm, and how
far they are from the truth.
"""

from __future__ import annotations

import argparse

import numpy as np

from dynid.fleet import identify_fleet
from dynid.links.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.parameters.layout import parameter_layout
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

FRICTION_SCATTER, OFFSET_SCATTER = 0.05, 0.2
WORN, TOOL_KG = 1.3, 0.5


def plant(robot: Robot, rng: np.random.Generator, worn: str = "", load_kg: float = 0.0) -> Robot:
    """One arm of the fleet."""
    layout = parameter_layout(robot)
    theta = robot.parameter_vector.copy()
    for place in range(10 * robot.dof, theta.size):
        if layout.names[place].startswith("OFF"):
            theta[place] = OFFSET_SCATTER * rng.standard_normal()
        else:
            theta[place] *= 1.0 + FRICTION_SCATTER * rng.standard_normal()
        if layout.names[place] == worn:
            theta[place] *= WORN
    c = np.array([0.02, 0.01, 0.08])
    inertia = load_kg * (c @ c * np.eye(3) - np.outer(c, c))
    last = 10 * (robot.dof - 1)
    theta[last : last + 10] += [*inertia[np.triu_indices(3)], *(load_kg * c), load_kg]
    return robot.with_parameters(theta)


def record(robot: Robot, seed: int) -> Recording:
    """Twenty seconds of motion at 100 Hz."""
    motion = sum_of_sines(robot.dof, period_s=10.0, harmonics=5, amplitude=0.6, seed=seed)
    return simulate_experiment(
        robot, motion, rate_hz=100.0, duration_s=20.0, noise=Noise(position=1e-5, effort=0.3), seed=seed
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, default=100)
    parser.add_argument("--fleets", type=int, default=5)
    parser.add_argument("--robot", default="puma560")
    parser.add_argument("--logs", type=int, default=1, help="logs of each arm; with several they are compared too")
    options = parser.parse_args()
    robot = zoo.get(options.robot).with_terms(Viscous(1.0), Coulomb(2.0), Offset(0.0))
    worn_found = tools_found = accused = clean = 0
    masses, ratios, scores = [], [], []
    for fleet in range(options.fleets):
        rng = np.random.default_rng(fleet)
        worn, loaded = rng.choice(options.arms, 2, replace=False).tolist()
        joint = f"FC{int(rng.integers(robot.dof)) + 1}"
        planted = [plant(robot, rng, joint if k == worn else "", TOOL_KG if k == loaded else 0.0)
                   for k in range(options.arms)]  # fmt: skip
        logs = {
            f"arm{k:03d}": [record(one, 1000 * fleet + k + 100000 * log) for log in range(options.logs)]
            for k, one in enumerate(planted)
        }
        found = identify_fleet(robot, logs, Recipe.bare(gate=False, cutoff_hz=12.0))
        told = {arm.name: {(d.kind, d.what) for d in arm.differences} for arm in found.arms}
        worn_found += ("own", joint) in told[f"arm{worn:03d}"]
        loads = [d for d in found.arms[loaded].differences if d.kind == "load"]
        tools_found += bool(loads)
        masses += [d.sentence for d in loads]
        others = [arm for k, arm in enumerate(found.arms) if k not in (worn, loaded)]
        accused, clean = accused + sum(bool(arm.differences) for arm in others), clean + len(others)
        truth = (found.typical.base.grouping @ robot.parameter_vector)[list(found.pool.shared_places)]
        scores += ((found.pool.shared - truth) / found.pool.std).tolist()
        single = [np.sqrt(np.diagonal(found.pool.of_arms([k])[1])) for k in range(min(10, options.arms))]
        ratios.append(float(np.median(np.median(single, axis=0) / found.pool.std)))
        print(f"fleet {fleet}: {joint} of arm{worn:03d}, tool on arm{loaded:03d}; "
              f"{ {name: sorted(what) for name, what in told.items() if what} }", flush=True)  # fmt: skip
    print(f"{options.fleets} fleets of {options.arms} arms of {options.robot}, {options.logs} logs of each")
    print(f"friction found {worn_found} of {options.fleets}, tool found {tools_found} of {options.fleets}")
    print(f"clean arms accused: {accused} of {clean} ({100.0 * accused / clean:.2f} %)")
    print(f"shared parameters known {np.median(ratios):.1f} times better than by one arm; "
          f"{100.0 * np.mean(np.abs(scores) < 1.96):.1f} % of their 95 % intervals hold the truth")  # fmt: skip
    for sentence in masses:
        print(f"  {sentence}")


if __name__ == "__main__":
    main()
