"""Atkeson, An, Hollerbach 1986: loads (Tables 1 and 2), integration against differentiation, vibration (Fig. 9)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dynid.data.recording import Experiment
from dynid.excitation.quintic import QuinticTrajectory, minimum_jerk
from dynid.identification.wrist import Sensing, identify_load
from dynid.kernels import wrench_regressor
from dynid.papers.data import printed
from dynid.papers.reproduction import Figure, Part
from dynid.papers.rows import Row, Verdict, checked, close, equal, in_kind
from dynid.report.chart import Chart, Line, grid
from dynid.robot import zoo
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import skew
from dynid.tables import Table

__all__ = ["filtering", "statements", "table1", "table2", "vibration"]

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]
"""Wrench noise (N, 6)."""
_ALL = minimum_jerk(np.deg2rad([0, 0, 0, -90, 0, 0]), np.deg2rad([90, -60, 90, 90, 90, 90]), duration_s=2.0)


def _body(mass: float, centre: list[float], about_com: list[float]) -> Floats:
    c = np.array(centre)
    tensor = np.zeros((3, 3))
    tensor[np.triu_indices(3)] = about_com
    tensor = tensor + np.triu(tensor, 1).T - mass * skew(c) @ skew(c)
    return np.asarray(Inertia(mass=mass, first_moment=mass * c, about_origin=tensor).vector)


def _record(
    robot: Robot, frame: str, path: QuinticTrajectory, rate: float, phi: Floats, noise: Floats | None
) -> Experiment:
    time = np.arange(int(round(path.duration * rate))) / rate
    q, dq, ddq = path.evaluate(time)
    wrench = wrench_regressor(robot, frame, q, dq, ddq) @ phi
    wrench = wrench if noise is None else wrench + noise[: len(time)]
    return _experiment(time, (q, dq, ddq), wrench, rate)


def _experiment(time: Floats, motion: tuple[Floats, Floats, Floats], wrench: Floats, rate: float) -> Experiment:
    q, dq, ddq = motion
    return Experiment(
        time=time,
        q=q,
        dq=dq,
        ddq=ddq,
        effort=np.zeros_like(q),
        valid=np.ones(q.shape, dtype=bool),
        segment=np.zeros(len(q), dtype=np.int64),
        rate_hz=rate,
        wrench=wrench,
    )


def _white(force: float, moment: float) -> Noise:
    return lambda rng, count: rng.normal(size=(count, 6)) * np.repeat([force, moment], 3)


def table1(quick: bool = False) -> Part:
    """Mass and centre of mass of the block at four places, at rest and in motion."""
    data, robot = printed("atkeson1986")["table1"], zoo.puma560()
    rng = np.random.default_rng(21)
    gains = 1.0 + 0.004 * rng.normal(size=6)
    moving = 1.0 + 0.012 * rng.normal(size=6)
    places = [0.0, *(line[0] for line in data["change"])]
    found = []
    poses = rng.uniform(-1.5, 1.5, (6, 6))
    for place in places:
        phi = _body(1.106, [0.001, 0.06 + place, 0.047], [0.00238, 0, 0, 0.0005, 0, 0.00238])
        still = wrench_regressor(robot, "link6", poses, 0 * poses, 0 * poses) @ phi * gains
        still = still + rng.normal(size=still.shape) * np.repeat([0.5, 0.02], 3) / np.sqrt(1000)
        rest = (poses, 0 * poses, 0 * poses)
        at_rest = _experiment(np.arange(6.0), rest, still, 1.0)
        run = _record(robot, "link6", _ALL, 200.0, phi, None)
        assert run.wrench is not None
        noisy = run.wrench * moving + _white(1.0, 0.05)(rng, run.samples)
        in_motion = _experiment(run.time, (run.q, run.dq, run.ddq), noisy, 200.0)
        settings = Sensing(bias=False)
        loads = [
            identify_load(robot, at_rest, sensor_frame="link6", form="static", sensing=settings, physical=False),
            identify_load(robot, in_motion, sensor_frame="link6", sensing=settings, physical=False),
        ]
        found.append([(load.mass, float(load.com[1])) for load in loads])
    rows: list[Row] = []
    cells = []
    for k, (mass, change) in enumerate(zip(data["mass"], data["change"], strict=True)):
        ours = [(found[k + 1][s][0], found[k + 1][s][1] - found[0][s][1]) for s in range(2)]
        cells.append((k + 1, "mass [kg]", *mass, ours[0][0], ours[1][0]))
        cells.append((k + 1, "change of c_y [m]", *change, ours[0][1], ours[1][1]))
        for s, kind in enumerate(("static", "dynamic")):
            limits = (data["claims"][f"{kind}_mass"], data["claims"][f"{kind}_centre"])
            errors = (abs(ours[s][0] - 1.106), abs(ours[s][1] - change[0]))
            rows.append(
                in_kind(
                    f"place {k + 1}, {kind}: mass [kg], change of c_y [m]",
                    f"{mass[s + 1]:.3f}, {change[s + 1]:.3f}",
                    f"{ours[s][0]:.3f}, {ours[s][1]:.3f}",
                    errors[0] <= limits[0] and errors[1] <= limits[1] + 5e-4,
                    assumption=f"errors within the paper's {1000 * limits[0]:g} g and {1000 * limits[1]:g} mm",
                )
            )
    header = ("place", "quantity", "actual", "paper, static", "paper, dynamic", "ours, static", "ours, dynamic")
    return Part(
        title="Table 1: mass and centre of mass",
        source=data["source"],
        rows=tuple(rows),
        tables=(("Table 1", Table.of(header, cells)),),
        assumptions="Simulated on a PUMA 560. The noise is not stated: gains of the sensor are taken to be off by 0.4 % at "
        "rest and 1.2 % in motion, with white noise of 0.5 N and 1 N.",
    )


def _inertia_error(runs: list[Experiment], robot: Robot, frame: str, phi: Floats) -> Floats:
    load = identify_load(robot, runs, sensor_frame=frame, sensing=Sensing(bias=False), physical=False)
    return np.asarray(load.inertia.vector[:6] - phi[:6])


def _special() -> list[QuinticTrajectory]:
    """Rotations of joints 4 and 6 alone, 2 s each, about different axes of the load."""
    moves = []
    for joint, wrist in ((3, 90.0), (3, 0.0), (5, 0.0)):
        start = np.deg2rad([0.0, 0.0, 0.0, -90.0, wrist, 0.0])
        end = start.copy()
        end[joint] += np.pi * 1.6
        moves.append(minimum_jerk(start, end, duration_s=2.0))
    return moves


def table2(quick: bool = False) -> Part:
    """Moments of inertia from all joints, from special motions and on the faster arm, at one noise level."""
    data = printed("atkeson1986")["table2"]
    actual = np.array(data["actual"])
    phi = _body(1.2, [0.0, 0.0, 0.05], data["actual"])
    puma, direct = zoo.puma560(), zoo.ddarm()
    fast = minimum_jerk(np.deg2rad([280, 269.1, -30]), np.deg2rad([80, 19.1, 220]), duration_s=1.0)
    cases = {
        "puma_all": (puma, "link6", [_ALL], 200.0),
        "puma_special": (puma, "link6", _special(), 200.0),
        "ddarm": (direct, "link3", [fast], 240.0),
    }
    draws = 5 if quick else 25
    spread = {}
    for name, (robot, frame, paths, rate) in cases.items():
        errors = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            runs = [_record(robot, frame, p, rate, phi, _white(1.0, 0.1)(rng, 1000)) for p in paths]
            errors.append(_inertia_error(runs, robot, frame, phi))
        spread[name] = float(np.sqrt(np.mean(np.square(errors))))
    paper = {name: float(np.sqrt(np.mean((np.array(data[name]) - actual) ** 2))) for name in cases}
    scale = paper["puma_all"] / spread["puma_all"]
    noise = f"white noise of {scale:.2g} N and {0.1 * scale:.2g} N m, chosen so that the first column's error is the paper's"
    titles = {"puma_all": "PUMA, all joints", "puma_special": "PUMA, special motions", "ddarm": "direct-drive arm"}
    rows = [
        close(
            f"rms error of the moments of inertia, {titles[name]}",
            paper[name],
            scale * spread[name],
            factor=3.0,
            assumption=noise,
            reason=f"{noise}; the load's mass and place and the special motions are ours",
            unit="kg m^2",
            digits=2,
        )
        for name in cases
    ]
    better = spread["puma_special"] < spread["puma_all"] and spread["ddarm"] < spread["puma_all"]
    rows.append(
        in_kind(
            "special motions and the faster arm are better", "better", "both better" if better else "not both", better
        )
    )
    header = ("moment [kg m^2]", "actual", "PUMA, all", "PUMA, special", "direct drive")
    names = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    cells = [(n, data["actual"][k], *(data[c][k] for c in cases)) for k, n in enumerate(names)]
    cells.append(("rms error, paper", None, *(paper[c] for c in cases)))
    cells.append(("rms error, ours", None, *(scale * spread[c] for c in cases)))
    return Part(
        title="Table 2: moments of inertia",
        source=data["source"],
        rows=tuple(rows),
        tables=(("Table 2, as printed, and rms errors", Table.of(header, cells)),),
        figures=(
            _wrench_figure(4, puma, "link6", _ALL, 200.0, phi),
            _wrench_figure(5, direct, "link3", fast, 240.0, phi),
        ),
        assumptions=f"Noise and load are not stated: {noise}; load of 1.2 kg, 5 cm from the sensor.",
    )


def _wrench_figure(number: int, robot: Robot, frame: str, path: QuinticTrajectory, rate: float, phi: Floats) -> Figure:
    """Figs. 4 and 5: measured wrench and the one of the estimated load."""
    run = _record(robot, frame, path, rate, phi, _white(1.0, 0.1)(np.random.default_rng(number), 1000))
    load = identify_load(robot, run, sensor_frame=frame, physical=False)
    computed = wrench_regressor(robot, frame, run.q, run.dq, run.ddq) @ load.inertia.vector
    assert run.wrench is not None
    names = ("f_x [N]", "f_y [N]", "f_z [N]", "n_x [N m]", "n_y [N m]", "n_z [N m]")
    charts = [
        Chart(
            name,
            (
                Line.of("measured", run.time, run.wrench[:, k]),
                Line.of("computed", run.time, computed[:, k], dashed=True),
            ),
            "time [s]",
            width=480,
            height=180,
        )
        for k, name in enumerate(names)
    ]
    return Figure(
        f"atkeson1986-figure{number}", f"Figure {number} in kind: measured and computed wrench.", grid(charts)
    )


def _coloured(rng: np.random.Generator, shape: tuple[int, int], exponent: float) -> Floats:
    """Noise with a spectrum ``1 / f^exponent`` and unit variance."""
    spectrum = np.fft.rfft(rng.normal(size=shape), axis=0)
    f = np.maximum(np.arange(len(spectrum)), 1.0)[:, None]
    noise = np.fft.irfft(spectrum * f ** (-exponent / 2), n=shape[0], axis=0)
    return np.asarray(noise / noise.std(axis=0))


def filtering(quick: bool = False) -> Part:
    """Section 4.1.2: differential and integral equations under noise of several colours on positions and wrench."""
    robot, rate = zoo.puma560(), 200.0
    phi = _body(1.2, [0.0, 0.0, 0.05], printed("atkeson1986")["table2"]["actual"])
    clean = _record(robot, "link6", _ALL, rate, phi, None)
    assert clean.wrench is not None
    colours = {"blue (rising)": -1.0, "white": 0.0, "pink": 1.0, "brown": 2.0}
    draws = 3 if quick else 12
    table: dict[tuple[str, str], list[float]] = {}
    for place in ("positions", "wrench"):
        for colour, exponent in colours.items():
            errors = []
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                q, wrench = clean.q, clean.wrench
                if place == "positions":
                    q = q + 2e-4 * _coloured(rng, q.shape, exponent)
                else:
                    wrench = wrench + np.repeat([0.5, 0.05], 3) * _coloured(rng, wrench.shape, exponent)
                dq = np.gradient(q, 1 / rate, axis=0)
                ddq = np.gradient(dq, 1 / rate, axis=0)
                run = _experiment(clean.time, (q, dq, ddq), wrench, rate)
                errors.append([_form_error(robot, run, form, phi) for form in ("differential", "integral")])
            table[place, colour] = np.median(errors, axis=0).tolist()
    ratio = {key: values[0] / values[1] for key, values in table.items()}
    rows = (
        in_kind(
            "differentiation amplifies high-frequency noise of the positions",
            "amplifies",
            f"its error is {ratio['positions', 'blue (rising)']:.1f} times the integral form's for blue noise, "
            f"{ratio['positions', 'brown']:.1f} times for brown",
            ratio["positions", "blue (rising)"] > ratio["positions", "brown"],
        ),
        in_kind(
            "integration is not necessarily better: low-frequency noise",
            "amplifies low-frequency noise",
            f"brown noise of the wrench: differential over integral error {ratio['wrench', 'brown']:.2f}",
            ratio["wrench", "brown"] < 1.1,
            reason="with our intervals the integral form is no worse for slow noise of the wrench",
        ),
        in_kind(
            "(25) to (27): both forms agree without noise",
            "derived",
            f"errors {_form_error(robot, clean, 'differential', phi):.0e} and {_form_error(robot, clean, 'integral', phi):.0e}",
            _form_error(robot, clean, "integral", phi) < 1e-3,
        ),
    )
    cells = [(place, colour, *values) for (place, colour), values in table.items()]
    return Part(
        title="Differentiation against integration",
        source="section 4.1.2, Appendix II",
        rows=rows,
        tables=(
            (
                "Relative error of the moments of inertia",
                Table.of(("noise on", "colour", "differential", "integral"), cells, 3),
            ),
        ),
        assumptions="Simulated PUMA 560, the paper's motion; position noise 2e-4 rad rms, wrench noise 0.5 N and 0.05 N m "
        "rms, spectrum 1/f^k; accelerations by central differences, integrals over 0.1 s.",
    )


def _form_error(robot: Robot, run: Experiment, form: str, phi: Floats) -> float:
    chosen = "integral" if form == "integral" else "differential"
    load = identify_load(
        robot,
        run,
        sensor_frame="link6",
        form="integral" if chosen == "integral" else "differential",
        sensing=Sensing(bias=False),
        physical=False,
    )
    return float(np.linalg.norm(load.inertia.vector[:6] - phi[:6]) / np.linalg.norm(phi[:6]))


def vibration(quick: bool = False) -> Part:
    """Fig. 9: a load on a springy sensor, tapped and moved, with little and with much damping."""
    from scipy.signal import lfilter

    robot, rate, frequency = zoo.puma560(), 1000.0, 25.0
    phi = _body(1.2, [0.0, 0.0, 0.05], printed("atkeson1986")["table2"]["actual"])
    clean = _record(robot, "link6", _ALL, rate, phi, None)
    assert clean.wrench is not None
    omega, step = 2 * np.pi * frequency, 1.0 / rate
    shake = 0.4 * np.random.default_rng(22).normal(size=clean.wrench.shape) * np.abs(clean.wrench).max(axis=0)
    lines, moved, decay, errors = [], [], {}, {}
    for name, damping in (("undamped", 0.005), ("damped", 0.3)):
        # x'' + 2 zeta omega x' + omega^2 x = omega^2 u, stepped exactly enough at 40 samples a period
        a = [1.0 / step**2 + damping * omega / step, omega**2 - 2.0 / step**2, 1.0 / step**2 - damping * omega / step]
        b = [0.0, omega**2]
        tap = lfilter(b, a, np.eye(1, 1000)[0])
        late = np.abs(tap) > 0.05 * np.abs(tap).max()
        decay[name] = float(np.flatnonzero(late)[-1] * step)
        felt = clean.wrench[0] + lfilter(b, a, clean.wrench + shake - clean.wrench[0], axis=0)
        run = _experiment(clean.time, (clean.q, clean.dq, clean.ddq), felt, rate)
        errors[name] = _form_error(robot, run, "differential", phi)
        lines.append(Line.of(name, np.arange(1000) * step, tap / np.abs(tap).max(), dashed=name == "damped"))
        moved.append(Line.of(name, clean.time, felt[:, 3], dashed=name == "damped"))
    charts = [
        Chart("Response to a tap", tuple(lines), "time [s]"),
        Chart("Moment n_x in motion", tuple(moved), "time [s]", "N m"),
    ]
    rows = (
        in_kind(
            "oscillations after a tap decay rapidly with damping",
            "decay rapidly",
            f"to 5 % in {decay['undamped']:.2f} s undamped, {decay['damped']:.2f} s damped",
            decay["damped"] < 0.2 * decay["undamped"],
            assumption="resonance at 25 Hz, damping ratios 0.005 and 0.3",
        ),
        in_kind(
            "the effect of movement is reduced",
            "would be reduced",
            f"error of the moments of inertia {100 * errors['undamped']:.0f} % undamped, {100 * errors['damped']:.0f} % damped",
            errors["damped"] < errors["undamped"],
            assumption="the arm shakes at random, as the paper says of its PUMA",
        ),
    )
    figure = Figure("atkeson1986-figure9", "Figure 9 in kind: a load on a springy sensor.", grid(charts, 1))
    return Part(title="Figure 9: vibration", source="section 4.1.1, Figure 9", rows=rows, figures=(figure, _figure3()))


def _figure3() -> Figure:
    time = np.linspace(0.0, 2.0, 400)
    series = _ALL.evaluate(time)
    labels = (("angle", "rad"), ("velocity", "rad/s"), ("acceleration", "rad/s^2"))
    charts = [
        Chart(f"Joint 4: {name}", (Line.of("", time, x[:, 3]),), "time [s]", unit, height=180)
        for (name, unit), x in zip(labels, series, strict=True)
    ]
    return Figure("atkeson1986-figure3", "Figure 3 in kind: joint 4 of the PUMA, fifth-order course.", grid(charts, 1))


def statements(quick: bool = False) -> Part:
    """Single numbers and equations."""
    data = printed("atkeson1986")["statements"]
    rng = np.random.default_rng(23)
    w, c = rng.normal(size=(2, 3))
    letters = {"x": w[0], "y": w[1], "z": w[2], "0": 0.0, "-y": -w[1], "-x": -w[0], "-z": -w[2]}
    printed_row = np.array([letters[t] for t in data["cross_third_row"]]) @ c
    time = np.sqrt(0.05 * 2 * np.pi * 10 / np.sqrt(3) / 9.81)
    puma = zoo.puma560()
    q, dq, ddq = rng.uniform(-1.5, 1.5, (3, 4, 6))
    at_rest = wrench_regressor(puma, "link6", q, 0 * q, 0 * q)
    moving = wrench_regressor(puma, "link6", q, dq, ddq)
    ranks = [int(np.linalg.matrix_rank(m[:k].reshape(6 * k, 10), 1e-9)) for m in (at_rest, moving) for k in (1, 2)]
    rows = (
        checked(
            "third row of [w x]",
            " ".join(data["cross_third_row"]),
            "-y x 0",
            same=bool(np.isclose(printed_row, np.cross(w, c)[2])),
        ),
        checked(
            "sphere: moment about its centre over that about a tangent", data["sphere"], "2/7", note="(2/5) / (2/5 + 1)"
        ),
        checked(
            "circle of 5 cm: time at which inertia equals gravity [ms]",
            data["circle_ms"],
            round(1000 * float(time)),
            same=abs(1000 * float(time) - data["circle_ms"]) < 0.5,
            note="minimum-jerk course, one revolution",
        ),
        *_transmission(puma),
        equal(
            "(21): at rest mass and first moment only, from two orientations", 4, ranks[1], note=f"one gives {ranks[0]}"
        ),
        equal("(8): all ten parameters from two samples in motion", 10, ranks[3], note=f"one gives {ranks[2]}"),
    )
    return Part(title="Statements and equations", source=data["source"] + ", (8), (15), (17), (21)", rows=rows)


def _transmission(robot: Robot) -> tuple[Row, ...]:
    """Which transmissions carry link j's wrench to joint i, and which component a joint feels."""
    from dynid.kernels import regressor

    rng = np.random.default_rng(24)
    q, dq, ddq = rng.uniform(-1.5, 1.5, (3, 6))
    Y = regressor(robot, q, dq, ddq)
    last = wrench_regressor(robot, "link6", q, dq, ddq)  # A_6
    agree = bool(np.allclose(Y[5, 50:60], last[5]))  # sixth row: the moment about z
    own = wrench_regressor(robot, "link1", q, dq, ddq)
    wrong = bool(np.allclose(Y[0, 50:60], own[5]))
    index = Row(
        "(15): link j's wrench at joint i",
        "U_ij ends with A_i",
        "U_ij = T_i ... T_(j-1) A_j",
        Verdict.MISPRINT if not wrong else Verdict.REPRODUCED,
        "right: A_j; with A_i the column of link 6 in joint 1's torque would be link 1's",
    )
    return (
        index,
        in_kind("(17): a revolute joint feels the sixth component", "[0 0 0 0 0 1]", "regressor's row 6 of A_6", agree),
    )
