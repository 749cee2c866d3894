"""Eighteen ways in which real tools write the log of a six-joint arm; each writes the same motion.

The styles were chosen from what tools write before the recognition of names was written. Positions, velocities and
torques are those of `Motion`; `STYLES` says which style has no place for a quantity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
"""Joint names of the arm, in the robot's order."""
OTHER_ORDER = (2, 1, 0, 3, 5, 4)
"""An order of the joints that a log may have: the first three as ROS drivers of this arm sort them."""
DEG = 180.0 / np.pi


@dataclass(frozen=True)
class Motion:
    """The arrays that every style writes: (N,) [s], (N, 6) [rad, rad/s, N m]."""

    time: NDArray[np.float64]
    q: NDArray[np.float64]
    dq: NDArray[np.float64]
    effort: NDArray[np.float64]


def motion(rows: int = 60, rate_hz: float = 125.0) -> Motion:
    """A smooth motion with another frequency and amplitude in every joint."""
    time = np.arange(rows) / rate_hz
    speed, reach = np.linspace(1.0, 3.0, 6), np.linspace(1.4, 0.5, 6)
    phase = speed * time[:, None] + np.arange(6)
    effort = np.linspace(80.0, 5.0, 6) * np.cos(phase) + np.sin(3.0 * phase)
    return Motion(time, reach * np.sin(phase), reach * speed * np.cos(phase), effort)


def write_columns(
    path: Path, names: list[str], values: Any, delimiter: str = ",", decimal: str = ".", first: str = ""
) -> Path:
    """A text table with a header."""
    rows = [delimiter.join(repr(float(x)).replace(".", decimal) for x in row) for row in np.column_stack(values)]
    path.write_text(first + "\n".join([delimiter.join(names), *rows]) + "\n", encoding="utf-8")
    return path


def _numbered(*patterns: str, start: int = 1) -> list[str]:
    return [pattern.replace("#", str(k + start)) for pattern in patterns for k in range(6)]


def _by_joint(*patterns: str, start: int = 1) -> list[str]:
    """The same names, joint by joint."""
    return [pattern.replace("#", str(k + start)) for k in range(6) for pattern in patterns]


def _interleaved(*signals: Any) -> list[Any]:
    return [signal[:, k] for k in range(6) for signal in signals]


def ur_rtde(folder: Path, m: Motion) -> Path:
    """The recorder of Universal Robots' RTDE client: blank-separated, targets beside actual values, currents."""
    names = ["timestamp", *_numbered("target_q_#", "actual_q_#", "actual_qd_#", "actual_current_#", start=0)]
    values = [m.time + 1e5, m.q + 1e-3, m.q, m.dq, m.effort / 10.0]
    return write_columns(folder / "robot_data.csv", names, values, " ")


def libfranka(folder: Path, m: Motion) -> Path:
    """libfranka's log: times in milliseconds, desired values beside measured ones, commands behind them."""
    columns = ("state.q[#]", "state.q_d[#]", "state.dq[#]", "state.tau_J[#]", "state.tau_ext_hat_filtered[#]")
    names = ["time", "success_rate", *_numbered(*columns, "cmd.tau_J_d[#]", start=0)]
    values = [1e3 * m.time, np.ones(len(m.time)), m.q, m.q + 1e-4, m.dq, m.effort, m.effort * 0.1, m.effort + 1.0]
    return write_columns(folder / "log.csv", names, values)


def kuka_trace(folder: Path, m: Motion) -> Path:
    """A KUKA trace as text: semicolons and decimal commas, degrees."""
    patterns = ("Axis actual position A# [deg]", "Axis command position A# [deg]", "Axis torque A# [Nm]")
    values = [m.time, m.q * DEG, m.q * DEG + 0.01, m.effort]
    return write_columns(folder / "trace.csv", ["Time [s]", *_numbered(*patterns)], values, ";", ",")


def abb_signals(folder: Path, m: Motion) -> Path:
    """ABB test signals: unit and axis in every name, another number in the name of the robot."""
    patterns = ("ROB_1 Axis # Position [rad]", "ROB_1 Axis # Speed [rad/s]", "ROB_1 Axis # Torque [Nm]")
    names = ["Time (s)", *_by_joint(*patterns)]
    return write_columns(folder / "signals.txt", names, [m.time, *_interleaved(m.q, m.dq, m.effort)], "\t")


def fanuc(folder: Path, m: Motion) -> Path:
    """Fanuc diagnostics: J1 to J6 in capital letters."""
    names = ["TIME(ms)", *_numbered("J# POS(deg)", "J# TRQ(Nm)"), "OVERRIDE(%)"]
    return write_columns(folder / "fanuc.csv", names, [1e3 * m.time, m.q * DEG, m.effort, np.full(len(m.time), 100.0)])


def matlab(folder: Path, m: Motion) -> Path:
    """MATLAB's writetable of matrices: the variable, an underscore and the column."""
    names = ["Time", *_numbered("q_#", "qd_#", "qdd_#", "tau_#")]
    return write_columns(folder / "table.csv", names, [m.time, m.q, m.dq, np.gradient(m.dq, axis=0), m.effort])


def plotjuggler(folder: Path, m: Motion) -> Path:
    """PlotJuggler's export of joint states: topic, joint and quantity, in the publisher's order."""
    names = ["__time"]
    values = [m.time + 1.7e9]
    for j in OTHER_ORDER:
        names += [f"/joint_states/{NAMES[j]}/{part}" for part in ("effort", "position", "velocity")]
        values += [m.effort[:, j], m.q[:, j], m.dq[:, j]]
    return write_columns(folder / "plot.csv", names, values)


