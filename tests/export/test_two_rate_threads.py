"""The hand-over of the two-rate structure between threads: never torn, never backwards, no data race."""

from __future__ import annotations

import os
import subprocess

import pytest

from dynid.export.c.c_check import FLAGS
from dynid.export.c.c_package import generate_c
from dynid.robot import zoo

PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include "arm_two_rate.h"
#define PACKED (ARM_DOF * (ARM_DOF + 1) / 2)
static arm_exchange exchange;
static void *inertias(void *unused)
{
    double inertia[PACKED], gravity[ARM_DOF];
    long k;
    int i;
    for (k = 1; k <= ROUNDS; k++) {
        for (i = 0; i < PACKED; i++) { inertia[i] = (double)k; }
        for (i = 0; i < ARM_DOF; i++) { gravity[i] = (double)k; }
        arm_publish_inertia(&exchange, inertia, gravity);
    }
    return unused;
}
static void *velocities(void *unused)
{
    double velocity[ARM_DOF];
    long k;
    int i;
    for (k = 1; k <= ROUNDS; k++) {
        for (i = 0; i < ARM_DOF; i++) { velocity[i] = (double)k; }
        arm_publish_velocity(&exchange, velocity);
    }
    return unused;
}
int main(void)
{
    static arm_coefficients c;
    pthread_t first, second;
    double before[2] = {0.0, 0.0};
    long torn = 0, backwards = 0, changes = 0;
    int i;
    arm_exchange_init(&exchange);
    if (arm_collect(&exchange, &c) != 1) { return 1; }
    if (pthread_create(&first, NULL, inertias, NULL) || pthread_create(&second, NULL, velocities, NULL)) { return 2; }
    while ((before[0] < ROUNDS) || (before[1] < ROUNDS)) {
        if (arm_collect(&exchange, &c) != 0) { continue; }
        for (i = 0; i < PACKED; i++) { torn += c.inertia[i] != c.inertia[0]; }
        for (i = 0; i < ARM_DOF; i++) { torn += c.gravity[i] != c.inertia[0]; }
        for (i = 0; i < ARM_DOF; i++) { torn += c.velocity[i] != c.velocity[0]; }
        backwards += (c.inertia[0] < before[0]) || (c.velocity[0] < before[1]);
        changes += c.inertia[0] != before[0];
        before[0] = c.inertia[0];
        before[1] = c.velocity[0];
    }
    (void)pthread_join(first, NULL);
    (void)pthread_join(second, NULL);
    printf("%ld %ld %ld\\n", torn, backwards, changes);
    return 0;
}
"""


@pytest.mark.parametrize("flags", [["-O3"], ["-O1", "-g", "-fsanitize=thread"]])
def test_values_are_never_torn_between_threads(tmp_path, compiler, flags):
    if os.name != "posix":
        pytest.skip("needs POSIX threads")
    generate_c(zoo.panda(), ["gravity"], name="arm").write(tmp_path)
    rounds = "20000" if "-fsanitize=thread" in flags else "300000"
    (tmp_path / "main.c").write_text(PROGRAM.replace("ROUNDS", rounds))
    loose = [flag for flag in FLAGS if flag != "-O2"]
    sources = ["main.c", "arm.c", "arm_two_rate.c", "-o", "main", "-lm", "-pthread"]
    built = subprocess.run([compiler, *loose, *flags, *sources], cwd=tmp_path, capture_output=True, text=True)
    if "-fsanitize=thread" in flags and built.returncode and "tsan" in built.stderr:
        pytest.skip("no ThreadSanitizer on this machine")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in ran.stderr:
        pytest.skip("ThreadSanitizer cannot run on this kernel")
    assert ran.returncode == 0, ran.stderr  # ThreadSanitizer reports a data race with exit status 66
    torn, backwards, changes = map(int, ran.stdout.split())
    assert (torn, backwards) == (0, 0)
    assert changes >= 1
