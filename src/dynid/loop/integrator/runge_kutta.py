"""The Runge-Kutta methods, and the rate of a system split into tapes for their stages.

Three things make a stage cheaper than an evaluation of the rate's own tape. Values that depend on the parameters alone
are computed once per run. Sines and cosines of angles come from those at a nearby *base* b, by polynomials of the small
turn d since then:

    sin(b + d) = sin b + (cos b sin d + sin b (cos d - 1)),    cos(b + d) = cos b + (cos b (cos d - 1) - sin b sin d)

They hold to the last bit for turns up to :data:`REACH`; every evaluation adds up the squares of its turns, so that a
step with larger turns is noticed and repeated with its own sines and cosines.

Finally, where the rate of a position is another element of the state, its velocity, stages are placed as in Nystroem's
method [Hairer1993, II.14]: positions follow the mean of the velocities at the step's start and at the stage,

    q_i = q + node h (dq + dq_i) / 2,    dq_i = dq + node h ddq_(i-1),

and a stage with the same node as the stage before keeps its positions (it is *repeated*). The order of the method is
the same; sines, inertia and all other values that positions determine are then computed once for two stages of the
fourth-order method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.tape.operations import Operation, is_binary
from dynid.tape.record import Recorder, evaluate
from dynid.tape.tape import Tape

REACH = 0.17
"""Largest turn of the polynomials [rad]. Derivation: they interpolate at Chebyshev's points with errors below 5e-17."""
_SINE = (-0.16666666666666652, 0.008333333333182215, -0.00019841267226670413, 2.7542842793224628e-06)
"""Coefficients of x^3, x^5, ... of the sine within `REACH`."""
_COSINE = (-0.4999999999999985, 0.041666666665004466, -0.0013888886013003886, 2.4785663965207065e-05)
"""Coefficients of x^2, x^4, ... of the cosine within `REACH`."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """An explicit Runge-Kutta method in which every stage needs the rate of the stage before only."""

    nodes: tuple[float, ...]
    """Stage i is at ``state + nodes[i] h rate[i - 1]``, except for positions; stage 0 is at the state itself."""
    weights: tuple[float, ...]
    """The next state is ``state + sum weights[i] h rate[i]``."""
    stable: float
    """Largest product of step and rate of decay for which the method is stable."""

    @property
    def stages(self) -> int:
        """Evaluations of the rate in a step."""
        return len(self.nodes)

    @property
    def repeated(self) -> tuple[bool, ...]:
        """Whether each stage has the positions of the stage before."""
        return tuple(stage > 0 and self.nodes[stage] == self.nodes[stage - 1] for stage in range(self.stages))

    def table(self, period: float, most: int) -> Floats:
        """(most, stages, 2) nodes and weights times the step h, for one step per period, two steps, and so on [s]."""
        pairs = np.array(list(zip(self.nodes, self.weights, strict=True)))
        steps: Floats = period / np.arange(1, most + 1)[:, None, None] * pairs
        return steps


RK4 = Scheme((0.0, 0.5, 0.5, 1.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0), 2.78)
"""Nystroem's method of order 4; the classical Runge-Kutta method for states without velocities. Stable to 2.78."""
RK3 = Scheme((0.0, 1.0 / 3.0, 2.0 / 3.0), (0.25, 0.0, 0.75), 2.51)
"""Heun's method of order 3."""
RK2 = Scheme((0.0, 0.5), (0.0, 1.0), 2.0)
"""The midpoint rule, of order 2."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Elements of a state whose rates are other elements of the state, their velocities."""

    places: tuple[int, ...]
    """(d,) indices of the positions in the state."""
    velocities: tuple[int, ...]
    """(d,) indices of their velocities in the state."""

    @classmethod
    def of(cls, rate: Tape) -> Positions:
        """The positions of a rate ``(state, held, parameters) -> rate``; a velocity is never a position."""
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
    """A rate, split into tapes for `dynid.loop.integrator.llvm_rollout`.

    Sizes: s of the state, u of the held input, f of the fixed values, a of the angles, c of the kept values.
    """

    positions: Positions
    """The positions and velocities in the state."""
    angles: tuple[int, ...]
    """(a,) elements of the state whose sines or cosines the rate needs."""
    fixed: Tape
    """``parameters -> fixed``: values that depend on the parameters alone, once per run."""
    exact: Tape
    """``(state, held, fixed, sine, cosine) -> rate`` with the sines and cosines (a,) of the state itself."""
    nearby: Tape
    """``(origin, before, turned, held, fixed, base, sine, cosine, node) -> {rate, turned, kept}``: the state is
    ``origin + node before``, except for positions; sines and cosines are those of the base (a,); ``turned`` adds up the
    squares of the turns; ``kept`` (c,) are the values that positions determine."""
    again: Tape
    """``(origin, before, held, fixed, kept, node) -> rate`` with the positions of the evaluation before."""


def split_rate(rate: Tape) -> Evaluations:
    """Split a rate ``(state, held, parameters) -> rate`` into tapes."""
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
    """A rate, cut into values that its parameters determine, values that positions also determine, and the rest."""

    def __init__(self, rate: Tape, parameters: range, positions: Iterable[int]) -> None:
        self._rate, self._parameters = rate, parameters
        self._constants: list[float] = rate.constants.tolist()
        self._fixed, read = self._determined(parameters)
        self.boundary = sorted(read & self._fixed)
        self._placed, read = self._determined([*parameters, *positions])
        self.kept = sorted((read & self._placed) - self._fixed)

    def _determined(self, by: Iterable[int]) -> tuple[set[int], set[int]]:
        """The values that some inputs determine, with these inputs, and the values that other steps or outputs read."""
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
        """(s,) rate at the positions for which values were kept."""
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
