"""A file is what was saved, or it is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from dynid.data_reduction import Information, reduce_samples
from dynid.data_reduction.storage import MAGIC
from dynid.errors import DataError

from .problems import ROBOTS, identical, random_log


def small(samples: int = 40) -> Information:
    log = random_log(ROBOTS["one joint"], samples)
    return reduce_samples(log.robot, *log.arrays, segments=np.arange(samples) // 20)


def test_round_trip(tmp_path: Path) -> None:
    log = random_log(ROBOTS["coupled wrist"], 300)
    saved = reduce_samples(log.robot, *log.arrays, segments=np.repeat([1, -4], 150))
    saved.save(tmp_path / "log.info")
    loaded = Information.load(tmp_path / "log.info")
    for name in ("robot", "fingerprint", "columns", "supports", "segments"):
        assert getattr(loaded, name) == getattr(saved, name)
    assert identical(loaded, saved)
    assert np.array_equal(loaded.weight().R, saved.weight().R)


def test_every_byte_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.info"
    small().save(path)
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        with pytest.raises(DataError):
            Information.load(path)


@pytest.mark.parametrize("body", [b"", b"{}", msgspec.msgpack.encode({}), msgspec.msgpack.encode({"robot": 1})])
def test_whole_files_of_others_are_refused(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign.info"
    path.write_bytes(MAGIC + hashlib.sha256(body).digest() + body)
    with pytest.raises(DataError, match="not a whole information file"):
        Information.load(path)
    path.write_bytes(b"dynid information 2\n" + body)
    with pytest.raises(DataError, match="of this version"):
        Information.load(path)
    with pytest.raises(DataError, match="cannot be read"):
        Information.load(tmp_path / "absent.info")
