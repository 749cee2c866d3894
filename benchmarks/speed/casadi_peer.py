"""CasADi's virtual machine on our own recursion, without common subexpressions, mapped over the samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from benchmarks.speed.case import BOUND, Case, Workload, batch_workloads, function_workload, load
from dynid.compiled import kernel
from dynid.export.casadi_tape import casadi_from_tape
from dynid.tape.tape import Tape


class Casadi:
    """Regressor, inverse dynamics and the gradient of a weighted sum of the base regressor."""

    name = "CasADi, virtual machine"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds per sample or call."""
        ca = load("casadi", "casadi")
        regressor = _function(ca, kernel(case.robot, "regressor").tape)
        torque = _function(ca, kernel(case.robot, "inverse_dynamics").tape)
        base = _function(ca, case.base_regressor)
        gradient = _gradient(ca, base)
        count = case.few
        return {
            "regressor streamed": case.best(_evaluation(regressor.map(count)), count),
            "regressor dense": case.best(_evaluation(regressor.map(count)), count),
            "inverse dynamics, batch": case.best(_evaluation(torque.map(count)), count),
            "base regressor": case.best(_evaluation(base.map(count)), count),
            "base regressor VJP": case.best(_evaluation(gradient.map(count)), count),
            **_public_functions(ca, case),
        }


def _public_functions(ca: Any, case: Case) -> dict[Workload, float]:
    """Our equations of the quantities with a bound form: one state, and mapped over a batch."""
    measured: dict[Workload, float] = {}
    for quantity in BOUND:
        function = _function(ca, kernel(case.robot, quantity).tape)
        measured[function_workload(quantity, 1)] = case.best(_evaluation(function, case.few), case.few)
        measured |= batch_workloads(quantity, case.best(_evaluation(function.map(case.few)), case.few))
    return measured


def _function(ca: Any, tape: Tape) -> Any:
    """Convert a tape with one output to a CasADi function of all its inputs in one vector."""
    x = ca.SX.sym("x", tape.input_size)
    parts = ca.vertsplit(x, [0, *accumulate(entry.size for entry in tape.inputs)])
    return ca.Function("f", [x], [ca.densify(ca.vec(casadi_from_tape(tape, "f")(*parts)))])


def _gradient(ca: Any, function: Any) -> Any:
    x = ca.SX.sym("x", function.size1_in(0))
    weights = ca.SX.sym("weights", function.size1_out(0))
    return ca.Function("g", [x, weights], [ca.gradient(ca.dot(weights, function(x)), x)], {"cse": True})


def _evaluation(function: Any, calls: int = 1) -> Callable[[], None]:
    """Make a function that evaluates on fixed buffers, so that no array is converted."""
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=function.numel_in(k)) for k in range(function.n_in())]
    output = np.zeros(function.nnz_out(0))
    buffer, evaluate = function.buffer()
    for place, array in enumerate(inputs):
        buffer.set_arg(place, array.data)
    buffer.set_res(0, output.data)
    return lambda: _repeat(evaluate, calls, (buffer, inputs, output))


def _repeat(evaluate: Callable[[], None], calls: int, alive: Sequence[object]) -> None:
    """Evaluate several times; ``alive`` keeps the memory that the buffers point to."""
    for _ in range(calls):
        evaluate()
