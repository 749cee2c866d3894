"""The report: one file, nothing loaded from elsewhere, nothing injected, all joints and parameters in it."""

from __future__ import annotations

import base64
import json
import random
import re
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import DataError
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.registry import ESTIMATORS, estimator_class
from dynid.export.result_file import result_json
from dynid.identifiability.base import REFERENCES
from dynid.identification.identify import Identification, identify
from dynid.identification.recipe import Recipe
from dynid.identification.validation import Validation, validate
from dynid.report.html_blocks import Plot
from dynid.report.page import Page
from dynid.report.parameter_sections import base_marks, standard_marks
from dynid.report.provenance import PAPERS
from dynid.report.report import identification_page, write_report
from dynid.report.series import (
    MOST_POINTS,
    autocorrelate,
    bin_residuals,
    mean_over_speed,
    thin,
)
from dynid.robot.zoo import cylindrical
from dynid.terms.friction import Coulomb, Viscous
from estimators.planted import planted_run


@pytest.fixture(scope="module")
def result() -> tuple[Identification, Validation]:
    robot = cylindrical().with_terms(Viscous(0.5), Coulomb(0.3))
    hostile = replace(robot, name="<script>alert(1)</script>")
    runs = [planted_run(robot, noise=0.05, motion=k, seed=k) for k in (0, 1)]
    fit = identify(hostile, runs[0], Recipe.bare(), estimator=WLS())
    return fit, validate(fit, runs[1])


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_report_is_whole_and_alone(result: tuple[Identification, Validation], tmp_path: Path) -> None:
    fit, check = result
    path = write_report(fit, tmp_path / "report.html", check)
    text = path.read_text()
    reader = Reader()
    reader.feed(text)
    assert all(address.startswith("#") for address in reader.addresses)
    assert "default-src 'none'" in text
    assert "<script>alert" not in text
    assert reader.tags.count("canvas") == fit.robot.dof * 5 + 1
    for name in (*fit.estimate.names, *fit.robot.joint_names):
        assert name in text
    assert check.verdict in text.replace("&lt;", "<")
    assert fit.bounds.sentence in text


def test_the_page_comes_back_from_its_json(result: tuple[Identification, Validation]) -> None:
    fit, check = result
    page = identification_page(fit, check, fit.equations.experiments[0])
    again = Page.from_json(page.to_json())
    assert again.to_json() == page.to_json()
    assert again.to_html() == page.to_html()
    assert json.loads(page.to_json())["chapters"][1]["title"] == "Verdict"
    wrong = '{"schema": 3, "title": "x", "chapters": [{"title": "y", "blocks": [{"type": "Player"}]}]}'
    with pytest.raises(DataError, match=r"chapters\[0\]\.blocks\[0\]: not a report"):
        Page.from_json(wrong)
    with pytest.raises(DataError, match="version 2"):
        Page.from_json('{"schema": 2, "title": "x", "chapters": []}')


def test_mutated_pages_are_refused_or_shown(result: tuple[Identification, Validation]) -> None:
    text = identification_page(*result).to_json()
    rng = random.Random(0)
    for _ in range(150):
        content = json.loads(text)
        mutate(content, rng)
        with suppress(DataError):
            assert Page.from_json(json.dumps(content)).to_html()


def mutate(value: Any, rng: random.Random) -> None:
    """Change something somewhere in a tree of JSON."""
    if not isinstance(value, dict | list) or not value:
        return
    place = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    if rng.random() < 0.3:
        value[place] = rng.choice([None, 3, "x", [], {}, [["a"]]])
    else:
        mutate(value[place], rng)


def test_markdown_holds_the_same_tables_and_no_markup_of_others(result: tuple[Identification, Validation]) -> None:
    fit, check = result
    text = identification_page(fit, check).to_markdown()
    assert not re.search(r"(?<!\\)<", text)
    for name in (*fit.estimate.names, *fit.robot.joint_names):
        assert name in text.replace("\\_", "_")
    assert f"**{check.verdict[:6]}" in text


def test_marks_say_what_each_parameter_rests_on(result: tuple[Identification, Validation]) -> None:
    fit, _ = result
    marks = dict(zip(fit.base.layout.names, standard_marks(fit), strict=True))
    assert {name for name, mark in marks.items() if mark == "unidentifiable"} == set(fit.base.unidentifiable)
    assert {name for name, mark in marks.items() if mark.startswith("identified")} == set(fit.base.identifiable)
    assert all(mark.startswith(("identified", "combined")) for mark in base_marks(fit))
    named = replace(fit, estimate=replace(fit.estimate, prior_dominated=("FV1",)))
    both = (
        dict(zip(named.estimate.names, base_marks(named), strict=True))["FV1"],
        standard_marks(named),
    )
    assert both[0] == both[1][fit.base.layout.index("FV1")] == "prior-dominated", "one parameter, one mark"


