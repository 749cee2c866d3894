"""Suspects: possible faults of a log or a model, and the torque that each adds per unit of its amount.

For a small fault of amount a, the torque is linear in it: ``torque = X x + z a``. Here X x is the torque of the model
(links, friction), and the column z (one value per sample and joint) is the derivative of the torque by the amount:

    late torque         -d torque / dt
    wrong gain          the torque of the joint itself
    spring on a joint   its position q
    misplaced joint     derivative of the torques by the joint's placement

`KINDS` is the table of all kinds, with their units and sentences. To add one that concerns one joint at a time, add a
row with its column. `FittedRobot` holds the robot with parameters that fit the logs, which the columns need.

`dynid.diagnosis.naming` collects these columns for all suspects of a log, and `dynid.diagnosis.verdicts` tests them.
Faults that are no small change, such as exchanged channels, are in `dynid.diagnosis.log_changes`.

Letters of shapes: N samples of an excerpt, n joints, p parameters, R rows of the evidence (compressed equations of all
samples, see `dynid.diagnosis.evidence.Evidence`), h harmless columns (those of X).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction import Information
from dynid.data_reduction.displacements import displacement_columns
from dynid.diagnosis.evidence import BLOCKS, FEWEST_BLOCKS, Evidence, Excerpt, take_excerpt
from dynid.diagnosis.verdicts import joint_weights
from dynid.estimators.equations import cut_blocks, merge_information, next_segment
from dynid.estimators.rows import reduce_rows, torque_along
from dynid.identifiability.base import choose_base
from dynid.identifiability.base_set import BaseParameters
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms
from dynid.terms.base import Term
from dynid.terms.load_dependent import horizontal_axes

TRUST = 1e-4
"""Weight of the model file's parameters relative to the data, in the fit that columns are computed with
(convention)."""
SHORTEST = 0.01
"""Smallest distance between two joints that counts as the length of a link [m] (convention)."""

Column = dict[int, Floats]
"""A column of the regression: joint index -> (N,) torque on this joint per unit of the amount [N m or N per unit]."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of suspect."""

    code: str
    """Code of the finding that names it."""
    unit: str
    """Printed unit; "A or B" is A for revolute and B for prismatic joints."""
    factor: float
    """Number that turns an SI amount into the printed one."""
    least: float
    """Smallest amount that is reported [SI]; where `most` is infinite, smallest rms torque of the suspect instead,
    relative to the rms torque of a joint."""
    most: float
    """Largest amount that is plausible for this kind [SI]."""
    says: str
    """The sentence: ``{size}`` is the absolute amount with its interval, ``{signed}`` the signed one, ``{more}`` one
    of `words`, ``{axis}`` the axis of a turn."""
    words: tuple[str, str]
    """The word ``{more}`` for positive and for negative amounts."""
    remedy: str
    """What to do about it; ``{seconds}`` is the amount, ``{joint}`` the name of the joint."""
    column: Callable[[Excerpt, int], Floats] | None = None
    """Function of an excerpt and a joint's index: (N,) torque on this joint per unit amount [SI]. None for kinds whose
    columns are formed elsewhere, because they act on several joints or need a fit."""


