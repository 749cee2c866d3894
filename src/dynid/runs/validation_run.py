"""Judge a saved result on logs that it has not seen: what ``dynid validate`` does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError
from dynid.export.result_file import read_result
from dynid.findings import Finding
from dynid.links.common.copies import SeenSamples, check_copies
from dynid.links.common.held_out_causes import explain_failure
from dynid.links.common.kept_faults import unmended
from dynid.links.log_reader import ChannelMapSource, LogReader, Notice, Progress, log_finding
from dynid.links.recipe import Recipe
from dynid.links.validation import Validation, validate
from dynid.logs.reading import log_digest
from dynid.report.report import identification_page
from dynid.runs.identification_run import gather_too
from dynid.runs.run_folder import Origin, RunRequest, open_run

USED_SETTINGS = (
    "gate", "cutoff_hz", "band_hz", "delay_s", "dead_band", "rows", "time", "max_gap_s", "judge_rest", "trim_s",
    "limit_percent", "per_run",
)  # fmt: skip
"""Settings of a recipe that a validation uses; the others belong to the identification."""


def run_validation(
    result: str | Path,
    logs: Sequence[str | Path],
    recipe: Recipe | None = None,
    *,
    channel_map: ChannelMapSource | None = None,
    out: RunRequest | str | Path | None = None,
    progress: Progress | None = None,
    notice: Notice = log_finding,
) -> Validation:
    """Compare the torques that a saved result predicts with those of logs that it has not seen.

    Args:
        result: A folder that `run_identification` wrote, or its ``result.json``.
        logs: The logs.
        recipe: Settings of the gate, the processing and the comparison; its band is that of the result if None.
        channel_map: Channel map of the logs, its file, or the name of a built-in one.
        out: Folder for the verdict and a report; None writes nothing.
        progress: Called with the finished share (0 to 1) and a short description of the current step.
        notice: Called with every finding that a person should see at once.

    Raises:
        ArgumentError: A log is given twice, or the result was identified from it.
        DataError: The gate refuses a log, it holds a part of a log that the result was identified from, or the result
            cannot be read.

    Example:
        >>> written = dynid.write_result(fit, folder / "judged.json")
        >>> logs = [folder / "run1.csv"]
        >>> judged = dynid.runs.run_validation(folder / "judged.json", logs, channel_map=folder / "map.toml")
        >>> judged.joint_names
        ('joint1', 'joint2', 'joint3')
    """
    check_copies(logs)
    saved = read_result(result)
    fit = saved.identification()
    used = {facts["sha256"]: facts["source"] for facts in saved.content["data"] if facts["sha256"]}
    for log in logs:
        _check_unseen(log, log_digest(log), used)
    fitted = [(facts["source"], facts.get("stretch_keys", ())) for facts in saved.content["data"]]
    given = recipe or Recipe()
    if given.gravity is not None:
        raise ArgumentError(
            "a result keeps the gravity under which it was identified",
            remedy="Omit gravity, or identify again with it.",
        )
    _note_unused(given, notice)
    chosen = replace(given, band_hz=fit.equations.band_hz) if given.band_hz is None else given
    origin = Origin.of_call("run_validation", chosen.to_dict(), [result, *logs, channel_map])
    with nullcontext() if out is None else open_run(RunRequest.of(out), origin, ["validation.json"]) as run:
        gathered: list[Finding] = []
        reader = LogReader(robot=fit.robot, recipe=chosen, channel_map=channel_map, progress=progress,
                           notice=gather_too(gathered, notice), seen=SeenSamples(fitted))  # fmt: skip
        runs = reader.experiments(logs, for_validation=True, cutoff_hz=common_cutoff(saved.content["data"]))
        for log, experiment in zip(logs, runs, strict=True):
            # a folder whose files a map names is known only once it is read
            _check_unseen(log, experiment.sha256, used)
        verdict = validate(fit, runs, limit=chosen.limit_percent, band_hz=chosen.band_hz, trim_s=chosen.trim_s)
        verdict = replace(verdict, doubts=unmended([*gathered, *fit.estimate.findings], chosen.per_run))
        verdict = replace(verdict, causes=explain_failure(fit, verdict, runs))
        if chosen.band_hz is not None and chosen.band_hz == fit.equations.band_hz:  # a result holds no samples
            verdict = replace(verdict, training_error=saved.training_error_in_band)
        if run is not None:
            run.write("validation.json", json.dumps(verdict.to_json(), indent=1) + "\n")
            run.write_page(identification_page(fit, verdict, runs, [run.settings()], saved.content["data"], gathered))
            run.finish("validation.json", 0 if verdict.passed else 1, [*gathered, *verdict.causes])
    return verdict


def _note_unused(recipe: Recipe, notice: Notice) -> None:
    """Say which settings of a recipe have no effect, because the result is finished."""
    usual = Recipe()
    changed = [key for key in recipe.__dataclass_fields__ if getattr(recipe, key) != getattr(usual, key)]
    if unused := [key for key in changed if key not in USED_SETTINGS]:
        message = f"{', '.join(unused)} of the recipe {'has' if len(unused) == 1 else 'have'} no effect: the result is "
        notice(Finding(code="unused-setting", severity="note", where="recipe", message=f"{message}finished"))


def common_cutoff(data: Sequence[Mapping[str, Any]]) -> float | None:
    """The cutoff of all logs that a result was identified from [Hz]; None where they have none, or several."""
    found = {facts.get("cutoff_hz") for facts in data}
    return found.pop() if len(found) == 1 else None


def _check_unseen(log: str | Path, digest: str, used: Mapping[str, str]) -> None:
    """Refuse a log that the result was identified from.

    Args:
        log: The log.
        digest: Its digest.
        used: Digest -> name of every log that the result was identified from.
    """
    if digest in used:
        raise ArgumentError(
            f"{log} was used for the identification, as {used[digest]}", remedy="Give a log that it has not seen."
        )
