"""A real Dask cluster on this machine: speed-up over one worker, memory of every worker, and workers that are killed.

Run ``python tests/campaigns/fleet_cluster.py`` (``--samples 1e8 --files 200 --workers 4 --kills 20``). The samples are
those of eight distinct logs of a simulated three-joint arm, linked under as many names as there are files. It prints
samples per second by one worker and by all, the largest memory of a worker, and whether the result after kills at
random moments is the same to the last bit. What the machine itself allows is measured beside it: processes that know
nothing of each other, one for each processor, against one such process.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from dynid.identifiability.base import base_parameters
from dynid.identification.leaves import Leaf, leaf_tasks, make_leaf
from dynid.identification.recipe import Recipe
from dynid.parallel import DaskCluster, Engine, Local
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous

ROBOT = zoo.ddarm().with_terms(Viscous(1.0), Coulomb(2.0))
MAP = {
    "time": {"column": "t", "unit": "s"},
    "position": {"columns": ["q0", "q1", "q2"], "unit": "rad"},
    "effort": {"columns": ["tau0", "tau1", "tau2"], "unit": "N m"},
}
RECIPE = Recipe.bare(cutoff_hz=20.0, gate=True)
DISTINCT = 8


def write_logs(folder: Path, files: int, samples: int) -> list[Path]:
    """Logs of some samples each; `DISTINCT` different ones."""
    made = []
    for number in range(files):
        path = folder / f"{number:04d}.parquet"
        if number >= DISTINCT:
            os.link(made[number % DISTINCT], path)
        else:
            motion = sum_of_sines(3, period_s=20.0, harmonics=6, amplitude=0.7, seed=number)
            log = simulate_experiment(
                ROBOT, motion, rate_hz=1000.0, duration_s=(samples - 1) / 1000.0,
                noise=Noise(position=1e-5, effort=0.2), seed=number,
            )  # fmt: skip
            assert log.effort is not None
            columns = {"t": log.time, **{f"q{j}": log.q[:, j] for j in range(3)},
                       **{f"tau{j}": log.effort[:, j] for j in range(3)}}  # fmt: skip
            pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="none", row_group_size=65536)
        made.append(path)
    return made


def reduce_all(engine: Engine, paths: Sequence[Path]) -> list[Leaf]:
    tasks = leaf_tasks(ROBOT, list(paths), RECIPE, MAP, base_parameters(ROBOT))
    return engine.map(make_leaf, tasks)


def bits(leaves: Sequence[Leaf]) -> list[bytes]:
    return [leaf.information.factor(joint).tobytes() for leaf in leaves for joint in range(ROBOT.dof)]


class Watch(threading.Thread):
    """Samples the memory of the workers, and kills one of them now and then."""

    def __init__(self, engine: DaskCluster, kills: int, every_s: float) -> None:
        super().__init__(daemon=True)
        self.client: Any = engine.client
        self.kills, self.every_s, self.done = kills, every_s, 0
        self.peak_mb, self.ended = 0.0, threading.Event()

    def run(self) -> None:
        import psutil

        chance, due = random.Random(1), time.monotonic() + self.every_s
        while not self.ended.wait(0.2):
            pids = [worker.process.pid for worker in self.client.cluster.workers.values() if worker.process is not None]
            for pid in pids:
                try:
                    self.peak_mb = max(self.peak_mb, psutil.Process(pid).memory_info().rss / 2**20)
                except psutil.NoSuchProcess:
                    continue
            if self.done < self.kills and time.monotonic() > due and pids:
                os.kill(chance.choice(pids), signal.SIGKILL)
                self.done += 1
                due = time.monotonic() + self.every_s * chance.uniform(0.5, 1.5)


def timed(
    workers: int, paths: Sequence[Path], kills: int = 0, every_s: float = 1.0
) -> tuple[list[bytes], float, Watch]:
    with DaskCluster(workers=workers) as engine:
        reduce_all(engine, paths[:workers])  # compiled and imported
        watch = Watch(engine, kills, every_s)
        watch.start()
        start = time.perf_counter()
        leaves = reduce_all(engine, paths)
        seconds = time.perf_counter() - start
        watch.ended.set()
        watch.join()
    return bits(leaves), seconds, watch


def alone(processes: int, paths: Sequence[Path]) -> float:
    """Files per second by processes without an engine, each of which reduces all paths."""
    command = [sys.executable, __file__, "--alone", *map(str, paths)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    seconds = [float(process.communicate()[0]) for process in running]
    return sum(len(paths) / one for one in seconds)


def reduce_alone(paths: Sequence[Path]) -> None:
    """Reduce the logs in this process and print how long it took, without start and compilation."""
    reduce_all(Local(), paths[:1])
    start = time.perf_counter()
    reduce_all(Local(), paths)
    print(time.perf_counter() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=1e8)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--alone", type=Path, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        reduce_alone(options.alone)
        return 0
    with tempfile.TemporaryDirectory(prefix="dynid-cluster-") as folder:
        each = int(options.samples) // options.files
        paths = write_logs(Path(folder), options.files, each)
        total = each * options.files
        print(f"{total:.3g} samples in {options.files} files; {os.cpu_count()} processors", flush=True)
        processors = os.cpu_count() or 1
        some = paths[: min(24, options.files)]
        gain = alone(processors, some) / alone(1, some)
        print(f"{processors} processes that know nothing of each other: {gain:.2f} times one", flush=True)
        few = paths[: max(options.workers, options.files // 4)]  # one worker needs as long for a quarter
        expected, single_s, one = timed(1, few)
        rate = each * len(few) / single_s
        print(f"1 worker: {rate:.3g} samples/s, {one.peak_mb:.0f} MB at most", flush=True)
        found, seconds, all_workers = timed(options.workers, paths)
        print(f"{options.workers} workers: {total / seconds:.3g} samples/s, {all_workers.peak_mb:.0f} MB at most each, "
              f"{total / seconds / rate:.2f} times one worker", flush=True)  # fmt: skip
        same = found[: len(expected)] == expected
        print(f"the same bits as by one worker: {same}")
        if options.kills:
            every = max(0.3, seconds / (options.kills + 1))
            again, slow_s, watch = timed(options.workers, paths, options.kills, every)
            print(f"{watch.done} workers killed: the same bits: {again == found}, {slow_s:.1f} s, else {seconds:.1f} s")
            same = same and again == found
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
