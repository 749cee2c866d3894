"""The load box: what controllers are told is in the flange's frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.payload.load import Load
from dynid.payload.load_study import LoadStudy
from dynid.report.html_blocks import block_html
from dynid.report.load_sections import flange_pose, load_chapter, load_page
from dynid.robot.inertia import Inertia
from dynid.robot.zoo import panda
from support.exact_runs import exact_run

PANDA = panda()
"""It has a flange, 107 mm in front of the last moving link's frame."""


def study() -> LoadStudy:
    inertia = Inertia.from_com(1.5, [0.02, 0.01, 0.187], np.diag([0.01, 0.012, 0.006]))
    load = Load.of(inertia, PANDA.bodies[-1].joint.child, stderr=1e-5)
    return LoadStudy(robot=PANDA, load=load, proposals=())


def test_dialogs_are_in_the_flanges_frame() -> None:
    text = "".join(block_html(block) for block in load_chapter(study(), "flange").blocks)
    assert "set_target_payload(1.5000, [0.02000, 0.01000, 0.08000]" in text
    assert "in the frame of &#x27;flange&#x27;." in text
    plain = "".join(block_html(block) for block in load_chapter(study()).blocks)
    assert "[0.02000, 0.01000, 0.18700]" in plain
    assert "--set flange=" in plain


def test_the_flange_must_move_with_the_load() -> None:
    with pytest.raises(ArgumentError, match="moves relative to"):
        flange_pose(PANDA, "flange", PANDA.bodies[2].joint.child)


def test_a_doubtful_load_is_not_to_be_typed() -> None:
    found = study()
    doubtful = replace(found, load=replace(found.load, covariance=np.diag(np.full(10, 1.0))))
    rows = np.zeros((10, PANDA.dof))
    text = load_page(doubtful, exact_run(np.arange(10.0), (rows, rows, rows))).to_markdown()
    assert "do not use these values" in text
    assert "setLoad" not in text
