"""Torques from outside, from the model and what a robot measures: by momentum, by energy, by acceleration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_sample
from dynid.errors import ArgumentError, DataError
from dynid.estimation.rows import stretches, torque_of_terms
from dynid.kernels import kernel
from dynid.links.identify import Identification
from dynid.monitor.observer_model import ObserverModel
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tape import compile_single
from dynid.tape.kernel import Kernel
from dynid.terms.memory import lag_exponentially

Source = Robot | Identification | ObserverModel
"""What an observer takes its model from."""

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
        self._begin, self._step = compile_single(self.model.start), compile_single(self.model.step)
        self._state: Floats | None = None
        self._period, self._keep = np.zeros(1), np.ones(1)
        self._inputs = tuple(np.zeros(self.model.robot.dof) for _ in range(3))

    @property
    def state(self) -> Floats:
        """(3 n + k,) momentum, balance, torque from outside, and what friction remembers."""
        return np.zeros(self.model.state_size) if self._state is None else self._state.copy()

    def restart(self) -> None:
        """Forget everything: the next sample is the first one, as after a gap."""
        self._state = None

    def step(self, q: ArrayLike, dq: ArrayLike, torque: ArrayLike, period_s: float) -> Floats:
        """The torque from outside (n,) [N m or N] at one sample; zeros at the first one.

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
    """Torques from outside (N, n) [N m or N] along an experiment: what `MomentumObserver` gives, all at once.

    Samples without a torque pass the last value on. Every gap-free stretch starts from zero.

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
        external[rows][1:] = _follow(raw, keep)
    return external


def _follow(raw: Floats, keep: float) -> Floats:
    """``r = keep r + (1 - keep) e`` from zero on, along (N, n)."""
    if not len(raw):
        return raw
    return np.asarray(lag_exponentially(np.vstack([np.zeros((1, raw.shape[1])), raw]), keep)[1:])


def momentum_differences(source: Source, run: Experiment) -> Iterator[tuple[slice, Floats]]:
    """For each gap-free stretch its rows, and the mean torque from outside (N - 1, n) of each period."""
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
    """(N, n) torque that a motion takes without its accelerations: gravity, velocity forces, terms [N m or N]."""
    return np.asarray(friction_torque(model, run) - _balance(model)(run.q, run.dq)["force"])


def friction_torque(model: ObserverModel, run: Experiment) -> Floats:
    """(N, n) torque of the robot's own and all further terms along an experiment, inertias left out [N m or N]."""
    resting = replace(run, ddq=np.zeros_like(run.ddq))
    robot = model.robot.with_parameters(np.where(np.arange(model.theta.size) < 10 * model.robot.dof, 0.0, model.theta))
    own = kernel(robot, "inverse_dynamics")(run.q, run.dq, resting.ddq) if robot.terms else 0.0
    values = np.array([term.value for term in model.terms])
    return np.asarray(own + torque_of_terms(model.robot, model.terms, values, resting))


def external_torque(source: Source, run: Experiment) -> Floats:
    """Torques from outside (N, n) [N m or N] by the accelerations: the model's torques less the measured ones.

    They are exact at once, but carry the noise of the accelerations.

    Example:
        >>> bool(np.allclose(dynid.monitor.external_torque(fit, run), fit.torque(run) - run.effort, atol=1e-9))
        True
    """
    model = as_model(source)
    matched = run.matched(model.robot)
    robot = model.robot.with_parameters(model.theta)
    values = np.array([term.value for term in model.terms])
    torque = kernel(robot, "inverse_dynamics")(matched.q, matched.dq, matched.ddq)
    torque = torque + torque_of_terms(model.robot, model.terms, values, matched)
    return run.as_recorded(torque - matched.effort, model.robot)


def energy_residual(source: Source, run: Experiment, *, gain: float = GAIN) -> Floats:
    """Power (N,) [W] that flows in from outside, by the balance of energy; zero for a push that does no work.

    ``s = K (E - integral(dq (tau - friction) + s))`` with the energy E of links and rotors: one number for the arm.

    Example:
        >>> dynid.monitor.energy_residual(fit, run).shape == run.time.shape
        True
    """
    model = as_model(source)
    matched = run.matched(model.robot)
    robot = model.robot.with_parameters(model.theta)
    turning = 0.5 * np.einsum("ni,ij,nj->n", matched.dq, model.term_inertia, matched.dq)
    energy = kernel(robot, "energy")(matched.q, matched.dq)[:, 0] + turning
    power = np.einsum("ni,ni->n", matched.dq, _known_torque(matched) - friction_torque(model, matched))
    keep = float(np.exp(-as_number("gain", gain, above=0.0) / run.rate_hz))
    found = np.zeros(run.samples)
    for rows, _ in stretches(run):
        raw = np.diff(energy[rows]) * run.rate_hz - 0.5 * (power[rows][1:] + power[rows][:-1])
        found[rows][1:] = _follow(raw[:, None], keep)[:, 0]
    return found


def _known_torque(run: Experiment) -> Floats:
    """(N, n) measured torques; where one is missing the last one before, or the first one after."""
    torque = run.effort
    if np.isfinite(torque).all():
        return torque
    filled = np.array(torque)
    for column in filled.T:
        known = np.flatnonzero(np.isfinite(column))
        if not known.size:
            raise DataError("a joint has no torque at all", remedy="Watch a log with the torques of every joint.")
        before = np.searchsorted(known, np.arange(column.size), side="right") - 1
        column[:] = column[known[np.maximum(before, 0)]]
    return filled


_MODELS: WeakKeyDictionary[Identification, ObserverModel] = WeakKeyDictionary()
"""Models of identifications that are in use: recording one takes longer than a stretch of a log."""


def as_model(source: Source) -> ObserverModel:
    """The model of an observer from whatever it is made of."""
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
    return kernel(model.robot.with_parameters(model.theta), "momentum_balance")
