"""The LLVM code that carries derivatives of a simulated second-order system through time.

Along a run of `dynid.loop.integrator.rollout` whose rate obeys ``M(q) ddq = held - bias(q, dq)``, the derivatives S of
positions, velocities and the law's memory with respect to B parameters follow the differentiated Runge-Kutta steps:

    d ddq = mobility (d held - stiffness dq - damping d dq - columns)

One column of S belongs to one parameter; several columns are computed side by side in a register.
"""

from __future__ import annotations

from dynid.tape.llvm.engine import Host
from dynid.tape.llvm.ir import Writer, declarations

PADDING = 8
"""Numbers of parameters are rounded up to multiples of this. Convention: the doubles of a 512-bit register."""


def variation_module(dof: int, memory: int, width: int, repeated: tuple[bool, ...], host: Host) -> str:
    """The module with its entry ``run``.

    ``void run(ptr S, ptr laws, ptr stiffness, ptr damping, ptr columns, ptr mobility, ptr counts, ptr taken, ptr steps,
    ptr out)`` with counts (i64) = ticks, first tick, ticks per record, and taken (i64) = number of steps of every tick.
    S is [2 n + m][width]; laws are [n + m][2 n + m], one per tick; stiffness, damping, columns and mobility come once
    per stage; steps are nodes and weights, alternating, times h, for one step per tick, for two, and so on; a record is
    [2 n][width]: derivatives of positions, then of held inputs. A stage that is ``repeated`` has the positions of the
    stage before.
    """
    lanes = min(PADDING, 2 * host.lanes)
    parts = [
        declarations(lanes),
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        _law(dof, memory, width, lanes, host.fused),
        _stage(dof, width, lanes, host.fused),
        _move(dof * width, lanes, host.fused),
        _move_again(dof * width, lanes, host.fused),
        _finish(2 * dof * width, len(repeated), lanes, host.fused),
        _run(dof, memory, width, repeated),
    ]
    return "\n".join(parts)


class Columns(Writer):
    """The body of a loop over columns, one register of columns at a time."""

    def __init__(self, lanes: int, fused: bool) -> None:
        super().__init__(lanes)
        self.fused = fused

    def multiply_add(self, left: str, right: str, addend: str) -> str:
        """Left * right + addend."""
        if self.fused:
            return self.fma(left, right, addend)
        return self.binary("fadd", self.binary("fmul", left, right), addend)

    def splat(self, base: str, offset: int) -> str:
        """One number in every lane."""
        one = self.value(f"load double, ptr {self.address(base, offset)}, align 8")
        first = self.value(f"insertelement {self.kind} poison, double {one}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector {self.kind} {first}, {self.kind} poison, {zeros}")

    def here(self, base: str) -> str:
        """A pointer to the present column."""
        return self.value(f"getelementptr inbounds double, ptr {base}, i64 %c")

    def loop(self, name: str, arguments: str, count: int) -> str:
        """The function around what was written."""
        return f"""
define internal void @{name}({arguments}) {{
entry:
br label %loop
loop:
%c = phi i64 [ 0, %entry ], [ %c_next, %loop ]
{self.text()}
%c_next = add i64 %c, {self.lanes}
%more = icmp ult i64 %c_next, {count}
br i1 %more, label %loop, label %end
end:
ret void
}}"""


def _law(dof: int, memory: int, width: int, lanes: int, fused: bool) -> str:
    """``law(L, S, held, later)``: L S, the first n rows to held, the others to later."""
    w = Columns(lanes, fused)
    S, held, later = w.here("%S"), w.here("%held"), w.here("%later")
    size = 2 * dof + memory
    given = [w.load(S, 8 * width * j) for j in range(size)]
    for i in range(dof + memory):
        total = w.binary("fmul", w.splat("%L", 8 * i * size), given[0])
        for j in range(1, size):
            total = w.multiply_add(w.splat("%L", 8 * (i * size + j)), given[j], total)
        w.store(total, held if i < dof else later, 8 * width * (i if i < dof else i - dof))
    return w.loop("law", "ptr %L, ptr %S, ptr %held, ptr %later", width)


