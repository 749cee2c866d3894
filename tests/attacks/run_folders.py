"""Commands that are killed, run twice at once, run out of disk, or meet files of a stranger: nothing mixed or lost."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from dynid.cli import main as dynid
from dynid.cli.group import ANYWHERE
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.zoo import cylindrical
from dynid.safe_files import file_digest
from dynid.workflows.run_folder import read_run
from support.header_styles import write_columns
from support.three_joints import HEADER

MAP = """[time]
column = "t"
unit = "s"
[position]
columns = ["q1", "q2", "q3"]
unit = ["rad", "m", "m"]
[effort]
columns = ["tau1", "tau2", "tau3"]
unit = ["N m", "N", "N"]
"""
VERBS: dict[str, tuple[str, ...]] = {
    "identify": ("arm.urdf", "run1.csv", "--map", "map.toml", "--set", "friction=plain", "--set", "estimator=wls"),
    "load": ("arm.urdf", "run2.csv", "--unloaded", "run1.csv", "--map", "map.toml"),
    "excite": ("arm.urdf", "--set", "time_limit_s=0.2", "--set", "velocity=1", "--set", "acceleration=5"),
    "codegen": ("arm.urdf", "--no-verify"),
}
"""Command -> its words, without --out."""


def prepare(folder: Path) -> None:
    """Write a robot, two logs and a map."""
    write_urdf(cylindrical(), folder / "arm.urdf")
    (folder / "map.toml").write_text(MAP)
    for seed in (1, 2):
        motion = sum_of_sines(3, seed=seed)
        run = simulate_experiment(cylindrical(), motion, rate_hz=100, duration_s=5, noise=Noise(effort=0.05), seed=seed)
        write_columns(folder / f"run{seed}.csv", [HEADER], [run.time, run.q, run.effort])


def start(words: list[str], prelude: Callable[[], None] = lambda: None) -> int:
    """Start a command in a copy of this process; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = 99
    try:
        prelude()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            dynid.main(args=words, prog_name="dynid", standalone_mode=False)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def finish(child: int) -> int:
    """Exit code of a command; negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_mixed(out: Path) -> str:
    """What is wrong with a run folder; empty if all its files belong together."""
    if not (out / "run.json").exists():
        return ""
    facts = read_run(out)
    wrong = [name for name, digest in facts.get("outputs", {}).items() if file_digest(out / name) != digest]
    return f"{wrong[0]} is of another run" if wrong else ""


def litter(folder: Path) -> list[str]:
    """Names of hidden and temporary files."""
    temporary = [p for p in folder.rglob("*") if p.suffix == ".part" or (p.suffix == ".dynid" and p.is_dir())]
    return [str(p.relative_to(folder)) for p in temporary]


def kills(count: int, folder: Path, rng: random.Random) -> list[str]:
    """Kill commands at random instants; the earlier run or the new one must be there, and the next run must succeed."""
    findings, verbs = [], list(VERBS)
    seconds: dict[str, float] = {}
    for verb in verbs:
        started = time.monotonic()
        if finish(start([verb, *VERBS[verb], "--out", f"out_{verb}"])) > 1:
            return [f"{verb} fails"]
        seconds[verb] = time.monotonic() - started
    for number in range(count):
        verb = verbs[number % len(verbs)]
        words, out = [verb, *VERBS[verb], "--out", f"out_{verb}", "--force"], folder / f"out_{verb}"
        before = {p.name for p in out.iterdir()}
        child = start(words)
        time.sleep(rng.uniform(0.0, seconds[verb]))
        os.kill(child, signal.SIGKILL)
        finish(child)
        if wrong := is_mixed(out):
            findings.append(f"kill {number} of {verb}: {wrong}")
        if lost := before - {p.name for p in out.iterdir()}:
            findings.append(f"kill {number} of {verb}: lost {sorted(lost)[0]}")
        if number % 10 >= 5:
            if (code := finish(start(words))) > 1:
                findings.append(f"after kill {number} {verb} ends with {code}")
            if left := [name for name in litter(folder) if verb in name]:
                findings.append(f"after kill {number} of {verb}: {left[0]} is left")
    return findings


def pairs(count: int, folder: Path, rng: random.Random) -> list[str]:
    """Start two commands with other logs and one folder at the same time."""
    findings = []
    for number in range(count):
        out = folder / f"pair{number}"
        words = [["identify", "arm.urdf", f"run{k}.csv", *VERBS["identify"][2:], "--out", str(out)] for k in (1, 2)]
        first = start(words[0])
        time.sleep(rng.uniform(0.0, 0.3))
        codes = [finish(child) for child in (start(words[1]), first)]
        if 0 not in codes or any(code not in (0, 1, 5) for code in codes):
            findings.append(f"pair {number} ends with {codes}")
        if wrong := is_mixed(out):
            findings.append(f"pair {number}: {wrong}")
        used = {entry["sha256"] for entry in read_run(out)["inputs"]}
        if not {facts["sha256"] for facts in json.loads((out / "result.json").read_text())["data"]} <= used:
            findings.append(f"pair {number}: the result is of another log than the run")
    return findings


def full(count: int, folder: Path, rng: random.Random) -> list[str]:
    """Let no file grow beyond some bytes: the earlier run stays whole, and nothing is left beside it."""
    import resource

    findings = []
    words, out = ["identify", *VERBS["identify"], "--out", "out", "--force"], folder / "out"
    if finish(start(words)):
        return ["identify fails"]
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    for _ in range(count):
        most = int(10 ** rng.uniform(1.0, 5.0))
        code = finish(start(words, lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))))
        if code != 5 and {p.name: p.read_bytes() for p in out.iterdir()}.keys() != before.keys():
            findings.append(f"{most} bytes: exit code {code}")
        if code == 5 and {p.name: p.read_bytes() for p in out.iterdir()} != before:
            findings.append(f"{most} bytes: the earlier run is changed")
        if code not in (0, 1, 5):
            findings.append(f"{most} bytes: exit code {code}")
        if left := litter(folder):
            findings.append(f"{most} bytes: {left[0]} is left")
        before = {p.name: p.read_bytes() for p in out.iterdir()}
    return findings


def mixed(count: int, folder: Path, rng: random.Random) -> list[str]:
    """Put files of another run, or a list of files to move, beside or into a folder: every command refuses it."""
    findings = []
    one, other = folder / "one", folder / "other"
    for log, out in (("run1.csv", one), ("run2.csv", other)):
        if finish(start(["identify", "arm.urdf", log, *VERBS["identify"][2:], "--out", str(out)])) > 1:
            return ["identify fails"]
    names = sorted(p.name for p in one.iterdir() if p.read_bytes() != (other / p.name).read_bytes())
    names.remove("log.txt")  # tells what happened, and is no part of the result
    for number in range(count):
        target = shutil.copytree(one, folder / f"mixed{number}")
        change = rng.choice([*names, *PLANTED])
        if change in names:
            shutil.copy(other / change, target / change)
        else:
            PLANTED[change](target, other)
        before = {p.name: p.read_bytes() for p in target.iterdir() if p.is_file()}
        verb = rng.choice(list(READERS))
        code = finish(start([verb, str(target), *READERS[verb]]))
        if code not in (3, 5):
            findings.append(f"{verb} after {change}: exit code {code}")
        if {p.name: p.read_bytes() for p in target.iterdir() if p.is_file()} != before:
            findings.append(f"{verb} after {change}: the folder is changed")
        if (folder / "new").exists():
            findings.append(f"{verb} after {change}: files are written")
            shutil.rmtree(folder / "new")
    return findings


def _edit_record(target: Path, **changes: object) -> None:
    record = target / "run.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), **changes}))


def _pipe(target: Path) -> None:
    (target / "run.json").unlink()
    os.mkfifo(target / "run.json")


def _plant_list(target: Path, other: Path) -> None:
    """A hidden folder as one in an archive: it asks to replace the result and to remove the report."""
    stage = target.parent / f".{target.name}.dynid"
    stage.mkdir()
    (stage / "lock").touch()
    shutil.copy(other / "result.json", stage / "result.json")
    (stage / "commit.json").write_text(json.dumps({"files": ["result.json"], "obsolete": ["report.html"]}))


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "an unfinished record": lambda target, other: _edit_record(target, finished=False),
    "a record of other files": lambda target, other: _edit_record(target, outputs={}),
    "a name in another folder": lambda target, other: _edit_record(target, outputs={"../run1.csv": "0" * 64}),
    "a pipe as record": lambda target, other: _pipe(target),
    "a list of files to move": _plant_list,
}
"""What is done to the folder of a run -> how."""
READERS: dict[str, tuple[str, ...]] = {
    "report": (), "rerun": (), "codegen": ("--out", "new", "--no-verify"), "export": ("--to", "csv", "--out", "new"),
    "validate": ("run2.csv", "--map", "map.toml", "--out", "new"),
    "watch": ("run2.csv", "--map", "map.toml", "--out", "new"),
}  # fmt: skip
"""Command that reads a run -> its words after the folder."""


FORBIDDEN = ("out", "force", "engine", "save-recipe", "help")
SPACES = ("", " ", "\t", "\u00a0", "\n", "\u2003", "'", '"')


def records(count: int, folder: Path, rng: random.Random) -> list[str]:
    """Repeat runs whose record asks for a cluster, for files elsewhere or for other commands; and refused runs that
    list files of others, and fleets that store beside them: no address is asked for, and no such file is lost."""
    if finish(start(["identify", *VERBS["identify"], "--out", "one"])) > 1:
        return ["identify fails"]
    facts = json.loads((folder / "one" / "run.json").read_text())
    findings = []
    for number in range(count):
        target = shutil.copytree(folder / "one", folder / f"record{number}")
        key, gap = rng.choice(FORBIDDEN), rng.choice(SPACES)
        planted = rng.choice([
            ["--set", f"{gap}{key}{gap}=tcp://127.0.0.1:9"], [f"--set={key}{gap}=tcp://127.0.0.1:9"],
            [f"--{key}{gap}", "tcp://stolen:9"], [f"--{key}={gap}tcp://stolen:9"], ["--recipe", "evil.toml"],
            [f"--{key}", "127.0.0.1:18786"],
            ["--hold", "--", "--hold", rng.choice(ANYWHERE), f"--{key}", "stolen:1234"],
        ])  # fmt: skip
        (folder / "evil.toml").write_text(f'"{key}" = "tcp://127.0.0.1:9"\n')
        words = [*planted, *facts["arguments"]]
        (target / "run.json").write_text(json.dumps({**facts, "arguments": words}))
        code = finish(start(["rerun", str(target)], _forbid_connections))
        if code in (0, 1, 70, 98):
            findings.append(f"{planted} ends with {code}")
        if (folder / "stolen").exists():
            findings.append(f"{planted} writes a file")
        shutil.rmtree(target)
        target.mkdir()
        force, mine = rng.choice([[], ["--force"]]), [target / "thesis.txt", target / ".thesis.odt.part"]
        mine += [] if force else [target / rng.choice(["log.txt", "load.txt", "recipe.toml"])]
        for path in mine:
            path.write_text("years of work")
        record = {**facts, "finished": False, "refused": rng.random() < 0.5, "result": None, "exit_code": None}
        record |= {"outputs": {path.name: file_digest(path) for path in mine}, "log": "0" * 64}
        if rng.random() < 0.7:
            del record["log"]
        (target / "run.json").write_text(json.dumps(record))
        finish(start(["identify", *VERBS["identify"], "--out", str(target), *force]))
        words = ["fleet", "arm.urdf", "{arm}1.csv", "--map", "map.toml", "--store"]
        finish(start([*words, str(target), "--out", f"fleet{number}"]))
        for path in mine:
            if not path.exists() or path.read_text() != "years of work":
                findings.append(f"{path.name} of others is gone")
        shutil.rmtree(target)
    return findings


def _forbid_connections() -> None:
    """End the process where anything asks for an address."""
    import socket

    socket.socket.connect = lambda *_: os._exit(98)  # type: ignore[method-assign,assignment]


ATTACKS = {"kills": kills, "pairs": pairs, "full": full, "mixed": mixed, "records": records}


def attack_folder(name: str, count: int, seed: int) -> list[str]:
    """Run one attack in a folder of its own; what is wrong."""
    present = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            prepare(Path(place))
            return ATTACKS[name](count, Path(place), random.Random(f"{name}-{seed}"))
        finally:
            os.chdir(present)
