"""Native readers in a disposable process with bounded memory and time, so that a corrupt file can only fail.

Parent to child: one line of JSON per file. Child to parent, for every table of it: the length of a JSON header (8
bytes), the header, then the columns' doubles as raw bytes; an empty header ends the file, one with an error breaks it
off. Nothing is pickled and nothing that comes back is executed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from dynid.data.readers.base import Floats, Options, Table
from dynid.data.readers.registry import pieces_in_process
from dynid.errors import LogReadError

__all__ = ["SafeChild", "main"]

BASE_MEMORY = 1000 * 2**20
"""Address space the child may use for a small file, interpreter and libraries included [bytes]."""
MEMORY_PER_BYTE = 16
"""Further address space per byte of the file."""
BASE_SECONDS = 10.0
"""Time at work for a small file [s]."""
PATIENCE = 6.0
"""How much longer a busy machine may take for it, where the child can limit its time at work itself."""
BYTES_PER_SECOND = 5e6
"""Rate below which a larger file is given up."""
MAX_HEADER = 64 * 2**20
_LIMITED = find_spec("resource") is not None
"""Whether a process can limit its own memory and time at work."""
_OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Fewer threads and pools, for each reserves address space that the limit would count."""


class SafeChild:
    """A process that reads files one after another; after a crash or a timeout the next read starts a new one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    _close_quietly(stream)
            self._process.wait()
            self._process = None

    def read(self, name: str, path: Path, options: Options) -> Table:
        """Read `path` with the adapter `name`.

        Raises:
            LogReadError: What the adapter said, or that it crashed or ran out of memory or time.
        """
        return next(iter([*self.pieces(name, path, options, 0)]))

    def pieces(self, name: str, path: Path, options: Options, rows: int) -> Iterator[Table]:
        """The same, so many rows at a time; the whole file for 0 rows."""
        size = path.stat().st_size
        seconds = BASE_SECONDS + size / BYTES_PER_SECOND
        limits = {"size": size, "seconds": seconds, "rows": rows}
        request = {"format": name, "path": str(path.absolute()), "options": asdict(options), **limits}
        process = self._process = self._process or _start()
        complete = False
        try:
            question: dict[str, Any] | None = request
            while not complete:
                header, columns = self._answer(process, question, f"the {name} reader", path, seconds)
                question, complete = None, "table" not in header
                if "error" in header:
                    raise LogReadError(path=path, **header["error"])
                if not complete:
                    yield Table(columns=columns, **{**header["table"], "notes": tuple(header["table"]["notes"])})
        finally:
            if not complete:  # what the child still has to say must not answer the next question
                self.close()

    def _answer(
        self, process: subprocess.Popen[bytes], request: dict[str, Any] | None, who: str, path: Path, seconds: float
    ) -> tuple[dict[str, Any], dict[str, Floats]]:
        """The next answer, after a request if there is one."""
        late = threading.Event()
        watchdog = threading.Timer(seconds * (PATIENCE if _LIMITED else 1.0), _give_up, (process, late))
        watchdog.start()
        try:
            return _exchange(process, request)
        except (EOFError, OSError, ValueError) as error:
            self.close()
            out_of_time = late.is_set() or process.returncode == -_OUT_OF_TIME
            what = f"took longer than {seconds:.0f} s" if out_of_time else f"crashed ({_cause(process.returncode)})"
            raise LogReadError(
                f"{who} {what} on it", path=path, remedy="The file is damaged: record or export it again."
            ) from error
        finally:
            watchdog.cancel()
            watchdog.join()


def _start() -> subprocess.Popen[bytes]:
    """A child that waits for requests."""
    command = [sys.executable, "-P", "-m", "dynid.data.readers.safe_child"]
    environment = {**os.environ, **_ENVIRONMENT}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )


def _give_up(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    """End a child that takes too long."""
    late.set()
    process.kill()


def _exchange(
    process: subprocess.Popen[bytes], request: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Send a request, if there is one; receive the next header and its columns."""
    assert process.stdin is not None
    assert process.stdout is not None
    if request is not None:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
    length = int.from_bytes(_receive(process.stdout, 8), "little")
    if length > MAX_HEADER:
        raise EOFError("the child's answer is not one")
    header: dict[str, Any] = json.loads(_receive(process.stdout, length))
    columns = {}
    for name, shape in header.get("shapes", ()):
        column = np.empty([int(extent) for extent in shape])
        _receive_into(process.stdout, column.reshape(-1).view(np.uint8).data)
        columns[str(name)] = column
    return header, columns


def _receive(stream: IO[bytes], count: int) -> bytes:
    """Exactly that many bytes."""
    data = stream.read(count)
    if len(data) != count:
        raise EOFError("the child ended early")
    return data


def _receive_into(stream: IO[bytes], view: memoryview) -> None:
    """Fill a buffer."""
    while view.nbytes:
        count = stream.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise EOFError("the child ended early")
        view = view[count:]


def _cause(code: int | None) -> str:
    """A process's end in words."""
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _close_quietly(stream: IO[bytes]) -> None:
    """Close a pipe whose other end may be gone."""
    try:
        stream.close()
    except OSError:
        return


# --- the child's side -----------------------------------------------------------------------------------------------


def main() -> None:
    """Serve requests from standard input until it closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever a library prints must not mix with the answers
    for line in sys.stdin.buffer:
        request = json.loads(line)
        path = Path(request["path"])
        _limit(BASE_MEMORY + MEMORY_PER_BYTE * request["size"], request["seconds"])
        try:
            for table in pieces_in_process(request["format"], path, Options(**request["options"]), request["rows"]):
                _send(answers, _header(table), table)
            _send(answers, {}, None)
        except LogReadError as error:
            evidence = {"reason": error.reason, "place": error.place, "remedy": error.remedy}
            _send(answers, {"error": evidence}, None)


def _header(table: Table) -> dict[str, Any]:
    """Everything of a table but its numbers."""
    about = {"clocks": dict(table.clocks), "units": dict(table.units), "epoch_ns": table.epoch_ns, "notes": table.notes}
    return {"shapes": [(name, column.shape) for name, column in table.columns.items()], "table": about}


def _send(stream: IO[bytes], header: dict[str, Any], table: Table | None) -> None:
    """Write one answer."""
    text = json.dumps(header).encode()
    stream.write(len(text).to_bytes(8, "little") + text)
    for column in table.columns.values() if table else ():
        stream.write(np.ascontiguousarray(column, dtype=np.float64).reshape(-1).view(np.uint8).data)
    stream.flush()


def _limit(size: int, seconds: float) -> None:
    """Bound this process's address space and its further time at work, where the system can."""
    if not _LIMITED:
        return
    import resource

    wanted = {resource.RLIMIT_AS: size, resource.RLIMIT_CPU: int(time.process_time() + seconds) + 1}
    for what, amount in wanted.items():
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard))


if __name__ == "__main__":
    main()
