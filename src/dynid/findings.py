"""Findings of checks and estimators: each has a code that programs decide on, and a sentence that people read.

Every check and every estimator of dynid reports what it found about a robot, a log, a control law, an estimate or a
load as a `Finding`; reports and screens show them. Programs decide on `code`, `severity`, `where`, `joint` and
`evidence`, never on `message`, which is for people. `CODES` lists every code with its meaning, and docs/findings.md is
generated from it. `QualityReport` holds all findings about one log or robot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

__all__ = ["CODES", "Finding"]

Severity = Literal["error", "warning", "note"]
_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
"""Severity -> its rank in a report, the gravest first."""

CODES: Mapping[str, str] = MappingProxyType(
    {
        # fleets, from fleet/
        "arm-changed": "A parameter of one arm of a fleet changed in the course of time.",
        "arm-differs": "An arm of a fleet differs from the others.",
        "log-left-out": "A log of a fleet could not be used; the others were.",
        "store-not-written": "Reduced logs of a fleet could not be kept; the next run reads these logs again.",
        # robot models, from robot/check.py
        "impossible-inertia": "A mass or a tensor of inertia is one that no body has.",
        "joint-limits": "Limits of a joint are missing, zero, or leave no motion.",
        "negative-friction": "A friction or a rotor inertia is negative, or friction drives a joint.",
        "unusual-geometry": "Angles are rounded or look like degrees, or gravity is not that of Earth's ground.",
        "unusual-inertia": "Mass or inertia of a link is missing, copied, or does not fit the link: a wrong unit?",
        # logs and motion, from diagnosis/
        "delay": "Torques come later or earlier than the motion, or the motion much later than its commands.",
        "gain": "The torque of a joint is measured too large or too small compared with the others.",
        "geometry": "A zero, a length or an axis of the model is wrong.",
        "gravity": "Gravity points another way than the model says, or the torques lack the weight of the links.",
        "load": "The load differs in a part of the log.",
        "push": "Torques act in a part of the log that nothing else explains: a push or a contact.",
        "spring": "A spring acts on a joint that the model does not have.",
        "backward-time": "Time stamps run backwards.",
        "beyond-limits": "Positions, or these less their zeros, lie beyond the limits of the robot's joints.",
        "drift": "The offset of a torque, or the zero of a force sensor, drifts.",
        "flipped": "A position or torque has the opposite sign.",
        "frozen": "A signal stays at one value while others move.",
        "gap": "Samples are further apart than the sampling period allows.",
        "inconsistent": "Measured velocities are not the derivatives of the positions, or not of their scale.",
        "jitter": "Sampling periods vary.",
        "joint-order": "Joints are in another order than the robot has them, or names do not tell their order.",
        "missing": "Samples, rows or whole stretches are missing.",
        "no-acceleration": "Accelerations are unknown, so no inertia can be identified.",
        "not-finite": "A signal holds values that are not finite numbers.",
        "quantised": "A signal has coarse steps.",
        "repeated-samples": "Rows or time stamps repeat others: a copied stretch, or lost packets.",
        "rest": "Joints stand still for long.",
        "salvaged": "Parts of a damaged file were left out.",
        "saturated": "A signal stays at its limit.",
        "spikes": "A signal has single outliers.",
        "stamp-order": "Single time stamps are out of order.",
        "swapped": "Two joints are exchanged.",
        "unexplained": "The model explains the torques badly, and no known fault explains why.",
        "unit": "A signal, or the time, is in another unit than stated.",
        "untestable": "Errors of lengths, zeros, gains, delays, order or sign of joints that the log cannot show.",
        "unusable": "Nothing can be computed from the log.",
        "wrapped": "A position jumps by a whole turn.",
        # commanded motions, from diagnosis/
        "commands": "The logged commands are not what the drives were told, or have another clock than the motion.",
        "drive-setting": "No drive can have the logged gain, supply or flag.",
        "unsigned-effort": "Torques have no sign: they are amounts of currents.",
        # identified servos, from servos/
        "at-bound": "A value stands at a bound of the search: it is no estimate.",
        "law-misfit": "The law of the drives, its gains or its terms do not explain the motion.",
        "not-converged": "The search or iteration for an estimate ended before it settled.",
        # designed motions, from excitation/
        "absurd-deviation": "A predicted standard deviation is so large that the motion does not show the parameter.",
        "slow-joint": "A joint stays far below its speed limit, so its friction and inertia will be uncertain.",
        "unbounded-acceleration": "Neither an acceleration nor a torque limit bounds the acceleration of a joint.",
        # recipes and run folders, from identification/ and workflows/
        "assumed-robot": "The robot file lacks limits or collision geometry, and usual ones are assumed.",
        "estimated-delay": "A delay was estimated; it is taken into account where it is sure.",
        "large-logs": "Long logs are read piece by piece with plain friction alone, or as a whole where it is needed.",
        # control laws, from estimators/closed_loop/
        "assumed-loop": "The control law, its rate or the commanded motion is unknown, and was assumed.",
        "controller": "The stated control law does not make the measured torques.",
        # held-out data, files and run folders, from report/, export/ and workflows/
        "correlated-residuals": "Residuals are correlated in time: the model, not noise, limits the accuracy.",
        "file-error": "A written robot file predicts worse than the whole model, because it cannot hold all terms.",
        "joint-error": "The held-out error of a joint exceeds the limit.",
        "missing-friction": "The residuals depend on the speed, so the model lacks friction.",
        "not-in-format": "A file format has no place for a part of the result.",
        "not-validated": "No data were held out, so nothing shows how well the model predicts.",
        "refused": "A log was refused; the report in the run folder lists all findings.",
        # estimates, from estimators/
        "selected-friction": "The data chose the mechanisms of friction; intervals hold as if they had been known.",
        "freed-geometry": "Geometry was estimated together with the parameters.",
        "impossible-estimate": "No possible robot or load has the estimated parameters.",
        "method": "What the estimator chose: kept parameters or singular values, and the bias that it adds.",
        "open-parameters": "The motion does not determine some parameters.",
        "per-run": "Runs were given offsets or friction of their own, of which the robot keeps the mean.",
        "prior-replaced": "A body of the prior is impossible and was replaced.",
        "runs-differ": "A run has other parameters or other gains than the other runs.",
        # loads, from payload/
        "drive-gains": "What gains of drives mean for a load, or what a weighed load says about them.",
        "arm-model": "The load was computed with the arm's model: what was taken from it, and how much that matters.",
        "grasp": "The held object differs from the expected one in mass, place or orientation, or is too uncertain.",
        "load-uncertain": "The data leave some of the ten parameters of the load open or uncertain.",
        "sensor-yields": "The wrench sensor yields, and the load swings on it.",
        "wrench-frame": "The wrench was recorded in other axes or with another sign than stated.",
        # watches, from monitor/ and workflows/
        "watch-calibration": "The logs that calibrate a watch hold pushes or smoothed motion, so that it misses more.",
        "watch-offsets": "Offsets differ between runs, so that a watch sees small slow pushes only after some motion.",
        "watch-seen": "A log that is watched, or calibrates a watch, is one that the result was identified from.",
    }
)
"""Every code with its meaning, one sentence each."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person should know."""

    code: str
    """A key of `CODES`."""
    severity: Severity
    """error: the data or result must not be used like this; warning: look at it before you trust it; note: dynid dealt
    with it, or it is harmless."""
    where: str
    """What it is about: file, time, q, dq, effort, wrench, model, law, or the name of a link or parameter. Where one of
    several logs is concerned, the log's name and a colon come first: ``monday.csv: effort``."""
    message: str
    """The fault or fact, as a clause with subject and verb."""
    remedy: str = ""
    """What the user can do, as a sentence; empty for nothing."""
    _: KW_ONLY
    joint: str | None = None
    """Name of the joint concerned; None where the finding is not about a single joint."""
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Name with unit -> number that supports the finding."""
    strength: float = 0.0
    """How strongly the data show it: of several findings of one severity the strongest comes first."""
    brief: str = ""
    """The message in short for a screen, with a count in place of each list; empty where the message is short."""

    def __post_init__(self) -> None:
        """Freeze the evidence; an unknown code is a mistake of the programmer."""
        if self.code not in CODES:
            raise KeyError(f"finding code '{self.code}' is not listed in dynid.findings.CODES")
        object.__setattr__(self, "evidence", MappingProxyType(dict(self.evidence)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Tell ``pickle`` to build a copy from the fields: the mapping proxy of the evidence cannot be pickled."""
        return partial(Finding, **self.to_dict()), ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name as values that JSON can hold."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)} | {"evidence": dict(self.evidence)}

    @property
    def log(self) -> str:
        """Name of the log concerned, which `where` states before a colon; empty where it states none."""
        return self.where.rpartition(": ")[0]

    @property
    def sentence(self) -> str:
        """The message as a sentence that names the joint, then the remedy; for people, without the numbers."""
        subject = self.message if self.joint is None else f"{self.joint}: {self.message}"
        return f"{subject.removesuffix('.')}. {self.remedy}".rstrip()

    def __str__(self) -> str:
        """One line."""
        where = self.where if self.joint is None else f"{self.where} of {self.joint}"
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in self.evidence.items())
        shown = f"{self.message} ({numbers})" if numbers else self.message
        return f"{self.severity} [{self.code}]: {where}: {shown}. {self.remedy}".rstrip()