def _stage(dof: int, width: int, lanes: int, fused: bool) -> str:
    """``stage(stiffness, damping, columns, mobility, X, held, K)``: rates K [2 n][width] at X [2 n][width]."""
    w = Columns(lanes, fused)
    X, held, columns, K = (w.here(name) for name in ("%X", "%held", "%columns", "%K"))
    rests = [w.binary("fsub", w.load(held, 8 * width * i), w.load(columns, 8 * width * i)) for i in range(dof)]
    for j in range(2 * dof):
        x = w.load(X, 8 * width * j)
        if j >= dof:
            w.store(x, K, 8 * width * (j - dof))
        minus = w.negate(x)
        table, column = ("%stiffness", j) if j < dof else ("%damping", j - dof)
        for i in range(dof):
            rests[i] = w.multiply_add(w.splat(table, 8 * (i * dof + column)), minus, rests[i])
    for i in range(dof):
        total = w.binary("fmul", w.splat("%mobility", 8 * i * dof), rests[0])
        for j in range(1, dof):
            total = w.multiply_add(w.splat("%mobility", 8 * (i * dof + j)), rests[j], total)
        w.store(total, K, 8 * width * (dof + i))
    arguments = "ptr %stiffness, ptr %damping, ptr %columns, ptr %mobility, ptr %X, ptr %held, ptr %K"
    return w.loop("stage", arguments, width)


def _move(count: int, lanes: int, fused: bool) -> str:
    """``move(x, step, rate, to)``: the state of a stage; positions follow the mean of both velocities."""
    w = Columns(lanes, fused)
    x, rate, to, h = w.here("%x"), w.here("%rate"), w.here("%to"), w.splat("%step", 0)
    before = w.load(x, 8 * count)
    velocity = w.multiply_add(h, w.load(rate, 8 * count), before)
    half = w.binary("fmul", h, w.constant(0.5))
    w.store(w.multiply_add(half, w.binary("fadd", before, velocity), w.load(x, 0)), to, 0)
    w.store(velocity, to, 8 * count)
    return w.loop("move", "ptr %x, ptr %step, ptr %rate, ptr %to", count)


def _move_again(count: int, lanes: int, fused: bool) -> str:
    """``move_again(x, step, rate, to)``: the velocities of a repeated stage."""
    w = Columns(lanes, fused)
    x, rate, to, h = w.here("%x"), w.here("%rate"), w.here("%to"), w.splat("%step", 0)
    w.store(w.multiply_add(h, w.load(rate, 8 * count), w.load(x, 8 * count)), to, 8 * count)
    return w.loop("move_again", "ptr %x, ptr %step, ptr %rate, ptr %to", count)


def _finish(count: int, stages: int, lanes: int, fused: bool) -> str:
    w = Columns(lanes, fused)
    names = [f"%k{stage}" for stage in range(stages)]
    x = w.here("%x")
    total = w.load(x, 0)
    for stage, name in enumerate(names):
        total = w.multiply_add(w.splat("%steps", 8 * (2 * stage + 1)), w.load(w.here(name), 0), total)
    w.store(total, x, 0)
    return w.loop("finish", ", ".join(f"ptr {name}" for name in ("%x", "%steps", *names)), count)


