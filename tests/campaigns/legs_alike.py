"""Four simulated legs: how often equal ones are called shared, and a leg with +30 % dry friction is found.

Run ``python tests/campaigns/legs_alike.py [--logs 100]``; about half a minute of one processor
with 100. Half of the logs have breakaway friction
and friction that grows with the drive's torque, which the fitted model lacks.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from actuators.test_sharing import MODEL, log
from dynid.actuators import decide_sharing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=100, help="Logs of each case.")
    logs = parser.parse_args().logs
    for name, stick, load in (("model complete", 0.0, 0.0), ("model lacks friction", 0.1, 0.1)):
        shared, found, accused = 0, 0, 0
        for seed in range(logs):
            motion = log(seed, stick=stick, load=load)
            shared += all(test.alike for test in decide_sharing(MODEL, [motion]).tests)
            worn = log(seed, worn=1.3, stick=stick, load=load)
            odd = {(test.kind, joint) for test in decide_sharing(MODEL, [worn]).tests
                   for joint in test.odd}  # fmt: skip
            found += ("coulomb", "RL_hip") in odd
            accused += bool(odd - {("coulomb", "RL_hip")})
        print(f"{name}: {logs} logs of four equal legs, all shared in {shared}; dry friction of one leg +30 %: found "
              f"in {found}, anything else called separate in {accused}")  # fmt: skip


if __name__ == "__main__":
    main()
