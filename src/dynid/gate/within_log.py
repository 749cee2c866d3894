"""Faults that logs show in themselves: pushes, loads that come and go, and the causes of `dynid.gate.causes`.

Each log is judged by itself (`check_within`), and the logs of one identification together (`check_together`). These
share the parameters of the robot, so that those of the others tell what one log leaves open: a drift or a load within a
log stands out that its own parameters would absorb. Causes that are properties of the robot have one value in all logs.
Each log keeps offsets and a delay of its own: they differ from day to day on a faultless robot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.findings import Finding
from dynid.gate.causes import LIKELY, RIVAL, SURE, Cause, best_cause, farthest, find_causes, name_causes, untestable
from dynid.gate.measured_samples import measured_samples, move_back
from dynid.gate.model_checks import check_changes
from dynid.gate.profiled_fit import Amounts, ProfiledFit, logs_of
from dynid.gate.quick_fit import Samples, body_columns, solve_singular
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

FEWEST_ROWS = 300
"""Smallest number of samples for these checks (convention)."""
ROWS = 1800
"""Largest number of samples, each a local fit to its neighbours, that causes are judged by (derivation: a cubic over m
samples has 3 (3 m^2 - 7) / (4 m (m^2 - 4)) of their variance; with m = 2 k + 1 at every k-th sample, at least 8/9 of
what all samples tell about slow causes is left)."""
LOAD_BLOCKS = 20
"""Number of parts of a log in each of which a load is held or not (convention)."""
LOADED = 0.9
"""Ratio of the residuals, with a load that is held in some parts of the log and without it, below which loads may have
changed; set with tests/campaigns/faults_within.py, seed 0. Experiment (seeds 97000 to 99023): loads of 1 to 4 kg reach
at most 0.88 in simulated and real logs, clean logs with friction of other shapes at least 0.91."""
LUCK = 30.0
"""Gain that the search for the parts with a load has in noise, over the square of an independent sample (experiment:
160 draws of independent noise on smooth columns gain 19 on average, 12 to 29 in nine of ten, at most 35)."""
FREE_PER_COLUMN = 2.0
"""Smallest number of independent values that a fit leaves, over that of its columns, by which loads are judged
(convention: the spectrum of a residual tells their number roughly once a fit has taken more than a third of them)."""
SURELY_LOADED = 0.8
"""The same ratio below which this is a warning (experiment: faults_within.py, seeds 50 to 61)."""
ROWS_TOGETHER = 1200
"""Number of samples of several logs that are judged together (convention: two thirds of what one log is judged by, so
that this takes less time than the check of one) ..."""
FEWEST_TOGETHER = 300
"""... but at least this number of each log; a log that has less than half of it is left out (convention: whole steps
between samples may halve their number)."""
MOST_TOGETHER = 8
"""Largest number of logs that are judged together; more are judged in groups (convention: each log has its own offsets,
so that memory and time would grow with the square of the number)."""
UNSETTLED = 0.1
"""Largest share of a log that is not judged at each end because a filter of a high cutoff settles late (convention)."""
PUSH_LENGTHS_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Lengths of stretches in which a push is looked for [s] (convention: each twice the one before, so that one of them
shares two thirds with any push)."""
PUSH_ABOVE = 20.0
"""Ratio of the gain of a push to that of any other stretch of the joint from which on it is one. Experiment: at most
7.2 on real logs (kuka_kr300; tx40 6.1, the others 3.6) and 5.1 on 24 simulated ones with friction that no model of the
gate holds; 22 of 24 pushes of 5 to 25 N m that were planted in these reach 79 or more, one 18, and one is hidden."""
PUSH_GAIN = 300.0
"""Smallest gain of a push (same experiment, the two joints of each real log with the largest ratios: at most 318, at a
ratio of 1.8, and 198 above a ratio of 4; planted pushes reach 449 or more)."""
PUSH_SHARE = 0.01
"""Smallest push as a share of the joint's rms torque (convention: filters leave less than that at the ends of a log,
where a simulated log without noise shows it as the only residual)."""
SHORTEST_PUSH_S = 0.05
"""Shortest push [s] (convention: half the shortest stretch; those that the end of a log cuts off are shorter, and there
filters have not settled)."""
PUSH_SEEN = 0.2
"""Share of the equations of a stretch that the fit must leave free for it to be judged ..."""
PUSH_ROWS = 3
"""... and smallest number of these equations (conventions)."""
RESOLVED = 1e-6
"""Relative increase of a gain above which it is no rounding (convention)."""
OTHER_GEOMETRY = 0.93
"""Ratio of the residuals, with all axes and lengths free and with those of the model, below which another geometry
explains a log better. Experiment (tests/campaigns/other_robots.py and the real logs): with the right robot at least
0.98 on real logs, 0.96 on simulated ones with the friction of gate_evidence.py, 0.934 with twice that friction; with
another robot 0.71 to 0.93 where the motion shows it, 0.79 to 0.84 on ur10_unisa ..."""
SURELY_OTHER = 0.88
"""... and below which the log is refused (convention: twice as far from one as with any right robot) ..."""
OTHER_PLACEBOS = 6.0
"""... and how much more than at wrong times axes and lengths explain, twice as much for a refusal (same experiment,
seed 51000: with another robot at least 6.3, 17 on ur10_unisa; with the right one and noise of a correlation of 0.98
from sample to sample, where the other limits are reached, 1.7 to 5.3) ..."""
OTHER_GAIN = 300.0
"""... and what the axis or length that explains most must gain by itself (same experiment: at most 290 with the right
robot)."""