def _run(dof: int, memory: int, width: int, repeated: tuple[bool, ...]) -> str:
    """The loops over ticks and steps."""
    stages = len(repeated)
    s, law = 2 * dof * width, (dof + memory) * (2 * dof + memory)
    buffers = {f"{name}{stage}": s for name in "kx" for stage in range(stages)}
    buffers |= {"held": dof * width, "later": max(1, memory * width)}
    return f"""
define void @run(ptr %S, ptr %laws, ptr %stiffness, ptr %damping, ptr %columns, ptr %mobility, ptr %counts, ptr %taken,
                 ptr %steps, ptr %out) {{
entry:
{chr(10).join(f"%{name} = alloca [{size} x double], align 64" for name, size in buffers.items())}
{chr(10).join(_count(name, place) for place, name in enumerate(("ticks", "first", "every")))}
%memory = getelementptr inbounds double, ptr %S, i64 {s}
br label %tick
tick:
%k = phi i64 [ 0, %entry ], [ %k_next, %ticked ]
%to = phi ptr [ %out, %entry ], [ %to_next, %ticked ]
%step_before = phi i64 [ 0, %entry ], [ %step_next, %ticked ]
%law_row = mul i64 %k, {law}
%law = getelementptr inbounds double, ptr %laws, i64 %law_row
call void @law(ptr %law, ptr %S, ptr %held, ptr %later)
%number = add i64 %first, %k
%phase = urem i64 %number, %every
%wanted = icmp eq i64 %phase, 0
br i1 %wanted, label %note, label %moving
note:
call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %S, i64 {4 * s}, i1 false)
%to_held = getelementptr inbounds double, ptr %to, i64 {s // 2}
call void @llvm.memcpy.p0.p0.i64(ptr %to_held, ptr %held, i64 {4 * s}, i1 false)
%to_more = getelementptr inbounds double, ptr %to, i64 {s}
br label %moving
moving:
%to_next = phi ptr [ %to, %tick ], [ %to_more, %note ]
%taken_at = getelementptr inbounds i64, ptr %taken, i64 %k
%substeps = load i64, ptr %taken_at, align 8
%row = sub i64 %substeps, 1
%table_row = mul i64 %row, {2 * stages}
%table = getelementptr inbounds double, ptr %steps, i64 %table_row
br label %step
step:
%j = phi i64 [ 0, %moving ], [ %j_next, %step ]
%step_number = phi i64 [ %step_before, %moving ], [ %step_next, %step ]
{_stages(dof, width, repeated)}
call void @finish(ptr %S, ptr %table, {", ".join(f"ptr %k{stage}" for stage in range(stages))})
%j_next = add i64 %j, 1
%step_next = add i64 %step_number, 1
%more_steps = icmp ult i64 %j_next, %substeps
br i1 %more_steps, label %step, label %ticked
ticked:
call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %later, i64 {8 * memory * width}, i1 false)
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %ticks
br i1 %more, label %tick, label %end
end:
ret void
}}
"""


def _count(name: str, place: int) -> str:
    at = f"%{name}_at = getelementptr inbounds i64, ptr %counts, i64 {place}"
    return f"{at}\n%{name} = load i64, ptr %{name}_at, align 8"


def _stages(dof: int, width: int, repeated: tuple[bool, ...]) -> str:
    """The stages of a step; a repeated stage changes the velocities of the stage before."""
    stages, state = len(repeated), "%S"
    tables = {"stiffness": dof * dof, "damping": dof * dof, "columns": dof * width, "mobility": dof * dof}
    lines = []
    for stage in range(stages):
        for name, size in tables.items():
            row = f"%{name}_row{stage}"
            lines.append(f"{row}_of = mul i64 %step_number, {stages * size}")
            lines.append(f"{row} = add i64 {row}_of, {stage * size}")
            lines.append(f"%{name}{stage} = getelementptr inbounds double, ptr %{name}, i64 {row}")
        if stage:
            lines.append(f"%node{stage} = getelementptr inbounds double, ptr %table, i64 {2 * stage}")
            name, state = ("move_again", state) if repeated[stage] else ("move", f"%x{stage}")
            lines.append(f"call void @{name}(ptr %S, ptr %node{stage}, ptr %k{stage - 1}, ptr {state})")
        given = ", ".join(f"ptr %{name}{stage}" for name in tables)
        lines.append(f"call void @stage({given}, ptr {state}, ptr %held, ptr %k{stage})")
    return "\n".join(lines)
