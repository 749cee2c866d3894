"""Suspects: what may be wrong with a log or a model, as a table, and the columns that each adds to the equations.

A suspect with a column is judged by `dynid.diagnosis.verdicts.judge_suspects`; those that change the log itself are in
`dynid.diagnosis.log_changes`. To add one that concerns one joint at a time, add a row with its column to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction.displacements import displacement_columns
from dynid.diagnosis.evidence import Column, Evidence, Excerpt, gather, take_excerpt
from dynid.diagnosis.verdicts import joint_weights
from dynid.estimators.rows import torque_along
from dynid.identifiability.base import choose_base
from dynid.identifiability.base_set import BaseParameters
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Body, Robot
from dynid.robot.term_names import add_terms
from dynid.terms.base import Term
from dynid.terms.load_dependent import horizontal_axes

TRUST = 1e-4
"""Weight of the model file's parameters in the fit that columns are computed with, beside the log's (convention)."""
SHORTEST = 0.01
"""Distance between joints below which it is no length of a link [m] (convention)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of suspect."""

    code: str
    """Code of the finding that names it."""
    unit: str
    """Printed unit; of turning and of sliding joints where these differ, with "or" between them."""
    factor: float
    """Printed unit over SI unit."""
    least: float
    """Effect worth telling [SI]; where `most` is infinite, the torque that it makes over the rms torque of a joint."""
    most: float
    """Amount beyond which it is no plausible error of this kind [SI]."""
    says: str
    """The sentence: ``{size}`` and ``{signed}`` are the amount with its interval, ``{more}`` one of two words."""
    words: tuple[str, str]
    """What ``{more}`` is for positive and for negative amounts."""
    remedy: str
    column: Callable[[Excerpt, int], Floats] | None = None
    """(N,) torque per amount [SI] on a joint, of what is suspected of every joint by itself; None for all others."""


_DEGREES = 180.0 / np.pi
_ZERO = "Calibrate the zero, set the offset in the channel map, or estimate it (--set free=zeros)."
KINDS: dict[str, Kind] = {
    "delay": Kind("delay", "ms", 1e3, 0.002, 1.0, "the torques are {size} {more}", ("late", "early"),
                  "Take it out: --set delay_s={seconds:.4f}."),
    "late": Kind("delay", "ms", 1e3, 0.005, 1.0, "the torque of this joint alone is {size} {more}", ("late", "early"),
                 "Record all torques at the same instants, or shift this channel.",
                 column=lambda excerpt, j: -excerpt.slope[:, j]),
    "gain": Kind("gain", "%", 100.0, 0.1, 0.5, "the torque is measured {size} too {more} beside the other joints",
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
"""All kinds of suspects that add a column."""


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """One thing that may be wrong."""

    kind: str
    """A key of `KINDS`."""
    joint: int | None
    """Index of the joint concerned; None for all."""
    direction: Floats | None = None
    """(6,) displacement of the joint per unit, slide [m] then turn [rad], in the axes of the body before; else None."""

    def unit(self, robot: Robot) -> str:
        """The printed unit of its amount."""
        turning, _, sliding = KINDS[self.kind].unit.partition(" or ")
        return sliding if sliding and self.joint is not None and robot.bodies[self.joint].is_prismatic else turning

    def name(self, robot: Robot) -> str:
        """The suspect in a few words."""
        word = {"late": "delay", "slide zero": "zero", "tilt": "tilt of the base"}.get(self.kind, self.kind)
        return word if self.joint is None or self.kind == "tilt" else f"{word} of {robot.joint_names[self.joint]}"

    def describe(self, robot: Robot, value: float, half_width: float) -> str:
        """What is wrong, with its amount and half its 95 % interval [SI]."""
        kind, unit = KINDS[self.kind], self.unit(robot)
        shown, spread = kind.factor * value, kind.factor * half_width
        return kind.says.format(
            size=f"{abs(shown):.3g} +- {spread:.2g} {unit}",
            signed=f"{shown:+.3g} +- {spread:.2g} {unit}",
            more=kind.words[0 if value > 0.0 else 1],
            axis=self._axis(value),
        )

    def label(self, robot: Robot) -> str:
        """Its name, with the axis where it may turn about several."""
        return self.name(robot) + (f" about {self._axis(1.0)}" if "{axis}" in KINDS[self.kind].says else "")

    def _axis(self, value: float) -> str:
        turn = np.zeros(3) if self.direction is None else np.sign(value) * self.direction[3:]
        return f"({', '.join(f'{round(x, 2) + 0.0:g}' for x in turn.tolist())})"

    def remedy(self, robot: Robot, value: float) -> str:
        """What to do about it."""
        joint = "" if self.joint is None else robot.joint_names[self.joint]
        return KINDS[self.kind].remedy.format(seconds=value, joint=joint)


def placements(robot: Robot) -> Iterator[Suspect]:
    """What may be wrong with the placement of every joint."""
    for j, body in enumerate(robot.bodies):
        yield from (Suspect(kind, j, direction) for kind, direction in _placement_errors(body, robot.gravity))


def _placement_errors(body: Body, gravity: Floats) -> Iterator[tuple[str, Floats]]:
    axis, still = body.R_parent_joint @ body.axis, np.zeros(3)
    length = float(np.linalg.norm(body.p_parent_joint))
    yield (
        ("slide zero", np.concatenate([axis, still])) if body.is_prismatic else ("zero", np.concatenate([still, axis]))
    )
    if body.parent < 0:
        if np.any(gravity):
            yield from (("tilt", np.concatenate([still, across])) for across in horizontal_axes(gravity))
        return
    if length > SHORTEST:
        yield "length", np.concatenate([body.p_parent_joint / length, still])
    yield from (("angle", np.concatenate([still, across])) for across in horizontal_axes(axis))


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A robot whose parameters explain some runs, and excerpts of these."""

    robot: Robot
    """The robot with its usual terms; its parameters are those of the model file."""
    base: BaseParameters
    excerpts: tuple[Excerpt, ...]
    """Samples of the runs; their harmless friction also grows with the load."""
    theta: Floats
    """(p,) parameters that explain the runs, near the model file's where the runs leave them open."""

    @classmethod
    def of(cls, robot: Robot, runs: Sequence[Experiment], delay_s: float = 0.0) -> Model:
        """Fit a robot to runs whose torques are late by a delay [s]."""
        model = add_terms(robot)
        base = choose_base(model)
        excerpts = [take_excerpt(model, run, delay_s) for run in matched_runs(robot, runs)]
        evidence = gather(model, base, excerpts)
        values = trusted_values(evidence, joint_weights(evidence), base, model)
        theta = model.parameter_vector.copy()
        theta[list(base.columns)] += values[: base.rank] - base.grouping @ model.parameter_vector
        links = np.concatenate([theta[: 10 * model.dof], np.zeros(len(model.terms))])
        loaded = []
        for excerpt in excerpts:
            load = [np.abs(torque_along(model, part, excerpt.run)) * excerpt.harmless[0] for part in (links, theta)]
            loaded.append(replace(excerpt, harmless=(*excerpt.harmless, *load)))
        return cls(model, base, tuple(loaded), theta)