class MeasuredLog(NamedTuple):
    """A log by its torques as measured: samples, their free fit, and what each cause explains of the rest."""

    samples: Samples
    fit: ProfiledFit
    causes: list[Cause]
    amounts: Amounts

    @classmethod
    def of(cls, robot: Robot, experiment: Experiment) -> MeasuredLog | None:
        """None where there are too few samples.

        Args:
            robot: The robot.
            experiment: The log with unfiltered torques, moved back where they are late.
        """
        samples = measured_samples(robot, _settled(experiment), ROWS)
        if samples is None:
            return None
        fit = ProfiledFit.of(robot, samples)
        return cls(samples, fit, *find_causes(robot, samples, fit))


def check_within(
    robot: Robot, samples: Samples, measured: MeasuredLog | None, *, least: float = LIKELY
) -> Iterator[Finding]:
    """Report pushes, else loads that change, else the cause that explains most of what is left and what stays hidden.

    Args:
        robot: The robot.
        samples: Samples with low-passed torques.
        measured: The same log by its torques as measured; None judges changing loads alone.
        least: Standard errors from which on a cause is named.
    """
    if samples.q.shape[0] < FEWEST_ROWS:
        return
    pushes = [] if measured is None else list(_named_pushes(robot, measured))
    if pushes:  # what else the log shows may well come from them
        yield from pushes
        return
    fit = ProfiledFit.of(robot, samples)
    loads = list(_changing_loads(robot, samples, fit))
    if loads and not _have_another_cause(robot, samples, fit):
        yield from loads
        if loads[0].severity == "note" and measured is not None:
            yield from untestable(robot, measured.causes, measured.amounts)
        return
    if measured is not None:
        yield from name_causes(robot, measured.samples, measured.causes, measured.amounts, least, fit=measured.fit)
        yield from untestable(robot, measured.causes, measured.amounts)


def _settled(run: Experiment) -> Experiment:
    """The log without its ends, where its cutoff is so high that the filter has not settled when others have."""
    if run.derivation is None:
        return run
    smoothing = run.derivation.smoothing
    wanted = int(np.ceil((smoothing.sampled_settling_s - smoothing.settling_s) * run.rate_hz))
    trim = min(wanted, int(UNSETTLED * run.samples))
    return run.rows(np.arange(trim, run.samples - trim)) if trim else run


