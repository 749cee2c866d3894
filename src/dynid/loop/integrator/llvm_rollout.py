"""The LLVM code that runs a sampled-data system through time: the law at every tick, Runge-Kutta steps in between.

Every array is ``[element][lane]``: the lanes are independent runs, computed side by side. The whole run is one call of
compiled code, so that a step costs what its arithmetic costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.loop.integrator.critical_path import by_critical_path
from dynid.loop.integrator.runge_kutta import REACH, Evaluations, Positions
from dynid.tape.llvm.engine import Host
from dynid.tape.llvm.functions import GROUP, PASSES, pass_call
from dynid.tape.llvm.ir import Writer, constant_table, declarations, number
from dynid.tape.llvm.registers import print_allocated
from dynid.tape.lower import lower, stages
from dynid.tape.tape import Tape


@dataclass(frozen=True, slots=True)
class LoopSizes:
    """Numbers of elements of the system's vectors."""

    state: int
    """Elements s of the state."""
    memory: int
    """Elements m of the law's memory."""
    sample: int
    """Elements r of a row of samples."""
    held: int
    """Elements u of the held input."""

    @property
    def record(self) -> int:
        """Elements of a record: state, held input, rate of the state, memory."""
        return 2 * self.state + self.held + self.memory


def record_function(sizes: LoopSizes, lanes: int) -> str:
    """The function that writes state, held input, rate and memory of each lane into row ``k`` of its records."""
    w, place = Writer(lanes), 0
    counts = {"%state": sizes.state, "%held": sizes.held, "%rate": sizes.state, "%memory": sizes.memory}
    arguments = ", ".join(f"ptr {name}" for name in (*counts, "%records", "%offsets"))
    w.line(f"define internal void @record({arguments}, i64 %k) {{\nentry:")
    rows = [_row(w, "%records", sizes.record, lanes + lane) for lane in range(lanes)]
    for name, count in counts.items():
        for k in range(count):
            value = w.load(name, 8 * lanes * k)
            for lane, row in enumerate(rows):
                one = w.value(f"extractelement {w.kind} {value}, i32 {lane}") if lanes > 1 else value
                w.line(f"store double {one}, ptr {w.address(row, 8 * place)}, align 8")
            place += 1
    w.line("ret void\n}")
    return w.text()


def sample_function(size: int, lanes: int) -> str:
    """The function that copies row ``k`` of each lane's samples."""
    w = Writer(1)
    w.line("define internal void @sample(ptr %samples, ptr %offsets, i64 %k, ptr %to) {\nentry:")
    rows = [_row(w, "%samples", size, lane) for lane in range(lanes)]
    for position in range(size):
        for lane, row in enumerate(rows):  # as integers: the units that compute are not needed
            bits = w.value(f"load i64, ptr {w.address(row, 8 * position)}, align 8")
            w.line(f"store i64 {bits}, ptr {w.address('%to', 8 * (position * lanes + lane))}, align 8")
    w.line("ret void\n}")
    return w.text()


def _row(w: Writer, table: str, size: int, which: int) -> str:
    """A pointer to row ``offsets[which] + k`` of a table."""
    offset = w.value(f"load i64, ptr {w.address('%offsets', 8 * which)}, align 8")
    start = w.value(f"mul i64 {w.value(f'add i64 {offset}, %k')}, {size}")
    return w.value(f"getelementptr inbounds double, ptr {table}, i64 {start}")


def move_functions(size: int, positions: Positions, lanes: int, fused: bool) -> str:
    """The functions ``move`` (the state of a stage) and ``move_again`` (with the positions of another stage)."""
    texts = []
    for name, arguments in (("move", ""), ("move_again", ", ptr %placed")):
        w = Writer(lanes)
        w.line(f"define internal void @{name}(ptr %x, ptr %step, ptr %rate, ptr %to{arguments}) {{\nentry:")
        h, x = w.load("%step", 0), [w.load("%x", 8 * lanes * k) for k in range(size)]
        half = w.binary("fmul", h, w.constant(0.5))
        others = [k for k in range(size) if k not in positions.places]
        moved = {k: _multiply_add(w, fused, h, w.load("%rate", 8 * lanes * k), x[k]) for k in others}
        for q, v in zip(positions.places, positions.velocities, strict=True):
            if arguments:
                moved[q] = w.load("%placed", 8 * lanes * q)
            else:
                moved[q] = _multiply_add(w, fused, half, w.binary("fadd", x[v], moved[v]), x[q])
        for k in range(size):
            w.store(moved[k], "%to", 8 * lanes * k)
        w.line("ret void\n}")
        texts.append(w.text())
    return "\n".join(texts)


