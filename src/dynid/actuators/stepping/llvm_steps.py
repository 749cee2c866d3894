"""The LLVM code of two loops over time: the steps of a recorded system, and the derivatives that follow them."""

from __future__ import annotations

from dynid.loop.derivative_columns import PADDING, Columns
from dynid.loop.llvm_loop import print_function
from dynid.tape.llvm.engine import Host
from dynid.tape.llvm.functions import PASSES
from dynid.tape.llvm.ir import declarations
from dynid.tape.tape import Tape

_MEMORY = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def steps_module(step: Tape, host: Host) -> str:
    """The module with its entry ``run(ptr trace, ptr samples, ptr given, ptr parameters, i64 steps)``.

    The trace has one state more than there are steps; its first row is given.
    """
    state, sample = step.inputs[0].size, step.inputs[1].size
    return f"""{declarations(1)}{PASSES}{_MEMORY}
{print_function("step", step, 1, host)}
define void @run(ptr %trace, ptr %samples, ptr %given, ptr %parameters, i64 %steps) {{
entry:
br label %loop
loop:
%k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
%from_at = mul i64 %k, {state}
%from = getelementptr inbounds double, ptr %trace, i64 %from_at
%to = getelementptr inbounds double, ptr %from, i64 {state}
%sample_at = mul i64 %k, {sample}
%sample = getelementptr inbounds double, ptr %samples, i64 %sample_at
call void @step(ptr %from, ptr %sample, ptr %given, ptr %parameters, ptr %to)
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %steps
br i1 %more, label %loop, label %end
end:
ret void
}}
"""


def carry_module(dof: int, state: int, width: int, host: Host) -> str:
    """The module with its entry ``run``, which carries derivatives S [state][width] through steps.

    ``void run(ptr S, ptr steps, ptr transition, ptr columns, ptr noted, ptr out, i64 count)``: the rows after the first
    n follow ``transition S + columns``; the first n, positions, move with the mean of old and new velocities times
    the step. After a step that is noted (i64, not zero) the first n rows are copied to the output.
    """
    rows, lanes = state - dof, min(PADDING, 2 * host.lanes)
    w = Columns(lanes, host.fused)
    S, columns = w.here("%S"), w.here("%columns")
    before = [w.load(S, 8 * width * j) for j in range(state)]
    half = w.binary("fmul", w.splat("%step", 0), w.constant(0.5))
    for i in range(rows):
        total = w.load(columns, 8 * width * i)
        for j in range(state):
            total = w.multiply_add(w.splat("%transition", 8 * (i * state + j)), before[j], total)
        w.store(total, S, 8 * width * (dof + i))
        if i < dof:
            moved = w.multiply_add(half, w.binary("fadd", before[dof + i], total), before[i])
            w.store(moved, S, 8 * width * i)
    carried = w.loop("carry", "ptr %S, ptr %step, ptr %transition, ptr %columns", width)
    return f"""{declarations(lanes)}{_MEMORY}{carried}
define void @run(ptr %S, ptr %steps, ptr %transitions, ptr %columns, ptr %noted, ptr %out, i64 %count) {{
entry:
br label %loop
loop:
%k = phi i64 [ 0, %entry ], [ %k_next, %next ]
%to = phi ptr [ %out, %entry ], [ %to_next, %next ]
%step = getelementptr inbounds double, ptr %steps, i64 %k
%transition_at = mul i64 %k, {rows * state}
%transition = getelementptr inbounds double, ptr %transitions, i64 %transition_at
%column_at = mul i64 %k, {rows * width}
%column = getelementptr inbounds double, ptr %columns, i64 %column_at
call void @carry(ptr %S, ptr %step, ptr %transition, ptr %column)
%noted_at = getelementptr inbounds i64, ptr %noted, i64 %k
%flag = load i64, ptr %noted_at, align 8
%wanted = icmp ne i64 %flag, 0
br i1 %wanted, label %note, label %next
note:
call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %S, i64 {8 * dof * width}, i1 false)
%to_more = getelementptr inbounds double, ptr %to, i64 {dof * width}
br label %next
next:
%to_next = phi ptr [ %to, %loop ], [ %to_more, %note ]
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %count
br i1 %more, label %loop, label %end
end:
ret void
}}
"""
