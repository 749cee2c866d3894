"""Calibrate the gains of drives from logs with and without a weighed load: what ``dynid drives`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.errors import DataError
from dynid.identification.given_data import check_copies
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.drives import CurrentGains
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from dynid.payload.drive_gains import DriveGains, identify_drive_gains
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms


def calibrate_drives(
    robot: Robot,
    logs: Sequence[str | Path],
    unloaded: Sequence[str | Path],
    *,
    mass_kg: float,
    com: Sequence[float] | None = None,
    link: str | None = None,
    channel_map: ChannelMapSource | None = None,
) -> DriveGains:
    """Calibrate the gains of a robot's drives with a load that was weighed.

    Args:
        robot: The robot; it gets rotor inertia, friction and offset in every joint without them.
        logs: Logs with the load; their currents count, or their torques where there are no currents.
        unloaded: Logs without the load.
        mass_kg: Mass of the load [kg].
        com: (3,) its centre of mass in the link's frame [m]; None estimates it, as the moments of inertia always are.
        link: Link that carries the load; by default the link of the last body.
        channel_map: Channel map of the logs, its file, or the name of a built-in one. Gains that it states with their
            uncertainty count together with the logs; gains without one do not.

    Raises:
        DataError: A log has neither currents nor torques, or the motion does not show the mass.

    Example:
        >>> logs, empty = [folder / "held.csv"], [folder / "run1.csv"]
        >>> known = {"mass_kg": 2.0, "com": (0.0, 0.0, 0.1)}
        >>> gains = dynid.workflows.calibrate_drives(robot, logs, empty, **known, channel_map=folder / "map.toml")
        >>> gains.gain.shape, gains.unit  # the map has torques, so that the gains correct them
        ((3,), '1')
    """
    check_copies(
        logs, unloaded, why="with the load", remedy="Give a log of the robot without the load: --unloaded empty.csv."
    )
    model = add_terms(robot)
    recordings = {log: read_recording(log, model, channel_map=channel_map) for log in (*logs, *unloaded)}
    loaded, empty = ([_drive_signals(recordings[log], log) for log in group] for group in (logs, unloaded))
    # the gains of the channel map, which all logs share
    gain = recordings[logs[0]].gain
    std = recordings[logs[0]].gain_std
    stated = None if gain is None or std is None else CurrentGains(gain, stderr=std * np.abs(gain))
    found = identify_drive_gains(
        model, loaded=loaded, unloaded=empty, mass_kg=mass_kg, com=com, link=link, stated=stated
    )  # fmt: skip
    of_torques = all(recording.current is None for recording in recordings.values())
    kinds = {joint.kind == "prismatic" for joint in robot.moving_joints}
    unit = "N/A" if kinds == {True} else "N m/A" if kinds == {False} else "N m/A or N/A"
    return replace(found, unit="1" if of_torques else unit)


def _drive_signals(recording: Recording, log: str | Path) -> Experiment:
    """Process a recording with its currents in place of torques, or its torques without the gains of the channel map.

    These are the numbers of the log itself, which the calibrated gains multiply.
    """
    if recording.current is not None:
        recording = replace(recording, effort=recording.current)
    if recording.effort is None:
        raise DataError("the log has neither currents nor torques", path=log, remedy="Map one of them.")
    if recording.current is None and recording.gain is not None:
        recording = replace(recording, effort=recording.effort / recording.gain)
    return process(recording)
