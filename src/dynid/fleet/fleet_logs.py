"""The logs of a fleet: which files there are, to which arm each belongs, and an identity by which changes are noticed.

A pattern such as ``logs/{arm}/*.parquet`` or ``s3://bucket/{arm}/{date}.mcap`` finds the files; ``{arm}`` stands for
the name of the arm and ``{date}`` for a date such as 2026-03-01, which replaces the first stamp of the log.
"""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError, DataError
from dynid.logs.channel_map import ChannelMap
from dynid.logs.reading import runs_in
from dynid.logs.recording import Recording

PLACEHOLDERS = re.compile(r"\{(arm|date)\}")
"""Placeholders of a pattern."""
_REMEDY = "Give a pattern such as 'logs/{arm}/*.parquet'; quote it, so that the shell leaves it alone."

_DATE_REMEDY = "Write dates as 2026-03-01, or omit {date} from the pattern."


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLog:
    """One log of one arm."""

    arm: str
    path: str | Recording
    """Path of a file or folder, URL, or a recording in memory."""
    identity: str = ""
    """Digest of size and time of the last change, or of what a store says of the file: it changes with the content,
    and needs no reading. Empty for a recording."""
    start_s: float | None = None
    """Start that the file's name states [s, Unix time]; None for the first stamp of the log."""
    problem: str = ""
    """Why the log cannot be used; empty where it can."""

    @property
    def name(self) -> str:
        """Path, or source of a recording."""
        return self.path.source if isinstance(self.path, Recording) else self.path


def find_logs(
    patterns: str | Sequence[str], channel_map: ChannelMap | Mapping[str, Any] | str | Path | None = None
) -> list[FleetLog]:
    """Find the logs of a fleet, sorted by arm and path.

    Args:
        patterns: One or several paths or URLs with ``{arm}``, optionally ``{date}``, and the wildcards ``*``, ``?`` and
            ``**``. A folder on this machine stands for the logs in it.
        channel_map: Channel map of the logs: it says whether the files of a folder are one log.

    Raises:
        ArgumentError: A pattern does not say where the arm's name stands.
        DataError: No file fits a pattern, or none of them has a date where the pattern says so.
    """
    found: dict[str, FleetLog] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if "{arm}" not in pattern:
            raise ArgumentError(f"'{pattern}' does not say which part is the arm's name", remedy=_REMEDY)
        if unknown := set(re.findall(r"\{[^}]*\}", pattern)) - {"{arm}", "{date}"}:
            raise ArgumentError(f"'{pattern}': {sorted(unknown)[0]} is not known", remedy="Use {arm} and {date}.")
        full_pattern, names = _matches(pattern)
        expression = _expression(full_pattern)
        candidates = [
            _log(expression, path, run, identity or _local_identity(Path(run)))
            for path, identity in names
            for run in ([path] if "://" in path else map(str, runs_in(path, channel_map)))
        ]
        logs = [log for log in candidates if log is not None]
        if not logs:
            raise DataError("no file fits the pattern", path=pattern, remedy=_REMEDY)
        found.update({str(log.path): log for log in logs})
    listed = sorted(found.values(), key=lambda log: (log.arm, str(log.path)))
    if all(log.problem for log in listed):
        raise DataError(listed[0].problem, path=str(listed[0].path), remedy=_DATE_REMEDY)
    return listed


def _matches(pattern: str) -> tuple[str, list[tuple[str, str]]]:
    """List the paths or URLs that fit a pattern with wildcards in place of its placeholders.

    Returns:
        The pattern in the form in which its store writes URLs, and for each file path or URL and identity; the
        identity is empty for files on this machine.
    """
    with_wildcards = PLACEHOLDERS.sub("*", pattern)
    if "://" not in pattern:
        return pattern, [(path, "") for path in sorted(glob.glob(with_wildcards, recursive=True))]
    try:
        import fsspec
    except ImportError as error:
        raise ArgumentError(
            "URLs of logs need fsspec", path=pattern, remedy="Install it: pip install 'dynid[cluster]'."
        ) from error
    try:
        system, path = fsspec.core.url_to_fs(with_wildcards)
        details: dict[str, Any] = system.glob(path, detail=True)
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"the store cannot be listed: {error}", path=pattern, remedy="Check the URL.") from error
    # stores name the facts that change with a file differently
    keys = ("size", "ETag", "etag", "checksum", "md5Hash", "mtime", "LastModified", "last_modified", "created")
    found = []
    for name, entry in sorted(details.items()):
        facts = repr([f"{key}={entry[key]}" for key in keys if key in entry])
        found.append((system.unstrip_protocol(name), hashlib.sha256(facts.encode()).hexdigest()))
    return system.unstrip_protocol(system._strip_protocol(pattern)), found


def _local_identity(path: Path) -> str:
    """Digest the sizes and times of the last change of a file, or of all files of a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    facts = [f"{file.name} {(status := file.stat()).st_size} {status.st_mtime_ns}" for file in files]
    return hashlib.sha256("\n".join(facts).encode("utf-8", "surrogateescape")).hexdigest()


def _expression(pattern: str) -> re.Pattern[str]:
    """Make the regular expression of a pattern; a name has no slash in it, and is the same wherever it stands."""
    parts = []
    seen = set()
    for token in re.split(r"(\{arm\}|\{date\}|\*\*/|\*\*|\*|\?)", pattern):
        if token in ("{arm}", "{date}"):
            name = token[1:-1]
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+)")
            seen.add(name)
        else:
            wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
            parts.append(wild.get(token, re.escape(token)))
    return re.compile("".join(parts))


def _log(expression: re.Pattern[str], path: str, run: str, identity: str) -> FleetLog | None:
    """Make a log whose arm and date the path states; None where the path does not fit the expression.

    Args:
        expression: The pattern.
        path: Path of a file or folder that the wildcards found.
        run: The file itself, or one run in the folder.
        identity: Identity of the run.
    """
    fits = expression.fullmatch(path) or expression.fullmatch(path.replace("\\", "/"))
    if fits is None:
        return None
    named = fits.groupdict()
    start, problem = (None, "") if named.get("date") is None else _date(named["date"])
    return FleetLog(arm=named["arm"], path=run, identity=identity, start_s=start, problem=problem)


def _date(text: str) -> tuple[float | None, str]:
    """Read a date in a file's name: its time [s, Unix time], or None and the problem."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None, f"'{text}' is no date"
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp(), ""
