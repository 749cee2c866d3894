"""The commands to run after a verdict or a finding, composed from the command that made the page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dynid.report.html_blocks import Code
from dynid.report.page import Chapter
from dynid.tables import Table

FLAGS = ("--check", "--no-check")
"""Options of ``dynid identify`` without a value that the command of a page may have."""
REPEATED_WITH = {
    "assumed-loop": ("law", "law.toml"),
    "controller": ("law", "law.toml"),
    "impossible-estimate": ("estimator", "feasible"),
    "negative-friction": ("estimator", "feasible"),
    "not-validated": ("hold_out", "30%"),
    "delay": ("delay_s", "auto"),
}
"""Code of a finding -> setting of the recipe, and its value, with which the identification is to be repeated."""
NEEDS_MOTION = ("no-acceleration", "open-parameters", "slow-joint")
"""Codes of findings that ask for a better motion."""


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The parts of the command that made a page; where there is none, placeholders in capitals."""

    robot: str = "ROBOT"
    """The robot, as it was given."""
    logs: tuple[str, ...] = ("LOG",)
    """The logs, as they were given."""
    options: tuple[tuple[str, ...], ...] = ()
    """Options of the command, each with its value, without ``--out``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Name -> value of all settings of the run, also those that were not given; they are not proposed again."""
    out: str = "result"
    """Folder of the run."""

    @classmethod
    def of(cls, settings: Chapter) -> NextCommands:
        """Read the ``dynid identify`` command of a page; any other command gives placeholders.

        Args:
            settings: The chapter about the settings, see `dynid.report.provenance.settings_chapter`.
        """
        command, table = settings.blocks[:2]
        assert isinstance(command, Code)
        assert isinstance(table, Table)
        known = {str(key): str(value) for key, value in table.rows}
        words = iter(shlex.split(command.text)[2:] if command.text.startswith("dynid identify ") else ())
        given: list[str] = []
        options: dict[str, list[tuple[str, ...]]] = {}  # option -> each occurrence, with its value
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
        """Write the commands to run after a good or a bad verdict, one a line."""
        if not passed:
            return self._check(self.logs)
        return (f"{_line('codegen', self.out, '--out', f'{self.out}_c')}\n"
                f"{_line('export', self.out, '--to', 'tables', '--out', f'{self.out}_tables')}")  # fmt: skip

    def after(self, code: str, where: str = "") -> str:
        """Write the commands to run after a finding, one a line; empty where nothing is to be run.

        Args:
            code: Code of the finding.
            where: `Finding.where`; the log that it names before a colon is the one to look at.
        """
        if code in REPEATED_WITH:
            key, value = REPEATED_WITH[code]
            is_set = self.settings.get(key) == value
            return "" if is_set else self._identify(self.logs, "again", "--set", f"{key}={value}", without=key)
        if code in NEEDS_MOTION:
            return _line("excite", *self._values("--hold"), self.robot, "--out", "plan")
        named = [log for log in self.logs if Path(log).name == where.partition(":")[0]]
        if code == "runs-differ" and len(self.logs) > 1:
            suspect = (named or self.logs)[0]
            others = [log for log in self.logs if log != suspect]
            name = Path(suspect).stem
            return f"{self._identify([suspect], f'{name}-alone')}\n{self._identify(others, f'without-{name}')}"
        return self._check(named)

    def _check(self, logs: Sequence[str]) -> str:
        """Write a command that diagnoses each log."""
        options = ["--robot", self.robot, *self._values("--map", "--hold")]
        return "\n".join(_line("check", log, *options) for log in logs)

    def _identify(self, logs: Sequence[str], out: str, *added: str, without: str = "") -> str:
        """Write a command that identifies the robot again.

        Args:
            logs: The logs.
            out: The folder.
            *added: Further words.
            without: Setting whose option is left out, because the further words state it.
        """
        kept = (word for option in self.options if option[0] != f"--{without.replace('_', '-')}" for word in option)
        return _line("identify", self.robot, *logs, *kept, *added, "--out", out)

    def _values(self, *names: str) -> list[str]:
        """List the words of every occurrence of some options."""
        return [word for option in self.options if option[0] in names for word in option]


def _line(*words: str) -> str:
    """Write a command of dynid as a line for a shell."""
    return shlex.join(["dynid", *words])
