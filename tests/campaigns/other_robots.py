"""Logs judged with the model of another robot, and torques in percent of each joint's rating: does the gate tell?

    python tests/campaigns/other_robots.py [cases] [first seed]

Each case simulates a faultless log as gate_evidence.py does, with up to twice its friction that no equation holds. It
is judged with the right robot, with every other built-in robot of as many joints, and with torques in percent of rated
ones. Logs of the right robot must be neither called those of another nor uneven.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
from gate_evidence import clean_log

import dynid
from dynid.gate.quality import check_recording
from dynid.logs.recording import Recording
from dynid.robot.model import Robot

RATED = {
    "ur10": (330.0, 330.0, 150.0, 56.0, 56.0, 56.0),
    "puma560": (98.0, 186.0, 89.0, 24.0, 20.0, 21.0),
    "tx40": (60.0, 40.0, 20.0, 8.0, 8.0, 4.0),
    "panda": (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
}
"""Rated torques [N m], of data sheets or of their order."""
SAME = {"ur10e": "ur10"}
"""Robots with the geometry of another one, but for millimetres."""


def verdict(log: Recording, robot: Robot) -> str:
    """What the gate says: refused, warned with one of the two codes, warned of anything else, or nothing."""
    found = check_recording(replace(log, joint_names=robot.joint_names), robot).findings
    wrong = [finding for finding in found if finding.severity != "note" and finding.code != "low-excitation"]
    uneven = [
        f for f in wrong if f.code in ("unit", "wrong-gain") and any(key.startswith("factor of") for key in f.evidence)
    ]
    if uneven:
        return "uneven"
    if any(finding.code == "other-robot" for finding in wrong):
        return "other robot"
    return "refused" if any(f.severity == "error" for f in wrong) else "warned" if wrong else "nothing"


def main(cases: int, first: int) -> int:
    """Run the campaign and print a table; the exit code says whether a right robot was accused."""
    table = Counter[tuple[str, str]]()
    for case in range(cases):
        name = list(RATED)[case % len(RATED)]
        rng = np.random.default_rng((first, case))
        size, friction = float(rng.choice([0.3, 0.6, 1.0])), float(rng.uniform(0.0, 2.0))
        log = clean_log(name, first + case, size=size, friction=friction)
        assert log.effort is not None
        right = dynid.robots.get(name).with_terms()
        others = [n for n in dynid.robots.names() if dynid.robots.get(n).dof == right.dof and n not in (name, *SAME)]
        percent = replace(log, effort=log.effort * 100.0 / np.array(RATED[name]))
        judged = [("right robot", log, right), ("in percent", percent, right)]
        judged += [("another robot", log, dynid.robots.get(other).with_terms()) for other in others]
        for kind, logged, robot in judged:
            word = verdict(logged, robot)
            table[kind, word] += 1
            if kind == "right robot" and word in ("uneven", "other robot"):
                print(f"    accused: {name}, size {size}, friction {friction:.2f}, seed {first + case}: {word}")
    words = ("refused", "other robot", "uneven", "warned", "nothing")
    print(f"{'':16s}" + "".join(f"{word:>13s}" for word in words))
    for kind in ("right robot", "another robot", "in percent"):
        print(f"{kind:16s}" + "".join(f"{table[kind, word]:13d}" for word in words), flush=True)
    return int(bool(table["right robot", "other robot"] + table["right robot", "uneven"]))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*numbers, *[40, 0][len(numbers) :]))
