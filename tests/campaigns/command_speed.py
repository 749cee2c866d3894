"""How long the commands take on real logs: processor time of each stage, the least of several runs.

Run ``python tests/campaigns/command_speed.py`` (``--only NAME`` for one, ``--runs 5``). Needs the data sets of
`real_logs`. Each command runs in a process of its own, once before the clock starts so that everything is compiled,
as in an installed package. ``--beside FOLDER`` runs another checkout in turn with this one and compares the results of
identifications: printed text, values in standard deviations, standard deviations, errors on held-out data. ``--runs 0``
compares only. A processor shared with others is slower: the first line says how long a fixed loop takes.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from real_logs import DATA

from benchmarks.speed.public_functions import FIRST_TORQUE, keep_bytecode

ROOT = Path(__file__).parents[2]
FINGERS = "--hold panda_finger_joint1 --hold panda_finger_joint2"
GAZ = f"{DATA}/panda_gaz"
USUAL = "--set judge_rest=true"
IDENTIFY = {
    "panda_gaz": f"{GAZ}/panda.urdf {GAZ} {FINGERS} --hold-out 40% --set max_gap_s=0.02 "
    f"--map {ROOT}/channel_maps/panda_gaz.toml --set band_hz=3 --set trim_s=0.5 {USUAL}",
    "tx40": f"{DATA}/tx40/tx40_mdh_modified.urdf {DATA}/tx40 --hold-out every:3:0.75 --set dead_band=0.02 "
    f"--map {ROOT}/channel_maps/tx40.toml --set band_hz=30 --set trim_s=0.05 {USUAL}",
    "panda_unisa": f"{DATA}/panda_unisa/panda.urdf {DATA}/panda_unisa {FINGERS} --hold-out 40% "
    f"--map {ROOT}/channel_maps/panda_unisa.toml --set band_hz=4 --set trim_s=0.5 {USUAL}",
    "ur10_unisa": f"{DATA}/ur10_unisa/ur10_robot.urdf {DATA}/ur10_unisa --hold-out 40% "
    f"--map {ROOT}/channel_maps/ur10_unisa.toml --set band_hz=6 --set trim_s=0.3 {USUAL}",
}
"""Log -> arguments of ``dynid identify``, those of docs/real-data.md."""
TORQUE = "first torque "
"""Stands for a new process that computes one torque of a built-in robot, in place of a command."""
COMMANDS = {
    "help": ("--help", 0.2),
    "first torque puma560": (f"{TORQUE}puma560", 0.25),
    "first torque panda": (f"{TORQUE}panda", 0.25),
    "check panda_gaz": (
        f"check {GAZ} --robot {GAZ}/panda.urdf {FINGERS} --map {ROOT}/channel_maps/panda_gaz.toml",
        1.0,
    ),
    "identify panda_gaz": (f"identify {IDENTIFY['panda_gaz']} --out OUT --force", 2.0),
    "identify tx40": (f"identify {IDENTIFY['tx40']} --out OUT --force", 3.0),
    "demo": ("demo --out OUT --force", 12.0),
}
"""Name -> arguments and largest processor time [s]."""
KINDS = ("wls", "didim")
"""Estimators whose times are compared."""
DIDIM_TIMES = 20.0
"""Largest ratio of the times of DIDIM and WLS."""


def run(arguments: str, folder: Path, source: Path = ROOT) -> tuple[float, str, str]:
    """Processor time of a command of a source tree [s], its line of stages and what it printed."""
    words = [sys.executable, "-m", "dynid", "--timing", *arguments.replace("OUT", str(folder / "out")).split()]
    if arguments.startswith(TORQUE):
        words = [sys.executable, "-c", FIRST_TORQUE.format(robot=arguments.removeprefix(TORQUE))]
    environment = {**keep_bytecode(str(folder)), "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(source / "src")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"{arguments}\n{done.stderr}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(r"processor time \[s\]: (.*);", done.stderr)
    return spent, found[1] if found else "", done.stdout


def differences(arguments: str, folder: Path, sources: Sequence[Path]) -> str:
    """How far the results of an identification by two source trees differ, in words."""
    results, texts = [], []
    for source in sources:
        texts.append(run(arguments, folder, source)[2])
        results.append(json.loads((folder / "out" / "result.json").read_text()))
    mine, other = (result["base_parameters"] for result in results)
    pairs = [(a, b) for a, b in zip(mine, other, strict=True) if a["std"] and b["std"]]
    values = max(abs(a["value"] - b["value"]) / b["std"] for a, b in pairs)
    spreads = max(abs(a["std"] / b["std"] - 1.0) for a, b in pairs)
    errors = [result["validation"]["relative_error_percent"] for result in results]
    alike = "the same" if texts[0] == texts[1] else "ANOTHER"
    return (
        f"{alike} printed text; {len(pairs)} values differ by at most {values:.1g} standard deviations, these by "
        f"{spreads:.1g} of themselves, the held-out error by {abs(errors[0] - errors[1]):.1g} %"
    )


def loop_time() -> float:
    """Processor time of a million additions of squares in Python [s], the least of five."""
    times = []
    for _ in range(5):
        start = time.process_time()
        sum(k * k for k in range(1_000_000))
        times.append(time.process_time() - start)
    return min(times)


def least(arguments: str, runs: int, folder: Path, sources: Sequence[Path]) -> list[tuple[float, str, str]]:
    """The quickest of several runs of each source tree, in turn, after one that compiles."""
    for source in sources:
        run(arguments, folder, source)
    rounds = [[run(arguments, folder, source) for source in sources] for _ in range(runs)]
    return [min(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    """Print every command beside its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", help="part of a command's name")
    parser.add_argument("--beside", type=Path, help="another checkout of dynid, whose commands run in turn with these")
    options = parser.parse_args()
    sources = [ROOT] if options.beside is None else [ROOT, options.beside]
    missed = 0
    print(f"a million additions of squares in Python: {1e3 * loop_time():.0f} ms", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, (arguments, limit) in COMMANDS.items():
            if options.only and options.only not in what:
                continue
            if len(sources) > 1 and what.startswith("identify"):
                print(f"{what} beside the other: {differences(arguments, folder, sources)}", flush=True)
            if options.runs < 1:
                continue
            (spent, stages, _), *others = least(arguments, options.runs, folder, sources)
            missed += spent > limit
            print(
                f"{'ok  ' if spent <= limit else 'MISS'} {what}: {spent:.2f} s (at most {limit:g}); {stages}",
                *(
                    f"\n     beside it {other:.2f} s, {other / spent:.2f} times as long; {text}"
                    for other, text, _ in others
                ),
                flush=True,
            )
        for log in ("panda_unisa", "ur10_unisa", "tx40"):
            if options.runs < 1 or (options.only and options.only not in f"didim {log}"):
                continue
            words = re.sub(r" --set band_hz=\S+", "", IDENTIFY[log])  # DIDIM compares single samples
            times = [run(f"identify {words} --estimator {kind} --out OUT --force", folder)[0] for kind in KINDS]
            missed += times[1] > DIDIM_TIMES * times[0]
            word = "ok  " if times[1] <= DIDIM_TIMES * times[0] else "MISS"
            print(
                f"{word} didim {log}: {times[1]:.1f} s, {times[1] / times[0]:.0f} times wls ({times[0]:.1f} s)",
                flush=True,
            )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
