"""Printed C: every operation of a tape, and sines and cosines against the C library over all ranges."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from dynid.export.c.c_check import FLAGS, CheckProgram
from dynid.export.c.c_printer import CPrinter
from dynid.tape import compile_tape, record
from support.every_operation import every_operation

PROGRAM = """
#include <math.h>
#include <stdint.h>
#include <stdio.h>
TEXT
static double worst = 0.0;
static void compare(const double x[6])
{
    double s[6], c[6];
    int i;
    arm_sincos6(x, s, c);
    for (i = 0; i < 6; i++) {
        const double e = fmax(fabs(s[i] - sin(x[i])), fabs(c[i] - cos(x[i])));
        worst = (e > worst) ? e : worst;
    }
}
int main(void)
{
    static const double reach[] = {1e-9, 1e-3, 1.0, 4.0, 10.0, 1e3, 4e4};
    static const double corner[] = {0.0, -0.0, 1e-310, 0.78539816339744828, 1.5707963267948966, 3.1415926535897931,
                                    4.7123889803846897, 40000.5, 99999.0, 1e5};
    uint64_t state = 1u;
    double x[6], s[6], c[6];
    size_t r;
    long k;
    int i;
    for (r = 0; r < sizeof(reach) / sizeof(reach[0]); r++) {
        for (k = 0; k < STATES; k++) {
            for (i = 0; i < 6; i++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                x[i] = reach[r] * ((double)(int64_t)(state >> 11) / 4503599627370496.0 - 1.0);
            }
            compare(x);
        }
    }
    for (r = 0; r < sizeof(corner) / sizeof(corner[0]); r++) {
        for (i = 0; i < 6; i++) {
            x[i] = (i < 3) ? corner[r] * (i - 1) : corner[(r + (size_t)i) % 8] * (5 - i);
        }
        compare(x);
    }
    printf("%.3e\\n", worst);
    worst = 0.0;
    for (i = 0; i < 6; i++) {
        x[i] = 0.5 * i;
    }
    x[2] = 1e22; /* beyond the reduction: the C library takes over */
    compare(x);
    printf("%.3e\\n", worst);
    x[2] = NAN;
    arm_sincos6(x, s, c);
    printf("%d\\n", (s[2] != s[2]) && (c[2] != c[2]) && (s[1] == sin(0.5)));
    x[2] = INFINITY;
    arm_sincos6(x, s, c);
    printf("%d\\n", (s[2] != s[2]) && (c[2] != c[2]));
    return 0;
}
"""


@pytest.mark.parametrize(
    ("flags", "bound"),
    [
        (["-O0"], 2.5e-16),
        (["-O3"], 2.5e-16),
        (["-O3", "-ffp-contract=fast"], 2.5e-16),
        (["-O3", "-funsafe-math-optimizations"], 1e-11),  # sums in any order: the reduction's two parts become one
    ],
)
def test_sines_and_cosines_are_those_of_the_library(tmp_path, compiler, flags, bound):
    tape = record(lambda q: [value for angle in q for value in (angle.sin(), angle.cos())], q=(6,))
    text = CPrinter("arm").called([tape])
    (tmp_path / "main.c").write_text(PROGRAM.replace("TEXT", "\n".join(text)).replace("STATES", "20000"))
    loose = [flag for flag in FLAGS if flag not in ("-O2", "-Wconversion")]
    subprocess.run([compiler, *loose, *flags, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    near, far, nan, infinite = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout.split()
    assert float(near) <= bound
    assert float(far) == 0.0
    assert (nan, infinite) == (b"1", b"1")


@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-14), ("float", 1e-6)])
@pytest.mark.usefixtures("compiler")
def test_every_operation_and_outputs_that_are_inputs(precision, tolerance):
    """As the interpreter computes them; NaN passes; what nothing reads is no warning."""

    tape = record(lambda x, unused: every_operation(x), x=(3,), unused=(2,))
    printer = CPrinter("arm", precision)
    declared = f"{printer.declaration(tape, 'arm_formulas')};\n"
    source = "\n".join(["#include <math.h>", '#include "arm.h"', *printer.called([tape])])
    files = {"arm.h": declared, "arm.c": source + printer.function(tape, "arm_formulas")}
    loop = ["arm_formulas(in, &in[3], in, &out[6]);", "for (i = 0; i < 6; i++) { out[i] = in[i]; }"]
    driver = CheckProgram(header="arm.h", declarations=["int i;"], loop=loop, inputs=6, outputs=10, precision=precision)
    rows = np.array([[0.0, 1.0, 2.0], [-1.5, -0.5, 0.25], [np.nan, 1.0, 1.0]])
    expected = compile_tape(tape, "numpy")(rows, np.zeros((3, 2)))
    found = driver.answer(files, np.hstack([rows, np.zeros((3, 3))]))
    np.testing.assert_allclose(found[:, :6], expected["one"], rtol=tolerance)
    np.testing.assert_allclose(found[:, 6:], expected["two"].reshape(3, 4), rtol=tolerance, atol=tolerance)
