"""The commands on run folders: report, export, rerun."""

from __future__ import annotations

import contextlib
import io
import math
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click import argument, option

from dynid import errors
from dynid.cli.group import ANYWHERE
from dynid.cli.options import EXISTING, MAP, OUT, RecipeCommand, command, output_options, refuse_run
from dynid.cli.screen import echo, print_json, print_verdict, show_finding
from dynid.safe_files import check_listed, file_digest, make_folder
from dynid.safe_files.small_files import read_json

KEYS_NOT_COMPARED = ("sha256", "source", "seconds", "extras")
"""Keys of results that may differ between equal runs: digests and paths of logs, times, residuals of solvers."""


@command(argument("folder", type=EXISTING), output_options("the report; the run's own by default"),
         examples=["dynid report result/", "dynid report result/ --out page"])  # fmt: skip
def report(folder: str, out: Path | None, force: bool, as_json: bool) -> None:
    """Write the report of a run again.

    The files are report.html, report.md and report.json. Those in the run's own folder are overwritten.
    """
    from dynid.report.page import Page
    from dynid.workflows.run_folder import REPORTS, read_run, rewrite_page

    file = Path(folder) / "report.json"
    target = out or Path(folder)
    read_run(Path(folder))  # refuses a folder that no run of dynid wrote
    try:
        check_listed(file)  # one of the run's own files
        page = Page.read(file)
    except errors.DataError as error:
        remedy = f"Make it again: dynid rerun {folder}"
        raise errors.DataError(error.reason, path=error.path, place=error.place, remedy=remedy) from error
    if target.resolve() == Path(folder).resolve():
        rewrite_page(target, page)
    else:
        refuse_run(target, "the report")
        make_folder(target)
        for name in REPORTS:
            page.write(target / name, force=force)
    if as_json:
        echo(page.to_json(), nl=False)
    else:
        echo(f"written: {', '.join(str(target / name) for name in REPORTS)}")


@command(
    argument("run", type=EXISTING), argument("logs", nargs=-1, type=EXISTING),
    option("--to", "kind", required=True, metavar="KIND",
           help="What to write: tables (parameters, and predictions of the logs; Parquet where pyarrow is "
           "installed, CSV elsewhere), parquet, csv; of a load tables, urscript (payload of a Universal Robots "
           "arm) or ros2 (gravity compensation of control_filters)."),
    MAP, *OUT,
    examples=["dynid export result/ --to tables --out tables",
              "dynid export result/ run9.csv --map map.toml --to csv --out tables",
              "dynid export load/ --to urscript --out payload"],
)  # fmt: skip
def export(
    run: str, logs: tuple[str, ...], kind: str, channel_map: str | None, out: Path, force: bool, as_json: bool
) -> None:
    """Write a saved result for other programs.

    RUN is a folder that dynid identify wrote, or its result.json; for a load one that dynid load wrote. LOGS are
    processed like those of the run; they may be logs of the identification.
    """
    from dynid.workflows.export_run import run_export

    refuse_run(out, "other files")
    files = run_export(run, kind, out, logs, channel_map=channel_map, notice=show_finding, force=force)
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        echo(f"written: {', '.join(str(file) for file in files)}")


@command(argument("folder", type=EXISTING), output_options("the new run; without it the new run is not kept"),
         examples=["dynid rerun result/", "dynid rerun result/ --out again"])  # fmt: skip