def finish_function(size: int, stages: int, lanes: int, fused: bool) -> str:
    """The function that ends a step: ``x += sum of weight rate``; nodes and weights alternate in ``steps``."""
    w = Writer(lanes)
    rates = [f"%rate{stage}" for stage in range(stages)]
    arguments = ", ".join(f"ptr {name}" for name in ("%x", "%steps", *rates))
    w.line(f"define internal void @finish({arguments}) {{\nentry:")
    weights = [w.load("%steps", 8 * lanes * (2 * stage + 1)) for stage in range(stages)]
    for k in range(size):
        total = w.load("%x", 8 * lanes * k)
        for weight, rate in zip(weights, rates, strict=True):
            total = _multiply_add(w, fused, weight, w.load(rate, 8 * lanes * k), total)
        w.store(total, "%x", 8 * lanes * k)
    w.line("ret void\n}")
    return w.text()


def angles_function(angles: Sequence[int], lanes: int) -> str:
    """The function that computes the angles of a state, and their sines and cosines."""
    w = Writer(lanes)
    w.line("define internal void @angles(ptr %state, ptr %base, ptr %sine, ptr %cosine) {\nentry:")
    for place, position in enumerate(angles):
        w.store(w.load("%state", 8 * lanes * position), "%base", 8 * lanes * place)
    if angles:
        count = pad_to_group(len(angles) * lanes)
        w.line(f"call void @sincos_pass(ptr %base, ptr %sine, ptr %cosine, i64 {count})")
    w.line("ret void\n}")
    return w.text()


def _multiply_add(w: Writer, fused: bool, left: str, right: str, addend: str) -> str:
    return w.fma(left, right, addend) if fused else w.binary("fadd", w.binary("fmul", left, right), addend)


def pad_to_group(count: int) -> int:
    """A count of angles, rounded up to a multiple of what one call of the sine function takes."""
    return count + -count % GROUP


SPARE = 2
"""Registers that are left to LLVM for copies. Convention."""

_MEMORY = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def print_function(name: str, tape: Tape, lanes: int, host: Host) -> str:
    """Print a tape as a function ``name(input..., output...)`` of pointers to ``[element][lane]``.

    Outputs must not overlap inputs, except an element with itself where it is read once.
    """
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
        lowered = lower(tape, targets, host.fused, by_critical_path)
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
    cleared = f"call void @llvm.memset.p0.i64(ptr %work, i8 0, i64 {8 * base}, i1 false)" if base else ""
    return f"""{table}
define internal void @{name}({", ".join(f"ptr {a}" for a in arguments)}) {{
entry:
%work = alloca [{max(base, 1)} x double], align 64
%spilled = alloca [{max(slots, 1)} x {w.kind}], align 64
{cleared}
{w.text()}
ret void
}}
"""


