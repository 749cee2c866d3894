"""The page of an identification that failed names the cause: ten planted ones, found by their codes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import DataError
from dynid.findings import Finding
from dynid.kernels import gravity_torque
from dynid.links.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.report.html_blocks import Notices
from dynid.report.page import Page
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo import gautier_khalil_3r
from dynid.runs import Identify, run
from dynid.runs.run_folder import read_run
from dynid.terms.friction import Coulomb, Viscous

RATE_HZ, DURATION_S = 100.0, 10.0
PLAIN = Recipe(friction="plain", estimator="wls")
"""Usual terms and weighted least squares: quick."""


@cache
def arm() -> Robot:
    return gautier_khalil_3r().with_terms(Viscous(4.0), Coulomb(20.0))


def with_load(robot: Robot, mass: float) -> Robot:
    """The robot with a point-like load 0.2 m out on its last link."""
    last = robot.bodies[-1].joint.child
    added = Inertia.from_com(mass, (0.2, 0.0, 0.1), 0.01 * mass * np.eye(3))
    links = [replace(link, inertia=link.inertia + added) if link.name == last else link for link in robot.links]
    return replace(robot, links=tuple(links))


@cache
def log(seed: int, load: float = 0.0) -> Recording:
    return simulate_experiment(
        with_load(arm(), load) if load else arm(),
        sum_of_sines(3, seed=seed, amplitude=np.array([0.8, 0.7, 0.9])),
        rate_hz=RATE_HZ,
        duration_s=DURATION_S,
        noise=Noise(effort=0.2),
        seed=seed,
    )


def changed(effort: Callable[[np.ndarray], np.ndarray], seed: int) -> Recording:
    return replace(log(seed), effort=effort(np.array(log(seed).effort)))


def late(effort: np.ndarray, samples: int = 5) -> np.ndarray:
    return np.concatenate([np.repeat(effort[:1], samples, axis=0), effort[:-samples]])


def compensated(seed: int) -> Recording:
    return replace(log(seed), effort=log(seed).effort - gravity_torque(arm(), log(seed).q))


@dataclass(frozen=True)
class Cause:
    """A planted fault: identification log, held-out log, and the codes that name it."""

    train: Callable[[], Recording]
    prove: Callable[[], Recording]
    codes: tuple[str, ...]
    recipe: Recipe = PLAIN


CAUSES = {
    "torque of joint 2 has the wrong sign": Cause(
        lambda: changed(lambda e: e * [1.0, -1.0, 1.0], 0), lambda: log(1), ("flipped",)
    ),
    "torques of joints 1 and 2 are exchanged": Cause(
        lambda: changed(lambda e: e[:, [1, 0, 2]], 0), lambda: log(1), ("swapped",)
    ),
    "positions are in degrees": Cause(
        lambda: replace(log(0), q=np.rad2deg(log(0).q), dq=None), lambda: log(1), ("unit",)
    ),
    "torques lack gravity": Cause(lambda: compensated(0), lambda: log(1), ("gravity-compensated",)),
    "torques are 50 ms late": Cause(lambda: changed(late, 0), lambda: log(1), ("unsynchronised",)),
    "held-out torques are 50 ms late": Cause(lambda: log(0), lambda: changed(late, 1), ("unsynchronised",)),
    "the model has no friction": Cause(lambda: log(0), lambda: log(1), ("missing-friction",), replace(PLAIN, terms=())),
    "the held-out run has a load": Cause(lambda: log(0), lambda: log(1, 15.0), ("other-load",)),
    "a drive has another gain in the held-out run": Cause(
        lambda: log(0), lambda: changed(lambda e: e * [1.0, 1.6, 1.0], 1), ("drive-gain",)
    ),
    "a torque sensor has an offset in the held-out run": Cause(
        lambda: log(0), lambda: changed(lambda e: np.add(e, [0.0, 80.0, 0.0]), 1), ("torque-offset",)
    ),
}


def named_codes(cause: Cause, folder: Path) -> set[str]:
    """Codes of the errors and warnings at the top of the page."""
    believed = gautier_khalil_3r()
    recipe = replace(cause.recipe, limit_percent=5.0)
    with suppress(DataError):  # a refused log has a page, too
        run(Identify(believed, cause.train(), recipe, [cause.prove()]), folder)
    page = Page.from_json((folder / "report.json").read_text())
    verdict = next(chapter for chapter in page.chapters if chapter.title == "Verdict")
    notices = [block for block in verdict.blocks if isinstance(block, Notices)]
    return {code for block in notices for severity, code, *_ in block.items if severity != "note"}


def test_a_sound_run_gets_none_of_these_causes(tmp_path: Path) -> None:
    planted = {code for cause in CAUSES.values() for code in cause.codes}
    assert not planted & named_codes(Cause(lambda: log(0), lambda: log(1), ()), tmp_path / "run")


def test_an_encoder_that_the_gate_accuses_stands_in_every_file_for_people(tmp_path: Path) -> None:
    moved = replace(log(0), q=np.add(log(0).q, [0.0, -0.1, 0.0]))
    told: list[Finding] = []
    run(Identify(gautier_khalil_3r(), moved, PLAIN, [log(1)]), tmp_path / "run", notice=told.append)
    (found,) = (finding for finding in told if finding.code == "offset")
    for file in ("summary.txt", "report.md", "report.html"):
        assert found.message in (tmp_path / "run" / file).read_text(), file
    assert found.message in [entry["message"] for entry in read_run(tmp_path / "run")["findings"]]


@pytest.mark.parametrize("name", CAUSES)
def test_the_page_of_a_failed_identification_names_the_planted_cause(name: str, tmp_path: Path) -> None:
    assert set(CAUSES[name].codes) & named_codes(CAUSES[name], tmp_path / "run")
