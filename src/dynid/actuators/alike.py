"""Which joints are alike: whether one value serves several joints, such as the same joint of four legs.

Standard deviations of real logs are too small where the law misses something, so the test asks how much the difference
between a joint and the mean of its mates changes when a block of time is left out (`dynid.actuators.servo_knowledge`).
The difference over its standard deviation follows Student's t.

What is least contradicted is shared first, and the rest is tested again with it shared: values that are only known
together, such as armature and friction of one joint, may each look alike while both cannot be. All comparisons of a
model share one probability of a false alarm (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from dynid.actuators.motion import CommandedMotion, stretches_of
from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_identification import ActuatorEstimate, fit_servos
from dynid.actuators.servo_knowledge import Blocks, told_inverse
from dynid.actuators.servo_model import ServoModel, ServoParameter, joint_groups
from dynid.arrays import Floats
from dynid.errors import ArgumentError

LEVEL = 0.05
"""Probability that anything is called different where all is alike. Convention."""
OF_ASSEMBLY = ("zero", "offset")
"""Kinds that depend on how a joint was put together, not on its type: by default nothing is shared of them."""


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


class _Case(NamedTuple):
    """Entries of one kind in a group of alike joints."""

    kind: str
    known: list[int]
    """Places of entries whose values the motions tell."""
    unknown: list[int]
    """Places of the others: nothing contradicts a common value."""


def decide_sharing(
    model: ServoModel,
    motions: Sequence[CommandedMotion],
    groups: Sequence[Sequence[str]] | None = None,
    *,
    held_out: Sequence[CommandedMotion] = (),
    correlation: float = 0.0,
    starts: int = 1,
) -> Sharing:
    """Decide by test which parameters alike joints share, and fit the model that follows.

    Args:
        model: A model whose joints have values of their own; zeros and offsets are not compared.
        motions: The motions to explain.
        groups: Groups of joint names, such as the four hips, the four thighs and the four calves; by default those of
            the model, else joints whose names differ in the first word only.
        held_out: Motions that the three models are tried on: all separate, decided, all shared.
        correlation: As for `dynid.identify_actuators`.
        starts: Number of first guesses of the first fit.

    Raises:
        ArgumentError: A joint is not known, or no joints have similar names and no groups are given.
    """
    names = model.robot.joint_names
    listed = [tuple(group) for group in (model.alike or joint_groups(names) if groups is None else groups)]
    for name in (name for group in listed for name in group):
        if name not in names:
            raise ArgumentError(f"no joint is called {name}", remedy=f"The joints are {', '.join(names)}.")
    if not listed:
        raise ArgumentError("no joints have similar names", remedy="Give groups of joints that are alike.")
    separate = fit_servos(model, motions, held_out, correlation=correlation, starts=starts)
    cases = _find_cases(separate, listed)
    tests = compare_joints(separate, motions, cases)
    entries = separate.model.entries
    decided: dict[str, list[tuple[str, ...]]] = {}
    wholly: dict[str, list[tuple[str, ...]]] = {}
    for case, test in zip(cases, tests, strict=False):
        mates = tuple(names[entries[k].joints[0]] for k in case.unknown)
        if len(test.shared) + len(mates) * bool(test.shared) > 1:
            decided.setdefault(case.kind, []).append((*test.shared, *mates))
        wholly.setdefault(case.kind, []).append((*test.joints, *mates))

    def refit(sharing: dict[str, list[tuple[str, ...]]]) -> ActuatorEstimate:
        if not sharing:
            return separate
        given = [ServoParameter(one) if isinstance(one, str) else one for one in separate.model.parameters]
        parameters = [replace(one, share=tuple(sharing[one.kind])) if one.kind in sharing else one for one in given]
        return fit_servos(
            replace(separate.model, parameters=tuple(parameters)), motions, held_out, correlation=correlation
        )

    return Sharing(tests=tests, separate=separate, decided=refit(decided), shared=refit(wholly))


def _find_cases(found: ActuatorEstimate, groups: Sequence[Sequence[str]]) -> list[_Case]:
    """Kinds and groups with two known values or more; values that are told badly are compared as they are."""
    names, entries = found.model.robot.joint_names, found.model.entries
    untold = [d for d in found.open_directions if not d.is_vague]
    opened = {name for direction in untold for name in direction.names}
    cases = []
    for kind in dict.fromkeys(e.kind for e in entries if len(e.joints) == 1 and e.kind not in OF_ASSEMBLY):
        for group in groups:
            places = [k for k, e in enumerate(entries) if e.kind == kind and len(e.joints) == 1
                      and names[e.joints[0]] in group]  # fmt: skip
            known = [k for k in places if entries[k].name not in opened]
            if len(known) > 1:
                cases.append(_Case(kind, known, [k for k in places if k not in known]))
    return cases


def compare_joints(
    found: ActuatorEstimate, motions: Sequence[CommandedMotion], cases: Sequence[_Case]
) -> tuple[JointTest, ...]:
    """Test for every case whether one value serves; nothing where the search did not converge."""
    if not cases or not found.converged:
        return ()
    comparisons = sum(len(case.known) for case in cases)
    equations = ServoEquations(found.model, stretches_of(motions), found.correlation)
    decided = _decide(Blocks.of(equations, found.values), found.values, [case.known for case in cases],
                      LEVEL / comparisons)  # fmt: skip
    entries, tests = found.model.entries, []
    for case, (odd, deviations, p_value) in zip(cases, decided, strict=True):
        joints = {k: found.model.robot.joint_names[entries[k].joints[0]] for k in case.known}
        tests.append(JointTest(
            kind=case.kind,
            unit=entries[case.known[0]].unit,
            joints=tuple(joints.values()),
            values=tuple(float(found.values[k]) for k in case.known),
            odd=tuple(name for k, name in joints.items() if k in odd),
            deviations=abs(deviations),
            p_value=min(1.0, comparisons * p_value),
        ))  # fmt: skip
    return tuple(tests)


def _decide(
    blocks: Blocks, values: Floats, cases: Sequence[Sequence[int]], chance: float
) -> list[tuple[list[int], float, float]]:
    """For each case the places of entries that differ from the rest, and the first farthest one's distance and chance.

    Args:
        blocks: The equations of the motions.
        values: (P,) the estimate.
        cases: Places of entries that may have one value.
        chance: Probability below which one comparison speaks against sharing.
    """
    left = {number: list(places) for number, places in enumerate(cases)}
    first: dict[int, tuple[float, float]] = {}
    shared: list[list[int]] = []
    while left:
        solved, apart = _leave_out(blocks, values, shared)
        farthest = {number: _farthest(solved, apart, places) for number, places in left.items()}
        calmest = max(farthest, key=lambda number: farthest[number][2])
        if farthest[calmest][2] > chance:
            first.setdefault(calmest, farthest[calmest][1:])
            shared.append(left.pop(calmest))
            continue
        for number, (place, *size) in farthest.items():  # each of them differs somewhere: take that one out
            first.setdefault(number, (size[0], size[1]))
            left[number].remove(place)
            if len(left[number]) < 2:
                del left[number]
    kept = {place for places in shared for place in places}
    return [([k for k in places if k not in kept], *first[number]) for number, places in enumerate(cases)]


def _leave_out(blocks: Blocks, values: Floats, groups: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
    """The values (P,) with common ones in groups of entries, and how they move without each block (B, P)."""
    T = np.eye(len(values))
    for group in groups:
        T[:, group[0]] = T[:, list(group)].sum(axis=1)
    T = np.delete(T, [place for group in groups for place in group[1:]], axis=1)
    A = T.T @ blocks.A @ T
    h = (blocks.g + np.einsum("bpq,q->bp", blocks.A, values)) @ T
    whole = T.T @ blocks.whole @ T
    known = np.where(blocks.prior > 0.0, blocks.prior * values - blocks.g.sum(axis=0), 0.0)
    side = h.sum(axis=0) + T.T @ known
    solved = told_inverse(whole) @ side
    moved = np.array([told_inverse(whole - a) @ (side - b) for a, b in zip(A, h, strict=True)]) - solved
    return T @ solved, moved @ T.T


def _farthest(values: Floats, moved: Floats, places: Sequence[int]) -> tuple[int, float, float]:
    """The place farthest from the mean of the others, its distance in standard deviations, and its chance."""
    B, found = len(moved), []
    for place in places:
        others = [k for k in places if k != place]
        gaps = moved[:, place] - moved[:, others].mean(axis=1)
        rounding = 1e-24 * float(np.max(values[list(places)] ** 2)) + 1e-300
        std = np.sqrt(max((B - 1.0) / B * float(gaps @ gaps), rounding))
        size = float((values[place] - values[others].mean()) / std)
        freedom = max(1.0, float(gaps @ gaps) ** 2 / (float(np.sum(gaps**4)) + 1e-300))  # few blocks may tell most
        found.append((place, size, 2.0 * float(t.sf(abs(size), freedom))))
    return max(found, key=lambda one: abs(one[1]))