def loop_module(
    control: Tape,
    pace: Tape | None,
    parts: Evaluations,
    sizes: LoopSizes,
    repeated: tuple[bool, ...],
    lanes: int,
    host: Host,
) -> str:
    """The module with its entry ``run``, which does what `dynid.loop.integrator.rollout` describes.

    ``void run(ptr state, ptr memory, ptr parameters, ptr samples, ptr offsets, ptr counts, ptr steps, ptr records,
    ptr taken, ptr trace)`` with

    - state and memory: values at the first tick on entry, after the last tick on return;
    - offsets (i64): the first row of every lane's samples, then the first row of every lane's records;
    - counts (i64): ticks, ticks per record, largest number of steps per tick;
    - steps: nodes and weights, alternating, times h, in every lane, for one step per tick, for two, and so on;
    - taken (i64, output): the number of steps of every tick;
    - trace (output, may be null): state and rate of every stage of every step.

    A stage that is ``repeated`` has the positions of the stage before.
    """
    functions = {"control": control, "fixed": parts.fixed, "exact": parts.exact, "nearby": parts.nearby}
    functions |= {"again": parts.again} if any(repeated) else {}
    functions |= {"pace": pace} if pace else {}
    pieces = [
        declarations(lanes) + PASSES + _MEMORY,
        *(print_function(name, tape, lanes, host) for name, tape in functions.items()),
        sample_function(sizes.sample, lanes),
        record_function(sizes, lanes),
        move_functions(sizes.state, parts.positions, lanes, host.fused),
        finish_function(sizes.state, len(repeated), lanes, host.fused),
        angles_function(parts.angles, lanes),
        choose_function(len(repeated), lanes),
        _Loop(sizes, parts, repeated, lanes, paced=pace is not None).text(),
    ]
    return "\n".join(pieces)


class _Loop:
    """The loops over ticks and steps."""

    def __init__(
        self, sizes: LoopSizes, parts: Evaluations, repeated: tuple[bool, ...], lanes: int, *, paced: bool
    ) -> None:
        self._sizes, self._stages, self._lanes, self._paced = sizes, len(repeated), lanes, paced
        self._repeated = [again and bool(parts.positions.places) for again in repeated]
        turns = pad_to_group(len(parts.angles) * lanes)
        self._buffers = {
            "given": sizes.sample * lanes,
            "held": sizes.held * lanes,
            "later": sizes.memory * lanes,
            "fixed": parts.fixed.outputs[0].size * lanes,
            "kept": parts.nearby.output("kept").size * lanes,
            "scratch": 2 * len(repeated) * sizes.state * lanes,
            "turned": lanes,
            "zero": lanes,
            "wanted": lanes,
            "chosen": 2 * len(repeated) * lanes,
            "base": turns,
            "sine": turns,
            "cosine": turns,
        }

    def text(self) -> str:
        """The function ``run``; when an angle has turned too far from the base, the base is set to the state anew."""
        sizes, lanes = self._sizes, self._lanes
        return f"""
define void @run(ptr %state, ptr %memory, ptr %parameters, ptr %samples, ptr %offsets, ptr %counts, ptr %steps,
                 ptr %records, ptr %taken, ptr %trace) {{
entry:
{chr(10).join(f"%{n} = alloca [{max(1, c)} x double], align 64" for n, c in self._buffers.items())}
{chr(10).join(self._cleared(name) for name in ("base", "zero", "turned", "scratch"))}
call void @fixed(ptr %parameters, ptr %fixed)
call void @angles(ptr %state, ptr %base, ptr %sine, ptr %cosine)
%ticks = load i64, ptr %counts, align 8
%every_at = getelementptr inbounds i64, ptr %counts, i64 1
%every = load i64, ptr %every_at, align 8
%most_at = getelementptr inbounds i64, ptr %counts, i64 2
%most_steps = load i64, ptr %most_at, align 8
%most = sitofp i64 %most_steps to double
%traced = icmp ne ptr %trace, null
%rows = select i1 %traced, ptr %trace, ptr %scratch
%row_size = select i1 %traced, i64 {self._buffers["scratch"]}, i64 0
br label %tick
tick:
%k = phi i64 [ 0, %entry ], [ %k_next, %ticked ]
%record = phi i64 [ 0, %entry ], [ %record_next, %ticked ]
%row = phi ptr [ %rows, %entry ], [ %row_next, %ticked ]
call void @sample(ptr %samples, ptr %offsets, i64 %k, ptr %given)
call void @control(ptr %state, ptr %memory, ptr %given, ptr %held, ptr %later)
%phase = urem i64 %k, %every
%recorded = icmp eq i64 %phase, 0
br label %step
{self._step()}
%j_next = add i64 %j, 1
%more_steps = icmp ult i64 %j_next, %count
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

    def _cleared(self, name: str) -> str:
        return f"call void @llvm.memset.p0.i64(ptr %{name}, i8 0, i64 {8 * self._buffers[name]}, i1 false)"

    def _step(self) -> str:
        """One Runge-Kutta step; the first step of a recorded tick writes the record, every step its trace if wanted.

        The text ends in the block ``advance``, before the instructions of the loop itself.
        """
        lanes = self._lanes
        return f"""step:
