"""The measurements of docs/decisions.md: hand-written readers and filters beside the libraries that could replace them.

Every time is the processor time of the whole process on one core, the best of three. Files are written anew and lie in
the file cache; readers run in this process, without the guarded child. Needs mcap, rosbags and pyarrow; run
``python tests/campaigns/library_choices.py``.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_NUM_THREADS"):
    os.environ[variable] = "1"  # libraries read it when they are loaded
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402
from log_writers import TYPES, messages, planted, write_bag, write_bag_folder, write_db3, write_mcap  # noqa: E402

from dynid.logs.readers import numpy_files, text  # noqa: E402
from dynid.logs.readers.bags import mcap, rosbag1, rosbag2  # noqa: E402
from dynid.logs.readers.bags.ros_messages import decode_messages  # noqa: E402
from dynid.logs.readers.base import Options  # noqa: E402
from dynid.processing import native  # noqa: E402
from dynid.processing.filters import _butterworth_sections  # noqa: E402

ROUNDS = 3
"""Repeats of a measurement; the smallest time counts."""


def measure(function: Callable[[], object]) -> float:
    """Smallest processor time [s]."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def show(title: str, path: Path | None, entries: dict[str, Callable[[], object]]) -> None:
    """Print the times of the entries; the first one is ours."""
    size = "" if path is None else f", {path.stat().st_size / 1e6:.1f} MB"
    print(f"{title}{size}")
    found = {name: measure(function) for name, function in entries.items()}
    ours = next(iter(found.values()))
    for name, seconds in found.items():
        print(f"  {name:32s} {1e3 * seconds:9.1f} ms  {seconds / ours:5.1f} x", flush=True)


def texts(folder: Path) -> None:
    """A text log with 17 digits per number."""
    path = folder / "log.csv"
    values = np.random.default_rng(0).normal(size=(250_000, 22))
    np.savetxt(path, values, delimiter=",", header=",".join(f"c{k}" for k in range(22)), comments="", fmt="%.17g")

    def by_csv() -> None:
        with path.open() as stream:
            rows = csv.reader(stream)
            next(rows)
            np.array([[float(word) for word in row] for row in rows])

    def by_fromstring() -> None:
        np.fromstring(path.read_text().split("\n", 1)[1].replace("\n", ","), sep=",")

    entries: dict[str, Callable[[], object]] = {
        "ours": lambda: text.read(path, Options()),
        "numpy.fromstring": by_fromstring,
        "numpy.loadtxt": lambda: np.loadtxt(path, delimiter=",", skiprows=1),
        "csv and float": by_csv,
    }
    if find_spec("pyarrow"):
        from pyarrow import csv as arrow_csv

        single = arrow_csv.ReadOptions(use_threads=False)
        entries["pyarrow.csv, one thread"] = lambda: arrow_csv.read_csv(path, read_options=single)
    show("text, 250 000 rows x 22 numbers of 17 digits", path, entries)


