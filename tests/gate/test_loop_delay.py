"""The delay of the torques under feedback and dry friction: no bias by reversals, and always printed."""

from __future__ import annotations

import pytest

from campaigns import loop_delays as campaign
from dynid.gate.model_delay import measured_delay
from dynid.gate.quality import check_recording
from dynid.processing.delay import Delay


@pytest.mark.parametrize("planted_ms", [0.0, 6.0])
def test_a_delay_in_a_pd_loop_with_friction_is_found_within_its_error(planted_ms):
    errors = []
    for case in (0, 1, 3, 6):
        robot, log, late = campaign.planted_log(case, 7, delay_s=1e-3 * planted_ms)
        found = campaign.estimated(robot, log)
        assert abs(found.seconds - late) < 0.0025
        errors.append((found.seconds - late) / found.stderr_s)
    assert sum(abs(error) > 2.0 for error in errors) <= 1


@pytest.mark.parametrize(("planted_ms", "code"), [(0.0, "measured-delay"), (20.0, "unsynchronised")])
def test_the_estimate_is_always_printed(planted_ms, code):
    robot, log, late = campaign.planted_log(0, 7, delay_s=1e-3 * planted_ms)
    (finding,) = (f for f in check_recording(log, robot).findings if f.code in ("measured-delay", "unsynchronised"))
    assert finding.code == code
    assert finding.evidence["delay [s]"] == pytest.approx(late, abs=0.003)
    assert (finding.severity == "note") == (planted_ms == 0.0)


@pytest.mark.parametrize(
    ("error_s", "words"), [(0.001, "shows no delay"), (0.3, "does not show whether"), (float("inf"), "is unknown")]
)
def test_a_delay_that_the_log_does_not_tell_is_not_called_zero(error_s, words):
    delay = Delay(seconds=0.0007, stderr_s=error_s, residual_before=0.1, residual_after=0.1, period_s=0.01)
    assert words in measured_delay(delay).message
