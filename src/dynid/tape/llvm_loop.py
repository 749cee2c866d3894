"""The LLVM module that runs a sampled-data system through time: a law at every tick, Runge-Kutta steps in between.

Every array is ``[element][lane]``: the lanes are independent runs, computed side by side. Nothing but this loop moves
between the pieces of straight-line code, so that a step costs what its arithmetic costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.tape.host import Host
from dynid.tape.llvm_functions import GROUP, PASSES, pass_call
from dynid.tape.llvm_ir import Writer, constant_table, declarations
from dynid.tape.llvm_registers import print_allocated
from dynid.tape.lower import lower, stages
from dynid.tape.tape import Tape

__all__ = ["LoopSizes", "loop_module", "print_function"]

SPARE = 2
"""Registers left to LLVM, for copies."""

_MEMORY = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


@dataclass(frozen=True, slots=True)
class LoopSizes:
    """Numbers of elements of the system's vectors."""

    state: int
    memory: int
    sample: int
    held: int

    @property
    def record(self) -> int:
        """Of a record: state, held input, rate of the state, memory."""
        return 2 * self.state + self.held + self.memory

    @property
    def trace(self) -> int:
        """Of a Runge-Kutta step's trace: state and rate at its four stages."""
        return 8 * self.state


def print_function(name: str, tape: Tape, lanes: int, host: Host) -> str:
    """A function ``name(input..., output...)`` of pointers to ``[element][lane]``; outputs must not overlap inputs."""
    w, stride = Writer(lanes), 8 * lanes
    locations: dict[int, tuple[str, int]] = {}
    for place, entry in enumerate(tape.inputs):
        for position in range(entry.size):
            locations[len(locations)] = (f"%in{place}", stride * position)
    slots = 0

    def source(operand: int) -> tuple[str, int]:
        return (f"@constants_{name}", stride * ~operand) if operand < 0 else locations[operand]

    def piece(targets: Sequence[int], place: Sequence[tuple[str, int]]) -> None:
        nonlocal slots
        wide = max(1, lanes // host.lanes)
        registers = (host.registers - SPARE) // wide
        lowered = lower(tape, targets, host.fused)
        used = print_allocated(
            w, lowered, source, place.__getitem__, lambda slot: ("%spilled", stride * slot), registers
        )
        slots = max(slots, used)

    base = 0
    for call in stages(tape):
        count = len(call.arguments)
        size = count * lanes + -(count * lanes) % GROUP
        piece(call.arguments, [("%work", 8 * (base + k * lanes)) for k in range(count)])
        columns = [base + place * size for place in range(1 + len(call.results))]
        w.line(pass_call(call.name, columns, 8, size))
        for column, results in zip(columns[1:], call.results, strict=True):
            locations.update({value: ("%work", 8 * (column + lanes * k)) for value, k in results.items()})
        base = columns[-1] + size
    targets = [(f"%out{k}", e) for k, output in enumerate(tape.outputs) for e in enumerate(output.elements.flat)]
    piece([int(e) for _, (_, e) in targets], [(to, stride * position) for to, (position, _) in targets])
    arguments = [f"%in{k}" for k in range(len(tape.inputs))] + [f"%out{k}" for k in range(len(tape.outputs))]
    table = constant_table(tape.constants.tolist(), lanes).replace("@constants", f"@constants_{name}")
    return f"""{table}
define internal void @{name}({", ".join(f"ptr {a}" for a in arguments)}) {{
entry:
%work = alloca [{max(base, 1)} x double], align 64
%spilled = alloca [{max(slots, 1)} x {w.kind}], align 64
call void @llvm.memset.p0.i64(ptr %work, i8 0, i64 {8 * base}, i1 false)
{w.text()}
ret void
}}
"""


def loop_module(control: Tape, rate: Tape, sizes: LoopSizes, lanes: int, host: Host) -> str:
    """The module; see `dynid.tape.rollout` for what its entry ``run`` does.

    ``void run(ptr state, ptr memory, ptr parameters, ptr samples, ptr offsets, ptr counts, ptr steps, ptr records,
    ptr trace)``: counts are ticks, ticks per record, Runge-Kutta steps per tick (i64); steps are h/2, h, h/6, h/3 in
    every lane; the state and the memory end as they are after the last tick.
    """
    parts = [
        declarations(lanes) + PASSES + _MEMORY,
        print_function("control", control, lanes, host),
        print_function("rate", rate, lanes, host),
        _sample(sizes.sample, lanes),
        _axpy(sizes.state, lanes, host.fused),
        _finish(sizes.state, lanes, host.fused),
        _run(sizes, lanes),
    ]
    return "\n".join(parts)


def _run(sizes: LoopSizes, lanes: int) -> str:
    """The loop over ticks."""
    return f"""
define void @run(ptr %state, ptr %memory, ptr %parameters, ptr %samples, ptr %offsets, ptr %counts, ptr %steps,
                 ptr %records, ptr %trace) {{
entry:
{_buffers(sizes, lanes)}
%ticks = load i64, ptr %counts, align 8
%every_at = getelementptr inbounds i64, ptr %counts, i64 1
%every = load i64, ptr %every_at, align 8
%substeps_at = getelementptr inbounds i64, ptr %counts, i64 2
%substeps = load i64, ptr %substeps_at, align 8
%h = getelementptr inbounds double, ptr %steps, i64 {lanes}
%sixth = getelementptr inbounds double, ptr %steps, i64 {2 * lanes}
%traced = icmp ne ptr %trace, null
br label %tick
tick:
%k = phi i64 [ 0, %entry ], [ %k_next, %ticked ]
%record = phi ptr [ %records, %entry ], [ %record_next, %ticked ]
%row = phi ptr [ %trace, %entry ], [ %row_next, %ticked ]
call void @sample(ptr %samples, ptr %offsets, i64 %k, ptr %given)
call void @control(ptr %state, ptr %memory, ptr %given, ptr %held, ptr %later)
%phase = urem i64 %k, %every
%wanted = icmp eq i64 %phase, 0
br label %step
{_step(sizes, lanes)}
stepped:
%j_next = add i64 %j, 1
%more_steps = icmp ult i64 %j_next, %substeps
br i1 %more_steps, label %step, label %ticked
ticked:
call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %later, i64 {8 * sizes.memory * lanes}, i1 false)
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %ticks
br i1 %more, label %tick, label %end
end:
ret void
}}
"""


def _step(sizes: LoopSizes, lanes: int) -> str:
    """One Runge-Kutta step; the first of a tick notes the record, and every one its trace, where they are wanted."""
    s, m, u = sizes.state, sizes.memory, sizes.held
    return f"""step:
%j = phi i64 [ 0, %tick ], [ %j_next, %stepped ]
%row_here = phi ptr [ %row, %tick ], [ %row_next, %stepped ]
%record_here = phi ptr [ %record, %tick ], [ %record_next, %stepped ]
call void @rate(ptr %state, ptr %held, ptr %parameters, ptr %k1)
%opening = icmp eq i64 %j, 0
%noted = and i1 %opening, %wanted
br i1 %noted, label %note, label %move
note:
{_copies(["%state", "%held", "%k1", "%memory"], [s, u, s, m], "%record_here", lanes, "n")}
%record_more = getelementptr inbounds double, ptr %record_here, i64 {sizes.record * lanes}
br label %move
move:
%record_next = phi ptr [ %record_here, %step ], [ %record_more, %note ]
call void @axpy(ptr %state, ptr %steps, ptr %k1, ptr %s2)
call void @rate(ptr %s2, ptr %held, ptr %parameters, ptr %k2)
call void @axpy(ptr %state, ptr %steps, ptr %k2, ptr %s3)
call void @rate(ptr %s3, ptr %held, ptr %parameters, ptr %k3)
call void @axpy(ptr %state, ptr %h, ptr %k3, ptr %s4)
call void @rate(ptr %s4, ptr %held, ptr %parameters, ptr %k4)
br i1 %traced, label %keep, label %advance
keep:
{_copies(["%state", "%k1", "%s2", "%k2", "%s3", "%k3", "%s4", "%k4"], [s] * 8, "%row_here", lanes, "t")}
%row_more = getelementptr inbounds double, ptr %row_here, i64 {sizes.trace * lanes}
br label %advance
advance:
%row_next = phi ptr [ %row_here, %move ], [ %row_more, %keep ]
call void @finish(ptr %state, ptr %sixth, ptr %k1, ptr %k2, ptr %k3, ptr %k4)
br label %stepped"""


def _buffers(sizes: LoopSizes, lanes: int) -> str:
    wanted = {"given": sizes.sample, "held": sizes.held, "later": sizes.memory}
    wanted |= dict.fromkeys(("k1", "k2", "k3", "k4", "s2", "s3", "s4"), sizes.state)
    return "\n".join(f"%{n} = alloca [{max(1, c) * lanes} x double], align 64" for n, c in wanted.items())


def _copies(sources: Sequence[str], counts: Sequence[int], to: str, lanes: int, mark: str) -> str:
    """Copy vectors one behind the other."""
    lines, offset = [], 0
    for place, (source, count) in enumerate(zip(sources, counts, strict=True)):
        lines.append(f"%{mark}{place} = getelementptr inbounds double, ptr {to}, i64 {offset * lanes}")
        size = 8 * count * lanes
        lines.append(f"call void @llvm.memcpy.p0.p0.i64(ptr %{mark}{place}, ptr {source}, i64 {size}, i1 false)")
        offset += count
    return "\n".join(lines)


def _sample(size: int, lanes: int) -> str:
    """Row ``offsets[lane] + k`` of the samples into each lane."""
    w = Writer(1)
    w.line("define internal void @sample(ptr %samples, ptr %offsets, i64 %k, ptr %to) {\nentry:")
    rows = []
    for lane in range(lanes):
        offset = w.value(f"load i64, ptr {w.address('%offsets', 8 * lane)}, align 8")
        start = w.value(f"mul i64 {w.value(f'add i64 {offset}, %k')}, {size}")
        rows.append(w.value(f"getelementptr inbounds double, ptr %samples, i64 {start}"))
    for position in range(size):
        for lane, row in enumerate(rows):
            w.store(w.load(row, 8 * position), "%to", 8 * (position * lanes + lane))
    w.line("ret void\n}")
    return w.text()


def _axpy(size: int, lanes: int, fused: bool) -> str:
    w = Writer(lanes)
    w.line("define internal void @axpy(ptr %x, ptr %step, ptr %rate, ptr %to) {\nentry:")
    h = w.load("%step", 0)
    for k in range(size):
        offset = 8 * lanes * k
        w.store(_multiply_add(w, fused, h, w.load("%rate", offset), w.load("%x", offset)), "%to", offset)
    w.line("ret void\n}")
    return w.text()


def _finish(size: int, lanes: int, fused: bool) -> str:
    """``x + h/6 (k1 + k4) + h/3 (k2 + k3)``."""
    w = Writer(lanes)
    w.line("define internal void @finish(ptr %x, ptr %step, ptr %k1, ptr %k2, ptr %k3, ptr %k4) {\nentry:")
    sixth, third = w.load("%step", 0), w.load("%step", 8 * lanes)
    for k in range(size):
        o = 8 * lanes * k
        outer = w.binary("fadd", w.load("%k1", o), w.load("%k4", o))
        inner = w.binary("fadd", w.load("%k2", o), w.load("%k3", o))
        total = _multiply_add(w, fused, sixth, outer, w.load("%x", o))
        w.store(_multiply_add(w, fused, third, inner, total), "%x", o)
    w.line("ret void\n}")
    return w.text()


def _multiply_add(w: Writer, fused: bool, left: str, right: str, addend: str) -> str:
    return w.fma(left, right, addend) if fused else w.binary("fadd", w.binary("fmul", left, right), addend)
