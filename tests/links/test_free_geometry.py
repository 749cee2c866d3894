"""Geometry estimated beside the parameters: planted lengths, zeros and tilts are found and written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from campaigns import hypotheses as campaign
from dynid.errors import ArgumentError
from dynid.estimation.selection import ForwardSelection
from dynid.export.robot_files import write_robot_files
from dynid.links.common import term_selection
from dynid.links.common.free_geometry import free_geometry
from dynid.links.recipe import Recipe
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.term_names import add_terms

TILT_ONLY = ForwardSelection(folds=(8,), average=False, most=2)
OWN = {"length": "lengths", "zero": "zeros", "tilt": "tilt"}


@pytest.mark.parametrize(("kind", "seed"), [("length", 1), ("zero", 3), ("tilt", 4)])
def test_the_planted_amount_lies_within_its_error(kind, seed):
    case = campaign.make_case(kind, "rail", seed)
    freed = free_geometry(case.robot, [process(case.log)], [OWN[kind]])
    factor = 1000.0 if kind == "length" else np.rad2deg(1.0)
    for quantity in freed.quantities:
        planted = 0.0
        if kind == "tilt":
            continue
        if quantity.joint == case.joint:
            planted = case.amount / factor
        assert abs(quantity.value - planted) < 4.0 * quantity.error, quantity
    if kind == "tilt":
        found = np.sqrt(sum(quantity.value**2 for quantity in freed.quantities))
        assert found == pytest.approx(abs(case.amount) / factor, abs=4.0 * max(q.error for q in freed.quantities))
    else:
        assert np.isfinite(next(q.error for q in freed.quantities if q.joint == case.joint))


def test_the_identified_robot_and_its_urdf_have_the_found_length(tmp_path):
    case = campaign.make_case("length", "rail", 1)
    dynid.write_urdf(case.robot, tmp_path / "arm.urdf")
    robot = dynid.read_urdf(tmp_path / "arm.urdf")
    fit = dynid.identify(robot, process(case.log), Recipe(free=("lengths",), selection=None))
    (note,) = [f for f in fit.estimate.findings if f.code == "freed-geometry" and f.joint == case.joint]
    place = robot.joint_names.index(case.joint)
    before, after = (np.linalg.norm(arm.bodies[place].p_parent_joint) for arm in (robot, fit.identified))
    assert 1000.0 * (after - before) == pytest.approx(note.evidence["amount [mm]"], abs=1e-6)
    dynid.write_urdf(fit.identified, tmp_path / "found.urdf")
    written = dynid.read_urdf(tmp_path / "found.urdf")
    assert np.allclose(written.bodies[place].p_parent_joint, fit.identified.bodies[place].p_parent_joint, atol=1e-9)


def test_a_selected_tilt_turns_gravity_itself():
    case = campaign.make_case("tilt", "rail", 13)
    log = replace(case.log, time=case.log.time[::4], q=case.log.q[::4], effort=case.log.effort[::4])
    fit = dynid.identify(case.robot, process(log), Recipe(selection=TILT_ONLY))
    turned = np.arccos(fit.robot.gravity @ case.robot.gravity / np.linalg.norm(case.robot.gravity) ** 2)
    assert np.rad2deg(turned) == pytest.approx(abs(case.amount), abs=0.3)
    assert np.linalg.norm(fit.robot.gravity) == pytest.approx(np.linalg.norm(case.robot.gravity))


def test_what_no_torque_shows_is_held():
    case = campaign.make_case("nothing", "rail", 2)
    freed = free_geometry(case.robot, [process(case.log)], ["zeros"])
    held = {quantity.joint for quantity in freed.quantities if not np.isfinite(quantity.error)}
    assert "joint5" in held  # another zero of the last joint is another inertia of the last link
    assert "joint1" in held  # nothing depends on where along its rail the robot stands
    assert "untestable" in [finding.code for finding in freed.findings]


def _noisy(seed: int, effort: float) -> Experiment:
    """A short log of a level robot whose first axis is vertical, with much noise."""
    robot = add_terms(dynid.robots.ddarm())
    motion = sum_of_sines(robot.dof, seed=seed)
    noise = Noise(effort=effort)
    return process(simulate_experiment(robot, motion, rate_hz=100, duration_s=8, noise=noise, seed=seed))


@pytest.mark.parametrize(("seed", "effort"), [(0, 2.0), (1, 6.0)])  # one axis is not determined, both are not
def test_a_tilt_that_is_held_leaves_gravity_as_it_is(seed, effort):
    robot = dynid.robots.ddarm()
    freed = free_geometry(robot, [_noisy(seed, effort)], ["tilt"])
    assert [(quantity.value, quantity.error) for quantity in freed.quantities] == [(0.0, np.inf)] * 2
    assert np.array_equal(freed.robot.gravity, robot.gravity)
    (note,) = freed.findings
    assert "do not determine tilt of the base: there the geometry stays as the model states it" in note.message


@pytest.mark.parametrize("freedom", ["zeros", "angles"])
def test_the_robot_has_what_is_reported(freedom):
    robot = dynid.robots.ddarm()
    freed = free_geometry(robot, [_noisy(2, 2.0)], [freedom])
    for before, after in zip(robot.bodies, freed.robot.bodies, strict=True):
        mine = [quantity.value for quantity in freed.quantities if quantity.joint == before.joint.name]
        turned = after.R_parent_joint @ before.R_parent_joint.T
        angle = np.linalg.norm([turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]])
        assert np.arcsin(angle / 2.0) == pytest.approx(np.linalg.norm(mine), abs=1e-9)


def test_a_selected_tilt_that_the_logs_do_not_determine_is_neither_listed_nor_written(tmp_path, monkeypatch):
    every = term_selection.standard_candidates
    monkeypatch.setattr(
        term_selection,
        "standard_candidates",
        lambda *given, **named: tuple(group for group in every(*given, **named) if group.name == "base tilt"),
    )
    robot = dynid.robots.ddarm()
    easy = ForwardSelection(folds=(8,), gain=0.0, share=0.0, average=False)
    fit = dynid.identify(robot, _noisy(7, 2.0), Recipe(selection=easy))
    assert fit.terms == fit.selection.terms == ()
    assert [step.kept for step in fit.selection.steps] == [False]
    (note,) = [finding.message for finding in fit.estimate.findings if "tilt" in finding.message]
    assert "which do not determine it: there the base stays as the model states it" in note
    for file in write_robot_files(fit, tmp_path):
        assert not any("gravity" in lack for lack in file.lacks)
        if file.format.startswith("MJCF"):
            assert np.array_equal(dynid.read_mjcf(file.path).gravity, robot.gravity)


def test_what_the_logs_do_not_show_is_one_note_without_a_value():
    case = campaign.make_case("nothing", "rail", 2)
    freed = free_geometry(case.robot, [process(case.log)], ["tilt"])
    (note,) = [finding for finding in freed.findings if finding.code == "freed-geometry"]
    assert note.severity == "note"
    assert "nothing else than the model states for tilt of the base (within" in note.message
    assert "+-" not in note.message


def test_unknown_freedoms_are_refused():
    with pytest.raises(ArgumentError, match="lengths"):
        Recipe(free=("length",))