def check_geometry(robot: Robot, measured: MeasuredLog) -> Iterator[Finding]:
    """Report that axes and lengths far from the model's explain much of what the free fit leaves.

    A single cause of another kind, such as an encoder's zero, a spring or a wrong gain, counts first where it explains
    most; one wrong length or angle of a usual size is a cause of its own (`name_causes`); and a load that changes may
    look like another geometry, too.
    """
    samples, fit, causes, amounts = measured
    placed = [cause for cause in causes if cause.kind in ("angle", "length")]
    if not placed or len(samples.q) < FEWEST_ROWS:
        return
    best, _ = best_cause(samples, causes, amounts)
    if best is not None and causes[best] not in placed:
        fit = fit.with_column(causes[best].column)
    columns = np.stack([cause.column for cause in placed], axis=1)
    found = fit.judge(columns)
    first = int(found.gain.argmax())
    deviations = float(abs(np.nan_to_num(found.value[first])) / found.error[first])
    far = abs(found.value[first]) > farthest(robot, placed[first])
    if not (far and deviations > LIKELY and found.gain[first] > OTHER_GAIN):
        return
    ratio = _ratio_beyond_luck(fit, columns)
    if ratio >= OTHER_GEOMETRY or ratio >= _ratio_of_loads(robot, samples, fit):
        return
    more = _over_placebos(fit, columns)
    sure = ratio < SURELY_OTHER and more > 2.0 * OTHER_PLACEBOS and samples.log is None
    if more > OTHER_PLACEBOS:
        yield Finding(
            code="other-robot",
            severity="error" if sure else "warning",
            where="model",
            message=f"the motion and the torques do not fit the geometry of {robot.name}: they are as if "
            f"{_far_place(robot, placed[first])}, among others",
            evidence={"residual ratio": ratio, "standard errors": deviations, "explained, over wrong times": more},
            remedy="Is this the right robot file? Else compare its axes and lengths with the drawing of the robot.",
        )


def _over_placebos(fit: ProfiledFit, columns: Floats) -> float:
    """What columns explain over what they do at wrong times, beside themselves."""
    beside = fit.with_columns(columns)
    usual = float(np.mean([beside.explained_by(moved) for moved in beside.placebos(columns)]))
    return fit.explained_by(columns) / max(usual, 1e-300)


def _ratio_of_loads(robot: Robot, samples: Samples, fit: ProfiledFit) -> float:
    """Ratio of the residuals with a load that changes, within a log or between logs, and without; one without any."""
    if samples.log is None:
        found = next(_changing_loads(robot, samples, fit), None)
    else:
        _, found = _other_load(robot, samples, fit) or (None, None)
    return 1.0 if found is None else float(found.evidence["residual ratio"])


def _far_place(robot: Robot, cause: Cause) -> str:
    """A clause on an axis or a length; such large amounts are not those of a linear fit."""
    name, least = robot.joint_names[cause.joint], farthest(robot, cause)
    if cause.kind == "angle":
        return f"the axis of {name} pointed elsewhere by more than {np.rad2deg(least):.0f} deg"
    return f"the distance from the joint before to {name} were another one by more than {1000.0 * least:.0f} mm"


class _Stretches(NamedTuple):
    """Stretches of a log for one joint in use; sums are those over the equations of a stretch that count."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    number: Floats
    """Number of these equations."""
    free: Floats
    """Squared length that a constant torque in them has outside of what the fit spans."""
    residual: Floats
    """Sum of the residuals."""

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether a stretch can be judged."""
        return (self.number >= PUSH_ROWS) & (self.free > PUSH_SEEN * self.number)

    @property
    def torque(self) -> Floats:
        """Weighted constant torque that explains most."""
        return np.where(self.seen, self.residual / np.where(self.seen, self.free, 1.0), 0.0)

    @property
    def gain(self) -> Floats:
        """What it explains."""
        return self.torque**2 * np.where(self.seen, self.free, 0.0)

    def without(self, column: Floats, along: float) -> _Stretches:
        """The stretches of a fit with one more orthonormal column.

        Args:
            column: (M,) the column in the equations of the joint that count.
            along: Its product with the residual of all joints.
        """
        sums = _sums(column, self.start, self.stop)
        return self._replace(free=self.free - sums**2, residual=self.residual - along * sums)


def _named_pushes(robot: Robot, measured: MeasuredLog) -> Iterator[Finding]:
    """Pushes that no cause of the whole log explains: an error of the model looks like one where it shows once."""
    samples, fit, causes, amounts = measured
    pushes = list(_pushes(robot, samples, fit))
    if not pushes:
        return
    best, _ = best_cause(samples, causes, amounts)
    yield from pushes if best is None else _pushes(robot, samples, fit.with_column(causes[best].column))


