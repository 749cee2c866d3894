"""What is no loop, no law, no stream or no number is refused in our own words, with what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.processing.simulation import sum_of_sines
from support.closed_loops import scene

CHOSEN = scene("gautier_khalil_3r")
LAW = CHOSEN.loop.law
MOTION = sum_of_sines(3, amplitude=0.8, seed=0)


WITHOUT_MEANING = """
dynid.estimators.DIDIM(law="pd") -> the law of a loop is 'pd'
dynid.estimators.DIDIM(rate_hz=float("nan")) -> ^rate_hz is nan. Give a rate above zero
dynid.estimators.DIDIM(motions=3) -> ^motions is 3. Give a function of time for each log
dynid.estimators.DIDIM(law=LAW) -> a PD law makes its torques from commanded minus measured
dynid.estimators.DIDIM(iterations=1.5) -> iterations is 1.5
dynid.estimators.DIDIM(tolerance=float("nan")) -> tolerance is nan
dynid.estimators.InstrumentalVariables(iterations=1.5) -> iterations is 1.5
"""
"""Settings -> what the refusal says."""


@pytest.mark.parametrize("case", WITHOUT_MEANING.strip().splitlines())
def test_settings_without_meaning_are_refused(case: str) -> None:
    settings, reason = case.split(" -> ")
    with pytest.raises(dynid.errors.ArgumentError, match=reason):
        eval(settings)


@pytest.mark.parametrize(
    ("law", "error", "reason"),
    [
        (dynid.control_loop.PD([3e3, 0.0, 500.0], [120.0, 0.0, 20.0]), "ArgumentError", "all gains of joint2 are zero"),
        (dynid.control_loop.PD(np.asarray(LAW.kp), 1e6), "EstimationError", "its gains act on joints, not on motors"),  # type: ignore[attr-defined]
    ],
)
def test_laws_that_no_robot_follows_are_refused(
    law: dynid.control_loop.laws.ControlLaw, error: str, reason: str
) -> None:
    equations = CHOSEN.equations(CHOSEN.noisy(0))
    with pytest.raises(getattr(dynid.errors, error), match=reason):
        dynid.estimators.DIDIM(law=law, rate_hz=500.0, motions=(MOTION,)).solve(equations)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[law]\nkind = "pd"\nkp = 1\nkd = 1\n', r"stands under a heading, \[law\]. Leave the heading out"),
        ('kind = "pd"\nkp = [300.,60.]\nkd = 1\n', "a digit on both sides of every decimal point"),
        ("kp = 1\nkd = 1\n", "it has no kind. Give kind, one of pd"),
        (
            'kind = "pd"\nkp = 1\nkd = 1\nfeedforward = 1\n',
            "a law of kind 'pd' has no feedforward. Give kp, kd; other terms",
        ),
    ],
)
def test_files_that_hold_no_law_say_why(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "law.toml"
    path.write_text(text)
    with pytest.raises(dynid.errors.ArgumentError, match=reason):
        dynid.control_loop.read_law(path)
