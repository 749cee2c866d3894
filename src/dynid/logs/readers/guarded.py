"""Readers in another process with bounded memory and time, so that a corrupt or hostile file can only fail.

The child writes no file and waits for the next request when it is done; after a crash or a timeout the next read starts
a new one. Requests and answers are MessagePack behind their length (8 bytes): a request is answered by tables, then by
an empty message, or by the error. Nothing is pickled, and nothing that comes back is executed.
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
from dynid.logs.readers.base import BASE_MEMORY, MEMORY_PER_BYTE, Options, Table
from dynid.logs.readers.formats import read_here

BASE_SECONDS = 4.5
"""Processor time for a small file [s] (convention)."""
PATIENCE = 6.0
"""Ratio of wall time to processor time that a busy machine may need (convention)."""
BYTES_PER_SECOND = 1e6
"""Reading rate below which a larger file is given up [bytes/s] (convention)."""
_OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Fewer threads and pools, for each reserves address space that the limit would count."""
_idle: list[tuple[int, subprocess.Popen[bytes]]] = []
"""Children that wait for a request, with the process that started them."""


def read_guarded(name: str, path: Path, options: Options, rows: int = 0) -> Iterator[Table]:
    """Read a file with the named reader in a child process.

    Raises:
        LogReadError: What the reader said, or that it crashed or ran out of memory or time.
    """
    size = sum(part.stat().st_size for part in (path.iterdir() if path.is_dir() else [path]) if part.is_file())
    seconds = BASE_SECONDS + size / BYTES_PER_SECOND
    request = {"name": name, "path": str(path.absolute()), "options": asdict(options), "rows": rows}
    child, is_complete = _child(), False
    late = threading.Event()
    try:
        _send(child.stdin, {**request, "size": size, "seconds": seconds})
        while not is_complete:
            watchdog = threading.Timer(PATIENCE * seconds, _give_up, (child, late))
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
                yield Table(**{**about, **texts, "columns": columns})
            is_complete = "table" not in answer
    except (EOFError, OSError) as error:
        is_late = late.is_set() or child.wait() == -_OUT_OF_TIME
        what = f"took longer than {seconds:.0f} s" if is_late else f"crashed (exit code {child.wait()})"
        raise LogReadError(
            f"the {name} reader {what} on it",
            path=path,
            remedy="The file is damaged: record or export it again."
            + (" Where other work keeps the machine busy, read it again later." if late.is_set() else ""),
        ) from error
    finally:
        if is_complete:
            _idle.append((os.getpid(), child))
        else:  # a late answer must not be taken for the next one
            _end(child)


def _child() -> subprocess.Popen[bytes]:
    """A child that waits for requests; it ends when this process does, which closes its input."""
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
    while _idle:
        _end(_idle.pop()[1])


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    for stream in (child.stdin, child.stdout):
        with contextlib.suppress(OSError):
            stream.close()  # type: ignore[union-attr]
    child.wait()


def _give_up(child: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    child.kill()


def _send(stream: IO[bytes] | None, message: dict[str, Any]) -> None:
    assert stream is not None
    data = msgspec.msgpack.encode(message)
    stream.write(len(data).to_bytes(8, "little"))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> dict[str, Any]:
    assert stream is not None
    length = int.from_bytes(stream.read(8), "little")
    data = stream.read(length)
    if not length or len(data) != length:
        raise EOFError("the other process ended early")
    try:
        return msgspec.msgpack.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise EOFError("the answer is not one") from error


def main() -> None:
    """Serve requests from standard input until it closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the output of a library must not mix with the answers
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
    """Bound this process's address space, its further time at work and the files that it writes, where it can be."""
    try:
        import resource
    except ImportError:  # Windows
        return
    spent = int(time.process_time() + seconds) + 1
    for what, amount in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CPU, spent), (resource.RLIMIT_FSIZE, 0)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard))


if __name__ == "__main__":
    main()
