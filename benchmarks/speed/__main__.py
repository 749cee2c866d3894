"""``python -m benchmarks.speed [--json FILE]``: print the table of speed ratios."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Measure the workloads, print the table, and write the rows."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.speed", description="Compare the speed of our kernels with other libraries."
    )
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--samples", type=float, default=1e6, help="number of samples of the log that is reduced to R")
    parser.add_argument("--few", type=int, default=1000, help="number of samples for slow peers")
    parser.add_argument("--repeats", type=int, default=7, help="repeats of each measurement; the fastest counts")
    parser.add_argument("--robots", nargs="+", default=["puma560", "panda"], help="names of built-in robots")
    parser.add_argument("--peers", nargs="+", help="classes of the peers, such as PinocchioPython; all by default")
    options = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # every library may use one core; libraries read this when they are loaded
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

    from benchmarks.speed.case import Case
    from benchmarks.speed.suite import PEERS, compare, describe_rows, is_slower, speed_table
    from dynid import robots

    known = {getattr(peer, "__name__", ""): peer for peer in PEERS}
    if unknown := set(options.peers or ()) - set(known):
        parser.error(f"there is no peer {', '.join(sorted(unknown))}; choose of {', '.join(known)}")
    peers = PEERS if options.peers is None else [known[name] for name in options.peers]
    rows = []
    for name in options.robots:
        case = Case(robots.get(name), samples=int(options.samples), few=options.few, repeats=options.repeats)
        rows += compare(case, peers)
    print(_coloured(str(speed_table(rows)), [is_slower(row) or row.met is False for row in rows]))
    if options.json is not None:
        options.json.write_text(json.dumps(describe_rows(rows), indent=1))


def _coloured(table: str, marked: list[bool]) -> str:
    """The table with marked rows in red, where the output is a terminal or FORCE_COLOR is set."""
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        return table
    lines = table.splitlines()
    first = len(lines) - len(marked)
    for place, is_marked in enumerate(marked, start=first):
        if is_marked:
            lines[place] = f"\033[31m{lines[place]}\033[0m"
    return "\n".join(lines)


if __name__ == "__main__":
    main()
