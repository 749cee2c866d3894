"""A push: a torque that acts on one joint once, for a short time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from campaigns.gate_evidence import believed, clean_log
from dynid.findings import Finding
from dynid.gate.quality import check_recording
from dynid.logs.recording import Recording


def _pushes(log: Recording, name: str) -> list[Finding]:
    return [finding for finding in check_recording(log, believed(name, "own")).findings if finding.code == "push"]


def _pushed(log: Recording, joint: int, start_s: float, seconds: float, torque: float) -> Recording:
    assert log.effort is not None
    effort = log.effort.copy()
    effort[(log.time >= start_s) & (log.time < start_s + seconds), joint] += torque
    return replace(log, effort=effort)


@pytest.mark.parametrize(
    ("name", "joint", "seconds", "torque"),
    [("puma560", 1, 0.4, 25.0), ("scara", 0, 0.2, -10.0), ("panda", 3, 0.8, 10.0), ("tx40", 2, 0.4, 10.0)],
)
def test_a_push_is_named_with_its_place_and_torque(name: str, joint: int, seconds: float, torque: float) -> None:
    log = clean_log(name, 5, friction=0.3)
    (found,) = _pushes(_pushed(log, joint, 4.0, seconds, torque), name)
    assert (found.severity, found.joint) == ("warning", log.joint_names[joint])
    assert abs(found.evidence["at [s]"] - 4.0) < 0.25
    assert abs(found.evidence["torque [N m]"] - torque) < 0.2 * abs(torque)


@pytest.mark.parametrize("name", ["puma560", "scara", "panda", "cylindrical", "ur10", "tx40"])
def test_friction_that_the_model_lacks_is_no_push(name: str) -> None:
    assert _pushes(clean_log(name, 6, friction=1.0), name) == []
