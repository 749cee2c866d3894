"""Time series of ``mujoco.sysid``: recordings as its files, and its files or objects as recordings.

A series is an ``.npz`` file with ``times`` (N,), ``data`` (N, k), and a JSON text ``signal_mapping``: name -> [number
of the signal type, columns]. Positions are ``JOINT_qpos`` (MjStateQPos), velocities ``JOINT_qvel`` (MjStateQVel),
torques ``JOINT_ctrl`` (MjCtrl): the controls of motors that are named like their joints and have a gear of 1. Nothing
here needs MuJoCo: the files are plain NumPy.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError, ExportError
from dynid.files import write_atomically
from dynid.logs.recording import Recording

SENSOR, QPOS, QVEL, CTRL = 0, 2, 3, 5
"""Numbers of the toolbox's SignalType: MjSensor, MjStateQPos, MjStateQVel, MjCtrl."""
SUFFIX = {QPOS: "_qpos", QVEL: "_qvel", CTRL: "_ctrl"}
"""Signal type -> how its names end."""
LARGEST = 4 * 2**30
"""Most bytes that a file may unpack to; convention, what the memory of most machines holds."""


class Signals(Protocol):
    """What has positions and perhaps velocities and torques: a `Recording` or an `Experiment`."""

    @property
    def time(self) -> Floats: ...
    @property
    def q(self) -> Floats: ...
    @property
    def dq(self) -> Floats | None: ...
    @property
    def effort(self) -> Floats | None: ...
    @property
    def joint_names(self) -> tuple[str, ...]: ...


def write_sysid_series(
    log: Signals, folder: str | os.PathLike[str], *, sensors: bool = False, force: bool = False
) -> tuple[Path, ...]:
    """Write ``sensordata.npz`` (positions and velocities) and ``control.npz`` (torques) for ``mujoco.sysid``.

    Args:
        log: A recording or an experiment. Rows with numbers that are not finite are left out, because the toolbox
            interpolates between the others.
        folder: An existing folder.
        sensors: State positions and velocities as signals of sensors (MjSensor) of the same names, which the model must
            have, as that of `dynid.robot.sysid_model` does; otherwise as parts of the state.
        force: Whether existing files may be replaced.

    Raises:
        ExportError: No row is finite, time does not run forward, or a file cannot be written.

    Example:
        >>> [path.name for path in dynid.logs.write_sysid_series(log, folder, force=True)]
        ['sensordata.npz', 'control.npz']
    """
    place = Path(folder)
    motion = [(QPOS, log.q)] + ([] if log.dq is None else [(QVEL, log.dq)])
    files = [_write(place / "sensordata.npz", log.time, motion, log.joint_names, (sensors, force))]
    if log.effort is not None:
        clock = getattr(log, "effort_time", None)
        clock = log.time if clock is None else clock
        files.append(_write(place / "control.npz", clock, [(CTRL, log.effort)], log.joint_names, (False, force)))
    return tuple(files)


def _write(
    path: Path, time: Floats, signals: list[tuple[int, Floats]], joints: tuple[str, ...], flags: tuple[bool, bool]
) -> Path:
    sensors, force = flags
    data = np.concatenate([values for _, values in signals], axis=1)
    kept = np.isfinite(data).all(axis=1) & np.isfinite(time)
    times = time[kept]
    if not times.size or not np.all(np.diff(times) > 0.0):
        raise ExportError(
            "the series is empty, or its time does not run forward", path=path, remedy="Process the log first."
        )
    width = len(joints)
    mapping = {
        f"{name}{SUFFIX[kind]}": [SENSOR if sensors else kind, [block * width + j]]
        for block, (kind, _) in enumerate(signals)
        for j, name in enumerate(joints)
    }
    stream = io.BytesIO()
    np.savez(stream, times=times, data=data[kept], signal_mapping=np.asarray(json.dumps(mapping)))
    return write_atomically(path, stream.getvalue(), force=force)