def lerobot(folder: Path, m: Motion) -> Path:
    """A LeRobot episode: lists in Parquet, the action beside the state."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = len(m.time)
    lists = {
        "observation.state": m.q,
        "action": m.q + 0.01,
        "observation.velocity": m.dq,
        "observation.effort": m.effort,
    }
    columns = {name: pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 6) for name, x in lists.items()}
    counts = {"frame_index": np.arange(rows), "episode_index": np.zeros(rows, int), "task_index": np.zeros(rows, int)}
    table = pa.table({**columns, "timestamp": m.time, **counts, "index": np.arange(rows) + 500})
    pq.write_table(table, folder / "episode_000000.parquet")
    return folder / "episode_000000.parquet"


def joint_pos(folder: Path, m: Motion) -> Path:
    """joint_1_pos, joint_1_vel, joint_1_torque: the number in the middle."""
    names = ["time", *_by_joint("joint_#_pos", "joint_#_vel", "joint_#_torque")]
    return write_columns(folder / "run.csv", names, [m.time, *_interleaved(m.q, m.dq, m.effort)])


def angle_deg(folder: Path, m: Motion) -> Path:
    """J1_angle_deg, J1_speed_deg_s, J1_torque_Nm: units behind the names."""
    names = ["t_ms", *_numbered("J#_angle_deg", "J#_speed_deg_s", "J#_torque_Nm", "J#_temp_C")]
    values = [1e3 * m.time, m.q * DEG, m.dq * DEG, m.effort, 40.0 + 0.0 * m.q]
    return write_columns(folder / "run.csv", names, values)


def pos_joint(folder: Path, m: Motion) -> Path:
    """pos_joint1, vel_joint1, eff_joint1: the number at the end."""
    names = ["stamp", *_numbered("pos_joint#", "vel_joint#", "eff_joint#")]
    return write_columns(folder / "run.csv", names, [m.time + 1.7e9, m.q, m.dq, m.effort])


def axis_position(folder: Path, m: Motion) -> Path:
    """ "Axis1 Position [deg]": words with blanks and units in brackets."""
    names = ["Time [s]", *_numbered("Axis# Position [deg]", "Axis# Velocity [deg/s]", "Axis# Torque [Nm]")]
    return write_columns(folder / "run.csv", names, [m.time, m.q * DEG, m.dq * DEG, m.effort])


def file_per_quantity(folder: Path, m: Motion) -> Path:
    """A folder with one file per quantity and no header, as numpy.savetxt writes it."""
    for name, values in (("time", m.time), ("positions", m.q), ("velocities", m.dq), ("torques", m.effort)):
        np.savetxt(folder / f"{name}.csv", values, delimiter=",", fmt="%.17g")
    return folder


def shared_clock(folder: Path, m: Motion) -> Path:
    """Several files with the same time column, joints by their names in another order."""
    order = list(OTHER_ORDER)
    for name, values in (("joint_position", m.q), ("joint_velocity", m.dq), ("joint_effort", m.effort)):
        write_columns(folder / f"{name}.csv", ["time", *(NAMES[j] for j in order)], [m.time, values[:, order]])
    return folder


def by_name(folder: Path, m: Motion) -> Path:
    """The robot's joint names in another order, the quantity behind them."""
    order = list(OTHER_ORDER)
    names = ["timestamp", *(f"{NAMES[j]}_{part}" for part in ("position", "velocity", "effort") for j in order)]
    return write_columns(folder / "run.csv", names, [m.time, m.q[:, order], m.dq[:, order], m.effort[:, order]])


def mujoco_arrays(folder: Path, m: Motion) -> Path:
    """Arrays of a MuJoCo script, by the names of MuJoCo."""
    np.savez(folder / "rollout.npz", time=m.time, qpos=m.q, qvel=m.dq, qfrc_actuator=m.effort)
    return folder / "rollout.npz"


def twincat(folder: Path, m: Motion) -> Path:
    """TwinCAT scope: a preamble, axes by number, actual and set values, time in milliseconds."""
    patterns = ("Axes.Axis #.NcToPlc.ActPos", "Axes.Axis #.NcToPlc.SetPos", "Axes.Axis #.NcToPlc.ActTorque")
    first = "Name;Scope Project\nFile;C:\\scope.tcscopex\nStarttime of export;16.11.2026 05:00:00\n\n"
    values = [1e3 * m.time, m.q * DEG, m.q * DEG + 0.02, m.effort]
    return write_columns(folder / "scope.csv", ["Time [ms]", *_numbered(*patterns)], values, ";", ".", first)


def kinova(folder: Path, m: Motion) -> Path:
    """Kortex feedback: actuators counted from zero, degrees without a word about it, motor currents beside torques."""
    patterns = ("actuators[#].position", "actuators[#].velocity", "actuators[#].torque", "actuators[#].current_motor")
    values = [m.time, *_interleaved(m.q * DEG, m.dq * DEG, m.effort, m.effort / 20.0)]
    return write_columns(folder / "feedback.csv", ["time_s", *_by_joint(*patterns, start=0)], values)


NO_SPEED, NO_EFFORT = ("q", "effort"), ("q", "dq")
STYLES: dict[Callable[[Path, Motion], Path], tuple[str, ...]] = {
    ur_rtde: NO_EFFORT, kuka_trace: NO_SPEED, fanuc: NO_SPEED, twincat: NO_SPEED,
} | dict.fromkeys((
    libfranka, abb_signals, matlab, plotjuggler, lerobot, joint_pos, angle_deg, pos_joint, axis_position,
    file_per_quantity, shared_clock, by_name, mujoco_arrays, kinova,
), ("q", "dq", "effort"))  # fmt: skip
"""How a log is written -> the fields of `Motion` that it holds."""
