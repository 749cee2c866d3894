"""The verb identify with estimators that simulate the control loop: law, commanded motion, and what is assumed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dynid.cli import main
from dynid.export.result_file import read_result
from support.closed_loops import scene
from support.three_joints import MAP

CHOSEN = scene("gautier_khalil_3r", duration_s=12.0, friction_speed=None)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of the 3R arm under a PD law at 500 Hz, with its commanded positions, and the law."""
    folder = tmp_path_factory.mktemp("loop")
    run, rng, law = CHOSEN.truth, np.random.default_rng(1), CHOSEN.loop.law
    noisy = run.q + 1e-3 * rng.normal(size=run.q.shape), run.torque + 0.1 * rng.normal(size=run.q.shape)
    wanted = CHOSEN.loop.reference.q[::5]
    names = ["t", *(f"{kind}{j}" for kind in ("q", "tau", "wanted") for j in (1, 2, 3))]
    table = np.column_stack([run.time, *noisy, wanted])
    np.savetxt(folder / "run.csv", table, delimiter=",", header=",".join(names), comments="")
    (folder / "map.toml").write_text(MAP)
    (folder / "full.toml").write_text(MAP + '[reference]\ncolumns = "wanted{1..3}"\nunit = "rad"\n')
    gains = f"kp = {np.asarray(law.kp).tolist()}\nkd = {np.asarray(law.kd).tolist()}\n"  # type: ignore[attr-defined]
    (folder / "law.toml").write_text(f'kind = "pd"\n{gains}')
    (folder / "other.toml").write_text('kind = "pd"\nkp = [1, 2]\nkd = [1, 2]\n')
    return folder


def identify(folder: Path, *options: str, channels: str = "full.toml") -> Result:
    words = ["identify", "gautier_khalil_3r", folder / "run.csv", "--map", folder / channels, "--out", folder / "res"]
    return CliRunner().invoke(main, [*map(str, words), "--force", "--no-check", *options])


def told(bench: Path) -> tuple[str, ...]:
    (bench / "rated.toml").write_text((bench / "law.toml").read_text() + "\nrate_hz = 500\n")
    return ("--set", f"law={bench / 'rated.toml'}")


@pytest.mark.parametrize("estimator", ["iv", "didim"])
def test_known_law_and_commanded_motion_give_the_truth(bench: Path, estimator: str) -> None:
    result = identify(bench, "--estimator", estimator, *told(bench), "--hold-out", "30%", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["validation"]["relative_error_percent"] < 3.0
    codes = {finding["code"] for finding in found["findings"]}
    assert codes.isdisjoint({"assumed-loop", "controller"})
    truth = dict(zip(CHOSEN.base.names, CHOSEN.values, strict=True))
    rows = [row for row in found["base_parameters"] if row["name"] in truth]
    assert len(rows) == len(truth)
    assert max(abs(row["value"] - truth[row["name"]]) / row["std"] for row in rows) < 5.0
    fit = read_result(bench / "res").identification()  # torques by the estimate itself, with and without its data
    assert "controller" not in fit.estimate.codes


def test_what_is_assumed_is_said(bench: Path) -> None:
    result = identify(bench, "--estimator", "iv", "--hold-out", "30%", channels="map.toml")
    assert result.exit_code == 0, result.output
    page = (bench / "res" / "report.md").read_text()
    for words in ("control law is unknown", "commanded motion is unknown", "control rate is unknown"):
        assert f": the {words}" in page
    assert "remaining noise biases the estimate as in least squares" in page
    assert "[assumed-loop]" in result.stderr


def test_a_law_without_what_it_was_to_follow_is_refused(bench: Path) -> None:
    result = identify(bench, "--estimator", "iv", *told(bench), channels="map.toml")
    assert result.exit_code == 2, result.output
    assert "a PD law makes its torques from commanded minus measured positions" in result.output
    assert "[reference] in the channel map" in result.output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--estimator", "iv", "--set", "law=other.toml"), "has 3 moving joints"),
        (("--estimator", "iv", "--set", "law=none.toml"), "none.toml"),
        (("--estimator", "iv", "--set", "law=odd.toml"), "no multiple of the log's 100 Hz"),
    ],
)
def test_what_does_not_go_together_is_refused(bench: Path, options: tuple[str, ...], reason: str) -> None:
    (bench / "odd.toml").write_text((bench / "law.toml").read_text() + "\nrate_hz = 250\n")
    words = [word.replace("law=", f"law={bench}/") for word in options]
    result = identify(bench, *words)
    assert result.exit_code in (2, 3), result.output
    assert reason in result.output


def test_a_hole_in_the_commanded_motion_is_not_splined_over(bench: Path, tmp_path: Path) -> None:
    lines = (bench / "run.csv").read_text().splitlines()
    for k in range(400, 600):
        lines[k] = ",".join([*lines[k].split(",")[:-1], "nan"])
    (tmp_path / "run.csv").write_text("\n".join(lines))
    for name in ("full.toml", "law.toml"):
        (tmp_path / name).write_text((bench / name).read_text())
    result = identify(tmp_path, "--estimator", "didim", *told(tmp_path))
    assert result.exit_code != 0
    assert "commanded positions are missing between 3.98 and 5.99 s" in result.output


def test_an_absurd_control_rate_is_refused_at_once(bench: Path) -> None:
    (bench / "absurd.toml").write_text((bench / "law.toml").read_text() + "\nrate_hz = 1e7\n")
    result = identify(bench, "--estimator", "didim", "--set", f"law={bench / 'absurd.toml'}")
    assert result.exit_code != 0
    assert "at most 1e5" in result.output
