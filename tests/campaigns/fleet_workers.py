"""A small fleet reduced by 1, 2 and 8 workers: the results must be the same to the last bit.

Run ``python tests/campaigns/fleet_workers.py [--workers 1 2 8]``; about a minute of one processor.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from dynid.fleet.fleet import Fleet, identify_fleet
from fleet.small_fleet import MAP, RECIPE, ROBOT, arm, write_log

ARMS, LOGS = 4, 4


def bits(found: Fleet) -> bytes:
    parts = [found.pool.shared, found.pool.covariance, found.typical.standard, *(one.own.values for one in found.arms)]
    return b"".join(part.tobytes() for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 8])
    counts = parser.parse_args().workers
    with TemporaryDirectory() as place:
        for number in range(ARMS):
            for day in range(LOGS):
                write_log(arm(number), Path(place) / f"arm{number}" / f"{day}.csv", seed=10 * number + day)
        pattern = f"{place}/{{arm}}/*.csv"
        wanted = bits(identify_fleet(ROBOT, pattern, RECIPE, channel_map=MAP))
        for engine in ("processes", "dask"):
            for count in counts:
                where = f"{engine}:{count}"
                same = bits(identify_fleet(ROBOT, pattern, RECIPE, channel_map=MAP, engine=where)) == wanted
                print(f"{engine}, {count} workers: {'the same bits' if same else 'OTHER BITS'} as in one process")


if __name__ == "__main__":
    main()
