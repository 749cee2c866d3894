"""Folders change as a whole: after deaths at every step, beside other processes, and against planted folders."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from dynid.errors import DataError, ExportError
from dynid.safe_files import file_digest, transaction
from dynid.safe_files.transaction import MANIFEST, begin, check_listed, recover, stage_of

OLD = {"result.json": "old", "report.html": "old", "obsolete.txt": "old", "run.json": "{}"}
NEW = {"result.json": "new", "report.html": "new", "run.json": '{"new": 1}'}


def fill(folder: Path, content: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (folder / name).write_text(text)
    return folder


def content(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}


def change(folder: Path) -> None:
    """Change a folder from OLD to NEW."""
    work = begin(folder)
    fill(work.stage, NEW)
    work.commit(list(NEW), ["obsolete.txt"])


class DeathError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("step", range(12))
def test_a_death_at_any_step_leaves_the_old_or_the_new(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies at the n-th of its changes on the disk; the next look finds one of the two, and no litter."""
    folder = fill(tmp_path / "run", OLD)
    (folder / "mine").mkdir()
    left = [step]

    def dying(call):  # type: ignore[no-untyped-def]
        def act(*args: object, **options: object) -> object:
            if left[0] == 0:
                raise DeathError
            left[0] -= 1
            return call(*args, **options)

        return act

    with monkeypatch.context() as patch:
        for name in ("replace", "unlink", "mkdir", "rmdir", "link"):
            patch.setattr(os, name, dying(getattr(os, name)))
        try:
            change(folder)
            died = False
        except DeathError:
            died = True
    for held in tuple(transaction._held):  # what the end of a process does
        transaction._held.discard(held)
    recover(folder)
    assert content(folder) in (OLD, NEW)
    assert died or content(folder) == NEW
    change(folder)
    assert content(folder) == NEW
    assert os.listdir(tmp_path) == ["run"]
    assert (folder / "mine").is_dir()


def _write_slowly(folder: Path, ready: object) -> None:
    work = begin(folder)
    fill(work.stage, NEW)
    ready.set()  # type: ignore[attr-defined]
    time.sleep(60)


@pytest.mark.skipif(os.name != "posix", reason="no locks and signals of this kind")
def test_one_process_at_a_time_and_none_after_its_death(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    folder, ready = fill(tmp_path / "run", OLD), context.Event()
    other = context.Process(target=_write_slowly, args=(folder, ready))
    other.start()
    assert ready.wait(60)
    with pytest.raises(ExportError, match="another process of dynid is writing this folder"):
        begin(folder)
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    assert content(folder) == OLD
    work = begin(folder)
    assert content(work.stage).keys() == {*NEW, "lock"}  # a later process decides whether it continues
    (work.stage / "cache").mkdir()
    for half in (work.stage / ".a.x1.part", work.stage / "cache" / ".b.x2.part"):
        half.write_text("half of a file")
    work.release()
    work = begin(folder)
    assert not list(work.stage.rglob("*.part"))
    with pytest.raises(ExportError, match="another process"):  # nor do two threads of one process
        begin(folder)
    work.discard()
    assert os.listdir(tmp_path) == ["run"]


def test_planted_hidden_folders_move_nothing(tmp_path: Path) -> None:
    folder = fill(tmp_path / "run", OLD)
    stage = fill(stage_of(folder), {"lock": "", "x": "evil", "commit.json": '{"files": ["../x"], "obsolete": []}'})
    with pytest.raises(ExportError, match="not of the form"):
        recover(folder)
    assert content(folder) == OLD
    assert not (tmp_path / "x").exists()
    for file in stage.iterdir():
        file.unlink()
    (stage / "photo.jpg").write_text("mine")
    with pytest.raises(ExportError, match="no folder that dynid made for you"):
        begin(folder)
    assert (stage / "photo.jpg").read_text() == "mine"
    (stage / "photo.jpg").unlink()
    stage.rmdir()
    stage.symlink_to(fill(tmp_path / "elsewhere", {"lock": ""}))
    with pytest.raises(ExportError, match="no folder that dynid made for you"):
        begin(folder)
    if hasattr(os, "getuid") and os.getuid() == 0:
        stage.unlink()
        os.chown(fill(stage, {"lock": "", "commit.json": '{"files": [], "obsolete": ["result.json"]}'}), 65534, 65534)
        with pytest.raises(ExportError, match="no folder that dynid made for you"):
            recover(folder)
        assert content(folder) == OLD


def test_a_list_that_came_with_the_folder_is_not_obeyed(tmp_path: Path) -> None:
    """Who unpacks an archive owns what is in it, a hidden folder with a list of files to remove, too."""
    folder = fill(tmp_path / "run", OLD)
    begin(folder).release()
    name = next(iter(OLD))
    for lock in ({}, {"lock": "1 1"}):
        stage = fill(stage_of(folder), {"lock": "", name: "evil"})
        (stage / "commit.json").write_text(json.dumps({"files": [name], "obsolete": sorted(OLD)[1:], **lock}))
        with pytest.raises(ExportError, match="no run of dynid wrote this list here"):
            recover(folder)
        assert content(folder) == OLD


def manifest(folder: Path, **facts: object) -> None:
    """Write a manifest that lists the files of a folder."""
    digests = {file.name: file_digest(file) for file in folder.iterdir() if file.is_file() and file.name != MANIFEST}
    (folder / MANIFEST).write_text(json.dumps({"finished": True, "outputs": digests, **facts}))


def test_files_that_belong_together_pass(tmp_path: Path) -> None:
    folder = fill(tmp_path / "run", {"result.json": "one", "report.html": "one"})
    check_listed(folder / "result.json")  # no manifest
    manifest(folder)
    check_listed(folder / "result.json")
    (folder / "report.html").unlink()
    check_listed(folder / "result.json")


CHANGES = r"""
(folder / "result.json").write_text("two") -> not the one that run\.json lists
(folder / "report.html").write_text("two") -> report\.html: the file is not the one
((folder / "report.html").unlink(), (folder / "report.html").mkdir()) -> is not the one
manifest(folder, finished=False) -> the run is not finished
manifest(folder, outputs={}) -> does not list the file
manifest(folder, outputs={"../x": "0" * 64}) -> not of the form
(folder / MANIFEST).write_text("{") -> no JSON
((folder / MANIFEST).unlink(), os.mkfifo(folder / MANIFEST)) -> not a regular file
"""
"""What is done to a folder -> what the refusal says."""


@pytest.mark.parametrize("case", CHANGES.strip().splitlines())
def test_a_file_of_another_run_is_refused(tmp_path: Path, case: str) -> None:
    folder = fill(tmp_path / "run", {"result.json": "one", "report.html": "one"})
    manifest(folder)
    change, reason = case.split(" -> ")
    eval(change, globals() | {"folder": folder})
    with pytest.raises(DataError, match=reason):
        check_listed(folder / "result.json")
