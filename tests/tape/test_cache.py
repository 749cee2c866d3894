"""The machine code kept on disk: damage, rivals and death while writing are harmless."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dynid.tape import compile_tape, record
from dynid.tape.llvm import engine as llvm_engine
from dynid.tape.llvm.object_cache import ObjectCache

KILLS = int(os.environ.get("DYNID_TEST_KILLS", "20"))

WRITER = """
import hashlib, itertools, pathlib, sys
from dynid.tape.llvm.object_cache import ObjectCache
cache = ObjectCache(pathlib.Path(sys.argv[1]))
print("ready", flush=True)
for k in itertools.count():
    content = hashlib.sha256(str(k).encode()).digest() * 20000
    cache.write(f"entry{k % 3}", content)
"""


def whole(content: bytes | None) -> bool:
    return content is None or (len(content) == 640000 and content == content[:32] * 20000)


def test_round_trip_and_absence(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "new" / "folder")
    assert cache.read("x") is None
    cache.write("x", b"machine code")
    assert cache.read("x") == b"machine code"
    assert sorted(path.name for path in cache.folder.iterdir()) == [".key", "x.o"]
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in cache.folder.iterdir()} == {0o600}


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "foreign"])
def test_damaged_entries_are_discarded(tmp_path: Path, damage: str) -> None:
    cache = ObjectCache(tmp_path)
    cache.write("x", b"machine code" * 100)
    path = tmp_path / "x.o"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes({"flip": bytes(data), "truncate": bytes(data[:200]), "empty": b"", "foreign": b"ELF"}[damage])
    assert cache.read("x") is None
    assert not path.exists()


def test_compiled_once_then_read_and_rebuilt_when_damaged(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []
    real = llvm_engine.compile_text
    monkeypatch.setattr(llvm_engine, "compile_text", lambda *a: compiled.append(1) or real(*a))
    llvm_engine._functions()
    compiled.clear()
    tape = record(lambda x: np.sin(x) * 3.0, x=(4,))
    x = np.ones((5, 4))
    expected = compile_tape(tape, "llvm")(x)
    assert len(compiled) == 1
    np.testing.assert_array_equal(compile_tape(tape, "llvm")(x), expected)
    assert len(compiled) == 1
    for path in own_cache.glob("*.o"):
        path.write_bytes(path.read_bytes()[:-100])
    np.testing.assert_array_equal(compile_tape(tape, "llvm")(x), expected)
    assert len(compiled) == 2


def test_a_change_of_any_printer_makes_another_key(tmp_path: Path) -> None:
    copy = tmp_path / "tape"
    shutil.copytree(llvm_engine.TAPE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert llvm_engine.source_digest.__wrapped__(copy) == llvm_engine.source_digest(llvm_engine.TAPE)
    for name in ("lower.py", "operations.py", "llvm/ir.py", "llvm/gram.py"):
        before = llvm_engine.source_digest.__wrapped__(copy)
        (copy / name).write_text((copy / name).read_text() + "# changed")
        assert llvm_engine.source_digest.__wrapped__(copy) != before


def test_code_printed_outside_the_tape_names_its_printers(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every caller of load_code outside dynid.tape gives the folder of its printers, or a digest of the whole text."""
    for path in sorted(llvm_engine.TAPE.parent.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "load_code" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "load_code":
                inside = llvm_engine.TAPE in path.parents
                named = any(keyword.arg == "printers" for keyword in node.keywords)
                assert inside or named or "sha256(printed" in ast.unparse(node), path
    names: list[str] = []
    monkeypatch.setattr(ObjectCache, "read", lambda self, name: names.append(name))
    for printers in (None, own_cache.parent, llvm_engine.TAPE / "llvm"):
        llvm_engine._object("key", lambda: "", printers)
    assert len(set(names)) == 3


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_killed_writers_leave_nothing_that_is_accepted(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(KILLS):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            time.sleep(float(rng.uniform(0.0, 0.03)))
            writer.send_signal(signal.SIGKILL)
        assert all(whole(cache.read(f"entry{k}")) for k in range(3))
    cache.write("entry0", b"\0" * 640000)
    assert cache.read("entry0") == b"\0" * 640000


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner")
@pytest.mark.parametrize("open_to", ["group", "others", "link"])
def test_a_folder_that_others_control_is_not_used(tmp_path: Path, open_to: str) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod({"group": 0o770, "others": 0o707, "link": 0o700}[open_to])
    if open_to == "link":
        (tmp_path / "link").symlink_to(folder)
        folder = tmp_path / "link"
    with pytest.warns(RuntimeWarning, match="not kept between processes"):
        ObjectCache(folder).write("x", b"code")
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_entries_that_are_no_regular_file_of_one_name_are_not_read(tmp_path: Path, kind: str) -> None:
    cache = ObjectCache(tmp_path / "cache")
    cache.write("x", b"code")
    entry, elsewhere = tmp_path / "cache" / "x.o", tmp_path / "elsewhere"
    entry.rename(elsewhere)
    assert cache.read("x") is None
    make = {
        "link": lambda: entry.symlink_to(elsewhere),
        "second name": lambda: os.link(elsewhere, entry),
        "pipe": lambda: os.mkfifo(entry),
        "folder": entry.mkdir,
    }
    make[kind]()
    assert cache.read("x") is None  # and does not wait for a writer


def test_an_entry_that_another_user_sealed_is_not_read(tmp_path: Path) -> None:
    mine, other = ObjectCache(tmp_path / "mine"), ObjectCache(tmp_path / "other")
    mine.write("x", b"code")
    other.write("x", b"evil")
    (tmp_path / "other" / "x.o").replace(tmp_path / "mine" / "x.o")
    assert mine.read("x") is None


def test_the_oldest_entries_go_and_the_litter_of_the_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.tape.llvm.object_cache.MOST_BYTES", 10_000)
    cache = ObjectCache(tmp_path)
    for k in range(20):
        cache.write(f"entry{k}", bytes(1000))
        if (path := tmp_path / f"entry{k}.o").exists():
            os.utime(path, (1e9 + k, 1e9 + k))
    (tmp_path / ".writing-dead").touch()
    os.utime(tmp_path / ".writing-dead", (1e9, 1e9))
    (tmp_path / "notes.txt").write_text("not ours")
    cache.shrink()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"entry{k}.o" for k in range(13, 20)} | {".key", "notes.txt"}
    assert cache.read("entry19") == bytes(1000)
