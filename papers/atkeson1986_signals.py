"""Atkeson, An, Hollerbach 1986: integration against differentiation (section 4.1.2), vibration (Fig. 9)."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter, lsim

from dynid import Experiment, Inertia, Robot, identify_load, robots
from dynid.array_types import Floats
from dynid.payload import Sensing
from dynid.spatial import skew
from dynid.tables import Table
from papers.atkeson1986_load import ALL_JOINTS, body, experiment, record
from papers.report import Figure, Part, draw
from papers.verdicts import Forced, Row, read_printed, row

_POSITION_NOISE = {"positions": 2e-4, "positions, small": 2e-6}
"""Standard deviation of the position noise [rad]; with the larger one, noise exceeds the accelerations."""


BIAS = {"wrench": np.repeat([0.5, 0.05], 3), "velocities": np.full(6, 0.01), "positions": np.full(6, 0.01)}
"""Standard deviation of the constant error of each signal [N, N m; rad/s; rad]; convention: of the noise's size."""
INTERVALS_S = (0.05, 0.1, 0.4)
"""Intervals of the integral form [s]; convention: a fortieth to a fifth of the motion."""


def _coloured_noise(rng: np.random.Generator, shape: tuple[int, int], exponent: float) -> Floats:
    """Noise with a spectrum ``1 / f^exponent`` and unit variance."""
    spectrum = np.fft.rfft(rng.normal(size=shape), axis=0)
    f = np.maximum(np.arange(len(spectrum)), 1.0)[:, None]
    noise = np.fft.irfft(spectrum * f ** (-exponent / 2), n=shape[0], axis=0)
    return np.asarray(noise / noise.std(axis=0))


def _colour_errors(quick: bool) -> dict[tuple[str, str], list[float]]:
    """Compute median errors of the differential and the integral form, by the noisy signal and the noise's colour."""
    robot, rate, phi = robots.puma560(), 200.0, _load()
    clean = record(robot, "link6", ALL_JOINTS, rate, phi, None)
    assert clean.wrench is not None
    table: dict[tuple[str, str], list[float]] = {}
    for place in ("positions", "positions, small", "wrench"):
        for colour, exponent in {"blue (rising)": -1.0, "white": 0.0, "pink": 1.0, "brown": 2.0}.items():
            errors = []
            for seed in range(3 if quick else 12):
                rng = np.random.default_rng(seed)
                q, wrench = clean.q, clean.wrench
                if place in _POSITION_NOISE:
                    q = q + _POSITION_NOISE[place] * _coloured_noise(rng, q.shape, exponent)
                else:
                    wrench = wrench + np.repeat([0.5, 0.05], 3) * _coloured_noise(rng, wrench.shape, exponent)
                dq = np.gradient(q, 1 / rate, axis=0)
                run = experiment(clean.time, (q, dq, np.gradient(dq, 1 / rate, axis=0)), wrench, rate)
                errors.append([_form_error(robot, run, form, phi) for form in ("differential", "integral")])
            table[place, colour] = np.median(errors, axis=0).tolist()
    return table


def _load() -> Floats:
    return body(1.2, [0.0, 0.0, 0.05], read_printed("atkeson1986")["table2"]["actual"])


def filtering(quick: bool = False) -> Part:
    """Compare differential and integral equations under coloured noise on positions and wrench (section 4.1.2)."""
    robot, phi = robots.puma560(), _load()
    clean = record(robot, "link6", ALL_JOINTS, 200.0, phi, None)
    table = _colour_errors(quick)
    ratio = {key: values[0] / values[1] for key, values in table.items()}
    growth = table["positions", "blue (rising)"][0] / table["positions", "brown"][0]
    exact = [_form_error(robot, clean, form, phi) for form in ("differential", "integral")]
    rows = (
        row(
            "differentiation amplifies high-frequency noise of the positions",
            "greatly amplifies",
            f"error of the differential form with blue noise: {growth:.2f} times that with brown "
            "noise of the same size",
            growth > 1.0,
            assumption="noise sizes as stated above",
            reason="the error does not grow with the frequency of the noise",
        ),
        row(
            "the advantage of integration over differentiation is largest at high frequencies (implied)",
            "largest",
            f"error of the differential form over that of the integral form: "
            f"{ratio['positions, small', 'blue (rising)']:.1f} with blue noise, "
            f"{ratio['positions, small', 'brown']:.1f} with brown noise of the positions",
            ratio["positions, small", "blue (rising)"] > ratio["positions, small", "brown"],
            assumption="position noise of 2e-6 rad. With 2e-4 rad the order is reversed "
            f"({ratio['positions', 'blue (rising)']:.1f} and {ratio['positions', 'brown']:.1f}): the noise exceeds the "
            "accelerations, the differential estimate tends to zero, and its error to 100 %",
            reason="integration has an advantage for every colour, and not the largest for fast noise",
        ),
        *_bias_rows(quick),
        row(
            "(25) to (27): both forms agree without noise",
            "derived",
            f"errors {exact[0]:.0e} and {exact[1]:.0e}",
            max(exact) < 1e-3,
        ),
    )
    header = ("noise on", "colour", "differential", "integral")
    cells = [(place, colour, values[0], values[1]) for (place, colour), values in table.items()]
    table_of_errors = Table.of(header, cells, 3)
    return Part(
        title="Differentiation against integration",
        source="section 4.1.2, Appendix II",
        rows=rows,
        tables={"Relative error of the moments of inertia": table_of_errors},
        assumptions="A PUMA 560 is simulated with the paper's motion. The position noise is 2e-4 or "
        "2e-6 rad rms, the wrench "
        "noise 0.5 N and 0.05 N m rms, with spectrum 1/f^k. Accelerations are central differences; integrals extend "
        "over 0.1 s.",
    )


