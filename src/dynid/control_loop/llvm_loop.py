"""LLVM code of a simulated loop: the law at every tick, Runge-Kutta steps of order four in between.

A whole simulation is one call of compiled code. `loop_module` writes it around three tapes (recorded programs): the
law, the number of steps of a tick, and the rate of the state.
"""

from __future__ import annotations

from dynid.tape.llvm.engine import Host
from dynid.tape.llvm.functions import PASSES, print_function
from dynid.tape.llvm.ir import Writer, declarations, number
from dynid.tape.tape import Tape

_MEMORY = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_STEPS = """step:
%j = phi i64 [ 0, %pacing ], [ %j_next, %again ]
call void @move(ptr %state, ptr %half, ptr %k0, ptr %x)
call void @rate(ptr %x, ptr %held, ptr %parameters, ptr %k1)
call void @move(ptr %state, ptr %half, ptr %k1, ptr %x)
call void @rate(ptr %x, ptr %held, ptr %parameters, ptr %k2)
call void @move(ptr %state, ptr %whole, ptr %k2, ptr %x)
call void @rate(ptr %x, ptr %held, ptr %parameters, ptr %k3)
call void @finish(ptr %state, ptr %sixth, ptr %k0, ptr %k1, ptr %k2, ptr %k3)
%j_next = add i64 %j, 1
%more_steps = icmp ult i64 %j_next, %count
br i1 %more_steps, label %again, label %ticked
again:
call void @rate(ptr %state, ptr %held, ptr %parameters, ptr %k0)
br label %step
"""
"""LLVM code of the steps of a tick: %count turns of one Runge-Kutta step. The slope %k0 of the first step is
known already, because it is recorded."""


def loop_module(control: Tape, pace: Tape, rate: Tape, host: Host) -> str:
    """Write the module with its entry ``run``, which simulates a loop; see `dynid.control_loop.simulator`.

    ``void run(ptr state, ptr memory, ptr parameters, ptr samples, ptr counts, ptr steps, ptr records, ptr taken)`` with

    - state and memory: values at the first tick on entry, after the last tick on return;
    - parameters: those of the robot that are inputs of the rate;
    - samples: one row per tick, for the law;
    - counts (i64): ticks, ticks per record, largest number of steps per tick;
    - steps: h / 2, h and h / 6, for one step per tick, for two, and so on;
    - records (output): state, held torque, rate and memory at every recorded tick;
    - taken (i64, output): the number of steps of every tick.

    On the stack stand the held torque, the memory after the law (%later), the number of steps (%wanted), and the point
    and the slopes of Runge-Kutta (%x, %k0 to %k3).

    Args:
        control: Tape of the law.
        pace: Tape of the number of steps that a tick needs.
        rate: Tape of the rate of the state.
        host: The processor.
    """
    state, memory, sample = (entry.size for entry in control.inputs)
    held = control.outputs[0].size
    buffers = {"held": held, "later": memory, "wanted": 1, "x": state, **{f"k{i}": state for i in range(4)}}
    parts = {"%state": state, "%held": held, "%k0": state, "%memory": memory}
    rows = "\n".join(
        f"%note{k} = getelementptr inbounds double, ptr %to, i64 {sum(list(parts.values())[:k])}\n"
        f"call void @llvm.memcpy.p0.p0.i64(ptr %note{k}, ptr {name}, i64 {8 * size}, i1 false)"
        for k, (name, size) in enumerate(parts.items())
    )
    functions = {"control": control, "rate": rate, "pace": pace}
    return f"""{declarations(1)}{PASSES}{_MEMORY}
{"".join(print_function(name, tape, host.fused) for name, tape in functions.items())}
{_move(state)}
{_finish(state)}
define void @run(ptr %state, ptr %memory, ptr %parameters, ptr %samples, ptr %counts, ptr %steps, ptr %records,
                 ptr %taken) {{
entry:
{chr(10).join(f"%{name} = alloca [{max(1, size)} x double], align 64" for name, size in buffers.items())}
%ticks = load i64, ptr %counts, align 8
%every_at = getelementptr inbounds i64, ptr %counts, i64 1
%every = load i64, ptr %every_at, align 8
%most_at = getelementptr inbounds i64, ptr %counts, i64 2
%most_steps = load i64, ptr %most_at, align 8
%most = sitofp i64 %most_steps to double
br label %tick
tick:
%k = phi i64 [ 0, %entry ], [ %k_next, %ticked ]
%sample_at = mul i64 %k, {sample}
%sample = getelementptr inbounds double, ptr %samples, i64 %sample_at
call void @control(ptr %state, ptr %memory, ptr %sample, ptr %held, ptr %later)
call void @rate(ptr %state, ptr %held, ptr %parameters, ptr %k0)
%phase = urem i64 %k, %every
%recorded = icmp eq i64 %phase, 0
br i1 %recorded, label %note, label %pacing
note:
%number = udiv i64 %k, %every
%record_at = mul i64 %number, {sum(parts.values())}
%to = getelementptr inbounds double, ptr %records, i64 %record_at
{rows}
br label %pacing
pacing:
call void @pace(ptr %state, ptr %k0, ptr %wanted)
{_most_wanted()}
%taken_at = getelementptr inbounds i64, ptr %taken, i64 %k
store i64 %count, ptr %taken_at, align 8
%row = sub i64 %count, 1
%row_at = mul i64 %row, 3
%half = getelementptr inbounds double, ptr %steps, i64 %row_at
%whole = getelementptr inbounds double, ptr %half, i64 1
%sixth = getelementptr inbounds double, ptr %half, i64 2
br label %step
{_STEPS}ticked:
call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %later, i64 {8 * memory}, i1 false)
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %ticks
br i1 %more, label %tick, label %end
end:
ret void
}}
"""


