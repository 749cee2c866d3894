"""The verb identify with estimators that simulate the control loop: law, commanded motion, and what is assumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dynid.cli import main
from dynid.export.result_file import read_result
from support.closed_loops import scene
from support.header_styles import write_columns
from support.three_joints import MAP

CHOSEN = scene("gautier_khalil_3r", duration_s=12.0, friction_speed=None)


TOLD = ("--set", "law=rated.toml")


@pytest.fixture(scope="module", autouse=True)
def _bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The working directory: a log of the 3R arm under a PD law at 500 Hz, with its commanded positions, and laws."""
    run, rng, law = CHOSEN.truth, np.random.default_rng(1), CHOSEN.loop.law
    noisy = run.q + 1e-3 * rng.normal(size=run.q.shape), run.torque + 0.1 * rng.normal(size=run.q.shape)
    names = ["t", *(f"{kind}{j}" for kind in ("q", "tau", "wanted") for j in (1, 2, 3))]
    gains = f'kind = "pd"\nkp = {np.asarray(law.kp).tolist()}\nkd = {np.asarray(law.kd).tolist()}\n'  # type: ignore[attr-defined]
    texts = {"map": MAP, "full": MAP + '[reference]\ncolumns = "wanted{1..3}"\nunit = "rad"\n',
             "other": 'kind = "pd"\nkp = [1, 2]\nkd = [1, 2]\n'}  # fmt: skip
    texts |= {name: f"{gains}rate_hz = {rate}\n" for name, rate in {"rated": 500, "odd": 250, "absurd": 1e7}.items()}
    with chdir(tmp_path_factory.mktemp("loop")):
        write_columns(Path("run.csv"), names, [run.time, *noisy, CHOSEN.loop.reference.q[::5]])
        for name, text in texts.items():
            Path(f"{name}.toml").write_text(text)
        yield


def identify(*options: str, channels: str = "full.toml", log: str = "run.csv") -> Result:
    words = ["identify", "gautier_khalil_3r", log, "--map", channels, "--out", "res", "--force", "--no-check"]
    return CliRunner().invoke(main, [*words, *options])


@pytest.mark.parametrize("estimator", ["iv", "didim"])
def test_known_law_and_commanded_motion_give_the_truth(estimator: str) -> None:
    result = identify("--estimator", estimator, *TOLD, "--hold-out", "30%", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["validation"]["relative_error_percent"] < 3.0
    codes = {finding["code"] for finding in found["findings"]}
    assert codes.isdisjoint({"assumed-loop", "controller"})
    truth = dict(zip(CHOSEN.base.names, CHOSEN.values, strict=True))
    rows = [row for row in found["base_parameters"] if row["name"] in truth]
    assert len(rows) == len(truth)
    assert max(abs(row["value"] - truth[row["name"]]) / row["std"] for row in rows) < 5.0
    fit = read_result(Path("res")).identification()  # torques by the estimate itself, with and without its data
    assert "controller" not in fit.estimate.codes


def test_what_is_assumed_is_said() -> None:
    result = identify("--estimator", "iv", "--hold-out", "30%", channels="map.toml")
    assert result.exit_code == 0, result.output
    page = Path("res/report.md").read_text()
    for words in ("control law is unknown", "commanded motion is unknown", "control rate is unknown"):
        assert f": the {words}" in page
    assert "remaining noise biases the estimate as in least squares" in page
    assert "[assumed-loop]" in result.stderr


def test_a_law_without_what_it_was_to_follow_is_refused() -> None:
    result = identify("--estimator", "iv", *TOLD, channels="map.toml")
    assert result.exit_code == 2, result.output
    assert "a PD law makes its torques from commanded minus measured positions" in result.output
    assert "[reference] in the channel map" in result.output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--estimator", "iv", "--set", "law=other.toml"), "has 3 moving joints"),
        (("--estimator", "iv", "--set", "law=none.toml"), "none.toml"),
        (("--estimator", "iv", "--set", "law=odd.toml"), "no multiple of the log's 100 Hz"),
        (("--estimator", "didim", "--set", "law=absurd.toml"), "at most 1e5"),
    ],
)
def test_what_does_not_go_together_is_refused(options: tuple[str, ...], reason: str) -> None:
    result = identify(*options)
    assert result.exit_code in (2, 3), result.output
    assert reason in result.output


def test_a_hole_in_the_commanded_motion_is_not_splined_over() -> None:
    lines = Path("run.csv").read_text().splitlines()
    for k in range(400, 600):
        lines[k] = ",".join([*lines[k].split(",")[:-1], "nan"])
    Path("hole.csv").write_text("\n".join(lines))
    result = identify("--estimator", "didim", *TOLD, log="hole.csv")
    assert result.exit_code != 0
    assert "commanded positions are missing between 3.98 and 5.99 s" in result.output