%j = phi i64 [ 0, %tick ], [ %j_next, %advance ]
%count_before = phi i64 [ 1, %tick ], [ %count, %advance ]
%row_here = phi ptr [ %row, %tick ], [ %row_next, %advance ]
%record_here = phi i64 [ %record, %tick ], [ %record_next, %advance ]
{self._places()}
%opening = icmp eq i64 %j, 0
{_any_beyond("far", 0.25 * REACH**2, lanes)}
br i1 %far, label %fresh, label %begin
fresh:
call void @angles(ptr %state, ptr %base, ptr %sine, ptr %cosine)
br label %begin
begin:
{self._nearby(0)}
br i1 %opening, label %pacing, label %moving
pacing:
{_most_wanted(lanes) if self._paced else "%count_new = add i64 %most_steps, 0"}
%taken_here = getelementptr inbounds i64, ptr %taken, i64 %k
store i64 %count_new, ptr %taken_here, align 8
br label %moving
moving:
%count = phi i64 [ %count_before, %begin ], [ %count_new, %pacing ]
{self._nodes()}
{chr(10).join(map(self._nearby, range(1, self._stages)))}
{_any_beyond("lost", REACH**2, lanes)}
br i1 %lost, label %careful, label %done
careful:
{self._careful()}
br label %done
done:
%noted = and i1 %opening, %recorded
br i1 %noted, label %note, label %noticed
note:
call void @record(ptr %state, ptr %held, ptr %rate0, ptr %memory, ptr %records, ptr %offsets, i64 %record_here)
%record_more = add i64 %record_here, 1
br label %noticed
noticed:
%record_next = phi i64 [ %record_here, %done ], [ %record_more, %note ]
br i1 %traced, label %keep, label %advance
keep:
{chr(10).join(self._move(stage) for stage in range(self._stages))}
br label %advance
advance:
{_call("finish", ["%state", "%node0", *(f"%rate{stage}" for stage in range(self._stages))])}
%row_next = getelementptr inbounds double, ptr %row_here, i64 %row_size"""

    def _places(self) -> str:
        """Pointers to state and rate of every stage."""
        size, lines = self._sizes.state * self._lanes, []
        for stage in range(self._stages):
            for name, offset in (("state", 2 * stage * size), ("rate", (2 * stage + 1) * size)):
                lines.append(f"%{name}{stage} = getelementptr inbounds double, ptr %row_here, i64 {offset}")
        return "\n".join(lines)

    def _nodes(self) -> str:
        """Pointers to the nodes of as many steps as each lane takes in this tick; behind each node is its weight."""
        size = 2 * self._stages * self._lanes
        if self._paced and self._lanes > 1:
            lines = [
                "call void @choose(ptr %wanted, double %most, i64 %j, ptr %steps, ptr %chosen)",
                "%node0 = getelementptr inbounds double, ptr %chosen, i64 0",
            ]
        else:
            lines = [
                "%count_less = sub i64 %count, 1",
                f"%table_at = mul i64 %count_less, {size}",
                "%node0 = getelementptr inbounds double, ptr %steps, i64 %table_at",
            ]
        for stage in range(1, self._stages):
            offset = 2 * stage * self._lanes
            lines.append(f"%node{stage} = getelementptr inbounds double, ptr %node0, i64 {offset}")
        return "\n".join(lines)

    def _before(self, stage: int) -> str:
        """The rate that leads to a stage; the node of the first stage is zero, so any finite rate serves."""
        return f"%rate{(stage or self._stages) - 1}"

    def _nearby(self, stage: int) -> str:
        if self._repeated[stage]:
            moved = ["%state", self._before(stage)]
            return _call("again", [*moved, "%held", "%fixed", "%kept", f"%node{stage}", f"%rate{stage}"])
        turned, node = ("%turned", f"%node{stage}") if stage else ("%zero", "%zero")
        given = ["%state", self._before(stage), turned, "%held", "%fixed", "%base", "%sine", "%cosine", node]
        return _call("nearby", [*given, f"%rate{stage}", "%turned", "%kept"])

    def _move(self, stage: int) -> str:
        given = ["%state", f"%node{stage}", self._before(stage), f"%state{stage}"]
        return _call("move_again", [*given, f"%state{stage - 1}"]) if self._repeated[stage] else _call("move", given)

    def _careful(self) -> str:
        """The step repeated with sines and cosines of every stage's own angles."""
        lines = []
        for stage in range(self._stages):
            here = f"%state{stage}"
            lines.append(self._move(stage))
            lines.append(_call("angles", [here, "%base", "%sine", "%cosine"]))
            lines.append(_call("exact", [here, "%held", "%fixed", "%sine", "%cosine", f"%rate{stage}"]))
        return "\n".join(lines)


