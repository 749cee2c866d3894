"""Make the estimator that a recipe names; if it simulates a control loop, with the law and motions of the logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.errors import ArgumentError, DataError
from dynid.estimators.estimate import Estimator
from dynid.estimators.registry import estimator_class, estimators
from dynid.logs.channel_map import ChannelMap, read_channel_map
from dynid.logs.reading import read_stream
from dynid.logs.recording import Recording
from dynid.robot.model import Robot

if TYPE_CHECKING:  # most commands simulate no control loop, and need not load how
    from dynid.control_loop.laws import ControlLaw
    from dynid.control_loop.loop import TimeFunction
    from dynid.identification.recipe import Recipe


def make_estimator(
    recipe: Recipe,
    robot: Robot,
    logs: Sequence[object] = (),
    channel_map: ChannelMap | Mapping[str, Any] | str | Path | None = None,
) -> Estimator:
    """Make the estimator of a recipe.

    Args:
        recipe: The recipe.
        robot: The robot with its terms.
        logs: The logs to identify from; if all are files, their commanded positions are used.
        channel_map: Channel map of the logs, which names the columns of commanded positions.

    Raises:
        ArgumentError: Settings of the recipe exclude each other, or the control law does not fit the robot.
    """
    name = recipe.estimator
    kind = estimator_class(name)
    if recipe.band_hz is not None and kind.reads_samples:
        able = ", ".join(other.name for other in estimators() if not other.reads_samples)
        raise ArgumentError(
            f"estimator {name} works on single samples, and band_hz filters them",
            remedy=f"Identify without band_hz, or use one of: {able}.",
        )
    made = kind()
    if not made.simulates_loop:
        if recipe.law is not None:
            raise ArgumentError(
                f"estimator {name} simulates no control loop, so that the law has no effect",
                remedy="Leave law out, or choose the estimator iv or didim.",
            )
        return made
    from dynid.control_loop.laws import read_law_rate
    from dynid.estimators.closed_loop.loop_estimator import LoopEstimator

    assert isinstance(made, LoopEstimator), "others simulate no loop"
    if recipe.springs:
        raise ArgumentError(
            f"estimator {name} simulates links and the robot's own terms, and no springs",
            remedy="Leave springs out, or use feasible, wls or another estimator without a loop.",
        )
    return replace(
        made,
        law=None if recipe.law is None else read_robot_law(recipe.law, robot),
        rate_hz=None if recipe.law is None else read_law_rate(recipe.law),
        motions=_commanded_motions(robot, logs, channel_map),
    )


def read_robot_law(path: str, robot: Robot) -> ControlLaw:
    """Read a control law from a file, and check that it fits the robot.

    Raises:
        ArgumentError: The law has numbers for another count of joints, or for other joint names.
    """
    from dynid.control_loop.laws import Tracked, read_law

    law = read_law(path, model=robot)
    rest = np.zeros(robot.dof)
    try:  # one call at rest shows whether the lengths of its gains fit
        law.torque(Tracked(rest, rest, rest, rest, rest), np.zeros(law.memory_size(robot.dof)), 1e-3)
        law.check_joints(robot.joint_names)
    except ArgumentError as error:
        reason = f"{error.reason}; robot '{robot.name}' has {robot.dof} moving joints"
        raise ArgumentError(reason, path=path, remedy=error.remedy) from error
    return law


def _commanded_motions(
    robot: Robot, logs: Sequence[object], channel_map: ChannelMap | Mapping[str, Any] | str | Path | None
) -> tuple[TimeFunction, ...]:
    """Read the commanded motion of every log; none if the map names no such columns or a log is no file."""
    commanded = None if channel_map is None else read_channel_map(channel_map).commanded
    if commanded is None or not all(isinstance(log, str | Path) for log in logs):
        return ()
    from dynid.estimators.closed_loop.added_loops import SplinedMotion

    files = (Path(str(log)) for log in logs)
    return tuple(
        SplinedMotion((part.time, part.q) for part in _read_commanded(robot, file, commanded)) for file in files
    )


def _read_commanded(robot: Robot, log: Path, commanded: ChannelMap) -> Iterator[Recording]:
    """Read the commanded positions of a log, piece by piece.

    Args:
        robot: The robot.
        log: The file.
        commanded: The channel map, with the columns of commanded positions in place of the measured ones.
    """
    try:
        yield from read_stream(log, robot, channel_map=commanded)
    except DataError as error:
        # errors name the section of the file that the user wrote
        place = error.place and error.place.replace("[position]", "[reference]")
        raise type(error)(error.reason, path=error.path or log, place=place, remedy=error.remedy) from error
