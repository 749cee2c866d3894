"""The report in a real browser: no errors, everything drawn, nothing wider than a phone, reachable by keyboard."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.estimators.linear.least_squares import WLS
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.identification.validation import validate
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.report.report import identification_page
from dynid.robot.zoo import cylindrical
from dynid.terms.friction import Coulomb, Viscous
from support.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")
LOOK = """new Promise((tell) => {
  window.dispatchEvent(new Event("beforeprint"));
  const canvases = [...document.querySelectorAll("canvas")];
  const ink = (c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v);
  canvases[0].focus();
  const before = canvases[0].toDataURL();
  canvases[0].dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
  const boxes = [...document.querySelectorAll("#s0 svg.drawing")].map((d) => d.getBBox());
  const drawings = boxes.filter((b) => b.width > 100 && b.height > 100).length;
  tell({ drawings, canvases: canvases.length, inked: canvases.filter(ink).length,
         zoomed: canvases[0].toDataURL() !== before,
         focused: document.activeElement === canvases[0], wide: document.documentElement.scrollWidth,
         room: window.innerWidth, paper: getComputedStyle(document.body).backgroundColor });
})"""


ACT = """new Promise((tell) => {
  window.dispatchEvent(new Event("beforeprint"));
  const figures = [...document.querySelectorAll("figure.lines")];
  const [first, second] = figures.map((figure) => figure.querySelector("canvas"));
  const at = first.getBoundingClientRect();
  const mouse = (kind, x) => new PointerEvent(kind, { clientX: at.left + x, clientY: at.top + 90 });
  first.dispatchEvent(mouse("pointermove", 300));
  const tip = figures[0].querySelector(".tip").textContent;
  first.dispatchEvent(mouse("pointerleave", 300));
  const before = second.toDataURL();
  first.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
  const linked = second.toDataURL() !== before;
  const shown = first.toDataURL(), button = figures[0].querySelector(".legend button");
  button.click();
  const hidden = first.toDataURL() !== shown && button.getAttribute("aria-pressed") === "false";
  const table = document.querySelector("#s1 table"), head = table.tHead.rows[0].cells[1];
  const column = () => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[1].textContent));
  head.click(); const up = column(); head.click(); const down = column();
  const parts = [...document.querySelectorAll("p,li,h2,h3,pre,.card")];
  const cut = parts.filter((part) => part.scrollWidth > part.clientWidth + 1).length;
  tell({ tip, linked, hidden, up, down, cut });
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    robot = cylindrical().with_terms(Viscous(0.5), Coulomb(0.3))
    runs = [
        process(
            simulate_experiment(robot, sum_of_sines(3, seed=k), rate_hz=200, duration_s=8, noise=Noise(effort=0.05))
        )
        for k in (0, 1)
    ]
    runs = [
        replace(
            run,
            source=f"/data/{'a_folder_with_a_long_name/' * 4}run.csv",
            sha256="0123abcd" * 8,
            time=run.time + 1.7e9,  # Unix stamps
        )
        for run in runs
    ]
    fit = identify(
        robot.with_parameters(1.1 * np.asarray(robot.parameter_vector)), runs[0], Recipe.bare(), estimator=WLS()
    )
    text = identification_page(fit, validate(fit, runs[1]), runs[1]).to_html()
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_the_report_in_a_browser(page: Path, width: int, dark: bool) -> None:
    with Browser(width, dark=dark) as browser:
        browser.open(page)
        seen = browser.ask(LOOK)
        complaints = browser.complaints()
    assert complaints == []
    assert seen["canvases"] == seen["inked"] == 3 * 5 + 1
    assert seen["drawings"] == 2  # errors and widest poses, above the torques
    assert seen["focused"]
    assert seen["zoomed"]
    assert seen["room"] == width
    assert seen["wide"] <= width
    red, *_ = (int(part) for part in re.findall(r"\d+", seen["paper"]))
    assert (red < 60) == dark


def test_hover_legend_linked_zoom_and_sorting(page: Path) -> None:
    with Browser(1400) as browser:
        browser.open(page)
        seen = browser.ask(ACT)
    lines = seen["tip"].split("\n")
    assert lines[0].startswith("time [s]")
    assert [line.split(":")[0] for line in lines[1:]] == ["measured", "identified", "prior model", "residual"]
    measured, identified, _, residual = (float(line.split(":")[1]) for line in lines[1:])
    assert measured - identified == pytest.approx(residual, abs=2e-3 * abs(measured))
    assert seen["linked"]
    assert seen["hidden"]
    assert seen["up"] == sorted(seen["up"])
    assert seen["down"] == sorted(seen["up"], reverse=True)
    assert seen["cut"] == 0


def test_a_broken_script_would_be_noticed(page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text().replace("const kinds =", "missing(); const kinds ="))
    with Browser() as browser:
        browser.open(broken)
        assert browser.complaints()
