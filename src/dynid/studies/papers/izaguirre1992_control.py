"""Izaguirre et al. 1992, Figs. 6 to 9: open-loop motion of the PUMA 260 by computed torques."""

from __future__ import annotations

import numpy as np

from dynid.excitation.trajectories.quintic import minimum_jerk
from dynid.report.chart import Chart, Line, grid
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.studies.control.controllers import OpenLoopTorque
from dynid.studies.control.experiments import Tracking, track
from dynid.studies.papers.reproduction import Figure, Part, in_kind

__all__ = ["open_loop"]

_START = np.array([0.0, -0.5, 0.3, 0.0, 0.2, 0.0])
_DURATION = {"slow": 3.0, "fast": 0.9}
_ASSUMED = (
    "moves of 90 degrees with a minimum-jerk course, 3 s (slow) and 0.9 s (fast, 190 deg/s at most); the model is the "
    "one identified in simulation; the drives are perfect"
)


def _run(model: Robot, joints: tuple[int, ...], speed: str, gravity: bool) -> Tracking:
    end = _START.copy()
    end[list(joints)] += np.pi / 2
    move = minimum_jerk(_START, end, duration_s=_DURATION[speed])
    return track(zoo.puma260(), OpenLoopTorque(model, move, online_gravity=gravity), move, rate_hz=500.0)


def open_loop(model: Robot, quick: bool = False) -> Part:
    """Errors of joints 1 to 3, alone and together, slow and fast, with and without on-line gravity compensation.

    Args:
        model: What the torques are computed from.
        quick: Joint 2 and all three together only.
    """
    alone = [(1,)] if quick else [(0,), (1,), (2,)]
    runs = {
        (joints, speed, gravity): _run(model, joints, speed, gravity)
        for joints in (*alone, (0, 1, 2))
        for speed in _DURATION
        for gravity in (False, True)
    }

    def worst(speed: str, gravity: bool, together: bool | None = None) -> float:
        chosen = [
            run.relative[list(joints)].max()
            for (joints, s, g), run in runs.items()
            if s == speed and g == gravity and (together is None or (len(joints) > 1) == together)
        ]
        return 100.0 * float(max(chosen))

    fast, slow, held = worst("fast", False), worst("slow", False), worst("slow", True)
    rows = (
        in_kind(
            "Figs. 6, 7: error of fast moves", "< 10 % of 90 deg", f"{fast:.1f} %", fast < 10.0, assumption=_ASSUMED
        ),
        in_kind(
            "errors are smaller at high speed than at low speed",
            "smaller",
            f"{fast:.1f} % fast, {slow:.1f} % slow",
            fast < slow,
            assumption=_ASSUMED,
            reason="in simulation friction is what the model says, so that slow moves lose little",
        ),
        in_kind(
            "Figs. 8, 9: on-line gravity compensation reduces the errors of slow moves",
            "considerably",
            f"{slow:.1f} % without, {held:.1f} % with",
            held < slow,
            assumption=_ASSUMED,
        ),
        in_kind(
            "Figs. 7, 9: joints moving together are followed as well",
            "works well",
            f"fast: {worst('fast', False, False):.1f} % alone, {worst('fast', False, True):.1f} % together",
            worst("fast", False, True) < 10.0,
            assumption=_ASSUMED,
        ),
    )
    figures = tuple(
        _figure(number, [run for key, run in runs.items() if key[2] == gravity and (len(key[0]) > 1) == together])
        for number, together, gravity in ((6, False, False), (7, True, False), (8, False, True), (9, True, True))
    )
    return Part(
        title="Figures 6 to 9: open-loop control",
        source="section 7.2, Appendix B, Figures 6 to 9",
        rows=rows,
        figures=figures,
        assumptions=f"Simulated: {_ASSUMED}.",
    )


def _figure(number: int, runs: list[Tracking]) -> Figure:
    charts = []
    for run in runs:
        moving = [j for j in range(3) if run.stroke[j] > 1e-9]
        time = run.simulation.time
        lines = tuple(Line.of(f"joint {j + 1}", time, np.rad2deg(run.error[:, j])) for j in moving)
        title = f"{'fast' if time[-1] < 1.0 else 'slow'}"
        charts.append(Chart(title, lines, "time [s]", "error [deg]", width=480, height=200))
    captions = {6: "joints one by one", 7: "three joints together"}
    text = captions[number if number < 8 else number - 2] + (", gravity compensated on line" if number > 7 else "")
    return Figure(f"izaguirre1992-figure{number}", f"Figure {number} in kind: {text}.", grid(charts))