def test_what_the_prior_says_stands_apart_on_screen_in_the_report_and_in_the_file(
    result: tuple[Identification, Validation],
) -> None:
    fit, check = result
    assert "Determined by the prior" not in fit.summary()
    named = replace(fit, estimate=replace(fit.estimate, prior_dominated=("FV1",)))
    screen, page = named.summary(), identification_page(named, check).to_markdown()
    title = "Determined by the prior more than by the data"
    for text in (screen, page):
        before, after = text.split(title, 1)
        assert text.index("Determined by the data") < text.index(title)
        assert "FV1 " in after
        assert "FV2 " in before
    assert "FV1 " not in screen.split(title)[0]
    rows = {entry["name"]: entry["source"] for entry in result_json(named)["base_parameters"]}
    assert {name for name, source in rows.items() if source == "prior"} == {"FV1"}
    assert rows["FV2"] == "data"


@pytest.mark.parametrize("count", [64, 1009, 2500])
def test_autocorrelation_is_the_sum_of_products(count: int) -> None:
    e = np.random.default_rng(count).normal(size=count).cumsum()
    lags, correlation = autocorrelate(e, 100.0)
    centred = e - e.mean()
    plain = [np.sum(centred[: count - lag] * centred[lag:]) for lag in np.rint(100.0 * lags).astype(int)]
    np.testing.assert_allclose(correlation, np.array(plain) / np.sum(centred**2), atol=1e-12)


def test_series_of_known_residuals() -> None:
    rng = np.random.default_rng(0)
    white = rng.normal(size=20_000)
    lags, correlation = autocorrelate(white, 200.0)
    assert lags[0] == 0.0
    assert correlation[0] == pytest.approx(1.0)
    assert np.abs(correlation[1:]).max() < 0.05
    speed = rng.uniform(-1, 1, size=white.size)
    x, y = mean_over_speed(3.0 * np.sign(speed), speed)
    clear = np.abs(x) > 0.1
    assert np.allclose(y[clear], 3.0 * np.sign(x[clear]))
    middles, counts = bin_residuals(white)
    assert middles[np.argmax(counts)] == pytest.approx(0.0, abs=0.3)
    assert counts.sum() == pytest.approx(0.996 * white.size, rel=1e-3)
    time, spiky, flat = thin(np.arange(1e5), np.where(np.arange(100_000) == 54_321, 7.0, 0.0), np.zeros(100_000))
    assert spiky.max() == 7.0
    assert time.size == flat.size < 6000


def test_without_held_out_data_the_result_is_not_validated(result: tuple[Identification, Validation]) -> None:
    assert "not validated: no held-out data was given" in identification_page(result[0]).to_html()


@pytest.mark.parametrize("start", [0.0, 12.5, 1.7e9, 1.7e18])
def test_curves_over_unix_stamps_keep_their_shape(start: float) -> None:
    time = start + 256.0 * np.arange(400)  # steps that float64 holds at any of these starts
    plot = Plot.of("", "time [s]", "", time, [("a", np.sin(np.arange(400)))])
    drawn = np.frombuffer(base64.b64decode(plot.x), dtype="<f4").astype(float)
    assert np.allclose(np.diff(drawn), 256.0, rtol=0.01)
    assert plot.x_label == ("time [s]" if start < 1e9 else f"time [s] after {start:.15g}")


def test_every_reference_has_its_paper() -> None:
    page = (Path(__file__).parents[2] / "docs" / "references.md").read_text()
    methods = {key for keys in REFERENCES.values() for key in keys}
    used = methods | {key for name in ESTIMATORS for key in estimator_class(name).references}
    assert used <= set(PAPERS)
    assert all(f"[{key}]" in page for key in PAPERS)


def test_an_identification_cites_the_papers_of_its_estimator(result: tuple[Identification, Validation]) -> None:
    fit, _ = result
    text = identification_page(fit).to_markdown()
    assert fit.estimate.references
    for key in ("Atkeson1986", *fit.base.references, *fit.estimate.references):
        assert f"**{key}**" in text


@pytest.mark.parametrize("samples", [1000, 5001, 6250, 50_001])
def test_thinned_curves_keep_the_extremes_of_every_part(samples):
    rng = np.random.default_rng(0)
    time, torque, other, residual = np.arange(float(samples)), *np.cumsum(rng.normal(size=(3, samples)), axis=1)
    torque[rng.random(samples) < 0.1] = np.nan
    residual = residual.round()  # with ties
    kept, *_ = thin(time, torque, other, residual)
    if samples <= MOST_POINTS:
        assert kept.size == samples
        return
    parts = np.array_split(np.arange(samples), MOST_POINTS // 4)
    expected = {
        int(part[pick(np.nan_to_num(channel[part]))])
        for part in parts
        for channel in (torque, residual)
        for pick in (np.argmin, np.argmax)
    }
    assert kept.astype(int).tolist() == sorted(expected)