_DEGREES = 180.0 / np.pi
_ZERO = "Calibrate the zero, set the offset in the channel map, or estimate it (--set free=zeros)."
KINDS: dict[str, Kind] = {
    "delay": Kind("delay", "ms", 1e3, 0.002, 1.0, "the torques are {size} {more}", ("late", "early"),
                  "Take it out: --set delay_s={seconds:.4f}.", column=lambda excerpt, j: -excerpt.slope[:, j]),
    "late": Kind("delay", "ms", 1e3, 0.005, 1.0, "the torque of this joint alone is {size} {more}", ("late", "early"),
                 "Record all torques at the same instants, or shift this channel.",
                 column=lambda excerpt, j: -excerpt.slope[:, j]),
    "gain": Kind("gain", "%", 100.0, 0.05, 0.5, "the torque is measured {size} too {more} beside the other joints",
                 ("large", "small"), "Check gain, torque constant and gear of this joint in the channel map."),
    "zero": Kind("geometry", "deg", _DEGREES, 0.01, 0.6, "the encoder reads {size} too {more}", ("little", "much"),
                 _ZERO),
    "slide zero": Kind("geometry", "mm", 1e3, 0.005, 0.3, "the position reads {size} too {more}", ("little", "much"),
                       _ZERO),
    "length": Kind("geometry", "mm", 1e3, 0.005, 0.3, "the link before this joint is {size} {more} than in the model",
                   ("longer", "shorter"), "Measure it, or estimate it (--set free=lengths)."),
    "angle": Kind("geometry", "deg", _DEGREES, 0.02, 0.6,
                  "the axis is turned by {size} about {axis} of the body before",
                  ("", ""), "Compare the model's axes with the drawing, or estimate them (--set free=angles)."),
    "tilt": Kind("gravity", "deg", _DEGREES, 0.01, 0.6, "the base is tilted by {size} about {axis}", ("", ""),
                 "Level the base, state gravity (--gravity x,y,z), or estimate it (--set free=tilt)."),
    "spring": Kind("spring", "N m/rad or N/m", 1.0, 0.1, np.inf, "a spring of {signed} acts on the joint", ("", ""),
                   "A cable or a counterbalance? Add it to the model (--set springs={joint}).",
                   column=lambda excerpt, j: excerpt.run.q[:, j]),
    "drift": Kind("drift", "N m/min or N/min", 1.0, 0.05, np.inf, "the offset of the torque drifts by {signed}",
                  ("", ""), "Does the sensor or the gear warm up? Warm up first, or cut the log (--time).",
                  column=lambda excerpt, j: (excerpt.run.time - excerpt.run.time[0]) / 60.0),
    "load": Kind("load", "kg", 1.0, 0.05, np.inf, "the load differs by {signed}", ("", ""),
                 "Was a load taken up? Cut the log there (--time)."),
    "push": Kind("push", "N m or N", 1.0, 0.05, np.inf, "{signed} act on the joint that nothing else explains",
                 ("", ""), "A push, a contact or a disturbed sensor? Cut the log there (--time)."),
    "offset": Kind("runs-differ", "N m or N", 1.0, 0.05, np.inf, "the offset differs by {signed}", ("", ""), ""),
    "friction": Kind("runs-differ", "N m or N", 1.0, 0.05, np.inf, "dry friction differs by {signed}", ("", ""), ""),
}  # fmt: skip
"""Key -> kind, for all suspects that add columns to the equations."""


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """One possible fault: a kind, and the joint that it concerns."""

    kind: str
    """A key of `KINDS`."""
    joint: int | None
    """Index of the joint concerned; None for all."""
    direction: Floats | None = None
    """(6,) for a misplaced joint, its displacement per unit: slide [m], then turn [rad], in the parent body's frame."""

    def unit(self, robot: Robot) -> str:
        """The printed unit of its amount."""
        turning, _, sliding = KINDS[self.kind].unit.partition(" or ")
        return sliding if sliding and self.joint is not None and robot.bodies[self.joint].is_prismatic else turning

    def name(self, robot: Robot) -> str:
        """The suspect in a few words."""
        word = {"late": "delay", "slide zero": "zero", "tilt": "tilt of the base"}.get(self.kind, self.kind)
        return word if self.joint is None or self.kind == "tilt" else f"{word} of {robot.joint_names[self.joint]}"

    def describe(self, robot: Robot, value: float, half_width: float) -> str:
        """The sentence of a finding, with the amount and half the width of its 95 % interval [SI]."""
        kind, unit = KINDS[self.kind], self.unit(robot)
        shown, spread = kind.factor * value, kind.factor * half_width
        return kind.says.format(
            size=f"{abs(shown):.3g} +- {spread:.2g} {unit}",
            signed=f"{shown:+.3g} +- {spread:.2g} {unit}",
            more=kind.words[0 if value > 0.0 else 1],
            axis=self._axis(value),
        )

    def label(self, robot: Robot) -> str:
        """Its name, with the axis of the turn if its kind has several."""
        return self.name(robot) + (f" about {self._axis(1.0)}" if "{axis}" in KINDS[self.kind].says else "")

    def _axis(self, value: float) -> str:
        """The axis of its turn, reversed for negative amounts."""
        turn = np.zeros(3) if self.direction is None else np.sign(value) * self.direction[3:]
        return f"({', '.join(f'{round(x, 2) + 0.0:g}' for x in turn.tolist())})"


def linear_suspects(robot: Robot) -> Iterator[Suspect]:
    """The suspects whose columns follow from the motion: misplaced joints, then those with a column in `KINDS`."""
    still = np.zeros(3)
    for j, body in enumerate(robot.bodies):
        axis = body.R_parent_joint @ body.axis  # in the parent body's frame
        length = float(np.linalg.norm(body.p_parent_joint))
        if body.is_prismatic:
            yield Suspect("slide zero", j, np.append(axis, still))
        else:
            yield Suspect("zero", j, np.append(still, axis))
        if body.parent >= 0 and length > SHORTEST:
            yield Suspect("length", j, np.append(body.p_parent_joint / length, still))
        # A turn about the joint's own axis is an error of its zero, and one of the base about the vertical does not
        # act on torques: the two axes perpendicular to these are left.
        kind, fixed = ("angle", axis) if body.parent >= 0 else ("tilt", robot.gravity)
        if np.any(fixed):
            yield from (Suspect(kind, j, np.append(still, across)) for across in horizontal_axes(fixed))
    own = [kind for kind, row in KINDS.items() if row.column and kind != "delay"]  # a delay acts on all joints alike
    yield from (Suspect(kind, j) for kind in own for j in range(robot.dof))
    yield Suspect("delay", None)


