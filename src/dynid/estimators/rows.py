"""From an experiment to reduced equations: the columns of terms along a motion, their torques, and the reduction.

A term is a part of the model that adds a torque to some joints, such as a friction. Its column is its torque per unit
of its parameter. Terms with memory (hysteresis, lags) need gap-free stretches of motion. Terms that depend on the
torques of the links, such as load-dependent friction, ask a `RobotTorques` for them.

`reduce_rows` is called by `dynid.estimators.equations` and by the diagnosis of logs. It forms the columns of base
parameters and terms, low-passes both sides of the equations if asked, and compresses them to triangles (QR), one for
each joint and block of time: an `Information`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.compiled import kernel
from dynid.data_reduction import Information
from dynid.data_reduction.extension import Extension
from dynid.data_reduction.reduction import reduce_extended
from dynid.identifiability.base_set import BaseParameters
from dynid.processing.cutoff import HIGHEST_CUTOFF
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth, check_band
from dynid.robot.model import Robot
from dynid.terms.base import Motion, Reference, Term


@dataclass(frozen=True, eq=False)
class RobotTorques:
    """Torques of a robot along a motion, for terms that depend on them; see `dynid.terms.base.LinkTorques`."""

    robot: Robot
    """Geometry and terms; the parameters come with each call, in a `Reference`."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""
        return self.robot.joint_names

    @property
    def gravity(self) -> Floats:
        """(3,) gravity [m/s^2] in the root link's frame."""
        return self.robot.gravity

    def torque(self, reference: Reference, motion: Motion) -> Floats:
        """Compute the torque (N, n) of the whole robot with the reference's parameters [N m or N].

        Many terms need it along the same stretch of motion, so it is cached as long as the stretch is in use.
        """
        known = _TORQUES.setdefault(motion, [])
        for known_reference, robot, torque in known:
            if known_reference is reference and robot is self.robot:
                return torque
        torque = torque_along(self.robot, reference.theta, motion)
        known.append((reference, self.robot, torque))
        return torque

    def gravity_torque(self, reference: Reference, motion: Motion, gravity: Floats) -> Floats:
        """Compute the torque (N, n) that holds the links under a gravity vector (3,) in m/s^2 [N m or N]."""
        turned = self.robot.with_gravity(gravity)
        return np.asarray(kernel(turned, "gravity_torque", symbolic_parameters=True)(motion.q, reference.theta))


_TORQUES: WeakKeyDictionary[Motion, list[tuple[Reference, Robot, Floats]]] = WeakKeyDictionary()
"""Cache of torques along stretches of motion, as long as these are in use."""


def torque_along(robot: Robot, theta: Floats, motion: Motion | Experiment) -> Floats:
    """Compute the torque (N, n) of a robot with parameters theta (p,) along a motion [N m or N].

    The parameters are inputs of the compiled program. `dynid.compiled.inverse_dynamics` compiles them in, which is
    worth its time if one robot is evaluated many times; here parameters change from call to call.
    """
    evaluate = kernel(robot, "inverse_dynamics", symbolic_parameters=True)
    return np.asarray(evaluate(motion.q, motion.dq, motion.ddq, theta))


OVERSAMPLING = 5.0
"""Rate of the rows that are kept after the low-pass, divided by the upper end of the band (derivation: the filter has
attenuated everything well below half of this rate, so that nothing aliases)."""


def stretches(run: Experiment, *, memory: bool = True) -> Iterator[tuple[slice, Motion]]:
    """Iterate over the gap-free stretches of an experiment: their rows and their motion.

    Args:
        run: The experiment.
        memory: Whether a term has memory; otherwise all rows come at once.
    """
    gaps = (np.flatnonzero(np.diff(run.segment)) + 1).tolist() if memory else []
    for start, stop in pairwise([0, *gaps, run.samples]):
        rows = slice(start, stop)
        # terms read one joint after the other, so the columns are stored contiguously
        q, dq, ddq = (np.asfortranarray(channel[rows]) for channel in (run.q, run.dq, run.ddq))
        yield rows, Motion(q, dq, ddq, run.rate_hz)


def term_columns(robot: Robot, terms: Sequence[Term], motion: Motion) -> list[dict[int, Floats]]:
    """Compute for each term its columns on one stretch: joint index -> (N,) torque per unit."""
    return [term.column(RobotTorques(robot), motion) for term in terms]


def torque_of_terms(robot: Robot, terms: Sequence[Term], values: Floats, run: Experiment) -> Floats:
    """Compute the torque (N, n) of terms with parameters ``values`` (k,) along an experiment [N m or N]."""
    torque = np.zeros(run.q.shape)
    for rows, motion in stretches(run, memory=any(term.has_memory for term in terms)):
        for term, value in zip(terms, values, strict=True):
            for joint, column in term.column(RobotTorques(robot), motion).items():
                torque[rows, joint] += value * column
    return torque


def reduce_rows(
    robot: Robot,
    base: BaseParameters,
    terms: Sequence[Term],
    run: Experiment,
    blocks: NDArray[np.int64],
    band_hz: float | None,
    further: Sequence[dict[int, Floats]] = (),
) -> Information:
    """Reduce an experiment to the information on its base parameters and terms.

    `Information.columns` numbers the columns: below p those of the robot's standard parameters, ``p + k`` that of
    term k.

    Args:
        robot: Geometry and terms.
        base: The base parameters.
        terms: Terms besides the robot's own.
        run: The experiment.
        blocks: (N,) number of the block of time of each sample.
        band_hz: Upper end of the band to which both sides are low-passed [Hz]; None for no filter.
        further: Columns of nuisance parameters behind those of the terms: joint index -> (N,) torque per unit.
    """
    # the key of the extension: informations of several experiments can be merged only if their keys agree
    names = [(type(term).__qualname__, term.name) for term in terms]
    extension = Extension(
        key=repr((names, len(further), band_hz)),
        further=(*_whole_columns(robot, terms, run), *further),
        low_pass=None if band_hz is None else partial(_low_pass, rate_hz=run.rate_hz, band_hz=band_hz),
        step=1 if band_hz is None else _step(run.rate_hz, band_hz),
    )
    return reduce_extended(robot, run, extension, columns=base.columns, segments=blocks)


def _whole_columns(robot: Robot, terms: Sequence[Term], run: Experiment) -> list[dict[int, Floats]]:
    """Compute for each term its columns along the whole run: joint index -> (N,) torque per unit."""
    found: list[dict[int, Floats]] = [{} for _ in terms]
    for rows, motion in stretches(run, memory=any(term.has_memory for term in terms)):
        for place, columns in zip(found, term_columns(robot, terms, motion), strict=True):
            for joint, column in columns.items():
                place.setdefault(joint, np.zeros(run.samples))[rows] = column
    return found


def _step(rate_hz: float, band_hz: float) -> int:
    """Compute the number of low-passed rows of which one is kept."""
    check_band("band_hz", band_hz, rate_hz)
    return max(1, int(rate_hz / (OVERSAMPLING * band_hz)))


def _low_pass(table: Floats, rate_hz: float, band_hz: float) -> Floats:
    """Low-pass the columns of a gap-free stretch (N, k)."""
    if band_hz >= HIGHEST_CUTOFF * rate_hz or len(table) < 4:  # three samples are too short for the filter
        return table
    return Butterworth(rate_hz, band_hz).apply(table)
