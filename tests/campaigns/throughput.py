"""Samples per second from a file through filter, differentiation, gate and reduction, and the memory that takes.

Run ``python tests/campaigns/throughput.py --samples 1e7``. A log of a simulated PUMA 560 (time, six positions, six
torques, 1 kHz) is written as npy and as Parquet; each is then read in pieces, processed, checked against the robot and
reduced to the information on its base parameters: one thread reads and processes, ``--threads`` others reduce; of
Parquet a process of its own is the reader. The clock covers everything from opening the file to the finished
information and report.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dynid
from dynid.diagnosis.stream_check import StreamCheck
from dynid.information import reduce_stream
from dynid.logs.reading import read_stream
from dynid.processing.simulation import sum_of_sines
from dynid.processing.streaming import process_stream

ROBOT = dynid.robots.puma560()
RATE_HZ = 1000.0
PIECE = 100_000
NAMES = ["t", *(f"q{j}" for j in range(6)), *(f"tau{j}" for j in range(6))]
CHANNELS = {
    ".npy": {"time": "array[0]", "position": "array[{1..6}]", "effort": "array[{7..12}]"},
    ".parquet": {"time": "t", "position": "q{0..5}", "effort": "tau{0..5}"},
}
LIMIT_MB = 1000.0


def model() -> dynid.Robot:
    """The robot with the usual terms."""
    return ROBOT.with_terms(dynid.RotorInertia(), dynid.Viscous(), dynid.Coulomb(), dynid.Offset())


def channel_map(suffix: str) -> dict[str, dict[str, str]]:
    """What the columns mean."""
    named = CHANNELS[suffix]
    return {
        "time": {"column": named["time"], "unit": "s"},
        "position": {"columns": named["position"], "unit": "rad"},
        "effort": {"columns": named["effort"], "unit": "N m"},
    }


def rows(samples: int):
    """The log, piece by piece (N, 13)."""
    robot = model().with_terms(dynid.RotorInertia(0.2), dynid.Viscous(1.0), dynid.Coulomb(2.0), dynid.Offset(0.3))
    path = sum_of_sines(6, period_s=20.0, harmonics=5, amplitude=0.8, seed=4)
    rng = np.random.default_rng(4)
    for start in range(0, samples, PIECE):
        t = np.arange(start, min(start + PIECE, samples)) / RATE_HZ
        q, dq, ddq = path(t)
        tau = dynid.inverse_dynamics(robot, q, dq, ddq) + 0.5 * rng.normal(size=q.shape)
        yield np.column_stack([t, q + 1e-5 * rng.normal(size=q.shape), tau])


def write(path: Path, samples: int) -> None:
    """Write the log in the format of its suffix."""
    if path.suffix == ".npy":
        with path.open("wb") as stream:
            header = {"descr": "<f8", "fortran_order": False, "shape": (samples, 13)}
            np.lib.format.write_array_header_2_0(stream, header)
            for piece in rows(samples):
                stream.write(np.ascontiguousarray(piece).tobytes())
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float64()) for name in NAMES])
    with pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=False) as writer:
        for piece in rows(samples):
            writer.write_table(pa.table(dict(zip(NAMES, piece.T, strict=True)), schema=schema))


def peak_mb() -> tuple[float, float]:
    """Largest resident memory of this process and of its children so far [MB]."""
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own / 1e3, children / 1e3


def spent_s() -> float:
    """Processor time of this process, all its threads and its ended children [s]."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def run(path: Path, threads: int, method: str) -> None:
    """One file through the whole chain, timed."""
    robot = model()
    columns = dynid.base_parameters(robot).columns
    warm = np.random.default_rng(0).normal(size=(4, 1000, 6))
    reduce_stream(robot, [tuple(warm)], columns=columns, method=method)  # compiled before the clock starts
    check = StreamCheck(ROBOT)
    before = time.perf_counter(), spent_s()
    pieces = read_stream(path, ROBOT, channel_map=channel_map(path.suffix))
    experiments = process_stream(pieces, check=check)
    information = reduce_stream(robot, experiments, columns=columns, method=method, threads=threads)
    report = check.report()
    wall, spent = time.perf_counter() - before[0], spent_s() - before[1]
    samples = int(information.samples.sum(axis=0).max())
    own, child = peak_mb()
    size = path.stat().st_size
    sys.stdout.write(
        f"{path.suffix[1:]:8s} {method:15s} {threads} threads: {samples:.3e} samples x 6 joints, {wall:.1f} s wall "
        f"({samples / wall / 1e6:.2f} M samples/s, {size / wall / 1e6:.0f} MB/s), {spent:.1f} s of processor "
        f"({1e9 * spent / samples:.0f} ns a sample), peak {own:.0f} MB, reader {child:.0f} MB\n"
    )
    sys.stdout.write(f"         gate: {report}\n")
    if max(own, child) > LIMIT_MB:
        sys.exit(f"more than {LIMIT_MB:.0f} MB")


def main() -> None:
    """Write the logs, then run each in a process of its own, so that peaks of memory do not mix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=1e7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--method", default="preconditioned", choices=["preconditioned", "gram"])
    parser.add_argument("--formats", default=".npy,.parquet")
    parser.add_argument("--keep", type=Path, help="folder for the logs, which stay there")
    parser.add_argument("--file", type=Path, help="a log written before; runs here")
    options = parser.parse_args()
    if options.file:
        return run(options.file, options.threads, options.method)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        for suffix in options.formats.split(","):
            path = folder / f"log{suffix}"
            if not path.exists():
                write(path, int(options.samples))
            command = [sys.executable, __file__, "--file", str(path)]
            command += ["--threads", str(options.threads), "--method", options.method]
            if subprocess.run(command, check=False).returncode:
                sys.exit(1)


if __name__ == "__main__":
    main()