def from_sysid_series(sensordata: Any, control: Any | None = None) -> Recording:
    """The recording of series of ``mujoco.sysid``.

    Args:
        sensordata: A ``TimeSeries``, or the path of its ``.npz`` file, with positions of joints (MjStateQPos, or
            sensors named ``JOINT_qpos``) and perhaps their velocities.
        control: A ``TimeSeries`` or file with the controls, which must be torques of the joints in N m or N: motors
            with a gear of 1, named like their joints. Its clock may be another one.

    Raises:
        DataError: A file cannot be read, there are no positions, or controls and joints have other names.

    Example:
        >>> files = dynid.logs.write_sysid_series(run, folder, force=True)
        >>> dynid.logs.from_sysid_series(*files).joint_names
        ('joint1', 'joint2', 'joint3')
    """
    times, data, mapping = _series(sensordata, "sensordata")
    positions = _columns(mapping, QPOS)
    if not positions:
        raise DataError("the series has no positions of joints", remedy="Give a series with signals JOINT_qpos.")
    velocities = _columns(mapping, QVEL)
    names = tuple(positions)
    source = str(sensordata) if isinstance(sensordata, str | os.PathLike) else "mujoco.sysid"
    q = data[:, [positions[name] for name in names]]
    dq = data[:, [velocities[name] for name in names]] if set(names) <= set(velocities) else None
    if control is None:
        return Recording(time=times, q=q, dq=dq, joint_names=names, source=source)
    own, torques, controls = _series(control, "control")
    motors = _columns(controls, CTRL)
    if set(motors) != set(names):
        raise DataError(
            f"the controls {', '.join(motors) or 'of no motor'} are not those of the joints {', '.join(names)}",
            remedy="Name the motors like their joints.",
        )
    same = own.shape == times.shape and np.array_equal(own, times)
    return Recording(
        time=times, q=q, dq=dq, effort=torques[:, [motors[name] for name in names]],
        effort_time=None if same else own, joint_names=names, source=source,
    )  # fmt: skip


def _columns(mapping: dict[str, tuple[int, list[int]]], kind: int) -> dict[str, int]:
    """Joint -> column of a type of signal."""
    return {
        name.removesuffix(SUFFIX[kind]): columns[0]
        for name, (found, columns) in mapping.items()
        if len(columns) == 1 and (found == kind or (found == SENSOR and name.endswith(SUFFIX[kind])))
    }


def _series(given: Any, argument: str) -> tuple[Floats, Floats, dict[str, tuple[int, list[int]]]]:
    """Times, data and signals of a series in memory or on disk."""
    if not isinstance(given, str | os.PathLike):
        if not all(hasattr(given, name) for name in ("signal_mapping", "times", "data")):
            kind = type(given).__name__
            remedy = "Give a mujoco.sysid.TimeSeries or the path of its .npz file."
            raise ArgumentError(f"{argument} is of the kind {kind}", remedy=remedy)
        signals = given.signal_mapping or {}
        mapping = {
            name: (int(kind.value), np.atleast_1d(columns).tolist()) for name, (kind, columns) in signals.items()
        }
        return np.asarray(given.times, dtype=float), np.asarray(given.data, dtype=float), mapping
    path = Path(given)
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST:
                raise ValueError("it is too large")
        with np.load(path, allow_pickle=False) as content:
            times, data = np.array(content["times"], dtype=float), np.array(content["data"], dtype=float)
            raw = json.loads(str(content["signal_mapping"])) if "signal_mapping" in content else {}
        mapping = {str(name): (int(kind), [int(k) for k in columns]) for name, (kind, columns) in raw.items()}
        if data.ndim != 2 or any(not 0 <= k < data.shape[1] for _, columns in mapping.values() for k in columns):
            raise ValueError(f"data of shape {data.shape} do not have the columns of the signals")
    except FileNotFoundError as error:
        raise DataError("there is no such file", path=path, remedy="Give a file of TimeSeries.save_to_disk.") from error
    except (OSError, KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(
            f"the file is no series of mujoco.sysid: {error}",
            path=path,
            remedy="Give a file of TimeSeries.save_to_disk.",
        ) from error
    return times, data, mapping
