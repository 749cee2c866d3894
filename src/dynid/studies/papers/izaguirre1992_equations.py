"""Izaguirre et al. 1992: printed equations with wrong indices or signs, found by evaluating them.

Izaguirre et al. 1992: the printed statistics against what statistics of ten values can be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.kernels import inertia_matrix, velocity_torque
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.spatial import skew
from dynid.studies.papers.data import printed
from dynid.studies.papers.reproduction import Part, Row, Verdict, checked

__all__ = ["consistency", "equations"]

Floats = NDArray[np.float64]


def equations(quick: bool = False) -> Part:
    """Evaluate printed and corrected forms on random bodies and motions."""
    rows = (_velocity_terms(), _product(), _masses(), _first_moment(), _tensor(), _acceleration(), _moment())
    return Part(
        title="Printed equations, evaluated",
        source="equations (1), (8), (15), (16), (20), (24), recursion of the masses",
        rows=rows,
        assumptions="Each printed form and its corrected form are evaluated on random bodies and motions and compared "
        "with the definition they must satisfy.",
    )


def _row(what: str, printed: str, right: str, errors: tuple[float, float]) -> Row:
    note = f"error of the printed form {errors[0]:.1g}, of the right one {errors[1]:.0e}"
    return checked(what, printed, right, note=note, same=errors[0] < 1e-6 or errors[1] > 1e-6)


def _velocity_terms() -> Row:
    """Christoffel symbols of the PUMA 560's inertia matrix against its velocity torques."""
    robot: Robot = zoo.puma560()
    q, dq = np.random.default_rng(12).uniform(-1, 1, (2, 6))
    step = 1e-5 * np.eye(6)
    dM = np.array([(inertia_matrix(robot, q + h) - inertia_matrix(robot, q - h)) / 2e-5 for h in step])
    D = 0.5 * (np.einsum("kij->ijk", dM) + np.einsum("jik->ijk", dM) - np.einsum("ijk->ijk", dM))
    right = np.einsum("ijk,j,k->i", D, dq, dq)
    printed = np.einsum("ijk,i,k->i", D, dq, dq)
    truth = velocity_torque(robot, q, dq)
    errors = tuple(float(np.abs(x - truth).max()) for x in (printed, right))
    return _row("(1): velocity terms", "D_ijk dq_i dq_k", "D_ijk dq_j dq_k", (errors[0], errors[1]))


def _product() -> Row:
    """Last diagonal entry of the squared cross-product matrix."""
    x, y, z = np.random.default_rng(19).normal(size=3)
    truth = float((-skew(np.array([x, y, z])) @ skew(np.array([x, y, z])))[2, 2])
    return _row(
        "(8): last diagonal entry",
        "lx^2 + lz^2",
        "lx^2 + ly^2",
        (abs(x * x + z * z - truth), abs(x * x + y * y - truth)),
    )


def _masses() -> Row:
    m = np.append(np.random.default_rng(13).uniform(1, 5, 6), 0.0)
    right = np.cumsum(m[::-1])[::-1]
    printed = np.zeros(7)
    for j in range(5, -1, -1):
        printed[j] = printed[j + 1] + m[j + 1]
    errors = (float(np.abs(printed - right).max()), 0.0)
    return _row("recursion of the masses", "M_j = M_(j+1) + m_(j+1)", "M_j = M_(j+1) + m_j", errors)


def _points(seed: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Point masses of link j and of all beyond it, in frame j + 1, and the origin's distance p from frame j."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(8, 3)),
        rng.uniform(0.1, 1, 8),
        rng.normal(size=(8, 3)),
        rng.uniform(0.1, 1, 8),
        rng.normal(size=3),
    )


def _first_moment() -> Row:
    """First moment of the compound link about frame j's origin, axes of frame j + 1."""
    link, m, beyond, M, p = _points(14)
    truth = m @ (link + p) + M @ (beyond + p)
    own, inner, total = m @ link, M @ beyond, float(m.sum() + M.sum())
    right = own + inner + p * total
    printed = own + truth + p * total
    errors = (float(np.abs(printed - truth).max()), float(np.abs(right - truth).max()))
    return _row("(15): first moment of the compound link j", "inner term L_j", "inner term L_(j+1)", errors)


