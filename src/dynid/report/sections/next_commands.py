"""The command to run next, for every finding for which there is one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

FLAGS = frozenset({"--force", "--json", "--check", "--no-check"})
"""Options of ``dynid identify`` without a value."""
AGAIN: Mapping[str, str] = MappingProxyType(
    {
        "assumed-law": "--set law=law.toml",
        "bounds-cost": "--estimator wls",
        "controller": "--set law=law.toml",
        "drive-gain": "--set selection=true",
        "impossible-estimate": "--estimator feasible",
        "indefinite-inertia": "--estimator feasible",
        "law-doubted": "--set law=law.toml",
        "missing-friction": "--set selection=true",
        "negative-friction": "--estimator feasible",
        "not-validated": "--hold-out 30%",
        "torque-offset": "--set selection=true",
        "unsynchronised": "--set delay_s=auto",
    }
)
"""Code -> option with which the identification is repeated."""
OFF = frozenset({"", "none", "false"})
"""Words of a setting that is turned off."""
EXCITE = frozenset({"low-excitation", "no-acceleration", "not-exciting", "open-parameters", "slow-motion"})
"""Codes that ask for a better motion."""
CHECK = frozenset(
    {
        "backward-time", "change", "clock-scale", "flipped", "frozen", "gravity-compensated", "gravity-direction",
        "inconsistent", "jitter", "missing", "noise", "not-finite", "offset", "push", "quantised", "repeated-samples",
        "repeated-stamp", "saturated", "spikes", "stamp-order", "swapped", "time-unit", "unexplained",
        "unit", "unusable", "velocity-scale", "wrapped",
    }
)  # fmt: skip
"""Codes of faults in a log, which are mended in the log, in its channel map or in the robot file."""


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The words of the command that made a page, from which the next commands are composed."""

    robot: str = "ROBOT"
    logs: tuple[str, ...] = ("LOG",)
    options: tuple[str, ...] = ()
    """Options of the command, without ``--out`` and ``--force``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the run, whether given or usual: what is set already is not proposed."""

    @classmethod
    def of(cls, command: str, settings: Mapping[str, str] | None = None) -> NextCommands:
        """Read the words of a ``dynid identify`` command; anything else gives placeholders."""
        known = dict(settings or {})
        words = shlex.split(command) if command.startswith("dynid identify ") else []
        given, options, k = [], [], 2
        while k < len(words):
            if not words[k].startswith("--"):
                given.append(words[k])
                k += 1
                continue
            size = 1 if words[k] in FLAGS or "=" in words[k] else 2
            if words[k].split("=")[0] not in ("--out", "--force", "--json"):
                options += words[k : k + size]
            k += size
        if len(given) < 2:
            return cls(settings=known)
        return cls(given[0], tuple(given[1:]), tuple(options), known)

    def after(self, code: str, where: str = "") -> str:
        """The commands to run after a finding with this code, one a line; empty where nothing is to be run.

        Args:
            code: Code of the finding.
            where: What the finding is about; the log that it names is the one to look at, all of them where it names
                none.
        """
        if code in AGAIN:
            return "" if self._is_set(AGAIN[code]) else self._again(AGAIN[code])
        if code in EXCITE:
            return shlex.join(["dynid", "excite", *self._values("--hold"), self.robot, "--out", "plan"])
        named = [log for log in self.logs if Path(log).name == where.partition(":")[0]]
        if code in CHECK:
            options = ["--robot", self.robot, *self._values("--map"), *self._values("--hold")]
            return "\n".join(shlex.join(["dynid", "check", log, *options]) for log in named or self.logs)
        if code in ("run-load", "runs-differ") and len(self.logs) > 1:
            one = (named or self.logs)[0]
            others, name = [log for log in self.logs if log != one], Path(one).stem
            return "\n".join([self._identify([one], f"{name}-alone"), self._identify(others, f"without-{name}")])
        return ""

    def _identify(self, logs: Sequence[str], out: str) -> str:
        """The same identification of other logs."""
        return shlex.join(["dynid", "identify", *self.options, self.robot, *logs, "--out", out])

    def _is_set(self, extra: str) -> bool:
        """Whether the run had this option, given or by default, so that it would change nothing."""
        key, _, value = (
            extra.removeprefix("--set ").removeprefix("--").replace("-", "_").replace(" ", "=").partition("=")
        )
        present = self.settings.get(key)
        if present is None:
            return False
        return present.lower() not in OFF if value == "true" else present == value

    def _again(self, extra: str) -> str:
        words, added = list(self.options), extra.split()
        if added[0] != "--set" and added[0] in words:
            del words[words.index(added[0]) : words.index(added[0]) + 2]
        return shlex.join(["dynid", "identify", self.robot, *self.logs, *words, *added, "--out", "again"])

    def _values(self, option: str) -> list[str]:
        """Every occurrence of an option with its value."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return [word for name, value in pairs if name == option for word in (name, value)]
