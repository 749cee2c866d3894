"""Pieces of `dynid.tape.llvm_loop` that move vectors about: samples, records, stages, the end of a step, sines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.tape.llvm_functions import GROUP
from dynid.tape.llvm_ir import Writer
from dynid.tape.rollout_stage import Positions

__all__ = [
    "LoopSizes",
    "angles_function",
    "finish_function",
    "move_functions",
    "padded",
    "record_function",
    "sample_function",
]


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


def record_function(sizes: LoopSizes, lanes: int) -> str:
    """State, held input, rate and memory of each lane, one behind the other, into row ``k`` of its records."""
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
    """Row ``k`` of each lane's samples into it."""
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
    """``to``: the state x of a step after a node of it at some rate; ``move_again``: with the positions of another."""
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
    """``x += sum of weight rate``; nodes and weights take turns in the steps."""
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
    """The angles of a state, and their sines and cosines."""
    w = Writer(lanes)
    w.line("define internal void @angles(ptr %state, ptr %base, ptr %sine, ptr %cosine) {\nentry:")
    for place, position in enumerate(angles):
        w.store(w.load("%state", 8 * lanes * position), "%base", 8 * lanes * place)
    if angles:
        count = padded(len(angles) * lanes)
        w.line(f"call void @sincos_pass(ptr %base, ptr %sine, ptr %cosine, i64 {count})")
    w.line("ret void\n}")
    return w.text()


def _multiply_add(w: Writer, fused: bool, left: str, right: str, addend: str) -> str:
    return w.fma(left, right, addend) if fused else w.binary("fadd", w.binary("fmul", left, right), addend)


def padded(count: int) -> int:
    """So many angles, rounded up to what the pass for sines takes."""
    return count + -count % GROUP
