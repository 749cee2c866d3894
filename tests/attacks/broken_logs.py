"""The planted log of every format, broken in many ways: only our errors may come out."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from campaigns.log_writers import CASES, planted
from dynid.logs.channel_map import read_channel_map
from dynid.logs.conversion import convert
from dynid.logs.readers import read_table
from dynid.logs.recording import Recording

from .mutants import mutate, try_mutants


def attack_format(target: str, count: int, seed: int) -> list[str]:
    """Read mutants of one format; of a folder, its metadata are broken."""
    case, rng = CASES[target], random.Random(f"{target}-{seed}")
    channel_map = read_channel_map(case.channel_map or {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log{case.suffix}"
        case.write(path, planted(60))
        broken = path / "metadata.yaml" if path.is_dir() else path
        original = broken.read_bytes()

        def use() -> Recording:
            table = read_table(path)
            return Recording(**convert(channel_map, {"log": table}))

        use()
        return try_mutants(count, lambda: broken.write_bytes(mutate(rng, original)), use)
