"""The command to run next, for every finding for which there is one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dynid.report.html_blocks import Code
from dynid.report.page import Chapter
from dynid.tables import Table

FLAGS = ("--check", "--no-check")
"""Options without a value that the command of a page may have."""
AGAIN = {
    "assumed-loop": ("law", "law.toml"),
    "controller": ("law", "law.toml"),
    "impossible-estimate": ("estimator", "feasible"),
    "negative-friction": ("estimator", "feasible"),
    "not-validated": ("hold_out", "30%"),
    "delay": ("delay_s", "auto"),
}
"""Code -> setting with which the identification is repeated."""
EXCITE = frozenset({"low-excitation", "no-acceleration", "open-parameters", "slow-joint"})
"""Codes that ask for a better motion."""


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The words of the command that made a page, from which the next commands are composed."""

    robot: str = "ROBOT"
    logs: tuple[str, ...] = ("LOG",)
    options: tuple[tuple[str, ...], ...] = ()
    """Options of the command with their values, without ``--out``."""
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
        words = iter(shlex.split(command.text)[2:] if command.text.startswith("dynid identify ") else ())
        given, options = list[str](), dict[str, list[tuple[str, ...]]]()
        for word in words:
            if not word.startswith("--"):
                given.append(word)
            else:
                options.setdefault(word, []).append((word,) if word in FLAGS else (word, next(words)))
        if len(given) < 2:
            return cls(settings=known)
        out = options.pop("--out", [("--out", "result")])[-1][-1]
        return cls(given[0], tuple(given[1:]), tuple(one for each in options.values() for one in each), known, out)

    def onward(self, *, passed: bool) -> str:
        """The commands to run after the verdict, one a line."""
        if not passed:
            return self._check(self.logs)
        return (f"{_line('codegen', self.out, '--out', f'{self.out}_c')}\n"
                f"{_line('export', self.out, '--to', 'tables', '--out', f'{self.out}_tables')}")  # fmt: skip

    def after(self, code: str, where: str = "") -> str:
        """The commands to run after a finding with this code, one a line; empty where nothing is to be run.

        Args:
            code: Code of the finding.
            where: What the finding is about; the log that it names is the one to look at.
        """
        if code in AGAIN:
            key, value = AGAIN[code]
            is_set = self.settings.get(key) == value
            return "" if is_set else self._identify(self.logs, "again", "--set", f"{key}={value}", without=key)
        if code in EXCITE:
            return _line("excite", *self._values("--hold"), self.robot, "--out", "plan")
        named = [log for log in self.logs if Path(log).name == where.partition(":")[0]]
        if code == "runs-differ" and len(self.logs) > 1:
            one = (named or self.logs)[0]
            others, name = [log for log in self.logs if log != one], Path(one).stem
            return f"{self._identify([one], f'{name}-alone')}\n{self._identify(others, f'without-{name}')}"
        return self._check(named)

    def _check(self, logs: Sequence[str]) -> str:
        options = ["--robot", self.robot, *self._values("--map", "--hold")]
        return "\n".join(_line("check", log, *options) for log in logs)

    def _identify(self, logs: Sequence[str], out: str, *added: str, without: str = "") -> str:
        kept = (word for option in self.options if option[0] != f"--{without.replace('_', '-')}" for word in option)
        return _line("identify", self.robot, *logs, *kept, *added, "--out", out)

    def _values(self, *names: str) -> list[str]:
        """Every occurrence of some options with its value."""
        return [word for option in self.options if option[0] in names for word in option]


def _line(*words: str) -> str:
    return shlex.join(["dynid", *words])