def _bias_errors(quick: bool) -> dict[str, Floats]:
    """Median errors (1 + len(INTERVALS_S),) of the differential form and of the integral form, by the biased signal."""
    robot, phi = robots.puma560(), _load()
    clean = record(robot, "link6", ALL_JOINTS, 200.0, phi, None)
    assert clean.wrench is not None
    found: dict[str, Floats] = {}
    for place in BIAS:
        errors = []
        for seed in range(3 if quick else 12):
            bias = np.random.default_rng(seed).normal(size=6) * BIAS[place]
            q = clean.q + bias * (place == "positions")
            dq = clean.dq + bias * (place == "velocities")
            wrench = clean.wrench + bias * (place == "wrench")
            run = experiment(clean.time, (q, dq, clean.ddq), wrench, 200.0)
            forms = [_form_error(robot, run, "integral", phi, interval) for interval in INTERVALS_S]
            errors.append([_form_error(robot, run, "differential", phi), *forms])
        found[place] = np.median(errors, axis=0)
    return found


def _bias_rows(quick: bool) -> tuple[Row, ...]:
    """Judge whether integration amplifies a bias of the force data and of the kinematic data."""
    errors = _bias_errors(quick)
    words = {
        place: f"{place}: {values[0]:.2f} differential; "
        + ", ".join(f"{x:.2f} ({interval:g} s)" for x, interval in zip(values[1:], INTERVALS_S, strict=True))
        + " integral"
        for place, values in errors.items()
    }
    sizes = "constant errors of 0.5 N and 0.05 N m, 0.01 rad/s, or 0.01 rad; the paper does not state its intervals"
    force = errors["wrench"]
    return (
        row(
            "integration amplifies a bias of the force data",
            "worse in the paper's experiment",
            f"relative error of the inertia, {words['wrench']}",
            bool(np.all(force[1:] > force[0])),
            assumption=sizes,
            reason="the integral form is no worse with a bias",
        ),
        row(
            "integration amplifies a bias of the kinematic data",
            "worse in the paper's experiment",
            f"relative error of the inertia, {words['velocities']}; {words['positions']}",
            all(bool(np.all(errors[place][1:] > errors[place][0])) for place in ("velocities", "positions")),
            assumption=sizes,
            reason="the integral form is worse with long intervals only",
        ),
    )


def _form_error(robot: Robot, run: Experiment, form: str, phi: Floats, interval_s: float = 0.1) -> float:
    load = identify_load(
        robot,
        run,
        sensor_frame="link6",
        form="integral" if form == "integral" else "differential",
        interval_s=interval_s,
        sensing=Sensing(bias=False),
        physical=False,
    )
    return float(np.linalg.norm(load.inertia.vector[:6] - phi[:6]) / np.linalg.norm(phi[:6]))


