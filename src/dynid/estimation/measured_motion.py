"""The measured motion in the place of the commanded one, and beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.data.recording import Experiment
from dynid.errors import ArgumentError
from dynid.estimation.loop_simulator import dry_joints
from dynid.robot.model import Robot

__all__ = ["clear_of_reversals", "refuse_other_motion"]

MOVED = 0.25
"""By how many periods of its cutoff a low-pass may move a reversal."""
LEFT = 0.25
"""Share of a joint's samples that must be left; else it keeps them all."""
LOST = 0.8
"""Root mean square of commanded minus measured positions, over the spread of these, that no control loop has ..."""
NEAR = 0.1
"""... if it is more than this [rad or m]: a joint that holds still may sag."""


def clear_of_reversals(run: Experiment, robot: Robot) -> Experiment:
    """The experiment without torques of joints with dry friction near their reversals.

    A low-pass rounds reversals and moves them; a simulation that follows the rounded motion turns friction at another
    time than the robot did, and stands still where that stuck.
    """
    from scipy.ndimage import maximum_filter1d

    turned = np.zeros(run.q.shape, dtype=np.uint8)
    turned[1:] = np.diff(np.sign(run.dq), axis=0) != 0
    cutoff = None if run.derivation is None else run.derivation.smoothing.cutoff_hz
    reach = 0 if cutoff is None else int(np.ceil(MOVED / cutoff * run.rate_hz))
    near = maximum_filter1d(turned, 2 * reach + 1, axis=0).astype(bool)
    valid = run.valid & ~(near & dry_joints(robot))
    enough = valid.sum(axis=0) >= LEFT * run.valid.sum(axis=0)
    return replace(run, valid=np.where(enough, valid, run.valid))


def refuse_other_motion(run: Experiment, robot: Robot) -> None:
    """Refuse a commanded motion that cannot be that of the experiment.

    Raises:
        ArgumentError: So it is, of the joint that is named.
    """
    assert run.loop is not None
    place = np.round((run.time - run.loop.start_s) * run.loop.reference.rate_hz).astype(np.int64)
    apart = np.sqrt(np.mean((run.loop.reference.q[place] - run.q) ** 2, axis=0))
    shares = apart / np.maximum(LOST * run.q.std(axis=0), NEAR)
    worst = int(shares.argmax())
    if shares[worst] > 1.0:
        unit = "m" if robot.moving_joints[worst].kind == "prismatic" else "rad"
        raise ArgumentError(
            f"the commanded positions of '{robot.joint_names[worst]}' are {apart[worst]:.3g} {unit} from the measured "
            f"ones of '{run.source}' (root mean square), which move by {run.q[:, worst].std():.3g}",
            remedy="Check their column, unit, sign and zero, and that they are of this log.",
        )
