"""The verb that compares estimators on simulated logs of known truth."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid.cli.common import FORCE, JSON, POSITIVE, make_folder, print_json, robot_argument, verb
from dynid.cli.progress import progress
from dynid.errors import ArgumentError

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["compare"]


EXAMPLES = {"--rate": "100,1000", "--gains": "0,0.3", "--start": "0.1,0.5", "--torque-noise": "0.02,0.1"}
"""How an option is written; the others as noise of positions."""


def _numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in text.split(","))
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"{text} is not finite")
        return numbers
    except ValueError as error:
        example = EXAMPLES.get(option, "1e-4,1e-3")
        raise ArgumentError(f"{option}: {error}", remedy=f"Write {option} {example}.") from error


@verb(
    "dynid compare puma560 --noise 1e-5,1e-4,1e-3 --rate 100 --runs 20",
    "dynid compare tx40 --methods ols,wls+f,iv,didim --gains 0,0.3 --jobs 2 --out out/compare",
)
@robot_argument
@click.option("--noise", default="1e-4", show_default=True, help="Noise of positions [rad or m], comma separated.")
@click.option("--torque-noise", default="0.02", show_default=True, help="Share of each joint's rms torque.")
@click.option("--rate", default="100", show_default=True, help="Sampling rates of the log [Hz].")
@click.option("--quantisation", default="0", show_default=True, help="Steps of the encoders [rad or m].")
@click.option("--gains", default="0", show_default=True, help="Relative errors of the gains that are told.")
@click.option("--start", default="0.1", show_default=True, help="Relative errors of the parameters at the start.")
@click.option("--methods", default=None, help="Short names, comma separated; +f low-passes positions: wls+f.")
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="Logs per condition.")
@click.option("--duration", type=POSITIVE, default=10.0, show_default=True, help="Length of a log [s].")
@click.option(
    "--amplitude", type=POSITIVE, default=0.8, show_default=True, help="Excursion of the joints [rad or m], about."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of everything random.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that share the work.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for compare.html, .md, .json, and .svg where conditions differ.",
)
@FORCE
@JSON
def compare(
    robot: Robot,
    noise: str,
    torque_noise: str,
    rate: str,
    quantisation: str,
    gains: str,
    start: str,
    methods: str | None,
    runs: int,
    duration: float,
    amplitude: float,
    seed: int,
    jobs: int,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare estimators on a robot of known parameters: simulated loops, noisy logs, many runs.

    The robot gets rotor inertia, friction and offset in every joint unless it has its own.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small problems: threads only get in each other's way
    from dynid.studies.compare.compare_page import comparison_table, study_page, study_pictures
    from dynid.studies.compare.compared_methods import DEFAULT
    from dynid.studies.compare.condition import conditions
    from dynid.studies.compare.study import run_study
    from dynid.studies.compare.trial import Setting, planted_robot

    chosen = conditions(
        position_std=_numbers(noise, "--noise"),
        torque_std=_numbers(torque_noise, "--torque-noise"),
        rate_hz=_numbers(rate, "--rate"),
        quantisation=_numbers(quantisation, "--quantisation"),
        gain_error=_numbers(gains, "--gains"),
        start_error=_numbers(start, "--start"),
    )
    names = DEFAULT if methods is None else tuple(word.strip() for word in methods.split(","))
    setting = Setting(robot=planted_robot(robot), duration_s=duration, amplitude=amplitude)
    if out is not None:
        _refuse_overwriting(out, force)
    with _nothing_kept(), progress("comparing", float(len(chosen) * runs), "logs") as advance:
        study = run_study(
            setting, chosen, names, runs=runs, seed=seed, jobs=jobs, tell=lambda done, _, note: advance(done, note)
        )
    table = comparison_table(study)
    if as_json:
        print_json(study.to_json())
    else:
        click.echo(table.to_text())
    if out is not None:
        make_folder(out)
        _write(out, study_page(study).to_html(), table.to_markdown(), study.to_json(), study_pictures(study))
        click.echo(f"written: {out}", err=True)


@contextlib.contextmanager
def _nothing_kept() -> Iterator[None]:
    """An interrupt says what is true here: a comparison has no state to go on from."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("dynid: interrupted. A comparison keeps nothing; the same command starts anew.", err=True)
        raise click.exceptions.Exit(130) from None


NAMES = ("compare.html", "compare.md", "compare.json", "compare.svg")


def _refuse_overwriting(out: Path, force: bool) -> None:
    from dynid.errors import ExportError

    nearest_there = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not nearest_there.is_dir() or not os.access(nearest_there, os.W_OK):
        raise ExportError("no folder can be made there", path=out, remedy="Choose another --out.")
    there = [name for name in NAMES if (out / name).exists()]
    if there and not force:
        raise ExportError("the file exists already", path=out / there[0], remedy="Choose another --out, or --force.")


def _write(out: Path, page: str, markdown: str, data: dict[str, object], picture: str) -> None:
    import json

    from dynid.cli.common import _finite
    from dynid.files import write_atomically

    texts = (page, markdown + "\n", json.dumps(_finite(data), indent=1, allow_nan=False) + "\n", picture)
    for name, text in zip(NAMES, texts, strict=True):
        if text:
            write_atomically(out / name, text, force=True)