def _tensor() -> Row:
    """Share of link j in the compound tensor, moved from the far to the near frame."""
    link, m, _, _, p = _points(15)

    def about(x: Floats) -> Floats:
        return np.asarray(-sum(w * skew(v) @ skew(v) for w, v in zip(m, x, strict=True)))

    d = m @ link / m.sum()
    moved = -m.sum() * skew(d + p) @ skew(d + p)
    right = about(link) + m.sum() * skew(d) @ skew(d) + moved
    printed = about(link) + m.sum() * (skew(d) + skew(d)) + moved
    truth = about(link + p)
    errors = (float(np.abs(printed - truth).max()), float(np.abs(right - truth).max()))
    return _row("(16): tensor of link j", "m_j (d^ + d^)", "m_j (d^ d^)", errors)


def _acceleration() -> Row:
    """Acceleration of a point of a turning body from its own rotation."""
    w, dw, v, p = np.random.default_rng(16).normal(size=(4, 3))
    truth = np.cross(dw, p) + np.cross(w, np.cross(w, p))
    printed = (skew(w) + skew(v) @ skew(w)) @ p
    right = (skew(dw) + skew(w) @ skew(w)) @ p
    errors = (float(np.abs(printed - truth).max()), float(np.abs(right - truth).max()))
    return _row("(20): matrix U_i", "[w] + [v][w]", "[dw/dt] + [w][w]", errors)


def _moment() -> Row:
    """Moment of a link about frame i + 1's origin: which first moment crosses the acceleration."""
    link, m, beyond, M, _ = _points(17)
    a = np.random.default_rng(18).normal(size=3)
    truth = np.cross(link, m[:, None] * a).sum(axis=0)
    printed = np.cross(m @ link + M @ beyond, a)
    errors = (float(np.abs(printed - truth).max()), float(np.abs(np.cross(m @ link, a) - truth).max()))
    return _row("(24): moment term", "first moment with index i + 1", "first moment of link i itself", errors)


_VALUES = 10
"""Trajectories, hence values behind each line."""


def consistency(quick: bool = False) -> Part:
    """Tables 1 and 2 against what statistics of ten values can be."""
    data = printed("izaguirre1992")
    rows: list[Row] = []
    for number in (1, 2):
        lines = data[f"table{number}"]
        wrong = {name: found for name, line in lines.items() if (found := _impossible(*line))}
        text = f"{len(lines) - len(wrong)} lines possible" + ("; misprints below" if wrong else "")
        rows.append(
            Row(f"Table {number}: lines that ten values can have", f"{len(lines)} lines", text, Verdict.REPRODUCED)
        )
        for name, found in wrong.items():
            rows += [
                Row(f"Table {number}, {name}: {what}", was, right, Verdict.MISPRINT, why)
                for what, was, right, why in found
            ]
    listing, table = data["constants"]["Z6"], data["table2"]["z6"][0]
    rows.append(checked("Appendix A: Z6, also in Table 2", listing, table, note="a digit is lost"))
    return Part(title="Tables 1 and 2 against themselves", source="Tables 1 and 2, Appendix A", rows=tuple(rows))


def _impossible(average: float, deviation: float, maximum: float, minimum: float) -> list[tuple[str, str, str, str]]:
    """What is wrong with the statistics of ten values: what it is, as printed, what is right, why."""
    found = []
    low, high = sorted((minimum, maximum))
    if maximum < minimum:
        right = f"maximum {high:g}, minimum {low:g}"
        found.append(("range", f"maximum {maximum:g}, minimum {minimum:g}", right, "maximum and minimum exchanged"))
    if not low <= average <= high:
        found.append(("average", f"{average:g}", f"between {low:g} and {high:g}", "right: in that range"))
        return found
    least, most = _deviations(average, high, low)
    if not 0.98 * least <= deviation <= 1.02 * most:
        note = (
            "right: in that range. Ten values with that average, minimum and maximum cannot have the printed deviation"
        )
        found.append(("deviation", f"{deviation:g}", f"between {least:.4g} and {most:.4g}", note))
    return found


def _deviations(average: float, maximum: float, minimum: float) -> tuple[float, float]:
    """Smallest and largest standard deviation of ten values; divisor 10 for the one and 9 for the other.

    Least where all but the extremes are equal; at most that of values at the extremes only (Bhatia and Davis).
    """
    others = (_VALUES * average - maximum - minimum) / (_VALUES - 2)
    squares = (maximum - average) ** 2 + (average - minimum) ** 2 + (_VALUES - 2) * (others - average) ** 2
    most = _VALUES * (maximum - average) * (average - minimum) / (_VALUES - 1)
    return float(np.sqrt(squares / _VALUES)), float(np.sqrt(most))
