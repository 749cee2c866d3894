"""Gautier and Khalil 1992, Tables 3 to 12: errors of the parameters for noise on the energies, on the motion, on both.

Run from the repository's root: ``python tests/campaigns/excitation_noise.py``. Prints the tables as geometric means
over many draws; ends with status 1 where those with noise on the energies alone miss the paper's by more than a factor.
"""

from __future__ import annotations

import sys

import numpy as np

from dynid.excitation.energy_points import EnergyPoints, PointSequence, optimise_points
from dynid.robot.dh import DH, from_dh
from dynid.tables import Table

ROBOT = from_dh([DH(), DH(alpha=-90), DH(d=0.5, r=0.2)], degrees=True, name="three joints")
MODEL = EnergyPoints(ROBOT, lower=-np.pi / 4, upper=np.pi / 4, velocity=0.845)
X = np.array([5.0186, -2.05, 0.7, -1.07, 0.65, 6.55, 4.3, 0.6, 0.7634, 0.6872, 0.55, -0.6, 0.9646, 0.528, 1.14])
"""Table 6; ZZR1 XXR2 XY2 XZR2 YZ2 ZZR2 MXR2 MY2 XXR3 XY3 XZ3 YZ3 ZZ3 MX3 MY3."""
LEVELS = (0.001, 0.01, 0.1)
PAPER = {
    (30, "optimum"): (4.7e-4, 0.007, 0.059),
    (30, "random"): (0.018, 0.161, 1.796),
    (15, "optimum"): (0.0047, 0.05, 0.53),
}


def errors(points: PointSequence, k: float, on_energy: bool, on_motion: bool, rng: np.random.Generator) -> float:
    """Relative error of the parameters for one draw of noise."""
    W, Y = points.W, points.W @ X
    if on_energy:
        Y = Y + k / 4 * np.abs(Y).max() * rng.normal(size=Y.shape)
    if on_motion:
        q = points.q + k / 4 * (MODEL.upper - MODEL.lower) * rng.normal(size=points.q.shape)
        W = MODEL.matrix(q, points.dq + k / 4 * MODEL.velocity * rng.normal(size=points.dq.shape))
    found = np.linalg.lstsq(W, Y, rcond=None)[0]
    return float(np.linalg.norm(found - X) / np.linalg.norm(X))


def random_like_the_paper(count: int, condition: float, rng: np.random.Generator) -> PointSequence:
    """Of many random sequences, the one whose condition number is closest to the paper's."""
    return min(
        (MODEL.random(count, rng) for _ in range(200)), key=lambda p: abs(np.log(p.condition_number / condition))
    )


def main() -> int:
    rng = np.random.default_rng(0)
    rows, good = [], True
    for count, condition in ((30, 1020.0), (15, 3.079e4)):
        sequences = {
            "optimum": optimise_points(MODEL, count, starts=2),
            "random": random_like_the_paper(count, condition, rng),
        }
        for kind, points in sequences.items():
            for noise in ("energy", "motion", "both"):
                draws = [
                    [errors(points, k, noise != "motion", noise != "energy", rng) for _ in range(200)] for k in LEVELS
                ]
                means = np.exp(np.mean(np.log(draws), axis=1))
                rows.append([count, kind, round(points.condition_number, 1), noise, *means])
                if noise == "energy" and (count, kind) in PAPER:
                    ratio = means / PAPER[count, kind]
                    good &= bool(np.all(ratio < 2.5)) and (kind == "optimum" or bool(np.all(ratio > 0.4)))
    header = ["r", "sequence", "cond", "noise on", *(f"k = {k:g}" for k in LEVELS)]
    sys.stdout.write(Table.of(header, rows, digits=3).to_text() + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
