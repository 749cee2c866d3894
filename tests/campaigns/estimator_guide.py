"""The tables of docs/choosing-an-estimator.md, measured: estimators on simulated loops of known truth.

Run ``python tests/campaigns/estimator_guide.py [--runs 5] [--jobs 2] [--only TITLE]``; it replaces what stands between
the markers of the page and leaves the prose around it. Finished trials are kept in ``out/guide`` and not run again.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

from benchmarks.estimators.compared_methods import method
from benchmarks.estimators.condition import Condition, conditions
from benchmarks.estimators.study import Outcome, Trials, run_trials, summarise
from benchmarks.estimators.trial import Setting, planted_robot
from dynid.files import write_atomically
from dynid.robot import zoo
from dynid.tables import Table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "choosing-an-estimator.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
FAST = ("ols", "wls+f", "iv", "didim")
LOOP = ("iv", "iv+f", "didim")
"""Methods that simulate the loop."""
ALL = ("ols", "wls+f", "iv", "iv+f", "didim")


@dataclass(frozen=True, slots=True)
class Question:
    """The robot, conditions and methods of one table."""

    title: str
    robot: str
    conditions: tuple[Condition, ...]
    methods: tuple[str, ...]
    runs: int = 20
    """Number of logs per condition; --runs overrides it."""
    bandwidth_hz: float = 3.0
    """Bandwidth of the control law [Hz]"""


def questions() -> tuple[Question, ...]:
    """All tables of the page, in order."""
    noises = conditions(position_std=(1e-5, 1e-4, 1e-3, 1e-2))
    return (
        Question("noise of the positions, 3R arm", "gautier_khalil_3r", noises, ALL),
        Question("noise of the positions, PUMA 560", "puma560", noises[:3], ALL),
        Question("noise of the positions, TX40", "tx40", noises[:3], ALL, runs=6, bandwidth_hz=12.0),
        Question("sampling rate", "gautier_khalil_3r", conditions(rate_hz=(50.0, 100.0, 1000.0)), FAST),
        Question("coarse encoders", "gautier_khalil_3r", conditions(quantisation=(1e-4, 1e-3, 5e-3)), FAST),
        Question(
            "wrong gains of the controller",
            "gautier_khalil_3r",
            conditions(position_std=(1e-3,), gain_error=(0.0, 0.05, 0.3)),
            ("wls+f", "iv", "didim"),
        ),
        Question(
            "bad start",
            "gautier_khalil_3r",
            conditions(start_error=(0.1, 0.3)),
            ("wls+f", "didim"),
        ),
    )


def kept_file(question: Question) -> Path:
    """Path of the file with finished trials, one per line."""
    return ROOT / "out" / "guide" / f"{question.title.replace(' ', '_').replace(',', '')}.jsonl"


def kept(question: Question) -> dict[tuple[int, int], tuple[Outcome, ...]]:
    """Outcomes of earlier trials by (condition, seed)."""
    lines = kept_file(question).read_text().splitlines() if kept_file(question).exists() else []
    rows = [row for row in map(json.loads, lines) if row["methods"] == list(question.methods)]
    return {(row["condition"], row["seed"]): tuple(Outcome(**entry) for entry in row["outcomes"]) for row in rows}


def measured(question: Question, runs: int, jobs: int) -> dict[str, Any]:
    """The numbers of the study; missing trials are run seed after seed, so that one may stop at any time."""
    setting = Setting(robot=planted_robot(zoo.get(question.robot)), bandwidth_hz=question.bandwidth_hz)
    methods = tuple(map(method, question.methods))
    done, path = kept(question), kept_file(question)
    tasks = [(place, seed) for seed in range(runs) for place in range(len(question.conditions))]
    missing = [task for task in tasks if task not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for place, seed, outcomes in run_trials(setting, question.conditions, methods, missing, jobs):
            done[place, seed] = outcomes
            row = {"condition": place, "seed": seed, "methods": question.methods}
            file.write(json.dumps({**row, "outcomes": [asdict(outcome) for outcome in outcomes]}) + "\n")
            file.flush()
            print(f"{question.title}: seed {seed}, {question.conditions[place].label}", flush=True)
    found: Trials = {place: [] for place in range(len(question.conditions))}
    for place, seed in sorted(done):
        if all((other, seed) in done for other in found):
            found[place].append(done[place, seed])
    return summarise(setting, question.conditions, methods, found).to_json()


def section(question: Question, study: dict[str, Any]) -> str:
    """Heading, table, and the best methods."""
    results = {(Condition(**r["condition"]), r["method"]): r for r in study["results"]}
    rows = [
        (f"`{name}`", *(_cell(results[c, name]) for c in question.conditions), _time(results, question, name))
        for name in question.methods
    ]
    heads = ["method", *(c.label for c in question.conditions), "time"]
    about = (
        f"{study['robot']}, {study['parameters']} base parameters, {study['runs']} logs of {study['duration_s']:g} s."
    )
    lines = [
        f"### {question.title[0].upper()}{question.title[1:]}",
        "",
        about,
        "",
        Table.of(heads, rows).to_markdown(),
        "",
    ]
    return "\n".join([*lines, *_best(question, results), ""])


def _cell(result: dict[str, Any]) -> str:
    if result["refused"] == result["runs"]:
        return "refused"
    torque, covered = result["torque_error"], result["coverage"]
    marks = f", refused {result['refused']} of {result['runs']}" if result["refused"] else ""
    marks += f", doubts the law in {result['warned']}" if result["warned"] else ""
    return f"{torque:.2g} % ({covered:.0f} %){marks}"


def _time(results: dict[tuple[Condition, str], dict[str, Any]], question: Question, name: str) -> str:
    times = [results[c, name]["relative_time"] for c in question.conditions]
    known = [t for t in times if t == t]
    return f"{min(known):.2g}-{max(known):.2g}" if known else ""


def _best(question: Question, results: dict[tuple[Condition, str], dict[str, Any]]) -> list[str]:
    """For each condition the methods within 20 % of the smallest torque error, the fastest first."""
    lines = []
    for condition in question.conditions:
        here = {name: results[condition, name] for name in question.methods}
        sound = {n: r for n, r in here.items() if not r["refused"] and r["torque_error"] == r["torque_error"]}
        without_loop = {n: r for n, r in sound.items() if n not in LOOP}
        groups = [("all methods", sound), ("without simulating the loop", without_loop)]
        parts = [f"{words}: {_near(group)}" for words, group in groups if group]
        lines.append(f"- {condition.label}; " + "; ".join(parts))
    return ["Methods within 20 % of the smallest torque error, the fastest first:", "", *lines]


def _near(group: dict[str, dict[str, Any]]) -> str:
    least = min(r["torque_error"] for r in group.values())
    near = [name for name, r in group.items() if r["torque_error"] <= 1.2 * least]
    near.sort(key=lambda name: group[name]["relative_time"])
    return ", ".join(f"`{name}`" for name in near) + f" ({least:.2g} %)"


def main() -> None:
    """Run the missing trials and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=0, help="logs per condition; as on the page by default")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--kept", action="store_true", help="write the page from finished trials alone")
    options = parser.parse_args()
    parts = []
    for question in questions():
        if options.only in question.title:
            runs = 0 if options.kept else options.runs or question.runs
            parts.append(section(question, measured(question, runs, options.jobs)))
    names = list(dict.fromkeys(name for question in questions() for name in question.methods))
    legend = "\n".join(f"- `{name}`: {method(name).title}" for name in names)
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    if not options.only:
        write_atomically(PAGE, f"{before}\n\n{legend}\n\n" + "\n".join(parts) + f"\n{after}", force=True)
    print("\n".join(parts))


if __name__ == "__main__":
    main()
