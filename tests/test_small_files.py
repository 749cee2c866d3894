"""Small files from anywhere: regular, bounded, UTF-8, with values of the right kind; errors name the place inside."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from dynid.control_loop.laws import read_law
from dynid.data_reduction import Information
from dynid.errors import ArgumentError, DataError, DynidError
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import read_channel_map
from dynid.logs.columns import match_pattern
from dynid.logs.readers.text import is_number
from dynid.payload.load import Load
from dynid.payload.recognition import read_library
from dynid.report.page import Page
from dynid.robot.formats import read_robot
from dynid.safe_files import file_digest
from dynid.safe_files.records import Text, Whole, as_record
from dynid.safe_files.small_files import open_regular, read_json, read_small, read_toml
from dynid.workflows.run_folder import read_run

READERS = [
    read_channel_map, read_law, Recipe.read, Load.read, read_library, Page.read, Information.load, file_digest,
    read_robot, lambda path: read_run(path.parent),
]  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_pipes_are_refused_without_waiting(reader: object, tmp_path: Path) -> None:
    pipe = tmp_path / ("run.json" if reader is READERS[-1] else "arm.urdf")
    os.mkfifo(pipe)
    with pytest.raises(DynidError, match="regular file"):
        reader(pipe)  # type: ignore[operator]


def test_devices_links_to_them_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in ("/dev/zero", tmp_path / "link", tmp_path):
        with pytest.raises(OSError, match="regular file"):
            open_regular(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_small("a\0b")


def test_what_grows_without_bound_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 101)
    with pytest.raises(DataError, match="more than 100 bytes"):
        read_small(file, most=100)
    file.write_text("a." * 1000 + "b = 1")  # the parser's time grows with the square of the dots
    with pytest.raises(DataError, match="dots"):
        read_toml(file)
    file.write_text("[" * 100_000)
    for read in (read_toml, read_json):
        with pytest.raises(DataError, match=r"nested too deeply|not TOML"):
            read(file)
    file.write_text("[" + "[]," * 2_100_001)
    with pytest.raises(DataError, match="more than 4194304 values"):
        read_json(file)


def test_numbers_and_letters_that_no_program_holds_are_named_by_their_place(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text(f'{{"inputs": [1, {{"size": {10**400}}}]}}')
    with pytest.raises(DataError, match=r"a: inputs\[1\]\.size: the whole number is beyond 2\^63"):
        read_json(file)
    file.write_text(f"gear = [1, {10**30}]")
    with pytest.raises(DataError, match=r"a: gear\[1\]: the whole number"):
        read_toml(file)
    file.write_text('{"name": ["\\ud800"]}')
    with pytest.raises(DataError, match=r"a: name\[0\]: the text holds half a letter"):
        read_json(file)
    file.write_text('{"name": "\\ud83d\\ude00"}')  # two halves of one letter
    assert read_json(file) == {"name": "\U0001f600"}


def test_a_byte_order_mark_is_accepted_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b'\xef\xbb\xbf[position]\ncolumns = "q"\nunit = "rad"\n')
    assert "position" in read_channel_map(file).signals
    file.write_bytes(b"\xef\xbb\xbfcutoff_hz = 10.0\n")
    assert Recipe.read(file).cutoff_hz == 10.0
    file.write_bytes(b"\xff\xfea\0")
    with pytest.raises(DataError, match="not UTF-8"):
        read_channel_map(file)


class Entry(Struct, forbid_unknown_fields=True):
    path: Text
    size: Whole


class Record(Struct, forbid_unknown_fields=True):
    inputs: list[Entry]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "run.json: expected `object`, got `array`"),
        ({}, "run.json: object missing required field `inputs`"),
        ({"inputs": [{"path": "a", "size": 1}, {"path": 7, "size": 1}]}, "run.json: inputs[1].path: expected `str`"),
        ({"inputs": [{"path": "a", "size": True}]}, "run.json: inputs[0].size: expected `int`, got `bool`"),
        ({"inputs": [{"path": "a", "size": -1}]}, "run.json: inputs[0].size: expected `int` >= 0"),
        ({"inputs": [], "more": 1}, "run.json: object contains unknown field `more`"),
    ],
)
def test_a_record_names_file_place_and_reason(content: object, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        as_record(content, Record, path="run.json")
    assert as_record({"inputs": [{"path": "a", "size": 3}]}, Record).inputs[0].size == 3


PARTS = st.lists(st.sampled_from(["a", "b", "*", "_"]), max_size=7).filter(lambda parts: parts.count("*") < 3)


@given(PARTS, st.text("ab_", max_size=9))
def test_patterns_match_as_regular_expressions_do(parts: list[str], name: str) -> None:
    pattern = "".join(parts)
    wanted = re.fullmatch("".join(".*" if part == "*" else part for part in parts), name)
    assert (match_pattern(pattern, name) is not None) == (wanted is not None)
    joint = re.fullmatch("".join(".*" if part == "*" else part for part in parts) + "_(.+)", name)
    assert match_pattern(pattern + "_{joint}", name) == (joint[1] if joint else None)


def test_matching_takes_time_in_proportion(tmp_path: Path) -> None:
    # each of these took minutes to ages with backtracking
    assert match_pattern("*a" * 8 + "*b", "a" * 20_000) is None
    assert match_pattern("*a*a{joint}b", "a" * 300) is None
    assert not is_number("1" * 1000 + "x", ".")
    assert not is_number("1" * 50_000, ".")
    bad = {"columns": "q", "unit": "rad", "gear": "1e99999999999"}
    with pytest.raises(DataError, match=r"\[position\] gear"):
        read_channel_map({"position": bad})
    (tmp_path / "law.toml").write_text(f'kind = "pd"\nkp = [[1.0]]\nkd = {10**18}')
    with pytest.raises(ArgumentError, match=r"law.toml: .*kp"):
        read_law(tmp_path / "law.toml")
