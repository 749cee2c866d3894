"""The pieces of a Runge-Kutta step as tapes: what is the same for a whole run, and one evaluation of the rate.

Two things make an evaluation cheaper than the rate's own tape. What depends on the parameters alone is computed once a
run. And sines and cosines of angles come from those at a nearby base, by polynomials of the small turn d since then:

    sin(b + d) = sin b + (cos b sin d + sin b (cos d - 1)),    cos(b + d) = cos b + (cos b (cos d - 1) - sin b sin d)

They hold to the last bit for turns up to :data:`REACH`; every evaluation adds up the squares of its turns, so that a
step that went beyond is known, and repeated with sines of its own.

And where the rate of a position is another element of the state, its velocity, stages are placed as by Nystroem
[Hairer1993, II.14]: positions follow the mean of the velocities at the step's start and at the stage,

    q_i = q + node h (dq + dq_i) / 2,    dq_i = dq + node h ddq_(i-1),

and a stage whose node is that of the one before keeps its positions. The order is the same; sines, inertia and all else
that positions determine is then computed once for two stages of the fourth-order method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.tape.operations import Operation, is_binary
from dynid.tape.record import Recorder, evaluate
from dynid.tape.tape import Tape

__all__ = ["REACH", "RK2", "RK3", "RK4", "Evaluations", "Positions", "Scheme", "evaluations"]

REACH = 0.17
"""Largest turn [rad] of the polynomials, which interpolate at Chebyshev's points: error below 5e-17."""
_SINE = (-0.16666666666666652, 0.008333333333182215, -0.00019841267226670413, 2.7542842793224628e-06)
_COSINE = (-0.4999999999999985, 0.041666666665004466, -0.0013888886013003886, 2.4785663965207065e-05)


@dataclass(frozen=True, slots=True)
class Scheme:
    """An explicit Runge-Kutta method whose every stage needs the rate of the one before only."""

    nodes: tuple[float, ...]
    """Stage i is at ``state + nodes[i] h rate[i - 1]``, positions apart; the first at the state."""
    weights: tuple[float, ...]
    """The next state is ``state + sum weights[i] h rate[i]``."""
    stable: float
    """Step times rate of decay up to which it is stable."""

    @property
    def stages(self) -> int:
        """Evaluations of the rate in a step."""
        return len(self.nodes)

    @property
    def repeated(self) -> tuple[bool, ...]:
        """Of each stage, whether its positions are those of the one before."""
        return tuple(stage > 0 and self.nodes[stage] == self.nodes[stage - 1] for stage in range(self.stages))

    def table(self, period: float, most: int) -> NDArray[np.float64]:
        """(most, stages, 2) nodes and weights times h where a period is one step, two, and so on."""
        pairs = np.array(list(zip(self.nodes, self.weights, strict=True)))
        steps: NDArray[np.float64] = period / np.arange(1, most + 1)[:, None, None] * pairs
        return steps