def join_joints(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ only in the joint: the first of them stands for all, with the names of all joints."""
    groups: dict[tuple[str, ...], list[Finding]] = {}  # everything but the joint and the numbers -> the findings
    for one in findings:
        groups.setdefault((one.severity, one.code, one.where, one.message, one.remedy), []).append(one)
    merged = []
    for first, *others in groups.values():
        names = ", ".join(str(f.joint) for f in (first, *others))
        merged.append(replace(first, joint=names) if others else first)
    return merged


@dataclass(frozen=True, slots=True)
class QualityReport:
    """All findings about one recording or one robot model, the gravest first."""

    source: str
    """Name of the log or robot."""
    findings: tuple[Finding, ...]
    """The findings, in the order of `of`."""

    @classmethod
    def of(cls, source: str, findings: Iterable[Finding]) -> QualityReport:
        """Make a report of findings, sorted by severity, and within a severity the strongest first."""
        return cls(source, tuple(sorted(findings, key=lambda f: (_ORDER[f.severity], -f.strength))))

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(f.severity == "error" for f in self.findings)

    @property
    def clean(self) -> bool:
        """Whether there are neither errors nor warnings."""
        return all(f.severity == "note" for f in self.findings)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the findings."""
        return frozenset(f.code for f in self.findings)

    def about(self, code: str) -> tuple[Finding, ...]:
        """The findings with one code."""
        return tuple(f for f in self.findings if f.code == code)

    def __str__(self) -> str:
        """Verdict, then one line per finding."""
        verdict = "no objections" if self.clean else ("usable with care" if self.ok else "not usable as it is")
        return "\n".join([f"{self.source}: {verdict}", *(f"  {finding}" for finding in join_joints(self.findings))])
