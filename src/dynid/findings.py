"""What a check found: severity, where, evidence in numbers, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

__all__ = ["Finding", "QualityReport", "Severity"]

Severity = Literal["error", "warning", "note"]
_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found in a recording."""

    code: str
    """Kind of fault: spikes, gap, flipped, unit, ..."""
    severity: Severity
    """error: do not use the log so; warning: look before you trust; note: dealt with, or harmless."""
    channel: str
    """file, time, q, dq, effort, wrench or model."""
    message: str
    """What is the matter, as a clause."""
    remedy: str
    """What can be done, as a sentence."""
    joint: str | None = None
    """Name of the joint concerned, if it is one."""
    evidence: Mapping[str, float] = field(default_factory=dict)
    """The numbers behind it, by name."""

    def __post_init__(self) -> None:
        """Freeze the evidence."""
        object.__setattr__(self, "evidence", MappingProxyType(dict(self.evidence)))

    def __str__(self) -> str:
        """One line."""
        where = self.channel if self.joint is None else f"{self.channel} of {self.joint}"
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in self.evidence.items())
        return (
            f"{self.severity} [{self.code}]: {where}: {self.message}{f' ({numbers})' if numbers else ''}. {self.remedy}"
        )


@dataclass(frozen=True, slots=True)
class QualityReport:
    """All findings about one recording, gravest first."""

    source: str
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, source: str, findings: Iterable[Finding]) -> QualityReport:
        """Sort findings by severity."""
        return cls(source, tuple(sorted(findings, key=lambda f: _ORDER[f.severity])))

    @property
    def ok(self) -> bool:
        """Whether nothing forbids using the recording."""
        return not any(f.severity == "error" for f in self.findings)

    @property
    def clean(self) -> bool:
        """Whether there is nothing to look at: neither errors nor warnings."""
        return all(f.severity == "note" for f in self.findings)

    @property
    def codes(self) -> frozenset[str]:
        """The kinds of fault found."""
        return frozenset(f.code for f in self.findings)

    def about(self, code: str) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(f for f in self.findings if f.code == code)

    def __str__(self) -> str:
        """Verdict, then one line per finding."""
        verdict = "nothing to object to" if self.clean else ("usable with care" if self.ok else "not usable as it is")
        return "\n".join([f"{self.source}: {verdict}", *(f"  {finding}" for finding in self.findings)])
