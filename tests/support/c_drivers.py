"""Programs that run the generated recursive least squares and the generated load tracker over samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Floats
from dynid.export.c.c_check import FLAGS, run_sources
from dynid.export.c.recursive_code import recursive_files
from dynid.export.c.tracker_code import LOAD, tracker_files
from dynid.parameters.base import choose_base
from dynid.robot.model import Robot

_RECURSIVE = """#include <stdio.h>
#include <stdlib.h>

#include "{name}_recursive.h"

/* Argument: forgetting. Input: standard deviations, samples. Output: values, how many are known, refused. */
int main(int count, char **words)
{{
    static {name}_recursive state;
    double std[{n}];
    double in[{inputs}];
    double answer[{k} + 2];
    double refused = 0.0;
    if ((count != 2) || (fread(std, sizeof(double), {n}, stdin) != {n})
        || ({name}_recursive_begin(&state, std, strtod(words[1], NULL)) != 0)) {{
        return 1;
    }}
    while (fread(in, sizeof(double), {inputs}, stdin) == {inputs}) {{
        if ({name}_recursive_update(&state, in, in + {n}, in + {twice}, in + {thrice}) != 0) {{
            refused += 1.0;
        }}
    }}
    answer[{k}] = (double){name}_recursive_now(&state, answer);
    answer[{k} + 1] = refused;
    return (fwrite(answer, sizeof(double), {k} + 2, stdout) == ({k} + 2)) ? 0 : 1;
}}
"""
_TRACKER = """#include <stdio.h>
#include <stdlib.h>

#include "{name}_tracker.h"

/*
 * Arguments: times to go through the samples, rate, memories. Input: noise, then samples.
 * Output: values, variances, the first jumps.
 */
int main(int count, char **words)
{{
    static {name}_tracker tracker;
    static double in[{most}][{inputs}];
    double noise[{n}];
    double answer[(2 * {k}) + {shown}];
    long rounds;
    long r;
    size_t samples;
    size_t s;
    int shown = 0;
    if ((count != 5) || (fread(noise, sizeof(double), {n}, stdin) != {n})) {{
        return 1;
    }}
    rounds = strtol(words[1], NULL, 10);
    samples = fread(in, sizeof(in[0]), {most}, stdin);
    if ({name}_tracker_begin(&tracker, noise, strtod(words[2], NULL), strtod(words[3], NULL), strtod(words[4], NULL))
        != 0) {{
        return 1;
    }}
    for (r = 0; r < rounds; r++) {{
        for (s = 0; s < samples; s++) {{
            if (({name}_tracker_update(&tracker, &in[s][0], &in[s][{n}], &in[s][{twice}], &in[s][{thrice}]) == 1)
                && (shown < {shown})) {{
                answer[(2 * {k}) + shown] = ((double)r * (double)samples) + (double)s;
                shown++;
            }}
        }}
    }}
    {name}_tracker_now(&tracker, answer, answer + {k});
    s = (2 * {k}) + (size_t)shown;
    return (fwrite(answer, sizeof(double), s, stdout) == s) ? 0 : 1;
}}
"""
MOST = 10000
"""Samples that the driver holds (convention)."""
SHOWN = 64
"""Jumps that the driver tells (convention)."""


def run_recursive(
    robot: Robot, samples: Floats, torque_std: Floats, forgetting: float = 1.0
) -> tuple[Floats, int, int]:
    """Compile the code and run it over samples (N, 4 n): values (b,), how many are determined, samples refused."""
    n, k, name = robot.dof, choose_base(robot, None).rank, "arm"
    driver = _RECURSIVE.format(name=name, n=n, k=k, inputs=4 * n, twice=2 * n, thrice=3 * n)
    stdin = np.concatenate([torque_std, samples.ravel()]).tobytes()
    found = np.frombuffer(run_sources(recursive_files(robot, name), driver, stdin, [repr(forgetting)]))
    return found[:k], int(found[k]), int(found[k + 1])


def run_tracker(
    model: Robot,
    samples: Floats,
    noise_std: Floats,
    rate_hz: float,
    *,
    memories_s: tuple[float, float] = (0.0, 0.0),
    rounds: int = 1,
    flags: Sequence[str] = FLAGS,
) -> tuple[Floats, Floats, list[int]]:
    """Compile the tracker and run it over samples, several times over.

    Args:
        model: The identified robot without a load.
        samples: (N, 4 n) positions, velocities, accelerations, torques.
        noise_std: (n,) standard deviations of the torques [N m or N].
        rate_hz: Samples per second.
        memories_s: Of load and friction [s]; zero forgets nothing.
        rounds: Times that the samples are taken.
        flags: Options of the compiler.

    Returns:
        Values (k,), variances (k,), and the indices of the samples at which the load jumped, 64 at most.
    """
    n, name = model.dof, "arm"
    k = LOAD + 2 * n
    driver = _TRACKER.format(name=name, n=n, k=k, inputs=4 * n, twice=2 * n, thrice=3 * n, most=MOST, shown=SHOWN)
    words = [str(rounds), repr(float(rate_hz)), *(repr(float(memory)) for memory in memories_s)]
    stdin = np.concatenate([noise_std, samples[:MOST].ravel()]).tobytes()
    found = np.frombuffer(run_sources(tracker_files(model, name), driver, stdin, words, flags))
    return found[:k], found[k : 2 * k], [int(index) for index in found[2 * k :]]