def rerun(folder: str, out: Path | None, force: bool, as_json: bool) -> None:
    """Repeat a run from its folder, and compare the results.

    The command and its input files are shown first. Nothing is written but the folder given by --out: a run whose
    record names options that write files is refused. Changed input files and versions are listed. The exit code is 0
    if the result is the same, and 1 if it differs.
    """
    from dynid.workflows.run_folder import read_run, versions

    run_folder = Path(folder)
    facts = read_run(run_folder)
    if not facts["finished"]:
        remedy = f"Give its command again: {facts['command']}"
        raise errors.DataError("the run was interrupted or refused, and has no result", path=folder, remedy=remedy)
    if facts["arguments"] is None:
        reason = "the run was started from Python, not by a command"
        raise errors.DataError(reason, path=folder, remedy="Repeat it in Python.")
    check_listed(run_folder / facts["result"])
    flags, words = _safe_arguments(facts, run_folder)
    echo(f"repeats: {shlex.join(['dynid', *flags, facts['verb'], *words])}", err=True)
    for entry in facts["inputs"]:
        echo(f"reads: {entry['path']}", err=True)
    changed = [entry["path"] for entry in facts["inputs"] if _digest(entry["path"]) != entry["sha256"]]
    now = versions()
    other_versions = [
        f"{name} {old} -> {now.get(name)}" for name, old in facts["versions"].items() if now.get(name) != old
    ]
    with tempfile.TemporaryDirectory() as temporary:
        target = out or Path(temporary) / "run"
        code = _invoke([*flags, facts["verb"], "--out", str(target), *(["--force"] if force else []), *words])
        if code > 1:  # an error, which was printed; 1 is a verdict that failed
            sys.exit(code)
        old, new = (read_json(one / facts["result"], odd_names=True) for one in (run_folder, target))
    differing = [{"place": where, "before": a, "now": b} for where, a, b in _differences(old, new)]
    same = not differing and code == facts["exit_code"]
    if as_json:
        print_json({"same": same, "inputs_changed": changed, "versions_changed": other_versions,
                    "differing": differing[:50], "differing_count": len(differing),
                    "exit_code_before": facts["exit_code"], "exit_code_now": code})  # fmt: skip
    else:
        print_verdict("result: the same" if same else f"result: differs in {len(differing)} places", good=same)
        for entry in differing[:5]:  # as many as fit a screen; --json has fifty
            echo(f"  {entry['place']}: {entry['before']} -> {entry['now']}")
        echo(f"inputs: {'changed since: ' + ', '.join(changed) if changed else 'unchanged'}")
        echo(f"versions: {', '.join(other_versions) if other_versions else 'unchanged'}")
        if out is not None:
            echo(f"written: {out}")
    sys.exit(0 if same else 1)


def _digest(path: str) -> str:
    """Compute the digest of an input file of the run.

    Raises:
        LogReadError: The file is missing.
    """
    if not Path(path).exists():
        raise errors.LogReadError("an input file of the run is missing", path=path, remedy="Restore it at this place.")
    return file_digest(path)


REPEATABLE_VERBS = ("identify", "load", "validate", "excite", "actuate")
"""Commands whose runs can be repeated."""
REFUSED_PARAMETERS = ("out", "force", "help")
"""Parameters that the record of a run must not give: whoever repeats it decides where results go."""


def _safe_arguments(facts: Mapping[str, Any], folder: Path) -> tuple[list[str], list[str]]:
    """Check the recorded arguments of a run, because a stranger may have written the record.

    The parser of the command reads them. A record may give all parameters of its command but `REFUSED_PARAMETERS`, and
    all settings of its recipe, but no address of a cluster.

    Returns:
        The words of `ANYWHERE`, which belong to the whole program; and those of the command, without any of them, so
        that the program reads exactly the words that were checked.

    Raises:
        DataError: The record names another command, an option or a setting that no record may give.
    """
    from dynid.parallel.engine_names import read_engine
    from dynid.settings import split_word

    def refusal(reason: str, where: str = "arguments") -> errors.DataError:
        remedy = f"Give the command yourself: {facts['command'][:500]}"
        return errors.DataError(reason, path=folder, place=where, remedy=remedy)

    root = click.get_current_context().find_root().command
    verb = facts["verb"]
    known = root.get_command(click.get_current_context(), verb) if isinstance(root, click.Group) else None
    if verb not in REPEATABLE_VERBS or not isinstance(known, RecipeCommand):
        raise refusal(f"a run of '{verb}' is not repeated", "verb")
    flags = [word for word in facts["arguments"] if word in ANYWHERE]
    words = [word for word in facts["arguments"] if word not in ANYWHERE]
    try:
        given = known.given(words)
        settings = [split_word(word)[0] for word in given.get("settings") or ()]
        scheduler = read_engine(given.get("engine") or "local").scheduler
    except (click.UsageError, errors.ArgumentError) as error:
        raise refusal(str(error)) from error
    allowed = set(known.recipe_keys())
    for key in (*given, *settings):
        if key in REFUSED_PARAMETERS or (key in settings and key not in allowed):
            raise refusal(f"no repeated run may give '{key[:60]}'")
    if scheduler is not None:
        raise refusal("no repeated run may give the address of a cluster")
    return flags, words


def _invoke(arguments: list[str]) -> int:
    """Run another command within this one; returns its exit code. Its output is hidden, its errors are shown."""
    root = click.get_current_context().find_root().command
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            root.main(args=arguments, prog_name="dynid", standalone_mode=False)
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def _differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (place, old value, new value) wherever two results differ by more than rounding."""
    from dynid.spatial import SIX_DIGITS

    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            if key not in KEYS_NOT_COMPARED:
                yield from _differences(old.get(key), new.get(key), f"{place}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _differences(a, b, f"{place}/{k}")
    elif isinstance(old, float) and isinstance(new, int | float):
        if not math.isclose(old, new, rel_tol=SIX_DIGITS) and not (math.isnan(old) and math.isnan(new)):
            yield place, old, new
    elif old != new:
        yield place, old, new