def placement_columns(model: Model, excerpt: Excerpt, suspects: Sequence[Suspect]) -> Iterator[Column]:
    """The torque per unit of displacements; a tilt moves all joints that stand on the base."""
    run, robot = excerpt.run, model.robot
    columns = displacement_columns(robot, model.theta, run.q, run.dq, run.ddq)
    ground = [j for j, body in enumerate(robot.bodies) if body.parent < 0]
    for suspect in suspects:
        if suspect.direction is None or suspect.joint is None:
            raise ValueError(f"'{suspect.kind}' displaces no joint")
        moved = columns[:, :, ground if suspect.kind == "tilt" else [suspect.joint]].sum(axis=2)
        torque = moved @ suspect.direction
        yield {j: torque[:, j] for j in range(robot.dof)}


def channels(robot: Robot) -> Iterator[Suspect]:
    """What may be wrong with the torque of one joint, beside its gain."""
    yield from (Suspect(name, j) for name, kind in KINDS.items() if kind.column for j in range(robot.dof))


def channel_columns(robot: Robot, excerpt: Excerpt) -> Iterator[Column]:
    """The columns of `channels`."""
    yield from ({j: kind.column(excerpt, j)} for kind in KINDS.values() if kind.column for j in range(robot.dof))


def trusted_values(evidence: Evidence, weights: Floats, base: BaseParameters, robot: Robot) -> Floats:
    """(h,) values of the harmless columns, held near the model file's where the log leaves them open."""
    scale = weights[evidence.joint]
    X = evidence.columns[:, : evidence.harmless] * scale[:, None]
    prior = np.zeros(evidence.harmless)
    prior[: base.rank] = base.grouping @ robot.parameter_vector
    products = X.T @ X
    size = np.diagonal(products)
    usual = np.median(size[size > 0.0]) if size.any() else 1.0
    held = TRUST * np.maximum(size, usual)  # whatever hardly acts is not fitted to noise
    return np.asarray(np.linalg.solve(products + np.diag(held), X.T @ (evidence.torque * scale) + held * prior))


def gain_columns(evidence: Evidence, values: Floats, joints: int) -> list[Floats]:
    """For each joint the column (R, 1) of its gain: its own torque by the fit."""
    torque = evidence.columns[:, : evidence.harmless] @ values
    return [(torque * (evidence.joint == j))[:, None] for j in range(joints)]


def friction_columns(evidence: Evidence, base: BaseParameters, robot: Robot) -> dict[tuple[int, type[Term]], Floats]:
    """(R,) the columns of the robot's own terms by joint and kind, as far as they are base columns."""
    place = {column: k for k, column in enumerate(base.columns)}
    return {
        (placed.joints[0], type(placed.term)): evidence.columns[:, place[column]]
        for column, placed in enumerate(robot.terms, start=10 * robot.dof)
        if column in place and len(placed.joints) == 1
    }
