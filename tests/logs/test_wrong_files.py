"""Files and maps that are nearly right: what is wrong with them is said by name, with the remedy that helps."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from campaigns.log_writers import planted, write_text
from dynid.cli.verbs.model_verbs import inspect
from dynid.errors import DataError, LogReadError
from dynid.logs.readers import read_table
from dynid.logs.reading import read_recording
from support.header_styles import write_columns

LOG = planted(60)
MAP = {"time": {"column": "t", "unit": "s"}, "position": {"columns": "q{1..2}", "unit": "rad"}}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_columns(tmp_path / "log.csv", ["t", "q1", "q2"], [np.arange(30.0).reshape(10, 3) ** 0.5])


@pytest.mark.parametrize(
    ("pack", "reason"),
    [(gzip.compress, "gzip"), (bz2.compress, "bzip2"), (lzma.compress, "xz"), (pickle.dumps, "pickle")],
)
@pytest.mark.parametrize("suffix", [".csv", ".npy", ".packed"])
def test_packed_files_and_pickles_are_named(tmp_path, text, pack, reason, suffix):
    path = tmp_path / f"other{suffix}"
    path.write_bytes(pack(text.read_bytes()))
    with pytest.raises(LogReadError, match=reason) as caught:
        read_table(path)
    assert caught.value.remedy


@pytest.mark.parametrize("header", ["t,q1,q2\n", "t,q1,q2", "# t q1 q2\n", "t;q1;q2\ns;rad;rad\n\n"])
def test_a_header_alone_has_no_data_rows(tmp_path, header):
    (tmp_path / "log.csv").write_text(header)
    with pytest.raises(LogReadError, match="no data rows"):
        read_table(tmp_path / "log.csv")


@pytest.mark.parametrize("decimal", [",", "."])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_numbers_in_quotation_marks(tmp_path, decimal, delimiter):
    pandas = pytest.importorskip("pandas")
    values = np.random.default_rng(0).normal(size=(40, 3))
    frame = pandas.DataFrame(values, columns=["t", "q1", "q2"]).assign(n=range(40))
    frame.to_csv(tmp_path / "log.csv", index=False, decimal=decimal, sep=delimiter, quoting=1)
    found = read_table(tmp_path / "log.csv").columns
    np.testing.assert_array_equal(np.column_stack([found[name] for name in ("t", "q1", "q2")]), values)
    np.testing.assert_array_equal(found["n"], np.arange(40))
    text = (tmp_path / "log.csv").read_text().splitlines()
    text[20] = text[20].replace('"', "", 1)
    (tmp_path / "log.csv").write_text("\n".join(text))
    with pytest.raises(LogReadError, match="not closed") as caught:
        read_table(tmp_path / "log.csv")
    assert caught.value.place == "line 21"


@pytest.mark.parametrize(("key", "value"), [("delimiter", ";;"), ("delimiter", ""), ("decimal", ""), ("decimal", 1)])
def test_a_dialect_that_cannot_be_is_refused_with_those_that_can(text, key, value):
    with pytest.raises(DataError, match=rf"channel map: \[reader\] {key}: ") as caught:
        read_recording(text, channel_map={**MAP, "reader": {key: value}})
    assert "leave the line out" in str(caught.value.remedy)


def test_errors_of_a_map_name_the_map(tmp_path, text):
    path = tmp_path / "map.toml"
    path.write_text('[time]\ncolumn = "t"\nunit = "s"\n[position]\ncolumns = "p{1..2}"\nunit = "rad"\n')
    with pytest.raises(DataError, match=r"log\.csv: \[position\] columns of .*map\.toml: the log has no column 'p1'"):
        read_recording(text, channel_map=path)
    with pytest.raises(DataError, match=r"\[position\] columns of profile ur_rtde"):
        read_recording(text, channel_map="ur_rtde")
    with pytest.raises(DataError, match=r"\[position\] columns of the channel map"):
        read_recording(text, channel_map={**MAP, "position": {"columns": "p", "unit": "rad"}})
    with pytest.raises(DataError, match=r"^channel map: \[position\] sign: "):
        read_recording(text, channel_map={**MAP, "position": {"columns": "q1", "unit": "rad", "sign": 2}})


def test_inspect_prints_the_map_once(tmp_path):
    write_text(tmp_path / "log.csv", LOG)
    result = CliRunner().invoke(inspect, [str(tmp_path / "log.csv")])
    assert result.stdout.count("[position]\n") == 1
    assert "[position]\n" not in result.stderr
    assert "why:" in result.stderr
