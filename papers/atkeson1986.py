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

from dynid import Inertia, Load, Robot, regressor, robots
from dynid.array_types import Floats
from dynid.compiled import wrench_regressor
from dynid.excitation import minimum_jerk
from dynid.logs import ThreePhase
from papers import atkeson1986_links, atkeson1986_load, atkeson1986_signals
from papers.control import computed_torque, track, with_wrong_parameters
from papers.report import Part
from papers.verdicts import Row, derive, read_printed, row


def statements(quick: bool = False) -> Part:
    """Check single numbers and equations of the paper."""
    data = read_printed("atkeson1986")["statements"]
    rng = np.random.default_rng(23)
    w, c = rng.normal(size=(2, 3))
    letters = {"x": w[0], "y": w[1], "z": w[2], "0": 0.0, "-y": -w[1], "-x": -w[0], "-z": -w[2]}
    printed_row = np.array([letters[t] for t in data["cross_third_row"]]) @ c
    time = np.sqrt(0.05 * 2 * np.pi * 10 / np.sqrt(3) / 9.81)
    sphere = Fraction(2, 5) / (Fraction(2, 5) + 1)
    puma = robots.puma560()
    q, dq, ddq = rng.uniform(-1.5, 1.5, (3, 4, 6))
    at_rest = wrench_regressor(puma, "link6", q, 0 * q, 0 * q)
    moving = wrench_regressor(puma, "link6", q, dq, ddq)
    ranks = [int(np.linalg.matrix_rank(m[:k].reshape(6 * k, 10), 1e-9)) for m in (at_rest, moving) for k in (1, 2)]
    rows = (
        derive(
            "third row of [w x]",
            " ".join(data["cross_third_row"]),
            "-y x 0",
            agrees=bool(np.isclose(printed_row, np.cross(w, c)[2])),
        ),
        derive(
            "sphere: moment of inertia about its centre over the one about a tangent",
            data["sphere"],
            str(sphere),
            note="(2/5) / (2/5 + 1)",
        ),
        derive(
            "circle of 5 cm: time of one revolution at which inertial forces equal gravity [ms]",
            data["circle_ms"],
            round(1000 * float(time)),
            agrees=abs(1000 * float(time) - data["circle_ms"]) < 0.5,
            note="the motion has minimum jerk",
        ),
        *_transmission(puma),
        _integral(data["integrand_A3"]),
        _control(),
        row(
            "(21): at rest, two orientations determine mass and first moment: parameters",
            4,
            ranks[1],
            note=f"one orientation determines {ranks[0]}",
        ),
        row(
            "(8): in motion, two samples determine all parameters",
            10,
            ranks[3],
            note=f"one sample determines {ranks[2]}",
        ),
    )
    return Part(title="Statements and equations", source=data["source"] + ", (8), (15), (17), (21), (A3)", rows=rows)


