"""Two users of one machine and the cache of compiled kernels; needs root, to become another user in a child process."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dynid.tape.llvm.object_cache import ObjectCache

NOBODY = 65534
"""The number of the user without rights, by convention."""
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork") or os.geteuid() != 0, reason="only root can become another user"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter and write, as a system's folder for temporary files is."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def as_nobody(act: Callable[[], bool]) -> bool:
    """Whether an action of the other user succeeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of Python, and JAX, warn of threads
        child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = 0 if act() else 1
        except OSError:
            code = 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code < 2
    return code == 0


def test_the_other_user_neither_reads_nor_writes_the_cache(place: Path) -> None:
    cache = ObjectCache(place / "cache")
    cache.write("x", b"machine code")
    assert not as_nobody(lambda: bool((place / "cache" / "x.o").read_bytes()))
    assert not as_nobody(lambda: bool((place / "cache" / ".key").read_bytes()))
    assert not as_nobody(lambda: (place / "cache" / "y.o").write_bytes(b"y") == 1)
    assert not as_nobody(lambda: (place / "cache").rename(place / "moved").exists())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not as_nobody(lambda: ObjectCache(place / "cache").read("x") is not None)
    assert cache.read("x") == b"machine code"


def test_a_folder_that_the_other_user_prepared_is_not_used(place: Path) -> None:
    def prepare() -> bool:
        planted = ObjectCache(place / "cache")
        planted.write("x", b"code of the attacker")
        return planted.read("x") is not None

    assert as_nobody(prepare)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert ObjectCache(place / "cache").read("x") is None
    ObjectCache(place / "cache").write("y", b"machine code")
    assert not (place / "cache" / "y.o").exists()


def test_an_entry_that_the_other_user_owns_is_not_read(place: Path) -> None:
    cache = ObjectCache(place / "cache")
    cache.write("x", b"machine code")
    os.chown(place / "cache" / "x.o", NOBODY, NOBODY)
    assert cache.read("x") is None
