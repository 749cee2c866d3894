"""Uncertain gains of drives: torques of a joint that are all wrong by one unknown factor.

A gain that is wrong by the share e changes the torques of joint j to (1 + e) times themselves, and the weighted least
squares estimate by ``e d_j`` with

    d_j = (sum_k w_k X_k^T X_k)^-1  w_j X_j^T y_j

whatever the number of samples. Gains of different drives are independent of one another, so that each adds the rank-one
part ``std_j^2 d_j d_j^T`` to the covariance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Floats
from dynid.findings import Finding
from dynid.processing.experiment import Experiment

NOTEWORTHY_SHARE = 0.1
"""Share of the variance of a load's mass above which the uncertainty of the gains is mentioned (convention)."""


def common_gain_std(runs: Sequence[Experiment]) -> Floats | None:
    """(n,) relative standard deviation of the gains of all runs, the largest of each joint; None if none states it."""
    stated = [run.gain_std for run in runs if run.gain_std is not None]
    return np.asarray(np.max(stated, axis=0)) if stated else None


def gain_covariance(covariance: Floats, sides: Floats, std: Floats) -> Floats:
    """(k, k) covariance of unknowns that comes from uncertain gains.

    Args:
        covariance: (k, k) ``(sum_j w_j X_j^T X_j)^-1``, of the unknowns under white noise.
        sides: (k, n) ``w_j X_j^T y_j`` of each joint.
        std: (n,) relative standard deviations of the gains.
    """
    part = covariance @ sides * std
    return np.asarray(part @ part.T)


def check_gains(std: Floats, joint_names: Sequence[str], share_of_mass: float = 0.0) -> tuple[Finding, ...]:
    """What there is to say about the gains of drives.

    Args:
        std: (n,) relative standard deviations, as stated; zero for exact.
        joint_names: The joints.
        share_of_mass: Share of the variance of a load's mass that comes from the gains.
    """
    if share_of_mass > NOTEWORTHY_SHARE:
        message = f"{100 * share_of_mass:.0f} % of the variance of the mass comes from the gains of the drives"
        dominate = Finding(
            code="gains-dominate",
            severity="note",
            where="drives",
            message=message,
            remedy="Calibrate them with a weighed load: dynid drives.",
            evidence={"share of the variance": share_of_mass},
        )
        return (*check_gains(std, joint_names), dominate)
    exact = [name for name, value in zip(joint_names, std, strict=True) if not value]
    if exact:
        return (
            Finding(
                code="exact-gains",
                severity="note",
                where="drives",
                message="the result rests on gains of drives that count as exact"
                + ("" if len(exact) == len(std) else f" ({', '.join(exact)})")
                + ": an error of a gain is an error of the result, and no interval contains it",
                remedy='State how well the gains are known, gain = "13.3 +- 0.7", or calibrate them: dynid drives.',
            ),
        )
    low, high = 100.0 * float(std.min()), 100.0 * float(std.max())
    span = f"{low:.2g} %" if low == high else f"{low:.2g} to {high:.2g} %"
    return (
        Finding(
            code="uncertain-gains",
            severity="note",
            where="drives",
            message=f"the gains of the drives are known within {span} (one standard deviation); intervals contain it",
            remedy="A weighed load calibrates gains: dynid drives.",
            evidence={"largest relative std of a gain": float(std.max())},
        ),
    )
