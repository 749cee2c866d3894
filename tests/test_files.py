"""Files are written whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from dynid.errors import DataError, ExportError
from dynid.safe_files import file_digest, write_atomically


def test_text_and_bytes_arrive_as_given(tmp_path: Path) -> None:
    assert write_atomically(tmp_path / "a", "ä\r\n").read_bytes() == "ä\r\n".encode()
    assert write_atomically(tmp_path / "b", b"\x00\xff").read_bytes() == b"\x00\xff"


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    path = write_atomically(tmp_path / "a", "old")
    with pytest.raises(ExportError, match="exists already"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert write_atomically(path, "new", force=True).read_text() == "new"


def test_a_dangling_link_counts_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ExportError, match="exists already"):
        write_atomically(tmp_path / "link", "text")


@pytest.mark.parametrize("path", ["missing/folder/file", "nul\0byte"])
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, path: str) -> None:
    with pytest.raises(ExportError, match="cannot be written"):
        write_atomically(f"{tmp_path}/{path}", "text")
    assert os.listdir(tmp_path) == []


def test_a_failure_half_way_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_atomically(tmp_path / "a", "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExportError, match="No space left"):
        write_atomically(path, "new", force=True)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_digest_is_that_of_the_present_bytes(tmp_path: Path) -> None:
    path, content = tmp_path / "log.bin", os.urandom(3_000_000)
    path.write_bytes(content)
    assert file_digest(path) == hashlib.sha256(content).hexdigest()
    os.replace(write_atomically(tmp_path / "other", "other"), path)
    assert file_digest(path) == hashlib.sha256(b"other").hexdigest()


def test_what_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        file_digest(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a regular file"):
        file_digest(tmp_path / "pipe")


def test_a_digest_that_fails_midway_says_so_and_is_tried_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise OSError(5, "Input/output error")

    path = write_atomically(tmp_path / "log", "text")
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", fail)
        with pytest.raises(DataError, match="Input/output error"):
            file_digest(path)
    assert file_digest(path) == hashlib.sha256(b"text").hexdigest()
