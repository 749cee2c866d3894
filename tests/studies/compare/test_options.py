"""Options of the comparison that cannot be are refused at once, and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.studies.compare.condition import conditions

WORDS = ["compare", "gautier_khalil_3r", "--runs", "1", "--set", "duration_s=3", "--methods", "ols"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "1e9"], "Lower --rate or duration_s"),
        (["--set", "duration_s=1e6"], "Lower --rate or duration_s"),
        (["--set", "seed=-1"], "seed is -1"),
        (["--runs", "0"], "--runs"),
        (["--jobs", "0"], "--jobs"),
        (["--noise", "-1e-3"], "position_std (--noise) is -0.001. Give a finite number from 0 on."),
        (["--set", "start=-1.5"], "start_error (start) is -1.5"),
        (["--gains", "-1"], "gain_error (--gains) is -1. Give a finite number above -1."),
        (["--gains", "nan"], "gains: "),
    ],
)
def test_options_that_cannot_be_are_named(options: list[str], message: str) -> None:
    result = CliRunner().invoke(main, [*WORDS, *options])
    assert result.exit_code == 2
    assert message in result.output


def test_a_log_too_short_asks_for_what_can_be_given() -> None:
    result = CliRunner().invoke(main, [*WORDS, "--set", "duration_s=0.3"])
    assert result.exit_code == 3
    assert "Raise duration_s or --rate." in result.output
    assert "cutoff_hz" not in result.output


def test_a_motion_that_cannot_be_followed_asks_for_a_smaller_one() -> None:
    result = CliRunner().invoke(main, [*WORDS, "--set", "amplitude=1e6"])
    assert result.exit_code == 5
    assert "Lower amplitude" in result.output


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "below"):
        result = CliRunner().invoke(main, [*WORDS, "--runs", "100000", "--out", str(out)])
        assert result.exit_code == 5
        assert "Choose another --out" in result.output


def test_what_is_asked_for_twice_is_done_once() -> None:
    assert len(conditions(position_std=(1e-4, 1e-4, 1e-3))) == 2
    result = CliRunner().invoke(main, [*WORDS, "--methods", "ols, ols"])
    assert result.exit_code == 0, result.output
    assert result.output.count(" ols ") == 1
