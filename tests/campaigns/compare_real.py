"""Estimators on the real logs: does anything beat weighted least squares with good filtering?

Run ``python tests/campaigns/compare_real.py [data set ...]``; it reads ../shared/datasets and prints the table of
docs/compare-real.md. Results are stored in out/compare_real and not computed again.

All methods fit the same plain model (links, rotor inertia, viscous and dry friction, offsets) to the same training
rows; `real_data` measures the held-out error. No log describes its control law completely, so the closed-loop methods
assume one, as they do by default. The log of kuka_kr300 has the commanded motion, which is used as well.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from real_logs import DATA, ROOT, SETS, DataSet, held_out_error, split
from scipy.io import loadmat

import dynid
from dynid.estimators.closed_loop.added_loops import SplinedMotion
from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import Estimator
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Chain, Processing
from dynid.processing.uniform import Cleaning
from dynid.safe_files import write_atomically
from dynid.tables import Table

KUKA_OFFSET = np.deg2rad([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
"""Zero positions of the KR300's commanded joint angles in the robot file [rad]."""

Rows = list[tuple[str, float | None, float, str]]
"""Method, held-out error [%] or None if refused, processor time [s], reason of the refusal or doubt about the law."""


def position_cutoff(data: DataSet, log: Recording, band: float) -> float:
    """Choose the cutoff of the positions from their noise [Hz], between 1.5 and 3 times the band."""
    chosen = Chain.start(log, Processing(band_hz=band, cleaning=Cleaning(max_gap_s=data.max_gap_s))).options.cutoff_hz
    assert isinstance(chosen, float)
    return chosen


def commanded_motions(data: DataSet) -> tuple[SplinedMotion, ...]:
    """Commanded motions in the training files of kuka_kr300."""

    def started(file: str) -> SplinedMotion:
        content = loadmat(DATA / data.name / file, squeeze_me=True, struct_as_record=False)
        clock, q = content["rec"].time_cont, np.asarray(content["ref_kin"].phi_r_all, dtype=float)
        return SplinedMotion([(clock, q + KUKA_OFFSET)])

    return tuple(started(file) for file in data.files[:-1])


def methods() -> list[tuple[str, str, Estimator]]:
    """(name, kind of data, estimator)."""
    return [
        ("WLS, positions not low-passed", "raw", dynid.WLS()),
        ("WLS, positions low-passed", "smooth", dynid.WLS()),
        ("WLS, both sides low-passed", "band", dynid.WLS()),
        ("IV, assumed loop", "loop", dynid.estimators.InstrumentalVariables()),
        ("DIDIM, assumed loop", "loop", dynid.estimators.DIDIM()),
        ("IV, commanded motion", "commanded", dynid.estimators.InstrumentalVariables()),
    ]


def evaluate(data: DataSet) -> Rows:
    """Compute the held-out error of every method on a data set; results in ``out/compare_real`` are read."""
    path = ROOT / "out" / "compare_real" / f"{data.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found: Rows = [tuple(row) for row in json.loads(path.read_text())] if path.exists() else []
    wanted = [entry for entry in methods() if entry[1] != "commanded" or data.name == "kuka_kr300"]
    missing = [entry for entry in wanted if entry[0] not in {row[0] for row in found}]
    return _evaluate(data, found, missing, path) if missing else found


def _evaluate(data: DataSet, found: Rows, missing: list[tuple[str, str, Estimator]], path: Path) -> Rows:
    robot = data.robot()
    training, whole, held = split(data, data.recordings(robot))
    band = data.cutoffs_hz[0]
    cutoff = position_cutoff(data, training[0], max(data.cutoffs_hz))
    smooth = [data.processed(log, cutoff, training=True) for log in training]
    motion = data.processed(whole, cutoff, training=False)
    base = dynid.base_parameters(robot)
    sets: dict[str, Callable[[], list[Experiment]]] = {
        "raw": lambda: [data.processed(log, None, training=True) for log in training],
    }
    for name, kind, estimator in missing:
        started = time.process_time()
        try:
            runs = sets.get(kind, lambda: smooth)()
            problem = build_equations(robot, runs, base=base, band_hz=band if kind == "band" else None)
            if kind == "commanded":
                estimator = replace(estimator, motions=commanded_motions(data))
            estimate = estimator.solve(problem)
            error = held_out_error(data, whole, held, motion, problem.torque(estimate.values, motion), band)
            remark = next((finding.message for finding in estimate.findings if finding.code == "controller"), "")
        except (dynid.DynidError, np.linalg.LinAlgError) as problem_found:
            error, remark = None, str(problem_found)
        found.append((name, error, time.process_time() - started, remark))
        write_atomically(path, json.dumps(found), force=True)
        print(f"{data.name:14s} {name:32s} {error if error is None else round(error, 2)} {remark[:110]}", flush=True)
    return found


def _cell(entry: tuple[float | None, str] | None) -> str:
    if entry is None:
        return ""
    return "refused" if entry[0] is None else f"{entry[0]:.2f}"


def verdict(by_set: dict[str, dict[str, tuple[float | None, str]]]) -> str:
    """Say for each log whether a method beats weighted least squares with good filtering by more than 5 %."""
    lines = []
    for data, rows in by_set.items():
        plain = {n: e for n, (e, _) in rows.items() if n.startswith("WLS, ") and "not" not in n and e is not None}
        others = {n: e for n, (e, _) in rows.items() if not n.startswith("WLS") and e is not None}
        if not plain or not others:
            continue
        good, best = min(plain, key=lambda n: plain[n]), min(others, key=lambda n: others[n])
        gain = 100.0 * (1.0 - others[best] / plain[good])
        doubted = ", but its law is doubtful" if rows[best][1] else ""
        words = (
            f"{best} is better by {gain:.1f} %{doubted}"
            if gain > 5.0
            else f"no method is better by 5 % (next: {best}, {-gain:+.1f} %{doubted})"
        )
        lines.append(f"- **{data}**: {good}, {plain[good]:.2f}; {words}.")
    return "\n".join(lines)


def main(names: list[str]) -> None:
    """Evaluate the named data sets, by default all with a clock."""
    if not DATA.is_dir():
        print(f"no data sets in {DATA}")
        return
    chosen = [data for data in SETS if not data.quasi_static and (not names or data.name in names)]
    results = {data.name: evaluate(data) for data in chosen}
    by_set = {data: {name: (error, remark) for name, error, _, remark in rows} for data, rows in results.items()}
    table = [(name, *(_cell(by_set[data].get(name)) for data in results)) for name, *_ in methods()]
    print(Table.of(["method", *results], table).to_markdown(), verdict(by_set), sep="\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