def bags(folder: Path) -> None:
    """MCAP, ROS 2 and ROS 1 bags with joint states of three joints and wrenches, alternating."""
    from mcap.stream_reader import StreamReader
    from rosbags.rosbag1 import Reader as Reader1
    from rosbags.rosbag2 import Reader as Reader2
    from rosbags.typesys import Stores, get_typestore

    log = planted(60_000)
    store, store1 = get_typestore(Stores.ROS2_HUMBLE), get_typestore(Stores.ROS1_NOETIC)
    payloads = [data for topic, _, data in messages(log) if topic == "/joint_states"][:20_000]

    def records(path: Path) -> None:
        with path.open("rb") as stream:
            for _ in StreamReader(stream).records:
                pass

    def deserialise(reader: Callable[[], object], decode: Callable[[bytes, str], object]) -> None:
        with reader() as bag:  # type: ignore[attr-defined]
            for link, _, data in bag.messages():
                decode(data, link.msgtype)

    path = folder / "bag.mcap"
    write_mcap(path, log, chunk_size=2**20)
    show("MCAP, 120 000 messages, zstd", path, {
        "ours, decoded": lambda: mcap.read(path, Options()),
        "StreamReader, records only": lambda: records(path),
    })  # fmt: skip
    show("20 000 joint states, decoding only", None, {
        "ours": lambda: list(decode_messages(payloads, "joints", "cdr")),
        "rosbags.deserialize_cdr": lambda: [store.deserialize_cdr(data, TYPES["/joint_states"]) for data in payloads],
    })  # fmt: skip
    single, whole = folder / "bag.db3", folder / "bag2"
    write_db3(single, log)
    write_bag_folder(whole, log)
    show("ROS 2 bag (.db3), 120 000 messages", single, {
        "ours": lambda: rosbag2.read(single, Options()),
        "rosbags, raw messages only": lambda: deserialise(lambda: Reader2(whole), lambda data, kind: None),
        "rosbags, decoded": lambda: deserialise(lambda: Reader2(whole), store.deserialize_cdr),
    })  # fmt: skip
    old = folder / "bag.bag"
    write_bag(old, planted(20_000))
    show("ROS 1 bag (.bag), 40 000 messages, bz2", old, {
        "ours": lambda: rosbag1.read(old, Options()),
        "rosbags, raw messages only": lambda: deserialise(lambda: Reader1(old), lambda data, kind: None),
        "rosbags, decoded": lambda: deserialise(lambda: Reader1(old), store1.deserialize_ros1),
    })  # fmt: skip
    cut = folder / "cut.bag"
    cut.write_bytes(old.read_bytes()[: int(0.6 * old.stat().st_size)])
    kept = rosbag1.read(cut, Options()).columns
    try:
        deserialise(lambda: Reader1(cut), store1.deserialize_ros1)
    except Exception as error:
        print(f"ROS 1 bag cut at 60 %: ours {kept['/joint_states/time'].size} of 20 000; rosbags: {error}")


def arrays(folder: Path) -> None:
    """A NumPy file."""
    path = folder / "log.npy"
    np.save(path, np.random.default_rng(0).normal(size=(1_000_000, 22)))

    def by_load() -> None:
        matrix = np.load(path)
        for column in matrix.T:
            np.ascontiguousarray(column)

    show("NumPy file, 1 000 000 x 22, in columns", path, {
        "ours": lambda: numpy_files.read(path, Options()), "numpy.load, split into columns": by_load
    })  # fmt: skip


def loops() -> None:
    """The inner loops of processing on 500 000 x 7 samples."""
    from scipy.ndimage import correlate1d
    from scipy.signal import sosfilt

    x = np.random.default_rng(0).normal(size=(500_000, 7))
    sections = _butterworth_sections(4, 0.05)
    filter_ = native.cascade(sections, 7)
    assert filter_ is not None
    out, dx, ddx, state = np.empty_like(x), np.empty_like(x), np.empty_like(x), np.zeros((len(sections), 2, 7))
    show("low-pass of order 4, 500 000 x 7", None, {
        "ours": lambda: filter_.run(x, out, state), "scipy.signal.sosfilt": lambda: sosfilt(sections, x, axis=0)
    })  # fmt: skip
    first, second = np.array([0.5, 0.1, 0.05]), np.array([-2.0, 0.8, 0.15, 0.05])

    def slices() -> None:
        n = len(x)
        plus, minus = ([x[3 + s * j : n - 3 + s * j] for j in (1, 2, 3)] for s in (1, -1))
        sum(w * (a - b) for w, a, b in zip(first, plus, minus, strict=True))
        second[0] * x[3 : n - 3] + sum(w * (a + b) for w, a, b in zip(second[1:], plus, minus, strict=True))

    def correlation() -> None:
        correlate1d(x, np.r_[-first[::-1], 0.0, first], axis=0)
        correlate1d(x, np.r_[second[:0:-1], second], axis=0)

    def scan() -> None:
        np.isfinite(x).all(), x.min(axis=0), x.max(axis=0), np.abs(np.diff(x, axis=0)).max(axis=0)

    show("central differences over 7 samples, first and second order, 500 000 x 7", None, {
        "ours": lambda: native.differences(x, first, second, dx, ddx),
        "NumPy slices": slices,
        "scipy.ndimage.correlate1d": correlation,
    })  # fmt: skip
    show("extent of a signal, 500 000 x 7", None, {"ours": lambda: native.extent(x), "NumPy": scan})
    code = "import numpy, time; s = time.process_time(); import scipy.signal; print(time.process_time() - s)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(ROUNDS)]
    print(f"import of scipy.signal: {min(float(run.stdout) for run in runs):.2f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        texts(Path(name))
        bags(Path(name))
        arrays(Path(name))
    loops()
