"""How large the report of a 50 000-sample run is, and how soon a browser shows it: medians over several starts.

The times are the browser's own (Navigation Timing, Paint Timing): document parsed, first contentful paint, and the end
of the first frame in which every visible plot is drawn and answers keys.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from dynid.estimation.linear.least_squares import WLS
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.links.validation import validate
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.report.report import identification_page
from dynid.robot.zoo import panda
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.browser import CHROMIUM, Browser

STARTS = 7
TIMES = """new Promise((tell) => requestAnimationFrame(() => setTimeout(() => {
  document.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
  const [page] = performance.getEntriesByType("navigation"), paints = performance.getEntriesByType("paint");
  tell({ parsed: page.domContentLoadedEventEnd, painted: paints.length ? paints[paints.length - 1].startTime : null,
         answering: performance.now() });
})))"""


def main() -> None:
    """Make the report, open it several times, print the medians."""
    sheet = panda().with_terms(RotorInertia(), Viscous(), Coulomb(), Offset())
    theta = np.concatenate([1.1 * sheet.parameter_vector[:70], np.tile([0.1, 0.5, 0.6, 0.1], 7)])
    truth = sheet.with_parameters(theta)
    runs = [
        process(
            simulate_experiment(
                truth, sum_of_sines(7, seed=k), rate_hz=500, duration_s=s, noise=Noise(effort=0.1), seed=k
            )
        )
        for k, s in ((0, 20), (1, 104))
    ]
    fit = identify(sheet, runs[0], Recipe.bare(), estimator=WLS())
    text = identification_page(fit, validate(fit, runs[1]), runs[1]).to_html()
    print(f"{runs[1].samples} samples drawn, {len(text.encode()) / 1e6:.2f} MB")
    if not CHROMIUM:
        print("no Chromium here")
        return
    times = []
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        page = Path(folder) / "report.html"
        page.write_text(text)
        for _ in range(STARTS):
            browser.open(page)
            times.append(browser.ask(TIMES))
        assert browser.complaints() == []
    for name in ("parsed", "painted", "answering"):
        values = [entry[name] for entry in times if entry[name] is not None]
        print(f"{name}: median {np.median(values):.0f} ms, fastest {min(values):.0f}, slowest {max(values):.0f}")


if __name__ == "__main__":
    main()
