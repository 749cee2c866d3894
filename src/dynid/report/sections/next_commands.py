"""The command to run next, for every finding for which there is one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dynid.report.html_blocks import Code
from dynid.report.page import Chapter
from dynid.tables import Table

FLAGS = frozenset({"--force", "--json", "--check", "--no-check"})
"""Options of ``dynid identify`` without a value."""
AGAIN = {
    "assumed-loop": "--set law=law.toml",
    "controller": "--set law=law.toml",
    "impossible-estimate": "--estimator feasible",
    "negative-friction": "--estimator feasible",
    "not-validated": "--hold-out 30%",
    "delay": "--set delay_s=auto",
}
"""Code -> option with which the identification is repeated."""
EXCITE = frozenset({"low-excitation", "no-acceleration", "open-parameters", "slow-joint"})
"""Codes that ask for a better motion."""


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The words of the command that made a page, from which the next commands are composed."""

    robot: str = "ROBOT"
    logs: tuple[str, ...] = ("LOG",)
    options: tuple[str, ...] = ()
    """Options of the command, without ``--out`` and ``--force``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the run, whether given or usual: what is set already is not proposed."""
    out: str = "result"
    """Folder of the run."""

    @classmethod
    def of(cls, settings: Chapter) -> NextCommands:
        """Read the ``dynid identify`` command of a page's settings; anything else gives placeholders."""
        command, table = settings.blocks[:2]
        assert isinstance(command, Code)
        assert isinstance(table, Table)
        known = {str(key): str(value) for key, value in table.rows}
        words = shlex.split(command.text) if command.text.startswith("dynid identify ") else []
        given, options, out, k = [], [], "result", 2
        while k < len(words):
            size = 2 if words[k].startswith("--") and words[k] not in FLAGS and "=" not in words[k] else 1
            if not words[k].startswith("--"):
                given.append(words[k])
            elif words[k] == "--out":
                out = words[k + 1]
            elif words[k].split("=")[0] not in ("--out", "--force", "--json"):
                options += words[k : k + size]
            k += size
        return cls(given[0], tuple(given[1:]), tuple(options), known, out) if len(given) > 1 else cls(settings=known)

    def onward(self, *, passed: bool) -> str:
        """The commands to run after the verdict, one a line."""
        if not passed:
            return self._check(self.logs)
        wanted = (["codegen", self.out, "--out", f"{self.out}_c"],
                  ["export", self.out, "--to", "tables", "--out", f"{self.out}_tables"])  # fmt: skip
        return "\n".join(shlex.join(["dynid", *words]) for words in wanted)

    def after(self, code: str, where: str = "") -> str:
        """The commands to run after a finding with this code, one a line; empty where nothing is to be run.

        Args:
            code: Code of the finding.
            where: What the finding is about; the log that it names is the one to look at.
        """
        if code in AGAIN:
            return "" if self._is_set(AGAIN[code]) else self._again(AGAIN[code])
        if code in EXCITE:
            return shlex.join(["dynid", "excite", *self._values("--hold"), self.robot, "--out", "plan"])
        named = [log for log in self.logs if Path(log).name == where.partition(":")[0]]
        if code == "runs-differ" and len(self.logs) > 1:
            one = (named or self.logs)[0]
            others, name = [log for log in self.logs if log != one], Path(one).stem
            return "\n".join([self._identify([one], f"{name}-alone"), self._identify(others, f"without-{name}")])
        return self._check(named)

    def _check(self, logs: Sequence[str]) -> str:
        options = ["--robot", self.robot, *self._values("--map"), *self._values("--hold")]
        return "\n".join(shlex.join(["dynid", "check", log, *options]) for log in logs)

    def _identify(self, logs: Sequence[str], out: str) -> str:
        return shlex.join(["dynid", "identify", *self.options, self.robot, *logs, "--out", out])

    def _is_set(self, extra: str) -> bool:
        """Whether the run had this option, given or by default, so that it would change nothing."""
        words = extra.removeprefix("--set ").removeprefix("--").replace(" ", "=")
        key, _, value = words.partition("=")
        return self.settings.get(key.replace("-", "_")) == value

    def _again(self, extra: str) -> str:
        words, added = list(self.options), extra.split()
        if added[0] != "--set" and added[0] in words:
            del words[words.index(added[0]) : words.index(added[0]) + 2]
        return shlex.join(["dynid", "identify", self.robot, *self.logs, *words, *added, "--out", "again"])

    def _values(self, option: str) -> list[str]:
        """Every occurrence of an option with its value."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return [word for name, value in pairs if name == option for word in (name, value)]
