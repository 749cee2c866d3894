"""Which joints are alike: whether one value serves several joints, such as the same joint of four legs.

Standard deviations of real logs are too small where the law misses something, so the test does not use them. It asks
how much the difference between a joint and the mean of its mates changes when a block of time is left out: the estimate
is made again without each of `BLOCKS` blocks in turn (the jackknife), in one linear step from the estimate of all. What
the law misses differs from block to block, and counts. The difference over its standard deviation follows Student's t;
its degrees of freedom are those of blocks that tell unequally much (Satterthwaite).

What is least contradicted is shared first, and the rest is tested again with it shared: values that are only known
together, such as armature and friction of one joint, may each look alike while both cannot be. All comparisons of a
model share one probability of a false alarm (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import chi2

from dynid.actuators.motion import CommandedMotion, stretches_of
from dynid.actuators.servo_identifiability import NO_SIGNAL, entry_sizes
from dynid.actuators.servo_identification import ActuatorEstimate, fit_servos
from dynid.actuators.servo_model import ServoModel, ServoParameter
from dynid.actuators.servo_simulator import differentiate_servos
from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.errors import ArgumentError
from dynid.estimation.intervals.odd_ones import OddOne, odd_ones

LEVEL = 0.05
"""Probability that anything is called different where all is alike. Convention."""
BLOCKS = 48
"""Blocks of time that are left out in turn, of all motions together. Experiment: with 12, 24 and 48 blocks equal
simulated legs are called shared as often (tests/campaigns/legs_alike.py); 48 tell most. The errors of the go2 log on
its last 30 % were in view."""
OF_ASSEMBLY = ("zero", "offset")
"""Kinds that depend on how a joint was put together, not on its type: by default nothing is shared of them."""


@dataclass(frozen=True, slots=True)
class AlikeTest:
    """Whether the values of an entry in several runs are equal within what the intervals say."""

    kind: str
    names: tuple[str, ...]
    """The runs that were compared."""
    mean: float
    """Their common value, weighted by their covariance."""
    spread: float
    """Standard deviation of the values around it."""
    expected: float
    """Mean standard deviation that the intervals state."""
    p_value: float
    """Probability of differences as large as these if the true values are equal."""

    @property
    def alike(self) -> bool:
        """Whether one value serves all."""
        return self.p_value >= LEVEL


@dataclass(frozen=True, slots=True)
class JointTest:
    """Whether one value of a kind serves a group of joints."""

    kind: str
    unit: str
    joints: tuple[str, ...]
    """The joints that were compared."""
    values: tuple[float, ...]
    """Their values, each estimated for itself."""
    odd: tuple[str, ...]
    """Joints that differ from the rest; all of them where no two are left that agree."""
    deviations: float
    """Largest distance of a joint from the mean of the others, in standard deviations."""
    p_value: float
    """Probability of it by chance, times the number of all comparisons; at most one."""

    @property
    def shared(self) -> tuple[str, ...]:
        """Joints that one value serves."""
        return tuple(joint for joint in self.joints if joint not in self.odd)

    @property
    def alike(self) -> bool:
        """Whether one value serves all."""
        return not self.odd


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """Which parameters alike joints share, and how well the three models explain the motions."""

    tests: tuple[JointTest, ...]
    """One for each kind and group of joints."""
    separate: ActuatorEstimate
    """Every joint has its own values."""
    decided: ActuatorEstimate
    """Joints share what the tests do not contradict."""
    shared: ActuatorEstimate
    """All joints of a group share all kinds that were compared."""

    @property
    def models(self) -> tuple[tuple[str, ActuatorEstimate], ...]:
        """The three estimates by name, the one with most parameters first."""
        return (("all separate", self.separate), ("decided by test", self.decided), ("all shared", self.shared))


def joint_groups(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Joints whose names differ in the first word only, such as FL_hip_joint and RR_hip_joint."""
    groups: dict[str, list[str]] = {}
    for name in names:
        _, mark, rest = name.replace("-", "_").partition("_")
        if mark:
            groups.setdefault(rest, []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def compare_joints(
    found: ActuatorEstimate,
    motions: Sequence[CommandedMotion],
    groups: Sequence[Sequence[str]] | None = None,
    *,
    kinds: Sequence[str] | None = None,
) -> tuple[JointTest, ...]:
    """Test for every kind and every group of joints whether they share one value, by blocks of time left out in turn.

    Args:
        found: An estimate with values for each joint.
        motions: The motions of the fit.
        groups: Groups of joint names, such as the four hips, the four thighs and the four calves; by default those of
            the model, else joints whose names differ in the first word only.
        kinds: Kinds that are compared; by default all that each joint has for itself, but zero and offset.

    Returns:
        One test per kind and group of two joints or more with a known value; nothing where the search did not converge.

    Example:
        >>> dynid.actuators.compare_joints(servos, [sensed], [pendulum.joint_names])
        ()
    """
    listed = _checked(found.model, groups)
    chosen = _comparable(found.model) if kinds is None else tuple(kinds)
    opened, names = _untold(found), found.model.robot.joint_names
    cases = []
    for kind in chosen:
        for group in listed:
            places = [
                k
                for k, entry in enumerate(found.model.entries)
                if entry.kind == kind and len(entry.joints) == 1 and names[entry.joints[0]] in group
            ]
            known = [k for k in places if found.names[k] not in opened]
            if len(known) > 1:
                cases.append(known)
    if not cases or not found.converged:
        return ()
    comparisons = sum(map(len, cases))
    decided = _Decision(_Blocks.of(found, motions), LEVEL / comparisons).run(cases)
    return tuple(_described(found, places, one, comparisons) for places, one in zip(cases, decided, strict=True))


def decide_sharing(
    model: ServoModel,
    motions: Sequence[CommandedMotion],
    groups: Sequence[Sequence[str]] | None = None,
    *,
    held_out: Sequence[CommandedMotion] = (),
    kinds: Sequence[str] | None = None,
    correlation: float | Literal["loop"] = "loop",
    starts: int = 1,
) -> Sharing:
    """Decide by test which parameters alike joints share, and fit the model that follows.

    Args:
        model: A model whose joints have values of their own.
        motions: The motions to explain.
        groups: As for `compare_joints`.
        held_out: Motions that the three models are tried on: all separate, decided, all shared.
        kinds: As for `compare_joints`.
        correlation: As for `dynid.identify_actuators`.
        starts: Number of first guesses of the first fit.

    Raises:
        ArgumentError: A joint is not known, or no joints have similar names and no groups are given.

    Example:
        >>> sharing = dynid.actuators.decide_sharing(servo, [sensed], [pendulum.joint_names])
        >>> sharing.tests, len(sharing.decided.values)
        ((), 3)
    """
    listed = _checked(model, groups)
    if not listed:
        raise ArgumentError("no joints have similar names", remedy="Give groups of joints that are alike.")
    chosen = _comparable(model) if kinds is None else tuple(kinds)
    separate = fit_servos(model, motions, held_out, correlation=correlation, starts=starts)
    tests = compare_joints(separate, motions, listed, kinds=chosen)
    by_test: dict[str, list[tuple[str, ...]]] = {kind: [] for kind in chosen}
    for test in tests:
        unknown = _unknown_mates(separate, test, listed)
        if len(test.shared) + len(unknown) * bool(test.shared) > 1:
            by_test[test.kind].append((*test.shared, *unknown))
    wholly = {kind: [tuple(group) for group in listed] for kind in chosen} if tests else {}

    def refit(sharing: dict[str, list[tuple[str, ...]]]) -> ActuatorEstimate:
        if not any(sharing.values()):
            return separate
        return fit_servos(_sharing(separate.model, sharing), motions, held_out, correlation=separate.error_filter)

    return Sharing(tests=tests, separate=separate, decided=refit(by_test), shared=refit(wholly))


def _checked(model: ServoModel, groups: Sequence[Sequence[str]] | None) -> list[tuple[str, ...]]:
    """The groups of joints; unknown names are refused."""
    names = model.robot.joint_names
    given = model.alike or joint_groups(names) if groups is None else groups
    listed = [tuple(group) for group in given]
    for name in (name for group in listed for name in group):
        if name not in names:
            raise ArgumentError(f"no joint is called {name}", remedy=f"The joints are {', '.join(names)}.")
    return listed


def _comparable(model: ServoModel) -> tuple[str, ...]:
    """Kinds that each joint has for itself, without those of assembly."""
    single = dict.fromkeys(entry.kind for entry in model.entries if len(entry.joints) == 1)
    return tuple(kind for kind in single if kind not in OF_ASSEMBLY)


def _untold(found: ActuatorEstimate) -> set[str]:
    """Entries whose own values the motions do not tell; values that are told badly are compared as they are."""
    untold = [d for d in found.open_directions if not d.note or d.at_least is not None]
    return {name for direction in untold for name in direction.names}


def _unknown_mates(found: ActuatorEstimate, test: JointTest, groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Joints of the group whose own value is open: nothing contradicts the common one."""
    names, opened = found.model.robot.joint_names, _untold(found)
    (group,) = [group for group in groups if test.joints[0] in group]
    return tuple(
        names[entry.joints[0]]
        for entry in found.model.entries
        if entry.kind == test.kind and len(entry.joints) == 1 and names[entry.joints[0]] in group
        and entry.name in opened
    )  # fmt: skip


def _sharing(model: ServoModel, sharing: dict[str, list[tuple[str, ...]]]) -> ServoModel:
    """The model with common values of some kinds in some groups of joints."""
    parameters = [ServoParameter(given) if isinstance(given, str) else given for given in model.parameters]
    return replace(model, parameters=tuple(
        replace(parameter, share=tuple(sharing[parameter.kind])) if sharing.get(parameter.kind) else parameter
        for parameter in parameters
    ))  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """The equations of the motions, linear at an estimate, block by block of time."""

    A: Floats
    """(B, P, P) cross products of the derivatives."""
    h: Floats
    """(B, P) their right-hand sides: the solution of all together is the estimate, bounds apart."""
    prior: tuple[Floats, Floats]
    """(P,) what priors add to the diagonal, and to the right-hand side."""
    size: Floats
    """(P,) sizes of the entries, by which equations are scaled."""

    @classmethod
    def of(cls, found: ActuatorEstimate, motions: Sequence[CommandedMotion]) -> _Blocks:
        """Cut the motions of a fit into blocks."""
        motions = stretches_of(motions)
        model, total = found.model, sum(len(motion.time) for motion in motions)
        A, h, squares, P = [], [], 0.0, len(found.values)
        for motion in motions:
            simulated = differentiate_servos(model, found.values, motion)
            error = found.error_filter.apply(motion.position - simulated.position, motion)
            slopes = found.error_filter.apply(simulated.slopes, motion)
            count = min(len(error), max(1, round(BLOCKS * len(error) / total)))
            for rows in np.array_split(np.arange(len(error)), count):
                J = slopes[rows].reshape(-1, P)
                A.append(J.T @ J)
                h.append(J.T @ error[rows].ravel() + A[-1] @ found.values)
            squares += float(np.sum(error**2))
        prior = _priors(found, squares / max(1, total * model.dof - P))
        return cls(np.array(A), np.array(h), prior, entry_sizes(model.entries, found.values))

    def solve(self, groups: Sequence[Sequence[int]]) -> _Solved:
        """The estimate with common values in groups of entries, and what it becomes without each block."""
        T = np.eye(len(self.size))
        for group in groups:
            T[:, group[0]] = T[:, list(group)].sum(axis=1)
        T = np.delete(T, [place for group in groups for place in group[1:]], axis=1)
        size = T.T @ self.size / T.sum(axis=0)
        A, h = T.T @ self.A @ T, self.h @ T
        whole, side = A.sum(axis=0) + T.T @ np.diag(self.prior[0]) @ T, h.sum(axis=0) + T.T @ self.prior[1]
        values = _inverse(whole, size) @ side
        less = np.array([_inverse(whole - a, size) @ (side - b) for a, b in zip(A, h, strict=True)])
        return _Solved(T @ values, (less - values) @ T.T, T @ _inverse(whole, size), A)


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """Values of the entries under some sharing."""

    values: Floats
    """(P,)"""
    apart: Floats
    """(B, P) what they become without each block, less the values."""
    gain: Floats
    """(P, p) from right-hand sides of the free numbers to values."""
    A: Floats
    """(B, p, p) cross products of each block."""

    def variance(self, one: int, others: Sequence[int]) -> float:
        """Variance of the difference between an entry and the mean of others, by the jackknife."""
        B = len(self.apart)
        gaps = self.apart[:, one] - self.apart[:, list(others)].mean(axis=1)
        rounding = 1e-24 * float(np.max(self.values[[one, *others]] ** 2))
        return max((B - 1.0) / B * float(gaps @ gaps), rounding, 1e-300)

    def freedom(self, one: int, others: Sequence[int]) -> float:
        """Degrees of freedom of that variance: blocks count as the share that each has in it by its equations."""
        row = self.gain[one] - self.gain[list(others)].mean(axis=0)
        shares = np.einsum("p,bpq,q->b", row, self.A, row)
        return max(1.0, float(shares.sum()) ** 2 / max(float(shares @ shares), 1e-300) - 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Decision:
    """Shares what is least contradicted first, and tests the rest again."""

    blocks: _Blocks
    chance: float
    """Probability below which one comparison speaks against sharing."""

    def run(self, cases: Sequence[Sequence[int]]) -> list[tuple[list[int], OddOne]]:
        """For each case the places of entries that differ from the rest, and its first farthest entry.

        Args:
            cases: For each kind and group of joints the places of the entries.
        """
        left = {number: list(places) for number, places in enumerate(cases)}
        first: dict[int, OddOne] = {}
        shared: list[list[int]] = []
        while left:
            solved = self.blocks.solve(shared)
            farthest = {number: self._farthest(solved, places) for number, places in left.items()}
            calmest = max(farthest, key=lambda number: farthest[number].p_value)
            if farthest[calmest].p_value > self.chance:
                first.setdefault(calmest, farthest[calmest])
                shared.append(left.pop(calmest))
                continue
            for number, one in farthest.items():  # each of them differs somewhere: take that one out
                first.setdefault(number, one)
                left[number].remove(one.place)
                if len(left[number]) < 2:
                    del left[number]
        kept = {place for places in shared for place in places}
        return [
            ([place for place in places if place not in kept], first[number]) for number, places in enumerate(cases)
        ]

    def _farthest(self, solved: _Solved, places: Sequence[int]) -> OddOne:
        return odd_ones(
            solved.values, solved.variance, places=places, freedom=solved.freedom, chance=1.0, fewest=2
        )[0]  # fmt: skip


def _priors(found: ActuatorEstimate, variance: float) -> tuple[Floats, Floats]:
    """(P,) what priors add to cross products of residuals of some variance, and to their right-hand sides."""
    priors = [entry.prior for entry in found.model.entries]
    weight = np.array([0.0 if prior is None else variance / prior[1] ** 2 for prior in priors])
    return weight, weight * np.array([0.0 if prior is None else prior[0] for prior in priors])


def _inverse(A: Floats, size: Floats) -> Floats:
    """Inverse of cross products within the directions that they tell, in units of the sizes of the unknowns."""
    eigenvalues, vectors = eigh(A * np.outer(size, size))
    told = eigenvalues > NO_SIGNAL * eigenvalues[-1]
    rows = size[:, None] * vectors[:, told]
    return np.asarray((rows / eigenvalues[told]) @ rows.T)


def _described(
    found: ActuatorEstimate, places: Sequence[int], decided: tuple[list[int], OddOne], comparisons: int
) -> JointTest:
    odd, first = decided
    entries = found.model.entries
    joints = {place: found.model.robot.joint_names[entries[place].joints[0]] for place in places}
    return JointTest(
        kind=entries[places[0]].kind,
        unit=entries[places[0]].unit,
        joints=tuple(joints.values()),
        values=tuple(float(found.values[place]) for place in places),
        odd=tuple(name for place, name in joints.items() if place in odd),
        deviations=abs(first.deviations),
        p_value=min(1.0, comparisons * first.p_value),
    )


def compare_repeats(runs: Sequence[ActuatorEstimate]) -> tuple[AlikeTest, ...]:
    """Whether estimates from repeated recordings differ by more than their intervals say; one test per entry.

    Args:
        runs: Estimates of the same model, each from its own recording.

    Example:
        >>> [test.alike for test in dynid.actuators.compare_repeats([servos, servos])]
        [True, True, True]
    """
    if len(runs) < 2 or any(run.names != runs[0].names for run in runs):
        raise ArgumentError("repeats are two estimates or more of one model", remedy="Fit each recording alone.")
    tests = []
    for k, name in enumerate(runs[0].names):
        values, std = np.array([run.values[k] for run in runs]), np.array([run.std[k] for run in runs])
        if np.isfinite(std).all():
            shown = tuple(run.errors[0].name for run in runs)
            tests.append(_wald(name, shown, values, std))
    return tuple(tests)


def _wald(kind: str, names: tuple[str, ...], values: Floats, std: Floats) -> AlikeTest:
    """Differences from the common value against their standard deviations (Wald's test)."""
    weight = 1.0 / (std**2 + np.maximum(1e-12 * values**2, 1e-300))
    mean = float(weight @ values / weight.sum())
    return AlikeTest(
        kind=kind,
        names=names,
        mean=mean,
        spread=float(np.std(values, ddof=1)),
        expected=float(np.sqrt(np.mean(std**2))),
        p_value=float(chi2.sf(weight @ (values - mean) ** 2, len(values) - 1)),
    )
