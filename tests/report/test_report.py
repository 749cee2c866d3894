"""The report: one file, nothing loaded from elsewhere, nothing injected, all joints and parameters in it."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dynid.data.processing import process
from dynid.data.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.estimation.least_squares import WLS
from dynid.identification.links import Identification, identify
from dynid.identification.validation import Validation, validate
from dynid.report.chart import Chart, Line, grid
from dynid.report.report import report_html, write_report
from dynid.report.torques import torque_picture
from dynid.robot.joint_models import Coulomb, Viscous
from dynid.robot.zoo import cylindrical


@pytest.fixture(scope="module")
def result() -> tuple[Identification, Validation]:
    robot = cylindrical().with_joint_models(Viscous(0.5), Coulomb(0.3))
    hostile = replace(robot, name="<script>alert(1)</script>")
    runs = [
        process(
            simulate_experiment(
                robot, sum_of_sines(3, seed=k), rate_hz=200, duration_s=12, noise=Noise(effort=0.05), seed=k
            ),
            cutoff_hz=10,
        )
        for k in (0, 1)
    ]
    fit = identify(hostile, runs[0], estimator=WLS())
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
    assert reader.tags.count("canvas") == fit.robot.dof * 4 + 1
    for name in (*fit.estimate.names, *fit.robot.joint_names):
        assert name in text
    assert check.verdict in text.replace("&lt;", "<")


def test_without_held_out_data_nothing_is_proven(result: tuple[Identification, Validation]) -> None:
    assert "nothing is proven" in report_html(result[0]) or "not proven" in report_html(result[0])


def test_pictures_are_the_same_every_time(result: tuple[Identification, Validation]) -> None:
    fit, _ = result
    run = fit.problem.experiments[0]
    assert torque_picture(fit, run) == torque_picture(fit, run)
    assert torque_picture(fit, run).count("<polyline") == 3 * fit.robot.dof


def test_charts_keep_peaks_and_survive_odd_data() -> None:
    x = np.linspace(0, 1, 100_000)
    y = np.where(np.arange(x.size) == 54_321, 7.0, 0.0)
    line = Line.of("spike", x, y)
    assert line.thinned()[1].max() == 7.0
    assert line.thinned()[0].size < 2000
    odd = Chart("<b>", (Line.of("nan", [0.0, 1.0], [np.nan, np.inf]), Line.of("flat", [0.0, 1.0], [2.0, 2.0])))
    svg = grid([odd, odd, odd])
    assert "nan" not in svg.replace(">nan<", "")
    assert "<b>" not in svg
    assert grid([]).startswith("<svg")
