"""``dynid fleet`` killed at random times: the same command then goes on, refuses no log and leaves nothing behind.

Run ``python tests/campaigns/fleet_kills.py [--kills 60]``; some seconds each.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import dynid
from fleet.small_fleet import MAP, ROBOT, arm, write_log


def prepare(folder: Path, arms: int = 6, duration_s: float = 20.0) -> list[str]:
    """A robot, logs of some arms and a map; returns the command."""
    for number in range(arms):
        write_log(arm(number), folder / "logs" / f"arm{number}" / "log.csv", seed=number, duration_s=duration_s)
    dynid.write_urdf(ROBOT, folder / "arm.urdf")
    lines = [
        f"[{name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in facts.items())
        for name, facts in MAP.items()
    ]
    (folder / "map.toml").write_text("\n".join(lines) + "\n")
    words = ["fleet", str(folder / "arm.urdf"), str(folder / "logs/{arm}/log.csv"), "--map", str(folder / "map.toml")]
    return [sys.executable, "-m", "dynid", *words, "--store", str(folder / "store"), "--set", "gate=false",
            "--out", str(folder / "out"), "--force", "--allow-unphysical"]  # fmt: skip


def kill(command: list[str], delay_s: float) -> None:
    """Start a command and kill it."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay_s)
    child.kill()
    child.wait()


def go_on(command: list[str], store: Path) -> tuple[str, list[str]]:
    """Run the command to its end; returns what it says of the fleet, and what is unfinished in the store."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    told = [line for line in done.stdout.splitlines() if "read now" not in line]
    return "\n".join(told), [path.name for path in store.parent.rglob("*.part")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, wrong, left = random.Random(given.seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = prepare(folder)
        began = time.monotonic()
        whole, _ = go_on(command, folder / "store")
        seconds = time.monotonic() - began
        for number in range(given.kills):
            for path in (folder / "store").iterdir():
                path.unlink()
            kill(command, rng.uniform(0.3, 1.0) * seconds)
            (
                folder / "store" / f".{number:064}.json.abcd_123.part"
            ).touch()  # what a kill in the middle of a file leaves
            (folder / "store" / ".thesis.odt.part").touch()
            told, parts = go_on(command, folder / "store")
            wrong, left = wrong + (told != whole), left + (parts != [".thesis.odt.part"])
    print(
        f"{given.kills} kills: {wrong} runs after them gave another result, {left} left unfinished files or took others"
    )


if __name__ == "__main__":
    main()