def vibration(quick: bool = False) -> Part:
    """Simulate a load on an elastic sensor, tapped and moved, with little and with much damping (Fig. 9)."""
    robot, rate, frequency = robots.puma560(), 1000.0, 25.0
    phi = body(1.2, [0.0, 0.0, 0.05], read_printed("atkeson1986")["table2"]["actual"])
    clean = record(robot, "link6", ALL_JOINTS, rate, phi, None)
    assert clean.wrench is not None
    omega, step = 2 * np.pi * frequency, 1.0 / rate
    shake = 0.4 * np.random.default_rng(22).normal(size=clean.wrench.shape) * np.abs(clean.wrench).max(axis=0)
    taps, moved, decay, errors = {}, {}, {}, {}
    for name, damping in (("undamped", 0.005), ("damped", 0.3)):
        # x'' + 2 zeta omega x' + omega^2 x = omega^2 u; 40 samples per period keep the discretisation error small
        a = [1.0 / step**2 + damping * omega / step, omega**2 - 2.0 / step**2, 1.0 / step**2 - damping * omega / step]
        b = [0.0, omega**2]
        tap = lfilter(b, a, np.eye(1, 1000)[0])
        late = np.abs(tap) > 0.05 * np.abs(tap).max()
        decay[name] = float(np.flatnonzero(late)[-1] * step)
        felt = clean.wrench[0] + lfilter(b, a, clean.wrench + shake - clean.wrench[0], axis=0)
        run = experiment(clean.time, (clean.q, clean.dq, clean.ddq), felt, rate)
        errors[name] = _form_error(robot, run, "differential", phi)
        taps[name], moved[name] = (np.arange(1000) * step, tap / np.abs(tap).max()), (clean.time, felt[:, 3])
    rows = (
        row(
            "oscillations after a tap decay rapidly with damping",
            "decay rapidly",
            f"decay to 5 % in {decay['undamped']:.2f} s undamped, {decay['damped']:.2f} s damped",
            decay["damped"] < 0.2 * decay["undamped"],
            assumption=Forced(
                "we chose both damping ratios, 0.005 and 0.3, and a resonance at 25 Hz",
            ),
        ),
        row(
            "damping reduces the effect of vibration during movement",
            "would be reduced",
            f"error of the moments of inertia {100 * errors['undamped']:.0f} % undamped, "
            f"{100 * errors['damped']:.0f} % damped",
            errors["damped"] < errors["undamped"],
            assumption="random vibration of the arm, which the paper reports of its PUMA",
        ),
    )
    panels = {"Response to a tap": taps, "Moment n_x in motion [N m]": moved}
    figure = draw("atkeson1986-figure9", "Figure 9 in kind: a load on an elastic sensor.", panels, "time [s]", "", 1)
    return Part(
        title="Figure 9: vibration",
        source="section 4.1.1, Figure 9",
        rows=(*rows, _swing_row()),
        figures=(figure, _figure3()),
    )


STIFFNESS = np.array([5e4, 5e4, 8e4, 600.0, 600.0, 400.0])
"""Stiffness of a simulated sensor's six channels [N/m, N m/rad]: the load then swings at some 20 Hz, as in Fig. 9."""
SENSOR_DAMPING_S = 3e-5
"""Damping over stiffness of the simulated sensor [s]: the undamped record of Fig. 9."""


def _swing_row() -> Row:
    """Let a load swing on six springs after a tap, and identify it with a rigid sensor and with a compliant one."""
    robot, rate, phi = robots.puma560(), 1000.0, _load()
    clean = record(robot, "link6", ALL_JOINTS, rate, phi, None)
    assert clean.wrench is not None
    held = Inertia.from_vector(phi)
    h = skew(held.first_moment)
    mass = np.block([[held.mass * np.eye(3), -h], [h, held.about_origin]])
    # M x'' = -K (x + d x') - rigid wrench; the sensor measures the strain -K x
    pull = -np.linalg.solve(mass, np.diag(STIFFNESS))
    system = np.block([[np.zeros((6, 6)), np.eye(6)], [pull, SENSOR_DAMPING_S * pull]])
    forced = np.vstack([np.zeros((6, 6)), -np.linalg.inv(mass)])
    tap = np.concatenate([-clean.wrench[0] / STIFFNESS, [0.02, 0.03, 0.01, 0.4, 0.5, 0.3]])
    _, _, states = lsim((system, forced, np.eye(12), np.zeros((12, 6))), clean.wrench, clean.time, X0=tap)
    noise = np.repeat([0.05, 0.005], 3) * np.random.default_rng(28).normal(size=clean.wrench.shape)
    run = experiment(clean.time, (clean.q, clean.dq, clean.ddq), noise - states[:, :6] * STIFFNESS, rate)
    loads = [
        identify_load(
            robot, run, sensor_frame="link6", sensing=Sensing(bias=False, find=("compliance",) * yields), physical=False
        )
        for yields in (False, True)
    ]
    rigid, found = (float(np.linalg.norm(load.vector[:6] - phi[:6]) / np.linalg.norm(phi[:6])) for load in loads)
    lowest = float(np.sqrt(np.linalg.eigvals(-pull).real.min()) / (2 * np.pi))
    swings = [finding.evidence["frequency [Hz]"] for finding in loads[1].findings if finding.code == "sensor-yields"]
    frequency = float(swings[0]) if swings else 0.0
    return row(
        "Fig. 9: the dynamics of the sensor can be identified with the load",
        "a last resort that needs more data",
        f"error of the inertia {rigid:.2%} with a rigid sensor, {found:.2%} with 12 more unknowns; resonance "
        f"{frequency:.1f} Hz found, {lowest:.1f} Hz true",
        found < rigid and abs(frequency / lowest - 1.0) < 0.05,
        assumption="a spring and a damper per channel, a tap before the motion, white noise of 0.05 N and 0.005 N m",
    )


def _figure3() -> Figure:
    time = np.linspace(0.0, 2.0, 400)
    names = ("angle [rad]", "velocity [rad/s]", "acceleration [rad/s^2]")
    panels = {name: {"": (time, x[:, 3])} for name, x in zip(names, ALL_JOINTS.evaluate(time), strict=True)}
    caption = "Figure 3 in kind: joint 4 of the PUMA, fifth-order course."
    return draw("atkeson1986-figure3", caption, panels, "time [s]", "", 1)