def _move(size: int) -> str:
    """Write the function ``move(x, h, rate, to)``: ``to = x + h rate``."""
    w = Writer(1)
    h = w.load("%h", 0)
    for k in range(size):
        at = 8 * k
        w.store(w.binary("fadd", w.load("%x", at), w.binary("fmul", h, w.load("%rate", at))), "%to", at)
    return f"define internal void @move(ptr %x, ptr %h, ptr %rate, ptr %to) {{\nentry:\n{w.text()}\nret void\n}}"


def _finish(size: int) -> str:
    """Write the function ``finish(x, h / 6, k0, k1, k2, k3)``: ``x += h / 6 (k0 + 2 k1 + 2 k2 + k3)``."""
    w = Writer(1)
    h, two = w.load("%h", 0), w.constant(2.0)
    for k in range(size):
        at = 8 * k
        middle = w.binary("fmul", two, w.binary("fadd", w.load("%k1", at), w.load("%k2", at)))
        total = w.binary("fadd", w.binary("fadd", w.load("%k0", at), w.load("%k3", at)), middle)
        w.store(w.binary("fadd", w.load("%x", at), w.binary("fmul", h, total)), "%x", at)
    arguments = ", ".join(f"ptr %{name}" for name in ("x", "h", "k0", "k1", "k2", "k3"))
    return f"define internal void @finish({arguments}) {{\nentry:\n{w.text()}\nret void\n}}"


def _most_wanted() -> str:
    """Write the computation of ``%count``: the wanted number of steps, rounded up, from 1 to ``%most``."""
    w = Writer(1)
    most, other = number(1.0), w.load("%wanted", 0)
    most = w.choose(w.value(f"fcmp ogt double {other}, {most}"), other, most)
    most = w.choose(w.value(f"fcmp olt double {most}, %most"), most, "%most")
    whole = w.value(f"fptosi double {most} to i64")
    rest = w.value(f"fcmp ogt double {most}, {w.value(f'sitofp i64 {whole} to double')}")
    w.line(f"%count = add i64 {whole}, {w.value(f'zext i1 {rest} to i64')}")
    return w.text()
