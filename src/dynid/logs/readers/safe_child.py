"""Readers in a disposable process with bounded memory and time, so that a corrupt or hostile file can only fail.

The child writes no file. It is a copy of this process where that is safe (no other thread runs), which takes
milliseconds, and a new interpreter elsewhere.

Parent to child: one line of JSON per file. Child to parent, for every table of it: the length of a JSON header (8
bytes), the header, then the columns' doubles as raw bytes; an empty header ends the file, one with an error breaks it
off, one with a share tells of the progress. Where the system has anonymous files, the doubles of tables that fit into
one go through it, which is twice as fast as the pipe; an empty line from the parent says that they were taken. Nothing
is pickled and nothing that comes back is executed.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.log_formats import pieces_in_process

BASE_MEMORY = 750 * 2**20
"""Address space that a small file and the libraries to read it may take, beyond that of the process before [bytes]
(convention: with that of the process, below 1 GB in memory)."""
MEMORY_PER_BYTE = 16
"""Further address space per byte of the file (convention)."""
BASE_SECONDS = 4.5
"""Processor time for a small file [s] (convention)."""
PATIENCE = 6.0
"""Ratio of wall time to processor time that a busy machine may need (convention)."""
BYTES_PER_SECOND = 5e6
"""Reading rate below which a larger file is given up [bytes/s] (convention)."""
MAX_HEADER = 64 * 2**20
"""Largest header that the child process may send [bytes]; a convention."""
SHARED = 32 * 2**20
"""Memory shared by both processes [bytes] (convention)."""
_LIMITED = find_spec("resource") is not None
"""Whether a process can limit its own memory and time at work."""
_OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Fewer threads and pools, for each reserves address space that the limit would count."""


_WORDS = ("notes", "salvaged")
"""Fields of a table that are tuples of text."""


class SafeChild:
    """A process that reads files one after another; after a crash or a timeout the next read starts a new one."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._shared: mmap.mmap | None = None

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
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def read(self, name: str, path: Path, options: Options) -> Table:
        """Read `path` with the adapter `name`.

        Raises:
            LogReadError: What the adapter said, or that it crashed or ran out of memory or time.
        """
        return next(iter([*self.pieces(name, path, options, 0)]))

    def pieces(self, name: str, path: Path, options: Options, rows: int) -> Iterator[Table]:
        """Read as `read` does, a given number of rows at a time; the whole file for 0 rows."""
        size = path.stat().st_size
        seconds = BASE_SECONDS + size / BYTES_PER_SECOND
        limits = {"size": size, "seconds": seconds, "rows": rows}
        chosen = {key: getattr(options, key) for key in ("strict", "delimiter", "decimal")}
        reports = options.progress is not None
        request = {"format": name, "path": str(path.absolute()), "options": chosen, "reports": reports, **limits}
        process = self._process or self._start()
        complete = False
        try:
            question: dict[str, Any] | None = request
            while not complete:
                header, columns = self._answer(process, question, f"the {name} reader", path, seconds)
                question, complete = None, not header.keys() & {"table", "progress"}
                if "progress" in header:
                    options.tell(header["progress"], 1.0)
                if "error" in header:
                    raise LogReadError(path=path, **header["error"])
                if "table" in header:
                    words = {name: tuple(header["table"][name]) for name in _WORDS}
                    yield Table(columns=columns, **{**header["table"], **words})
        finally:
            if not complete:  # a late answer of the child must not be taken for the next one
                self.close()

    def _start(self) -> Process:
        """A child that waits for requests."""
        alone = threading.active_count() == 1 and "jax" not in sys.modules  # the threads of JAX do not survive a fork
        if hasattr(os, "fork") and sys.platform == "linux" and alone:
            self._shared = mmap.mmap(-1, SHARED)
            self._process = _Copy(self._shared)
            return self._process
        command = [sys.executable, "-P", "-m", "dynid.logs.readers.safe_child"]
        memory = [os.memfd_create("dynid")] if hasattr(os, "memfd_create") else []
        try:
            for file in memory:
                os.ftruncate(file, SHARED)
                self._shared = mmap.mmap(file, SHARED)
            self._process = subprocess.Popen(
                [*command, *map(str, memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ENVIRONMENT},
                pass_fds=memory,
            )
        finally:
            for file in memory:
                os.close(file)
        return self._process

    def _answer(
        self,
        process: Process,
        request: dict[str, Any] | None,
        who: str,
        path: Path,
        seconds: float,
    ) -> tuple[dict[str, Any], dict[str, Floats]]:
        """The next answer, after a request if there is one."""
        late = threading.Event()
        watchdog = threading.Timer(seconds * (PATIENCE if _LIMITED else 1.0), _give_up, (process, late))
        watchdog.start()
        try:
            return _exchange(process, request, self._shared)
        except (EOFError, OSError, ValueError) as error:
            self.close()
            out_of_time = late.is_set() or process.returncode == -_OUT_OF_TIME
            waited = watchdog.interval if late.is_set() else seconds
            what = f"took longer than {waited:.0f} s" if out_of_time else f"crashed ({_cause(process.returncode)})"
            busy = "If other work keeps the machine busy, read it again later; else t" if late.is_set() else "T"
            raise LogReadError(
                f"{who} {what} on it", path=path, remedy=f"{busy}he file is damaged: record or export it again."
            ) from error
        finally:
            watchdog.cancel()
            watchdog.join()


class _Copy:
    """A copy of this process that serves requests; it has the face of `subprocess.Popen`."""

    def __init__(self, shared: mmap.mmap) -> None:
        requests, to_child = os.pipe()
        from_child, answers = os.pipe()
        self.returncode: int | None = None
        with warnings.catch_warnings():  # newer versions warn of threads; those of NumPy's libraries expect a fork
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            _serve_and_end(requests, answers, (to_child, from_child), shared)
        os.close(requests)
        os.close(answers)
        self.stdin: IO[bytes] = os.fdopen(to_child, "wb")
        self.stdout: IO[bytes] = os.fdopen(from_child, "rb")

    def kill(self) -> None:
        """End the copy at once."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        """The exit code of the copy, when it has ended; negative for a signal."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self.returncode


