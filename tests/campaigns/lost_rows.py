"""Rows taken out of the real logs, with stamps written anew: how many are found, and are the logs as they are accused?

Run from the root of the repository: ``python -m tests.campaigns.lost_rows [data set ...]``; it reads the data sets of
docs/real-data.md.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.gate.signal_checks import check_lost_rows
from dynid.logs.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))  # the campaigns on real logs are scripts

from real_logs import SETS

PLACES = 20


def without_rows(log: Recording, seed: int) -> Recording:
    """The log without one to three rows at random places, its clock as if nothing had happened."""
    rng = np.random.default_rng((3, seed))
    starts = rng.choice(np.arange(10, log.time.size - 10), PLACES, replace=False)
    lost = np.concatenate([np.arange(start, start + rng.integers(1, 4)) for start in starts])
    rows = np.setdiff1d(np.arange(log.time.size), lost)
    dq = None if log.dq is None else log.dq[rows]
    effort = None if log.effort is None else log.effort[rows]
    return replace(log, time=log.time[: rows.size], q=log.q[rows], dq=dq, effort=effort)


def main() -> None:
    """Print one line for each log."""
    for data in SETS:
        if len(sys.argv) > 1 and data.name not in sys.argv[1:]:
            continue
        for log in data.recordings(data.robot()):
            if log.isolated:
                continue
            clean = [finding.evidence for finding in check_lost_rows(log)]
            found = [finding.evidence for finding in check_lost_rows(without_rows(log, 1))]
            places = int(found[0]["places"]) if found else 0
            accused = f"accused at {clean[0]['places']} places" if clean else "not accused"
            sys.stdout.write(
                f"{data.name:14s} {log.time.size:7d} rows: {accused}; of {PLACES} planted {places} are found\n"
            )


if __name__ == "__main__":
    main()
