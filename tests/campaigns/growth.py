"""How time and memory grow with samples, joints and logs, with fitted exponents and a picture.

Run ``python tests/campaigns/growth.py``: samples from 1e4 to 1e7 (``--samples 1e8`` goes further), joints from 2 to 60,
logs from 1 to 200. Every figure is that of a new process: processor time of all its threads and children, largest
memory. ``dynid identify`` runs with its default options, npy and Parquet; so above 200 MB a log is read in pieces.
Writes ``out/growth.svg`` and ``out/growth.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from throughput import ROBOT, channel_map, write

from papers.report import draw_svg

JOINTS = (2, 4, 8, 15, 30, 60)
LOGS = (1, 4, 16, 64, 200)
SAMPLES_PER_LOG = 5000

MAKE_REGRESSOR = """
import time
import numpy as np
import dynid
from dynid.robot.formats.dh import DH, from_dh
joints = {joints}
rows = [DH(alpha=(k % 2) * np.pi / 2, d=0.1 * (k % 3), r=0.1) for k in range(joints)]
robot = from_dh(rows, name="chain")
state = np.ones((10, joints))
start = time.process_time()
dynid.regressor(robot, state, state, state)
print(time.process_time() - start)
"""
"""A chain of so many joints in a new process with an empty cache: record, compile, and compute ten states."""


def spend(words: Sequence[str], environment: dict[str, str]) -> tuple[float, float, float, str]:
    """Processor time [s], largest memory [MB], time by the clock [s] and output of a command in its own process."""
    report = (
        "import resource, subprocess, sys, time\n"
        "start = time.perf_counter()\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
        "use = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(use.ru_utime + use.ru_stime, use.ru_maxrss / 1e3, time.perf_counter() - start)\n"
        "print(done.stdout if done.returncode in (0, 1) else done.stderr)\n"
        "sys.exit(done.returncode not in (0, 1))\n"
    )
    done = subprocess.run([sys.executable, "-c", report, *words], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(done.stdout)
    first, _, rest = done.stdout.partition("\n")
    seconds, memory, clock = map(float, first.split())
    return seconds, memory, clock, rest


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of the upper half of a curve in logarithms: small sizes show the constant cost."""
    x, y = np.log(np.array(sizes, float)), np.log(np.array(values, float))
    half = len(x) // 2
    start = min(half, len(x) - 2)  # two points at least
    return float(np.polyfit(x[start:], y[start:], 1)[0])


def write_map(folder: Path, suffix: str) -> Path:
    """The channel map of a log as a file."""
    lines = []
    for quantity, keys in channel_map(suffix).items():
        lines += [f"[{quantity}]", *(f'{key} = "{value}"' for key, value in keys.items()), ""]
    path = folder / f"map{suffix}.toml"
    path.write_text("\n".join(lines))
    return path


def identify(folder: Path, logs: Sequence[Path], environment: dict[str, str]) -> tuple[float, float, float]:
    """``dynid identify`` by default options."""
    words = [sys.executable, "-m", "dynid", "identify", ROBOT.name, *map(str, logs)]
    words += ["--map", str(write_map(folder, logs[0].suffix)), "--out", str(folder / "result"), "--force"]
    return spend(words, environment)[:3]


def grow_with_samples(
    folder: Path, sizes: Sequence[int], formats: Sequence[str], environment: dict[str, str]
) -> dict[str, list[list[float]]]:
    """Rows (samples, seconds of processor, MB, seconds by the clock) of each format."""
    found: dict[str, list[list[float]]] = {}
    for suffix in (f".{name}" for name in formats):
        rows = found.setdefault(suffix[1:], [])
        for samples in sizes:
            log = folder / f"log{suffix}"
            write(log, samples)
            rows.append([samples, *identify(folder, [log], environment)])
            log.unlink()
            _, seconds, memory, clock = rows[-1]
            speed = 1e-6 * samples / clock
            print(
                f"{suffix[1:]} {samples:.0e} samples: {seconds:.1f} s of processor, {memory:.0f} MB; "
                f"{clock:.1f} s by the clock, {speed:.2f} million samples/s",
                flush=True,
            )
    return found


def grow_with_joints(environment: dict[str, str]) -> list[list[float]]:
    """Rows (joints, seconds, MB) of a first regressor."""
    rows = []
    for joints in JOINTS:
        with tempfile.TemporaryDirectory() as cache:
            fresh = {**environment, "DYNID_CACHE_DIR": cache}
            _, memory, _, text = spend([sys.executable, "-c", MAKE_REGRESSOR.format(joints=joints)], fresh)
        rows.append([joints, float(text), memory])
        print(f"{joints} joints: first regressor {rows[-1][1]:.2f} s, {memory:.0f} MB", flush=True)
    return rows


def grow_with_logs(folder: Path, environment: dict[str, str]) -> list[list[float]]:
    """Rows (logs, seconds of processor, MB, seconds by the clock) of an identification from several logs."""
    paths = []
    rows = []
    for count in LOGS:
        while len(paths) < count:
            paths.append(folder / f"run{len(paths)}.npy")
            write(paths[-1], SAMPLES_PER_LOG + len(paths))  # no two are the same
        rows.append([count, *identify(folder, paths, environment)])
        print(f"{count} logs: {rows[-1][1]:.1f} s, {rows[-1][2]:.0f} MB", flush=True)
    return rows


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=1e7)
    parser.add_argument("--sizes", type=float, nargs="+", help="numbers of samples; powers of ten by default")
    parser.add_argument("--format", choices=["npy", "parquet"], help="one format of the samples; both by default")
    parser.add_argument("--only", choices=["samples", "joints", "logs"])
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    found: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only in (None, "joints"):
            found["joints"] = grow_with_joints(environment)
        if options.only in (None, "samples"):
            sizes = options.sizes or [10.0**power for power in range(4, 1 + round(np.log10(options.samples)))]
            formats = [options.format] if options.format else ["npy", "parquet"]
            grown = grow_with_samples(folder, [int(size) for size in sizes], formats, environment)
            found |= {f"samples, {key}": rows for key, rows in grown.items()}
        if options.only in (None, "logs"):
            found["logs"] = grow_with_logs(folder, environment)
    panels = {}
    for key, rows in found.items():
        for column, what in ((1, "processor time"), (2, "memory")):
            if len(rows) < 2:
                continue
            slope = exponent([row[0] for row in rows], [row[column] for row in rows])
            print(f"{what} over {key}: exponent {slope:.2f}")
            x, y = (np.log10([row[k] for row in rows]) for k in (0, column))
            panels[f"log10 of {what} [{'s' if column == 1 else 'MB'}] over log10 of {key}"] = {f"{slope:.2f}": (x, y)}
    options.out.mkdir(exist_ok=True)
    if panels:
        (options.out / "growth.svg").write_text(draw_svg(panels))
    (options.out / "growth.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
