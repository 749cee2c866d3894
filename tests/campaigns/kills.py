"""SIGKILL in the middle of writing an information file or a cache entry: what is found afterwards is whole, or ignored.

Run as ``python tests/campaigns/kills.py --count 200``.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dynid.information import Information
from dynid.information.partial_results import Part
from dynid.tape.llvm.object_cache import ObjectCache


def large_information(samples: int, width: int = 60) -> Information:
    """Information that takes a while to write; ``samples`` tells one from another."""
    matrix = np.triu(np.full((width + 1, width + 1), float(samples)))
    parts = tuple(Part(segment, 0, 0, (matrix.copy(),), (samples,)) for segment in range(40))
    support = tuple(range(width))
    return Information(robot="kills", fingerprint="0", columns=support, supports=(support,), kind="factor", parts=parts)


def killed(write: Callable[[], None], delay: float) -> None:
    """Run ``write`` again and again in a child process, which is killed after a delay [s]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of Python, and JAX, warn of threads
        child = os.fork()
    if child == 0:
        while True:
            write()
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kill_while_saving(folder: Path, seed: int) -> str:
    """Kill a process that replaces an information file; returns which of the two is there, ``old`` or ``new``."""
    path = folder / f"kill{seed}.info"
    old, new = large_information(1), large_information(2)
    old.save(path)
    killed(lambda: new.save(path, force=True), random.Random(seed).uniform(0.0, 0.08))
    found = Information.load(path)
    value = int(found.samples[0, 0])
    assert all(np.all(part.matrices[0][np.triu_indices(61)] == value) for part in found.parts)
    new.save(path, force=True)  # and the next start works
    assert int(Information.load(path).samples[0, 0]) == 2
    return "old" if value == 1 else "new"


def kill_while_caching(folder: Path, seed: int) -> str:
    """Kill a process that writes a cache entry; returns ``absent`` or ``new``."""
    cache = ObjectCache(folder / f"cache{seed}")
    content = bytes(range(256)) * 4096
    killed(lambda: cache.write("entry", content), random.Random(seed).uniform(0.0, 0.08))
    found = cache.read("entry")
    assert found in (None, content)
    cache.write("entry", content)
    assert cache.read("entry") == content
    return "absent" if found is None else "new"


def main() -> None:
    """Kill as often as asked for, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        for kill in (kill_while_saving, kill_while_caching):
            outcomes = Counter(kill(Path(folder), seed) for seed in range(count))
            sys.stdout.write(f"{kill.__name__}: {count} kills, {dict(outcomes)}\n")


if __name__ == "__main__":
    main()
