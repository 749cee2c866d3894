"""Lin 1995: minimal linear combinations (theorem 2), operation counts, identification link by link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dynid import DH, BaseParameters, Experiment, Robot, base_parameters, from_dh, inverse_dynamics, robots
from dynid.array_types import Floats
from dynid.estimators import LinkByLink, Samples, build_equations
from dynid.identifiability.numeric import random_states, sample_regressor
from dynid.identifiability.row_space import row_space
from dynid.processing.simulation import sum_of_sines
from dynid.tables import Table
from papers.formulas import Monomials
from papers.lin1995_dynamics import counts, dynamics
from papers.random_robots import random_robot
from papers.report import Part
from papers.verdicts import Forced, Row, count_right, derive, read_printed, row

TITLE = "Lin 1995: minimal linear combinations of the inertia parameters of a manipulator"
_SEVEN = ("U11-U22", "U33", "U12", "U13", "U23", "KX", "KY")


def _robot_with_slides() -> Robot:
    """A robot with prismatic joints between joint r, the first revolute one, and s, the first not parallel to it."""
    rows = [
        DH(),
        DH(alpha=40, d=0.2, sigma=1),
        DH(alpha=-40, d=0.3),
        DH(alpha=90, d=0.1, sigma=1),
        DH(alpha=-90, d=0.15),
        DH(alpha=90, d=0.1, r=0.2),
        DH(alpha=-90, sigma=1),
    ]
    return from_dh(rows, degrees=True, name="slides between r and s")


def _expected() -> dict[str, tuple[Robot, list[str]]]:
    """Robots, and the sets that theorem 2 gives for them by hand: items 1 to 5 with r, s and delta of each robot."""

    def seven(j: int) -> list[str]:
        return [f"{name}{'_' * name.startswith('U')}{j}" for name in _SEVEN]

    def slide(j: int) -> list[str]:
        return [f"{name}{j}" for name in ("MC", "KX", "KY", "KZ")]

    puma = ["U33_1", *(name for j in range(2, 7) for name in seven(j))]
    stanford = ["U33_1", *seven(2), *slide(3), *(name for j in (4, 5, 6) for name in seven(j))]
    moved = ["U33_1", "MC2", "K1_2", "K2_2", "U33_3", "KX3", "KY3", "MC4", "K1_4", "K2_4", "U33_5", "KX5", "KY5"]
    moved += [*seven(6), *slide(7)]
    return {
        "PUMA 560 (r = 1, s = 2)": (robots.puma560(), puma),
        "Stanford arm (r = 1, s = 2, joint 3 slides)": (robots.stanford(), stanford),
        "R P R P R R P (r = 1, s = 6, joints 2 and 4 slide between)": (_robot_with_slides(), moved),
    }


def _rank_and_distance(found: BaseParameters, robot: Robot) -> tuple[int, float]:
    """Rank of the sampled regressor, and distance of the combinations from its row space."""
    Y = sample_regressor(robot, random_states(robot, 60))
    space = row_space(Y.reshape(-1, Y.shape[-1]))
    scaled = found.grouping / space.scale
    scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return space.rank, float(np.abs(scaled - scaled @ space.basis.T @ space.basis).max())


def theorem2(quick: bool = False) -> Part:
    """Check the sets of theorem 2 on named and on random robots."""
    rows = []
    for name, (robot, expected) in _expected().items():
        found = base_parameters(robot, "minimal-combinations")
        rank, error = _rank_and_distance(found, robot)
        rows.append(row(f"theorem 2, {name}", expected, list(found.names)))
        rows.append(
            row(
                f"minimal and complete: {name}",
                "minimal set",
                f"{len(found.names)} combinations; the regressor has rank {rank}; the spaces differ by {error:.0e}",
                len(found.names) == rank and error < 1e-8,
            )
        )
    rng = np.random.default_rng(4)
    number, good = (8, 0) if quick else (40, 0)
    for k in range(number):
        robot = random_robot(rng, int(rng.integers(3, 7)), oblique=k % 2 == 1, upright=k % 4 < 2)
        found = base_parameters(robot, "minimal-combinations")
        rank, error = _rank_and_distance(found, robot)
        good += len(found.names) == rank and error < 1e-8
    claim = row(
        "theorem 2, random robots", "true for every manipulator", f"true for {good} of {number}", good == number
    )
    return Part(
        title="Sets of minimal linear combinations",
        source="theorem 2 (section II), (92)",
        rows=(*rows, claim, _table1(), *_equation92()),
        assumptions="The theorem is read from a damaged scan. We read: delta(j) = 0 only if the axis "
        "of r is parallel to "
        "gravity, all joints before j are parallel to r, and all revolute axes from r to j coincide.",
    )


def _table1() -> Row:
    """Compare Lin's set of the Stanford arm with Gautier and Khalil's: other members of the same space."""
    lin, ours = (base_parameters(robots.stanford(), method) for method in ("minimal-combinations", "auto"))
    change = lin.grouping[:, list(ours.columns)]
    error = float(np.abs(change @ ours.grouping - lin.grouping).max())
    sizes = [int(np.count_nonzero(matrix)) for matrix in (lin.grouping, ours.grouping)]
    return row(
        "Table I: comparison with the set of Gautier and Khalil, Stanford arm",
        "illegible in the scan",
        f"an invertible matrix maps one to the other (error {error:.0e}, condition number "
        f"{np.linalg.cond(change):.3g}); "
        f"Lin's combinations have {sizes[0]} terms, Gautier and Khalil's {sizes[1]}",
        error < 1e-9,
        assumption="assumed: Table I compares the members of both sets. Lin moves first moments and masses across the "
        "prismatic joint, Gautier and Khalil do not",
    )


def _equation92() -> list[Row]:
    """Check (92), the change of the tensor beyond a slide with its length, entry by entry with point masses."""
    points, mass = np.random.default_rng(25).normal(size=(60, 8, 3)), np.random.default_rng(26).uniform(0.1, 1, 8)

    def tensor(x: Floats) -> Floats:
        products = np.einsum("p,kpa,kpb->kab", mass, x, x)
        return np.asarray(np.trace(products, axis1=1, axis2=2)[:, None, None] * np.eye(3) - products)

    along = np.array([0.0, 0.0, 1.0])
    change = (tensor(points + along) - tensor(points - along)) / 2.0  # exact: the tensor is quadratic in the length
    first = np.einsum("p,kpa->ka", mass, points)
    basis = Monomials([["kx", "ky", "kz"]], {f"k{axis}": first[:, a] for a, axis in enumerate("xyz")})
    rows, good = [], 0
    note = "the scan is damaged; the paper itself may be right"
    for a, line in enumerate(read_printed("lin1995")["equation92"]["W"]):
        for b, text in enumerate(line[a:], a):
            was, right = basis.fit_formula(text), basis.fit(change[:, a, b])
            good += was == right
            if was != right:
                rows.append(derive(f"(92): entry {a + 1}{b + 1} of W", basis.text(was), basis.text(right), note=note))
    held = "correct to 1e-9" + ("; the others below" if rows else "")
    return [count_right("(92): correct entries of W", 6, good, note=held), *rows]


def _stanford_runs(trajectories: int, noise: float, samples: int = 400) -> Samples:
    """Build equations from simulated motions of the Stanford arm; its prismatic joint moves about a reach of 0.5 m."""
    robot = robots.stanford()
    runs = []
    for seed in range(trajectories):
        time = np.arange(samples, dtype=np.float64) * 0.02
        q, dq, ddq = sum_of_sines(6, period_s=8.0, amplitude=[1.2, 1.0, 0.15, 1.2, 1.0, 1.2], seed=seed)(time)
        q[:, 2] += 0.5
        effort = inverse_dynamics(robot, q, dq, ddq)
        effort = effort + noise * np.abs(effort).max(axis=0) * np.random.default_rng(seed).normal(size=effort.shape)
        valid, segment = np.ones(q.shape, dtype=bool), np.zeros(samples, dtype=np.int64)
        runs.append(
            Experiment(time=time, q=q, dq=dq, ddq=ddq, effort=effort, valid=valid, segment=segment, rate_hz=50.0)
        )
    return build_equations(robot, runs)


def identification(quick: bool = False) -> Part:
    """Identify the Stanford arm link by link (section IV), without noise and with three noise levels."""
    number = 2 if quick else 5
    clean = _stanford_runs(number, 0.0)
    truth = clean.base.project(clean.robot.parameter_vector)
    errors = []
    tables = []
    for run, blocks in zip(clean.experiments, clean.blocks, strict=True):
        part = replace(clean, excerpts=(run,), information=clean.information.only(*blocks), blocks=(blocks,))
        errors.append(_error(LinkByLink().solve(part).values, truth))
        tables.append([step.condition for step in LinkByLink().steps(part)])
    exciting = all(step.is_persistently_exciting for step in LinkByLink().steps(clean))
    levels = (1e-4, 1e-3, 1e-2)
    spread = [_error(LinkByLink().solve(_stanford_runs(number, level)).values, truth) for level in levels]
    growth = spread[-1] / spread[0] / (levels[-1] / levels[0])
    rows = (
        row(
            "identified values without noise",
            "match the true values very closely",
            f"largest relative error {max(errors):.0e} over {number} trajectories",
            max(errors) < 1e-6,
            assumption="our trajectories are sums of sines with 400 samples; the paper's are in a "
            "report we do not have",
        ),
        row(
            "arbitrary trajectories are persistently exciting, joint by joint",
            "for most trajectories",
            f"{'all' if exciting else 'not all'} joints of {number} trajectories; largest condition number "
            f"{max(max(t) for t in tables):.3g}",
            exciting,
        ),
        row(
            "errors grow in proportion to the noise",
            "bound proportional to the condition number",
            f"100 times the noise gives {100 * growth:.3g} times the error",
            0.2 < growth < 5.0,
            assumption=Forced(
                "the estimate is linear in the torques, and the draws of the noise are the same at all levels",
            ),
        ),
    )
    names = [step.joint for step in LinkByLink().steps(clean)]
    table = Table.of(
        ("joint", *(f"trajectory {k + 1}" for k in range(number))),
        [(name, *values) for name, values in zip(names, np.array(tables).T.tolist(), strict=True)],
        digits=3,
    )
    return Part(
        title="Identification link by link on the Stanford arm",
        source="section IV",
        rows=rows,
        tables={"Condition numbers of the scaled excitation matrices A_i, from the last joint to the first": table},
    )


def _error(found: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


PARTS: dict[str, Callable[[bool], Part]] = {
    "theorem 2": theorem2,
    "dynamics": dynamics,
    "operation counts": counts,
    "identification": identification,
}
