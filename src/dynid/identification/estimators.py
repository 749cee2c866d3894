"""The estimator that a recipe names, in the control loop of the logs where it simulates one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.errors import ArgumentError, DataError
from dynid.estimation.estimate import Estimator
from dynid.estimation.registry import estimator_class, estimators
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
    """The estimator of a recipe.

    Args:
        recipe: The recipe.
        robot: The robot with its terms.
        logs: The logs to identify from; files among them may hold commanded positions.
        channel_map: Their channel map.

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
    from dynid.estimation.closed_loop.loop_estimator import LoopEstimator

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
    """Read a control law, which must fit the robot.

    Raises:
        ArgumentError: It does not.
    """
    from dynid.control_loop.laws import Tracked, read_law

    law, rest = read_law(path, model=robot), np.zeros(robot.dof)
    try:
        law.torque(Tracked(rest, rest, rest, rest, rest), np.zeros(law.memory_size(robot.dof)), 1e-3)
        law.check_joints(robot.joint_names)
    except ArgumentError as error:
        reason = f"{error.reason}; robot '{robot.name}' has {robot.dof} moving joints"
        raise ArgumentError(reason, path=path, remedy=error.remedy) from error
    return law


def _commanded_motions(
    robot: Robot, logs: Sequence[object], channel_map: ChannelMap | Mapping[str, Any] | str | Path | None
) -> tuple[TimeFunction, ...]:
    """The commanded motion of every log; none where the map names no such columns."""
    commanded = None if channel_map is None else read_channel_map(channel_map).commanded
    if commanded is None or not all(isinstance(log, str | Path) for log in logs):
        return ()
    from dynid.estimation.closed_loop.added_loops import SplinedMotion

    files = (Path(str(log)) for log in logs)
    return tuple(
        SplinedMotion((part.time, part.q) for part in _read_commanded(robot, file, commanded)) for file in files
    )


def _read_commanded(robot: Robot, log: Path, commanded: ChannelMap) -> Iterator[Recording]:
    """The commanded positions of a log, piece by piece; errors name their place in the map."""
    try:
        yield from read_stream(log, robot, channel_map=commanded)
    except DataError as error:
        place = error.place and error.place.replace("[position]", "[reference]")
        raise type(error)(error.reason, path=error.path or log, place=place, remedy=error.remedy) from error
