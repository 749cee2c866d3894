"""Writes the reports of the gallery: simulated robots with planted parameters, one report per kind of page.

Run: ``python tests/support/gallery.py FOLDER [--pictures]``; with ``--pictures`` also docs/images/gallery-*.png, which
needs Chromium.
"""

from __future__ import annotations

import argparse
import base64
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from dynid.errors import DataError
from dynid.identification.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.payload.load_study import LoadStudy
from dynid.payload.payload import identify_payload
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.report.load_sections import load_page
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo import ur10
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from dynid.workflows import Identify, run
from dynid.workflows.plan_run import DesignMotion, PlanRecipe

PICTURES = Path(__file__).parents[2] / "docs" / "images"
LOAD_KG = 6.0
"""Load of the last link in one of the logs [kg]."""
WIDTH, HEIGHT = 1100, 760
"""Size of a picture [px]."""


@cache
def arm() -> Robot:
    """The true robot: heavier than its model file says, with friction."""
    believed = ur10().with_terms(RotorInertia(0.3), Viscous(4.0), Coulomb(6.0), Offset(0.5))
    theta = believed.parameter_vector.copy()
    theta[: 10 * believed.dof] *= 1.15
    return believed.with_parameters(theta)


@cache
def log(seed: int, load_kg: float = 0.0) -> Recording:
    """A recorded motion."""
    robot = arm()
    if load_kg:
        inertia = Inertia.from_com(load_kg, (0.05, 0.0, 0.12), 0.02 * np.eye(3))
        robot = robot.with_body("load", parent=robot.bodies[-1].joint.child, inertia=inertia)
    path = sum_of_sines(robot.dof, seed=seed, amplitude=np.full(robot.dof, 0.8))
    return simulate_experiment(
        robot, path, rate_hz=200, duration_s=20, noise=Noise(position=1e-5, effort=1.0), seed=seed
    )


def write_gallery(folder: Path) -> list[str]:
    """Write all reports; returns the names of their folders."""
    recipe = Recipe(friction="plain")
    run(Identify(ur10(), log(0), recipe, [log(1)]), folder / "identified")
    run(Identify(ur10(), log(0), recipe, [log(2, LOAD_KG)]), folder / "failed")
    flipped = replace(log(0), effort=log(0).effort * [1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    with suppress(DataError):
        run(Identify(ur10(), flipped, recipe, [log(1)]), folder / "refused")
    run(DesignMotion(ur10(), PlanRecipe(time_limit_s=5.0)), folder / "plan")
    loaded = process(log(2, LOAD_KG))
    load = identify_payload(arm(), loaded=[loaded], unloaded=[process(log(0))], link=arm().bodies[-1].joint.child)
    study = LoadStudy(robot=arm(), load=load)
    (folder / "load").mkdir(parents=True)
    load_page(study, loaded).write(folder / "load" / "report.html")
    return ["identified", "failed", "refused", "plan", "load"]


def take_pictures(folder: Path, names: list[str]) -> None:
    """Photograph the top of every report."""
    from support.browser import Browser

    for name in names:
        with Browser(WIDTH, HEIGHT) as browser:
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            browser.open((folder / name / "report.html").resolve())
            browser.ask("new Promise((done) => setTimeout(done, 500))")
            shot = browser.call("Page.captureScreenshot", format="png")
        PICTURES.joinpath(f"gallery-{name}.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", action="store_true")
    given = parser.parse_args()
    written = write_gallery(given.folder)
    if given.pictures:
        take_pictures(given.folder, written)