Process = subprocess.Popen[bytes] | _Copy
"""The child, as a copy of this process or as a new one."""


def _serve_and_end(requests: int, answers: int, others: tuple[int, int], shared: mmap.mmap) -> NoReturn:
    """Serve requests in a copied process, and leave it without returning to what the original does."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the original ends its copy
        for handle in others:
            os.close(handle)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for handle in range(3):
            os.dup2(nowhere, handle)
        stream = os.fdopen(requests, "rb")
        _serve(stream, _Answers(os.fdopen(answers, "wb"), stream, shared), _address_space())
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # nothing that is registered for the end of the original may run
    raise AssertionError("the copy has ended")


def _address_space() -> int:
    """Address space of this process [bytes]; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    except (OSError, ValueError):
        return 0


def _give_up(process: Process, late: threading.Event) -> None:
    """End a child that takes too long."""
    late.set()
    process.kill()


def _exchange(
    process: Process, request: dict[str, Any] | None, shared: mmap.mmap | None
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
    columns = {str(name): np.empty([int(extent) for extent in shape]) for name, shape in header.get("shapes", ())}
    views = [column.reshape(-1).view(np.uint8).data for column in columns.values()]
    if shared is None or not header.get("shared"):
        for view in views:
            _receive_into(process.stdout, view)
        return header, columns
    start = 0
    with memoryview(shared) as numbers:
        for view in views:
            view[:] = numbers[start : start + view.nbytes]
            start += view.nbytes
    process.stdin.write(b"\n")
    process.stdin.flush()
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
    """Serve requests from standard input until it closes; the argument, if there is one, is the shared memory."""
    shared = mmap.mmap(int(sys.argv[1]), SHARED) if sys.argv[1:] else None
    answers = _Answers(os.fdopen(os.dup(1), "wb"), sys.stdin.buffer, shared)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the output of a library must not mix with the answers
    _serve(sys.stdin.buffer, answers, _address_space())


def _serve(requests: IO[bytes], answers: _Answers, before: int) -> None:
    """Serve requests until the stream closes.

    Args:
        requests: One line of JSON each.
        answers: Where the answers go.
        before: Address space that this process had at first [bytes].
    """
    for line in requests:
        request = json.loads(line)
        path = Path(request["path"])
        _limit(before + BASE_MEMORY + MEMORY_PER_BYTE * request["size"], request["seconds"])
        tell = (lambda share: answers.send({"progress": share})) if request["reports"] else None
        options = Options(**request["options"], progress=tell)
        try:
            for table in pieces_in_process(request["format"], path, options, request["rows"]):
                answers.send(_header(table), table)
            answers.send({})
        except LogReadError as error:
            evidence = {"reason": error.reason, "place": error.place, "remedy": error.remedy}
            answers.send({"error": evidence})


def _header(table: Table) -> dict[str, Any]:
    """Everything of a table but its numbers."""
    about = {name: getattr(table, name) for name in ("epoch_ns", *_WORDS)}
    about |= {"clocks": dict(table.clocks), "units": dict(table.units), "words": dict(table.words)}
    about |= {"constants": dict(table.constants)}
    return {"shapes": [(name, column.shape) for name, column in table.columns.items()], "table": about}


class _Answers:
    """Writes answers to the pipe, their numbers into the shared memory where they fit."""

    def __init__(self, stream: IO[bytes], requests: IO[bytes], shared: mmap.mmap | None) -> None:
        self._stream, self._requests, self._shared = stream, requests, shared
        self._waiting = False

    def send(self, header: dict[str, Any], table: Table | None = None) -> None:
        """Write one answer, once the numbers of the last were taken."""
        if self._waiting:
            self._requests.readline()
        columns = [] if table is None else [_doubles(column) for column in table.columns.values()]
        size = sum(column.nbytes for column in columns)
        self._waiting = self._shared is not None and 0 < size <= SHARED
        text = json.dumps({**header, "shared": self._waiting}).encode()
        if self._waiting and self._shared is not None:
            self._shared.seek(0)
            for column in columns:
                self._shared.write(column)
            columns = []
        self._stream.write(len(text).to_bytes(8, "little") + text)
        for column in columns:
            self._stream.write(column)
        self._stream.flush()


def _doubles(column: Floats) -> memoryview:
    return np.ascontiguousarray(column, dtype=np.float64).reshape(-1).view(np.uint8).data


def _limit(size: int, seconds: float) -> None:
    """Bound this process's address space, its further time at work and the files that it writes, where it can be."""
    if not _LIMITED:
        return
    import resource

    seconds = int(time.process_time() + seconds) + 1
    wanted = {resource.RLIMIT_AS: size, resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}
    for what, amount in wanted.items():
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard))


if __name__ == "__main__":
    main()
