"""The test of suspects against its definitions: least squares solved anew without each block, column or window."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from dynid.array_types import Floats
from dynid.diagnosis import verdicts
from dynid.diagnosis.evidence import Evidence
from dynid.diagnosis.naming import _windows
from dynid.diagnosis.verdicts import Fit, Tried, compare, judge_suspects

BLOCKS, HARMLESS = 9, 3


def rows(planted: Floats | tuple[float, ...] = (0.0, 0.0, 0.0, 0.0), seed: int = 0) -> Evidence:
    """Random columns of two joints, the second one ten times as noisy; errors last as long as a block."""
    rng = np.random.default_rng(seed)
    joint, block = np.tile([0, 1], 20 * BLOCKS), np.repeat(np.arange(BLOCKS), 40)
    columns = rng.normal(size=(joint.size, HARMLESS + 4))
    noise = np.array([0.1, 1.0])[joint] * (rng.normal(size=joint.size) + rng.normal(size=BLOCKS)[block] * columns[:, 3])
    torque = columns @ [5.0, -2.0, 1.0, *planted] + noise
    return Evidence(columns, torque, joint, block, np.bincount(joint), HARMLESS, np.zeros(BLOCKS, dtype=int))


EVIDENCE = rows()
FIT = Fit.of(EVIDENCE)
SCALE = FIT.weights[EVIDENCE.joint]
X, Y = EVIDENCE.columns[:, :HARMLESS] * SCALE[:, None], EVIDENCE.torque * SCALE


def solve(columns: Floats, right: Floats = Y) -> Floats:
    return np.linalg.lstsq(columns, right, rcond=None)[0]


def squares(*columns: Floats) -> float:
    """What the harmless columns and others leave of the torque."""
    every = np.hstack([X, *(column * SCALE[:, None] for column in columns)])
    return float(np.sum((Y - every @ solve(every)) ** 2))


def test_the_harmless_fit_weights_each_joint_by_what_it_leaves() -> None:
    np.testing.assert_allclose(FIT.values, solve(X))
    np.testing.assert_allclose(FIT.residual, Y - X @ solve(X), atol=1e-12)
    np.testing.assert_allclose(np.bincount(EVIDENCE.joint, FIT.residual**2) / EVIDENCE.counts, 1.0, rtol=1e-3)
    more = FIT.with_harmless(EVIDENCE.suspects[:, :2])
    assert np.sum(more.residual**2) == pytest.approx(squares(EVIDENCE.suspects[:, :2]))
    total = np.bincount(EVIDENCE.joint, Y**2)
    for b, found in enumerate(FIT.left_out().T):
        here = EVIDENCE.block == b
        missed = (Y - X @ solve(X[~here], Y[~here])) ** 2 * here
        np.testing.assert_allclose(found, np.bincount(EVIDENCE.joint, missed) / total, rtol=1e-4)
    silent = replace(EVIDENCE, torque=EVIDENCE.torque * (EVIDENCE.joint == 0))
    assert Fit.of(silent).weights[1] == 0.0


@pytest.mark.parametrize("width", [1, 2])
def test_a_suspect_in_all_blocks_is_judged_by_its_jackknife(width: int) -> None:
    own = EVIDENCE.suspects[:, :width]
    every = np.hstack([X, own * SCALE[:, None]])
    value, each, better = solve(every)[HARMLESS:], [], 0.0
    for b in range(BLOCKS):
        here = EVIDENCE.block == b
        there, usual = solve(every[~here], Y[~here]), solve(X[~here], Y[~here])
        each.append(there[HARMLESS:])
        better += np.sum((Y - X @ usual)[here] ** 2) - np.sum((Y - every @ there)[here] ** 2)
    off = np.array(each) - value
    covariance = (BLOCKS - 1) / BLOCKS * off.T @ off
    statistic = value @ np.linalg.solve(covariance, value)
    (found,) = verdicts.test_columns(FIT, [own])
    np.testing.assert_allclose(found.value, value)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-3)
    assert found.gain == pytest.approx(squares() - squares(own))
    assert found.left_out == pytest.approx(better, rel=1e-3)
    if width == 1:  # Student's t
        t = abs(value[0]) / found.stderr[0]
        assert found.p == pytest.approx(2.0 * stats.t.sf(t, BLOCKS - 1), rel=1e-3)
        assert found.half_width[0] == pytest.approx(
            stats.t.ppf(0.975, BLOCKS - 1) * np.sqrt(covariance[0, 0]), rel=1e-3
        )
    else:  # Hotelling's T^2
        f = statistic * (BLOCKS - width) / (width * (BLOCKS - 1))
        assert found.p == pytest.approx(stats.f.sf(f, width, BLOCKS - width), rel=1e-3)


@pytest.mark.parametrize(("share", "is_judged"), [(0.015, False), (0.03, True)])
def test_a_column_that_harmless_ones_explain_is_not_judged(share: float, is_judged: bool) -> None:
    hidden = EVIDENCE.columns[:, [0]] + share * EVIDENCE.suspects[:, [0]]
    (found,) = verdicts.test_columns(FIT, [hidden])
    assert np.isfinite(found.stderr[0]) == is_judged
    assert (found.p < 1.0, found.gain > 0.0) == (is_judged, is_judged)
    assert verdicts.test_columns(FIT, []) == []
    (whole,) = verdicts.test_suspects(FIT, [Tried(hidden, np.ones((1, BLOCKS), dtype=bool))])
    assert np.isinf(whole.stderr[0])  # no part of the log is left to compare it with


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("width", [1, 2])
def test_a_window_is_judged_by_what_it_gains_elsewhere(length: int, width: int) -> None:
    groups = np.array([[start <= b < start + length for b in range(BLOCKS)] for start in range(BLOCKS - length + 1)])
    own = EVIDENCE.suspects[:, :width]

    def inside(blocks: Floats) -> Floats:
        return own * np.isin(EVIDENCE.block, blocks)[:, None]

    gains = [squares() - squares(inside(np.flatnonzero(group))) for group in groups]
    best = int(np.argmax(gains))
    held = np.arange(best, best + length)
    edge = [b for b in (best - 1, best + length) if 0 <= b < BLOCKS]
    rest = [b for b in range(BLOCKS) if b not in held and b not in edge]
    long = max(1, min(length, len(rest) // 6))
    taken = inside(held), inside(np.array(edge))
    usual = [squares(*taken) - squares(*taken, inside(np.array(rest[k : k + long])))
             for k in range(0, len(rest) - long + 1, long)]  # fmt: skip
    scale = max(np.mean(usual) / width, 1.0)
    few = min(width, 2.0 * np.mean(usual) ** 2 / np.var(usual))
    p = min(1.0, len(groups) * stats.f.sf(gains[best] / width / scale, few, few * len(usual)))
    (found,) = verdicts.test_suspects(FIT, [Tried(own, groups)])
    assert (found.group, found.freedom) == (best, int(few * len(usual)))
    assert found.gain == pytest.approx(gains[best])
    every = np.hstack([X, inside(held) * SCALE[:, None]])
    np.testing.assert_allclose(found.value, solve(every)[HARMLESS:])
    np.testing.assert_allclose(
        found.covariance / scale, np.linalg.inv(every.T @ every)[HARMLESS:, HARMLESS:], rtol=1e-6
    )
    if length == 1:
        assert found.left_out == pytest.approx(gains[best] - 2.0 * width * scale)
        assert found.p == pytest.approx(p)
    else:
        (within,) = verdicts.test_columns(FIT, [inside(held)])
        chance, _ = compare(FIT.with_harmless(inside(held)).left_out().T, FIT.left_out().T, len(groups))
        assert found.left_out == pytest.approx(within.left_out)
        assert found.p == pytest.approx(min(1.0, 2.0 * min(p, chance)))


def test_suspects_are_named_the_strongest_first_with_those_that_explain_as_much() -> None:
    evidence = rows((0.0, 8.0, 3.0, 0.0))
    own = [evidence.suspects[:, [k]] for k in range(4)]
    alike, unlike = (own[1] + share * own[3] for share in (0.3, 0.8))
    fit = Fit.of(evidence)
    found = list(judge_suspects(fit, [*map(Tried, (own[0], own[1], own[2], alike, unlike))]))
    assert [(one.suspect, one.rivals) for one in found] == [(1, (3,)), (2, ())]
    np.testing.assert_allclose([one.value[0] for one in found], [8.0, 3.0], rtol=0.05)
    every = Tried(np.hstack(own[:3]), general=True)
    assert next(judge_suspects(fit, [every, Tried(own[1]), Tried(own[2])])).suspect == 1
    assert next(judge_suspects(fit, [every, Tried(own[2])])).suspect == 0
    assert not list(judge_suspects(fit, [Tried(own[1])], is_worth=lambda suspect, verdict: False))
    assert not list(judge_suspects(fit, [Tried(own[1])], level=1e-30))


def test_effects_and_comparisons_are_those_of_their_formulas() -> None:
    own = EVIDENCE.suspects[:, :2] * (EVIDENCE.block < 4)[:, None]
    value, here = np.array([2.0, -1.0]), EVIDENCE.block < 4
    ratios = [np.sum((own @ value)[rows] ** 2) / np.sum(EVIDENCE.torque[rows] ** 2)
              for rows in (here & (EVIDENCE.joint == j) for j in (0, 1))]  # fmt: skip
    assert EVIDENCE.effect(own, value) == pytest.approx(np.sqrt(max(ratios)))
    rng = np.random.default_rng(1)
    rival, usual = rng.uniform(0.5, 1.5, (2, 8, 3))
    usual[2, 1] = np.nan
    ratio = np.nansum(np.log(rival) - np.log(usual), axis=1)
    t = ratio.mean() / (ratio.std(ddof=1) / np.sqrt(8))
    assert compare(rival, usual, 5) == pytest.approx((5 * stats.t.cdf(t, 7), np.exp(ratio.mean() / 2.0)))


def test_windows_are_all_sequences_of_blocks_of_one_run_that_leave_three() -> None:
    runs = [0] * 10 + [1]
    wanted = {(i, j) for i in range(11) for j in range(i + 1, 12) if j - i <= 8 and (j <= 10 or i >= 10)}
    edges = [np.flatnonzero(np.diff(window.astype(int), prepend=0, append=0)) for window in _windows(runs)]
    assert {tuple(pair) for each in edges for pair in pairwise(each.tolist())} == wanted
    assert len(edges) == len(wanted)