def _call(name: str, pointers: Sequence[str]) -> str:
    return f"call void @{name}({', '.join(f'ptr {pointer}' for pointer in pointers)})"


def _any_beyond(name: str, limit: float, lanes: int) -> str:
    """``%name``: whether the squares of any lane's turns add up to more than a limit."""
    w, found = Writer(1), "false"
    for lane in range(lanes):
        here = w.value(f"fcmp ogt double {w.load('%turned', 8 * lane)}, {number(limit)}")
        found = w.value(f"or i1 {found}, {here}")
    w.line(f"%r = or i1 {found}, false")
    return w.text().replace("%r", f"%{name}")


def choose_function(stages: int, lanes: int) -> str:
    """Nodes and weights of step ``j`` of a tick, each lane with its own number of steps, zero where it has done them.

    So the numbers of a run do not depend on the runs beside it, nor on how many a processor computes side by side.
    """
    w = Writer(1)
    w.line("define internal void @choose(ptr %wanted, double %most, i64 %j, ptr %steps, ptr %to) {\nentry:")
    for lane in range(lanes):
        count = _whole_steps(w, w.load("%wanted", 8 * lane))
        row = w.value(f"mul i64 {w.value(f'sub i64 {count}, 1')}, {2 * stages * lanes}")
        table = w.value(f"getelementptr inbounds double, ptr %steps, i64 {row}")
        active = w.value(f"icmp ult i64 %j, {count}")
        for place in range(2 * stages):
            offset = 8 * (place * lanes + lane)
            value = w.value(f"load double, ptr {w.address(table, offset)}, align 8")
            kept = w.choose(active, value, number(0.0))
            w.line(f"store double {kept}, ptr {w.address('%to', offset)}, align 8")
    w.line("ret void\n}")
    return w.text()


def _whole_steps(w: Writer, wanted: str) -> str:
    """A wanted number of steps, rounded up, from 1 to as many as there may be."""
    fewer = w.choose(w.value(f"fcmp olt double {wanted}, %most"), wanted, "%most")
    some = w.choose(w.value(f"fcmp ogt double {fewer}, {number(1.0)}"), fewer, number(1.0))
    whole = w.value(f"fptosi double {some} to i64")
    rest = w.value(f"fcmp ogt double {some}, {w.value(f'sitofp i64 {whole} to double')}")
    return w.value(f"add i64 {whole}, {w.value(f'zext i1 {rest} to i64')}")


def _most_wanted(lanes: int) -> str:
    """``%count_new``: the largest number of steps that a lane needs, between 1 and the largest number allowed."""
    w = Writer(1)
    most = w.load("%wanted", 0)
    for lane in range(1, lanes):
        other = w.load("%wanted", 8 * lane)
        most = w.choose(w.value(f"fcmp olt double {other}, {most}"), most, other)
    w.line(f"%r = add i64 {_whole_steps(w, most)}, 0")
    return _call("pace", ["%state", "%rate0", "%wanted"]) + "\n" + w.text().replace("%r", "%count_new")
