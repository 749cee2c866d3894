"""All attacks one after another, each a command with a count; results are kept, so that it can be interrupted.

Run from the root of the repository: ``python -m tests.campaigns.campaign`` (``make campaign``); ``--scale 0.01`` is
short. The results stand in ``out/campaign/results.json`` and, with ``--write``, in ``docs/reliability.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .differential_models import FORMATS
from .fuzz_files import KINDS
from .fuzz_readers import CASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
LONGEST_S = 4 * 3600


@dataclass(frozen=True)
class Attack:
    """One part of the campaign."""

    name: str
    what: str
    """What is tried, for the page."""
    module: str
    arguments: tuple[str, ...] = ()
    count: int = 0
    """How often, at full scale; 0 where the attack has a fixed size."""
    flag: str = "--count"
    parts: tuple[str, ...] = ("",)
    """Kinds of file that are tried one after another, so that an interrupted campaign goes on at the next."""
    part_flag: str = ""

    def command(self, scale: float, part: str) -> list[str]:
        """The command line."""
        size = [self.flag, str(self.tried(scale))] if self.count else []
        which = [self.part_flag, part] if part else []
        return [sys.executable, "-m", f"tests.campaigns.{self.module}", *self.arguments, *which, *size]

    def key(self, part: str) -> str:
        """Name of the results of one part."""
        return f"{self.name}:{part}" if part else self.name

    def tried(self, scale: float) -> int:
        """How often it is tried."""
        return max(int(self.count * scale), 1) if self.count else 0


ATTACKS = (
    Attack("fuzz-readers", "mutants of a log of each format", "fuzz_readers", count=10_000,
           parts=tuple(sorted(CASES)), part_flag="--target"),
    Attack("fuzz-files", "mutants of each own kind of file and of each model format", "fuzz_files", count=10_000,
           parts=tuple(KINDS), part_flag="--kind"),
    Attack("differential", "random and mutated URDF and MJCF, compared with Pinocchio and MuJoCo",
           "differential_models", count=10_000, parts=tuple(FORMATS), part_flag="--format"),
    Attack("bombs", "small logs that ask for gigabytes or hours", "bombs"),
    Attack("kills", "SIGKILL while information and compiled kernels are written", "kills", count=200),
    Attack("run-kills", "SIGKILL of identify, excite, load, codegen and reproduce", "run_attacks", ("kills",),
           count=300),
    Attack("pairs", "two processes with one --out", "run_attacks", ("pairs",), count=30),
    Attack("disk-full", "a disk that is full after some bytes", "run_attacks", ("full",), count=20),
    Attack("mixed", "files of another run in a folder, lists that came with it", "run_attacks", ("mixed",),
           count=200),
    Attack("determinism", "the same command twice, with 1 and 2 threads", "run_attacks", ("twice",), count=1),
)  # fmt: skip


Found = dict[str, dict[str, Any]]
"""Part of an attack -> what came out."""


def run(attack: Attack, part: str, scale: float) -> dict[str, Any]:
    """Run one part of an attack and tell what came out."""
    started = time.monotonic()
    done = subprocess.run(
        attack.command(scale, part), cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return {
        "tried": attack.tried(scale),
        "passed": done.returncode == 0,
        "lines": lines[-40:] if done.returncode == 0 else [*lines[-40:], *done.stderr.splitlines()[-5:]],
        "seconds": round(time.monotonic() - started),
    }


def _row(attack: Attack, results: Found) -> str:
    """The row of an attack in the table of the page."""
    found = [results[attack.key(part)] for part in attack.parts if attack.key(part) in results]
    start = f"| {attack.what} | `{_shown(attack)}` |"
    if not found:
        return f"{start} not yet | |"
    counts = sorted({entry["tried"] for entry in found})
    tried = " to ".join(dict.fromkeys(map(str, (counts[0], counts[-1])))) if attack.count else "all"
    missing = len(attack.parts) - len(found)
    if len(attack.parts) > 1:
        tried += f" each of {len(found)} kinds" + (f", {missing} kinds not yet" if missing else "")
    return f"{start} {tried} | {'none' if all(entry['passed'] for entry in found) else 'see below'} |"


def page(results: Found) -> str:
    """The page about what was tried."""
    rows = [_row(attack, results) for attack in ATTACKS]
    details = []
    for attack in ATTACKS:
        found = [results[attack.key(part)] for part in attack.parts if attack.key(part) in results]
        if found:
            text = "\n".join(f"    {line[:200]}" for entry in found for line in entry["lines"])
            details.append(f"### {attack.name}\n\n{text}\n")
    return (
        "# Reliability\n\nThe attacks that dynid was put through, how often, and what got through. `make campaign` "
        "repeats them (hours at full scale;\nit goes on where it was interrupted) and writes this page. "
        "SECURITY.md says what is trusted.\n\n"
        "| attack | command | tried | got through |\n|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n\n## What the commands print\n\n"
        + "\n".join(details)
    )  # fmt: skip


def _shown(attack: Attack) -> str:
    return " ".join(["python -m", f"tests.campaigns.{attack.module}", *attack.arguments])


def main() -> int:
    """The campaign's command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full counts")
    parser.add_argument("--only", nargs="*", choices=[attack.name for attack in ATTACKS])
    parser.add_argument("--parts", nargs="*", help="kinds of file or formats; all by default")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    options = parser.parse_args()
    file = ROOT / "out" / "campaign" / "results.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(file.read_text()) if file.exists() and not options.again else {}
    for attack, part in ((one, part) for one in ATTACKS for part in one.parts):
        is_wanted = options.only is None or attack.name in options.only
        is_wanted &= options.parts is None or part in options.parts
        earlier = results.get(attack.key(part))
        if not is_wanted or (
            earlier is not None and earlier["passed"] and earlier["tried"] >= attack.tried(options.scale)
        ):
            continue
        sys.stdout.write(f"{attack.key(part)} ...\n")
        sys.stdout.flush()
        found = results[attack.key(part)] = run(attack, part, options.scale)
        file.write_text(json.dumps(results, indent=1))
        outcome = "nothing got through" if found["passed"] else "SOMETHING GOT THROUGH"
        sys.stdout.write(f"    {outcome} in {found['seconds']} s\n")
    if options.write:
        PAGE.write_text(page(results))
    return int(any(not found["passed"] for found in results.values()))


if __name__ == "__main__":
    raise SystemExit(main())
