"""Broken copies of bytes, and the limits that every reader keeps: our errors alone, 5 s and 1 GB."""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from dynid.errors import DynidError

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


def try_mutants(count: int, spoil: Callable[[], object], use: Callable[[], object]) -> list[str]:
    """Break a file and use it, again and again; what came out other than a result or one of our errors."""
    findings: list[str] = []
    slowest, before = 0.0, own_peak()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(count):
            spoil()
            started = time.process_time()
            try:
                use()
            except DynidError:
                pass
            except Exception as error:
                findings.append(f"mutant {number}: {type(error).__name__}: {str(error)[:200]}")
            slowest = max(slowest, time.process_time() - started)
    if slowest > SECONDS_LIMIT:
        findings.append(f"a mutant took {slowest:.1f} s")
    if max(own_peak(), peak_of_children()) > max(MEMORY_LIMIT, before):
        findings.append(f"memory reached {own_peak() / 1e9:.2f} GB")
    return findings


def own_peak() -> int:
    """Largest memory of this process [bytes]; ``ru_maxrss`` would count the process that started this one, too."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def peak_of_children() -> int:
    """Largest memory of an ended child [bytes]; 0 on systems that do not tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
