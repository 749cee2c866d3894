"""Attack dynid with fresh seeds, and print what was tried and what got through; status 1 if anything did.

``make attack`` takes a seed from the clock, ``make attack SEED=7`` repeats one; ``python -m tests.attacks NAME`` runs
one attack, ``--scale 0.1`` a tenth of every count.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from functools import partial

COUNTS = {"own_files": 2000, "broken_logs": 1000, "kills": 60, "pairs": 10, "full": 20, "mixed": 60, "records": 60,
          "names": 200, "bombs": 11}  # fmt: skip
"""Attack -> how often it is tried, of every kind of file where there are several."""


def attacks() -> dict[str, tuple[partial[list[str]], int]]:
    """Name -> the attack, called with its count and seed, and the count."""
    sys.path[:0] = ["tests"]
    load = {name: importlib.import_module(f"tests.attacks.{name}") for name in
            ("own_files", "broken_logs", "run_folders", "names", "bombs")}  # fmt: skip
    found = {}
    for kind in load["own_files"].KINDS:
        found[f"file: {kind}"] = partial(load["own_files"].attack_kind, kind), COUNTS["own_files"]
    for target in load["broken_logs"].CASES:
        found[f"log: {target}"] = partial(load["broken_logs"].attack_format, target), COUNTS["broken_logs"]
    for name in load["run_folders"].ATTACKS:
        found[f"folder: {name}"] = partial(load["run_folders"].attack_folder, name), COUNTS[name]
    found["names"] = partial(load["names"].attack_names), COUNTS["names"]
    found["bombs"] = partial(load["bombs"].attack_bombs), COUNTS["bombs"]
    return found


def main() -> int:
    """The campaign's command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--here", action="store_true", help="one attack in this process; its findings as JSON")
    options = parser.parse_args()
    known, through = attacks(), 0
    if wrong := set(options.names) - set(known):
        parser.error(f"there is no attack {', '.join(wrong)}; choose of: {'; '.join(known)}")
    sys.stdout.write(
        "" if options.here else f"seed {options.seed}\n| attack | tried | through | s |\n|---|---|---|---|\n"
    )
    for name in options.names or known:
        attack, most = known[name]
        count = max(1, round(most * options.scale))
        if options.here:
            sys.stdout.write(json.dumps(attack(count, options.seed)))
            continue
        started = time.monotonic()
        words = ["--here", "--seed", str(options.seed), "--scale", str(options.scale), name]
        done = subprocess.run(
            [sys.executable, "-m", "tests.attacks", *words], capture_output=True, text=True, check=False
        )
        ended = f"it ended with {done.returncode}: {done.stderr[-500:]}"
        findings = [ended] if done.returncode else json.loads(done.stdout)
        through += len(findings)
        sys.stdout.write(f"| {name} | {count} | {len(findings)} | {time.monotonic() - started:.0f} |\n")
        sys.stdout.writelines(f"    {finding}\n" for finding in findings[:5])
        sys.stdout.flush()
    return int(through > 0)


if __name__ == "__main__":
    raise SystemExit(main())
