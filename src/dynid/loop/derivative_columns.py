"""LLVM code for loops over columns of derivatives, a register of columns at a time."""

from __future__ import annotations

from dynid.tape.llvm.ir import Writer

PADDING = 8
"""Numbers of columns are rounded up to multiples of this. Convention: the doubles of a 512-bit register."""


def pad_width(columns: int) -> int:
    """A number of columns, rounded up to whole vector registers."""
    return columns + -columns % PADDING


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
