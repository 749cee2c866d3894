"""Atkeson, An, Hollerbach 1986: the list of all parts, and the paper's single equations and numbers.

The larger parts have files of their own: loads (`atkeson1986_load`), links (`atkeson1986_links`), and integration and
vibration (`atkeson1986_signals`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.integrate import simpson
from scipy.spatial.transform import Rotation

from dynid.kernels import regressor, wrench_regressor
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.studies.papers import atkeson1986_links, atkeson1986_load, atkeson1986_signals
from dynid.studies.papers.data import read_printed
from dynid.studies.papers.judgement.reproduction import Part
from dynid.studies.papers.judgement.verdicts import Row, compare_claim, compare_derived, compare_exactly

__all__ = ["PARTS", "TITLE", "statements"]


def statements(quick: bool = False) -> Part:
    """Check single numbers and equations of the paper."""
    data = read_printed("atkeson1986")["statements"]
    rng = np.random.default_rng(23)
    w, c = rng.normal(size=(2, 3))
    letters = {"x": w[0], "y": w[1], "z": w[2], "0": 0.0, "-y": -w[1], "-x": -w[0], "-z": -w[2]}
    printed_row = np.array([letters[t] for t in data["cross_third_row"]]) @ c
    time = np.sqrt(0.05 * 2 * np.pi * 10 / np.sqrt(3) / 9.81)
    sphere = Fraction(2, 5) / (Fraction(2, 5) + 1)
    puma = zoo.puma560()
    q, dq, ddq = rng.uniform(-1.5, 1.5, (3, 4, 6))
    at_rest = wrench_regressor(puma, "link6", q, 0 * q, 0 * q)
    moving = wrench_regressor(puma, "link6", q, dq, ddq)
    ranks = [int(np.linalg.matrix_rank(m[:k].reshape(6 * k, 10), 1e-9)) for m in (at_rest, moving) for k in (1, 2)]
    rows = (
        compare_derived(
            "third row of [w x]",
            " ".join(data["cross_third_row"]),
            "-y x 0",
            same=bool(np.isclose(printed_row, np.cross(w, c)[2])),
        ),
        compare_derived(
            "sphere: moment of inertia about its centre over the one about a tangent",
            data["sphere"],
            str(sphere),
            note="(2/5) / (2/5 + 1)",
        ),
        compare_derived(
            "circle of 5 cm: time of one revolution at which inertial forces equal gravity [ms]",
            data["circle_ms"],
            round(1000 * float(time)),
            same=abs(1000 * float(time) - data["circle_ms"]) < 0.5,
            note="the motion has minimum jerk",
        ),
        *_transmission(puma),
        _integral(data["integrand_A3"]),
        compare_exactly(
            "(21): at rest, two orientations determine mass and first moment: parameters",
            4,
            ranks[1],
            note=f"one orientation determines {ranks[0]}",
        ),
        compare_exactly(
            "(8): in motion, two samples determine all parameters",
            10,
            ranks[3],
            note=f"one sample determines {ranks[2]}",
        ),
    )
    return Part(title="Statements and equations", source=data["source"] + ", (8), (15), (17), (21), (A3)", rows=rows)


def _integral(integrand: str) -> Row:
    """Evaluate both sides of (A3) by Simpson's rule along a motion that turns about two axes."""
    t = np.linspace(0.0, 1.0, 2001)
    a, b, da, db = np.sin(2 * t), np.cos(3 * t), 2 * np.cos(2 * t), -3 * np.sin(3 * t)
    w = np.stack([db, da * np.sin(b), da * np.cos(b)], axis=1)  # Rz(a) Rx(b), in its own axes
    turn = Rotation.from_euler("ZX", np.stack([a, b], axis=1)).inv()
    rates = np.array([1.0, 2.0, 3.0])
    v = turn.apply(rates * np.cos(np.outer(t, rates)))
    sides = {"dp": v, "ddp": turn.apply(-(rates**2) * np.sin(np.outer(t, rates)))}
    right = v[-1] - v[0] + simpson(np.cross(w, v), x=t, axis=0)
    errors = {key: float(np.abs(simpson(x, x=t, axis=0) - right).max()) for key, x in sides.items()}
    names = {"dp": "integral of the velocity", "ddp": "integral of the acceleration"}
    exact = min(errors, key=lambda key: errors[key])
    return compare_derived(
        "(A3): left side",
        names[integrand],
        names[exact],
        same=errors[integrand] < 1e-9,
        note=f"error of the printed form {errors[integrand]:.1g}, of the right one {errors[exact]:.0e}",
    )


def _transmission(robot: Robot) -> tuple[Row, ...]:
    """Check how link j's wrench reaches joint i, and which component of it the joint's torque is."""
    rng = np.random.default_rng(24)
    q, dq, ddq = rng.uniform(-1.5, 1.5, (3, 6))
    Y = regressor(robot, q, dq, ddq)
    last = wrench_regressor(robot, "link6", q, dq, ddq)  # A_6
    agree = bool(np.allclose(Y[5, 50:60], last[5]))  # sixth row: the moment about z
    own = wrench_regressor(robot, "link1", q, dq, ddq)
    printed = bool(np.allclose(Y[0, 50:60], own[5]))
    index = compare_derived(
        "(15): link j's wrench at joint i",
        "U_ij ends with A_i",
        "U_ij = T_i ... T_(j-1) A_j",
        same=printed,
        note="With A_i, link 6 would enter the torque of joint 1 through the matrix of link 1",
    )
    return (
        index,
        compare_claim(
            "(17): the torque of a revolute joint is the sixth component of the wrench",
            "[0 0 0 0 0 1]",
            "row 6 of A_6 is the regressor's row",
            agree,
        ),
    )


TITLE = "Atkeson, An, Hollerbach 1986: estimation of inertial parameters of manipulator loads and links"
PARTS: dict[str, Callable[[bool], Part]] = {
    "Table 1": atkeson1986_load.table1,
    "Table 2, Figs. 4 and 5": atkeson1986_load.table2,
    "Table 5 from Tables 3 and 4": atkeson1986_links.tables345,
    "three groups": atkeson1986_links.groups,
    "links, Fig. 8": atkeson1986_links.links,
    "Appendix I": atkeson1986_links.appendix1,
    "integration": atkeson1986_signals.filtering,
    "Figs. 3 and 9": atkeson1986_signals.vibration,
    "statements": statements,
}
