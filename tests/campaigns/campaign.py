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

    def command(self, scale: float) -> list[str]:
        """The command line."""
        size = [self.flag, str(self.tried(scale))] if self.count else []
        return [sys.executable, "-m", f"tests.campaigns.{self.module}", *self.arguments, *size]

    def tried(self, scale: float) -> int:
        """How often it is tried."""
        return max(int(self.count * scale), 1) if self.count else 0


ATTACKS = (
    Attack("fuzz-readers", "mutants of a log of each format", "fuzz_readers", count=10_000),
    Attack("fuzz-files", "mutants of each own kind of file and of each model format", "fuzz_files", count=10_000),
    Attack("differential", "random and mutated URDF and MJCF, compared with Pinocchio and MuJoCo",
           "differential_models", count=10_000),
    Attack("bombs", "small logs that ask for gigabytes or hours", "bombs"),
    Attack("kills", "SIGKILL while information and compiled kernels are written", "kills", count=200),
    Attack("run-kills", "SIGKILL of identify, excite, load, codegen and reproduce", "run_attacks", ("kills",),
           count=300),
    Attack("pairs", "two processes with one --out", "run_attacks", ("pairs",), count=30),
    Attack("disk-full", "a disk that is full after some bytes", "run_attacks", ("full",), count=20),
    Attack("determinism", "the same command twice, with 1 and 2 threads", "run_attacks", ("twice",), count=1),
)  # fmt: skip


def run(attack: Attack, scale: float) -> dict[str, object]:
    """Run an attack and tell what came out."""
    started = time.monotonic()
    done = subprocess.run(
        attack.command(scale), cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return {
        "tried": attack.tried(scale),
        "passed": done.returncode == 0,
        "lines": lines[-40:] if done.returncode == 0 else [*lines[-40:], *done.stderr.splitlines()[-5:]],
        "seconds": round(time.monotonic() - started),
    }


def page(results: dict[str, dict[str, object]]) -> str:
    """The page about what was tried."""
    rows = []
    for attack in ATTACKS:
        found = results.get(attack.name)
        if found is None:
            rows.append(f"| {attack.what} | `{_shown(attack)}` | not yet | |")
            continue
        tried = f"{found['tried']}" if found["tried"] else "all"
        rows.append(f"| {attack.what} | `{_shown(attack)}` | {tried} | {'none' if found['passed'] else 'see below'} |")
    details = []
    for attack in ATTACKS:
        if attack.name in results:
            text = "\n".join(f"    {line[:200]}" for line in results[attack.name]["lines"])  # type: ignore[attr-defined]
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
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    options = parser.parse_args()
    file = ROOT / "out" / "campaign" / "results.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(file.read_text()) if file.exists() and not options.again else {}
    for attack in ATTACKS:
        is_wanted = options.only is None or attack.name in options.only
        earlier = results.get(attack.name)
        if not is_wanted or (
            earlier is not None and earlier["passed"] and earlier["tried"] >= attack.tried(options.scale)
        ):
            continue
        sys.stdout.write(f"{attack.name} ...\n")
        sys.stdout.flush()
        results[attack.name] = run(attack, options.scale)
        file.write_text(json.dumps(results, indent=1))
        sys.stdout.write(
            f"    {'nothing got through' if results[attack.name]['passed'] else 'SOMETHING GOT THROUGH'}\n"
        )
    if options.write:
        PAGE.write_text(page(results))
    return int(any(not found["passed"] for found in results.values()))


if __name__ == "__main__":
    raise SystemExit(main())
