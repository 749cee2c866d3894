"""The option --estimator of the verb identify, and what the methods that simulate the control loop need besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dynid import errors
from dynid.cli.common import EXISTING, POSITIVE
from dynid.cli.reading import LogSource

if TYPE_CHECKING:
    from dynid.estimation.estimate import Estimator
    from dynid.logs.channel_map import ChannelMap
    from dynid.logs.recording import Recording
    from dynid.loop.laws import ControlLaw
    from dynid.loop.loop import TimeFunction
    from dynid.robot.model import Robot

__all__ = ["CONTROL_RATE", "ESTIMATOR", "IN_MEMORY", "LAW", "LOOPS", "chosen_estimator"]

ESTIMATORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "feasible": ("dynid.estimation.physical.feasible", "FeasibleWLS", {}),
    "wls": ("dynid.estimation.linear.least_squares", "WLS", {}),
    "ols": ("dynid.estimation.linear.least_squares", "OLS", {}),
    "huber": ("dynid.estimation.linear.robust", "Huber", {}),
    "cauchy": ("dynid.estimation.linear.robust", "Cauchy", {}),
    "ridge": ("dynid.estimation.linear.ridge", "Ridge", {}),
    "svd": ("dynid.estimation.linear.truncated_svd", "TruncatedSVD", {}),
    "link-by-link": ("dynid.estimation.linear.link_by_link", "LinkByLink", {}),
    "energy": ("dynid.estimation.linear.energy", "Energy", {}),
    "power": ("dynid.estimation.linear.power", "Power", {}),
    "momentum": ("dynid.estimation.linear.momentum", "Momentum", {}),
    "tls": ("dynid.estimation.noisy.total_least_squares", "TLS", {}),
    "ml": ("dynid.estimation.noisy.likelihood", "ML", {"position_std": 0.0}),  # positions are low-passed here
    "iv": ("dynid.estimation.closed_loop.instrumental", "InstrumentalVariables", {}),
    "didim": ("dynid.estimation.closed_loop.output_error", "DIDIM", {}),
    "cloe": ("dynid.estimation.closed_loop.output_error", "CLOE", {}),
    "clie": ("dynid.estimation.closed_loop.output_error", "CLIE", {}),
}
"""Name -> module, class and what it is made with."""
LOOPS = ("iv", "didim", "cloe", "clie")
"""Estimators that simulate the control loop."""
SINGLE_SAMPLES = ("huber", "cauchy", "energy", "power", "momentum", "ml")
"""Estimators that work on single samples, which a low-passed equation no longer is."""
FASTEST_HZ = 1e5
"""Control rates above this are a slip [Hz]: every period is simulated."""
IN_MEMORY = (*SINGLE_SAMPLES, "cloe", "clie")
"""Estimators that need whole logs in memory."""

ESTIMATOR = click.option("--estimator", type=click.Choice([*ESTIMATORS]), default="feasible", metavar="NAME",
                         show_default=True, help="feasible, wls, ols; huber, cauchy (outliers); ridge, svd; tls, ml "
                         "(noise in the columns, coloured noise); link-by-link, energy, power, momentum; "
                         "iv, didim, cloe, clie (simulate the control loop; see --law).")  # fmt: skip
LAW = click.option("--law", type=EXISTING, metavar="FILE",
                   help="Control law (TOML) for iv, didim, cloe, clie; without it computed torque is assumed, and said "
                   "(not for cloe). Commanded positions: [reference] in the channel map.")  # fmt: skip
CONTROL_RATE = click.option("--control-rate", type=POSITIVE, metavar="HZ",
                            help="Rate of the control law, a multiple of the log's; assumed by default.")  # fmt: skip


def chosen_estimator(
    name: str, source: LogSource, logs: Sequence[str], law: str | None, control_rate: float | None, springs: bool
) -> Estimator:
    """The estimator of a name, in the loop of the logs where it simulates that.

    Raises:
        ArgumentError: Another option does not go with it, or the law is not this robot's.
    """
    if source.band is not None and name in (*SINGLE_SAMPLES, *LOOPS):
        able = ", ".join(other for other in ESTIMATORS if other not in (*SINGLE_SAMPLES, *LOOPS))
        remedy = f"Identify without --band, or use one of: {able}."
        raise errors.ArgumentError(f"--estimator {name} works on single samples, --band filters them", remedy=remedy)
    module, kind, settings = ESTIMATORS[name]
    made: Any = getattr(import_module(module), kind)(**settings)
    if name not in LOOPS:
        for option in [option for option, given in (("--law", law), ("--control-rate", control_rate)) if given]:
            click.echo(f"{option} has no effect: --estimator {name} simulates no control loop", err=True)
        return cast("Estimator", made)
    if springs:
        raise errors.ArgumentError(
            f"--estimator {name} simulates links and the robot's own terms, and no springs",
            remedy="Leave --spring out, or use feasible, wls or another estimator without a loop.",
        )
    if control_rate is not None and control_rate > FASTEST_HZ:
        raise errors.ArgumentError(
            f"--control-rate {control_rate:g}: no law of a whole arm is that fast",
            remedy=f"Give the rate of the law that commands the torques [Hz], at most {FASTEST_HZ:g}.",
        )
    from dynid.estimation.closed_loop.in_loop import InLoop

    motions = commanded_motions(source, logs)
    return InLoop(
        estimator=made,
        law=None if law is None else robot_law(law, source.robot),
        rate_hz=control_rate,
        motions=motions,
    )


def robot_law(path: str, robot: Robot) -> ControlLaw:
    """The law of a file, which must fit the robot.

    Raises:
        ArgumentError: It does not.
    """
    import numpy as np

    from dynid.loop.law_files import read_law
    from dynid.loop.laws import Tracked

    law, rest = read_law(path, model=robot), np.zeros(robot.dof)
    try:
        law.torque(Tracked(rest, rest, rest, rest, rest), np.zeros(law.memory_size(robot.dof)), 1e-3)
    except errors.ArgumentError as error:
        raise errors.ArgumentError(
            f"{error.reason}, but robot '{robot.name}' has {robot.dof} moving joints",
            path=path,
            remedy=error.remedy or "Give one number, or one per moving joint, in order.",
        ) from error
    try:
        law.check_joints(robot.joint_names)
    except errors.ArgumentError as error:
        raise errors.ArgumentError(error.reason, path=path, remedy=error.remedy) from error
    return law


def commanded_motions(source: LogSource, logs: Sequence[str]) -> tuple[Callable[[], TimeFunction], ...]:
    """For every log what starts its commanded motion, where the channel map names its columns; else none."""
    from dynid.estimation.closed_loop.measured_motion import SplinedMotion
    from dynid.logs.channel_map import read_channel_map

    chosen = None if source.channel_map is None else read_channel_map(source.channel_map).commanded
    if chosen is None:
        return ()
    known = chosen

    def started(log: str) -> Callable[[], TimeFunction]:
        return lambda: SplinedMotion((part.time, part.q) for part in _commanded(source, log, known))

    return tuple(started(log) for log in logs)


def _commanded(source: LogSource, log: str, chosen: ChannelMap) -> Iterator[Recording]:
    """The commanded positions of a log, piece by piece; errors name their place in the map."""
    from dynid.logs.reading import read_stream

    try:
        yield from read_stream(Path(log), source.robot, channel_map=chosen)
    except errors.DataError as error:
        place = error.place and error.place.replace("[position]", "[reference]")
        raise type(error)(error.reason, path=error.path or log, place=place, remedy=error.remedy) from error
