"""Tapes: functions of arrays recorded once as programs without branches, then compiled, counted or differentiated."""

from dynid.tape.adjoint import jacobian, jvp, vjp
from dynid.tape.count import OperationCount, count
from dynid.tape.program import Program, compile_single, compile_tape
from dynid.tape.record import Scalar, record
from dynid.tape.tape import Tape

__all__ = [
    "OperationCount",
    "Program",
    "Scalar",
    "Tape",
    "compile_single",
    "compile_tape",
    "count",
    "jacobian",
    "jvp",
    "record",
    "vjp",
]
