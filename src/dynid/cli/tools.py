"""Verbs about dynid itself: demo, doctor, bench, reproduce, completion."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from dynid.cli.common import FORCE, JSON, print_json, verb
from dynid.cli.progress import progress
from dynid.cli.run_folder import claim_folder

__all__ = ["bench", "completion", "demo", "doctor", "reproduce"]


@verb("dynid demo", "dynid demo --seed 3 --out out/third")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True, help="Folder.")
@click.option("--seed", default=0, show_default=True, help="Of everything random.")
@FORCE
@JSON
def demo(out: Path, seed: int, force: bool, as_json: bool) -> None:
    """Run the whole job on a built-in arm with planted truth; exit code 1 if the result does not prove itself."""
    from dynid.export.result_file import result_json
    from dynid.studies.demo import run_demo

    claim_folder(out, force=force)
    result = run_demo(out, lambda line: click.echo(f"- {line}", err=as_json), seed=seed)
    if as_json:
        print_json({**result_json(result.fit, result.check), "seconds": result.seconds, "report": str(result.report)})
    else:
        click.echo("")
        click.echo(result.text())
    sys.exit(0 if result.passed else 1)


@verb("dynid doctor --json")
@JSON
def doctor(as_json: bool) -> None:
    """Say what this installation has: versions, compilers, optional packages."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from dynid import __version__
    from dynid.export.c.c_check import find_compiler
    from dynid.kernels import kernel
    from dynid.robot.zoo import puma560

    packages: dict[str, str | None] = {}
    for name in ("numpy", "scipy", "llvmlite", "clarabel", "h5py", "pyarrow", "mcap", "mujoco", "matplotlib"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    made = kernel(puma560(), "inverse_dynamics")
    compiler = find_compiler()
    if as_json:
        machine = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
        found = {"dynid": __version__, **machine, "packages": packages, "kernels": made.program.backend}
        print_json({**found, "c_compiler": None if compiler is None else str(compiler)})
        return
    click.echo(f"dynid {__version__}, Python {platform.python_version()}, {platform.machine()} {platform.system()}")
    for name, found_version in packages.items():
        click.echo(f"  {name:12s} {found_version or 'not installed'}")
    click.echo(f"kernels run by {made.program.backend}: PUMA 560 inverse dynamics in {made.count}")
    click.echo(f"C compiler: {compiler or 'none found (only needed to verify generated code)'}")


@verb("dynid bench", "dynid bench --out bench.json")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Also write the rows as JSON to a file.")
@JSON
def bench(out: Path | None, as_json: bool) -> None:
    """Print our speed beside the peers' that are installed, as ratios measured in one run."""
    import subprocess
    import tempfile

    # a process of its own: the number of threads of numerical libraries is fixed when they are loaded
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "bench.json" if out is None else out
        command = [sys.executable, "-m", "dynid.studies.benchmark", "--json", str(rows)]
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL if as_json else None)
        if as_json and done.returncode == 0:
            click.echo(rows.read_text(encoding="utf-8"))
    sys.exit(done.returncode)


@verb("dynid reproduce gautier1990 --out papers", "dynid reproduce all --quick")
@click.argument("paper", default="all")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/papers"), show_default=True, help="Folder.")
@click.option("--quick", is_flag=True, help="Fewer random draws, for a first look.")
@FORCE
@JSON
def reproduce(paper: str, out: Path, quick: bool, force: bool, as_json: bool) -> None:
    """Regenerate tables and figures of the papers dynid is built from, with a verdict for every row.

    PAPER is gautier1990, lin1995, gautier1992, izaguirre1992, atkeson1986 or all.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small problems: threads only get in each other's way

    from dynid.studies.papers.all_papers import REPRODUCTIONS
    from dynid.studies.papers.all_papers import reproduce as regenerate

    if paper in (*REPRODUCTIONS, "all"):  # another name is refused below, with those that exist
        claim_folder(out, force=force, what=paper)

    with progress("reproducing", 1.0) as advance:
        result = regenerate(paper, out, lambda done, total, title: advance(done / total, title), quick=quick)
    if as_json:
        print_json({"summary": result.summary().splitlines(), "folder": str(out)})
        return
    click.echo(result.summary())
    click.echo(f"written: {out}")


@verb(
    "dynid completion bash >> ~/.bashrc",
    "dynid completion zsh >> ~/.zshrc",
    "dynid completion fish > ~/.config/fish/completions/dynid.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes verbs, options, files and built-in robots in a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    scripted = kind(root, {}, "dynid", "_DYNID_COMPLETE")
    click.echo(scripted.source_template % scripted.source_vars())
