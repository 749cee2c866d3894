"""The wheel on every interpreter that is there, with the oldest allowed and the newest packages; ``make pythons``.

Builds the wheel, installs it into a new environment per interpreter and age of the packages, runs the groups of
commands of tests/support/wheel_smoke.py there, and prints a table: interpreter x NumPy x group. Interpreters that are
missing are named. ``--quick`` tries the newest packages and few groups (continuous integration); ``--dist`` also checks
the metadata with twine and runs the demonstration with the newest interpreter only.

The oldest packages are the lowest versions that pyproject.toml allows and that have wheels for the interpreter; uv
resolves them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / "out" / "pythons"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
"""The Pythons of the classifiers in pyproject.toml."""
sys.path.insert(0, str(ROOT / "tests"))
from support.wheel_smoke import GROUPS, QUICK  # noqa: E402


def find_interpreters() -> dict[str, Path]:
    """Version -> interpreter, from the search path and from pyenv."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin"), reverse=True)
    found: dict[str, Path] = {}
    for version in SUPPORTED:
        for folder in folders:
            candidate = folder / f"python{version}"
            if version not in found and candidate.exists() and _runs(candidate, version):
                found[version] = candidate
    return found


def _runs(interpreter: Path, version: str) -> bool:
    """Whether an interpreter is of that version, and has venv; shims of version managers may be neither."""
    question = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([interpreter, "-c", question], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def new_environment(interpreter: Path, folder: Path) -> Path:
    """A new virtual environment; returns its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


def install(python: Path, *words: str) -> None:
    """Install packages with pip; raises with its last words."""
    done = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-800:])


def build_wheel(python: Path) -> Path:
    """Build the wheel and the source archive into out/dist."""
    target = ROOT / "out" / "dist"
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run([python, "-m", "build", "--outdir", target, ROOT], check=True, stdout=subprocess.DEVNULL)
    return next(target.glob("dynid-*.whl"))


def install_oldest(tools: Path, python: Path, wheel: Path) -> None:
    """Install the wheel with the lowest versions of its direct dependencies that have wheels here."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    command = [tools.parent / "uv", "pip", "install", "-q", "--python", python, "--resolution", "lowest-direct",
               "--only-binary", ":all:", *wanted]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-800:])
    install(python, "--no-deps", str(wheel))


def versions(python: Path) -> str:
    """The versions that matter, as installed."""
    question = (
        "from importlib.metadata import version as v; print(v('numpy'), v('scipy'), v('llvmlite'), v('clarabel'))"
    )
    return subprocess.run([python, "-I", "-c", question], capture_output=True, text=True, check=True).stdout.strip()


def try_wheel(python: Path, folder: Path, groups: list[str]) -> dict[str, dict[str, object]]:
    """Run the groups with an interpreter that has the wheel; the checkout is out of its reach."""
    shutil.rmtree(folder, ignore_errors=True)
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    smoke = WORK / "wheel_smoke.py"
    smoke.write_bytes((ROOT / "tests" / "support" / "wheel_smoke.py").read_bytes())
    done = subprocess.run([python, smoke, folder, *groups], capture_output=True, text=True, check=False, env=clean)
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        return {group: {"ok": False, "seconds": 0.0, "error": done.stderr[-600:]} for group in groups}


def main() -> int:
    """Build, install, run, print; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="newest packages and few groups")
    parser.add_argument("--dist", action="store_true", help="check the metadata; newest interpreter, all groups")
    chosen = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    interpreters = find_interpreters()
    missing = [version for version in SUPPORTED if version not in interpreters]
    tools = new_environment(interpreters[max(interpreters)], WORK / "tools")
    install(tools, "build", "hatchling", *([] if chosen.quick else ["uv", "twine"]))
    wheel = build_wheel(tools)
    print(f"wheel: {wheel.name}, {wheel.stat().st_size / 1024:.0f} KB")
    if chosen.dist:
        subprocess.run([tools, "-m", "twine", "check", "--strict", *wheel.parent.iterdir()], check=True)
        interpreters = {max(interpreters): interpreters[max(interpreters)]}
    groups = list(QUICK) if chosen.quick else list(GROUPS)
    ages = ["newest"] if chosen.quick or chosen.dist else ["oldest", "newest"]
    failed, shown = 0, {}
    print("\n" + " | ".join([f"{'python':7s}", f"{'packages':8s}", f"{'numpy scipy llvmlite clarabel':31s}", *groups]))
    for version, interpreter in interpreters.items():
        for age in ages:
            name = f"{version}-{age}"
            try:
                python = new_environment(interpreter, WORK / name)
                install_oldest(tools, python, wheel) if age == "oldest" else install(
                    python, f"{wheel}{'' if chosen.quick else '[cluster]'}"
                )
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{version:7s} | {age:8s} | not installed: {error}")
                failed += 1
                continue
            results = try_wheel(python, WORK / f"{name}-files", groups)
            cells = [f"{'ok' if results[group]['ok'] else 'FAILED':{len(group)}s}" for group in groups]
            print(" | ".join([f"{version:7s}", f"{age:8s}", f"{versions(python):31s}", *cells]), flush=True)
            for group in groups:
                if not results[group]["ok"]:
                    failed += 1
                    print(f"    {group}: {results[group]['error']}")
            if (text := WORK / f"{name}-files" / "demo.txt").exists():
                shown[name] = text.read_text(encoding="utf-8")
    if shown:
        kinds = len(set(shown.values()))
        same = "the same numbers in all" if kinds == 1 else f"{kinds} different outputs"
        print(f"\ndemo, twice in each of {len(shown)} environments: {same}")
        failed += kinds > 1
    print(f"interpreters that are not here: {', '.join(missing) or 'none'}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
