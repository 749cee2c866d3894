"""Run readers in a child process with bounded memory and time, so that a corrupt or hostile file can only fail.

The child cannot write files. When it is done it waits for the next request; after a crash or a timeout the next read
starts a new child. Requests and answers are MessagePack, each behind its length in 8 bytes. A request is answered by
tables and then "done", or by an error. Nothing is pickled, and nothing that comes back is executed.

The first half of the file runs in the calling process (`read_guarded`), the second in the child (`main`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from dynid.errors import LogReadError
from dynid.logs.readers.base import BASE_MEMORY, MEMORY_PER_BYTE, ColumnTable, Options
from dynid.logs.readers.formats import read_here

BASE_SECONDS = 4.5
"""Processor time for a small file [s] (convention)."""
WALL_TIME_FACTOR = 6.0
"""Ratio of wall time to processor time that a busy machine may need (convention)."""
BYTES_PER_SECOND = 1e6
"""Lowest reading rate of a larger file [bytes/s] (convention)."""
_OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)
"""Signal that ends a process at its limit of processor time; 0 on systems without it."""
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Few threads and pools in the child, because each reserves address space, which is limited."""
_idle: list[tuple[int, subprocess.Popen[bytes]]] = []
"""Children that wait for a request, each with the id of the process that started it: a fork must not use them."""


def read_guarded(name: str, path: Path, options: Options, rows: int = 0) -> Iterator[ColumnTable]:
    """Read a file with the named reader in a child process.

    Raises:
        LogReadError: The reader's error, or that it crashed or ran out of memory or time.
    """
    size = sum(part.stat().st_size for part in (path.iterdir() if path.is_dir() else [path]) if part.is_file())
    seconds = BASE_SECONDS + size / BYTES_PER_SECOND
    request = {"name": name, "path": str(path.absolute()), "options": asdict(options), "rows": rows}
    child = _child()
    is_complete = False  # whether the child has answered all of the request
    late = threading.Event()  # set when the child is killed because of the wall time
    try:
        _send(child.stdin, {**request, "size": size, "seconds": seconds})
        while not is_complete:
            watchdog = threading.Timer(WALL_TIME_FACTOR * seconds, _kill_late, (child, late))
            watchdog.start()
            try:
                answer = _receive(child.stdout)
            finally:
                watchdog.cancel()
            if "error" in answer:
                is_complete = True
                raise LogReadError(path=path, **answer["error"])
            if "table" in answer:
                about = answer["table"]
                columns = {name: np.frombuffer(data).reshape(shape) for name, (shape, data) in about["columns"].items()}
                texts = {key: tuple(about[key]) for key in ("notes", "salvaged")}
                yield ColumnTable(**{**about, **texts, "columns": columns})
            is_complete = "table" not in answer
    except (EOFError, OSError) as error:
        is_late = late.is_set() or child.wait() == -_OUT_OF_TIME
        what = f"took longer than {seconds:.0f} s" if is_late else f"crashed (exit code {child.wait()})"
        remedy = "The file is damaged: record or export it again."
        if late.is_set():
            remedy += " Where other work keeps the machine busy, read it again later."
        raise LogReadError(f"the {name} reader {what} on it", path=path, remedy=remedy) from error
    finally:
        if is_complete:
            _idle.append((os.getpid(), child))
        else:  # its answers to this request must not be taken for those to the next one
            _end(child)


def _child() -> subprocess.Popen[bytes]:
    """A child that waits for requests: an idle one, or a new one. It ends when this process closes its input."""
    while _idle:
        owner, child = _idle.pop()
        if owner == os.getpid() and child.poll() is None:
            return child
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "dynid.logs.readers.guarded"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **_ENVIRONMENT},
    )  # fmt: skip


@atexit.register
def _end_idle() -> None:
    """End all idle children."""
    while _idle:
        _end(_idle.pop()[1])


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and close its pipes."""
    child.kill()
    for stream in (child.stdin, child.stdout):
        with contextlib.suppress(OSError):
            stream.close()  # type: ignore[union-attr]
    child.wait()


def _kill_late(child: subprocess.Popen[bytes], late: threading.Event) -> None:
    """Kill a child that takes too long, and say so by the event."""
    late.set()
    child.kill()


def _send(stream: IO[bytes] | None, message: dict[str, Any]) -> None:
    """Write one message: its length in 8 bytes, then MessagePack."""
    assert stream is not None
    data = msgspec.msgpack.encode(message)
    stream.write(len(data).to_bytes(8, "little"))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> dict[str, Any]:
    """Read one message; an EOFError where it is not whole."""
    assert stream is not None
    length = int.from_bytes(stream.read(8), "little")
    data = stream.read(length)
    if not length or len(data) != length:
        raise EOFError("the other process ended early")
    try:
        return msgspec.msgpack.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise EOFError("the answer cannot be decoded") from error


def main() -> None:
    """Serve requests from standard input until it closes."""
    # answers go to the original standard output; what a library prints goes nowhere, not between the answers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    before = _address_space()
    while True:
        try:
            request = _receive(sys.stdin.buffer)
        except EOFError:
            return
        _limit(before + BASE_MEMORY + MEMORY_PER_BYTE * request["size"], request["seconds"])
        try:
            options = Options(**request["options"])
            for table in read_here(request["name"], Path(request["path"]), options, request["rows"]):
                about = {key: getattr(table, key) for key in table.__slots__}
                columns = {name: (x.shape, np.ascontiguousarray(x).tobytes()) for name, x in table.columns.items()}
                _send(answers, {"table": {**about, "columns": columns}})
            _send(answers, {"done": True})
        except LogReadError as error:
            _send(answers, {"error": {key: getattr(error, key) for key in ("reason", "place", "remedy")}})


def _address_space() -> int:
    """Address space of this process [bytes]; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def _limit(size: int, seconds: float) -> None:
    """Bound this process's address space, its further processor time, and the size of files it writes (to zero).

    Windows has no such limits; there the wall time alone is bounded.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    total_seconds = int(time.process_time() + seconds) + 1
    limits = ((resource.RLIMIT_AS, size), (resource.RLIMIT_CPU, total_seconds), (resource.RLIMIT_FSIZE, 0))
    for kind, amount in limits:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard))


if __name__ == "__main__":
    main()