RK4 = Scheme((0.0, 0.5, 0.5, 1.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0), 2.78)
"""Nystroem's, for states without velocities the classical one, of order 4."""
RK3 = Scheme((0.0, 1.0 / 3.0, 2.0 / 3.0), (0.25, 0.0, 0.75), 2.51)
"""Heun's, of order 3."""
RK2 = Scheme((0.0, 0.5), (0.0, 1.0), 2.0)
"""The midpoint rule, of order 2."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Elements of a state whose rates are others of its elements."""

    places: tuple[int, ...]
    """(d,) where they are"""
    velocities: tuple[int, ...]
    """(d,) where their rates are"""

    @classmethod
    def of(cls, rate: Tape) -> Positions:
        """Those of a rate ``(state, held, parameters) -> rate``; what is a velocity is no position too."""
        state, elements = rate.inputs[0].size, rate.outputs[0].elements.ravel().tolist()
        pairs = [(q, v) for q, v in enumerate(elements) if 0 <= v < state and not 0 <= elements[v] < state]
        return cls(tuple(q for q, _ in pairs), tuple(v for _, v in pairs))

    def moved(self, origin: Any, node: Any, before: Any) -> Any:
        """(..., s) the state of a stage, from the step's first state and the rate of the stage before."""
        state, v = origin + node * before, list(self.velocities)
        state[..., list(self.places)] = origin[..., list(self.places)] + (0.5 * node) * (origin[..., v] + state[..., v])
        return state


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The tapes of `dynid.loop.integrator.machine_loop`. Sizes: s state, u held, f fixed, a angles, c kept."""

    positions: Positions
    """Of the state."""
    angles: tuple[int, ...]
    """Elements of the state whose sines or cosines the rate needs."""
    fixed: Tape
    """``parameters -> fixed``: once a run"""
    exact: Tape
    """``(state, held, fixed, sine, cosine) -> rate``: sines and cosines (a,) are those of the state"""
    nearby: Tape
    """``(origin, before, turned, held, fixed, base, sine, cosine, node) -> {rate, turned, kept}``: the state is
    ``origin + node before``, positions apart, sines and cosines are those of the base (a,), kept what positions tell"""
    again: Tape
    """``(origin, before, held, fixed, kept, node) -> rate``: with the positions of an evaluation before"""


def evaluations(rate: Tape) -> Evaluations:
    """The pieces of a rate ``(state, held, parameters) -> rate``."""
    state, held, parameters = (entry.size for entry in rate.inputs)
    positions = Positions.of(rate)
    angles = tuple(sorted({left for _, code, left, _ in rate.steps() if code in _TURNS and 0 <= left < state}))
    split = _Split(rate, range(state + held, state + held + parameters), positions.places)
    row, number = (len(angles),), (1,)
    given = {"held": (held,), "fixed": (len(split.boundary),)}

    def exact(state: Any, held: Any, fixed: Any, sine: Any, cosine: Any) -> dict[str, Any]:
        turns = dict(zip(angles, zip(sine, cosine, strict=True), strict=True))
        return {"rate": split.rate(state, held, fixed, turns)[0]}

    def nearby(origin: Any, before: Any, turned: Any, *given: Any) -> dict[str, Any]:
        held, fixed, base, sine, cosine, node = given
        state = positions.moved(origin, node[0], before)
        turns = [state[j] - b for j, b in zip(angles, base, strict=True)]
        pairs = [_turned(s, c, d) for s, c, d in zip(sine, cosine, turns, strict=True)]
        rates, kept = split.rate(state, held, fixed, dict(zip(angles, pairs, strict=True)))
        return {"rate": rates, "turned": turned + sum(d * d for d in turns), "kept": kept}

    def again(origin: Any, before: Any, held: Any, fixed: Any, kept: Any, node: Any) -> dict[str, Any]:
        return {"rate": split.rate_again(origin + node[0] * before, held, fixed, kept)}

    moved = {"origin": (state,), "before": (state,)}
    near: dict[str, tuple[int, ...]] = {
        **moved,
        "turned": number,
        **given,
        "base": row,
        "sine": row,
        "cosine": row,
        "node": number,
    }
    return Evaluations(
        positions=positions,
        angles=angles,
        fixed=split.tape(parameters),
        exact=_recorded(exact, {"state": (state,), **given, "sine": row, "cosine": row}),
        nearby=_recorded(nearby, near),
        again=_recorded(again, {**moved, **given, "kept": (len(split.kept),), "node": number}),
    )


_TURNS = (Operation.SIN, Operation.COS)


def _turned(sine: Any, cosine: Any, turn: Any) -> tuple[Any, Any]:
    """Sine and cosine after a small turn."""
    z = turn * turn
    small = turn + (turn * z) * _polynomial(_SINE, z)
    less = z * _polynomial(_COSINE, z)
    return sine + (cosine * small + sine * less), cosine + (cosine * less - sine * small)


def _polynomial(coefficients: tuple[float, ...], z: Any) -> Any:
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * z + coefficient
    return total


def _recorded(function: Callable[..., dict[str, Any]], shapes: dict[str, tuple[int, ...]]) -> Tape:
    recorder = Recorder()
    return recorder.tape(function(*(recorder.input(name, shape) for name, shape in shapes.items())))


class _Split:
    """A rate, cut into what its parameters determine, what positions determine beside them, and the rest."""

    def __init__(self, rate: Tape, parameters: range, positions: Iterable[int]) -> None:
        self._rate, self._parameters = rate, parameters
        self._constants: list[float] = rate.constants.tolist()
        self._fixed, read = self._determined(parameters)
        self.boundary = sorted(read & self._fixed)
        self._placed, read = self._determined([*parameters, *positions])
        self.kept = sorted((read & self._placed) - self._fixed)

    def _determined(self, by: Iterable[int]) -> tuple[set[int], set[int]]:
        """The values that some inputs determine, those included, and all that is read by others or wanted."""
        found, read = set(by), set(self._rate.outputs[0].elements.ravel().tolist())
        for value, code, left, right in self._rate.steps():
            operands = (left, right) if is_binary(code) else (left,)
            if all(operand < 0 or operand in found for operand in operands):
                found.add(value)
            else:
                read.update(operands)
        return found, read

    def tape(self, parameters: int) -> Tape:
        """``parameters -> fixed``."""
        recorder = Recorder()
        values = dict(zip(self._parameters, recorder.input("parameters", (parameters,)), strict=True))
        self._run((step for step in self._rate.steps() if step[0] in self._fixed), values)
        return recorder.tape({"fixed": np.array([values[operand] for operand in self.boundary], dtype=object)})

    def rate(self, state: Any, held: Any, fixed: Any, turns: dict[int, tuple[Any, Any]]) -> tuple[Any, Any]:
        """(s,) rate and (c,) kept, recorded on other scalars; turns are sine and cosine of elements of the state."""
        values = dict(enumerate([*state, *held])) | dict(zip(self.boundary, fixed, strict=True))
        self._run((step for step in self._rate.steps() if step[0] not in self._fixed), values, turns)
        return self._wanted(values), np.array([values[place] for place in self.kept], dtype=object)

    def rate_again(self, state: Any, held: Any, fixed: Any, kept: Any) -> Any:
        """(s,) rate where positions are those for which so much was kept."""
        values = dict(enumerate([*state, *held])) | dict(zip(self.boundary, fixed, strict=True))
        values |= dict(zip(self.kept, kept, strict=True))
        self._run((step for step in self._rate.steps() if step[0] not in self._placed), values)
        return self._wanted(values)

    def _wanted(self, values: dict[int, Any]) -> Any:
        elements = self._rate.outputs[0].elements.ravel().tolist()
        return np.array([self._value(values, element) for element in elements], dtype=object)

    def _run(
        self,
        steps: Iterable[tuple[int, int, int, int]],
        values: dict[int, Any],
        turns: dict[int, tuple[Any, Any]] | None = None,
    ) -> None:
        for value, code, left, right in steps:
            if turns and code in _TURNS and left in turns:
                values[value] = turns[left][code != Operation.SIN]
            else:
                second = self._value(values, right) if is_binary(code) else 0.0
                values[value] = evaluate(code, self._value(values, left), second)

    def _value(self, values: dict[int, Any], operand: int) -> Any:
        return values[operand] if operand >= 0 else self._constants[~operand]
