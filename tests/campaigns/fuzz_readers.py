"""Breaks the planted log of every format in thousands of ways and reads each: only our errors may come out.

Run from the root of the repository: ``python -m tests.campaigns.fuzz_readers --count 10000``; status 1 on any finding.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dynid.errors import DataError, DynidError
from dynid.logs.channel_map import read_channel_map
from dynid.logs.conversion import convert
from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.pieces import read_table
from dynid.logs.recording import Recording

from .log_writers import CASES, planted

MEMORY_LIMIT = 10**9
SECONDS_LIMIT = 5.0
TOKENS = (
    b"nan",
    b"inf",
    b"1e400",
    b"-",
    b'"',
    b",,",
    b";",
    b"\r",
    b"\n\n",
    b"\0",
    b"1e-400",
    b"..",
    b"\xef\xbb\xbf",
    b"e",
)
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)


@dataclass
class Tally:
    """What became of the mutants of one kind of file."""

    target: str
    mutants: int = 0
    read: int = 0
    refused: int = 0
    crashed_child: int = 0
    slowest_s: float = 0.0
    peak_bytes: int = 0
    findings: list[str] = field(default_factory=list)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """One broken copy."""
    if rng.random() < 0.15:
        return data[: rng.randrange(len(data))]
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        rng.choice(STEPS)(rng, out)
    return bytes(out)


def _flip(rng: random.Random, out: bytearray) -> None:
    at = rng.randrange(len(out))
    out[at] ^= 1 << rng.randrange(8)


def _number(rng: random.Random, out: bytearray) -> None:
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice(NUMBERS) & (256**width - 1)
    at = rng.randrange(len(out))
    out[at : at + width] = value.to_bytes(width, rng.choice(("little", "big")))


def _delete(rng: random.Random, out: bytearray) -> None:
    at = rng.randrange(len(out))
    del out[at : at + rng.randrange(1, 64)]
    out += b"\0" * (not out)


def _duplicate(rng: random.Random, out: bytearray) -> None:
    at, length = rng.randrange(len(out)), rng.randrange(1, 256)
    out[at:at] = out[at : at + length]


def _token(rng: random.Random, out: bytearray) -> None:
    at = rng.randrange(len(out))
    out[at : at + rng.randrange(3)] = rng.choice(TOKENS)


STEPS: tuple[Callable[[random.Random, bytearray], None], ...] = (_flip, _flip, _number, _delete, _duplicate, _token)


def fuzz(target: str, count: int, seed: int) -> Tally:
    """Read `count` mutants of one format; of a folder, its metadata are broken."""
    case, tally = CASES[target], Tally(target)
    channel_map = read_channel_map(case.channel_map or {})
    rng = random.Random(f"{target}-{seed}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log{case.suffix}"
        case.write(path, planted(60))
        broken = path / "metadata.yaml" if path.is_dir() else path
        original = broken.read_bytes()

        def read() -> Table:
            return read_table(path, Options(strict=bool(tally.mutants % 2)))

        read()
        for number in range(count):
            broken.write_bytes(mutate(rng, original))
            started = time.process_time()
            _try(tally, lambda: Recording(**convert(channel_map, {"log": read()})), number)
            tally.slowest_s = max(tally.slowest_s, time.process_time() - started)
            tally.mutants += 1
    _judge(tally)
    return tally


def _try(tally: Tally, attempt: Callable[[], Recording], number: int) -> None:
    """Read one mutant and sort what comes out."""
    try:
        attempt()
        tally.read += 1
    except DataError as error:
        tally.refused += 1
        tally.crashed_child += "crashed" in error.reason or "took longer" in error.reason
        if "needs" in error.reason or "SyntaxError" in error.reason:
            tally.findings.append(f"mutant {number}: {error}")
    except DynidError as error:
        tally.findings.append(f"mutant {number}: {type(error).__name__}: {error}")
    except Exception as error:
        tally.findings.append(f"mutant {number}: {type(error).__name__}: {error}")


def _judge(tally: Tally) -> None:
    """Hold time and memory against the limits."""
    if tally.slowest_s > SECONDS_LIMIT:
        tally.findings.append(f"a mutant took {tally.slowest_s:.1f} s")
    tally.peak_bytes = max(_own_peak(), _peak_of_children())
    if tally.peak_bytes > MEMORY_LIMIT:
        tally.findings.append(f"memory reached {tally.peak_bytes / 1e9:.2f} GB")


def _own_peak() -> int:
    """Largest memory of this process [bytes]; ``ru_maxrss`` would count the process that started this one, too."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _peak_of_children() -> int:
    """Largest memory of an ended child [bytes]; 0 on systems that do not tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def fuzz_in_child(target: str, count: int, seed: int, timeout_s: float) -> Tally:
    """`fuzz` in a process of its own, so that a crash or a hang is a finding and not the end."""
    words = ["-W", "error", "-m", "tests.campaigns.fuzz_readers", "--json", "--target", target]
    return tally_of_child(target, [*words, "--count", str(count), "--seed", str(seed)], timeout_s)


def tally_of_child(target: str, words: Sequence[str], timeout_s: float) -> Tally:
    """What a process with these words for Python tells of a target; a crash or a hang is a finding."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, *words]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return Tally(target, findings=[f"the mutants took longer than {timeout_s:.0f} s"])
    if done.returncode not in (0, 1) or not done.stdout:
        return Tally(target, findings=[f"the process ended with {done.returncode}: {done.stderr[-2000:]}"])
    return Tally(**json.loads(done.stdout))


def main() -> int:
    """The campaign's command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=sorted(CASES))
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one format, in this process; the tally as JSON")
    options = parser.parse_args()
    if options.json:
        tally = fuzz(options.target, options.count, options.seed)
        sys.stdout.write(json.dumps(asdict(tally)))
        return int(bool(tally.findings))
    findings: Counter[str] = Counter()
    for target in [options.target] if options.target else sorted(CASES):
        started = time.monotonic()
        tally = fuzz_in_child(target, options.count, options.seed, timeout_s=60 + options.count)
        findings[target] = len(tally.findings)
        sys.stdout.write(
            f"{target:14s} {tally.mutants:6d} mutants  {tally.read:5d} read  {tally.refused:5d} refused  "
            f"{tally.crashed_child:3d} contained  slowest {tally.slowest_s:.2f} s  "
            f"peak {tally.peak_bytes / 1e6:.0f} MB  {time.monotonic() - started:.0f} s\n"
        )
        sys.stdout.writelines(f"    {finding}\n" for finding in tally.findings[:20])
        sys.stdout.flush()
    return int(bool(findings.total()))


if __name__ == "__main__":
    raise SystemExit(main())