def _pushes(robot: Robot, samples: Samples, fit: ProfiledFit) -> Iterator[Finding]:
    """Report a constant torque of a joint in one short stretch that explains far more than one in any other stretch.

    Errors of the model leave residuals that look like pushes, too, but in many places of a log.
    """
    places = np.flatnonzero(fit.scale > 0.0).tolist()
    if samples.time is None or not places:
        return
    freedom = max(float(fit.counted.sum()) - fit.basis.shape[1], 1.0)
    squares, rows = float(fit.residual @ fit.residual), np.arange(len(samples.time))
    tables = [_stretches(samples.time, fit, place) for place in places]
    bests = [int(table.gain.argmax()) for table in tables]
    held = [(rows >= table.start[best]) & (rows < table.stop[best]) for table, best in zip(tables, bests, strict=True)]
    columns = [fit.at_joint(place, each.astype(float)) for place, each in zip(places, held, strict=True)]
    free = fit.left(np.stack(columns, axis=1)).T
    pushes = free / np.maximum(np.linalg.norm(free, axis=1, keepdims=True), 1e-300)
    for place, found, best, push in zip(places, tables, bests, pushes, strict=True):
        start, stop, along = int(found.start[best]), int(found.stop[best]), float(push @ fit.residual)
        others = found.without(_of_joint(fit, place, push), along)
        long = stop - start
        rival = float(others.gain.max(initial=0.0, where=(others.stop < start - long) | (others.start > stop + long)))
        gain = float(found.gain[best]) / max((squares - along**2) / freedom, 1e-300)
        torque, joint = float(found.torque[best] / fit.scale[place]), fit.joints[place]
        usual = float(np.sqrt(np.mean(samples.effort[:, joint] ** 2)))
        seconds = float(samples.time[stop - 1] - samples.time[start])
        lasts = seconds > SHORTEST_PUSH_S and abs(torque) > PUSH_SHARE * usual
        if gain > PUSH_GAIN and found.gain[best] > PUSH_ABOVE * rival and lasts:
            yield _push(robot, joint, float(samples.time[start]), seconds, torque, gain)


def _stretches(time: Floats, fit: ProfiledFit, place: int) -> _Stretches:
    """All stretches of the usual lengths, for one joint in use."""
    count = len(time)
    start = np.tile(np.arange(count), len(PUSH_LENGTHS_S))
    stop = np.concatenate([np.searchsorted(time, time + length) for length in PUSH_LENGTHS_S])
    counted = _of_joint(fit, place, np.ones(len(fit.counted)))
    basis = _of_joint(fit, place, fit.basis)
    spanned = np.zeros((count + 1, basis.shape[1]))
    np.cumsum(basis, axis=0, out=spanned[1:])
    equations = _sums(counted, start, stop)
    free = np.empty(start.size)
    for first in range(0, start.size, count):  # one length at a time stays in the processor's cache
        part = spanned[stop[first : first + count]] - spanned[:-1]
        free[first : first + count] = equations[first : first + count] - np.einsum("ik,ik->i", part, part)
    return _Stretches(start, stop, equations, free, _sums(_of_joint(fit, place, fit.residual), start, stop))


def _of_joint(fit: ProfiledFit, place: int, rows: Floats) -> Floats:
    """(M, ...) what rows (M u, ...) of a fit hold for one joint in use, zero where an equation does not count."""
    counted = fit.counted[place :: len(fit.joints)]
    return np.asarray(rows[place :: len(fit.joints)] * counted.reshape(-1, *[1] * (rows.ndim - 1)))


