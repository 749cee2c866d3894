"""The momentum observer: torques from outside by the model, positions, velocities and torques, without accelerations.

A torque from outside (external torque) is what contacts and loads exert on a joint; the observer is that of De Luca and
Mattone (2003). The robot obeys ``dp/dt = tau + C^T dq - g - friction + external`` with ``p = M dq``. The observer
``r = K (p - integral(tau + C^T dq - g - friction + r))`` obeys ``dr/dt = K (external - r)``: it follows the torque from
outside with the time constant 1 / K and needs no acceleration. Over one period this is, exactly for a torque that is
constant within it,

    e = (p - p_before) / period - (b + b_before) / 2,    r = keep r_before + (1 - keep) e,    keep = exp(-K period),

with the balance b = tau + C^T dq - g - friction, and the raw torque from outside e. The integral itself is never
formed: it would grow without end and lose digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number, as_sample
from dynid.compiled import kernel
from dynid.dynamics.energy import momentum_balance
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.errors import ArgumentError, DataError
from dynid.estimators.rows import stretches, torque_of_terms
from dynid.identification.identify import Identification
from dynid.identification.rich.models import Model, PresentState
from dynid.lazy import cached_property
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tape import Tape, compile_single, record
from dynid.tape.kernel import Kernel
from dynid.terms.base import RecordableTerm
from dynid.terms.memory import lag_exponentially


@dataclass(frozen=True, eq=False)
class ObserverModel(Model):
    """The model of an observer, recorded as two tapes (straight-line programs) that need no accelerations.

    A term is a contribution to the joint torques other than the links', such as friction. `MomentumObserver` compiles
    the tapes, and the export of C code writes them as C functions. Terms that depend on the torques of the links see
    these without the part of the accelerations, which an observer does not know.
    """

    @classmethod
    def of(cls, source: Robot | Identification) -> ObserverModel:
        """Make the model of a robot with its parameter values, or of an identification with all its terms."""
        model = source.rich if isinstance(source, Identification) else Model(source, source.parameter_vector)
        return cls(model.robot, model.theta, model.terms)

    @property
    def state_size(self) -> int:
        """Length of the state: momentum, balance and external torque (n,) each, then the memory of friction (k,)."""
        return 3 * self.robot.dof + self.memory_size

    @cached_property
    def term_inertia(self) -> Floats:
        """(n, n) inertia of the terms that the robot itself does not have: rotors that move several joints, say."""
        M = np.zeros((self.robot.dof, self.robot.dof))
        for term in self.terms:
            if isinstance(term, RecordableTerm):
                for (j, k), factor in term.inertia(term.acts_on(self.robot.joint_names)).items():
                    M[j, k] += term.value * factor
        return M

    @cached_property
    def start(self) -> Tape:
        """Tape of the first sample: inputs q, dq, ``torque`` (n,); output ``state`` (`state_size`,)."""
        n = self.robot.dof

        def begin(q: Any, dq: Any, torque: Any) -> dict[str, Any]:
            state = PresentState(self.robot, q, dq, np.zeros(n), 0.0)
            memory = [number for term in self.terms for number in term.begin(state)] or [0.0]
            momentum, balance, _ = self._advance(q, dq, torque, 0.0, memory)
            return {"state": np.concatenate([momentum, balance, np.zeros(n), np.array(memory)])}

        return record(begin, q=(n,), dq=(n,), torque=(n,))

    @cached_property
    def step(self) -> Tape:
        """Tape of a further sample; see the equations at the top of this module.

        Inputs are q, dq, ``torque`` (n,), ``period`` [s] and ``keep`` [-] (1,), and ``state``; output is the ``next``
        state.
        """
        n = self.robot.dof

        def advance(q: Any, dq: Any, torque: Any, period: Any, keep: Any, state: Any) -> dict[str, Any]:
            momentum, balance, memory = self._advance(q, dq, torque, period[0], list(state[3 * n :]))
            change = (momentum - state[:n]) * (1.0 / period[0])
            outside = change - (balance + state[n : 2 * n]) * 0.5
            external = outside + (state[2 * n : 3 * n] - outside) * keep[0]
            return {"next": np.concatenate([momentum, balance, external, np.array(memory)])}

        return record(advance, q=(n,), dq=(n,), torque=(n,), period=(1,), keep=(1,), state=(self.state_size,))

    def _advance(self, q: Any, dq: Any, torque: Any, period: Any, memory: list[Any]) -> tuple[Any, Any, list[Any]]:
        """Compute momentum (n,), balance (n,) and the next memory of friction (k,) of one sample.

        `momentum_balance` gives the links' ``momentum`` M dq and ``force`` C^T dq - g.
        """
        rest = np.zeros(self.robot.dof)
        links = momentum_balance(self.robot, self.theta, q, dq)
        balance = list(torque + (links["force"] - term_torque(self.robot, self.theta, q, dq, rest)))
        state = PresentState(self.robot, q, dq, rest, period)
        remembered: list[Any] = []
        # `places`: where the memory of each term begins; a term returns joint -> torque per unit of its value
        for term, (first, last) in zip(self.terms, pairwise(self.places), strict=True):
            columns, numbers = term.advance(state, memory[first:last])
            remembered += numbers
            for joint, column in columns.items():
                balance[joint] = balance[joint] - term.value * column
        return links["momentum"] + self.term_inertia @ dq, np.array(balance), remembered or memory[:1]


Source = Robot | Identification | ObserverModel
"""Objects from which the model of an observer is made."""

GAIN = 100.0
"""Gain of the observers [1/s] (convention: they follow a torque from outside within 10 ms)."""


class MomentumObserver:
    """The torque from outside while the robot runs, sample after sample, without accelerations.

    Typical use, in the control loop::

        observer = dynid.monitor.MomentumObserver(fit)
        external = observer.step(q, dq, torque, period_s)
    """

    __slots__ = ("_begin", "_gain", "_inputs", "_keep", "_period", "_state", "_step", "model")

    model: ObserverModel
    """The model of the robot."""

    def __init__(self, source: Source, *, gain: float = GAIN) -> None:
        """Prepare an observer.

        Args:
            source: A robot with its parameter values, or an identification: then with all its terms.
            gain: How quickly the observer follows: one over its time constant [1/s].
        """
        self.model = as_model(source)
        self._gain = as_number("gain", gain, above=0.0)
        self._begin = compile_single(self.model.start)
        self._step = compile_single(self.model.step)
        self._state: Floats | None = None  # before the first sample
        self._period = np.zeros(1)
        self._keep = np.ones(1)
        self._inputs = tuple(np.zeros(self.model.robot.dof) for _ in range(3))

    @property
    def state(self) -> Floats:
        """(3 n + k,) momentum, balance, torque from outside, and the memory of friction."""
        return np.zeros(self.model.state_size) if self._state is None else self._state.copy()

    def restart(self) -> None:
        """Forget everything: the next sample is the first one, as after a gap."""
        self._state = None

    def step(self, q: ArrayLike, dq: ArrayLike, torque: ArrayLike, period_s: float) -> Floats:
        """Take one sample and compute the torque from outside (n,) [N m or N]; zeros at the first one.

        Args:
            q: (n,) joint positions [rad or m].
            dq: (n,) joint velocities.
            torque: (n,) measured torques of the drives [N m or N].
            period_s: Time since the sample before [s].

        Raises:
            ArgumentError: There is not one number per joint; the state does not change.
            DataError: A number is NaN or infinite; the state does not change.
        """
        given = (("q", q), ("dq", dq), ("torque", torque))
        checked = [as_sample(name, values, self.model.robot.dof) for name, values in given]
        for place, values in zip(self._inputs, checked, strict=True):
            place[:] = values
        if not all(np.isfinite(array).all() for array in self._inputs):
            raise DataError("a sample is not finite", remedy="Leave it out and call restart.")
        n = self.model.robot.dof
        if self._state is None:
            self._state = np.array(self._begin(*self._inputs))
        else:
            if period_s != self._period[0]:
                self._period[0] = as_number("period_s", period_s, above=0.0)
                self._keep[0] = np.exp(-self._gain * period_s)
            self._state = self._step(*self._inputs, self._period, self._keep, self._state)
        return self._state[2 * n : 3 * n].copy()


def observe(source: Source, run: Experiment, *, gain: float = GAIN) -> Floats:
    """Compute the torques from outside (N, n) [N m or N] along an experiment, as `MomentumObserver` gives them.

    A missing torque counts as the last known one. Every gap-free stretch starts from zero.

    Args:
        source: As for `MomentumObserver`.
        run: The motion and the measured torques.
        gain: As for `MomentumObserver`.

    Example:
        >>> dynid.monitor.observe(fit, run).shape == run.q.shape
        True
    """
    keep = float(np.exp(-as_number("gain", gain, above=0.0) / run.rate_hz))
    external = np.zeros(run.q.shape)
    for rows, raw in momentum_differences(source, run):
        external[rows][1:] = follow(raw, keep)
    return external


def follow(raw: Floats, keep: float) -> Floats:
    """Filter raw torques e (N, n) as the observer does: ``r = keep r_before + (1 - keep) e``, from zero on."""
    return np.asarray(lag_exponentially(np.vstack([np.zeros((1, raw.shape[1])), raw]), keep)[1:])


def momentum_differences(source: Source, run: Experiment) -> Iterator[tuple[slice, Floats]]:
    """Iterate over the gap-free stretches of an experiment.

    Yields:
        The rows of the stretch, N of them, and the raw torque from outside e (N - 1, n) between successive samples
        [N m or N]: change of the momentum over the period, less the mean balance.
    """
    model = as_model(source)
    matched = run.matched(model.robot)
    torque = _known_torque(matched)
    balance = _balance(model)(matched.q, matched.dq)
    momentum = balance["momentum"] + matched.dq @ model.term_inertia
    force = torque + balance["force"] - friction_torque(model, matched)
    for rows, _ in stretches(run):
        change = np.diff(momentum[rows], axis=0) * run.rate_hz
        mean = 0.5 * (force[rows][1:] + force[rows][:-1])
        yield rows, run.as_recorded(change - mean, model.robot)


def expected_torque(model: ObserverModel, run: Experiment) -> Floats:
    """Compute the torques (N, n) of a motion without its accelerations: gravity, velocity forces, terms [N m or N]."""
    return np.asarray(friction_torque(model, run) - _balance(model)(run.q, run.dq)["force"])


def friction_torque(model: ObserverModel, run: Experiment) -> Floats:
    """Compute the torques (N, n) of all terms along an experiment, without those of rotor inertias [N m or N]."""
    resting = replace(run, ddq=np.zeros_like(run.ddq))  # no rotor inertias
    # the terms of the robot remain where all its links are without mass
    robot = model.robot.with_parameters(np.where(np.arange(model.theta.size) < 10 * model.robot.dof, 0.0, model.theta))
    of_robot = kernel(robot, "inverse_dynamics")(run.q, run.dq, resting.ddq) if robot.terms else 0.0
    values = np.array([term.value for term in model.terms])
    return np.asarray(of_robot + torque_of_terms(model.robot, model.terms, values, resting))


def _known_torque(run: Experiment) -> Floats:
    """Fill the gaps of the measured torques (N, n) with the last one before, or the first one after."""
    known = np.isfinite(run.effort)
    if not known.any(axis=0).all():
        raise DataError("a joint has no torque at all", remedy="Watch a log with the torques of every joint.")
    # (N, n) row of the last known torque
    last = np.maximum.accumulate(np.where(known, np.arange(run.samples)[:, None], known.argmax(axis=0)), axis=0)
    return np.take_along_axis(run.effort, last, axis=0)


_MODELS: WeakKeyDictionary[Identification, ObserverModel] = WeakKeyDictionary()
"""Models of identifications that are in use, because recording one takes longer than watching a stretch of a log."""


def as_model(source: Source) -> ObserverModel:
    """Make the model of an observer, or look it up."""
    if isinstance(source, ObserverModel):
        return source
    if isinstance(source, Robot):
        return ObserverModel.of(source)
    if not isinstance(source, Identification):
        raise ArgumentError(
            f"an observer cannot be made from a {type(source).__name__}",
            remedy="Pass a Robot, or an Identification such as read_result(path).identification().",
        )
    if source not in _MODELS:
        _MODELS[source] = ObserverModel.of(source)
    return _MODELS[source]


@lru_cache(maxsize=16)
def _balance(model: ObserverModel) -> Kernel:
    """Look up the compiled function (q, dq) -> ``momentum`` M dq and ``force`` C^T dq - g of the links, each (N, n)."""
    return kernel(model.robot.with_parameters(model.theta), "momentum_balance")
