"""Gautier and Khalil 1992: Table 2 (random and optimum sequences) and the equilibrium at r = 30.

Run from the repository's root: ``python tests/campaigns/excitation_papers.py``. Ends with status 1 where a figure is
missed.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dynid.excitation.criteria import ConditionNumber, Equilibrium, GeometricCost
from dynid.excitation.points.energy_points import EnergyPoints, optimise_points
from dynid.robot.formats.dh import DH, from_dh

ROBOT = from_dh([DH(), DH(alpha=-90), DH(d=0.5, r=0.2)], degrees=True, name="three joints")
NARROW = EnergyPoints(ROBOT, lower=-np.pi / 4, upper=np.pi / 4, velocity=0.845)
WIDE = EnergyPoints(ROBOT, lower=-np.pi / 2, upper=np.pi / 2, velocity=0.68)
HALF = np.array([np.pi / 2, np.deg2rad(175) / 2, np.deg2rad(130) / 2])
FITTED = EnergyPoints(ROBOT, lower=-HALF, upper=HALF, velocity=[1.05, 0.37, 1.31])
STARTS = 8


def random_sequences() -> bool:
    good = True
    rng = np.random.default_rng(0)
    table = {15: (2.8e4, 3.0), 20: (2060, 0.25), 30: (949, 0.25), 50: (630, 0.15), 100: (479, 0.10), 500: (427, 0.05)}
    for count, (mean, tolerance) in table.items():
        conditions = [WIDE.random(count, rng).condition_number for _ in range(400)]
        found = float(np.exp(np.mean(np.log(conditions))))
        fits = 1 / tolerance < found / mean < tolerance if tolerance > 1 else abs(found / mean - 1) < tolerance
        low, high = np.quantile(conditions, [0.05, 0.95])
        report(f"random, r = {count}", f"{found:.0f} (5-95 %: {low:.0f}-{high:.0f}), table {mean:g}", fits)
        good &= fits
    return good


def optimum_sequences() -> bool:
    good = True
    cases = [(NARROW, "45 deg", 15, 24), (NARROW, "45 deg", 20, 17), (NARROW, "45 deg", 30, 12)]
    cases += [(FITTED, "fitted limits", r, c) for r, c in ((15, 20), (20, 13), (30, 9), (50, 7), (100, 5), (200, 3.5))]
    for model, name, count, target in cases:
        begun = time.thread_time()
        points = optimise_points(model, count, starts=STARTS)
        spent = (time.thread_time() - begun) / STARTS
        fits = points.condition_number <= target
        report(f"optimum, r = {count}, {name}", f"{points.condition_number:.2f} ({spent:.1f} s a start)", fits)
        good &= fits
    return good


def equilibrium() -> bool:
    good = True
    for model, name, target in ((NARROW, "45 deg", 13), (FITTED, "fitted limits", 13)):
        first = optimise_points(model, 30, starts=STARTS)
        cost = GeometricCost(((1.0, ConditionNumber()), (0.25, Equilibrium())))
        points = optimise_points(model, 30, criterion=cost, starts=2 * STARTS, initial=first)
        fits = points.equilibrium <= 300 and points.condition_number <= target
        report(f"equilibrium, {name}", f"S = {points.equilibrium:.0f} at {points.condition_number:.2f}", fits)
        good &= fits
    return good


def report(what: str, found: str, fits: bool) -> None:
    sys.stdout.write(f"{'ok  ' if fits else 'MISS'} {what}: {found}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    results = [random_sequences(), optimum_sequences(), equilibrium()]
    sys.exit(0 if all(results) else 1)