def _sums(values: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
    """Sums of values (M,) over stretches."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(sums[stop] - sums[start])


def _push(robot: Robot, joint: int, start_s: float, seconds: float, torque: float, gain: float) -> Finding:
    unit = "N" if robot.bodies[joint].is_prismatic else "N m"
    return Finding(
        code="push",
        severity="warning",
        where="effort",
        joint=robot.joint_names[joint],
        message=f"at {start_s:.3f} s of the log's clock, for about {seconds:.2g} s, {torque:+.3g} {unit} act that the "
        "model does not explain, and nowhere else in the log: a push, a contact or a disturbed sensor",
        evidence={"at [s]": start_s, "for [s]": seconds, f"torque [{unit}]": torque, "gain": gain},
        remedy="Use the part before or after it (--time, counted from the start of the log), or record again.",
    )


def has_steady_cause(robot: Robot, samples: Samples) -> bool:
    """Whether what looks like a change at an instant has a cause that lasts: once its torque is taken away, none does.

    A wrong gain of a joint, for example, leaves more where the joint carries more.
    """
    fit = ProfiledFit.of(robot, samples)
    causes, amounts = find_causes(robot, samples, fit)
    best, _ = best_cause(samples, causes, amounts, SURE)
    if best is None:
        return False
    torque = (amounts.value[best] * causes[best].column).reshape(-1, len(fit.joints))
    effort = samples.effort.copy()
    effort[:, fit.joints] -= torque / np.where(fit.scale > 0.0, fit.scale, np.inf)
    return not list(check_changes(robot, replace(samples, effort=effort)))


def _have_another_cause(robot: Robot, samples: Samples, fit: ProfiledFit) -> bool:
    """Whether what looks like changing loads has another cause: once it is fitted as well, no load changes."""
    causes, amounts = find_causes(robot, samples, fit)
    best, _ = best_cause(samples, causes, amounts)
    return best is not None and not list(_changing_loads(robot, samples, fit.with_column(causes[best].column)))


def _changing_loads(robot: Robot, samples: Samples, fit: ProfiledFit) -> Iterator[Finding]:
    """Report a log in some parts of which another load is held on the last link."""
    count = samples.q.shape[0]
    part = np.arange(count) * LOAD_BLOCKS // count
    own = body_columns(robot, samples) * np.tile(fit.scale, count)[:, None]
    columns = [own * np.repeat(part == k, len(fit.joints))[:, None] for k in range(LOAD_BLOCKS)]
    free = fit.left(np.concatenate(columns, axis=1))
    _, held = _gain_of_load(free.T @ free, free.T @ fit.residual)
    ratio = _ratio_beyond_luck(fit, own * np.repeat(held[part], len(fit.joints))[:, None])
    if ratio < LOADED:
        yield Finding(
            code="change",
            severity="warning" if ratio < SURELY_LOADED else "note",
            where="model",
            message=f"the load on {robot.bodies[-1].joint.child} changes during the log",
            evidence={"residual ratio": ratio, **_time_span(samples, held[part])},
            remedy="Was something taken up or put down? Identify parts with different loads separately (--time).",
        )


def _time_span(samples: Samples, held: Floats) -> dict[str, float]:
    """When the smaller part of a log begins and ends, of (M,) ones and zeros for two loads; nothing without a clock."""
    some = (held > 0.0) == (2.0 * held.sum() <= held.size)
    if samples.time is None or not some.any():
        return {}
    times = samples.time[some]
    return {"another load from [s]": float(times[0]), "to [s]": float(times[-1])}


def _ratio_beyond_luck(fit: ProfiledFit, columns: Floats) -> float:
    """Ratio of the residuals with and without the columns (M u, 4) of a load, luck counted as a part of the former."""
    beside = fit.with_columns(columns)
    if beside.freedom < FREE_PER_COLUMN * beside.basis.shape[1]:
        return 1.0
    rest, whole = float(beside.residual @ beside.residual), float(fit.residual @ fit.residual)
    return float(np.sqrt(min(rest * (1.0 + LUCK / beside.freedom) / max(whole, 1e-300), 1.0)))


def _gain_of_load(products: Floats, along: Floats, *, longest: int = LOAD_BLOCKS - 1) -> tuple[float, Floats]:
    """By how much one load, held in those parts where it explains most, reduces the sum of squared residuals.

    The parts are found from the best single stretch on, by adding or removing one part at a time.

    Args:
        products: (4 k, 4 k) cross products of the columns of the load in each of k parts.
        along: (4 k,) their products with the residual.
        longest: Largest number of parts of a stretch to begin with.

    Returns:
        The reduction, and (k,) ones where the load is held, zeros elsewhere.
    """
    table, sides = products.reshape(LOAD_BLOCKS, 4, LOAD_BLOCKS, 4), along.reshape(LOAD_BLOCKS, 4)

    def gains(held: Floats) -> Floats:
        G, b = np.einsum("si,iajb,sj->sab", held, table, held, optimize=True), held @ sides
        return np.asarray(np.sum(b * solve_singular(G, b[:, :, None])[:, :, 0], axis=1))

    places, ends = np.arange(LOAD_BLOCKS), combinations(range(LOAD_BLOCKS + 1), 2)
    tried = np.array([(places >= a) & (places < b) for a, b in ends if b - a <= longest], dtype=float)
    best, held = 0.0, np.zeros(LOAD_BLOCKS)
    while (found := gains(tried)).max() > best * (1.0 + RESOLVED):
        best, held = float(found.max()), tried[int(found.argmax())]
        tried = np.abs(held - np.eye(LOAD_BLOCKS))
    return best, held


def check_together(
    robot: Robot, runs: Sequence[Experiment | None], told: Sequence[Sequence[Finding]]
) -> list[tuple[int | None, Finding]]:
    """Judge several logs together; one log alone says nothing here.

    Many logs are judged in groups. What is wrong with the robot counts where most groups show it.

    Args:
        robot: The robot.
        runs: The logs with torques as measured; None for a log that cannot be judged.
        told: What was found in each log by itself, which is not said again.

    Returns:
        What only all logs together show, with the place of the log concerned; None where it is all of them.
    """
    late = [_delay(findings) for findings in told]
    moved = [run if run is None or not delay else move_back(run, delay) for run, delay in zip(runs, late, strict=True)]
    rows = max(ROWS_TOGETHER // max(sum(run is not None for run in moved), 1), FEWEST_TOGETHER)
    parts = {place: part for place, run in enumerate(moved) if (part := _samples(robot, run, rows)) is not None}
    if len(parts) < 2:
        return []
    groups = np.array_split(list(parts), -(-len(parts) // MOST_TOGETHER))
    named = [
        (None if log is None else int(group[log]), finding)
        for group in groups
        for log, finding in _found(robot, _joined([parts[place] for place in group.tolist()]))
    ]
    if len(groups) > 1:
        named = _of_most_groups(named, len(groups))
    return [(place, finding) for place, finding in named if not _is_told(place, finding, told)]


def _of_most_groups(named: Sequence[tuple[int | None, Finding]], groups: int) -> list[tuple[int | None, Finding]]:
    """Findings on single logs, and once each those on the robot that more than half of the groups have."""
    keys = [(place, finding.code, finding.where, finding.joint) for place, finding in named]
    told = {key: found for key, found in zip(keys[::-1], named[::-1], strict=True)}  # the first of its kind
    return [told[key] for key, count in Counter(keys).items() if key[0] is not None or 2 * count > groups]


def _delay(findings: Sequence[Finding]) -> float:
    """The delay of the torques that a log surely has [s], zero otherwise."""
    sure = (f for f in findings if f.code == "unsynchronised" and f.severity == "warning")
    return next((float(f.evidence["delay [s]"]) for f in sure), 0.0)


def _is_told(place: int | None, finding: Finding, told: Sequence[Sequence[Finding]]) -> bool:
    """Whether a log that is concerned was found to have the same by itself."""
    mine = [f for k, each in enumerate(told) for f in each if place is None or k == place]
    return any((f.code, f.joint) == (finding.code, finding.joint) for f in mine)


def _samples(robot: Robot, run: Experiment | None, rows: int) -> Samples | None:
    """Samples of a log; None where there are too few, or it does not tell the motion between them."""
    part = None if run is None else measured_samples(robot, run, rows)
    return part if part is not None and part.jerk is not None and 2 * len(part.q) >= FEWEST_TOGETHER else None


def _joined(parts: Sequence[Samples]) -> Samples:
    """Samples of several logs; of the joints that are used in all of them."""
    names = ("q", "dq", "ddq", "effort", "sign", "slope", "time", "jerk", "far_from_reversals")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    log = np.repeat(np.arange(len(parts)), [len(part.q) for part in parts])
    return replace(parts[0], **arrays, log=log, used=np.all([part.used for part in parts], axis=0))


def _found(robot: Robot, samples: Samples) -> Iterator[tuple[int | None, Finding]]:
    """What the samples of several logs show, with the number of the log."""
    if not samples.trust.any():
        return
    fit = ProfiledFit.of(robot, samples)
    causes, amounts = find_causes(robot, samples, fit)
    other = list(check_geometry(robot, MeasuredLog(samples, fit, causes, amounts)))
    if other:
        yield None, other[0]
        return
    amounts = _agreeing(samples, fit, causes, amounts)
    best, _ = best_cause(samples, causes, amounts)
    load = _other_load(robot, samples, fit)
    beside = None if load is None or best is None else fit.with_column(causes[best].column)
    if load is not None and (beside is None or _other_load(robot, samples, beside) is not None):
        yield load
        return
    for finding in name_causes(robot, samples, causes, amounts, fit=fit):
        yield None if best is None else causes[best].log, finding


def _agreeing(samples: Samples, fit: ProfiledFit, causes: Sequence[Cause], amounts: Amounts) -> Amounts:
    """The amounts without those of properties that differ from log to log: what a robot has, it has in all of them.

    With one value for all logs a property must gain the share `RIVAL` of what it gains with a value for each.
    """
    free = fit.left(np.stack([cause.column for cause in causes], axis=1))
    rows = _rows_of_logs(samples, fit)
    along, size = rows @ (free * fit.residual[:, None]), rows @ free**2
    apart = np.sum(np.where(size > 0.0, along**2 / np.where(size > 0.0, size, 1.0), 0.0), axis=0)
    together = along.sum(axis=0) ** 2 / np.maximum(size.sum(axis=0), 1e-300)
    agree = (together >= RIVAL * apart) | np.array([cause.log is not None for cause in causes])
    return Amounts(
        np.where(agree, amounts.value, np.nan), np.where(agree, amounts.error, np.inf), np.where(agree, amounts.gain, 0)
    )


def _rows_of_logs(samples: Samples, fit: ProfiledFit) -> Floats:
    """(k, M u) ones for the equations of each log."""
    return np.repeat(logs_of(samples), len(fit.joints), axis=1)


def _other_load(robot: Robot, samples: Samples, fit: ProfiledFit) -> tuple[int, Finding] | None:
    """The log with another load in all or some of its parts, of those the one in which a load explains most."""
    own = body_columns(robot, samples) * np.tile(fit.scale, len(samples.q))[:, None] * fit.counted[:, None]
    parts = [_parts(np.flatnonzero(mine), len(fit.joints)) for mine in _rows_of_logs(samples, fit)]
    gains = [_gain_in(mine, own, fit) for mine in parts]
    log = max(range(len(gains)), key=lambda k: gains[k][0])
    _, held = gains[log]
    rows = np.zeros(len(own))
    for part, is_held in zip(parts[log], held, strict=True):
        rows[part] = is_held
    ratio = _ratio_beyond_luck(fit, own * rows[:, None])
    if ratio >= LOADED:
        return None
    link = robot.bodies[-1].joint.child
    whole = bool(held.all())
    return log, Finding(
        code="change",
        severity="warning" if ratio < SURELY_LOADED else "note",
        where="model",
        message=f"the load on {link} is another one than in the other logs"
        if whole
        else f"the load on {link} changes during the log, as the other logs show",
        evidence={"residual ratio": ratio, "logs": len(gains)},
        remedy="Identify logs with different loads separately."
        if whole
        else "Was something taken up or put down? Identify parts with different loads separately (--time).",
    )


def _parts(rows: NDArray[np.int64], joints: int) -> list[slice]:
    """The parts of a log with these equations, in each of which a load is held or not."""
    ends = rows[0] + joints * np.linspace(0, len(rows) // joints, LOAD_BLOCKS + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(ends.tolist())]


def _gain_in(parts: Sequence[slice], own: Floats, fit: ProfiledFit) -> tuple[float, Floats]:
    """By how much a load that is held in some parts of a log reduces the sum of squared residuals, and in which parts.

    Args:
        parts: Equations of each part.
        own: (M u, 4) weighted columns of a load.
        fit: The fit of all logs; its residual is orthogonal to its basis.
    """
    spanned = np.concatenate([fit.basis[part].T @ own[part] for part in parts], axis=1)
    products = -(spanned.T @ spanned)
    for k, part in enumerate(parts):
        products[4 * k : 4 * k + 4, 4 * k : 4 * k + 4] += own[part].T @ own[part]
    along = np.concatenate([own[part].T @ fit.residual[part] for part in parts])
    return _gain_of_load(products, along, longest=LOAD_BLOCKS)