def _control() -> Row:
    """Track a fast move of the direct-drive arm by computed torque with parameters that are a little and very wrong."""
    arm = robots.ddarm(parameters="cad")
    move = minimum_jerk(np.zeros(3), np.ones(3), duration_s=0.6)
    errors = [track(arm, computed_torque(with_wrong_parameters(arm, e)), move).rms for e in (0.01, 0.5)]
    return row(
        "section 4.2.2: control with parameters wrong by 1 % and by 50 %",
        "1 % is attainable; 50 % is an unreasonable basis for judging control",
        f"rms errors {1e3 * errors[0]:.2g} and {1e3 * errors[1]:.2g} mrad",
        10.0 * errors[0] < errors[1],
        assumption="computed torque, a minimum-jerk move of 1 rad in 0.6 s, all parameters wrong with random signs",
    )


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
    return derive(
        "(A3): left side",
        names[integrand],
        names[exact],
        agrees=errors[integrand] < 1e-9,
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
    index = derive(
        "(15): link j's wrench at joint i",
        "U_ij ends with A_i",
        "U_ij = T_i ... T_(j-1) A_j",
        agrees=printed,
        note="With A_i, link 6 would enter the torque of joint 1 through the matrix of link 1",
    )
    return (
        index,
        row(
            "(17): the torque of a revolute joint is the sixth component of the wrench",
            "[0 0 0 0 0 1]",
            "row 6 of A_6 is the regressor's row",
            agree,
        ),
    )


ROUNDING = 1e-9
"""Largest relative difference from an exact relation that rounding explains (convention)."""
DRAWS = 400
"""Number of noisy tensors from which the spread of a principal axis is taken; convention: it is then known to 4 %."""


def load_equations(quick: bool = False) -> Part:
    """Check the equations from a load's ten parameters to what recognises it, and from currents to torque."""
    return Part(
        title="From ten parameters to an object; from currents to torque",
        source="sections 2.1.1, 3.3 and 4.1, equations (10), (11), (22)-(24)",
        rows=(*_recovered_body(), _three_phases(), *_close_moments(100 if quick else DRAWS)),
    )


def _recovered_body() -> tuple[Row, ...]:
    """Compare (10) and (11) with sums over the point masses of a random body, which know no parallel axes."""
    rng = np.random.default_rng(25)
    masses, points = rng.uniform(0.1, 0.5, 12), rng.normal(size=(12, 3))
    first = masses @ points
    about_origin = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True))
    load = Load.of(Inertia(mass=masses.sum(), first_moment=first, about_origin=np.asarray(about_origin)), "hand")
    centred = points - first / masses.sum()
    about_com = np.asarray(sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, centred, strict=True)))
    error = max(
        float(np.abs(load.com - first / masses.sum()).max()),
        float(np.abs(load.inertia_about_com - about_com).max()),
    )
    moments = np.array([_moment_about(masses, centred, axis) for axis in load.principal.axes.T])
    R = load.principal.axes
    turned = float(np.abs(R @ np.diag(load.principal.moments) @ R.T - about_com).max())
    apart = float(np.abs(moments - load.principal.moments).max())
    return (
        row(
            "(10): centre of mass, and inertia about it by parallel axes",
            "c = mc / m, parallel axes",
            f"sums over 12 point masses to {error:.0e}",
            error < ROUNDING,
        ),
        row(
            "(11): principal moments are those about the principal axes, and R diag(I) R^T is the tensor",
            "diagonalised",
            f"sums over the point masses to {apart:.0e}, the tensor to {turned:.0e}",
            max(apart, turned) < ROUNDING,
        ),
    )


def _moment_about(masses: Floats, points: Floats, axis: Floats) -> float:
    """Mass times squared distance from an axis through the origin [kg m^2]."""
    return float(masses @ np.sum(np.cross(points, axis) ** 2, axis=1))


def _three_phases() -> Row:
    """Sinusoidal currents of one amplitude must give the same torque, 3/2 K_T I, at every angle."""
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    currents = 4.0 * np.sin(angle[:, None] + np.deg2rad([0.0, 120.0, 240.0]))
    torque = ThreePhase(torque_constant=2.5).torque(currents, angle)
    error = float(np.abs(torque / (1.5 * 2.5 * 4.0) - 1.0).max())
    return row(
        "(22): torque of three phases, free of ripple for sinusoidal currents",
        "K_T (I_a sin + I_b sin + I_c sin)",
        f"3/2 K_T I at every angle to {error:.0e}",
        error < ROUNDING,
    )


def _close_moments(draws: int) -> tuple[Row, ...]:
    """Check the identity of (23) and (24), and how the axis spreads when two moments approach each other."""
    small, angle, noise = 0.024, 0.4, 1e-5
    c, s = np.cos(angle), np.sin(angle)
    R, errors, spreads = np.array([[c, -s], [s, c]]), list[float](), dict[float, float]()
    rng = np.random.default_rng(26)
    for gap in (0.01, 0.001, 0.0002):
        diagonal = R @ np.diag([small + gap, small]) @ R.T  # (23)
        printed = np.array([[small + gap * c * c, gap * c * s], [gap * c * s, small + gap * s * s]])  # (24)
        errors.append(float(np.abs(diagonal - printed).max()))
        found = []
        for xx, xy, yy in rng.normal(size=(draws, 3)) * noise:
            _, axes = np.linalg.eigh(printed + np.array([[xx, xy], [xy, yy]]))
            found.append(np.arctan(axes[1, 1] / axes[0, 1]) - angle)
        spreads[gap] = float(np.std(found))
    growth = spreads[0.0002] / spreads[0.01]
    return (
        row(
            "(23), (24): the two forms of a tensor with moments lambda and lambda + epsilon are the same",
            "equal",
            f"equal to {max(errors):.0e}",
            max(errors) < ROUNDING,
        ),
        row(
            "(24): the axis becomes increasingly difficult to recover when two moments approach each other",
            "increasingly difficult",
            f"the axis spreads {growth:.0f} times as much when the difference is 50 times smaller",
            growth > 10.0,
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
    "load equations": load_equations,
}