@dataclass(frozen=True, slots=True, eq=False)
class FittedRobot:
    """A robot with parameters that fit some runs, and samples of these runs."""

    robot: Robot
    """The robot with its usual terms (friction, rotor inertia, offset); its parameters are those of the model file."""
    base: BaseParameters
    """Its base parameters, those combinations of the parameters that torques determine."""
    excerpts: tuple[Excerpt, ...]
    """Few samples of each run; their harmless shapes of friction include two that grow with the torque."""
    theta: Floats
    """(p,) standard parameters that fit the runs, near the model file's where the runs do not determine them."""

    @classmethod
    def of(cls, robot: Robot, runs: Sequence[Experiment], delay_s: float = 0.0) -> FittedRobot:
        """Fit a robot to processed runs, whose torques are late by a delay [s] and are moved back by it."""
        full = add_terms(robot)
        excerpts = tuple(take_excerpt(full, run, delay_s) for run in matched_runs(robot, runs))
        model = cls(full, choose_base(full), excerpts, full.parameter_vector)
        evidence = model.evidence()
        values = model.values(evidence, joint_weights(evidence))
        # the fitted base parameters exactly: `grouping` (b, p) maps standard to base parameters, with ones at `columns`
        theta = full.parameter_vector.copy()
        theta[list(model.base.columns)] += values[: model.base.rank] - model.base.grouping @ full.parameter_vector
        links = np.concatenate([theta[: 10 * full.dof], np.zeros(len(full.terms))])  # no friction
        loaded = []
        for excerpt in excerpts:
            # |torque| sign(dq): friction that grows with the torque of the links, and with the whole torque
            load = [np.abs(torque_along(full, part, excerpt.run)) * excerpt.harmless[0] for part in (links, theta)]
            loaded.append(replace(excerpt, harmless=(*excerpt.harmless, *load)))
        return replace(model, excerpts=tuple(loaded), theta=theta)

    def evidence(self, suspects: Sequence[Suspect] = ()) -> Evidence:
        """Form the regression of harmless columns, then those of some of the `linear_suspects`, and compress it."""
        robot, base = self.robot, self.base
        parts: list[Information] = []
        runs: list[int] = []
        for number, excerpt in enumerate(self.excerpts):
            shapes = [{j: shape[:, j]} for shape in excerpt.harmless for j in range(robot.dof)]
            blocks = cut_blocks(excerpt.run, max(BLOCKS // len(self.excerpts), FEWEST_BLOCKS))
            # one triangle for each joint and block: base columns of the regressor, then these further columns
            further = (*shapes, *self._columns(excerpt, suspects))
            part = reduce_rows(robot, base, (), excerpt.run, blocks, None, further)
            parts.append(part.renumber(next_segment(parts)))
            runs += [number] * len(part.segments)
        harmless = base.rank + len(self.excerpts[0].harmless) * robot.dof
        return Evidence.of(merge_information(parts), harmless, runs)

    def _columns(self, excerpt: Excerpt, suspects: Sequence[Suspect]) -> Iterator[Column]:
        """For each suspect the torques per unit of its amount: joint index -> (N,)."""
        run, robot, moved = excerpt.run, self.robot, np.zeros(0)
        if any(suspect.direction is not None for suspect in suspects):
            # (N, n, n, 6): derivative of the torque of joint i (second axis) by the placement of joint j (third axis)
            moved = displacement_columns(robot, self.theta, run.q, run.dq, run.ddq)
        ground = [j for j, body in enumerate(robot.bodies) if body.parent < 0]  # a tilt displaces all of these
        for suspect in suspects:
            joints = [*range(robot.dof)] if suspect.joint is None else [suspect.joint]
            column = KINDS[suspect.kind].column
            if column is not None:
                yield {j: column(excerpt, j) for j in joints}
            else:
                placed = moved[:, :, ground if suspect.kind == "tilt" else joints].sum(axis=2)
                yield dict(enumerate((placed @ np.asarray(suspect.direction)).T))

    def values(self, evidence: Evidence, weights: Floats) -> Floats:
        """Fit the harmless columns, held near the model file's parameters where the log does not determine them.

        This is ridge regression towards the prior values: minimise |X x - y|^2 + sum held (x - prior)^2, with weights
        (n,) of the joints' rows. The prior of the further shapes of friction is zero. Returns (h,) values.
        """
        scale = weights[evidence.joint]
        X = evidence.columns[:, : evidence.harmless] * scale[:, None]
        prior = np.zeros(evidence.harmless)
        prior[: self.base.rank] = self.base.grouping @ self.robot.parameter_vector
        products = X.T @ X
        size = np.diagonal(products)
        usual = np.median(size[size > 0.0]) if size.any() else 1.0
        held = TRUST * np.maximum(size, usual)  # at least the median, so that short columns are not fitted to noise
        return np.asarray(np.linalg.solve(products + np.diag(held), X.T @ (evidence.torque * scale) + held * prior))


def own_terms(base: BaseParameters, robot: Robot) -> dict[tuple[int, type[Term]], int]:
    """(Joint index, type of a term) -> its base column, for the terms of single joints that are base parameters."""
    place = {column: k for k, column in enumerate(base.columns)}
    return {
        (placed.joints[0], type(placed.term)): place[column]
        for column, placed in enumerate(robot.terms, start=10 * robot.dof)
        if column in place and len(placed.joints) == 1
    }
